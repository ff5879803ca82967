"""Workers who answer many images: what they add to errors, in numbers, tables and commands."""

import json
import re
import zipfile
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import zoo
from crowds import asked_of, widening
from published import DATA
from refusals import check, refusal, refused
from scipy.special import stdtrit

import bayesrep
from bayesrep import Study, StudyError, WorkerAnswers
from bayesrep.answers import describe_crowd
from bayesrep.cli import main
from bayesrep.files import npy
from bayesrep.numerics.crowd import Z_975, cluster_covariance, overlap_correction, residuals
from bayesrep.posterior.groups import CellNames
from bayesrep.posterior.influences import Influences, center_draws
from bayesrep.posterior.workers import one_selection
from bayesrep.sources.exports.reassessed import RATING_NAMES
from bayesrep.studies.reading import check_study


def test_residuals_sum_to_zero_over_the_workers_of_an_image():
    image, worker, selected = asked_of(np.random.default_rng(0), 50, 5, 12, 1.0)
    r = residuals(image, worker, selected, 50, 12)
    assert np.abs(r.sum(axis=1)).max() < 1e-12
    k = np.bincount(image, selected)
    expected = selected - (k[image] - selected) / 4
    assert r.toarray()[image, worker] == pytest.approx(expected)


def test_an_image_of_one_answer_is_held_against_the_mean_of_all():
    r = residuals(np.arange(4), np.zeros(4, int), np.array([True, True, True, False]), 4, 1)
    assert r.toarray()[:, 0] == pytest.approx([0.25, 0.25, 0.25, -0.75])


@pytest.mark.parametrize("blocks", [1, 3])
def test_the_covariance_is_that_over_all_pairs_of_a_workers_images(blocks):
    rng = np.random.default_rng(1)
    image, worker, selected = asked_of(rng, 30, 4, 9, 2.0)
    r = residuals(image, worker, selected, 30, 9)
    steps = rng.standard_normal((blocks, 30, 2)) * 0.3 + 1
    dense, expected = r.toarray(), np.zeros((2, 2))
    pairs = [(a, b) for a in range(blocks) for b in range(blocks) if a != b or blocks == 1]
    for a, b in pairs:
        for x in range(30):
            for y in range(30):
                if x != y:
                    both = dense[x] @ dense[y]
                    expected += both * np.outer(steps[a, x], steps[b, y]) / len(pairs)
    found = cluster_covariance([(r[:10], steps[:, :10]), (r[10:], steps[:, 10:])], 1.0)
    stretch = stdtrit(found.effective - 1, 0.975) / Z_975
    values, vectors = np.linalg.eigh((expected + expected.T) / 2)
    expected = (vectors * np.maximum(values, 0)) @ vectors.T * np.outer(stretch, stretch)
    assert found.covariance == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_one_row_of_steps_stands_for_all_images():
    image, worker, selected = asked_of(np.random.default_rng(2), 40, 4, 8, 1.0)
    r = residuals(image, worker, selected, 40, 8)
    one = cluster_covariance([(r, np.full((2, 1, 1), 0.1))], 1.2)
    all_rows = cluster_covariance([(r, np.full((2, 40, 1), 0.1))], 1.2)
    assert one.covariance == pytest.approx(all_rows.covariance, rel=1e-12)
    assert one.effective == pytest.approx(all_rows.effective)


def test_workers_who_meet_are_counted_over_all_pairs():
    image, worker, selected = asked_of(np.random.default_rng(3), 24, 3, 7, 0.5, grid=4)
    asked = [set(worker[image == x].tolist()) for x in range(24)]
    factors = [
        1 + (len(asked[x] & asked[y]) - 1) / 4
        for x in range(24)
        for y in range(24)
        if x != y
        for _ in asked[x] & asked[y]
    ]
    assert overlap_correction([residuals(image, worker, selected, 24, 7)]) == pytest.approx(
        np.mean(factors)
    )


