"""`bayesrep collect`: ask people what images show, step by step, and read what they say."""

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bayesrep.commands.options import add_shared, given_options, names, seed
from bayesrep.commands.output import emit, new_study, new_table_file, write_batches, write_table
from bayesrep.errors import OptionError

STEPS: Mapping[str, str] = {
    "candidates": "labels to ask about: what classifiers take each image for, and its own",
    "contains": "grids of images: which of them show this?",
    "pilot": "simulated workers answer, to try everything before a cent is spent",
    "read": "answers back, of Label Studio, Mechanical Turk or the offline page",
    "labels": "the labels of each image that are worth a closer look",
    "classify": "one image at a time: which objects, and which is the main one?",
    "objects": "what each image shows, from what several people said of it",
    "review": "predictions that nobody has judged, as tasks; nobody judges their own",
}


def named_folder(text: str) -> tuple[str, Path]:
    """NAME=FOLDER."""
    name, separator, folder = text.partition("=")
    if not (separator and name and folder):
        raise ArgumentTypeError(f"{text!r} is not NAME=FOLDER, the data set's name and its images")
    return name, Path(folder)


def add(parser: ArgumentParser) -> None:
    steps = parser.add_subparsers(title="steps", metavar="STEP", dest="step", required=True)
    for name, text in STEPS.items():
        step = steps.add_parser(name, help=text, description=text)
        step.add_argument("--json", action="store_true", default=SUPPRESS, help="print one object")
        step.set_defaults(command=f"collect {name}")
        _ADD[name](step)
        add_shared(step, "--force")


def run(arguments: Namespace) -> int:
    return _RUN[arguments.step](arguments)


def _add_out(parser: ArgumentParser, what: str, text: str) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar=what, help=text)


def _add_candidates(parser: ArgumentParser) -> None:
    option = parser.add_argument
    add_shared(parser, "study")
    option(
        "--datasets", type=names, metavar="NAME,NAME", help="roles or names (reference,replication)"
    )
    option("--classifiers", type=names, metavar="NAME,NAME", help="whose answers count (all)")
    option("--top", type=int, help="how many of each classifier's answers count (5)")
    _add_out(parser, "TABLE", "CSV or Parquet")


def _candidates(arguments: Namespace) -> int:
    from bayesrep import collect
    from bayesrep.report.collecting import candidates_text
    from bayesrep.studies.answers import read_predictions

    new_table_file(arguments.out, force=arguments.force)
    answers = read_predictions(arguments.study, **given_options(arguments, read_predictions))
    table = collect.candidate_labels(answers, **given_options(arguments, collect.candidate_labels))
    write_table(table, arguments.out)
    sizes = table.group_by("dataset", "image").len().group_by("len").len("images").sort("len")
    facts = {"labels": dict(sizes.iter_rows()), "written": len(table), "out": str(arguments.out)}
    return emit(arguments, f"{candidates_text(sizes)}\nWritten to {arguments.out}", facts)


def _add_pictures(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "--images",
        type=named_folder,
        nargs="+",
        default=[],
        metavar="NAME=FOLDER",
        help="data sets and their images, a folder for each class",
    )
    option("--address", metavar="URL", help="where people find the images: before NAME/class/file")
    option(
        "--labels",
        type=Path,
        metavar="FILE",
        help="what to say of labels: a table with label, name, description, link (WordNet's words "
        "for classes of ImageNet)",
    )


def _add_contains(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "table",
        type=Path,
        nargs="?",
        help="what to ask: dataset, image, label, and perhaps own, source (each image's own label)",
    )
    _add_pictures(parser)
    option(
        "--controls",
        type=Path,
        metavar="PATH",
        help="images of which the label is known: a folder for each class, or a table with image, "
        "label, source",
    )
    option("--answers", type=int, help="of every image and label (10)")
    option("--grids", type=int, help="in how many different grids every image is (5)")
    option("--size", type=int, help="images of a grid, controls among them (48)")
    option("--positive", type=int, help="controls of a grid that show its label (5)")
    option("--negative", type=int, help="controls of a grid that show another (3)")
    option("--seed", type=seed, help="of the shuffles (0)")
    _add_out(parser, "FOLDER", "of the collection")


