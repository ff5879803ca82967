"""A study checks itself: what it accepts, what it refuses and in which words."""

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from bayesrep import Study, StudyError
from bayesrep.numerics.binomial import bound_common_divisor
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.manifest import Truth
from bayesrep.studies.validation import value_violations

CORRECT = np.array([[1, 0], [0, 0], [1, 1]], dtype=bool)


def arrays(**changes: Any) -> dict[str, Any]:
    return {"selected": [3, 0, 4], "shown": [4, 2, 4], "correct": CORRECT, **changes}


def study(
    classifiers: list[str] | None = None,
    replication: dict[str, Any] | None = None,
    **reference: Any,
) -> Study:
    return Study.from_arrays(
        reference=arrays(**reference),
        replication=arrays(**(replication or {})),
        classifiers=["a", "b"] if classifiers is None else classifiers,
    )


def test_defaults():
    plain = study()
    assert plain.reference.name == "reference"
    assert plain.replication.name == "replication"
    assert plain.reference.images.tolist() == ["0", "1", "2"]
    assert plain.reference.labels is None
    assert plain.reference.groups == {}
    assert plain.classifiers == ("a", "b")
    assert plain.truth is None


def test_types_are_settled_whatever_is_given():
    given = study(
        selected=np.array([3.0, 0.0, 4.0]),
        shown=np.array([4, 2, 4], dtype=np.uint8),
        correct=CORRECT.astype(float),
        images=[10, 11, 12],
        labels=[1, 2, 1],
        groups={"superclass": ["dog", "cat", "dog"]},
        replication={"labels": [1, 1, 2]},
    ).reference
    assert given.selected.dtype == given.shown.dtype == np.int64
    assert given.correct.dtype == np.bool_
    assert given.images.tolist() == ["10", "11", "12"]
    assert given.labels is not None
    assert given.labels.tolist() == ["1", "2", "1"]
    assert given.groups["superclass"].tolist() == ["dog", "cat", "dog"]


def test_one_count_serves_all_images():
    assert study(selected=2, shown=4).reference.selected.tolist() == [2, 2, 2]


def test_a_study_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        study().reference.correct[0, 0] = False


def test_a_study_has_arrays_of_its_own():
    """The given ones stay writable, and what is written into them changes nothing."""
    whole = np.array([[3, 4], [0, 2], [4, 4]])
    texts = {name: np.array(["a", "b", "c"]) for name in ("images", "labels", "kind")}
    correct = CORRECT.copy()
    given = {"selected": whole[:, 0], "shown": whole[:, 1], "correct": correct}
    names = {"images": texts["images"], "labels": texts["labels"], "groups": {"k": texts["kind"]}}
    made = study(**given, **names, replication={"labels": ["a", "b", "c"]})
    before = made.fingerprint()
    for array in (whole, correct, *texts.values()):
        array[:] = 0
    assert made.fingerprint() == before


LABELLED = {
    "array": lambda rows, _, __: rows,
    "names": lambda rows, order, names: pd.DataFrame(rows, names).iloc[order],
    "numbers": lambda rows, order, _: pd.DataFrame(rows).iloc[order],
    "columns": lambda rows, _, __: pl.DataFrame(rows),
    "others": lambda rows, _, names: pd.DataFrame(rows, [f"{name}.png" for name in names]),
}
"""The same rows as an array, or with labels, of rows in an order of their own."""


