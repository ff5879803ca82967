"""Evaluation over Ray workers: the answers of one machine, whatever happens to a worker."""

import os
import signal

import numpy as np
import polars as pl
import pytest
from refusals import refused
from small_networks import paint, quiet, save_weights

import bayesrep
from bayesrep.errors import ClusterError
from bayesrep.parallel import joined_cluster
from bayesrep.studies import layout
from bayesrep.studies.imagenet import synsets
from bayesrep.vision import ImageSource, predict_sets
from bayesrep.vision.prediction_store import read_failures
from bayesrep.vision.run_ray import Cluster

NAMES = ["test_vit", "test_byobnet"]
# Ray leaves pipes and sockets to be collected.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    root = tmp_path_factory.mktemp("cluster")
    for number in range(400):
        paint(root / "images" / synsets()[number % 4] / f"{number}.JPEG", number, (180, 170))
    (root / "images" / synsets()[0] / "broken.JPEG").write_bytes(b"")
    save_weights(root / "weights", NAMES)
    return root


def test_a_cluster_that_is_not_there(place):
    """Before Ray is started here, and found."""
    with refused(ClusterError, "ray-cluster-unreachable", {"address": "127.0.0.1:1"}):
        bayesrep.predict(
            place / "images",
            "v1",
            NAMES,
            place / "elsewhere",
            among="all",
            weights=place / "weights",
            ray="127.0.0.1:1",
            progress=False,
        )


@pytest.fixture(scope="module")
def two_cores():
    """Ray with two cores, started once: whoever finds it joined leaves it as it is."""
    with joined_cluster("local", 2) as ray:
        yield
        assert ray.is_initialized()
    assert not ray.is_initialized()


def kill_one(monkeypatch):
    """Have a worker killed at the third block of images; return whose processes there were when.

    Processes of the workers before the first block, the one that was killed, and those at the end.
    """
    through, close, seen = Cluster.through_images, Cluster.close, {}

    def numbers(cluster):
        calls = [w.__ray_call__.remote(lambda _: os.getpid()) for w in cluster.workers]
        return cluster._ray.get(calls)

    def killing(cluster, blocks):
        before = [] if seen else numbers(cluster)
        for number, found in enumerate(through(cluster, blocks)):
            if number == 2 and not seen:
                seen["before"], seen["killed"] = before, before[0]
                os.kill(before[0], signal.SIGKILL)
            yield found

    def closing(cluster):
        seen["after"] = numbers(cluster)
        close(cluster)

    monkeypatch.setattr(Cluster, "through_images", killing)
    monkeypatch.setattr(Cluster, "close", closing)
    return seen


@pytest.mark.usefixtures("two_cores")
def test_workers_answer_as_one_machine_does_and_one_that_is_killed_is_replaced(place, monkeypatch):
    """Two sets, one after the other: another one's images, classes and outputs."""
    chosen = place / "chosen.txt"
    chosen.write_text("\n".join(sorted(each.name for each in (place / "images").iterdir())))
    sets = {
        "v1": ImageSource(place / "images", among="all"),
        "few": ImageSource(place / "images", among=chosen),
    }
    seen = kill_one(monkeypatch)
    studies = ("together", "on-workers")
    for study, ray in zip(studies, (None, "local"), strict=True):
        with quiet():
            predict_sets(
                *(sets, NAMES, place / study),
                weights=place / "weights",
                keep="logits",
                batch_size=24,
                workers=2 if ray else 1,
                ray=ray,
                progress=False,
            )
    assert len(seen["before"]) == len(seen["after"]) == 2
    assert seen["killed"] not in seen["after"]
    (failure,) = read_failures(place / "on-workers", "v1").values()
    assert failure.reason.startswith("UnidentifiedImageError")
    for name in NAMES:
        for dataset in sets:
            file = layout.prediction_file(dataset, name)
            one, other = (pl.read_parquet(place / study / file) for study in studies)
            assert len(one) == 400
            assert one.equals(other)
            values = [
                np.load(place / study / "logits" / dataset / name / "logits.npy")
                for study in studies
            ]
            np.testing.assert_array_equal(*values)