def _cells(counts):
    shown, selected = np.array(sorted((n, k) for k, n in counts)).T
    return CellNames(np.full(len(shown), ""), selected, shown)


def test_answers_move_accuracies_by_the_global_parameters_and_by_their_own():
    """In every block by regression: w Cov of fitted values, and their own Cov of residuals."""
    random = np.random.default_rng(0)
    shared = random.standard_normal((2, 500, 3)) * [1, 10, 0.1]
    accuracy, logit = (
        shared @ random.standard_normal((3, 4)) + random.standard_normal((2, 500, 4)) for _ in "ab"
    )
    directions = random.standard_normal((4, 2))
    found = Influences.from_draws(accuracy, shared, 0.3).project(center_draws(logit), directions)
    for each, x, a, q in zip(found, *map(center_draws, (shared, accuracy, logit)), strict=True):
        of_a, of_q = (x @ np.linalg.lstsq(x, y)[0] for y in (a, q))
        own = np.diag(np.mean((a - of_a) * (q - of_q), axis=0))
        wanted = 0.3 * of_q.T @ of_a / len(x) + own
        np.testing.assert_allclose(each, wanted @ directions, atol=1e-12)


def test_one_selection_more_or_less_is_between_neighbours():
    cells = _cells([(0, 4), (1, 4), (4, 4), (2, 3)])
    f = 10.0 * cells.selected / cells.shown
    for up in (True, False):
        above, below, part = one_selection(cells, np.ones(4, bool), up=up)
        # A line in k: whatever the neighbours are, one selection more is a step of its slope.
        expected = np.where(cells.shown == 4, 2.5, 10 / 3)
        assert part * (f[above] - f[below]) == pytest.approx(expected)
    above, below, part = one_selection(cells, cells.shown == 3, up=True)
    assert not part.any()


@pytest.fixture(scope="module")
def two_crowds():
    return zoo.study("workers"), zoo.posterior("workers", **zoo.QUICK)


def _one_crowd(study):
    """The same, but that each worker of the replication is one of the reference, too."""
    reference, replication = study.reference.answers, study.replication.answers
    known = replace(replication, workers=reference.workers[: len(replication.workers)])
    datasets = {**study.datasets, "replication": replace(study.replication, answers=known)}
    return replace(study, datasets=datasets)


def test_intervals_of_classifiers_know_workers_and_estimates_do_not_move(two_crowds):
    study, posterior = two_crowds
    table = bayesrep.summarize(study, posterior, allow_unconverged=True)
    unknown = _nameless(study)
    before = bayesrep.summarize(unknown, posterior, allow_unconverged=True)
    assert table["adjusted_accuracy"].to_numpy() == pytest.approx(
        before["adjusted_accuracy"].to_numpy(), abs=1e-12
    )
    width, alone = (t["upper"] - t["lower"] for t in (table, before))
    assert (width > alone).all()


def test_workers_of_one_answer_each_change_nothing(two_crowds):
    study, posterior = two_crowds

    def apart(data, prefix):
        held = data.answers
        names = np.char.add(prefix, np.arange(len(held.image)).astype(str))
        each = WorkerAnswers(names, held.image, np.arange(len(names)), held.selected)
        return replace(data, answers=each)

    alone = replace(study, datasets={r: apart(d, r) for r, d in study.datasets.items()})
    assert widening(alone, posterior) == pytest.approx(1, abs=1e-6)


def test_one_data_set_with_workers_is_less_than_both(two_crowds):
    study, posterior = two_crowds
    datasets = dict(study.datasets)
    datasets["replication"] = replace(datasets["replication"], answers=None)
    some = replace(study, datasets=datasets, provenance={})
    assert 1 < widening(some, posterior)
    found = describe_crowd(some)
    assert found.in_common is None
    assert found.datasets["dataset"].to_list() == ["reference"]
    assert "reference alone" in found.sentence


