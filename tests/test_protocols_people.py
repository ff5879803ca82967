"""What people see, and what they say of predictions: numbers against their definitions in loops."""

import numpy as np
import polars as pl
import pytest
import zoo
from published import DATA
from refusals import check, refusal, refused

from bayesrep import StudyError
from bayesrep.protocols import (
    compare_labels_with_people,
    compare_predictions_with_people,
    confusion,
    people_beside,
    read_people,
)
from bayesrep.report.figure_registry import FIGURES_BY_NAME
from bayesrep.report.sections.people import PeopleAnswers
from bayesrep.report.sections.section import Source
from bayesrep.sources.imagenetv2 import VALIDATION_SET, read_test_set
from bayesrep.sources.label_questions import count_labels
from bayesrep.sources.raw_answers import decide, read_raw
from bayesrep.studies.predictions import Predictions

CLASSES = tuple("abcdef")


@pytest.fixture
def world(tmp_path):
    """Three classifiers on 80 images, and what people say of 70 and of 60 of them."""
    rng = np.random.default_rng(0)
    images = [f"{n}.jpg" for n in range(80)]
    labels = rng.integers(6, size=80)
    answers = np.stack([[rng.permutation(6)[:5] for _ in images] for _ in range(3)])
    answers[:, ::3, 0] = labels[::3]
    for c in range(3):
        for n in range(80):  # no answer twice
            rest = [x for x in answers[c, n] if x != answers[c, n, 0]]
            answers[c, n] = [
                answers[c, n, 0],
                *(rest + [x for x in range(6) if x not in answers[c, n]])[:4],
            ]
    answers[2, 5] = -1
    predictions = Predictions("v1", images, CLASSES, labels, ("p", "q", "r"), answers)
    counts, objects = [], []
    for n in range(70):
        others = [x for x in rng.permutation(6) if x != labels[n]][: rng.integers(0, 4)]
        for label in (labels[n], *others):
            shown = int(rng.integers(5, 10))
            counts.append(("v1", images[n], CLASSES[label], int(rng.integers(0, shown + 1)), shown))
    for n in range(20, 80):
        chosen = rng.permutation(6)[: rng.integers(1, 5)]
        if rng.random() < 0.8 and labels[n] not in chosen:
            chosen[0] = labels[n]
        number = int(rng.integers(1, len(chosen) + 1))
        of = rng.integers(1, number + 1, len(chosen))
        of[:number] = np.arange(1, number + 1)
        if len(chosen) > number > 1 and rng.random() < 0.3:
            of[-1] = 0
        main = CLASSES[rng.choice(chosen[:number])]
        for place, (label, group) in enumerate(zip(chosen, of, strict=True)):
            objects.append(
                (
                    "v1",
                    images[n],
                    CLASSES[label],
                    9 - place,
                    group or None,
                    place < number,
                    number,
                    main,
                )
            )
    names = ["dataset", "image", "label", "selected", "shown"]
    pl.DataFrame(counts, names, orient="row").write_csv(tmp_path / "counts.csv")
    names = ["dataset", "image", "label", "selected", "object", "names", "objects", "main_label"]
    pl.DataFrame(objects, names, orient="row").write_csv(tmp_path / "objects.csv")
    frequency = {(image, label): k / n for _, image, label, k, n in counts}
    told = {}
    for _, image, label, k, group, named, number, main in objects:
        each = told.setdefault(image, {"number": number, "main": main, "of": {}, "names": set()})
        each["of"][label] = (group or 0, k)
        each["names"] |= {label} if named else set()
    return predictions, tmp_path, frequency, told


def found(table, of="statistic"):
    return {row[of]: (row["images"], row["of"]) for row in table.iter_rows(named=True)}


def test_what_people_see(world):
    predictions, folder, frequency, told = world
    people = read_people(predictions, counts=folder / "counts.csv", objects=folder / "objects.csv")
    table = found(compare_labels_with_people(predictions, people))
    own = {
        i: CLASSES[k] for i, k in zip(predictions.images.tolist(), predictions.labels, strict=True)
    }
    asked = [i for i in own if (i, own[i]) in frequency]
    others = {
        i: [f for (j, label), f in frequency.items() if j == i and label != own[i]] for i in asked
    }
    both = [i for i in asked if others[i]]

    def mine(image):
        return frequency[image, own[image]]

    assert table["the own label is selected by nobody"] == (sum(mine(i) == 0 for i in asked), 70)
    for text, share in (("as often", 1), ("half as often", 0.5)):
        expected = sum(max(others[i]) >= share * mine(i) and max(others[i]) > 0 for i in both)
        assert table[f"another label is selected {text}"] == (expected, len(both))
    one = [i for i in asked if i in told and told[i]["number"] == 1]
    several = sum((mine(i) > 0) + sum(f > 0 for f in others[i]) > 1 for i in one)
    assert table["with one object, several labels are selected"] == (several, len(one))
    for text, so in (
        ("1 object", lambda n: n == 1), ("2 objects", lambda n: n == 2),
        ("3 objects or more", lambda n: n >= 3),
    ):  # fmt: skip
        assert table[text] == (sum(so(each["number"]) for each in told.values()), 60)
    another = {i for i in told if told[i]["main"] != own[i]}
    assert table["the main label is another"] == (len(another), 60)
    many = [i for i in told if told[i]["number"] > 1]
    differ = sum(
        told[i]["of"][told[i]["main"]][0] != told[i]["of"].get(own[i], (0,))[0] for i in many
    )
    assert table["with several objects, the main one is another"] == (differ, len(many))
    missed = sum(own[i] not in told[i]["of"] for i in told)
    assert table["the own label is chosen for no object"] == (missed, 60)


