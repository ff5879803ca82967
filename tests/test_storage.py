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
from refusals import refused

from bayesrep import Study, StudyError, read_study
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
    assert "a worker answered more than once" in line
    annotations.with_columns(pl.lit(2).alias("selected")).write_parquet(file)
    (line,) = check_study(folder)
    assert "annotations.parquet (each row is shown = 1)" in line
    assert "selected exceeds shown" in line


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
    with refused(StudyError, "place-not-writable") as error:
        make_study().write(tmp_path / "file" / "study")
    assert "\n" not in str(error.value)
    with refused(StudyError, "place-not-writable"):
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

BROKEN: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "k > n": (
        set_count("selected", 99),
        ["counts.parquet, data set 'v1': selected exceeds shown for images 'val_"],
    ),
    "negative": (set_count("selected", -1), ["selected is negative for images"]),
    "fraction": (set_count("selected", 0.5), ["selected is not a whole number for images"]),
    "null": (set_count("shown", None), ["shown is missing for images"]),
    "NaN": (set_count("shown", float("nan")), ["shown is missing for images"]),
    "n = 0": (set_count("shown", 0), ["shown is 0 for images"]),
    "text": (set_count("shown", "four"), ["shown does not hold numbers"]),
    "empty data set": (
        edit("counts.parquet", lambda table: table.filter(pl.col("dataset") == "v2")),
        ["counts.parquet, data set 'v1' has no images"],
    ),
    "image repeated in counts": (
        edit("counts.parquet", lambda table: pl.concat([table, table[:1]])),
        ["counts.parquet, data set 'v1': image 'val_", "given more than once"],
    ),
    "counted image without a prediction": (
        edit(VIT, lambda table: table[:-1]),
        [VIT, "of counts.parquet missing", "image 'val_"],
    ),
    "predicted image without a count": (
        edit(VIT, lambda table: pl.concat([table, NEW_IMAGE])),
        [VIT, "image 'new.jpg' not in counts.parquet"],
    ),
    "image predicted twice": (
        edit(VIT, lambda table: pl.concat([table, table[:1]])),
        [VIT, "given more than once"],
    ),
    "image without a name": (
        edit(VIT, lambda table: table.with_columns(pl.lit(None, pl.String).alias("image"))),
        [VIT, "column 'image' is missing in rows '0', '1'"],
    ),
    "correct is null": (
        edit(VIT, lambda table: table.with_columns(pl.lit(None, pl.Boolean).alias("correct"))),
        [VIT, "correct of classifier 'vit' is not 0 or 1", f"({IMAGES} images)"],
    ),
    "correct is a probability": (
        edit(VIT, lambda table: table.with_columns(pl.lit(0.3).alias("correct"))),
        [VIT, "correct of classifier 'vit' is not 0 or 1"],
    ),
    "correct is text": (
        edit(VIT, lambda table: table.with_columns(pl.lit("yes").alias("correct"))),
        [VIT, "does not hold numbers"],
    ),
    "no column correct": (edit(VIT, lambda table: table.drop("correct")), [VIT, "'correct'"]),
    "truncated predictions": (damage(VIT, 200), [VIT, "is not a readable Parquet file"]),
    "empty predictions file": (damage(VIT, 0), [VIT, "is not a readable Parquet file"]),
    "truncated counts": (damage("counts.parquet", 50), ["counts.parquet is not a readable"]),
    "no counts": (remove("counts.parquet"), ["counts.parquet is missing"]),
    "no images": (remove("images.parquet"), ["images.parquet is missing"]),
    "no column shown": (
        edit("counts.parquet", lambda table: table.drop("shown")),
        ["counts.parquet: column 'shown' missing"],
    ),
    "image without a row in images": (
        edit("images.parquet", lambda table: table[1:]),
        ["images.parquet, data set 'v1': image 'val_", "of counts.parquet missing"],
    ),
    "label missing": (
        edit(
            "images.parquet",
            lambda table: table.with_columns(
                pl.when(pl.int_range(pl.len()) > 0).then("label").alias("label")
            ),
        ),
        ["images.parquet, data set 'v1': label is missing for image 'val_"],
    ),
    "group of lists": (
        edit("images.parquet", lambda table: table.with_columns(kind=pl.concat_list("image"))),
        ["images.parquet: column 'kind' is List(String)"],
    ),
    "other labels": (
        edit(
            "images.parquet",
            lambda table: table.with_columns(
                pl.when(pl.col("dataset") == "v2").then(pl.lit("cat")).otherwise("label")
                .alias("label")
            ),
        ),
        ["only data set 'v1' has label 'dog'"],
    ),
    "classifier in one data set only": (
        remove(VIT),
        ["predictions/v1: no predictions of classifier 'vit'", "every data set"],
    ),
    "classifier not listed": (
        lambda folder: rewrite(folder, classifiers=["resnet18"]),
        ["predictions of classifier 'vit' that study.json does not list"],
    ),
    "classifier listed twice": (
        lambda folder: rewrite(folder, classifiers=["resnet18", "vit", "vit"]),
        ["study.json: classifier 'vit' given more than once"],
    ),
    "data set without a role": (
        edit("counts.parquet", lambda table: pl.concat(
            [table, table[:1].with_columns(dataset=pl.lit("v3"))]
        )),
        ["counts.parquet: data set 'v3' without a role"],
    ),
    "broken JSON": (damage("study.json", 30), ["study.json cannot be read as JSON"]),
    "JSON of something else": (
        lambda folder: (folder / "study.json").write_text("[1]") and None,
        ["study.json does not hold a JSON object"],
    ),
    "no study.json": (remove("study.json"), ["study.json is missing"]),
    "no roles": (lambda folder: rewrite(folder, roles=...), ["study.json: roles"]),
    "no replication": (
        lambda folder: rewrite(folder, roles={"reference": "v1", "candidates": "v2"}),
        ["study.json: no data set has the role 'replication'"],
    ),
    "newer format": (lambda folder: rewrite(folder, format=2), ["format 2 is not known"]),
    "broken truth": (lambda folder: rewrite(folder, truth={"a": 1}), ["study.json: truth"]),
    "truth of another size": (
        lambda folder: rewrite(
            folder,
            truth={
                "adjusted_accuracy": [0.5],
                "reference_accuracy": [0.5, 0.5],
                "replication_accuracy": [0.5, 0.5],
                "mean_selection_frequency": {},
            },
        ),
        ["adjusted_accuracy of the truth has shape [1] for 2 classifiers"],
    ),
    "name is a number": (lambda folder: rewrite(folder, name=7), ["study.json: name"]),
    "classifiers are a text": (
        lambda folder: rewrite(folder, classifiers="vit"),
        ["study.json: classifiers is not a list"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken(folder: Path, case: str):
    breaking, fragments = BROKEN[case]
    breaking(folder)
    lines = check_study(folder)
    assert lines
    assert all(fragment in lines[0] for fragment in fragments), lines
    assert not any("\n" in line for line in lines)
    with pytest.raises(StudyError) as caught:
        read_study(folder)
    assert lines[0] in str(caught.value)
    assert str(folder) in str(caught.value)
    assert (f"({len(lines) - 1} more: `bayesrep check" in str(caught.value)) == (len(lines) > 1)


def test_check_lists_every_broken_rule(folder: Path):
    for case in ("k > n", "correct is null", "no images"):
        BROKEN[case][0](folder)
    (folder / "predictions/v2/vit.parquet").unlink()
    lines = check_study(folder)
    assert len(lines) == 4
    with refused(StudyError, "parquet-file-missing"):
        read_study(folder)


def test_a_path_that_is_no_folder(tmp_path: Path):
    (tmp_path / "file").write_text("")
    assert "does not exist; give the folder of a study" in check_study(tmp_path / "nowhere")[0]
    assert "is not a folder; give the folder of a study" in check_study(tmp_path / "file")[0]
    assert "study.json is missing" in check_study(tmp_path)[0]


def test_a_file_cut_off_anywhere_is_one_line(folder: Path):
    content = (folder / VIT).read_bytes()
    for size in range(0, len(content), 7):
        (folder / VIT).write_bytes(content[:size])
        (line,) = check_study(folder)
        assert line.startswith(f"{VIT} is not a readable Parquet file")
