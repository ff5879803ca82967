"""Temperatures of kept outputs: where the likelihood is highest, and what is made of them."""

import json
import shutil

import numpy as np
import polars as pl
import pytest
from refusals import refused
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from small_networks import paint, quiet, save_weights

import bayesrep
from bayesrep.errors import PredictionError
from bayesrep.studies import layout
from bayesrep.studies.imagenet import synsets
from bayesrep.vision import predict_from_logits
from bayesrep.vision.calibration import fit_temperature
from bayesrep.vision.logits import read_logits

WNIDS = [synsets()[number] for number in (5, 50, 500)]
NAMES = ["test_vit", "test_resnet"]


@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
def test_the_temperature_is_where_the_likelihood_is_highest(temperature):
    random = np.random.default_rng(0)
    fair = 2 * random.standard_normal((9000, 6))
    labels = np.array([random.choice(6, p=each) for each in softmax(fair, axis=1)])
    outputs = (temperature * fair).astype(np.float32)

    def loss(tried):
        return -log_softmax(outputs.astype(float) / tried, axis=1)[range(9000), labels].mean()

    best = minimize_scalar(loss, bounds=(0.05, 20), method="bounded", options={"xatol": 1e-8}).x
    found = fit_temperature(outputs, labels)
    assert found == pytest.approx(best, rel=1e-5)
    assert found == pytest.approx(temperature, rel=0.05)
    # A class without an output changes nothing, and its images do not count.
    lacking = np.column_stack([outputs, np.full(9000, -np.inf, np.float32)])
    lacking = np.vstack([lacking, lacking[:50]])
    more = np.append(labels, np.full(50, 6))
    assert fit_temperature(lacking, more) == pytest.approx(found, rel=1e-6)


def test_answers_that_are_all_right_or_all_alike_have_none():
    outputs = np.eye(4, dtype=np.float32)
    with refused(PredictionError, "temperature-not-found", {"lowest": 0.05}):
        fit_temperature(outputs, np.arange(4))
    with refused(PredictionError, "temperature-not-found"):
        fit_temperature(outputs, (np.arange(4) + 1) % 4)
    with refused(PredictionError, "temperature-not-found"):
        fit_temperature(outputs[:0], np.arange(0))


@quiet()
def quietly(function, *arguments, **options):
    return function(*arguments, **options)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Kept outputs on two data sets, the first labelled by what is mostly answered."""
    root = tmp_path_factory.mktemp("calibration")
    save_weights(root / "weights", NAMES)
    (root / "classes.txt").write_text("\n".join(WNIDS))
    for number in range(24):
        paint(root / "images" / WNIDS[number % 3] / f"{number}.png", number)
        paint(root / "other" / WNIDS[number % 3] / f"{number}.png", 50 + number)
    options = {"weights": root / "weights", "keep": "logits", "progress": False, "among": "all"}
    for dataset, images in (("v1", "images"), ("v2", "other")):
        quietly(bayesrep.predict, root / images, dataset, NAMES, root / "s", **options)
    # Labels that follow the outputs of the first network, with noise: the others' follow less.
    for name in NAMES:
        kept = root / "s" / "logits" / "v1" / name
        table, values = pl.read_parquet(kept / "images.parquet"), np.load(kept / "logits.npy")
        chosen = values[:, [synsets().index(wnid) for wnid in WNIDS]]
        best = chosen.argmax(1)
        best[::4] = (best[::4] + 1) % 3
        told = pl.read_parquet_metadata(kept / "images.parquet")
        labels = pl.Series("label", [WNIDS[k] for k in best])
        table.with_columns(labels).write_parquet(
            kept / "images.parquet", metadata={"bayesrep": told["bayesrep"]}
        )
    return root


def rows_of(study, dataset, name):
    return pl.read_parquet(study / layout.prediction_file(dataset, name))


def test_answers_stay_and_probabilities_are_of_the_temperature(tmp_path, place):
    logits, among = place / "s" / "logits", {"among": place / "classes.txt"}
    study, given = tmp_path / "t", {**among, "classifiers": NAMES[:1]}
    quietly(predict_from_logits, logits / "v2", "plain", study, **given)
    given["calibrate_on"] = logits / "v1"
    quietly(predict_from_logits, logits / "v2", "v2", study, **given)
    plain, calibrated = (rows_of(study, dataset, NAMES[0]) for dataset in ("plain", "v2"))
    labels = ["image", "label", "correct", "label_1", "label_2", "label_3"]
    assert plain.select(labels).equals(calibrated.select(labels))
    fitted_on = read_logits(logits / "v1" / NAMES[0])
    numbers = [synsets().index(wnid) for wnid in WNIDS]
    right = np.array([WNIDS.index(wnid) for wnid in fitted_on.table["label"]])
    temperature = fit_temperature(np.array(fitted_on.values[:, numbers]), right)
    values = read_logits(logits / "v2" / NAMES[0]).values[:, numbers]
    expected = -np.sort(-softmax(values / temperature, axis=1), axis=1)
    found = calibrated.select("^probability_.$").to_numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert abs(found - plain.select("^probability_.$").to_numpy()).max() > 1e-3
    file = study / layout.prediction_file("v2", NAMES[0])
    facts = json.loads(pl.read_parquet_metadata(file)["bayesrep"])
    assert facts["temperature"] == f"{temperature:.6g}"
    # Neither stands in the other's file.
    facts = {"setting": "temperature", "earlier_value": f"{temperature:.6g}", "value": "1"}
    with refused(PredictionError, "predictions-made-otherwise", facts):
        given.pop("calibrate_on")
        quietly(predict_from_logits, logits / "v2", "v2", study, **given)


def test_a_calibration_on_what_is_another_networks(tmp_path, place):
    logits = place / "s" / "logits"
    given = {"among": place / "classes.txt", "classifiers": NAMES[:1]}
    with refused(PredictionError, "logits-folder-empty"):
        options = {**given, "calibrate_on": logits / "v3"}
        quietly(predict_from_logits, logits / "v2", "v2", tmp_path / "t", **options)
    other = tmp_path / "logits" / NAMES[0]
    other.parent.mkdir()
    shutil.copytree(logits / "v1" / NAMES[1], other)
    facts = {"folder": str(other)}
    with refused(PredictionError, "calibration-of-another-network", facts):
        options = {**given, "calibrate_on": other.parent}
        quietly(predict_from_logits, logits / "v2", "v2", tmp_path / "t", **options)
