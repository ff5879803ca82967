"""Printed checks of a fit, the next steps they suggest, and the comparison of fits."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import polars as pl

from bayesrep.checks.finding import CHECKS, LEGEND
from bayesrep.errors import plain_text, quote_word
from bayesrep.report.table_format import align_columns
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words

if TYPE_CHECKING:  # most tables are made without JAX
    from bayesrep.checks.diagnosis import Diagnosis


def diagnosis_text(
    diagnosis: "Diagnosis",
    study: str = "STUDY",
    posterior: str = "posterior.nc",
    words: Words = IMAGE_WORDS,
) -> str:
    """Print the result of `bayesrep.diagnose`: verdict, sentences, commands and table of checks."""
    sentences = [f"- {plain_text(sentence)}" for sentence in diagnosis.sentences]
    sentences += remedies(diagnosis.sentences, study, posterior)
    checks = [(words.restate(check, CHECKS), *others) for check, *others in diagnosis.rows()]
    table = align_columns([("check", "found", "wanted", "trust"), *checks])
    blank = [""] if sentences else []
    return "\n".join([diagnosis.verdict, "", *sentences, *blank, table, LEGEND])


_SETTING_PATTERN = re.compile(r'\b([a-z_]+)=("?)([\w.-]+)\2')
_OPTION_NAMES = ("model", "method", "groups", "datasets")


def remedies(
    sentences: Iterable[str], study: str = "STUDY", posterior: str = "posterior.nc"
) -> list[str]:
    """Commands to paste for the settings that sentences advise, a line each."""
    study, posterior = quote_word(study), quote_word(posterior)
    commands: dict[str, None] = {}
    for sentence in sentences:
        for name, _, value in _SETTING_PATTERN.findall(plain_text(sentence)):
            value = value.rstrip(".")
            if name in _OPTION_NAMES:
                commands[f"fit {study} --out again.nc --{name} {value}"] = None
            else:
                commands[f"fit {study} --out again.nc --set {name}={value.lower()}"] = None
    return [f"  $ bayesrep {command}" for command in commands]


def fits_text(table: pl.DataFrame, words: Words = IMAGE_WORDS) -> str:
    """Rows of `bayesrep.checks.compare_fits`, with what they decide."""
    head = "difference ± s.e. (s.e. shared)"
    rows = [("model", "elpd", "p_loo", head, "counts", "answers", "k > 0.7")]
    for row in table.iter_rows(named=True):
        rows.append(
            (
                row["model"],
                f"{row['elpd']:.1f}",
                f"{row['p_loo']:.1f}",
                f"{row['difference']:.1f} ± {row['se']:.1f} ({row['se_shared']:.1f})",
                f"{row['counts_difference']:.1f} ± {row['counts_se']:.1f}",
                f"{row['answers_difference']:.1f} ± {row['answers_se']:.1f}",
                str(row["pareto_k_high"]),
            )
        )
    legend = (
        f"s.e.: were the {words.classifiers}' answers independent; shared: as all answer the same "
        f"{words.images}."
    )
    return f"{align_columns(rows)}\n{legend}\n\n{_decision(table, words)}"


def _decision(table: pl.DataFrame, words: Words) -> str:
    names = [plain_text(name) for name in table["model"]]
    if len(names) < 2:
        return "One model only: nothing to compare it with."
    rival = table.row(1, named=True)
    lead = -rival["difference"]
    if lead < max(2 * rival["se"], 4):
        return f"{names[0]} and {names[1]} predict equally well, as far as these data tell."
    if lead < 2 * rival["se_shared"]:
        return (
            f"{names[0]} predicts better than {names[1]} if the {words.classifiers}' answers are "
            f"independent; as they answer the same {words.images}, it may be chance."
        )
    return f"{names[0]} predicts better than {names[1]}."
