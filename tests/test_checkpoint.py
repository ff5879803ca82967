"""A killed fit goes on where it was; a checkpoint that does not fit is refused.

Shapes and schedule are those of test_fit.py, whose compiled programs these fits share.
"""

import json
import os
import signal
import subprocess
import sys
import time
import warnings

import jax
import numpy as np
import pytest

import bayesrep
from bayesrep import ConvergenceWarning, PosteriorError

FIT = {"chains": 2, "warmup": 100, "draws": 100, "progress": False, "degree": 8, "terms": 3}

SCRIPT = """
import json, sys, warnings
import bayesrep
warnings.simplefilter("ignore", bayesrep.ConvergenceWarning)
study = bayesrep.simulate_study(seed=1, images=300, annotators=8, classifiers=3)
posterior = bayesrep.fit(study, **json.loads(sys.argv[1]))
print(posterior.posterior["classifier_curve"].values.tobytes().hex())
"""


def _study(seed=1):
    return bayesrep.simulate_study(seed=seed, images=300, annotators=8, classifiers=3)


def _fit(study=None, **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return bayesrep.fit(study or _study(), **{**FIT, **changes})


def _draws(posterior):
    return {name: array.values for name, array in posterior.posterior.data_vars.items()}


def _same(one, other):
    for name, values in _draws(one).items():
        np.testing.assert_array_equal(values, _draws(other)[name], err_msg=name)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "checkpoint"
    return _fit(checkpoint=folder), folder


def test_a_checkpoint_changes_no_draw(whole):
    posterior, folder = whole
    _same(posterior, _fit())
    names = sorted(path.name for path in folder.iterdir())
    assert names[0] == "checkpoint.json"
    assert len(names) == 1 + 2 * 8  # two chains, 200 draws in blocks of 25


@pytest.mark.parametrize("lost", [1, 2, 4])
def test_it_goes_on_from_any_block(whole, tmp_path, lost):
    """In the warm-up before and after the chains learn, and after it."""
    posterior, folder = whole
    part = tmp_path / "part"
    part.mkdir()
    for path in folder.iterdir():
        number = path.stem.rsplit("-", 1)[-1]
        if not number.isdigit() or int(number) < lost or "chain-1" in path.name:
            (part / path.name).write_bytes(path.read_bytes())
    (part / ".joint-chain-0-block-00003.npz.part").write_bytes(b"half")
    _same(posterior, _fit(checkpoint=part))


def test_a_killed_process_ends_with_the_same_draws(tmp_path):
    """kill -9 in the warm-up, the same command again and again kill -9, and again to its end.

    In the warm-up all chains learn from what each visited, so what a killed one had seen has to
    come back too.
    """
    folder = tmp_path / "checkpoint"
    arguments = {**FIT, "warmup": 700, "draws": 700}
    command = [sys.executable, "-c", SCRIPT, json.dumps({**arguments, "checkpoint": str(folder)})]
    warmup, whole = 2 * 28, 2 * 56

    def blocks():
        return len(list(folder.glob("joint-*.npz"))) if folder.exists() else 0

    for begin, end in ((3, warmup), (warmup + 3, whole)):
        killed = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while blocks() < begin and killed.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        os.kill(killed.pid, signal.SIGKILL)
        assert killed.wait() == -signal.SIGKILL, "the fit ended before it could be killed"
        assert begin <= blocks() < end
    resumed = subprocess.run(command, capture_output=True, check=True, text=True)
    uninterrupted = _fit(**arguments).posterior["classifier_curve"].values
    assert resumed.stdout.strip() == uninterrupted.tobytes().hex()
    assert blocks() == whole


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"study": 2}, "its study_fingerprint is"),
        ({"terms": 4}, "its options is"),
        ({"seed": 3}, "its seed is 0, here it is 3"),
        ({"draws": 70}, "its schedule is"),
        ({"feedback": "cut"}, "its feedback is"),
    ],
)
def test_another_fits_checkpoint_is_refused(whole, changes, message):
    study = _study(changes.pop("study", 1))
    with pytest.raises(PosteriorError, match=message):
        _fit(study, checkpoint=whole[1], **changes)


def test_damaged_and_foreign_folders_are_refused(whole, tmp_path):
    files = {path.name: path.read_bytes() for path in whole[1].iterdir()}
    cut = tmp_path / "cut"
    cut.mkdir()
    for name, contents in files.items():
        (cut / name).write_bytes(contents)
    victim = cut / "joint-chain-1-block-00002.npz"
    victim.write_bytes(victim.read_bytes()[:500])
    with pytest.raises(
        PosteriorError, match=r"joint-chain-1-block-00002\.npz is damaged.*remove it"
    ):
        _fit(checkpoint=cut)
    np.savez(victim, **{"0": np.zeros(3)})
    with pytest.raises(PosteriorError, match="holds other arrays"):
        _fit(checkpoint=cut)
    (cut / "checkpoint.json").write_text("{", encoding="utf-8")
    with pytest.raises(PosteriorError, match="cannot be used as a checkpoint"):
        _fit(checkpoint=cut)
    (cut / "checkpoint.json").write_text("[]", encoding="utf-8")
    with pytest.raises(PosteriorError, match="not that of a fit"):
        _fit(checkpoint=cut)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("friend", encoding="utf-8")
    with pytest.raises(PosteriorError, match="neither empty nor a checkpoint"):
        _fit(checkpoint=tmp_path / "letters")
    assert [path.name for path in (tmp_path / "letters").iterdir()] == ["dear.txt"]


def test_nothing_in_a_checkpoint_is_executed(whole, tmp_path):
    """An object array, which NumPy stores as a pickle, is refused unread."""
    folder = tmp_path / "evil"
    folder.mkdir()
    (folder / "checkpoint.json").write_bytes((whole[1] / "checkpoint.json").read_bytes())
    bomb = np.array([{"a": 1}], dtype=object)
    np.savez(folder / "joint-chain-0-block-00000.npz", **{"0": bomb})
    with pytest.raises(PosteriorError, match="is damaged"):
        _fit(checkpoint=folder)


def test_cut_feedback_resumes_in_both_stages(tmp_path):
    folder = tmp_path / "cut"
    whole = _fit(feedback="cut", checkpoint=folder)
    for path in folder.glob("curves-chain-*-block-0000[2-9].npz"):
        path.unlink()
    _same(whole, _fit(feedback="cut", checkpoint=folder))
    for path in folder.glob("mixtures-chain-1-block-0000[3-9].npz"):
        path.unlink()
    for path in folder.glob("curves-*.npz"):
        path.unlink()
    _same(whole, _fit(feedback="cut", checkpoint=folder))
    assert jax.numpy.zeros(1).dtype == np.float32