def test_description_of_a_crowd(two_crowds):
    study, _ = two_crowds
    two, one = describe_crowd(study), describe_crowd(_one_crowd(study))
    assert (two.in_common, one.in_common) == (0, 100)
    assert two.difference_workers > one.difference_workers
    assert two.difference_images == pytest.approx(one.difference_images, rel=1e-9)
    assert two.sentence.startswith("Two crowds, no worker in common: ")
    assert one.sentence.startswith("One crowd for both data sets: ")
    answers = [int(data.shown.sum()) for data in study.datasets.values()]
    row = two.datasets.row(0, named=True)
    assert row["effective_answers"] < row["answers"] == answers[0]
    assert two.workers["answers"].sum() == sum(answers)


def test_two_crowds_widen_intervals_more_than_one(two_crowds):
    study, posterior = two_crowds
    assert widening(study, posterior) > widening(_one_crowd(study), posterior) >= 1


def test_odd_workers_are_found():
    """Among 40 who look, one each who always says yes, always no, and answers at random."""
    rng = np.random.default_rng(4)
    image, worker, selected = asked_of(rng, 600, 9, 43, 0.5)
    selected = np.where(worker == 0, True, np.where(worker == 1, False, selected))
    selected = np.where(worker == 2, rng.random(len(selected)) < 0.5, selected)
    answers = WorkerAnswers.of(image, worker.astype(str), selected)
    k, n = answers.counts(600)
    side = {"selected": k, "shown": n, "correct": np.ones((600, 1))}
    sides = {"reference": {**side, "answers": answers}, "replication": side}
    workers = describe_crowd(Study.from_arrays(**sides, classifiers=["c"])).workers
    for number, way in enumerate(("always_yes", "always_no", "at_random")):
        assert workers.filter(pl.col(way) > 0.5)["worker"].to_list() == [str(number)]
    lenient = workers.filter(pl.col("worker") == "0")["leniency"].item()
    assert lenient > 0.15 > -0.15 > workers.filter(pl.col("worker") == "1")["leniency"].item()


def test_one_worker_for_everything_and_one_image_are_described():
    one = WorkerAnswers.of(np.arange(5), ["w"] * 5, [True, False, True, True, True])
    side = {"selected": [1, 0, 1, 1, 1], "shown": 1, "correct": np.ones((5, 1)), "answers": one}
    study = Study.from_arrays(reference=side, replication=side, classifiers=["c"])
    found = describe_crowd(study)
    assert np.isfinite(found.difference_workers)
    assert found.in_common == 1
    assert "one worker's" in found.sentence


RATERS = DATA / "reassessed-imagenet" / "raters.npz"


@pytest.mark.skipif(
    not RATERS.is_file(), reason=f"no published files in {RATERS.parent}; set BAYESREP_DATA"
)
def test_real_raters_move_the_mean_more_than_real_images():
    """Reassessed ImageNet: 85 raters, 924,810 answers, halves of the questions and of the crowd."""
    with zipfile.ZipFile(RATERS) as archive:  # a fifth of the time that NumPy takes to read it
        size = archive.getinfo("tensor.npy").file_size
        with archive.open("tensor.npy") as stream:
            tensor = npy.read(stream, size)
    rater, question, answer = np.nonzero(tensor)
    yes = answer == RATING_NAMES.index("yes")
    assert len(yes) == 924_810
    names = np.arange(len(tensor)).astype(str)
    rng = np.random.default_rng(0)
    first, ours = rng.random(tensor.shape[1]) < 0.5, rng.random(len(tensor)) < 0.5

    def side(of):
        rows, place = np.unique(question[of], return_inverse=True)
        answers = WorkerAnswers.of(place, names[rater[of]], yes[of])
        selected, shown = answers.counts(len(rows))
        right = np.ones((len(rows), 1), dtype=bool)
        return {"selected": selected, "shown": shown, "correct": right, "answers": answers}

    halves = first[question], ~first[question]
    crowds = ours[rater], ~ours[rater]
    one, two = (
        describe_crowd(Study.from_arrays(reference=side(a), replication=side(b), classifiers=["c"]))
        for a, b in (halves, (halves[0] & crowds[0], halves[1] & crowds[1]))
    )
    row = one.datasets.row(0, named=True)
    assert (row["workers"], one.in_common, two.in_common) == (85, 85, 0)
    assert 100 * row["error_workers"] == pytest.approx(0.64, abs=0.005)
    assert 100 * row["error_images"] == pytest.approx(0.08, abs=0.005)
    assert 100 * one.difference_images == pytest.approx(0.12, abs=0.005)
    assert 100 * one.difference_workers == pytest.approx(0.01, abs=0.005)
    assert 100 * two.difference_workers == pytest.approx(1.32, abs=0.005)


