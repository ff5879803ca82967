"""A suite that is killed at ten moments of its writing, and goes on to the same answers."""

import signal
import subprocess
import sys
import tarfile
import textwrap

import numpy as np
import polars as pl
import pytest
from small_networks import paint, quiet, save_weights

from bayesrep.studies import layout
from bayesrep.studies.imagenet import synsets
from bayesrep.vision import predict_sets, read_suite

WNIDS = synsets()
NAMES = ["test_vit", "test_resnet"]
MOMENTS = 10
pytestmark = pytest.mark.compiles  # in its child processes
# Runs in processes that know torch but have not used it. The first counts the writings of files;
# of each other one the k-th writing is the end.
SCRIPT = """
    import os, sys, warnings
    import numpy as np
    import polars
    from bayesrep.vision import predict_sets, read_suite, run
    from bayesrep.vision.torch_loading import load_timm
    load_timm()
    warnings.simplefilter("ignore")
    run.SAVE_SECONDS = 0.0
    (root,) = sys.argv[1:]
    WRITES = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir")

    def evaluate(study, moment):
        count = 0
        def watch(event, arguments):
            nonlocal count
            if event not in WRITES or not str(arguments[0]).startswith(study):
                return
            if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
                return
            count += 1
            if count == moment:
                os.kill(os.getpid(), 9)
        sys.addaudithook(watch)
        predict_sets(read_suite(root + "/suite.toml"), NAMES, study, weights=root + "/weights",
                     keep="logits", workers=1, progress=False)
        with open(root + "/writings", "w") as file:
            file.write(str(count))

    def end_of(moment):
        if not (child := os.fork()):
            try:
                evaluate(f"{root}/killed-{moment}", moment)
            finally:
                os._exit(1)
        return os.waitpid(child, 0)[1]

    end_of(0)
    writings = int(open(root + "/writings").read())
    for moment in np.unique(np.linspace(1, writings, MOMENTS).astype(int)):
        print(moment, end_of(moment), flush=True)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two data sets, one of them packed, and the weights of two networks."""
    root = tmp_path_factory.mktemp("kills")
    save_weights(root / "weights", NAMES)
    for number in range(30):
        for name in ("val", "v2"):
            wnid = WNIDS[100 * (number % 5)]
            paint(root / name / wnid / f"{number}.png", number + 50 * (name == "v2"))
    with tarfile.open(root / "v2.tar.gz", "w:gz") as archive:
        archive.add(root / "v2", "v2")
    (root / "suite.toml").write_text('[val]\nimages = "val"\n[v2]\nimages = "v2.tar.gz"\n')
    return root


def kill_at_moments(place):
    """Run the script; each moment, and the signal that ended the run."""
    text = textwrap.dedent(SCRIPT).replace("NAMES", repr(NAMES)).replace("MOMENTS", str(MOMENTS))
    command = [sys.executable, "-c", text, str(place)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    return {int(moment): int(end) for moment, end in map(str.split, ended.stdout.splitlines())}


@quiet()
def finish(place, study):
    options = {"weights": place / "weights", "keep": "logits", "progress": False}
    return predict_sets(read_suite(place / "suite.toml"), NAMES, place / study, **options)


def test_a_suite_goes_on_after_kill_9_at_ten_moments(place):
    moments = kill_at_moments(place)
    assert list(moments.values()) == [signal.SIGKILL] * MOMENTS
    left = set()
    for moment in moments:
        study = f"killed-{moment}"
        left.add(len(list((place / study).rglob("*.parquet"))))
        reports = finish(place, study)
        assert [len(each.left_out) for each in reports.values()] == [0, 0]
        for dataset in ("val", "v2"):
            for name in NAMES:
                file = layout.prediction_file(dataset, name)
                one, other = (pl.read_parquet(place / each / file) for each in (study, "killed-0"))
                assert one.equals(other)
                kept = f"logits/{dataset}/{name}/logits.npy"
                one, other = (np.load(place / each / kept) for each in (study, "killed-0"))
                np.testing.assert_array_equal(one, other)
        assert not list((place / study).rglob("*.new"))
        assert not list((place / study).rglob(".parts"))
    assert len(left) > MOMENTS // 2  # the moments were different ones