def test_what_people_say_of_predictions(world):
    predictions, folder, frequency, told = world
    people = read_people(predictions, counts=folder / "counts.csv", objects=folder / "objects.csv")
    every = compare_predictions_with_people(predictions, people)
    own = {
        i: CLASSES[k] for i, k in zip(predictions.images.tolist(), predictions.labels, strict=True)
    }
    for c, name in enumerate(predictions.classifiers):
        table = found(every.filter(classifier=name))
        said = {
            i: [CLASSES[k] for k in each]
            for i, each in zip(predictions.images.tolist(), predictions.answers[c], strict=True)
            if each[0] >= 0
        }
        for which, so in (("several objects", lambda n: n > 1), ("one object", lambda n: n == 1)):
            images = [i for i in said if i in told and so(told[i]["number"])]
            right = sum(said[i][0] == own[i] for i in images)
            any_of = sum(said[i][0] in told[i]["names"] for i in images)
            assert table[f"{which}: right by the own label"] == (right, len(images))
            assert table[f"{which}: right by any object"] == (any_of, len(images))
        images = [i for i in said if i in told and told[i]["main"] != own[i]]
        for which, expected in (
            ("own", sum(said[i][0] == own[i] for i in images)),
            ("main", sum(said[i][0] == told[i]["main"] for i in images)),
        ):
            assert table[f"another main label: right by the {which} label"] == (
                expected,
                len(images),
            )
        corrected = [i for i in said if i in told and own[i] in said[i][1:]]
        groups = [
            (told[i]["of"].get(said[i][0], (0,))[0], told[i]["of"].get(own[i], (0,))[0])
            for i in corrected
        ]
        two = sum(0 < a != b > 0 for a, b in groups)
        assert table["top-5 corrections that are two objects"] == (two, len(corrected))
        wrong = [i for i in said if said[i][0] != own[i] and (i, own[i]) in frequency]
        theirs = {i: frequency.get((i, said[i][0]), 0.0) for i in wrong}
        assert table["mistakes selected as often as the own label"] == (
            sum(theirs[i] >= frequency[i, own[i]] and theirs[i] > 0 for i in wrong), len(wrong),
        )  # fmt: skip
        assert table["mistakes selected by half or more"] == (
            sum(theirs[i] >= 0.5 for i in wrong), len(wrong),
        )  # fmt: skip


def test_a_label_that_nobody_selects_is_not_selected_as_often(tmp_path):
    # Own labels at 0 of 4: with one other at 0, with one at 1, and alone; then one at 4 beside 2.
    text = "image,label,selected,shown\n"
    rows = ["i,a,0,4", "i,b,0,4", "j,a,0,4", "j,b,1,4", "k,a,0,4", "l,a,4,4", "l,b,2,4"]
    (tmp_path / "c.csv").write_text(text + "\n".join(rows) + "\n", encoding="utf-8")
    answers = np.array([[[1], [1], [1], [1]], [[2], [2], [2], [0]]])
    predictions = Predictions("v", list("ijkl"), CLASSES, [0, 0, 0, 0], ("p", "q"), answers)
    people = read_people(predictions, counts=tmp_path / "c.csv")
    table = found(compare_labels_with_people(predictions, people))
    assert table["another label is selected as often"] == (1, 3)
    assert table["another label is selected half as often"] == (2, 3)
    every = compare_predictions_with_people(predictions, people)
    for classifier, expected in (("p", (1, 4)), ("q", (0, 3))):
        mistakes = found(every.filter(classifier=classifier))
        assert mistakes["mistakes selected as often as the own label"] == expected
    assert people_beside(predictions, people).first[2].tolist() == [-1, 1, -1, 0]


def test_what_people_take_images_for(world):
    predictions, folder, frequency, told = world
    people = read_people(predictions, counts=folder / "counts.csv", objects=folder / "objects.csv")
    every = people_beside(predictions, people)
    assert every.classifiers == ("p", "q", "r", "people, selecting", "people, choosing")
    for row, image in enumerate(predictions.images.tolist()):
        of = {label: f for (i, label), f in frequency.items() if i == image}
        said = every.first[3, row]
        if not any(of.values()):
            assert said == -1
        else:
            best = [label for label, f in of.items() if f == max(of.values())]
            own = CLASSES[predictions.labels[row]]
            assert CLASSES[said] == own if own in best else CLASSES[said] in best
        assert every.first[4, row] == (CLASSES.index(told[image]["main"]) if image in told else -1)
    table = confusion(every).filter(participant="people, choosing")
    assert table["count"].sum() == 60