# --- a study's folder -------------------------------------------------------------------------


def _study(**changes):
    answers = WorkerAnswers.of([0, 0, 1, 1], ["a", "b", "a", "ä"], [True, False, True, True])
    side = {"selected": [1, 2], "shown": 2, "correct": np.ones((2, 1)), "images": ["x", "y"]}
    return Study.from_arrays(
        reference={**side, "answers": answers, **changes}, replication=side, classifiers=["c"]
    )


def test_answers_by_worker_come_back_from_a_folder(tmp_path):
    study = _study()
    study.write(tmp_path / "s")
    read = bayesrep.read_study(tmp_path / "s")
    assert read.fingerprint() == study.fingerprint()
    assert read.replication.answers is None
    before, after = study.reference.answers, read.reference.answers
    assert after.workers.tolist() == before.workers.tolist()
    for name in ("image", "worker", "selected"):
        assert (getattr(after, name) == getattr(before, name)).all()


CONTRADICTED = "worker-answers-contradict-counts"
BEYOND = {"answers": WorkerAnswers.of([0, 5], ["a", "b"], [1, 1])}
OF_REFERENCE = {"where": "annotations.parquet, data set 'reference'"}
NO_ROLE = {"data_sets": ["v3"], "manifest_file": "study.json"}
NOBODY = pl.lit(None, pl.String).alias("worker")


@pytest.mark.parametrize(
    ("changes", "rule", "facts"),
    [
        ({"selected": [2, 2]}, CONTRADICTED, {"images": ["x"]}),
        ({"images": ["x", "z"], "selected": [1, 1]}, CONTRADICTED, {"images": ["z"]}),
        (BEYOND, "worker-answer-out-of-range", {"kind": "image", "index": 5, "count": 2}),
    ],
)
def test_answers_that_are_not_those_counted_are_refused(changes, rule, facts):
    with refused(StudyError, rule, facts):
        _study(**changes)


@pytest.mark.parametrize(
    ("first", "change", "rule", "facts"),
    [
        (1, pl.col("image"), CONTRADICTED, OF_REFERENCE),
        (0, pl.col("image").replace("x", "q"), "images-without-counts", {"images": ["q"]}),
        (0, NOBODY, "name-column-incomplete", {"column": "worker"}),
        (0, pl.lit("v3").alias("dataset"), "data-set-without-role", NO_ROLE),
    ],
)
def test_damaged_tables_of_answers_are_named(tmp_path, first, change, rule, facts):
    _study().write(tmp_path / "s")
    file = tmp_path / "s" / "annotations.parquet"
    pl.read_parquet(file)[first:].with_columns(change).write_parquet(file)
    check(check_study(tmp_path / "s")[0], rule, facts)


def _tables(folder):
    rows = [
        (d, f"i{x}", f"w{w}@example.org", (x + w) % 3 > 0)
        for d in ("v1", "v2")
        for x in range(4)
        for w in range(3)
    ]
    said = pl.DataFrame(rows, ("dataset", "image", "worker", "selected"), orient="row")
    said.write_csv(folder / "a.csv")
    right = [(d, f"i{x}", x > 0) for d in ("v1", "v2") for x in range(4)]
    pl.DataFrame(right, ("dataset", "image", "c"), orient="row").write_csv(folder / "p.csv")
    return [str(folder / name) for name in ("a.csv", "p.csv")]


