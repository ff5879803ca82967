"""`bayesrep collect match`: choose a replication's images from a pool."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, get_args

from bayesrep.choices import FEW_REPLICATES, Choosing
from bayesrep.commands.options import given_options, keep_compiled, whole_numbers
from bayesrep.commands.output import emit, new_table_file, write_table
from bayesrep.errors import OptionError

EXAMPLE = "counts.csv --reference v1 --pool pool --images 2000 --out chosen.csv"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("table", type=Path, help="counts: dataset, image, selected, shown, and perhaps label")
    option("--reference", required=True, metavar="NAME", help="the data set to be like")
    option("--pool", required=True, metavar="NAME", help="the data set of candidates")
    option("--images", type=int, metavar="N", help="how many to choose in all")
    option("--per-class", type=int, metavar="N", help="how many to choose of every class (label)")
    option("--method", choices=get_args(Choosing), default="posterior", help="by which (posterior)")
    option(
        "--ask",
        type=int,
        metavar="N",
        help="write the N candidates that are worth another answer, in place of those chosen",
    )
    option(
        "--answers",
        type=whole_numbers,
        metavar="N,N",
        help="say what each way would leave with so many answers about every image",
    )
    option("--least", type=float, metavar="S", help="expected frequency of a candidate (0.0)")
    option("--most", type=int, metavar="N", help="answers of a candidate (the reference's)")
    option("--components", type=int, help="of the mixtures of betas (2)")
    option("--replicates", type=int, help=f"of the bootstrap ({FEW_REPLICATES})")
    option("--out", type=Path, required=True, metavar="TABLE", help="the images, CSV or Parquet")


def run(arguments: Namespace) -> int:
    keep_compiled()
    import polars as pl

    from bayesrep.lab import match_images, next_answers, remaining_gap
    from bayesrep.report.collect_text import matching_text
    from bayesrep.sources.collection_tables import read_candidates

    new_table_file(arguments.out, arguments)
    if (arguments.images is None) == (arguments.per_class is None):
        raise OptionError("one-of-images-per-class")
    names, by_class = (arguments.reference, arguments.pool), arguments.per_class is not None
    sets = read_candidates(arguments.table, names, by_class=by_class)
    counts = [(part["selected"].to_numpy(), part["shown"].to_numpy()) for part in sets]
    classes: Any = None
    if by_class:
        classes = tuple(part["label"].to_numpy().astype(str) for part in sets)
    # Counts alone decide, and classes where images are chosen by class.
    matching = match_images(
        *counts,
        size=arguments.per_class if by_class else arguments.images,
        classes=classes,
        **given_options(arguments, match_images),
    )
    chosen = matching.chosen[arguments.method]
    inclusion = pl.Series("inclusion", chosen.inclusion)
    # With --ask the table holds who to ask about next in place of the images chosen.
    rows_out = chosen.images
    if arguments.ask is not None:
        most = int(counts[0][1].max()) if arguments.most is None else arguments.most
        options = given_options(arguments, next_answers)
        rows_out = next_answers(matching, counts[1], count=arguments.ask, most=most, **options)
        inclusion = pl.Series("inclusion", matching.chosen["posterior"].inclusion)
    write_table(sets[1].with_columns(inclusion)[rows_out], arguments.out)
    rows = [_describe_choice(name, each) for name, each in matching.chosen.items()]
    # What more answers to all images would leave of the gap.
    total = len(chosen.images)
    planned = [
        {"answers": n, **remaining_gap(matching, n, size=total, pool=len(sets[1]))}
        for n in arguments.answers or []
    ]
    facts = {
        "rows": rows,
        "planned": planned,
        "reference_mean": matching.reference_mean,
        "pool_mean": matching.pool_mean,
        "method": arguments.method,
        "out": str(arguments.out),
    }
    text = matching_text(rows, matching.reference_mean, matching.pool_mean, planned)
    what = f"by {arguments.method}"
    if arguments.ask is not None:
        what = f"{len(rows_out):,} candidates to ask about once more"
    return emit(arguments, f"{text}\nWritten to {arguments.out}: {what}", facts)


def _describe_choice(method: str, chosen: Any) -> dict[str, Any]:
    """Describe the gap that a method leaves, for the table and as JSON."""
    names = ("gap", "lower", "upper", "distance", "moved")
    numbers = {name: getattr(chosen, name) for name in names}
    return {"method": method, "images": len(chosen.images), **numbers}
