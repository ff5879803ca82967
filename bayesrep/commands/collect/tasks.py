"""`bayesrep collect tasks`: what people are asked, and the labels to ask about."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bayesrep.commands.options import given_options, named_path, names, refuse_foreign, setting
from bayesrep.commands.output import emit, new_folder, new_table_file, write_table
from bayesrep.errors import OptionError, did_you_mean

EXAMPLE = "candidates.csv --kind contains --images v1=val --out tasks"

SETTINGS = {
    "candidates": ("top",),
    "contains": ("answers", "grids", "size", "positive", "negative"),
    "classify": ("answers",),
    "review": (),
}
"""What `--set` sets of every kind."""
_OF_FORMS, _OF_REVIEW = ("contains", "classify"), ("review",)
_ONLY_FOR = {
    **{"images": _OF_FORMS, "address": _OF_FORMS, "controls": ("contains",)},
    **dict.fromkeys(("judged", "humans", "reviewers"), _OF_REVIEW),
}


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "table",
        type=Path,
        nargs="?",
        metavar="STUDY|TABLE",
        help="candidates, review: a study; contains, classify: a table of what to ask: dataset, "
        "image, label, and perhaps own, source (each image's own label)",
    )
    option(
        "--kind",
        choices=tuple(SETTINGS),
        default="contains",
        help="candidates: labels to ask about; contains: grids, which images show this? classify: "
        "which objects are in an image? review: predictions to judge (default contains)",
    )
    # Of tasks for people: pictures, and the design.
    option(
        "--images",
        type=named_path,
        nargs="+",
        metavar="NAME=FOLDER",
        help="data sets and their images, a folder for each class; contains: data sets that the "
        "table does not name are asked about whole",
    )
    option(
        "--controls",
        type=Path,
        metavar="PATH",
        help="images whose label is known: a folder for each class, or a table of image, label, "
        "source",
    )
    option("--address", metavar="URL", help="address of the images, before NAME/class/file")
    option(
        "--set",
        type=setting,
        action="append",
        default=[],
        metavar="NAME=N",
        help="answers for each image and label (default answers=10, of classify 9), grids for each "
        "image (grids=5), images in a grid (size=48), controls in it (positive=5, negative=3); "
        "candidates: labels from each classifier (top=5)",
    )
    option(
        "--judged",
        type=Path,
        nargs="+",
        metavar="TABLE",
        help="what is judged already: this table with its column right filled in, or label sets",
    )
    option("--humans", type=Path, metavar="FILE", help="people's answers to judge, too")
    option("--reviewers", type=names, metavar="NAME,NAME", help="people who share the review")
    option(
        "--out",
        type=Path,
        required=True,
        metavar="PATH",
        help="contains, classify: folder for tasks; candidates, review: a table, CSV or Parquet",
    )


def run(arguments: Namespace) -> int:
    kind, settings = arguments.kind, dict(arguments.set)
    refuse_foreign(arguments, _ONLY_FOR, "kind")
    for name, value in settings.items():
        if name not in SETTINGS[kind]:
            hint = did_you_mean(name, SETTINGS[kind])
            raise OptionError("unknown-task-setting", kind=kind, name=name, hint=hint)
        if type(value) is not int:
            raise OptionError("task-setting-not-whole-number", name=name, value=value)
    (new_folder if kind in _OF_FORMS else new_table_file)(arguments.out, arguments)
    if arguments.table is None and (kind != "contains" or not arguments.images):
        raise OptionError("nothing-to-ask-about", kind=kind)
    write = {"candidates": _candidates, "contains": _contains, "classify": _classify}
    return write.get(kind, _review)(arguments, settings)


def _candidates(arguments: Namespace, settings: dict[str, Any]) -> int:
    from bayesrep import collect
    from bayesrep.report.collect_text import candidates_text
    from bayesrep.studies.answers import read_predictions

    table = collect.candidate_labels(read_predictions(arguments.table), **settings)
    write_table(table, arguments.out)
    sizes = table.group_by("dataset", "image").len().group_by("len").len("images").sort("len")
    facts = {"labels": dict(sizes.iter_rows()), "written": len(table), "out": str(arguments.out)}
    return emit(arguments, f"{candidates_text(sizes)}\nWritten to {arguments.out}", facts)


def _contains(arguments: Namespace, settings: dict[str, Any]) -> int:
    import polars as pl

    from bayesrep import collect
    from bayesrep.collect.image_folders import labelled_images
    from bayesrep.files.tables import read_only

    design = collect.GridDesign(**settings, seed=arguments.seed or 0)
    rows, controls = _gather_questions(arguments), None
    if arguments.controls is not None and arguments.controls.is_dir():
        address = arguments.address and f"{arguments.address.rstrip('/')}/control"
        controls = labelled_images("control", arguments.controls, address)
    elif arguments.controls is not None:
        controls = read_only(arguments.controls, ("image", "label", "source")).frame
    tasks = collect.plan_grids(rows, controls, design)
    same = rows.group_by("label").len().filter(pl.col("len") <= design.images_asked)["len"].sum()
    facts = {
        "images": len(rows.select("dataset", "image").unique()),
        "answers": int((tasks["control"].is_null()).sum()) * design.workers,
        "same_neighbours": int(same),
    }
    collection = collect.Collection("contains", tasks, design.workers, asdict(design))
    return _write_forms(arguments, collection, facts)


def _classify(arguments: Namespace, settings: dict[str, Any]) -> int:
    from bayesrep import collect

    answers, seed = settings.get("answers", 9), arguments.seed or 0
    if answers < 1:
        raise OptionError("answers-option-below-one", answers=answers)
    tasks = collect.plan_classify(_gather_questions(arguments), seed=seed)
    collection = collect.Collection("classify", tasks, answers, {"answers": answers, "seed": seed})
    return _write_forms(arguments, collection, {"images": tasks["task"].n_unique()})


def _gather_questions(arguments: Namespace) -> Any:
    import polars as pl

    from bayesrep.collect.image_folders import find_pictures, labelled_images
    from bayesrep.sources.collection_tables import read_questions

    base = arguments.address and arguments.address.rstrip("/")
    parts = [
        labelled_images(name, folder, base and f"{base}/{name}")
        for name, folder in arguments.images or ()
    ]
    if arguments.table is None:
        return pl.concat(parts)
    table = read_questions(arguments.table)
    if not parts:
        return table
    pictures = pl.concat(parts)
    asked = find_pictures(table, pictures)
    if arguments.kind != "contains":
        return asked
    # Data sets that the table does not name are asked about as they lie in their folders.
    others = pictures.filter(~pl.col("dataset").is_in(asked["dataset"].unique().implode()))
    own = asked["own"] if "own" in asked.columns else pl.lit(value=True)
    return pl.concat([asked.with_columns(own=own), others], how="diagonal_relaxed")


def _write_forms(arguments: Namespace, collection: Any, facts: dict[str, Any]) -> int:
    import polars as pl

    from bayesrep.collect import wordnet, write_collection
    from bayesrep.report.collect_text import tasks_text

    tasks, words = collection.tasks, wordnet.descriptions()
    known = tasks["label"].cast(pl.String).is_in(words["label"].to_list()).any()
    files = write_collection(arguments.out, collection, words if known else None)
    number = tasks["task"].n_unique()
    facts = {"tasks": number, "assignments": number * collection.workers, **facts}
    where = {"files": files, "out": str(arguments.out)}
    is_local = bool(tasks["source"].str.starts_with("file:").any())
    text = tasks_text(collection.kind, facts, {**where, "is_local": is_local})
    return emit(arguments, text, facts | where)


def _review(arguments: Namespace, _: dict[str, Any]) -> int:
    from bayesrep.collect.prediction_review import judge_by_sets, review
    from bayesrep.protocols import read_humans, read_label_sets
    from bayesrep.report.table_format import rows_table
    from bayesrep.sources.collection_tables import read_judgements
    from bayesrep.studies.answers import read_predictions

    answers = read_predictions(arguments.table, ranks=1)
    judged, files_of_sets = read_judgements(arguments.judged or ())
    # Label sets are judgements, too.
    for data in answers if files_of_sets else ():
        sets = read_label_sets(files_of_sets, data)
        judged = judged.vstack(judge_by_sets(data, sets.image, sets.label))
    humans = read_humans(arguments.humans, *answers) if arguments.humans else None
    given = given_options(arguments, review)
    options: dict[str, Any] = {**given, "judged": judged, "humans": humans}
    tasks = review(answers, **options)
    write_table(tasks.tasks, arguments.out)
    facts = {"rows": tasks.statistics.to_dicts(), "tasks": len(tasks.tasks)}
    text = f"{rows_table(tasks.statistics)}\n\n{len(tasks.tasks):,} predictions to be judged"
    out = str(arguments.out)
    return emit(arguments, f"{text}\nWritten to {out}", {**facts, "out": out})
