"""Subsets of images, images that all miss, categories of labels, and what is left to review."""

import json
import unicodedata
from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from refusals import check, refusal, refused, run

from bayesrep import OptionError, StudyError
from bayesrep.collect.prediction_review import review
from bayesrep.errors import ProtocolWarning
from bayesrep.protocols import (
    class_subsets,
    co_occurrence,
    compare,
    compare_subsets,
    fast_images,
    missed_by_all,
    multilabel,
    read_humans,
    read_image_subsets,
    read_label_sets,
    shankar2020,
)
from bayesrep.protocols.by_subset import ALL_IMAGES, of_classes
from bayesrep.report.subsets_text import subsets_text
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.imagenet import synsets
from bayesrep.studies.predictions import Predictions

CLASSES = tuple("abcde")


def answers(dataset, images, seed, networks=("p", "q", "r")):
    rng = np.random.default_rng(seed)
    labels = rng.integers(5, size=images)
    shape = (len(networks), images)
    right = rng.random(shape) < np.array([0.4, 0.6, 0.8])[: len(networks), None]
    first = np.where(right, labels, (labels + rng.integers(1, 5, shape)) % 5)
    names = [f"{dataset} {n}" for n in range(images)]
    return Predictions(dataset, names, CLASSES, labels, networks, first[:, :, None])


@pytest.fixture
def both():
    return answers("v1", 70, 0), answers("v2", 50, 1)


@pytest.fixture
def world(both, tmp_path):
    """A folder of answers, of people's with their times, and of label sets with categories."""
    StudyContents(answers=both).write(tmp_path / "study")
    rng = np.random.default_rng(3)
    people, sets = [], []
    for data in both:
        for n, image in enumerate(data.images.tolist()):
            own = int(data.labels[n])
            for who in ("Ann", "Bob", "Cem"):
                if rng.random() < 0.9:
                    said = own if rng.random() < 0.8 else int(rng.integers(5))
                    row = (data.dataset, image, who, CLASSES[said], float(rng.integers(1, 120)))
                    people.append(row)
            sets.append((data.dataset, image, CLASSES[own], None))
            if n % 3 == 0:
                more = CLASSES[(own + 1) % 5]
                sets.append((data.dataset, image, more, ["several objects", "unclear"][n % 2]))
    names = ["dataset", "image", "labeler", "answer", "seconds"]
    pl.DataFrame(people, names, orient="row").write_csv(tmp_path / "people.csv")
    names = ["dataset", "image", "label", "category"]
    pl.DataFrame(sets, names, orient="row").write_csv(tmp_path / "sets.csv")
    return tmp_path, people, sets


def test_subsets_are_counted_one_by_one(both, world):
    folder, people, sets = world
    humans = read_humans(folder / "people.csv", *both)
    labels = tuple(read_label_sets([folder / "sets.csv"], data) for data in both)
    vowels = np.isin(CLASSES, ["a", "e"])
    table = compare_subsets(
        *both, of_classes({"vowels": vowels}, *both), humans=humans, sets=labels
    )
    allowed = {(d, i): {x for e, j, x, _ in sets if (e, j) == (d, i)} for d, i, _, _ in sets}
    seen = {(d, i) for d, i, *_ in people}
    for row in table.iter_rows(named=True):
        for role, data in zip(("reference", "replication"), both, strict=True):
            if row["kind"] == "classifier":
                number = data.classifiers.index(row["participant"])
                said = {
                    i: CLASSES[data.first[number, n]] for n, i in enumerate(data.images.tolist())
                }
            else:
                said = {
                    i: a for d, i, w, a, _ in people if (d, w) == (data.dataset, row["participant"])
                }
            own = dict(zip(data.images.tolist(), data.labels.tolist(), strict=True))
            said = {i: a for i, a in said.items() if (data.dataset, i) in seen}
            if row["subset"] == "vowels":
                said = {i: a for i, a in said.items() if vowels[own[i]]}
            right = sum(a in allowed[data.dataset, i] for i, a in said.items())
            assert row[f"{role}_images"] == len(said)
            assert row[f"{role}_accuracy"] == pytest.approx(right / len(said))
    every = table.filter(subset=ALL_IMAGES).drop("subset", "reference_change", "replication_change")
    same = compare(*both, humans=humans, sets=labels, interval="clopper-pearson").accuracies
    assert every.equals(same)
    part = table.filter(subset="vowels")
    change = part["reference_accuracy"] - every["reference_accuracy"]
    np.testing.assert_allclose(part["reference_change"], change, atol=1e-15)
    text = subsets_text(table)
    assert "vowels" in text
    assert text.count("\n") == 2 + 1 + 6 + 2 - 1


