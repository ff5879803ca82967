"""Every command on logs of language-model evaluations, typed as the page has it."""

import re
import shlex
from pathlib import Path

import polars as pl
import pytest
import test_evals as makers

import bayesrep
from bayesrep.cli import main
from bayesrep.studies.reading import check_study
from bayesrep.studies.vocabulary import words_of

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "evaluation-logs.md"
TASKS = {"gsm8k": 40, "gsm1k": 30}
MODELS = ("org/solver-a", "org/solver-b", "org/solver-c", "org/one", "org/two")


def write_logs(here):
    """What `lm_eval --log_samples` leaves of five models."""
    for model in MODELS:
        for task, items in TASKS.items():
            makers.lm_eval(here / "logs", model, task, items=items)
    rows = [(task, str(item), 4, 5) for task, items in TASKS.items() for item in range(items)]
    table = pl.DataFrame(rows, ["dataset", "item", "selected", "shown"], orient="row")
    table.write_csv(here / "counts.csv")


@pytest.mark.usefixtures("kept_fits")
@pytest.mark.filterwarnings("ignore::bayesrep.errors.EstimateWarning")
def test_the_page_from_logs_to_studies_and_a_report(tmp_path, monkeypatch, capsys):
    write_logs(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text("utf-8").partition("\n## pass@k")[0]
    blocks = re.findall(r"```console\n(.*?)```", text, flags=re.S)
    typed = [line for block in blocks for line in block.replace("\\\n", "").splitlines()]
    assert len(typed) == 6
    for line in typed:
        words = shlex.split(line.removeprefix("$ "))
        assert words[0] == "bayesrep"
        assert main(words[1:]) == 0, capsys.readouterr()
    assert (tmp_path / "my-folder" / "report.html").stat().st_size > 100_000
    studies = {"my-folder/study": sorted(MODELS), "solved": ["org/one", "org/two"]}
    for name, models in studies.items():
        assert check_study(name) == []
        study = bayesrep.read_study(name)
        assert sorted(study.classifiers) == models
        assert words_of(study).images == "items"
        assert len(study.reference.images) == 40
    assert study.reference.answers.workers.tolist() == list(MODELS[:3])
