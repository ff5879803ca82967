"""Figures and numbers of the papers: drawn of small worlds, counted against loops, refused."""

import csv
import re
from typing import Any

import numpy as np
import polars as pl
import pytest
import zoo
from refusals import refused

from bayesrep import OptionError, StudyError, cli
from bayesrep.estimators.finite_sample import (
    finite_sample_gaps,
    mean_frequencies,
)
from bayesrep.protocols import read_people
from bayesrep.report.figure_catalogue import STUDY_NEEDS
from bayesrep.report.pictures import Pictures
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study_folder import StudyFolder
from experiments.papers import __main__ as papers
from experiments.papers import catalogue, printed
from experiments.papers.gallery import grid
from experiments.papers.inputs import PaperInputs, PaperPaths
from experiments.papers.printed import half_image_gaps, naive_gap
from experiments.papers.registry import PAPER_FIGURES
from experiments.papers.tsipras2020.labels import draw_annotators, label_numbers, labels_and_objects

pytestmark = pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")  # a small study
CLASSES = tuple("abcdef")
NAMES = ("p", "q$", "<b>r", "s")


def answers(dataset, images, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(6, size=images)
    ranked = np.argsort(rng.random((4, images, 6)), axis=2)
    right = rng.random((4, images)) < np.array([0.3, 0.5, 0.6, 0.8])[:, None]
    for c, n in zip(*np.nonzero(right), strict=True):
        place = int(np.flatnonzero(ranked[c, n] == labels[n])[0])
        ranked[c, n, [0, place]] = ranked[c, n, [place, 0]]
    for c in range(4):  # nobody gets the first image right
        if ranked[c, 0, 0] == labels[0]:
            ranked[c, 0, :2] = ranked[c, 0, 1::-1]
    confidence = rng.uniform(0.4, 1, (4, images))
    names = [f"{CLASSES[k]}/{dataset}-{n}.png" for n, k in enumerate(labels)]
    return Predictions(dataset, names, CLASSES, labels, NAMES, ranked[:, :, :5], confidence)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder of answers, with everything that figures take beside it."""
    from PIL import Image

    root = tmp_path_factory.mktemp("papers")
    both = [answers("v1", 80, 0), answers("v2", 60, 1)]
    StudyContents(answers=both).write(root / "study")
    rng = np.random.default_rng(2)
    sets, counts, objects, humans = [], [], [], []
    for data in both:
        for n, image in enumerate(data.images.tolist()):
            own = int(data.labels[n])
            other = (own + 1 + n % 5) % 6
            sets += [(data.dataset, image, CLASSES[k]) for k in ([own, other] if n % 4 else [own])]
            for person in ("Ann", "Bob"):
                said = own if rng.random() < 0.9 else other
                humans.append((data.dataset, image, person, CLASSES[said], float(n)))
    data = both[0]
    for n, image in enumerate(data.images.tolist()):
        own = int(data.labels[n])
        other = (own + 1 + n % 5) % 6
        for label, selected in ((own, int(rng.integers(0, 10))), (other, int(rng.integers(0, 10)))):
            counts.append(("v1", image, CLASSES[label], selected, 9))
        several = n % 3 == 0
        main = other if n % 6 == 0 else own
        for place, label in enumerate([own, other] if several else [own], 1):
            row = ("v1", image, CLASSES[label], 0 if n == 7 else 8, place, True, 1 + several)
            objects.append((*row, CLASSES[main], 6 if label == main else 2, 9, 7))
    tables = {
        "sets": (sets, ["dataset", "image", "label"]),
        "counts": (counts, ["dataset", "image", "label", "selected", "shown"]),
        "humans": (humans, ["dataset", "image", "labeler", "answer", "seconds"]),
        "objects": (
            objects,
            "dataset image label selected object names objects main_label main shown agreed"
            "".split(),
        ),
    }
    for name, (rows, columns) in tables.items():
        pl.DataFrame(rows, columns, orient="row").write_csv(root / f"{name}.csv")
    groups = {"class": CLASSES, "kind": ["x", "x", "x", "y", "y", ""]}
    pl.DataFrame(groups).write_csv(root / "classes.csv")
    for n, image in enumerate(data.images.tolist()):
        path = root / "pictures" / image
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 30), (3 * n, 100, 50)).save(path)
    return root, both


def given(root):
    return PaperPaths(
        root / "study",
        labels=(root / "sets.csv",),
        humans=root / "humans.csv",
        objects=root / "objects.csv",
        counts=root / "counts.csv",
        classes=root / "classes.csv",
        images=root / "pictures",
    )


OF_ANSWERS = [
    name for name in PAPER_FIGURES if name.partition("-")[0] in ("anzaku", "shankar", "tsipras")
]


@pytest.fixture(scope="module")
def inputs(world):
    return PaperInputs(given(world[0]))


@pytest.mark.parametrize("name", OF_ANSWERS)
def test_every_figure_of_answers_is_drawn(name, inputs):
    figure = PAPER_FIGURES[name]
    few = {"runs": 2} if "runs" in figure.options else {}
    drawn = figure.draw(*(getattr(inputs, each) for each in figure.inputs), **few)
    drawn.canvas.draw()
    assert drawn.axes


def test_every_input_of_a_figure_is_what_its_entry_needs():
    """The list promises what drawing then takes."""
    reads = {
        "study": {"study", "counts"},
        "answers_with_confidence": {"probabilities"},
    }
    reads |= {"people": {"--objects", "--counts", "--objects|--counts"}, "groups": {"--classes"}}
    reads |= {"sets": {"--labels"}, "both_sets": {"--labels"}, "pictures": {"--images"}}
    reads |= {"reference": {"labels", "top-5"}, "answers_to_both": {"labels"}, "humans": set()}
    reads |= {"any_pictures": set()}
    for entry in catalogue.entries():
        if entry.name:
            possible = set().union(*(reads[each] for each in PAPER_FIGURES[entry.name].inputs))
            assert set(entry.needs) <= possible, entry.name
            for each in PAPER_FIGURES[entry.name].inputs:
                assert not reads[each] or reads[each] & set(entry.needs), (entry.name, each)
        else:
            assert entry.why


def test_held_is_what_columns_tell(world, tmp_path):
    root, both = world
    assert StudyFolder(root / "study").find_parts() == {
        "answers",
        "labels",
        "top-5",
        "probabilities",
    }
    zoo.cut(zoo.study("tiny"), images=20).write(tmp_path / "sim")
    assert StudyFolder(tmp_path / "sim").find_parts() == {"counts", "answers", "study"}
    with refused(StudyError, "neither-study-nor-predictions", {"path": str(tmp_path)}):
        StudyFolder(tmp_path).find_parts()
    with refused(StudyError, "study-path-missing", {"path": str(tmp_path / "none")}):
        StudyFolder(tmp_path / "none").find_parts()


def test_labels_of_an_image_are_counted_once(world):
    data = world[1][0]
    expected = [
        len({*data.answers[:2, n].ravel().tolist(), int(data.labels[n])}) for n in range(80)
    ]
    assert label_numbers(data, [0, 1]).tolist() == expected
    missing = np.array(data.answers)
    missing[0, :5] = -1
    holes = Predictions("v1", data.images, CLASSES, data.labels, NAMES, missing)
    expected[:5] = [
        len({*data.answers[1, n].ravel().tolist(), int(data.labels[n])}) for n in range(5)
    ]
    assert label_numbers(holes, [0, 1]).tolist() == expected


@pytest.mark.parametrize("paper", list(catalogue.PAPER_TITLES))
def test_all_of_a_paper_on_one_page(paper, world, tmp_path, capsys):
    root, _ = world
    out = tmp_path / "page"
    arguments = [paper, root / "study", "--out", out, "--quiet"]
    for name in ("sets", "humans", "objects", "counts", "classes"):
        arguments += ["--input", f"{'labels' if name == 'sets' else name}={root / name}.csv"]
    arguments += ["--input", f"images={root / 'pictures'}"]
    assert papers.main([str(each) for each in arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == sum(1 for _ in catalogue.of_paper(paper)) + 1
    page = (out / "index.html").read_text(encoding="utf-8")
    drawn = {file.stem for file in out.glob("*.png")}
    for name in drawn:
        assert (out / f"{name}.png").stat().st_size > 2_000
        assert f'src="{name}.png"' in page
    needed = {entry.name for entry in catalogue.of_paper(paper) if not entry.lacks(_there())}
    assert drawn == needed - {""}
    assert "<b>r" not in page
    with (out / "numbers.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == sum(each.paper == paper for each in printed.printed_numbers())
    if paper == "tsipras2020":
        by = {row["what"]: row["ours"] for row in rows}
        assert by["images of several objects"] == "27"
        assert by["images of the Classify task, of 10,000"] == "80"
    with refused(OptionError, "output-path-exists", {"path": str(out)}):
        papers.run([str(each) for each in arguments])


def _there():
    options = ("labels", "humans", "objects", "counts", "classes", "images")
    return {"answers", "labels", "top-5", "probabilities", *(f"--{name}" for name in options)}


def test_keys_of_numbers_are_those_that_are_printed():
    known = {(each.paper, each.key) for each in printed.printed_numbers()}
    assert len(known) == len(printed.printed_numbers())
    for paper, keys, needs, _ in printed._NUMBER_MAKERS:
        assert {(paper, key) for key in keys} <= known
        assert all(part in {*STUDY_NEEDS, "--labels", "--objects", "--counts"}
                   for need in needs for part in need.split("|"))  # fmt: skip


def test_pictures_that_cannot_be_shown(tmp_path):
    with refused(StudyError, "no-pictures-in-folder", {"folder": str(tmp_path)}):
        Pictures.in_folder(tmp_path)
    with refused(StudyError, "picture-folder-missing", {"folder": str(tmp_path / "none")}):
        Pictures.in_folder(tmp_path / "none")
    (tmp_path / "a.png").write_bytes(b"not an image")
    pictures = Pictures.in_folder(tmp_path)
    assert pictures.has("some/where/a.png")
    assert pictures.has("a")
    assert not pictures.has("b")
    with refused(StudyError, "picture-not-decodable", {"path": str(tmp_path / "a.png")}):
        grid(pictures, ["a.png"], [""], title="")


def test_images_by_selection_frequency(tmp_path):
    from PIL import Image

    study = zoo.cut(zoo.study("tiny"), images=60, classifiers=2)
    study.write(tmp_path / "sim")
    names = study.reference.images.tolist()
    (tmp_path / "pictures").mkdir()
    for name in names[:40]:
        Image.new("L", (20, 30)).save(tmp_path / "pictures" / f"{name}.jpg")
    for figure in ("paper-1", "paper-8"):
        out = tmp_path / f"{figure}.svg"
        arguments = [figure, str(tmp_path / "sim"), "--input", f"images={tmp_path / 'pictures'}"]
        assert papers.main([*arguments, "--out", str(out)]) == 0
        shown = [float(text) for text in re.findall(r"([\d.]+) %", out.read_text("utf-8"))]
        frequency = 100 * study.reference.selected / study.reference.shown
        assert shown == sorted(shown)
        assert set(shown) <= set(np.round(frequency[:40]).tolist())
        if figure == "paper-1":
            assert (shown[0], shown[-1]) == (frequency[:40].min(), frequency[:40].max())
        kinds: dict[str, Any] = {
            "paper-1": (StudyError, "study-without-image-labels"),
            "paper-8": (OptionError, "figure-takes-no-option", {"option": "class"}),
        }
        with refused(*kinds[figure]):
            papers.run([*arguments, "--class", "x", "--out", str(tmp_path / "of-a-class.svg")])


# ------------------------------------------------------------------ other images


@pytest.fixture(scope="module")
def study():
    return zoo.study("ragged")


def test_means_and_their_bootstrap(study):
    table = mean_frequencies(study, bootstrap=40)
    for row in table.iter_rows(named=True):
        data = study.datasets[row["dataset"]]
        values = data.selected / data.shown
        assert row["mean"] == pytest.approx(values.mean(), abs=1e-14)
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert row["standard_error"] == pytest.approx(error, rel=1e-12)
        assert row["lower"] < row["mean"] < row["upper"]
    assert table.equals(mean_frequencies(study, bootstrap=40))
    with refused(OptionError, "interval-without-replicates", {"bootstrap": 0}):
        mean_frequencies(study, bootstrap=0)


def test_the_finite_sample_term_is_binomial(study):
    table = finite_sample_gaps(study)
    accuracy = study.replication.correct.mean(axis=0)
    error = np.sqrt(accuracy * (1 - accuracy) / 600)
    np.testing.assert_allclose(table["standard_error"][:-1], error, rtol=1e-12)
    together = study.replication.correct.mean(axis=1).std() / np.sqrt(600)
    assert table["standard_error"][-1] == pytest.approx(together, rel=1e-12)
    assert table["classifier"].to_list() == [*study.classifiers, None]
    # Half as exact of the classifiers that Engstrom et al. print (table 2, 10,000 images): not 0.1.
    assert 100 * 1.96 * np.sqrt(0.6576 * 0.3424 / 10_000) == pytest.approx(0.93, abs=0.005)


def test_half_the_images_change_the_estimate_by_chance_alone(study):
    gaps, whole = (
        half_image_gaps(study, halves=6, seed=1),
        naive_gap(SufficientStatistics.of(study)),
    )
    assert len({whole, *gaps.tolist()}) == 7
    assert np.abs(gaps - whole).max() < 0.15


def test_check_prints_them(study, tmp_path, capsys):
    study.write(tmp_path / "sim")
    assert cli.main(["check", str(tmp_path / "sim")]) == 0
    said = capsys.readouterr().out
    assert "for other images)" in said
    assert "the finite-sample term" in said


def test_fewer_annotators_are_drawn_of_each_label(world):
    """Of the answers that there are: where all are alike the drawn ones are; none is asked twice.

    Means over draws are in tests/statistics.
    """
    root, (data, _) = world
    people = read_people(data, counts=root / "counts.csv")
    assert people.frequency is not None
    drawn = [draw_annotators(people, 3, seed=seed) for seed in range(20)]
    values = np.array([each.frequency.values for each in drawn])
    assert set(np.unique(np.rint(3 * values))) <= {0, 1, 2, 3}
    assert np.allclose(values * 3, np.rint(values * 3))
    of_nine = np.rint(9 * people.frequency.values)
    assert {0, 1, 8, 9} <= set(of_nine)
    least, most = np.maximum(of_nine - 6, 0) / 3, np.minimum(of_nine, 3) / 3
    assert ((values >= least - 1e-9) & (values <= most + 1e-9)).all()
    every = draw_annotators(people, 20, seed=0)
    assert (every.frequency.values == people.frequency.values).all()
    assert (every.shown.values == 9).all()
    with refused(StudyError, "drawn-annotators-below-one", {"annotators": 0}):
        draw_annotators(people, 0, seed=0)


def test_labels_to_choose_from_are_known_of_ones_own_tasks_alone(world, tmp_path):
    """What is published has only labels that somebody chose: figure 8b says so."""
    root, (data, _) = world
    chosen = pl.read_csv(root / "objects.csv").filter(pl.col("selected") > 0)
    chosen.write_csv(tmp_path / "published.csv")
    people = read_people(data, counts=root / "counts.csv", objects=tmp_path / "published.csv")
    left, right = labels_and_objects(data, people).axes
    assert left.collections
    assert not right.collections
    assert "not drawn" in right.texts[0].get_text()
    own = CLASSES[int(data.labels[1])]
    other = "b" if own == "a" else "a"
    row = ("v1", str(data.images[1]), other, 0, None, False, 1, own, 0, 9, 7)
    every = pl.read_csv(root / "objects.csv")
    one = pl.DataFrame([row], every.schema, orient="row")
    pl.concat([every.filter(pl.col("image") != row[1]), one]).write_csv(tmp_path / "own.csv")
    people = read_people(data, counts=root / "counts.csv", objects=tmp_path / "own.csv")
    assert labels_and_objects(data, people).axes[1].collections