def test_import_writes_codes_for_workers_unless_they_are_to_be_kept(tmp_path, capsys):
    files = _tables(tmp_path)
    command = ["import", "tables", *files, "--reference", "v1", "--replication", "v2"]
    assert main([*command, "--out", str(tmp_path / "coded")]) == 0
    assert main([*command, "--out", str(tmp_path / "kept"), "--keep-workers"]) == 0
    coded, kept = (bayesrep.read_study(tmp_path / name) for name in ("coded", "kept"))
    assert kept.reference.answers.workers.tolist() == [f"w{w}@example.org" for w in range(3)]
    assert not any("@" in name for name in coded.reference.answers.workers.tolist())
    assert set(coded.reference.answers.workers) == set(coded.replication.answers.workers)
    assert b"example" not in (tmp_path / "coded" / "annotations.parquet").read_bytes()
    assert coded.fingerprint() == kept.fingerprint()
    capsys.readouterr()
    assert main(["check", str(tmp_path / "coded")]) == 0
    assert "One crowd for both data sets" in capsys.readouterr().out


def test_command_crowd(tmp_path, capsys):
    path = str(tmp_path / "s")
    zoo.study("workers").write(path)
    assert main(["answers", "crowd", path, "--workers", str(tmp_path / "w.csv"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["in_common"] == 0
    assert [row["workers"] for row in facts["rows"]] == [100, 100]
    assert len(pl.read_csv(tmp_path / "w.csv")) == 200
    assert main(["answers", "crowd", path]) == 0
    text = capsys.readouterr().out
    assert "Two crowds, no worker in common" in text
    assert "a1 " not in text
    again = refusal(["answers", "crowd", path, "--workers", tmp_path / "w.csv"])
    check(again, "output-path-exists", {"path": str(tmp_path / "w.csv")})


def test_crowd_without_workers_is_refused(tmp_path):
    zoo.cut(zoo.study("tiny"), images=50, classifiers=2).write(tmp_path / "s")
    check(refusal(["answers", "crowd", tmp_path / "s"]), "study-without-known-workers")


def test_diagnose_says_by_how_much_workers_widen_the_answer(two_crowds):
    study, posterior = two_crowds
    found = bayesrep.diagnose(posterior, study)
    row = found.checks.filter(pl.col("check") == "workers who answered many images")
    assert row["trust"].item() == "yes"
    times = float(row["value"].item().removesuffix(" times"))
    told = [float(x) for text in found.sentences for x in re.findall(r"([\d.]+) times", text)]
    assert any(each == pytest.approx(times, abs=0.06) for each in told)


def _nameless(study):
    datasets = {role: replace(data, answers=None) for role, data in study.datasets.items()}
    return replace(study, datasets=datasets, provenance={})


def test_unknown_crowds_are_named_as_an_assumption(two_crowds):
    study, posterior = two_crowds
    found = bayesrep.diagnose(posterior, _nameless(study))
    row = found.checks.filter(pl.col("check") == "annotators of the two data sets")
    assert (row["wanted"].item(), row["trust"].item()) == ("known", "with care")
    assert "equally strict" in found.assumption


def drifting(by, *, position=True, seed=0, zone=None):
    """A table of answers in which every worker selects `by` more often in the end."""
    random = np.random.default_rng(seed)
    rows = []
    for worker in range(60):
        for place, image in enumerate(random.permutation(400)[:40]):
            yes = random.random() < 0.7 + by * (place / 39 - 0.5)
            rows.append(("a" if image < 200 else "b", f"i{image}", f"w{worker}", int(yes), place))
    table = pl.DataFrame(
        rows, schema=["dataset", "image", "worker", "selected", "position"], orient="row"
    )
    return table if position else table.drop("position")


def importing(tables, tmp_path):
    """The command that makes a study of the tables, and where."""
    images = pl.concat([t.select("dataset", "image") for t in tables]).unique()
    images.with_columns(c1=pl.lit(value=True)).write_csv(tmp_path / "p.csv")
    files = []
    for number, table in enumerate(tables):
        files.append(str(tmp_path / f"t{number}.csv"))
        table.write_csv(files[-1])
    out = str(tmp_path / "study")
    command = ["import", "tables", *files, str(tmp_path / "p.csv"), "--out", out, "--force"]
    return [*command, "--reference", "a", "--replication", "b"], out


def imported(tables, tmp_path, capsys):
    command, out = importing(tables, tmp_path)
    code = main(command)
    return code, capsys.readouterr().err, out


def by_hand(table):
    """The slope of residuals along places from -1/2 to 1/2, answer by answer in a loop."""
    residual, place = [], []
    answered = {image: list(of["selected"]) for (image,), of in table.group_by("image")}
    places = {worker: sorted(of["position"]) for (worker,), of in table.group_by("worker")}
    everybody = table["selected"].mean()
    for row in table.iter_rows(named=True):
        among, own = answered[row["image"]], places[row["worker"]]
        others = (sum(among) - row["selected"]) / (len(among) - 1) if len(among) > 1 else everybody
        residual.append(row["selected"] - others)
        place.append(own.index(row["position"]) / (len(own) - 1) - 0.5)
    return np.dot(place, residual) / np.dot(place, place)


def test_drift_is_the_slope_along_places_and_survives_the_files(tmp_path, capsys):
    table = drifting(0.2)
    code, said, out = imported([table], tmp_path, capsys)
    assert code == 0, said
    rows = bayesrep.describe_crowd(bayesrep.read_study(out)).datasets
    for row in rows.to_dicts():
        assert 0.01 < row["drift_error"] < 0.06
        assert row["drift"] == pytest.approx(by_hand(table.filter(dataset=row["dataset"])))
    main(["answers", "crowd", out])
    assert capsys.readouterr().out.count("at the end of their answers than at the beginning") == 2


def test_times_stand_for_places_whatever_their_zone(tmp_path, capsys):
    table = drifting(0.2)
    zones = pl.when(pl.col("worker").hash() % 2 == 0)
    clock = "2026-03-01T{}:{}:00{}"
    minutes = pl.col("position").cast(pl.String).str.zfill(2)
    there = zones.then(pl.lit("Z")).otherwise(pl.lit("+02:00"))
    hour = zones.then(pl.lit("10")).otherwise(pl.lit("12"))
    timed = table.with_columns(time=pl.format(clock, hour, minutes, there)).drop("position")
    rows = []
    for each in (table, timed):
        code, said, out = imported([each], tmp_path, capsys)
        assert code == 0, said
        rows.append(bayesrep.describe_crowd(bayesrep.read_study(out)).datasets)
    assert rows[0]["drift"].to_list() == pytest.approx(rows[1]["drift"].to_list())


def test_without_an_order_there_is_no_drift(tmp_path, capsys):
    _, _, out = imported([drifting(0.2, position=False)], tmp_path, capsys)
    assert bayesrep.describe_crowd(bayesrep.read_study(out)).datasets["drift"].null_count() == 2


@pytest.mark.parametrize(
    ("times", "broken"),
    [
        (("2026-03-01T10:00:00Z", "2026-03-01T10:00:00"), "time-without-zone"),
        (("2026-03-01T10:00:00", "yesterday"), "time-not-iso-8601"),
        (("2026-03-01T10:00:00", None), "time-not-iso-8601"),
    ],
)
def test_times_that_cannot_be_compared(times, broken, tmp_path):
    table = drifting(0.0).drop("position")
    given = pl.Series("time", [times[0]] * (len(table) - 1) + [times[1]])
    violation = refusal(importing([table.with_columns(given)], tmp_path)[0])
    check(violation, broken, {"column": "time"})


def test_an_order_is_known_of_all_files_or_of_none(tmp_path):
    table = drifting(0.0)
    half = len(table) // 2
    parts = [table[:half], table[half:].drop("position")]
    check(refusal(importing(parts, tmp_path)[0]), "order-of-answers-unclear")
