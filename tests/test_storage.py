"""A study on disk: written whole or not at all, read back the same, every broken rule named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import check, refused

from bayesrep import Study, StudyError, atomic, read_study
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.manifest import Truth
from bayesrep.studies.reading import check_study

IMAGES = 8


def arrays(seed: int, classifiers: int = 2, **changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shown = rng.integers(3, 9, size=IMAGES)
    return {
        "selected": rng.binomial(shown, 0.8),
        "shown": shown,
        "correct": rng.random((IMAGES, classifiers)) < 0.7,
        "images": [f"val_{number}.jpg" for number in rng.permutation(IMAGES)],
        "labels": ["cat", "dog"] * (IMAGES // 2),
        **changes,
    }


def make_study(classifiers: tuple[str, ...] = ("resnet18", "vit"), **reference: Any) -> Study:
    columns = len(classifiers)
    return Study.from_arrays(
        reference=arrays(0, columns, name="v1", **reference),
        replication=arrays(1, columns, name="v2"),
        classifiers=classifiers,
        name="tiny",
        provenance={"source": "tests", "seeds": [0, 1]},
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "study"
    make_study(groups={"kind": ["pet"] * IMAGES}).write(path)
    return path


def change(file: Path, expression: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    expression(pl.read_parquet(file)).write_parquet(file)


def rewrite(folder: Path, **changes: Any) -> None:
    content = json.loads((folder / "study.json").read_text()) | changes
    kept = {name: value for name, value in content.items() if value is not ...}
    (folder / "study.json").write_text(json.dumps(kept))


# --- round trips ------------------------------------------------------------------------------


def test_a_study_comes_back_the_same(folder: Path):
    written, read = make_study(groups={"kind": ["pet"] * IMAGES}), read_study(folder)
    assert read.fingerprint() == written.fingerprint()
    assert (read.name, read.provenance) == ("tiny", {"source": "tests", "seeds": [0, 1]})
    assert read.reference.images.tolist() == written.reference.images.tolist()
    assert read.replication.groups == {}
    assert check_study(folder) == []


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(st.lists(names, min_size=1, max_size=4, unique=True), names)
@settings(max_examples=60)
def test_any_name_can_be_a_file(
    tmp_path_factory: pytest.TempPathFactory, classifiers: list[str], name: str
):
    path = tmp_path_factory.mktemp("names") / "study"
    columns = len(classifiers)
    written = Study.from_arrays(
        reference=arrays(0, columns, name=name + "-1"),
        replication=arrays(1, columns, name=name),
        classifiers=classifiers,
    )
    written.write(path)
    assert read_study(path).fingerprint() == written.fingerprint()


@pytest.mark.parametrize("name", ["..", ".", ".hidden", "a/../../b", "C:\\x", "%2E", "a*b[1]?"])
def test_awkward_names_stay_inside_the_folder(tmp_path: Path, name: str):
    make_study((name, "vit")).write(tmp_path / "study")
    assert read_study(tmp_path / "study").classifiers == (name, "vit")
    assert [entry.name for entry in tmp_path.iterdir()] == ["study"]


def test_truth_and_candidates_come_back(tmp_path: Path):
    plain = make_study()
    truth = Truth(np.array([0.7, 0.1 + 0.2]), np.zeros(2), np.ones(2), {"reference": 0.85})
    pool = AnnotatedSet(
        name="flickr",
        images=np.array(["x"]),
        selected=np.array([1]),
        shown=np.array([2]),
        correct=np.zeros((1, 0), dtype=bool),
    )
    written = Study({**plain.datasets, "candidates": pool}, plain.classifiers, truth=truth)
    written.write(tmp_path / "study")
    read = read_study(tmp_path / "study")
    assert read.fingerprint() == written.fingerprint()
    assert read.truth is not None
    np.testing.assert_array_equal(read.truth.adjusted_accuracy, truth.adjusted_accuracy)
    assert read.truth.mean_selection_frequency == {"reference": 0.85}


def test_rows_are_joined_by_name_in_the_order_of_the_counts(folder: Path):
    before = read_study(folder)
    change(folder / "predictions/v1/vit.parquet", lambda table: table.reverse())
    change(folder / "images.parquet", lambda table: table.sample(fraction=1, shuffle=True, seed=3))
    assert read_study(folder).fingerprint() == before.fingerprint()
    change(folder / "counts.parquet", lambda table: table.reverse())
    after = read_study(folder)
    assert after.reference.images.tolist() == before.reference.images.tolist()[::-1]
    np.testing.assert_array_equal(after.reference.correct, before.reference.correct[::-1])


def test_tables_written_by_hand_are_read(folder: Path):
    before = read_study(folder)
    rewrite(folder, format=..., classifiers=..., provenance=..., truth=..., name=...)
    numbers = pl.col("selected", "shown").cast(pl.Float32)
    change(folder / "counts.parquet", lambda table: table.with_columns(numbers))
    whole = pl.col("correct").cast(pl.Int8)
    extra = pl.lit(0.5).alias("probability")
    file = folder / "predictions/v1/vit.parquet"
    change(file, lambda table: table.with_columns(whole, extra))
    read = read_study(folder)
    assert read.fingerprint() == before.fingerprint()
    assert read.name == "study"


def as_annotations(counts: pl.DataFrame) -> pl.DataFrame:
    """One row per annotator: the first ``selected`` of ``shown`` workers select."""
    worker = pl.int_ranges("shown").alias("worker")
    rows = counts.with_columns(worker).explode("worker")
    answer = (pl.col("worker") < pl.col("selected")).alias("selected")
    return rows.select("dataset", "image", "worker", answer)


def test_counts_are_made_from_annotations_where_only_these_are_there(folder: Path):
    before = read_study(folder)
    annotations = as_annotations(pl.read_parquet(folder / "counts.parquet"))
    annotations.write_parquet(folder / "annotations.parquet")
    (folder / "counts.parquet").unlink()
    assert read_study(folder).fingerprint() == before.fingerprint()
    file = folder / "annotations.parquet"
    twice = pl.concat([annotations, annotations[:1]])
    twice.write_parquet(file)
    (line,) = check_study(folder)
    check(line, "worker-answered-twice", {"images": annotations["image"][:1].to_list()})
    annotations.with_columns(pl.lit(2).alias("selected")).write_parquet(file)
    (line,) = check_study(folder)
    where = "annotations.parquet (each row is shown = 1)"
    check(line, "selected-exceeds-shown")
    assert line.facts["where"].startswith(where)


def test_all_images_in_one_cell_and_one_classifier(tmp_path: Path):
    one = {"selected": 3, "shown": 4, "correct": np.ones((5, 1))}
    written = Study.from_arrays(reference=one, replication=one, classifiers=["only"])
    written.write(tmp_path / "study")
    assert read_study(tmp_path / "study").fingerprint() == written.fingerprint()


# --- writing ----------------------------------------------------------------------------------


def test_an_existing_path_is_refused_and_force_replaces_it(folder: Path):
    other = make_study(("other", "classifiers"))
    with refused(StudyError, "study-path-exists"):
        other.write(folder)
    assert read_study(folder).classifiers == ("resnet18", "vit")
    other.write(folder, force=True)
    assert read_study(folder).fingerprint() == other.fingerprint()
    assert [entry.name for entry in folder.parent.iterdir()] == ["study"]


def test_force_does_not_remove_what_is_no_study(tmp_path: Path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("years of work")
    (tmp_path / "file").write_text("text")
    for name in ("thesis", "file"):
        with refused(StudyError, "existing-path-not-study"):
            make_study().write(tmp_path / name, force=True)
    assert (tmp_path / "thesis" / "chapter1.tex").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    make_study().write(tmp_path / "empty", force=True)
    assert check_study(tmp_path / "empty") == []


def test_parents_are_made(tmp_path: Path):
    make_study().write(tmp_path / "a" / "b")
    assert check_study(tmp_path / "a" / "b") == []


def test_an_unwritable_path_is_one_line(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with refused(StudyError, "place-not-writable"):
        make_study().write(tmp_path / "file" / "study")
    with refused(StudyError, "name-too-long-for-file", {"names": ["x" * 300]}):
        make_study(("x" * 300, "y")).write(tmp_path / "long")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("existing", [False, True])
def test_an_interruption_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: bool
):
    path = tmp_path / "study"
    if existing:
        make_study().write(path)
    calls: list[Any] = []
    write_parquet = pl.DataFrame.write_parquet

    def interrupted(table: pl.DataFrame, file: Path, **metadata: Any) -> None:
        calls.append(file)
        if len(calls) == 4:
            raise KeyboardInterrupt
        write_parquet(table, file, **metadata)

    monkeypatch.setattr(pl.DataFrame, "write_parquet", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make_study(("other", "classifiers")).write(path, force=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["study"] * existing
    if existing:
        assert read_study(path).classifiers == ("resnet18", "vit")


def test_a_failed_swap_puts_the_old_study_back(folder: Path, monkeypatch: pytest.MonkeyPatch):
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if self.name.endswith(".partial"):
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(atomic, "_swap", lambda one, other: False)
    monkeypatch.setattr(Path, "rename", failing)
    with refused(StudyError, "place-not-writable", {"reason": "No space left on device"}):
        make_study(("other", "classifiers")).write(folder, force=True)
    monkeypatch.undo()
    assert read_study(folder).classifiers == ("resnet18", "vit")
    assert [entry.name for entry in folder.parent.iterdir()] == ["study"]


# --- broken studies ---------------------------------------------------------------------------


def set_count(column: str, value: Any) -> Callable[[Path], None]:
    """Set a count of the first two images of v1."""

    def breaking(folder: Path) -> None:
        expression = pl.when(pl.int_range(pl.len()) < 2).then(pl.lit(value)).otherwise(column)
        change(
            folder / "counts.parquet", lambda table: table.with_columns(expression.alias(column))
        )

    return breaking


def edit(file: str, expression: Callable[[pl.DataFrame], pl.DataFrame]) -> Callable[[Path], None]:
    return lambda folder: change(folder / file, expression)


def damage(file: str, size: int) -> Callable[[Path], None]:
    def breaking(folder: Path) -> None:
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content[:size])

    return breaking


def remove(file: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).unlink()


VIT = "predictions/v1/vit.parquet"
NEW_IMAGE = pl.DataFrame({"image": ["new.jpg"], "correct": [True]})

V1 = "counts.parquet, data set 'v1'"
IN_V1 = make_study().reference.images.tolist()

VIT_FACTS = {"where": VIT, "column": "classifier 'vit'", "images": IN_V1}
UNCOUNTED = {"where": VIT, "counts_file": "counts.parquet"}
MANIFEST, UNREADABLE = {"where": "study.json"}, "parquet-file-unreadable"


def predicted(**columns: Any) -> Callable[[Path], None]:
    """Predictions with columns replaced."""
    return edit(VIT, lambda table: table.with_columns(**columns))


def row_of(dataset: str) -> Callable[[Path], None]:
    """One row more of the counts, of another data set."""
    return edit(
        "counts.parquet",
        lambda table: pl.concat([table, table[:1].with_columns(dataset=pl.lit(dataset))]),
    )


def manifest(**entries: Any) -> Callable[[Path], None]:
    return lambda folder: rewrite(folder, **entries)


BROKEN: list[tuple[str, Callable[[Path], None], dict[str, Any]]] = [
    ("selected-exceeds-shown", set_count("selected", 99), {"where": V1, "images": IN_V1[:2]}),
    ("count-missing", set_count("shown", None), {"column": "shown", "images": IN_V1[:2]}),
    ("counts-not-numbers", set_count("shown", "four"), {"column": "shown"}),
    (
        "counted-images-missing",
        edit(VIT, lambda table: table[:-1]),
        UNCOUNTED | {"images": IN_V1[-1:]},
    ),
    (
        "images-without-counts",
        edit(VIT, lambda table: pl.concat([table, NEW_IMAGE])),
        UNCOUNTED | {"images": ["new.jpg"]},
    ),
    (
        "image-repeated",
        edit(VIT, lambda table: pl.concat([table, table[:1]])),
        {"where": VIT, "images": IN_V1[:1]},
    ),
    (
        "name-column-incomplete",
        predicted(image=pl.lit(None, pl.String)),
        {"where": VIT, "column": "image", "rows": [str(row) for row in range(IMAGES)]},
    ),
    ("correctness-not-true-or-false", predicted(correct=pl.lit(None, pl.Boolean)), VIT_FACTS),
    ("correctness-not-true-or-false", predicted(correct=pl.lit(0.3)), VIT_FACTS),
    ("correctness-not-numbers", predicted(correct=pl.lit("yes")), {"where": VIT}),
    (
        "parquet-columns-missing",
        edit(VIT, lambda table: table.drop("correct")),
        {"where": VIT, "columns": ["correct"]},
    ),
    (UNREADABLE, damage(VIT, 200), {"where": VIT}),
    (UNREADABLE, damage(VIT, 0), {"where": VIT}),
    (UNREADABLE, damage("counts.parquet", 50), {"where": "counts.parquet"}),
    ("parquet-file-missing", remove("counts.parquet"), {"where": "counts.parquet"}),
    ("parquet-file-missing", remove("images.parquet"), {"where": "images.parquet"}),
    (
        "counted-images-missing",
        edit("images.parquet", lambda table: table[1:]),
        UNCOUNTED | {"where": "images.parquet, data set 'v1'", "images": IN_V1[:1]},
    ),
    (
        "column-type-unknown",
        edit("images.parquet", lambda table: table.with_columns(kind=pl.concat_list("image"))),
        {"where": "images.parquet", "column": "kind", "dtype": "List(String)"},
    ),
    (
        "classifier-without-predictions",
        remove(VIT),
        {"where": "predictions/v1", "classifiers": ["vit"]},
    ),
    (
        "predictions-of-unlisted-classifier",
        manifest(classifiers=["resnet18"]),
        {"classifiers": ["vit"], "manifest_file": "study.json"},
    ),
    ("data-set-without-role", row_of("v3"), {"where": "counts.parquet", "data_sets": ["v3"]}),
    ("manifest-not-json", damage("study.json", 30), MANIFEST),
    (
        "manifest-not-object",
        lambda folder: (folder / "study.json").write_text("[1]") and None,
        MANIFEST,
    ),
    ("manifest-missing", remove("study.json"), MANIFEST),
    ("manifest-roles-not-mapping", manifest(roles=...), MANIFEST),
    (
        "required-role-missing",
        manifest(roles={"reference": "v1", "candidates": "v2"}),
        MANIFEST | {"role": "replication"},
    ),
    ("study-format-unknown", manifest(format=2), {"format": 2}),
    ("manifest-truth-without-accuracies", manifest(truth={"a": 1}), MANIFEST),
    ("study-name-not-text", manifest(name=7), MANIFEST),
    ("manifest-classifiers-not-names", manifest(classifiers="vit"), MANIFEST),
]


@pytest.mark.parametrize(("rule", "breaking", "facts"), BROKEN)
def test_broken(folder: Path, rule: str, breaking: Callable[[Path], None], facts: dict[str, Any]):
    breaking(folder)
    lines = check_study(folder)
    check(lines[0], rule, facts)
    assert not any("\n" in line for line in lines)
    with refused(StudyError, rule, facts) as caught:
        read_study(folder)
    assert lines[0] in str(caught.value)
    assert str(folder) in str(caught.value)
    assert (f"({len(lines) - 1} more: `bayesrep check" in str(caught.value)) == (len(lines) > 1)


def test_check_lists_every_broken_rule(folder: Path):
    set_count("selected", 99)(folder)
    predicted(correct=pl.lit(None, pl.Boolean))(folder)
    remove("images.parquet")(folder)
    (folder / "predictions/v2/vit.parquet").unlink()
    lines = check_study(folder)
    assert len(lines) == 4
    with refused(StudyError, "parquet-file-missing"):
        read_study(folder)


def test_a_path_that_is_no_folder(tmp_path: Path):
    (tmp_path / "file").write_text("")
    for path, rule in (("nowhere", "study-path-missing"), ("file", "study-path-not-folder")):
        check(check_study(tmp_path / path)[0], rule, {"path": str(tmp_path / path)})
    check(check_study(tmp_path)[0], "manifest-missing", {"where": "study.json"})


def test_a_folder_around_a_study_or_of_answers_alone(folder: Path):
    around = folder.parent
    check(check_study(around)[0], "manifest-in-folder-within", {"study": str(folder)})
    (folder / "study.json").unlink()
    check(check_study(folder)[0], "manifest-missing", {"where": "study.json"})
    (folder / "counts.parquet").unlink()
    spaced = folder.rename(around / "a b")
    found = check_study(spaced)[0]
    check(found, "study-awaits-counts", {"path": str(spaced)})
    assert f"--out '{spaced}'`" in found


def test_a_file_cut_off_anywhere_is_one_line(folder: Path):
    content = (folder / VIT).read_bytes()
    for size in range(0, len(content), 17):
        (folder / VIT).write_bytes(content[:size])
        (line,) = check_study(folder)
        check(line, "parquet-file-unreadable", {"where": VIT})