def test_the_published_table_has_its_four_subsets():
    assert shankar2020()["subset"].unique(maintain_order=True).to_list() == [
        "all", "without dogs", "objects", "fast images",
    ]  # fmt: skip
    assert {"objects", "without dogs"} < set(class_subsets(synsets()))


def test_subsets_of_images_are_read(both, tmp_path):
    rows = [(n % 2 == 0, ["day", "night", ""][n % 3]) for n in range(70)]
    table = pl.DataFrame({"image": both[0].images, "sharp": [a for a, _ in rows]})
    table = table.with_columns(light=pl.Series([b for _, b in rows]))
    table.write_csv(tmp_path / "t.csv")
    found = read_image_subsets(tmp_path / "t.csv", *both)
    assert list(found) == ["sharp", "day", "night"]
    assert found["sharp"][0].tolist() == [n % 2 == 0 for n in range(70)]
    assert found["night"][0].tolist() == [n % 3 == 1 for n in range(70)]
    assert not found["day"][1].any()
    table.select("image").head(4).write_csv(tmp_path / "few.csv")
    (name,) = read_image_subsets(tmp_path / "few.csv", *both)
    assert name == "few"
    with pytest.warns(ProtocolWarning, match="'day': nobody answered an image of it in the repl"):
        day = compare_subsets(*both, {"day": found["day"]}).filter(subset="day")
    assert day["reference_images"].to_list() == (both[0].answered & found["day"][0]).sum(1).tolist()
    nothing = ("replication_accuracy", "replication_change", "gap", "gap_lower")
    assert all(day[name].null_count() == len(day) for name in nothing)
    never = [mask & False for mask in found["day"]]
    with refused(StudyError, "subset-without-answers", {"subset": "never"}):
        compare_subsets(*both, {"never": never})
    with refused(StudyError, "all-images-name-taken"):
        compare_subsets(*both, {ALL_IMAGES: found["day"]})
    pl.concat([table, table.head(1)]).write_csv(tmp_path / "twice.csv")
    with refused(StudyError, "subset-image-twice", {"images": ["v1 0"], "dataset": "v1"}):
        read_image_subsets(tmp_path / "twice.csv", *both)
    pl.DataFrame({"image": ["x"]}).write_csv(tmp_path / "none.csv")
    with refused(StudyError, "subset-images-unknown", {"hint": ""}):
        read_image_subsets(tmp_path / "none.csv", *both)
    table.with_columns(dataset=pl.lit("v 1")).write_csv(tmp_path / "other.csv")
    hint = {"hint": "; they are there as images of data set 'v 1'"}
    with refused(StudyError, "subset-images-unknown", hint):
        read_image_subsets(tmp_path / "other.csv", *both)


def test_fast_images_are_those_of_a_low_median(both, world):
    folder, people, _ = world
    masks = fast_images(folder / "people.csv", *both, seconds=50)
    for data, mask in zip(both, masks, strict=True):
        for image, fast in zip(data.images.tolist(), mask.tolist(), strict=True):
            times = [t for d, i, _, _, t in people if (d, i) == (data.dataset, image)]
            assert fast == (bool(times) and float(np.median(times)) <= 50)
    with refused(OptionError, "fast-seconds-not-positive", {"seconds": 0}):
        fast_images(folder / "people.csv", *both, seconds=0)
    table = pl.read_csv(folder / "people.csv")
    table.with_columns(seconds=pl.lit("soon")).write_csv(folder / "bad.csv")
    with refused(StudyError, "task-seconds-no-time", {"column": "seconds"}):
        fast_images(folder / "bad.csv", *both)
    table.drop("seconds").write_csv(folder / "bad.csv")
    with refused(StudyError, "table-lacks-columns", {"columns": ["seconds"]}):
        fast_images(folder / "bad.csv", *both)


