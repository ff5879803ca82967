"""A killed fit goes on where it was; a checkpoint that does not fit is refused.

Study and schedule are those of test_fit.py, whose compiled programs these fits share.
"""

import json
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest
import zoo
from refusals import refused

import bayesrep
from bayesrep import ConvergenceWarning, PosteriorError
from bayesrep.inference.checkpoint import save_block

SCRIPT = """
import json, os, signal, sys
sys.path.insert(0, sys.argv[1])
import zoo
import bayesrep
from bayesrep.inference import chains

def killed(path, tree, save=chains.save_block):
    save(path, tree)
    if len(list(path.parent.glob("*.npz"))) >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

chains.save_block = killed
bayesrep.fit(zoo.study("tiny"), checkpoint=sys.argv[2], **json.loads(sys.argv[4]))
"""


def _fit(study=None, **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return bayesrep.fit(study or zoo.study("tiny"), **{**zoo.SHORT, **changes})


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
    without = _draws(zoo.posterior("tiny", **zoo.SHORT))  # read from a file: curves in 32 bits
    for name, values in _draws(posterior).items():
        np.testing.assert_array_equal(
            values.astype(without[name].dtype), without[name], err_msg=name
        )
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
    (part / ".joint-chain-0-block-00003.npz.0123abcd.partial").write_bytes(b"half")
    _same(posterior, _fit(checkpoint=part))


@pytest.mark.compiles
def test_a_killed_process_ends_with_the_same_draws(whole, tmp_path):
    """kill -9 in the warm-up, the same command again and again kill -9, and on to its end here.

    In the warm-up all chains learn from what each visited, so what a killed one had seen has to
    come back too.
    """
    folder = tmp_path / "checkpoint"
    warmup, end = 2 * 4, 2 * 8
    for begin, before in ((3, warmup), (warmup + 3, end)):
        words = [str(Path(__file__).parent), str(folder), str(begin), json.dumps(zoo.SHORT)]
        killed = subprocess.run([sys.executable, "-c", SCRIPT, *words], stdout=subprocess.DEVNULL)
        assert killed.returncode == -signal.SIGKILL, "the fit ended before it was killed"
        assert begin <= len(list(folder.glob("joint-*.npz"))) < before
    _same(whole[0], _fit(checkpoint=folder))
    assert len(list(folder.glob("joint-*.npz"))) == end


@pytest.mark.parametrize("broken_by", [KeyboardInterrupt, OSError])
def test_what_breaks_a_block_leaves_nothing_of_it(tmp_path, monkeypatch, broken_by):
    def broken(stream, **arrays):
        stream.write(b"half")
        raise broken_by

    monkeypatch.setattr(np, "savez", broken)
    with pytest.raises((KeyboardInterrupt, PosteriorError)):
        save_block(tmp_path / "block.npz", {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "setting", "values"),
    [
        ({}, "study_fingerprint", {}),
        ({"terms": 4}, "options", {}),
        ({"seed": 3}, "seed", {"kept_value": "0", "value": "3"}),
        ({"draws": 70}, "schedule", {}),
        ({"feedback": "cut"}, "feedback", {"value": '"cut"'}),
    ],
)
def test_another_fits_checkpoint_is_refused(whole, changes, setting, values):
    study = zoo.study("tiny") if changes else zoo.cut(zoo.study("tiny"), images=499)
    facts = {"path": str(whole[1]), "setting": setting, **values}
    with refused(PosteriorError, "kept-work-of-another", facts):
        _fit(study, checkpoint=whole[1], **changes)


def test_damaged_and_foreign_folders_are_refused(whole, tmp_path):
    files = {path.name: path.read_bytes() for path in whole[1].iterdir()}
    cut = tmp_path / "cut"
    cut.mkdir()
    for name, contents in files.items():
        (cut / name).write_bytes(contents)
    victim = cut / "joint-chain-1-block-00002.npz"
    victim.write_bytes(victim.read_bytes()[:500])
    with refused(PosteriorError, "checkpoint-file-damaged", {"path": str(victim)}):
        _fit(checkpoint=cut)
    np.savez(victim, **{"0": np.zeros(3)})
    with refused(PosteriorError, "checkpoint-arrays-differ", {"path": str(victim)}):
        _fit(checkpoint=cut)
    manifest = cut / "checkpoint.json"
    manifest.write_text("{", encoding="utf-8")
    with refused(PosteriorError, "kept-work-unreadable", {"path": str(cut)}):
        _fit(checkpoint=cut)
    manifest.write_text("[]", encoding="utf-8")
    with refused(PosteriorError, "kept-work-unreadable", {"path": str(cut)}):
        _fit(checkpoint=cut)
    letters = tmp_path / "letters"
    letters.mkdir()
    (letters / "dear.txt").write_text("friend", encoding="utf-8")
    with refused(PosteriorError, "kept-work-folder-not-empty", {"path": str(letters)}):
        _fit(checkpoint=letters)
    assert [path.name for path in letters.iterdir()] == ["dear.txt"]


def test_nothing_in_a_checkpoint_is_executed(whole, tmp_path):
    """An object array, which NumPy stores as a pickle, is refused unread."""
    folder = tmp_path / "evil"
    folder.mkdir()
    (folder / "checkpoint.json").write_bytes((whole[1] / "checkpoint.json").read_bytes())
    bomb = np.array([{"a": 1}], dtype=object)
    evil = folder / "joint-chain-0-block-00000.npz"
    np.savez(evil, **{"0": bomb})
    with refused(PosteriorError, "checkpoint-file-damaged", {"path": str(evil)}):
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