@given(st.data())
def test_labels_say_what_arrays_hold_and_places_do_not_in_silence(data):
    """Whatever has labels: the study is that of the plain arrays, or refused."""
    names, networks = ["i3", "i1", "i2", "i0"], ["b", "a", "c"]
    plain = {"selected": np.array([3, 0, 4, 1]), "shown": np.array([4, 2, 5, 9])}
    plain |= {"correct": np.arange(12).reshape(4, 3) % 5 < 2, "kind": np.array(list("wxyz"))}
    forms = {name: data.draw(st.sampled_from(sorted(LABELLED)), label=name) for name in plain}
    held = {
        name: LABELLED[form](plain[name], data.draw(st.permutations(range(4))), names)
        for name, form in forms.items()
    }
    if forms["correct"] != "array":
        held["correct"].columns = networks
        held["correct"] = held["correct"][data.draw(st.permutations(networks))]
    held = {
        name: each.iloc[:, 0] if name != "correct" and hasattr(each, "iloc") else each
        for name, each in held.items()
    }
    held |= {
        n: each.to_series()
        for n, each in held.items()
        if n != "correct" and isinstance(each, pl.DataFrame)
    }
    images = data.draw(st.sampled_from([None, np.array(names), pd.Series(names)]), label="images")

    def rows_of(images, kind, **arrays):
        sets = {"images": images, "groups": {"kind": kind}, **arrays}
        made = Study.from_arrays(reference=sets, replication=sets, classifiers=networks).reference
        rows = made.selected, made.shown, made.groups["kind"], made.correct.tolist()
        return dict(zip(made.images.tolist(), zip(*rows, strict=True), strict=True))

    wanted = rows_of(names, **plain)
    try:
        found = rows_of(images, **held)
    except StudyError as error:
        found = error.rule
    if found == "array-labels-differ":
        assert set(forms.values()) & {"names", "numbers", "others"}
    elif images is not None or set(forms.values()) == {"names"}:
        assert found == wanted


def test_a_study_survives_pickling():
    assert pickle.loads(pickle.dumps(study())).fingerprint() == study().fingerprint()


ONE = {"images": ["1"]}

SELECTED, SHOWN = ({**ONE, "column": name} for name in ("selected", "shown"))
HALF_MASKED = np.ma.masked_array([4, 2, 4], [False, True, False])
FLAGS = "correctness-not-true-or-false"
WIDE = {"shape": "[3, 3]", "image_count": 3, "classifier_count": 2}
REFUSED = [
    ("selected-exceeds-shown", dict(selected=[3, 3, 4]), ONE),
    ("count-negative", dict(selected=[3, -1, 4]), SELECTED),
    ("count-not-whole", dict(selected=[3, 0.5, 4]), SELECTED),
    ("count-missing", dict(shown=[4, np.nan, 4]), SHOWN),
    ("count-missing", dict(shown=[4, None, 4]), SHOWN),
    ("count-missing", dict(shown=HALF_MASKED), SHOWN),
    ("count-infinite", dict(shown=[4, np.inf, 4]), SHOWN),
    ("image-never-shown", dict(selected=0, shown=[4, 0, 4]), ONE),
    ("counts-not-numbers", dict(selected=["3", "0", "4"]), {"column": "selected"}),
    (
        "counts-shape-wrong",
        dict(shown=[4, 2]),
        {"column": "shown", "shape": "[2]", "image_count": 3},
    ),
    ("correctness-shape-wrong", dict(correct=np.ones((3, 3))), WIDE),
    ("correctness-shape-wrong", dict(correct=[1, 0, 1]), {"shape": "[3]"}),
    (FLAGS, dict(correct=[[1, 0], [0, 2], [1, 1]]), ONE | {"column": "classifier 'b'"}),
    (FLAGS, dict(correct=[[1, 0], [np.nan, 0], [1, 1]]), ONE | {"column": "classifier 'a'"}),
    ("image-repeated", dict(images=["x", "y", "x"]), {"images": ["x"]}),
    (
        "data-set-without-images",
        dict(selected=[], shown=[], correct=np.zeros((0, 2))),
        {"where": "data set 'reference'"},
    ),
    (
        "column-incomplete-for-images",
        dict(labels=["x", None, ""]),
        {"column": "label", "images": ["1", "2"]},
    ),
    (
        "column-length-not-images",
        dict(labels=["x"]),
        {"column": "label", "value_count": 1, "image_count": 3},
    ),
    ("group-column-name-reserved", dict(groups={"label": ["x"] * 3}), {"column": "label"}),
    ("unknown-data-set-entry", dict(correkt=1), {"entries": ["correkt"]}),
    ("data-set-entry-missing", dict(correct=None), {"entry": "correct"}),
]