def test_images_that_all_miss(both, world, capsys):
    folder, _, sets = world
    labels = read_label_sets([folder / "sets.csv"], both[0])
    allowed = {i: {x for d, j, x, _ in sets if (d, j) == ("v1", i)} for d, i, _, _ in sets}
    expected = [
        all(CLASSES[each] not in allowed[i] for each in both[0].first[:, n])
        for n, i in enumerate(both[0].images.tolist())
    ]
    assert missed_by_all(both[0], labels).tolist() == expected
    inputs = (f"labels={folder}/sets.csv", f"humans={folder}/people.csv")
    arguments = ["papers", "compare", folder / "study", "--table", "missed", "--json"]
    arguments += [word for each in inputs for word in ("--input", each)]
    status, out, _ = run(capsys, *arguments)
    assert status == 0
    rows = json.loads(out)["rows"]
    counted = Counter((row["dataset"], row["missed_by"]) for row in rows)
    assert counted["v1", "all classifiers"] == sum(expected)
    assert counted["v1", "everybody"] <= counted["v1", "all people"]


@pytest.mark.filterwarnings("always::bayesrep.errors.ProtocolWarning")
@pytest.mark.parametrize("role", [0, 1])
def test_one_labelled_data_set_is_answered_for_and_the_other_named(both, world, capsys, role):
    folder, _, sets = world
    name = both[role].dataset
    some = pl.read_csv(folder / "sets.csv").filter(dataset=name)
    some.write_csv(folder / "some.csv")
    labels = read_label_sets([folder / "some.csv"], both[role])
    shared = ["papers", "compare", folder / "study", "--input", f"labels={folder}/some.csv"]
    shared.append("--json")
    status, out, error = run(capsys, *shared, "--table", "missed")
    assert status == 0
    assert f"no label set of any image of {both[1 - role].dataset!r}" in error
    rows = json.loads(out)["rows"]
    expected = both[role].images[missed_by_all(both[role], labels)].tolist()
    assert [(row["dataset"], row["image"]) for row in rows] == [(name, i) for i in expected]
    status, out, error = run(capsys, *shared, "--table", "subsets")
    assert status == 0
    assert error.count("of which nothing is said") == 1
    known, other = [("reference", "replication"), ("replication", "reference")][role]
    right = labels.contain(both[role].first) & both[role].answered
    images = (both[role].answered & labels.known & (labels.sizes > 0)).sum(axis=1)
    for row, hits, of in zip(json.loads(out)["rows"], right.sum(axis=1), images, strict=False):
        assert row[f"{known}_accuracy"] == pytest.approx(hits / of)
        assert row[f"{other}_accuracy"] is row["gap"] is None
    status, out, _ = run(capsys, *shared[:-1], "--table", "subsets")
    assert status == 0
    assert "multi-label" in out
    pl.DataFrame({"image": ["x"], "label": [CLASSES[0]]}).write_csv(folder / "none.csv")
    of_none = [*shared[:4], f"labels={folder}/none.csv", "--table", "missed"]
    check(refusal(of_none), "label-sets-of-other-images", {"dataset": "v1"})
    more = [*shared, "--table", "co-occurrence"]
    status, out, error = run(capsys, *more)
    assert status == 0
    assert (f"no label set of any image of {both[0].dataset!r}" in error) == (role == 1)
    assert json.loads(out)["rows"] == co_occurrence(both[role], labels).to_dicts()
    if role:
        violation = refusal([*more, "--datasets", "reference"])
        check(violation, "label-sets-of-other-images", {"dataset": "v1"})


