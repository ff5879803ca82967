"""Diagnosis of data at a path: a study, answers without counts, attempts, or logs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from bayesrep.atomic import find_moved_aside
from bayesrep.errors import OptionError, StudyError, listing, plain_text
from bayesrep.files.tables import scan
from bayesrep.sources.evals.detect_format import join_known_groups, read_logs
from bayesrep.sources.evals.match_items import join_records
from bayesrep.sources.evals.reading import explain_refusals
from bayesrep.sources.evals.records import LogChoices
from bayesrep.sources.evals.survey import count_attempts
from bayesrep.sources.tables.recognise import COUNTED_KINDS, KIND_COLUMNS
from bayesrep.studies.attempts import Attempts, read_attempts
from bayesrep.studies.capabilities import (
    ADJUSTED_USE,
    RAW_USE,
    Allowed,
    of_answers,
    of_attempts,
    of_study,
)
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.layout import PREDICTIONS_FOLDER
from bayesrep.studies.manifest import describe_missing_study
from bayesrep.studies.study_folder import StudyFolder
from bayesrep.studies.vocabulary import VOCABULARY_OF_NAME, vocabulary_of

NO_CHOICES = LogChoices()


def examine_data(
    paths: Sequence[Path], choices: LogChoices = NO_CHOICES
) -> tuple[str, list[Allowed]]:
    """Describe the data, and judge their capabilities."""
    path = paths[0]
    if len(paths) == 1 and find_moved_aside(path) is not None:
        raise StudyError(describe_missing_study(path))
    folder = StudyFolder(path)
    if len(paths) == 1 and (folder.is_study or (path / PREDICTIONS_FOLDER).is_dir()):
        return _examine_contents(StudyContents.open(path))
    _refuse_study_tables(paths)
    if len(paths) == 1 and path.suffix in (".csv", ".parquet"):
        try:
            attempts = read_attempts(path)
        except StudyError as error:  # else a table of scores, which is a log
            if error.rule in ("counts-of-few-values", "counts-with-common-divisor"):
                raise
        else:
            return "a table of attempts", _of_table(attempts)
    return _of_logs(paths, choices)


def _refuse_study_tables(paths: Sequence[Path]) -> None:
    """Refuse tables of counts or of answers by annotators, of which others say what is wrong."""
    for path in paths:
        if not (path.is_file() and path.name.lower().endswith((".csv", ".parquet"))):
            continue
        columns = scan(path).collect_schema().names()
        for kind in COUNTED_KINDS:
            if set(KIND_COLUMNS[kind]) <= set(columns):
                raise StudyError("doctor-of-study-table", path=path, kind=kind)


def _examine_contents(contents: StudyContents) -> tuple[str, list[Allowed]]:
    if not contents.lacks("counts"):
        study = contents.study()
        return f"a study, {plain_text(study.name)}", of_study(study, contents.attempts)
    names = [each.dataset for each in contents.answers]
    sizes = [len(each.images) for each in contents.answers]
    shared = [set(each.classifiers) for each in contents.answers]
    models = len(set.intersection(*shared)) if shared else 0
    words = VOCABULARY_OF_NAME[vocabulary_of(contents.provenance)]
    judged = of_answers(names, sizes, models, words)
    return "answers that await their counts", [*judged, of_attempts(contents.attempts, words)]


def _of_table(attempts: Sequence[Attempts]) -> list[Allowed]:
    names = list(dict.fromkeys(each.dataset for each in attempts))
    sizes = [max(len(each.images) for each in attempts if each.dataset == name) for name in names]
    models = len({each.classifier for each in attempts})
    words = VOCABULARY_OF_NAME["evaluation"]
    return [*of_answers(names, sizes, models, words), of_attempts(attempts, words)]


def _of_logs(paths: Sequence[Path], choices: LogChoices) -> tuple[str, list[Allowed]]:
    logs = join_known_groups(read_logs(paths, choices))
    records = join_records(logs)
    tools = listing(list(dict.fromkeys(log.tool for log in logs)), "tool")
    tasks = records["task"].unique(maintain_order=True).to_list()
    by_task = records.group_by("task", maintain_order=True).agg(pl.col("item").n_unique())
    on_several = records.group_by("model").agg(pl.col("task").n_unique()).filter(pl.col("task") > 1)
    models = records["model"].n_unique()
    scorers = [name for name in records["scorer"].unique(maintain_order=True) if name]
    words = VOCABULARY_OF_NAME["evaluation"]
    judged = of_answers(tasks, by_task["item"].to_list(), models, words)
    error_of_task = explain_refusals(logs, records, choices)
    judged = [
        _judge_import(each, error_of_task, tasks) if each.what == RAW_USE else each
        for each in judged
    ]
    solvers = len(on_several) - 1
    judged = [_by_solvers(each, solvers) if each.what == ADJUSTED_USE else each for each in judged]
    if len(scorers) > 1:
        judged[-1] = Allowed(
            judged[-1].what,
            "with care",
            f"the logs have the {listing(scorers, 'scorer')}: judges, if each says whether the "
            "same answer is right",
            "import evals --judges NAME,NAME counts them",
        )
    most = max(count_attempts(records).to_list(), default=1)
    numbered = max(records["attempt"].to_list(), default=1) > 1
    command = "import evals" if numbered else "import evals --repeats"
    passes = of_attempts((), words)
    if most > 1:
        passes = Allowed(
            passes.what,
            "yes",
            f"up to {most} attempts of a model at an item",
            f"{command} writes them; then bayesrep papers passk",
        )
    what = f"{len(logs)} log{'s' if len(logs) > 1 else ''} of the {tools}"
    return what, [*judged, passes]


def _judge_import(raw: Allowed, refused: Mapping[str, Exception], tasks: Sequence[str]) -> Allowed:
    """Adjust the raw comparison if some data sets cannot be imported as they are."""
    if raw.state != "yes" or not refused:
        return raw
    name, error = next(iter(refused.items()))
    why = f"import evals refuses {plain_text(name)}: {error}"
    if len(tasks) - len(refused) > 1:  # two others can be compared
        return replace(raw, state="with care", missing=why)
    return Allowed(RAW_USE, "with care" if isinstance(error, OptionError) else "no", why)


def _by_solvers(adjusted: Allowed, solvers: int) -> Allowed:
    """Adjust the adjusted comparison if models of the logs may be counted as solvers."""
    if solvers < 2 or not adjusted.missing:
        return adjusted
    free = (
        f"or, at no cost, import evals --solvers NAME,...: how many of up to {solvers} models "
        "solve an item, for the others"
    )
    return replace(adjusted, missing=f"{adjusted.missing}; {free}")