@pytest.mark.parametrize(("rule", "changed", "facts"), REFUSED)
def test_refused(rule: str, changed: dict[str, Any], facts: dict[str, Any]):
    with refused(StudyError, rule, facts) as caught:
        study(**arrays(**changed))
    text = str(caught.value)
    assert "reference" in text
    assert ";" in text  # what to do comes after the rule


RATES = np.random.default_rng(0).beta(4, 1.3, 300)
SCALES = "2/100 3/100 5/100 7/100 10/100 40/100 10/1000 5/10 20/40"  # answers / shown


def scaled(asked: int, shown: int, rounded: Any = np.rint, least: float = 0) -> dict[str, Any]:
    """Counts of so many answers as if there were more, of images that so large a share selected."""
    selected = np.random.default_rng(1).binomial(asked, RATES)
    kept = selected >= least * asked
    selected = rounded(selected[kept] * shown / asked)
    return {"selected": selected, "shown": shown, "correct": np.ones((kept.sum(), 2))}


@pytest.mark.parametrize("scale", SCALES.split())
def test_percentages_and_answers_taken_twice_are_no_counts(scale: str):
    """However they are rounded and whatever rule kept images; what they are made of is counts."""
    asked, shown = map(int, scale.split("/"))
    kept = scaled(asked, shown, least=0.5 * (asked > 4))
    odd = scaled(asked, shown)
    odd["selected"][:2] = 1, shown - 1  # two who typed a count among percentages
    for counts in (scaled(asked, shown), scaled(asked, shown, np.floor), kept, odd):
        with refused(StudyError, "counts-of-few-values", {"shown": shown}):
            study(**counts)
    sound = study(**scaled(asked, asked), replication=scaled(shown, shown))
    # A table of what is kept says that they are counts nevertheless.
    table = [(k, shown) for k in set(odd["selected"].astype(int).tolist())]
    assert study(**odd, selection=table).classifiers == sound.classifiers


@pytest.mark.parametrize(("times", "most"), [(2, 15), (10, 60)])
def test_answers_taken_several_times_are_no_counts_where_numbers_differ(times: int, most: int):
    shown = np.random.default_rng(1).integers(5, most, len(RATES))
    selected = np.random.default_rng(2).binomial(shown, RATES)
    for kept in (selected >= 0, 2 * selected >= shown):
        k, n = selected[kept], shown[kept]
        (broken,) = value_violations("v1", times * k, times * n)
        assert broken.facts["divisor"] == times
        assert bound_common_divisor(times * k, times * n) < -40
        all_or_none = n * (k > n / 2)  # as people do who agree
        assert not [*value_violations("v1", times * all_or_none, times * n)]
        assert not [*value_violations("v1", np.minimum(times * k + k % 2, times * n), times * n)]


def test_five_images_are_named_and_all_are_counted():
    many = {"selected": np.full(12, 5), "shown": 4, "correct": np.ones((12, 2))}
    images = [str(number) for number in range(12)]
    with refused(StudyError, "selected-exceeds-shown", {"images": images}):
        study(**many)
    facts = {"where": "data set 'imagenet-v2'", "images": ["1"]}
    with refused(StudyError, "selected-exceeds-shown", facts):
        study(replication={"name": "imagenet-v2", "selected": 4})


@pytest.mark.parametrize(
    ("classifiers", "rule", "facts"),
    [
        (["a", "a"], "classifier-repeated", {"classifiers": ["a"]}),
        ([], "study-without-classifiers", {}),
        (["a", ""], "classifier-name-empty", {}),
        ("ab", "classifiers-given-as-text", {}),
    ],
)
def test_refused_classifiers(classifiers: Any, rule: str, facts: dict[str, Any]):
    with refused(StudyError, rule, facts):
        study(classifiers=classifiers)


def test_both_data_sets_are_about_the_same_labels():
    labels = ["cat", "dog", "cat"]
    assert study(labels=labels, replication={"labels": labels[::-1]}).reference.labels is not None
    assert study(labels=labels).replication.labels is None
    with refused(StudyError, "labels-of-one-data-set", {"dataset": "reference", "labels": ["dog"]}):
        study(labels=labels, replication={"labels": ["cat"] * 3})