@pytest.mark.filterwarnings("always::bayesrep.errors.ProtocolWarning")
def test_objects_are_label_sets_of_the_labels_that_name_one(both, world, capsys):
    """Of the candidates of an image those by which an object is called are right, no others."""
    folder, *_ = world
    rows = [
        (image, CLASSES[(n + at) % len(CLASSES)], at != 1, 1 + (at == 2))
        for n, image in enumerate(both[0].images.tolist())
        for at in range(3)
    ]
    table = pl.DataFrame(rows, ["image", "label", "names", "object"], orient="row")
    first = pl.col("label").first().over("image")
    table = table.with_columns(selected=1, objects=2, main_label=first)
    table.write_csv(folder / "objects.csv")
    sets = read_label_sets([folder / "objects.csv"], both[0])
    expected = {(image, label) for image, label, named, _ in rows if named}
    found = zip(both[0].images[sets.image].tolist(), sets.label.tolist(), strict=True)
    assert {(image, both[0].classes[label]) for image, label in found} == expected
    base = ["papers", "compare", folder / "study", "--table", "co-occurrence", "--json"]
    status, out, _ = run(capsys, *base, "--input", f"objects={folder}/objects.csv")
    assert status == 0
    assert json.loads(out)["rows"] == co_occurrence(both[0], sets).to_dicts()
    missed = ["papers", "compare", folder / "study", "--table", "missed", "--json"]
    status, out, _ = run(capsys, *missed, "--input", f"labels={folder}/objects.csv")
    assert status == 0
    images = both[0].images[missed_by_all(both[0], sets)].tolist()
    assert [row["image"] for row in json.loads(out)["rows"]] == images


def test_the_command_prints_everybody_on_subsets(world, capsys):
    folder, *_ = world
    files = ["--input", f"humans={folder}/people.csv", "--input", f"labels={folder}/sets.csv"]
    base = ["papers", "compare", folder / "study", "--table", "subsets"]
    status, out, _ = run(capsys, *base, *files)
    assert status == 0
    assert "(60 s)" in out
    assert out.count("Ann") == 1
    lines = [*base, "--table", "lines", "--input", "subsets=images.csv"]
    facts = {"option": "input subsets", "table": "subsets"}
    check(refusal(lines), "option-of-another-table", facts)
    facts = {"table": "judged", "options": "--input objects=FILE or --input counts=FILE"}
    check(refusal([*base, "--table", "judged"]), "table-needs-file", facts)


# ------------------------------------------------------------------ categories


def test_categories_are_parts_of_the_images(both, world):
    folder, _, sets = world
    labels = read_label_sets([folder / "sets.csv"], both[0])
    assert set(labels.categories) == {"several objects", "unclear"}
    table = multilabel(both[0], labels, subsets={}, trials=5)
    of = {n for n in range(70) if n % 3 == 0 and n % 2}
    rows = table.filter(subset="category: unclear", metric="multi-label")
    assert rows["images"].to_list() == [len(of)] * 3
    allowed = {i: {x for d, j, x, _ in sets if (d, j) == ("v1", i)} for d, i, _, _ in sets}
    right = sum(CLASSES[both[0].first[2, n]] in allowed[f"v1 {n}"] for n in of)
    assert rows["right"][2] == right
    assert rows["p_value"].null_count() == 3


# ------------------------------------------------------------------ review


def test_what_is_left_to_review(both, world):
    folder, people, _ = world
    humans = read_humans(folder / "people.csv", *both)
    found = review(both, humans=humans)
    expected = {
        (data.dataset, str(i), CLASSES[k])
        for data in both
        for n, i in enumerate(data.images)
        for k in data.first[:, n]
    } | {(d, i, a) for d, i, _, a, _ in people}
    rows = set(found.tasks.select("dataset", "image", "label").iter_rows())
    assert rows == expected
    assert len(found.tasks) == len(expected)
    one = found.tasks.filter(pl.col("people") > 0).row(0, named=True)
    said = [a for d, i, _, a, _ in people if (d, i) == (one["dataset"], one["image"])]
    assert one["people"] == said.count(one["label"])
    assert found.statistics["predictions"].sum() == len(expected)
    judged = found.tasks.head(40).with_columns(right=pl.col("own"))
    rest = review(both, judged, humans=humans)
    assert len(rest.tasks) == len(expected) - 40
    row = rest.statistics.row(0, named=True)
    assert (row["judged"], row["right"]) == (40, judged["right"].sum())
    assert row["share"] == pytest.approx(judged["right"].mean())
    torn = pl.concat([judged, judged.with_columns(right=~pl.col("right"))])
    with refused(StudyError, "prediction-judged-both-ways") as error:
        review(both, torn)
    assert sorted(error.value.offenders) == sorted(set(judged["image"]))


