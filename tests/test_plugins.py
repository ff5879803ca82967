"""Files of one's own are run where users name them, and never where data do."""

import os
import textwrap
from argparse import Namespace

import pytest
import zoo
from refusals import refused

import bayesrep
from bayesrep import plugins
from bayesrep.commands.fit import _following_command
from bayesrep.errors import OptionError, PosteriorError
from bayesrep.estimators import methods
from bayesrep.inference.problem import pose
from bayesrep.models import MODELS
from bayesrep.posterior.files import read_posterior
from bayesrep.sweeps.grid import read_grid

CODE = """
    from dataclasses import dataclass, replace
    from typing import ClassVar

    from bayesrep.estimators import ESTIMATORS
    from bayesrep.estimators.raw import Raw
    from bayesrep.models import MODELS


    @dataclass(frozen=True)
    class Half(Raw):
        name: ClassVar[str] = "half"

        def __call__(self, replicates, **options):
            found = super().__call__(replicates, **options)
            return replace(found, value=found.value / 2)


    MINE = replace(MODELS["joint"])
    MODELS["again"] = replace(MODELS["joint"])
    ESTIMATORS["half"] = Half
    with open({mark!r}, "a") as file:
        file.write("run ")
"""


@pytest.fixture
def code(tmp_path, monkeypatch, own_models):
    """A file with a model, one that it registers and an estimator; it marks every run."""
    path, mark = tmp_path / "mine.py", tmp_path / "mark"
    path.write_text(textwrap.dedent(CODE.format(mark=str(mark))))
    monkeypatch.setattr(plugins, "_modules", {})
    yield path, mark
    methods.ESTIMATORS.pop("half", None)


def test_a_file_is_run_once_where_it_is_named(code):
    path, mark = code
    study = zoo.study("tiny")
    assert pose(study, model=f"{path}:MINE", options={}).name == "MINE"
    assert pose(study, model=f"{path}:again", options={}).model is MODELS["again"]
    assert mark.read_text() == "run "


def test_the_environment_names_files_for_every_command(code, monkeypatch):
    path, mark = code
    monkeypatch.setenv(plugins.PLUGINS_VAR, os.pathsep.join([str(path), ""]))
    table = bayesrep.estimate(zoo.study("tiny"), methods=["raw", "half"], bootstrap=0)
    assert "half" in str(table)
    assert "again" in MODELS
    assert mark.read_text() == "run "


def test_a_sweep_has_models_and_estimators_of_files(code, monkeypatch, tmp_path):
    path, mark = code
    monkeypatch.setenv(plugins.PLUGINS_VAR, str(path))
    made = {"simulate": {"images": 500, "annotators": 8, "classifiers": 3, "seed": 1}}
    grid = {"method": ["raw", "half"], "study": [made]}
    raw, half = bayesrep.sweep(grid, tmp_path / "out")["mean_gap"]
    assert half == pytest.approx((raw + zoo.study("tiny").reference.correct.mean()) / 2)
    assert read_grid(grid | {"method": "nuts", "model": "again"}).axes["model"] == ("again",)
    assert mark.read_text() == "run "


def test_what_reads_a_fit_is_told_the_file_of_its_model():
    arguments = Namespace(model="my m.py:MINE", study="s", out="fit.nc")
    told = _following_command(arguments, converged=True)
    assert told == "BAYESREP_PLUGINS='my m.py' bayesrep summarize s fit.nc"
    for arguments.model in ("joint", None):
        told = _following_command(arguments, converged=False)
        assert told == "bayesrep diagnose fit.nc --study s"


def test_data_name_no_file(code, tmp_path):
    import h5py

    path, mark = code
    file = tmp_path / "posterior.nc"
    bayesrep.write_posterior(zoo.posterior("tiny", **zoo.QUICK), file)
    with h5py.File(file, "r+") as opened:
        opened["posterior"].attrs["model"] = f"{path}:MINE"
    with refused(PosteriorError, "posterior-of-unknown-model", {"model": f"{path}:MINE"[:50]}):
        read_posterior(file)
    assert not mark.exists()


def test_a_grid_names_no_file(code, tmp_path):
    path, mark = code
    grid = tmp_path / "grid.toml"
    grid.write_text(f'[axes]\nmodel = ["{path}:MINE"]\n')
    with pytest.raises(OptionError):
        read_grid(grid)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("text", "reference", "rule", "facts"),
    [
        (None, "{path}:MINE", "plugin-not-a-file", {"path": "{path}"}),
        ("x = 1", "{path}:MINE", "plugin-without-model", {"path": "{path}", "model": "MINE"}),
        (
            "1 / 0",
            "{path}:MINE",
            "plugin-failed",
            {"problem": "ZeroDivisionError: division by zero"},
        ),
        ("def", "{path}:MINE", "plugin-failed", {"path": "{path}"}),
    ],
)
def test_a_file_that_is_wrong_is_refused(tmp_path, monkeypatch, text, reference, rule, facts):
    monkeypatch.setattr(plugins, "_modules", {})
    path = tmp_path / "wrong.py"
    if text is not None:
        path.write_text(text)
    facts = {name: value.format(path=path) for name, value in facts.items()}
    with refused(OptionError, rule, facts):
        pose(zoo.study("tiny"), model=reference.format(path=path), options={})
