"""`bayesrep collect match`: choose a replication's images from a pool, or check how it was done."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, get_args

import bayesrep
from bayesrep.choices import Choosing
from bayesrep.commands.options import given_options, keep_compiled, whole_numbers
from bayesrep.commands.output import emit, emit_table, new_table_file, write_table
from bayesrep.errors import OptionError
from bayesrep.studies.vocabulary import words_of

EXAMPLE = "counts.csv --reference v1 --pool pool --images 2000 --out chosen.csv"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "table",
        type=Path,
        metavar="TABLE|STUDY",
        help="counts: dataset, image, selected, shown, and perhaps label; with --check: a study",
    )
    option("--reference", metavar="NAME", help="data set to match")
    option("--pool", metavar="NAME", help="pool of candidates; --check: role (default candidates)")
    option("--images", type=int, metavar="N", help="number of images to choose in all")
    option("--per-class", type=int, metavar="N", help="number to choose of each class (label)")
    text = "how images are matched to the reference (default posterior)"
    option("--method", choices=get_args(Choosing), help=text)
    option(
        "--ask",
        type=int,
        metavar="N",
        help="write the N candidates most worth another answer, in place of the images chosen",
    )
    option(
        "--answers",
        type=whole_numbers,
        metavar="N,N",
        help="answers per image at which to predict each method's bias; with --check: answers to "
        "match on, where the others measure (default 5)",
    )
    option(
        "--check",
        action="store_true",
        help="see the bias of matching in a study's answers, matched on some of them",
    )
    option("--out", type=Path, metavar="TABLE", help="table for the images, CSV or Parquet")


def run(arguments: Namespace) -> int:
    keep_compiled()
    if arguments.out is not None:
        new_table_file(arguments.out, arguments)
    if arguments.images is not None and arguments.per_class is not None:
        raise OptionError("images-and-per-class-given")
    return (_check if arguments.check else _choose)(arguments)


def _choose(arguments: Namespace) -> int:
    import polars as pl

    from bayesrep.planning import match_images, next_answers, remaining_gap
    from bayesrep.report.collect_text import matching_text
    from bayesrep.sources.collection_tables import read_candidates

    size, method = arguments.images or arguments.per_class, arguments.method or "posterior"
    if not (arguments.reference and arguments.pool and size and arguments.out):
        raise OptionError("match-needs-sets-and-size")
    names, by_class = (arguments.reference, arguments.pool), arguments.per_class is not None
    sets = read_candidates(arguments.table, names, by_class=by_class)
    counts = [(part["selected"].to_numpy(), part["shown"].to_numpy()) for part in sets]
    classes: Any = None
    if by_class:
        classes = tuple(part["label"].to_numpy().astype(str) for part in sets)
    # Counts alone decide, and classes where images are chosen by class.
    seed = {} if arguments.seed is None else {"seed": arguments.seed}
    matching = match_images(*counts, size=size, classes=classes, **seed)
    chosen = matching.chosen[method]
    inclusion = pl.Series("inclusion", chosen.inclusion)
    # With --ask the table holds who to ask about next in place of the images chosen.
    rows_out, what = chosen.images, f"by {method}"
    if arguments.ask is not None:
        most = int(counts[0][1].max())
        rows_out = next_answers(matching, counts[1], count=arguments.ask, most=most, **seed)
        inclusion = pl.Series("inclusion", matching.chosen["posterior"].inclusion)
        what = f"{len(rows_out):,} candidates to ask about once more"
    write_table(sets[1].with_columns(inclusion)[rows_out], arguments.out)
    numbers = ("gap", "lower", "upper", "distance", "moved")
    rows = [
        {"method": name, "images": len(each.images), **{n: getattr(each, n) for n in numbers}}
        for name, each in matching.chosen.items()
    ]
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
        "method": method,
        "out": str(arguments.out),
    }
    text = matching_text(rows, matching.reference_mean, matching.pool_mean, planned)
    return emit(arguments, f"{text}\nWritten to {arguments.out}: {what}", facts)


def _check(arguments: Namespace) -> int:
    from bayesrep.planning import rematch
    from bayesrep.planning.rematching import LEAST_ANSWERS
    from bayesrep.report.plan_text import rematch_text

    foreign = arguments.reference, arguments.method, arguments.ask, arguments.out
    answers = arguments.answers or [LEAST_ANSWERS]
    if len(answers) > 1 or any(each is not None for each in foreign):
        raise OptionError("check-of-matching-options")
    study = bayesrep.read_study(arguments.table)
    by_class = arguments.per_class is not None
    size = arguments.per_class if by_class else arguments.images
    options: dict[str, Any] = {**given_options(arguments, rematch), "answers": answers[0]}
    rematched = rematch(study, **options, size=size, by_class=by_class)
    source = rematched.by_source
    facts = {
        "held_out": rematched.held_out.to_dicts(),
        "by_source": None if source is None else source.to_dicts(),
    }
    text = rematch_text(rematched, words_of(study))
    return emit_table(arguments, rematched.by_answers, text, facts, study.left_out)