def test_nobody_reviews_their_own(both, world):
    folder, people, _ = world
    humans = read_humans(folder / "people.csv", *both)
    found = review(both, humans=humans, reviewers=("Ann", "Bob", "Cem", "Dan"), seed=3)
    given = {(d, i, a, w) for d, i, w, a, _ in people}
    for row in found.tasks.iter_rows(named=True):
        assert (row["dataset"], row["image"], row["label"], row["reviewer"]) not in given
    work = Counter(found.tasks["reviewer"])
    assert max(work.values()) - min(work.values()) <= 1
    again = review(both, humans=humans, reviewers=("Ann", "Bob", "Cem", "Dan"), seed=3)
    assert found.tasks.equals(again.tasks)
    with refused(StudyError, "no-impartial-reviewer"):
        review(both, humans=humans, reviewers=("Ann",))
    with refused(OptionError, "reviewer-named-twice", {"reviewers": ["Ann", "Ann"]}):
        review(both, reviewers=("Ann", "Ann"))


def test_the_step_goes_round(both, world, capsys):
    """Tasks out, filled in, back again: nothing is left, and the right ones are label sets."""
    folder, *_ = world
    study, tasks = folder / "study", folder / "tasks.csv"
    step = ["collect", "tasks", study, "--kind", "review", "--humans", folder / "people.csv"]
    status, out, _ = run(capsys, *step, "--reviewers", "Dan,Eve", "--out", tasks)
    assert status == 0
    table = pl.read_csv(tasks)
    assert f"\n{len(table)} predictions" in out
    assert set(table["reviewer"]) == {"Dan", "Eve"}
    filled = table.with_columns(right=pl.col("own"), category=pl.lit("unclear"))
    filled.write_csv(folder / "done.csv")
    more = ["--judged", folder / "done.csv"]
    status, out, _ = run(capsys, *step, *more, "--out", folder / "rest.csv", "--json")
    assert status == 0
    assert json.loads(out)["tasks"] == 0
    sets = [read_label_sets([folder / "done.csv"], data) for data in both]
    assert sum(len(each.label) for each in sets) == table["own"].sum()
    assert all(set(each.categories) == {"unclear"} for each in sets)
    # Beside other sets the judged labels are added; as judgements those are known, too.
    files = [folder / "done.csv", folder / "sets.csv"]
    joined, given = (read_label_sets(each, both[0]) for each in (files, files[1:]))
    assert (joined.sizes >= np.maximum(sets[0].sizes, given.sizes)).all()
    status, out, _ = run(capsys, *step, "--judged", *files[1:], "--out", folder / "r.csv", "--json")
    assert 0 < json.loads(out)["tasks"] < len(table)
    filled.with_columns(right=pl.lit("perhaps")).write_csv(folder / "done.csv")
    words = [*step, "--judged", folder / "done.csv", "--out", folder / "z.csv"]
    check(refusal(words), "flag-neither-true-nor-false", {"column": "right"})


def test_label_sets_have_the_names_that_every_table_has(both, tmp_path):
    """Blanks around names, and letters in the other form of Unicode, make no other image."""
    data = replace(both[0], images=[f"é {n}" for n in range(70)])
    called = [f" {unicodedata.normalize('NFD', name)} " for name in data.images.tolist()]
    labels = [f"{CLASSES[n % 5]} " for n in range(70)]
    table = pl.DataFrame({"dataset": ["v1 "] * 70, "image": called, "label": labels})
    table.write_csv(tmp_path / "sets.csv")
    named = {name: [label] for name, label in zip(called, labels, strict=True)}
    (tmp_path / "sets.json").write_text(json.dumps(named))
    for name in ("sets.csv", "sets.json"):
        sets = read_label_sets([tmp_path / name], data)
        assert sets.image.tolist() == list(range(70))
        assert sets.label.tolist() == [n % 5 for n in range(70)]
