"""Items kept by a few answers and measured again by a hundred: natural language inference.

    python -m experiments.reannotation --counts counts.csv [--predictions predictions.csv]
        [--deals 200] [--matched 20] [--work DIR]

ChaosNLI (Nie, Zhou and Bansal, 2020) asked a hundred people about items of SNLI and MNLI whose old
label 3 of 5 annotators had given. As a placebo with a known answer, five of an item's hundred
answers are dealt, items with at least three for the label are kept, and from the fives alone it is
predicted what the other 95 say. And on both sets of kept items at once, MNLI beside SNLI: what
RoBERTa would score on MNLI were its items as clear as SNLI's, by the joint model told the rule and
by naive matching, held against the same by the other 95 answers. Resumable.
"""

import argparse
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import bayesrep
from bayesrep import Study
from bayesrep.errors import ConvergenceWarning, EstimateWarning
from bayesrep.estimators.remeasured import remeasure_counts
from bayesrep.report.table_format import columns, percent
from experiments.ledger import resume
from experiments.results import save

LABELS = ("e", "n", "c")
SETS = {"snli": "SNLI", "mnli": "MNLI"}
DEALT, LEAST = 5, 3
RULE = f"at least {LEAST} of {DEALT}"
WAYS = {"told": RULE, "untold": None}
EXCHANGED = {"e": "e", "n": "c", "c": "n"}
"""The predictions' file has neutral and contradiction the other way round: read so, RoBERTa agrees
with most of the hundred on 74 % of SNLI's items, and as it stands on a third."""
BINS = 20  # of the share of the other answers, by which sets are matched for the truth