def dataset(name: str, columns: int = 2) -> AnnotatedSet:
    return AnnotatedSet(
        name=name,
        images=np.array(["0", "1", "2"]),
        selected=np.array([3, 0, 4]),
        shown=np.array([4, 2, 4]),
        correct=np.ones((3, columns), dtype=bool),
    )


def test_further_data_sets_have_roles_of_their_own():
    arrays = {"selected": [3, 4], "shown": 4, "correct": [[False], [True]]}
    both = {"reference": arrays, "replication": arrays, "classifiers": ["a"]}
    study = Study.from_arrays(**both, further={"third": {**arrays, "name": "v3"}})
    assert study.datasets["third"].name == "v3"
    with refused(StudyError, "further-role-already-known", {"role": "candidates"}):
        Study.from_arrays(**both, further={"candidates": arrays})


def test_only_candidates_may_come_without_predictions():
    required = {"reference": dataset("v1"), "replication": dataset("v2")}
    whole = Study({**required, "candidates": dataset("flickr", 0)}, ("a", "b"))
    assert whole.datasets["candidates"].correct.shape == (3, 0)
    facts = {"dataset": "flickr", "column_count": 0}
    for role in ("reference", "further"):
        with refused(StudyError, "predictions-not-per-classifier", facts):
            Study({**required, role: dataset("flickr", 0)}, ("a", "b"))


def test_roles_and_names_of_data_sets():
    with refused(StudyError, "required-role-missing", {"role": "replication"}):
        Study({"reference": dataset("v1")}, ("a", "b"))
    with refused(StudyError, "data-set-with-several-roles", {"data_sets": ["v1"]}):
        Study({"reference": dataset("v1"), "replication": dataset("v1")}, ("a", "b"))


def test_truth_and_provenance_are_checked():
    required = {"reference": dataset("v1"), "replication": dataset("v2")}
    wrong = Truth(np.zeros(3), np.zeros(2), np.zeros(2), {})
    facts = {"quantity": "adjusted_accuracy", "shape": "[3]"}
    with refused(StudyError, "truth-shape-wrong", facts):
        Study(required, ("a", "b"), truth=wrong)
    provenance: Any = {"when": {1, 2}}
    with refused(StudyError, "provenance-not-json"):
        Study(required, ("a", "b"), provenance=provenance)


CHANGES = [
    {"selected": [2, 0, 4]},
    {"shown": [4, 3, 4]},
    {"correct": ~CORRECT},
    {"images": ["0", "1", "3"]},
    {"labels": ["x", "y", "x"]},
    {"groups": {"kind": ["x", "y", "x"]}},
    {"name": "v1"},
]


def test_the_fingerprint_follows_the_data_and_nothing_else():
    prints = {study(**change).fingerprint() for change in [{}, *CHANGES]}
    prints.add(study(classifiers=["b", "a"]).fingerprint())
    assert len(prints) == len(CHANGES) + 2
    renamed = Study(study().datasets, ("a", "b"), name="other", provenance={"by": "me"})
    assert renamed.fingerprint() == study().fingerprint()


@given(st.data())
def test_every_sound_data_set_is_accepted_unchanged(data: st.DataObject):
    counts = data.draw(
        st.lists(
            st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
            min_size=1,
            max_size=30,
        )
    )
    selected, shown = np.array(counts).T
    correct = np.array(data.draw(st.lists(st.booleans(), min_size=len(shown), max_size=len(shown))))
    reference = {"selected": selected, "shown": shown, "correct": correct[:, None]}
    made = study(["a"], {"correct": CORRECT[:, :1]}, **reference)
    np.testing.assert_array_equal(made.reference.selected, selected)
    np.testing.assert_array_equal(made.reference.shown, shown)
    np.testing.assert_array_equal(made.reference.correct[:, 0], correct)


def test_a_study_needs_numpy_only():
    code = (
        "import bayesrep.studies.statistics, sys;"
        "assert not {'polars', 'scipy', 'jax', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
