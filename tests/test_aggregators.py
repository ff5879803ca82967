"""crowd-kit's aggregators beside the selection frequency, and what is said without it."""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import zoo
from refusals import refused

from bayesrep import OptionError, Study, StudyError, WorkerAnswers
from bayesrep.answers import aggregate_answers
from bayesrep.cli import main


class Constant:
    """Stands for an aggregator: certain of the first worker's answer, and no other's."""

    def __init__(self, **_):
        pass

    def fit_predict_proba(self, answers):
        first = answers[answers["worker"] == 0].set_index("task")["label"]
        return pd.DataFrame({0: 1.0 - first, 1: 1.0 * first})


@pytest.fixture
def kit(monkeypatch):
    names = ("crowdkit", "crowdkit.aggregation")
    for name in names:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for name in ("DawidSkene", "GLAD", "MACE"):
        setattr(sys.modules["crowdkit.aggregation"], name, Constant)


def _study():
    answers = WorkerAnswers.of([0, 0, 1, 1, 2, 2], list("ababab"), [1, 0, 1, 1, 0, 0])
    side = {"selected": [1, 2, 0], "shown": 2, "correct": np.ones((3, 1)), "images": list("xyz")}
    return Study.from_arrays(
        reference={**side, "answers": answers}, replication=side, classifiers=["c"]
    )


def test_one_row_a_method_and_data_set_of_known_workers(kit):
    table = aggregate_answers(_study())
    assert table["method"].to_list() == ["selection frequency", "Dawid-Skene", "MACE", "GLAD"]
    assert set(table["dataset"]) == {"reference"}
    assert table.row(0)[3:] == pytest.approx((0.5, 1 / 3, 2 / 3, 1.0))
    assert table.row(1)[3:] == pytest.approx((2 / 3, 2 / 3, 1.0, 1.0))


def test_the_command_prints_them_beside_the_crowd(kit, tmp_path, capsys):
    _study().write(tmp_path / "s")
    assert main(["answers", "crowd", str(tmp_path / "s"), "--aggregators"]) == 0
    said = capsys.readouterr().out
    assert "Dawid-Skene" in said
    assert "Aggregators look for one true answer" in said


def test_without_crowd_kit_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "crowdkit.aggregation", None)
    with refused(OptionError, "crowd-kit-not-installed"):
        aggregate_answers(_study())


def test_without_workers_there_is_nothing_to_aggregate():
    with refused(StudyError, "study-without-known-workers"):
        aggregate_answers(zoo.study("tiny"))
