"""Ensembles of kept outputs: the mean of softmax probabilities, as one more classifier."""

import json
import shutil

import numpy as np
import polars as pl
import pytest
from refusals import refused
from scipy.special import softmax
from small_networks import paint, quiet, save_weights

import bayesrep
from bayesrep.errors import PredictionError
from bayesrep.studies import layout
from bayesrep.studies.imagenet import synsets
from bayesrep.vision import predict_from_logits
from bayesrep.vision.logits import read_logits
from bayesrep.vision.prediction_store import Results

WNIDS = [synsets()[number] for number in (5, 50, 500, 501, 700, 900)]
NAMES = ["test_resnet", "test_vit", "test_vit2"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The folder of kept outputs of three networks on some images."""
    root = tmp_path_factory.mktemp("ensembles")
    save_weights(root / "weights", NAMES)
    for number in range(24):
        paint(root / "images" / WNIDS[number % 6] / f"{number}.png", number)
    options = {"weights": root / "weights", "keep": "logits", "progress": False}
    with quiet():
        bayesrep.predict(root / "images", "v1", NAMES, root / "s", **options)
    return root / "s" / "logits" / "v1"


@pytest.fixture
def few(tmp_path):
    (tmp_path / "few.txt").write_text("\n".join(WNIDS))
    return tmp_path / "few.txt"


@quiet()
def predict(logits, study, **options):
    return predict_from_logits(logits, "v1", study, **options)


def rows_of(study, name):
    return pl.read_parquet(study / layout.prediction_file("v1", name))


def mean_of_softmax(logits, names, chosen=slice(None), temperatures=(1, 1, 1)):
    outputs = [
        np.array(read_logits(logits / name).values, dtype=float)[:, chosen] for name in names
    ]
    return np.mean(
        [softmax(each / t, axis=1) for each, t in zip(outputs, temperatures, strict=False)], axis=0
    )


def test_an_ensemble_answers_by_the_mean_of_softmax_probabilities(tmp_path, kept):
    given = {"all three": NAMES, "two": [NAMES[2], NAMES[0]]}
    report = predict(kept, tmp_path / "s", ensembles=given, classifiers=NAMES[:1])
    assert report.table["classifier"].to_list() == [NAMES[0], *given]
    assert report.table["status"].to_list() == ["done"] * 3
    for name, members in given.items():
        rows, expected = rows_of(tmp_path / "s", name), mean_of_softmax(kept, members)
        best = np.argsort(-expected, axis=1)[:, :5]
        found = rows.select("^probability_.$").to_numpy()
        np.testing.assert_allclose(found, np.take_along_axis(expected, best, 1), rtol=1e-5)
        assert rows["label_1"].to_list() == [synsets()[k] for k in best[:, 0]]
        assert rows["correct"].equals((rows["label_1"] == rows["label"]).alias("correct"))
        assert rows["content"].equals(rows_of(kept.parents[1], NAMES[0])["content"])
    file = tmp_path / "s" / layout.prediction_file("v1", "two")
    facts = json.loads(pl.read_parquet_metadata(file)["bayesrep"])
    assert facts["ensemble"] == "mean of the softmax probabilities of 2 networks"
    assert facts["full_name"] == "; ".join(
        str(read_logits(kept / name).facts["full_name"]) for name in (NAMES[0], NAMES[2])
    )
    assert facts["weights"].count("sha256:") == 2
    # Networks that answer by themselves do so as without any ensemble.
    assert rows_of(tmp_path / "s", NAMES[0]).equals(rows_of(kept.parents[1], NAMES[0]))


def test_the_order_of_networks_does_not_matter_and_a_later_run_has_nothing_to_do(tmp_path, kept):
    for study, order in (("s", NAMES), ("t", NAMES[::-1])):
        predict(kept, tmp_path / study, ensembles={"e": order})
    assert rows_of(tmp_path / "s", "e").equals(rows_of(tmp_path / "t", "e"))
    again = predict(kept, tmp_path / "s", ensembles={"e": NAMES[::-1]})
    assert again.table["status"].to_list() == ["already done"] * 4


def test_an_ensemble_that_was_stopped_goes_on(monkeypatch, tmp_path, kept):
    predict(kept, tmp_path / "whole", ensembles={"e": NAMES})
    finish = Results.finish

    def interrupted(results, facts):
        if results.classifier == "e":
            raise KeyboardInterrupt
        finish(results, facts)

    monkeypatch.setattr(Results, "finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        predict(kept, tmp_path / "s", ensembles={"e": NAMES})
    monkeypatch.undo()
    report = predict(kept, tmp_path / "s", ensembles={"e": NAMES})
    assert report.table["status"].to_list() == ["already done"] * 3 + ["done"]
    assert rows_of(tmp_path / "s", "e").equals(rows_of(tmp_path / "whole", "e"))


def test_an_ensemble_among_some_classes_and_at_temperatures(tmp_path, kept, few):
    chosen = [synsets().index(wnid) for wnid in WNIDS]
    predict(kept, tmp_path / "plain", ensembles={"e": NAMES}, among=few)
    found = rows_of(tmp_path / "plain", "e").select("^probability_.$").to_numpy()
    expected = -np.sort(-mean_of_softmax(kept, NAMES, chosen), axis=1)[:, :5]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    # Labels that follow what networks answer, mostly, have a temperature.
    labelled = tmp_path / "v1"
    shutil.copytree(kept, labelled)
    for name in NAMES:
        file = labelled / name / "images.parquet"
        facts = pl.read_parquet_metadata(file)["bayesrep"]
        best = read_logits(kept / name).values[:, chosen].argmax(1)
        best[::4] = (best[::4] + 1) % len(WNIDS)
        labels = pl.Series("label", [WNIDS[k] for k in best])
        table = pl.read_parquet(file).with_columns(labels)
        table.write_parquet(file, metadata={"bayesrep": facts})
    predict(kept, tmp_path / "s", ensembles={"e": NAMES}, among=few, calibrate_on=labelled)
    file = tmp_path / "s" / layout.prediction_file("v1", "e")
    said = json.loads(pl.read_parquet_metadata(file)["bayesrep"])["temperature"]
    temperatures = [float(each) for each in said.split("; ")]
    assert len(set(temperatures)) == 3
    found = rows_of(tmp_path / "s", "e").select("^probability_.$").to_numpy()
    expected = mean_of_softmax(kept, NAMES, chosen, temperatures)
    np.testing.assert_allclose(found, -np.sort(-expected, axis=1)[:, :5], rtol=1e-4)


def rewrite(place, change, **facts):
    file = place / "images.parquet"
    told = json.loads(pl.read_parquet_metadata(file)["bayesrep"]) | facts
    change(pl.read_parquet(file)).write_parquet(file, metadata={"bayesrep": json.dumps(told)})


def change_contents(place, value, rows=slice(3)):
    contents = np.load(place / "contents.npy")
    contents[rows] = value
    np.save(place / "contents.npy", contents)


def rename_images(place):
    rewrite(place, lambda table: table.with_columns(image=pl.col("image") + "x"))


def reverse_outputs(place):
    rewrite(place, lambda table: table, outputs=synsets()[::-1], folders=synsets()[::-1])


@pytest.mark.parametrize(
    "harm",
    [
        rename_images,
        reverse_outputs,
        lambda place: change_contents(place, 1),  # files that held something else
        lambda place: change_contents(place, 0),  # a run that was stopped
    ],
)
def test_outputs_of_other_images_or_classes_are_not_put_together(tmp_path, kept, harm):
    shutil.copytree(kept, tmp_path / "v1")
    harm(tmp_path / "v1" / NAMES[1])
    for options in ({}, {"classifiers": NAMES[:1], "ensembles": {"e": NAMES[:2]}}):
        with refused(PredictionError, "logits-of-different-images"):
            predict(tmp_path / "v1", tmp_path / "s", **options)
    assert not (tmp_path / "s").exists()
    report = predict(tmp_path / "v1", tmp_path / "s", classifiers=NAMES[::2])
    assert report.table["status"].to_list() == ["done"] * 2


def test_a_network_without_all_outputs_is_the_one_that_is_named(tmp_path, kept):
    shutil.copytree(kept, tmp_path / "v1")
    change_contents(tmp_path / "v1" / NAMES[0], 0)
    facts = {"classifiers": NAMES[:1], "other": NAMES[1]}
    with refused(PredictionError, "logits-of-different-images", facts):
        predict(tmp_path / "v1", tmp_path / "s")


@pytest.mark.parametrize(
    ("ensembles", "rule", "facts"),
    [
        ({"e": [*NAMES, "resnet50"]}, "logits-lack-classifiers", {"classifiers": ["resnet50"]}),
        ({"e": NAMES[:1]}, "ensemble-of-one", {"ensemble": "e", "classifier": NAMES[0]}),
        ({"e": []}, "study-without-classifiers", {"where": "ensemble 'e'"}),
        ({"e": NAMES[:1] * 2}, "classifier-repeated", {"classifiers": NAMES[:1]}),
        ({NAMES[0]: NAMES[1:]}, "classifier-repeated", {"classifiers": NAMES[:1]}),
        ({"": NAMES}, "classifier-name-empty", {}),
    ],
)
def test_ensembles_that_are_none(tmp_path, kept, ensembles, rule, facts):
    with refused(PredictionError, rule, facts):
        predict(kept, tmp_path / "s", ensembles=ensembles)
    assert not (tmp_path / "s").exists()


def test_an_ensemble_of_other_networks_does_not_go_on_with_its_answers(tmp_path, kept):
    predict(kept, tmp_path / "s", ensembles={"e": NAMES})
    with refused(PredictionError, "predictions-made-otherwise"):
        predict(kept, tmp_path / "s", ensembles={"e": NAMES[:2]})
    predict(kept, tmp_path / "s", ensembles={"e": NAMES[:2]}, force=True)
    found = rows_of(tmp_path / "s", "e").select("^probability_.$").to_numpy()
    expected = -np.sort(-mean_of_softmax(kept, NAMES[:2]), axis=1)[:, :5]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