def _contains(arguments: Namespace) -> int:
    import polars as pl

    from bayesrep import collect
    from bayesrep.collect.pictures import labelled_images
    from bayesrep.report.collecting import tasks_text
    from bayesrep.sources.table_files import read_table

    new_study(arguments.out, force=arguments.force)
    design = collect.GridDesign(**given_options(arguments, collect.GridDesign))
    asked, controls = _read_questions(arguments), None
    if arguments.controls is not None and arguments.controls.is_dir():
        address = arguments.address and f"{arguments.address.rstrip('/')}/control"
        controls = labelled_images("control", arguments.controls, address)
    elif arguments.controls is not None:
        controls = read_table(arguments.controls, ("image", "label", "source"))
    tasks = collect.plan_grids(asked, controls, design)
    collection = collect.Collection("contains", tasks, design.workers, asdict(design))
    files = collect.write_collection(
        arguments.out, collection, _read_descriptions(arguments, asked)
    )
    facts = {
        "tasks": tasks["task"].n_unique(),
        "assignments": tasks["task"].n_unique() * design.workers,
        "images": len(asked.select("dataset", "image").unique()),
        "answers": int((tasks["control"].is_null()).sum()) * design.workers,
        "same_neighbours": int(
            asked.group_by("label").len().filter(pl.col("len") <= design.images_asked)["len"].sum()
        ),
    }
    where = {"files": files, "out": str(arguments.out)}
    return emit(arguments, tasks_text("contains", facts, where), facts | where)


def _read_questions(arguments: Namespace) -> Any:
    """The images and labels of the table, with the folders' pictures, or all of the folders."""
    import polars as pl

    from bayesrep.collect.pictures import find_pictures, labelled_images
    from bayesrep.sources.collected import read_questions

    base = arguments.address and arguments.address.rstrip("/")
    parts = [
        labelled_images(name, folder, base and f"{base}/{name}")
        for name, folder in arguments.images
    ]
    if arguments.table is None:
        if not parts:
            raise OptionError("nothing-to-ask-about")
        return pl.concat(parts)
    table = read_questions(arguments.table)
    return find_pictures(table, pl.concat(parts)) if parts else table


def _read_descriptions(arguments: Namespace, asked: Any) -> Any:
    """What is said of labels: the user's table, or WordNet's words."""
    import polars as pl

    from bayesrep.collect import wordnet
    from bayesrep.sources.table_files import read_table

    if arguments.labels is not None:
        return read_table(arguments.labels, ("label", "name", "description", "link", "wnid"))
    known = wordnet.descriptions()
    return known if asked["label"].cast(pl.String).is_in(known["label"].to_list()).any() else None