def test_the_reports_section_has_every_number(world):
    predictions, folder, *_ = world
    tables = {name: folder / f"{name}.csv" for name in ("counts", "objects")}
    people = read_people(predictions, **tables)
    section = PeopleAnswers.compute(Source(zoo.study("tiny"), None, people=(predictions, people)))
    (block,) = section.blocks()
    assert len(block.figures) == 3
    assert [row[0] for row in block.table.rows] == compare_labels_with_people(predictions, people)[
        "statistic"
    ].to_list()
    assert len(block.figures[1].data["judged-chart"]) == 3 * 3  # classifiers, and ways to be right
    with refused(StudyError, "no-tables-of-people"):
        PeopleAnswers.compute(Source(zoo.study("tiny"), None))
    people = read_people(predictions, counts=folder / "counts.csv")
    (block,) = PeopleAnswers.compute(
        Source(zoo.study("tiny"), None, people=(predictions, people))
    ).blocks()
    # Nobody was asked about objects: what is drawn are shares of images, and mistakes.
    assert [figure.id for figure in block.figures] == ["people-chart", "mistakes-chart"]
    for name, figure in zip(("people", "judged"), block.figures, strict=True):
        drawn = FIGURES_BY_NAME[name].draw(predictions, people)
        assert drawn["datasets"][figure.id] == figure.data[figure.id]


def test_the_figures_command_asks_for_what_it_needs(tmp_path):
    needs = {"figure": "people", "needed": "--input objects, --input counts or both; give one"}
    for words, rule, told in ((("people", tmp_path), "figure-needs-input", needs),):
        check(refusal(["figure", *words, "--out", tmp_path / "f.png"]), rule, told)


def test_either_table_is_enough_for_its_rows(world):
    predictions, folder, *_ = world
    for name, figures in (("counts", {"25", "7", "23a"}), ("objects", {"3a", "19", "5", "26"})):
        people = read_people(predictions, **{name: folder / f"{name}.csv"})
        assert set(compare_labels_with_people(predictions, people)["figure"]) == figures
        assert compare_predictions_with_people(predictions, people)["share"].is_between(0, 1).all()
    with refused(StudyError, "seen-by-people-unknown"):
        compare_labels_with_people(predictions, read_people(predictions))
    with refused(StudyError, "seen-by-people-unknown"):
        compare_predictions_with_people(predictions, read_people(predictions))


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("image,label,selected\n0.jpg,a,1\n", ("table-lacks-columns", {"columns": ["shown"]})),
        ("image,label,selected,shown\n0.jpg,a,3,2\n", ("label-counts-not-within-shown",)),
        ("image,label,selected,shown\n0.jpg,a,0,0\n", ("label-counts-not-within-shown",)),
        (
            "dataset,image,label,selected,shown\nv2,0.jpg,a,1,2\n",
            ("people-images-unknown", {"hint": "; they are there as images of data set 'v2'"}),
        ),
    ],
)
def test_tables_that_cannot_be_are_refused(world, text, broken):
    predictions, folder, *_ = world
    (folder / "bad.csv").write_text(text, encoding="utf-8")
    with refused(StudyError, *broken):
        read_people(predictions, counts=folder / "bad.csv")


RATERS, NETWORKS = DATA / "reassessed-imagenet" / "raters.npz", DATA / "imagenetv2" / "data"


@pytest.mark.skipif(
    not (RATERS.is_file() and NETWORKS.is_dir()),
    reason=f"no published files in {DATA}; set BAYESREP_DATA",
)
def test_published_answers_about_labels_count_as_by_hand(tmp_path):
    predictions = read_test_set(NETWORKS, VALIDATION_SET)
    answers = read_raw("reassessed", RATERS).with_columns(dataset=pl.lit(predictions.dataset))
    words = {"yes": ["yes"], "no": ["no"], "maybe": ["maybe"], "maybe_is": "no"}
    count_labels(decide(answers, **words)).write_parquet(tmp_path / "c.parquet")
    people = read_people(predictions, counts=tmp_path / "c.parquet")
    table = found(compare_labels_with_people(predictions, people))
    assert table["another label is selected as often"] == (11_668, 24_889)
    assert table["another label is selected half as often"] == (14_553, 24_889)
    assert table["the own label is selected by nobody"] == (6_064, 24_889)
    every = compare_predictions_with_people(predictions, people)
    mistakes = found(every.filter(classifier="resnet50"))
    assert mistakes["mistakes selected as often as the own label"] == (3_849, 11_914)
