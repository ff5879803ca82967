"""`bayesrep collect read`: answers back, the labels worth a closer look, and what images show."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bayesrep.commands.options import ROLE_NAMES, names, refuse_foreign
from bayesrep.commands.output import emit, new_folder, new_table_file, write_batches, write_table
from bayesrep.errors import OptionError

EXAMPLE = "tasks batch.csv --own --out answers.csv --counts counts.csv"

_OF_STUDY = ("predictions", "reference", "replication")
_ONLY_FOR = {
    **dict.fromkeys(("own", "rules", "counts", *_OF_STUDY), ("answers",)),
    "fates": ("labels", "objects"),
    "study": ("objects",),
}


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "source",
        type=Path,
        metavar="COLLECTION|TABLE",
        help="folder of the tasks; labels, objects: the answers that were read (labels: or "
        "their counts; objects: or annotations_classify_task.pkl)",
    )
    option(
        "files",
        type=Path,
        nargs="*",
        metavar="FILE",
        help="batch results, exports, files that the page saved (.csv, .json), or folders of these",
    )
    option(
        "--table",
        choices=("answers", "labels", "objects"),
        default="answers",
        help="answers; labels: those of each image worth a closer look; objects: what each image "
        "shows (default answers)",
    )
    # What is kept of the answers, and by which images and labels they go on.
    own = "keep only answers about images' own labels"
    option("--own", action="store_true", default=None, help=own)
    option(
        "--rules",
        type=names,
        metavar="NAME,NAME",
        help="rules of quality control, in this order: engstrom2020, tsipras2020, time=SECONDS, "
        "repeats, controls, equal=N",
    )
    option("--counts", type=Path, metavar="TABLE", help="also write how often labels were selected")
    option("--predictions", type=Path, metavar="TABLE", help="predictions on these images")
    for role in ROLE_NAMES:
        text = f"{role} of the study to write to --out, in place of a table of answers"
        option(f"--{role}", metavar="NAME", help=text)
    option(
        "--fates",
        type=Path,
        metavar="TABLE",
        help="labels: table to write what becomes of each image to; objects: this table, or "
        "image_info.pkl, so that clear images count",
    )
    option("--study", type=Path, help="objects: study whose reference the published .pkl are about")
    out = "table for the answers, labels or objects, CSV or Parquet; with --reference: a study"
    option("--out", type=Path, required=True, metavar="PATH", help=out)


def run(arguments: Namespace) -> int:
    refuse_foreign(arguments, _ONLY_FOR)
    table, fates = arguments.table, arguments.fates
    if (table == "answers") != bool(arguments.files):
        raise OptionError("answer-files-with-answers-alone")
    (new_folder if _makes_study(arguments) else new_table_file)(arguments.out, arguments)
    for path in filter(None, (arguments.counts, fates if table == "labels" else None)):
        new_table_file(path, arguments)
    return {"answers": _read_answers, "labels": _shortlist, "objects": _objects}[table](arguments)


def _makes_study(arguments: Namespace) -> bool:
    return any(getattr(arguments, name) for name in _OF_STUDY)


def _read_answers(arguments: Namespace) -> int:
    import polars as pl

    from bayesrep import collect
    from bayesrep.answers.quality import clean_answers
    from bayesrep.collect.responses import count_selections
    from bayesrep.commands.import_ import describe_imported
    from bayesrep.report.answers_text import cleaned_text
    from bayesrep.report.collect_text import read_text
    from bayesrep.sources.assignments import read_assignments
    from bayesrep.sources.importing import import_files
    from bayesrep.studies.worker_answers import code_workers

    out, counts, makes_study = arguments.out, arguments.counts, _makes_study(arguments)
    collection = collect.read_collection(arguments.source)
    done = code_workers(read_assignments(_files(arguments.files)))
    answers = collect.match_assignments(collection, done)
    progress = answers.progress()
    text = read_text(collection, answers, progress)
    facts: dict[str, Any] = {
        "rows": progress.to_dicts(),
        "not_counted": dict(answers.left_out),
        "out": str(out),
    }
    # With --own only questions about images' own labels are written, of which a study is, too.
    own_rows = pl.col("own") if arguments.own or makes_study else pl.lit(value=True)
    parts = (part.filter(own_rows) for part in answers.batches())
    # Quality rules look at all answers at once; without them answers are streamed.
    if arguments.rules:
        table, seed = answers.table().filter(own_rows), arguments.seed or 0
        cleaned = clean_answers(table, arguments.rules, seed=seed)
        text = f"{text}\n\n{cleaned_text(cleaned)}"
        facts |= {"dropped": cleaned.dropped.to_dicts(), "effect": cleaned.effect.to_dicts()}
        parts, of_labels = iter([cleaned.kept]), count_selections(cleaned.kept)
    else:
        of_labels = answers.counts().filter(own_rows)
    if makes_study:  # of which is told what answers about an image came from one task
        parts = (part.rename({"task": "context"}) for part in parts)
    lines = [f"Written to {out}"]
    with TemporaryDirectory() as folder:
        file = Path(folder, "answers.parquet") if makes_study else out
        write_batches(parts, file)
        if makes_study:
            tables = [file, *filter(None, [arguments.predictions])]
            roles = {role: getattr(arguments, role) for role in ROLE_NAMES}
            imported = import_files("tables", tables, out, force=True, keep_workers=True, **roles)
            lines, facts["fingerprint"] = describe_imported(imported, out)
    if counts is not None:
        write_table(of_labels, counts)
    return emit(arguments, "\n".join([text, *lines]), facts)


def _files(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        inside = sorted(each for each in path.glob("*") if each.suffix in (".csv", ".json"))
        if path.is_dir() and not inside:
            raise OptionError("folder-without-answer-files", path=path)
        files += inside if path.is_dir() else [path]
    return files


def _shortlist(arguments: Namespace) -> int:
    from bayesrep import collect
    from bayesrep.collect.responses import count_selections
    from bayesrep.report.collect_text import shortlist_text
    from bayesrep.sources.collection_tables import read_label_table

    table = read_label_table(arguments.source)
    chosen = collect.shortlist(table if "shown" in table.columns else count_selections(table))
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


def _objects(arguments: Namespace) -> int:
    from bayesrep import collect
    from bayesrep.collect.image_outcomes import with_clear
    from bayesrep.collect.object_consensus import keep_sane
    from bayesrep.report.collect_text import fates_text, objects_text

    answers, fates = _read_objects(arguments)
    # Assignments that fail the published sanity rules are left out, and counted for the text.
    sane, left_out = keep_sane(answers)
    table = collect.aggregate(sane)
    facts: dict[str, Any] = {"not_counted": left_out}
    outcome_text = ""
    if fates is not None:
        every = with_clear(table, fates)
        table, outcome_text = every.table, f"{fates_text(every)}\n"
        facts["images"] = {
            **every.fates,
            "classified": every.classified,
            "clear_taken": every.clear,
        }
    write_table(table, arguments.out)
    facts |= {"written": len(table), "out": str(arguments.out)}
    text = f"{objects_text(table, left_out)}\n{outcome_text}Written to {arguments.out}"
    return emit(arguments, text, facts)


def _read_objects(arguments: Namespace) -> tuple[Any, Any]:
    import polars as pl

    from bayesrep.collect.image_outcomes import label_fates
    from bayesrep.sources.classify_frame import DATASET_NAME, read_classify_frame, read_fates_frame
    from bayesrep.sources.collection_tables import read_fates, read_object_answers
    from bayesrep.studies.answers import read_predictions

    published, file = arguments.source.suffix.lower() == ".pkl", arguments.fates
    if arguments.study is not None and not published:
        raise OptionError("option-only-for-pickle", option="study")
    # The published frames name neither the data set nor its labels; a study does.
    predictions = None
    if arguments.study is not None:
        (predictions,) = read_predictions(arguments.study, ("reference",), ranks=1)
    dataset = DATASET_NAME if predictions is None else predictions.dataset
    if published:
        answers = read_classify_frame(arguments.source, dataset)
    else:
        answers = read_object_answers(arguments.source)
    if file is None:
        return answers, None
    if file.suffix.lower() != ".pkl":
        return answers, read_fates(file)
    if predictions is None:
        raise OptionError("fates-without-labels", file=file)
    fates = read_fates_frame(file).with_columns(dataset=pl.lit(dataset))
    return answers, label_fates(fates, predictions)
