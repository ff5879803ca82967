"""Simulated workers, who answer a collection's tasks as the offline page saves answers."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit, logit

from bayesrep.collect.collection import Collection
from bayesrep.types import Bools, Floats


@dataclass(frozen=True)
class Respondents:
    """Parameters of the simulated workers.

    Parameters
    ----------
    number
        Number of workers.
    own, other
        Mean selection frequency of an image's own label, and of another.
    varied
        Concentration (sum of the two parameters) of the beta distribution of the images' selection
        frequencies; smaller means that images differ more.
    spread
        Standard deviation of people's leniencies, on the logit scale.
    spam
        Share of people who do not look, and select each place with probability one half.
    seconds
        Median time of a task.
    seed
        Seed of all that is random.
    """

    number: int = 30
    own: float = 0.85
    other: float = 0.10
    varied: float = 4.0
    spread: float = 0.5
    spam: float = 0.0
    seconds: float = 60.0
    seed: int = 0


def answer(collection: Collection, people: Respondents | None = None) -> list[dict[str, Any]]:
    """Simulate the answers, in the offline page's format."""
    who = people or Respondents()
    random = np.random.default_rng(who.seed)
    tasks = collection.tasks
    frequency = _frequencies(tasks, who, random)
    leniency = who.spread * random.standard_normal(who.number)
    careless = random.random(who.number) < who.spam
    answers_of: list[list[dict[str, Any]]] = [[] for _ in range(who.number)]
    first = np.flatnonzero(tasks["place"].to_numpy() == 1)
    begun, of_round = 0, np.arange(who.number) % collection.rounds
    for task, (begin, end) in enumerate(zip(first, [*first[1:], len(tasks)], strict=True)):
        # Each worker does one round if there are enough; the least busy of them is next.
        other = of_round != task * collection.rounds // len(first)
        load = np.array([len(each) for each in answers_of]) + random.random(who.number)
        load += len(tasks) * other
        for person in np.argsort(load)[: collection.workers].tolist():
            chance = expit(logit(frequency[begin:end]) + leniency[person])
            picked = random.random(end - begin) < (0.5 if careless[person] else chance)
            answered = _answer(collection.kind, picked, chance, random)
            seconds = who.seconds * np.exp(0.4 * random.standard_normal())
            begun += 1
            answers_of[person].append(
                {
                    "task": str(tasks["task"][int(begin)]),
                    **answered,
                    "seconds": round(float(seconds * (0.2 if careless[person] else 1.0)), 1),
                    "time": _time(begun),
                }
            )
    return [
        {"format": "bayesrep answers 1", "worker": f"worker {person}", "answers": answers}
        for person, answers in enumerate(answers_of, 1)
        if answers
    ]


def write_answers(path: Path, collection: Collection, people: Respondents | None = None) -> None:
    """Write one file for each worker into a new folder."""
    path.mkdir()
    for number, each in enumerate(answer(collection, people), 1):
        (path / f"answers-{number:04d}.json").write_text(json.dumps(each), encoding="utf-8")


def _frequencies(tasks: pl.DataFrame, who: Respondents, random: np.random.Generator) -> Floats:
    """Draw the selection frequency of every place, one for each image and label."""
    pairs = tasks.select(pl.struct("dataset", "image", "label").rank("dense")).to_series()
    row = pairs.to_numpy().astype(np.int64) - 1
    distinct = tasks.with_columns(row=pl.Series(row)).unique("row").sort("row")
    mean = np.where(distinct["own"].to_numpy(), who.own, who.other)
    frequency = random.beta(who.varied * mean, who.varied * (1 - mean))
    control = distinct["control"].fill_null("").to_numpy()
    frequency[control == "positive"], frequency[control == "negative"] = 0.97, 0.02
    return np.clip(frequency, 0.005, 0.995)[row]


def _answer(
    kind: str, picked: Bools, chance: Floats, random: np.random.Generator
) -> dict[str, Any]:
    places = np.flatnonzero(picked) + 1
    if kind == "contains":
        return {"selected": places.tolist()}
    if not len(places):
        places = np.array([int(random.choice(len(chance), p=chance / chance.sum())) + 1])
    main = random.choice(places, p=chance[places - 1] / chance[places - 1].sum())
    return {"selected": places.tolist(), "main": int(main)}


def _time(begun: int) -> str:
    """Return a time stamp, one minute after the one before, from 1 January 2026 on."""
    return str(np.datetime64("2026-01-01T08:00:00") + np.timedelta64(begun, "m")) + "Z"
