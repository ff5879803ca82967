"""What data allow to say: a study, answers without counts, attempts, or logs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from bayesrep.errors import OptionError, StudyError, listing, plain_text
from bayesrep.files.tables import scan
from bayesrep.sources.evals.detect_format import join_known_groups, read_logs
from bayesrep.sources.evals.match_items import join_records
from bayesrep.sources.evals.reading import explain_refusals
from bayesrep.sources.evals.records import LogChoices
from bayesrep.sources.evals.score_tables import LINES_ENDINGS
from bayesrep.sources.evals.survey import count_attempts
from bayesrep.studies.attempts import read_attempts
from bayesrep.studies.capabilities import (
    ADJUSTED_USE,
    RAW_USE,
    Allowed,
    of_answers,
    of_attempts,
    of_study,
)
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.layout import MANIFEST_FILE, STUDY_ENTRIES
from bayesrep.studies.vocabulary import VOCABULARY_OF_NAME, vocabulary_of

LOG_ENDINGS = (*LINES_ENDINGS, ".json", ".eval")


def are_logs(paths: Sequence[Path]) -> bool:
    """Test whether paths are logs of evaluations, or attempts, and no study nor tables of one."""
    return all(map(_is_log, paths))


def _is_log(path: Path) -> bool:
    if path.is_dir():
        names = (*STUDY_ENTRIES, f"*/{MANIFEST_FILE}")
        is_study = any(next(path.glob(name), None) for name in names)
        return not is_study and any(each.suffix in LOG_ENDINGS for each in path.rglob("*.*"))
    if not path.name.lower().endswith((".csv", ".parquet")):
        return path.name.lower().endswith(LOG_ENDINGS)
    try:
        columns = set(scan(path).collect_schema().names())
    except StudyError:  # a table, of which is told what is wrong
        return False
    # Two columns alone are a leaderboard, of which no item is told.
    scores = {"model", "score"} < columns and "dataset" not in columns
    return "attempts" in columns or scores


def judge_logs(paths: Sequence[Path]) -> tuple[str, list[Allowed]]:
    """Describe logs or a table of attempts, and judge what they allow to say."""
    path = paths[0]
    if len(paths) == 1 and path.suffix in (".csv", ".parquet"):
        try:
            attempts = read_attempts(path)
        except StudyError as error:  # else a table of scores, which is a log
            if error.rule in ("counts-of-few-values", "counts-with-common-divisor"):
                raise
        else:
            words, names = VOCABULARY_OF_NAME["evaluation"], [each.dataset for each in attempts]
            size_of = {
                name: max(len(each.images) for each in attempts if each.dataset == name)
                for name in dict.fromkeys(names)
            }
            models = len({each.classifier for each in attempts})
            answers = of_answers([*size_of], [*size_of.values()], models, words)
            return "a table of attempts", [*answers, of_attempts(attempts, words)]
    return _of_logs(paths)


def judge_contents(contents: StudyContents) -> list[Allowed]:
    """Judge what a study allows to say, or the answers of one that awaits its counts."""
    if not contents.lacks("counts") and not contents.lacks("predictions"):
        return of_study(contents.study(), contents.attempts)
    names = [each.dataset for each in contents.answers]
    sizes = [len(each.images) for each in contents.answers]
    shared = [set(each.classifiers) for each in contents.answers]
    models = len(set.intersection(*shared)) if shared else 0
    words = VOCABULARY_OF_NAME[vocabulary_of(contents.provenance)]
    judged = of_answers(names, sizes, models, words)
    return [*judged, of_attempts(contents.attempts, words)]


def _of_logs(paths: Sequence[Path]) -> tuple[str, list[Allowed]]:
    # What the logs hold: tools, data sets with their items, models and scorers.
    choices = LogChoices()
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
    if (solvers := len(on_several) - 1) > 1:
        free = (
            f"; or, at no cost, import evals --solvers NAME,...: how many of up to {solvers} "
            "models solve an item, for the others"
        )
        judged = [
            replace(each, missing=each.missing + free)
            if each.what == ADJUSTED_USE and each.missing
            else each
            for each in judged
        ]
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
