"""`bayesrep collect labels`: the labels of each image that are worth a closer look."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bayesrep.commands.output import emit, new_table_file, write_table
from bayesrep.errors import OptionError

EXAMPLE = "counts.csv --out labels.csv"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("table", type=Path, help="of answers, or of counts, as `collect read` writes them")
    option(
        "--wnids",
        type=Path,
        metavar="FILE",
        help="WordNet's number of each label, a table with label, wnid (labels are their own)",
    )
    option("--annotators", type=int, help="that each label was meant for (the most that any had)")
    option("--fates", type=Path, metavar="TABLE", help="what becomes of every image, too")
    option(
        "--out",
        type=Path,
        required=True,
        metavar="TABLE",
        help="labels of the images that go on to classify, CSV or Parquet",
    )


def run(arguments: Namespace) -> int:
    from bayesrep import collect
    from bayesrep.collect.responses import count_selections
    from bayesrep.report.collect_text import shortlist_text
    from bayesrep.sources.collection_tables import read_label_table, read_wnids

    for path in (arguments.out, arguments.fates):
        if path is not None:
            new_table_file(path, arguments)
    table = read_label_table(arguments.table)
    if "shown" not in table.columns:
        table = count_selections(table)
    wnids = None if arguments.wnids is None else read_wnids(arguments.wnids)
    chosen = collect.shortlist(table, wnids, annotators=arguments.annotators)
    fates = chosen.images.group_by("fate", maintain_order=True).len("images")
    if chosen.to_classify.is_empty():
        raise OptionError(
            "no-images-to-classify",
            fates="; ".join((f"{count:,} images: {fate}" for fate, count in fates.iter_rows())),
        )
    write_table(chosen.to_classify, arguments.out)
    if arguments.fates is not None:
        write_table(chosen.fates, arguments.fates)
    facts = {
        "rows": chosen.steps.to_dicts(),
        "by_wordnet": chosen.by_wordnet,
        "images": dict(fates.iter_rows()),
        "out": str(arguments.out),
    }
    return emit(arguments, f"{shortlist_text(chosen)}\nWritten to {arguments.out}", facts)
