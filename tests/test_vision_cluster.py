"""Evaluation over Ray workers: the answers of one machine, whatever happens to a worker."""

import os
import signal
import warnings

import numpy as np
import polars as pl
import pytest
from refusals import refused
from small_networks import paint, save_weights

import bayesrep
from bayesrep.clusters import join_cluster
from bayesrep.errors import ClusterError, PredictionWarning
from bayesrep.studies import folder
from bayesrep.studies.imagenet import synsets
from bayesrep.vision import ImageSource, predict_sets
from bayesrep.vision.architectures import describe
from bayesrep.vision.contents import Contents
from bayesrep.vision.devices import Device
from bayesrep.vision.images import list_images
from bayesrep.vision.run import DatasetRun, evaluate_together, open_results

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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PredictionWarning)
        bayesrep.predict(
            root / "images", "v1", NAMES, root / "local", weights=root / "weights", progress=False
        )
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
    ray, own = join_cluster("local", 2)
    assert own
    yield
    assert ray.is_initialized()
    ray.shutdown()


@pytest.mark.usefixtures("two_cores")
def test_a_killed_worker_costs_nothing_but_its_batch(place):
    from bayesrep.vision.cluster import Cluster

    images = list_images(place / "images")
    known = [describe(name, place / "weights") for name in NAMES]
    study, device = place / "spread", Device("cpu", "float32", 24)
    contents = Contents(images, study, "v1")
    results = open_results(study, "v1", images, contents, known, device)
    cluster = Cluster("local", images, device, workers=2)

    def numbers():
        calls = [w.__ray_call__.remote(lambda _: os.getpid()) for w in cluster.workers]
        return cluster._ray.get(calls)

    processes = numbers()
    through, killed = cluster.through_images, []

    def killing(blocks):
        for number, found in enumerate(through(blocks)):
            if number == 2:
                os.kill(processes[0], signal.SIGKILL)
                killed.append(processes[0])
            yield found

    cluster.through_images = killing
    try:
        run = DatasetRun(study, "v1", images, contents, results, {})
        evaluate_together([run], known, cluster, place / "cache", show=False)
        alive = numbers()
    finally:
        cluster.close()
    assert killed
    assert killed[0] not in alive
    assert len(alive) == 2
    assert list(run.failures.values())[0].startswith("UnidentifiedImageError")
    for name in NAMES:
        file = folder.prediction_file("v1", name)
        one, other = pl.read_parquet(place / "local" / file), pl.read_parquet(study / file)
        assert len(one) == 400
        assert one.equals(other)


@pytest.mark.usefixtures("two_cores")
def test_sets_go_to_the_workers_one_after_the_other(place):
    """Another set's images, classes and outputs: as on one machine."""
    chosen = place / "chosen.txt"
    chosen.write_text("\n".join(sorted(each.name for each in (place / "images").iterdir())))
    sets = {
        "v1": ImageSource(place / "images", among="all"),
        "few": ImageSource(place / "images", among=chosen),
    }
    for study, ray in (("together", None), ("on-workers", "local")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PredictionWarning)
            predict_sets(
                *(sets, NAMES, place / study),
                weights=place / "weights",
                keep="logits",
                workers=1,
                ray=ray,
                progress=False,
            )
    for name in NAMES:
        for dataset in sets:
            file = folder.prediction_file(dataset, name)
            one = pl.read_parquet(place / "together" / file)
            assert one.equals(pl.read_parquet(place / "on-workers" / file))
            values = [
                np.load(place / study / "logits" / dataset / name / "logits.npy")
                for study in ("together", "on-workers")
            ]
            np.testing.assert_array_equal(*values)
