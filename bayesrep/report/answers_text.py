"""Printed text about answers and the annotators who gave them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from bayesrep.errors import plain_text
from bayesrep.report.table_format import Cell, list_rows, percent
from bayesrep.studies.representation import number
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words

if TYPE_CHECKING:  # most tables are made without JAX
    from bayesrep.answers.crowd import CrowdDescription
    from bayesrep.answers.quality import Cleaned


def crowd_text(crowd: "CrowdDescription", words: Words = IMAGE_WORDS) -> str:
    """Print the result of `bayesrep.describe_crowd`; of workers only how many answer oddly."""
    cells: dict[str, Cell] = {
        "data set": "{dataset}",
        words.images: "{images:,}",
        "answers": "{answers:,}",
        words.workers: "{workers:,}",
        "answers each": "{answers_a_worker:,.0f}",
        "selected": "{selection_frequency:2p}",
        f"s.e. {words.images}": "{error_images:2p}",
        f"s.e. {words.workers}": "{error_workers:2p}",
        "correlation": "{correlation:.3f}",
        "worth answers": "{effective_answers:,.0f}",
    }
    lines = [list_rows(crowd.datasets, cells), "", plain_text(crowd.sentence)]
    lines += [
        f"{plain_text(row['dataset'])}: {words.workers} select {percent(abs(row['drift']), 2)} "
        f"points {'more' if row['drift'] > 0 else 'less'} often at the end of their answers than "
        f"at the beginning (s.e. {percent(row['drift_error'], 2)})."
        for row in crowd.datasets.to_dicts()
        if row["drift"] is not None
    ]
    named = {"always_yes": "always yes", "always_no": "always no", "at_random": "at random"}
    for way, label in named.items():
        odd = crowd.workers.filter(pl.col(way) > 0.5)
        if len(odd):
            share = float(odd["answers"].sum()) / float(crowd.workers["answers"].sum())
            lines.append(
                f"{number(len(odd), words.worker)} probably "
                f"answer{'s' if len(odd) == 1 else ''} {label}: {percent(share, 1)} % of all "
                "answers."
            )
    return "\n".join(lines)


def aggregators_text(table: pl.DataFrame, words: Words = IMAGE_WORDS) -> str:
    """Print the result of `bayesrep.answers.aggregate_answers`."""
    cells: dict[str, Cell] = {
        "data set": "{dataset}",
        "by": "{method}",
        "mean": "{mean:2p}",
        "above 1/2": "{yes:2p}",
        "certain": "{certain:2p}",
        "as k/n": "{agreement:2p}",
    }
    return (
        f"{list_rows(table, cells)}\n\nAggregators look for one true answer per {words.image}; "
        "the analysis takes the selection frequency, which has none."
    )


def answers_text(table: pl.DataFrame, left_out: Mapping[str, int]) -> str:
    """Describe a table of answers: its contents, what was left out, what a study still lacks."""
    cells: dict[str, Cell] = {
        "data set": "{dataset}",
        "images": "{images:,}",
        "questions": "{questions:,}",
        "workers": "{workers:,}",
        "answers": "{answers:,}",
        "yes": "{yes:2p}",
    }
    lines = [list_rows(table, cells), ""]
    lines += [
        f"Left out, {why}: {number(count, 'answer')}." for why, count in left_out.items() if count
    ]
    for row in table.iter_rows(named=True):
        if row["repeated"]:
            lines.append(
                f"{plain_text(row['dataset'])}: {row['repeated']:,} answers repeat a worker's "
                "about the same question; keep the first with bayesrep answers count --rules "
                "repeats."
            )
        if row["questions"] > row["images"]:
            lines.append(
                f"{plain_text(row['dataset'])}: images were asked about several labels; keep the "
                "answers about their own with --labels."
            )
    return "\n".join(lines)


LEAST_ERROR = 1e-4
"""Smallest error of a mean selection frequency that is reported: a hundredth of a point."""


def counted_text(datasets: pl.DataFrame) -> str:
    """Print the result of `bayesrep.answers.count_answers` for every data set."""
    cells: dict[str, Cell] = {
        "data set": "{dataset}",
        "images": "{images:,}",
        "answers": "{answers:,}",
        "workers": "{workers:,}",
        "selected": "{selection_frequency:2p}",
        "s.e. images": "{error_images:2p}",
        "s.e. workers": "{error_workers:2p}",
    }
    text, largest = list_rows(datasets, cells), max(datasets["error_workers"].to_list())
    if largest < LEAST_ERROR:
        return text
    return (
        f"{text}\n\nCounts do not say who answered: state --people same, or how many where each "
        "data set had a crowd of its own, when they are imported."
    )


def cleaned_text(cleaned: "Cleaned") -> str:
    """Report which answers quality control left out, and how the mean frequencies moved."""
    dropped: dict[str, Cell] = {
        "rule": "{rule}",
        "workers": "{workers:,}",
        "assignments": "{assignments:,}",
        "answers left out": "{answers:,}",
    }
    effect: dict[str, Cell] = {
        "data set": "{dataset}",
        "images": "{images:,}",
        "images lost": "{images_lost:,}",
        "selected before": "{before:2p}",
        "after": "{after:2p}",
    }
    return (
        f"{list_rows(cleaned.dropped, dropped)}\n\n{list_rows(cleaned.effect, effect)}\n\n"
        f"Left: {number(len(cleaned.kept), 'answer')}."
    )