def _add_pilot(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("collection", type=Path, metavar="COLLECTION", help="folder of the tasks")
    option("--people", type=int, dest="number", metavar="N", help="how many there are (30)")
    option("--own", type=float, help="mean selection frequency of an image's own label (0.85)")
    option("--other", type=float, help="mean selection frequency of another label (0.1)")
    option("--varied", type=float, help="beta: how alike images are; small is varied (4.0)")
    option("--spread", type=float, help="sd of people's leniencies, on the logit scale (0.5)")
    option("--spam", type=float, help="share of people who do not look (0.0)")
    option("--seconds", type=float, help="median time of a task (60.0)")
    option("--seed", type=seed, help="of everything (0)")
    _add_out(parser, "FOLDER", "of the answers, a file a person, as the offline page saves them")


def _pilot(arguments: Namespace) -> int:
    from bayesrep import collect
    from bayesrep.collect import pilot

    new_study(arguments.out, force=arguments.force)
    people = pilot.Respondents(**given_options(arguments, pilot.Respondents))
    answers = pilot.answer(collect.read_collection(arguments.collection), people)
    pilot.write_pilot(arguments.out, answers)
    done = sum(len(each["answers"]) for each in answers)
    facts = {"people": len(answers), "assignments": done, "out": str(arguments.out)}
    text = (
        f"{len(answers):,} simulated workers completed {done:,} tasks; written to {arguments.out}"
    )
    return emit(arguments, text, facts)


def _add_read(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("collection", type=Path, metavar="COLLECTION", help="folder of the tasks")
    option(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="batch results, exports, or what the page saved (.csv, .json), or folders of these",
    )
    option("--own", action="store_true", help="keep answers about images' own labels alone")
    option(
        "--rules",
        type=names,
        metavar="NAME,NAME",
        help="of quality control: engstrom2020, tsipras2020, time, repeats, controls, equal",
    )
    option("--least", type=float, default=0.0, metavar="SECONDS", help="of a task (rule time)")
    option("--pay", type=float, help="of a task, where the file does not say")
    option("--counts", type=Path, metavar="TABLE", help="how often each label was selected, too")
    option("--keep-workers", action="store_true", help="keep workers' names, instead of codes")
    _add_out(parser, "TABLE", "of the answers, CSV or Parquet")


def _read(arguments: Namespace) -> int:
    import polars as pl

    from bayesrep import collect
    from bayesrep.answers.quality import RuleInputs, clean_answers
    from bayesrep.collect.reading import count_selections
    from bayesrep.report.answers_text import cleaned_text
    from bayesrep.report.collecting import read_text
    from bayesrep.sources.assignments import read_assignments
    from bayesrep.studies.worker_answers import code_workers

    out, counts = arguments.out, arguments.counts
    for path in (out, *([] if counts is None else [counts])):
        new_table_file(path, force=arguments.force)
    collection = collect.read_collection(arguments.collection)
    done = read_assignments(_files(arguments.files))
    if arguments.pay is not None:
        done = done.with_columns(pl.col("pay").fill_null(arguments.pay))
    if not arguments.keep_workers:
        done = code_workers(done)
    answers = collect.match_assignments(collection, done)
    progress = answers.progress()
    text = read_text(collection, answers, progress)
    facts: dict[str, Any] = {
        "rows": progress.to_dicts(),
        "not_counted": dict(answers.left_out),
        "out": str(out),
    }
    # With --own only questions about images' own labels are written.
    kept = pl.col("own") if arguments.own else pl.lit(value=True)
    # Quality rules look at all answers at once; without them answers are streamed.
    if arguments.rules:
        rules = RuleInputs(arguments.least, None, 0)
        cleaned = clean_answers(answers.table().filter(kept), arguments.rules, rules)
        text = f"{text}\n\n{cleaned_text(cleaned)}"
        facts |= {"dropped": cleaned.dropped.to_dicts(), "effect": cleaned.effect.to_dicts()}
        write_table(cleaned.kept, out)
        of_labels = count_selections(cleaned.kept)
    else:
        write_batches((part.filter(kept) for part in answers.batches()), out)
        of_labels = answers.counts().filter(kept)
    if counts is not None:
        write_table(of_labels, counts)
    return emit(arguments, f"{text}\nWritten to {out}", facts)


def _files(paths: Sequence[Path]) -> list[Path]:
    """Files, those of folders among them."""
    files: list[Path] = []
    for path in paths:
        inside = sorted(each for each in path.glob("*") if each.suffix in (".csv", ".json"))
        if path.is_dir() and not inside:
            raise OptionError("folder-without-answer-files", path=path)
        files += inside if path.is_dir() else [path]
    return files


def _add_labels(parser: ArgumentParser) -> None:
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
    _add_out(parser, "TABLE", "labels of the images that go on to classify, CSV or Parquet")


def _labels(arguments: Namespace) -> int:
    from bayesrep import collect
    from bayesrep.collect.reading import count_selections
    from bayesrep.report.collecting import shortlist_text
    from bayesrep.sources.collected import read_label_table, read_wnids

    for path in (arguments.out, arguments.fates):
        if path is not None:
            new_table_file(path, force=arguments.force)
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


def _add_classify(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("table", type=Path, help="dataset, image, label, own, as `collect labels` writes them")
    _add_pictures(parser)
    option("--answers", type=int, default=9, help="of every image (9)")
    option("--seed", type=seed, help="of the order (0)")
    _add_out(parser, "FOLDER", "of the collection")


def _classify(arguments: Namespace) -> int:
    from bayesrep import collect
    from bayesrep.report.collecting import tasks_text

    new_study(arguments.out, force=arguments.force)
    if arguments.answers < 1:
        raise OptionError("answers-option-below-one", answers=arguments.answers)
    asked = _read_questions(arguments)
    options = given_options(arguments, collect.plan_classify)
    tasks = collect.plan_classify(asked, **options)
    made = {"answers": arguments.answers, **options}
    collection = collect.Collection("classify", tasks, arguments.answers, made)
    files = collect.write_collection(
        arguments.out, collection, _read_descriptions(arguments, asked)
    )
    number = tasks["task"].n_unique()
    facts = {"tasks": number, "assignments": number * arguments.answers, "images": number}
    where = {"files": files, "out": str(arguments.out)}
    return emit(arguments, tasks_text("classify", facts, where), facts | where)


def _add_objects(parser: ArgumentParser) -> None:
    parser.add_argument(
        "table",
        type=Path,
        help="answers, as `collect read` writes them, or annotations_classify_task.pkl",
    )
    option = parser.add_argument
    option(
        "--sets", type=Path, metavar="TABLE", help="each object's label, as multilabel takes them"
    )
    option(
        "--fates",
        type=Path,
        metavar="FILE",
        help="of `collect labels --fates`, or image_info.pkl: clear images count too",
    )
    option(
        "--study",
        type=Path,
        help="whose reference the published .pkl are about: its name and its images' labels",
    )
    option("--dataset", metavar="NAME", help="of the images of the published .pkl (imagenet)")
    _add_out(parser, "TABLE", "a row an image and label, CSV or Parquet")


def _objects(arguments: Namespace) -> int:
    from bayesrep import collect
    from bayesrep.collect.fates import with_clear
    from bayesrep.collect.objects import keep_sane
    from bayesrep.report.collecting import fates_text, objects_text

    for path in (arguments.out, arguments.sets):
        if path is not None:
            new_table_file(path, force=arguments.force)
    answers, fates = _read_objects(arguments)
    kept, left_out = keep_sane(answers)
    table = collect.aggregate(kept)
    facts: dict[str, Any] = {"not_counted": left_out}
    told = ""
    if fates is not None:
        every = with_clear(table, fates)
        table, told = every.table, f"{fates_text(every)}\n"
        facts["images"] = {**every.fates, "classified": every.asked, "clear_taken": every.clear}
    write_table(table, arguments.out)
    if arguments.sets is not None:
        write_table(table.filter("names").select("dataset", "image", "label"), arguments.sets)
    facts |= {"written": len(table), "out": str(arguments.out)}
    text = f"{objects_text(table, left_out)}\n{told}Written to {arguments.out}"
    return emit(arguments, text, facts)


def _read_objects(arguments: Namespace) -> tuple[Any, Any]:
    """What annotators chose, and what became of every image, where that is given."""
    import polars as pl

    from bayesrep.collect.fates import label_fates
    from bayesrep.sources.classify_frame import DATASET, read_classify_frame, read_fates_frame
    from bayesrep.sources.collected import read_fates, read_object_answers
    from bayesrep.studies.answers import read_predictions

    published, file = arguments.table.suffix.lower() == ".pkl", arguments.fates
    for name in ("dataset", "study"):
        if getattr(arguments, name) is not None and not published:
            raise OptionError("option-only-for-pickle", option=name)
    # The published frames name neither the data set nor its labels; a study does.
    predictions = None
    if arguments.study is not None:
        wanted = (arguments.dataset or "reference",)
        (predictions,) = read_predictions(arguments.study, wanted, ranks=1)
    known = DATASET if predictions is None else predictions.dataset
    dataset = arguments.dataset or known
    answers = (
        read_classify_frame(arguments.table, dataset)
        if published
        else read_object_answers(arguments.table)
    )
    if file is None:
        return answers, None
    if file.suffix.lower() != ".pkl":
        return answers, read_fates(file)
    if predictions is None:
        raise OptionError("fates-without-labels", file=file)
    fates = read_fates_frame(file).with_columns(dataset=pl.lit(dataset))
    return answers, label_fates(fates, predictions)


def _add_review(parser: ArgumentParser) -> None:
    option = parser.add_argument
    add_shared(parser, "study")
    option(
        "--datasets", type=names, metavar="NAME,NAME", help="roles or names (reference,replication)"
    )
    option(
        "--judged",
        type=Path,
        nargs="+",
        default=[],
        metavar="TABLE",
        help="what is judged already: dataset, image, label, right, as this step writes it",
    )
    option(
        "--labels",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="label sets: the labels that are right, as multilabel takes them",
    )
    option("--humans", type=Path, metavar="FILE", help="people's answers, to be judged too")
    option("--reviewers", type=names, metavar="NAME,NAME", help="people who share the tasks")
    option("--seed", type=seed, help="of who judges what (0)")
    option("--sets", type=Path, metavar="TABLE", help="write the right labels, as label sets")
    _add_out(parser, "TABLE", "of the tasks, CSV or Parquet; fill in the column right")


def _review(arguments: Namespace) -> int:
    from bayesrep.collect.review import judge_by_sets, review, right_labels
    from bayesrep.protocols import read_humans, read_label_sets
    from bayesrep.report.text import rows_table
    from bayesrep.sources.collected import read_judgements
    from bayesrep.studies.answers import read_predictions

    for path in (arguments.out, arguments.sets):
        if path is not None:
            new_table_file(path, force=arguments.force)
    if arguments.sets is not None and not (arguments.judged or arguments.labels):
        raise OptionError("sets-without-judgements")
    answers = read_predictions(
        arguments.study, ranks=1, **given_options(arguments, read_predictions)
    )
    known = read_judgements(arguments.judged)
    # Label sets are judgements, too.
    for data in answers if arguments.labels else ():
        sets = read_label_sets(arguments.labels, data)
        known = known.vstack(judge_by_sets(data, sets.image, sets.label))
    humans = read_humans(arguments.humans, *answers) if arguments.humans else None
    options: dict[str, Any] = {
        **given_options(arguments, review),
        "judged": known,
        "humans": humans,
    }
    tasks = review(answers, **options)
    write_table(tasks.tasks, arguments.out)
    if arguments.sets is not None:
        write_table(right_labels(known), arguments.sets)
    facts = {"rows": tasks.statistics.to_dicts(), "tasks": len(tasks.tasks)}
    text = f"{rows_table(tasks.statistics)}\n\n{len(tasks.tasks):,} predictions to be judged"
    return emit(
        arguments, f"{text}\nWritten to {arguments.out}", facts | {"out": str(arguments.out)}
    )


_ADD: Mapping[str, Callable[[ArgumentParser], None]] = {
    "candidates": _add_candidates,
    "contains": _add_contains,
    "pilot": _add_pilot,
    "read": _add_read,
    "labels": _add_labels,
    "classify": _add_classify,
    "objects": _add_objects,
    "review": _add_review,
}
_RUN: Mapping[str, Callable[[Namespace], int]] = {
    "candidates": _candidates,
    "contains": _contains,
    "pilot": _pilot,
    "read": _read,
    "labels": _labels,
    "classify": _classify,
    "objects": _objects,
    "review": _review,
}
