"""Read a study from its folder (see `layout`), and list every broken rule on the way."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from bayesrep.errors import StudyError, Violation, listing, quote_word
from bayesrep.studies import layout, validation
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.manifest import Manifest, read_manifest
from bayesrep.studies.parquet_tables import (
    KEYS,
    read_annotations,
    read_counts,
    read_failures,
    read_keyed,
    texts_in_order,
)
from bayesrep.studies.prediction_files import (
    Dataset,
    complete_classifiers,
    listed_or_found,
    read_correctness,
)
from bayesrep.studies.selection import Selection
from bayesrep.studies.study import Study
from bayesrep.studies.study_folder import StudyFolder
from bayesrep.studies.violations import Problems
from bayesrep.studies.worker_answers import WorkerAnswers
from bayesrep.types import Ints


def read_study(path: str | Path) -> Study:
    """Read a study from its folder.

    Parameters
    ----------
    path
        The folder.

    Raises
    ------
    StudyError
        With the first broken rule, and how many more there are.

    Examples
    --------
    >>> study = bayesrep.simulate_study(seed=1, images=500, annotators=8, classifiers=3)
    >>> study.write("my-study")
    >>> bayesrep.read_study("my-study").classifiers == study.classifiers
    True
    """
    problems = Problems()
    study = inspect(Path(path), problems)
    if study is None or problems:
        others = len(problems) - 1
        again = f"bayesrep check {quote_word(str(path))}"
        more = f" ({others} more: `{again}` lists them)" if others else ""
        raise StudyError(problems.describe_first(path).append_text(more))
    return study


def check_study(path: str | Path) -> list[Violation]:
    """Every broken rule of the study at `path`, one line each; empty where it is sound.

    Parameters
    ----------
    path
        The folder.
    """
    problems = Problems()
    inspect(Path(path), problems)
    return problems


def inspect(path: Path, problems: Problems) -> Study | None:
    """Add every broken rule of the study at `path`; return the study if there is none."""
    manifest = read_manifest(path, problems)
    if manifest is None:
        return None
    annotations = read_annotations(path, problems)
    counts = read_counts(path, annotations, problems)
    images = read_keyed(path / layout.IMAGES_FILE, KEYS, problems)
    failures = read_failures(path, problems)
    classifiers = listed_or_found(path, manifest, problems)
    complete = complete_classifiers(path, manifest)
    if counts is None or failures is None:
        return None
    problems.take(_strangers(path, manifest, counts, images, annotations))
    try:
        _ = StudyFolder(path).attempts  # which a study itself does without
    except StudyError as error:
        problems.append(error.violation.reword(str(error).removeprefix(f"{path}{os.sep}")))
    datasets: dict[str, AnnotatedSet] = {}
    for role, name in manifest.roles.items():
        of_set = pl.col("dataset") == name
        tables = (
            counts.filter(of_set),
            None if images is None else images.filter(of_set),
            failures.filter(of_set),
            None if annotations is None else annotations.filter(of_set),
        )
        rule = manifest.selections.get(name)
        data = _dataset(path, role, name, *tables, classifiers, complete, rule, problems)
        if data is not None:
            datasets[role] = data
    if len(datasets) < len(manifest.roles):
        return None
    facts = manifest.name, manifest.provenance, manifest.truth
    return problems.attempt(lambda: Study(datasets, tuple(classifiers), *facts))


def _strangers(
    path: Path,
    manifest: Manifest,
    counts: pl.DataFrame,
    images: pl.DataFrame | None,
    annotations: pl.DataFrame | None,
) -> Iterator[Violation]:
    """Find data sets that no role names: their data would be ignored without a word."""
    files = (layout.COUNTS_FILE, layout.IMAGES_FILE, layout.ANNOTATIONS_FILE)
    holders = {
        file: table["dataset"].unique(maintain_order=True).to_list()
        for file, table in zip(files, (counts, images, annotations), strict=True)
        if table is not None
    }
    holders[layout.PREDICTIONS_FOLDER] = StudyFolder(path).predicted_datasets
    for where, names in holders.items():
        if strangers := [name for name in names if name not in manifest.roles.values()]:
            told = listing(strangers, "data set")
            facts = {"data_sets": told, "manifest_file": layout.MANIFEST_FILE}
            yield Violation("data-set-without-role", where=where, **facts)


def _dataset(
    path: Path,
    role: str,
    name: str,
    counts: pl.DataFrame,
    images: pl.DataFrame | None,
    failures: pl.DataFrame,
    annotations: pl.DataFrame | None,
    classifiers: Sequence[str],
    complete: Sequence[str],
    selection: Selection | None,
    problems: Problems,
) -> AnnotatedSet | None:
    where = f"{layout.COUNTS_FILE}, data set {name!r}"
    left_out = failures.filter("left_out").select("image", "reason")
    rows = counts.join(left_out, on="image", how="anti", maintain_order="left")
    names = rows["image"].to_numpy().astype(np.str_)
    selected, total = rows["selected"].to_numpy(), rows["shown"].to_numpy()
    # Without sound names nothing can be joined; wrong counts leave the rest to be read, so that all
    # that is wrong with it is said at once.
    sound = problems.take(validation.image_violations(where, names))
    counted = problems.take(validation.count_violations(where, names, selected, total))
    if not sound:
        return None
    texts = None
    if images is not None:
        described = images.join(left_out, on="image", how="anti", maintain_order="left")
        texts = texts_in_order(name, described, rows["image"], problems)
    labels = None if texts is None else texts.pop("label", None)
    dataset = Dataset(path, role, name, rows["image"], labels, failures)
    correct = read_correctness(dataset, classifiers, complete, problems)
    if not counted or texts is None or correct is None:
        return None
    # Answers are compared with sound counts only; the study's own checks come last.
    answers = None
    if annotations is not None and len(annotations):
        answered = annotations.join(left_out, on="image", how="anti", maintain_order="left")
        answers = _answers(name, answered, rows["image"], selected, total, problems)
        if answers is None:
            return None
    missing = dict(left_out.iter_rows())
    parts = name, names, selected, total, correct, labels, texts, missing, answers, selection
    return problems.attempt(lambda: AnnotatedSet(*parts))


def _answers(
    name: str,
    rows: pl.DataFrame,
    images: pl.Series,
    selected: Ints,
    total: Ints,
    problems: Problems,
) -> WorkerAnswers | None:
    """Read the answers by worker to one data set's images, which must sum to its counts."""
    where = f"{layout.ANNOTATIONS_FILE}, data set {name!r}"
    places = pl.DataFrame({"image": images, "row": np.arange(len(images))})
    placed = rows.join(places, on="image", how="left", maintain_order="left")
    if len(strange := placed.filter(pl.col("row").is_null())["image"].unique(maintain_order=True)):
        facts = {"images": listing(strange.to_list()), "counts_file": layout.COUNTS_FILE}
        problems.add("images-without-counts", where=where, **facts)
        return None
    workers = rows["worker"].unique().sort()
    code = rows["worker"].cast(pl.Enum(workers)).to_physical()
    order = rows["position"] if "position" in rows.columns else None
    if order is not None and order.null_count() == len(order):
        order = None  # known for the other data set alone
    context = None
    if "context" in rows.columns and not rows["context"].null_count():
        names = rows["context"].unique().sort()
        context = rows["context"].cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int32)
    answers = WorkerAnswers(
        workers.to_numpy().astype(np.str_),
        placed["row"].to_numpy(),
        code.to_numpy(),
        rows["selected"].to_numpy(),
        None if order is None else order.to_numpy(),
        context,
    )
    broken = answers.violations(where, images.to_list(), selected, total)
    return answers if problems.take(broken) else None