class Items:
    """One set: how many of the hundred say the old label, and who predicts it."""

    def __init__(self, counts: pl.DataFrame, predictions: pl.DataFrame | None, name: str) -> None:
        rows = counts.filter(pl.col("set") == name)
        place = np.array([LABELS.index(label) for label in rows["old_label"]])
        new = rows.select(f"new_{label}" for label in LABELS).to_numpy()
        old = rows.select(f"old_{label}" for label in LABELS).to_numpy()
        every = np.arange(len(rows))
        self.yes, self.total = new[every, place], new.sum(axis=1)
        self.old = old[every, place]
        self.correct: Mapping[str, np.ndarray] = {}
        if predictions is not None:
            said = rows.select("set", "item", "old_label").join(
                predictions, on=["set", "item"], how="left", maintain_order="left"
            )
            self.correct = {
                model: (said[model].replace(EXCHANGED) == said["old_label"])
                .fill_null(value=False)
                .to_numpy()
                for model in predictions.columns[2:]
                if said[model].null_count() < len(said) // 2
            }
            self.predicted = np.all(
                [said[model].is_not_null().to_numpy() for model in self.correct], axis=0
            )

    def dealt(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Answers for the label among five, and which items they keep."""
        five = np.random.default_rng(seed).hypergeometric(self.yes, self.total - self.yes, DEALT)
        return five, five >= LEAST

    def rest(self, five: np.ndarray) -> np.ndarray:
        """Share of the other answers that say the label, by item."""
        return (self.yes - five) / (self.total - DEALT)


def one_deal(items: Items, seed: int) -> dict[str, Any]:
    """What the fives say of the other answers, told the rule and not."""
    five, kept = items.dealt(seed)
    shown, others = np.full(kept.sum(), DEALT), int(items.total[0]) - DEALT
    found: dict[str, Any] = {
        "kept": int(kept.sum()),
        "raw": float(five[kept].mean() / DEALT),
        "truth": float(items.rest(five)[kept].mean()),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for way, rule in WAYS.items():
            said = remeasure_counts(five[kept], shown, rule, answers=others, seed=seed)
            found[way] = said.frequency
    return found


def one_match(sets: Mapping[str, Items], seed: int) -> dict[str, Any]:
    """RoBERTa on MNLI at SNLI's agreement: told, untold and naive, and by the other answers."""
    models = sorted(set(sets["snli"].correct) & set(sets["mnli"].correct))
    sides: dict[str, dict[str, Any]] = {}
    rests: dict[str, np.ndarray] = {}
    for number, (role, name) in enumerate((("reference", "snli"), ("replication", "mnli"))):
        items = sets[name]
        five, kept = items.dealt(2 * seed + number)
        kept = kept & items.predicted
        correct = np.column_stack([items.correct[model][kept] for model in models])
        sides[role] = {"selected": five[kept], "shown": DEALT, "correct": correct, "name": name}
        rests[role] = items.rest(five)[kept]
    found: dict[str, Any] = {
        "raw": sides["replication"]["correct"].mean(axis=0).tolist(),
        "truth": _matched(rests, sides["replication"]["correct"]).tolist(),
    }
    for way, rule in WAYS.items():
        told = {role: side | {"selection": rule} for role, side in sides.items()}
        study = Study.from_arrays(**told, classifiers=models)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            posterior = bayesrep.fit(
                study, method="laplace", seed=seed, progress=False, dependence=0.0
            )
        draws = posterior["posterior"]["adjusted_accuracy"].values.reshape(-1, len(models))
        found[way] = [
            draws.mean(axis=0).tolist(),
            *np.quantile(draws, (0.025, 0.975), axis=0).tolist(),
        ]
        if rule is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", EstimateWarning)
                naive = bayesrep.estimate(study, "naive")
            found["naive"] = naive["adjusted_accuracy"].to_list()
    return found


def _matched(rests: Mapping[str, np.ndarray], correct: np.ndarray) -> np.ndarray:
    """Accuracy on MNLI with as many items of each share of the other answers as SNLI has."""
    edges = np.quantile(rests["reference"], np.linspace(0, 1, BINS + 1)[1:-1])
    into = {role: np.searchsorted(edges, share) for role, share in rests.items()}
    size = len(edges) + 1
    wanted = np.bincount(into["reference"], minlength=size).astype(float)
    there = np.bincount(into["replication"], minlength=size)
    right = np.stack([np.bincount(into["replication"], c, size) for c in correct.T])
    has = there > 0
    return (right[:, has] / there[has]) @ wanted[has] / wanted[has].sum()


def numbers(
    deals: Mapping[str, Sequence[Mapping[str, Any]]],
    matched: Sequence[Mapping[str, Any]],
    story: Mapping[str, Any],
) -> dict[str, Any]:
    """Coverage and errors over deals, and of matching."""
    found: dict[str, Any] = {"deals": {}, "story": dict(story)}
    for name, results in deals.items():
        truth = np.array([r["truth"] for r in results])
        raw = np.array([r["raw"] for r in results])
        row: dict[str, Any] = {
            "deals": len(results),
            "kept": float(np.mean([r["kept"] for r in results])),
            "truth": float(truth.mean()),
            "raw": float(raw.mean()),
            "raw_error": float((raw - truth).mean()),
        }
        for way in WAYS:
            middle, lower, upper = np.array([r[way] for r in results]).T
            row[way] = {
                "coverage": float(((lower <= truth) & (truth <= upper)).mean()),
                "estimate": float(middle.mean()),
                "error": float((middle - truth).mean()),
                "width": float((upper - lower).mean()),
            }
        found["deals"][name] = row
    if matched:
        truth = np.array([r["truth"] for r in matched])
        found["matched"] = {"deals": len(matched), "truth": float(truth.mean())}
        for way in ("raw", "naive"):
            value = np.array([r[way] for r in matched])
            found["matched"][way] = {
                "accuracy": float(value.mean()),
                "error": float((value - truth).mean()),
            }
        for way in WAYS:
            middle, lower, upper = np.moveaxis(np.array([r[way] for r in matched]), 1, 0)
            found["matched"][way] = {
                "accuracy": float(middle.mean()),
                "error": float((middle - truth).mean()),
                "coverage": float(((lower <= truth) & (truth <= upper)).mean()),
                "width": float((upper - lower).mean()),
            }
    return found


def table(found: Mapping[str, Any]) -> str:
    """One table for the share of the other answers, one for accuracies at matched agreement."""
    said = {"told": "rule stated", "untold": "counts as if fresh"}
    header = ["set", "way", "deals", "other 95 (%)", "estimate (%)", "error", "covered", "width"]
    rows: list[list[str]] = []
    for name, row in found["deals"].items():
        start = [SETS[name], str(row["deals"]), percent(row["truth"], 2)]
        ends = [percent(row["raw"], 2), percent(row["raw_error"], 2), "-", "-"]
        rows.append([start[0], "share of the five", *start[1:], *ends])
        for way, words in said.items():
            of = row[way]
            numbers_of = [percent(of[n], 2) for n in ("estimate", "error")]
            more = [percent(of["coverage"], 1), percent(of["width"], 2)]
            rows.append([start[0], words, *start[1:], *numbers_of, *more])
    text = columns(header, rows)
    if "matched" in found:
        of = found["matched"]
        header = [
            "RoBERTa on MNLI at SNLI's agreement",
            "accuracy (%)",
            "error",
            "covered",
            "width",
        ]
        rows = [["by the other 95 answers", percent(of["truth"], 2), "-", "-", "-"]]
        for way, words in {
            "raw": "as measured",
            "naive": "naive matching of fives",
            **said,
        }.items():
            ends = [
                percent(of[way][n], d) if n in of[way] else "-"
                for n, d in (("coverage", 1), ("width", 2))
            ]
            pair = [percent(of[way][n], 2) for n in ("accuracy", "error")]
            rows.append([words, *pair, *ends])
        text += "\n\n" + columns(header, rows)
    header = ["published", "5 old (%)", "100 new (%)", "said by 3 of 5 alone (%)"]
    rows = [
        [
            SETS[name],
            percent(of["old"], 1),
            percent(of["new"], 1),
            f"{percent(of['alone'][0], 1)} ({percent(of['alone'][1], 1)} to "
            f"{percent(of['alone'][2], 1)})",
        ]
        for name, of in found["story"].items()
    ]
    return f"{text}\n\n{columns(header, rows)}"


def told_by_three(items: Items) -> dict[str, Any]:
    """The published re-annotation: what counts that are all 3 of 5 can say of it."""
    shown = np.full(len(items.old), DEALT)
    alone = remeasure_counts(items.old, shown, f"exactly {LEAST} of {DEALT}", seed=0)
    return {
        "old": float(items.old.mean() / DEALT),
        "new": float((items.yes / items.total).mean()),
        "alone": alone.frequency,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/items.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.reannotation", description=__doc__)
    parser.add_argument("--counts", type=Path, required=True)
    parser.add_argument("--predictions", type=Path)
    parser.add_argument("--deals", type=int, default=200)
    parser.add_argument("--matched", type=int, default=20)
    parser.add_argument("--work", type=Path, default=Path("build/experiments"))
    arguments = parser.parse_args(argv)
    counts = pl.read_csv(arguments.counts)
    predictions = None
    if arguments.predictions is not None:
        predictions = pl.read_csv(arguments.predictions, infer_schema_length=None)
    sets = {name: Items(counts, predictions, name) for name in SETS}
    seeds = list(map(str, range(arguments.deals)))
    deals = {
        name: resume(
            arguments.work / f"reannotation-{name}.jsonl",
            seeds,
            lambda key, items=items: one_deal(items, int(key)),
        )
        for name, items in sets.items()
    }
    matched: list[Any] = []
    if predictions is not None:
        chosen = list(map(str, range(arguments.matched)))
        matched = resume(
            arguments.work / "reannotation-matched.jsonl",
            chosen,
            lambda key: one_match(sets, int(key)),
        )
    story = {name: told_by_three(items) for name, items in sets.items()}
    found = numbers(deals, matched, story)
    text = table(found)
    print(text)
    given = " --predictions predictions.csv" if predictions is not None else ""
    command = (
        f"python -m experiments.reannotation --counts counts.csv{given} --deals "
        f"{arguments.deals} --matched {arguments.matched}"
    )
    kept = " and ".join(f"{row['kept']:.0f} of {SETS[n]}" for n, row in found["deals"].items())
    remarks = (
        f"Five of an item's hundred answers are dealt, items with at least three for the old label "
        f"stay ({kept}, on average), and the fives predict the mean share of the label among the "
        "other 95 answers to these items. 'rule stated': the likelihood of counts that passed the "
        "rule; 'counts as if fresh': the same mixture without it. All deals are of the same items, "
        "so coverage is over deals. Matched agreement: what RoBERTa (three seeds, right where it "
        "says the old label) would score on MNLI's kept items were their agreement distributed as "
        "SNLI's; the truth by the other 95 answers, in twenty bins. Last, the published "
        "re-annotation: where every item has exactly 3 of 5, counts alone identify nothing, and "
        "what is said is the prior's. In percent and points."
    )
    save("reannotation", command, found, text, None, remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
