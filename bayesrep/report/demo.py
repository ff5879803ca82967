"""The demo: a simulated study through every estimator, beside its known truth."""

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bayesrep.atomic import replaced_folder
from bayesrep.checks.assumptions import correction_notes
from bayesrep.checks.diagnosis import VERDICT_TEXTS, examine
from bayesrep.choices import PAPER_REPLICATES
from bayesrep.errors import OptionError
from bayesrep.estimators import METHODS, analyse, classifier_table, gap_table
from bayesrep.estimators.analysis import Analysis
from bayesrep.inference import fit
from bayesrep.posterior import write_posterior
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.answer import answer_for, drop_of, measured_drop
from bayesrep.report.estimates_text import method_table, spread
from bayesrep.report.figure import has_pictures, on_paper, save_picture
from bayesrep.report.methods import label_of
from bayesrep.report.page import write_page
from bayesrep.report.sections import gather
from bayesrep.report.sections.accuracies_figure import posterior_figure
from bayesrep.report.sections.section import quiet
from bayesrep.report.table_format import Cell, list_rows, percent
from bayesrep.studies.simulate import simulate_study
from bayesrep.studies.study import Study
from bayesrep.summary.tables import accuracies, gaps

DEMO_FILE = "demo.json"
TRUTH_FOLDER = "truth"
N_STEPS = 3


@dataclass(frozen=True, eq=False)
class Demo:
    """Everything the demo found."""

    study: Study  # the simulated study; `fitted` is its fit
    fitted: Fitted
    points: Sequence[Analysis]  # the point estimates of all methods
    table: pl.DataFrame  # one row per method and classifier, with the truth beside
    methods: pl.DataFrame  # one row per method: mean gap, error, coverage
    answer: str  # what the joint model says of the drop, and what is true, in words


def run_demo(
    *,
    quick: bool = False,
    seed: int = 0,
    progress: bool = True,
    tell: Callable[[str], None] | None = None,
) -> Demo:
    """Simulate, estimate, fit and compare."""
    classifiers, images = (24, 2_000) if quick else (136, 10_000)
    say = tell or (lambda _: None)
    long, short = ("half a minute", "a few seconds") if quick else ("a minute", "a quarter of one")
    say(
        f"[1/{N_STEPS}] simulating {images:,} + {images:,} images, 36 annotators each, "
        f"{classifiers} classifiers: a second or two"
    )
    study = simulate_study(seed=seed, images=images, classifiers=classifiers)
    say(f"[2/{N_STEPS}] fitting the joint model: {long}, of which a half compiles")
    posterior = inspect.unwrap(fit)(study, seed=seed, progress=progress)  # no ArviZ for a file
    fitted = Fitted(study, posterior).require_convergence()
    truth = _truth(study)
    answer = _headline(study, fitted, truth)
    for line in answer.splitlines():
        say(f"      {line}")
    say(f"[3/{N_STEPS}] the published estimates, {PAPER_REPLICATES} bootstrap replicates: {short}")
    with quiet():
        points = analyse(study, METHODS, bootstrap=PAPER_REPLICATES, seed=seed, progress=progress)
    rows = pl.concat([classifier_table(points), accuracies(fitted)], how="diagonal_relaxed")
    table = rows.join(truth, on="classifier", how="inner", maintain_order="left")
    divided = pl.concat([gap_table(points), gaps(fitted)])
    return Demo(study, fitted, points, table, _methods(study, table, divided), answer)


def _truth(study: Study) -> pl.DataFrame:
    if study.truth is None:
        raise OptionError("demo-truth-unknown")
    return pl.DataFrame(
        {
            "classifier": study.classifiers,
            "true_adjusted_accuracy": study.truth.adjusted_accuracy,
            "true_gap": study.reference.correct.mean(axis=0) - study.truth.adjusted_accuracy,
        }
    )


def _methods(study: Study, table: pl.DataFrame, gaps: pl.DataFrame) -> pl.DataFrame:
    error = pl.col("bias_corrected_gap") - pl.col("true_gap")
    inside = pl.col("true_adjusted_accuracy").is_between(pl.col("lower"), pl.col("upper"))
    raw_gap = (pl.col("reference_accuracy") - pl.col("replication_accuracy")).mean()
    share = pl.col("selection_gap").mean() / raw_gap
    clear = measured_drop(study).is_above_zero
    methods = table.group_by("method", maintain_order=True).agg(
        mean_gap=pl.col("bias_corrected_gap").mean(),
        mean_error=error.mean(),
        share_explained=pl.when(share.is_between(0, 1) & pl.lit(clear)).then(share),
        coverage=pl.when(pl.col("lower").is_not_null()).then(inside).mean(),
    )
    mean = gaps.filter(pl.col("quantity") == "bias_corrected_gap")
    intervals = mean.select("method", "lower", "upper")
    methods = methods.join(intervals, on="method", maintain_order="left")
    gap = float(table["true_gap"].mean())  # type: ignore[arg-type]
    raw = float(np.mean(study.reference.correct) - np.mean(study.replication.correct))
    explained = 1 - gap / raw if clear and 0 <= gap <= raw else None
    truth = {"method": TRUTH_FOLDER, "mean_gap": gap, "share_explained": explained}
    return pl.concat([methods, pl.DataFrame([truth])], how="diagonal_relaxed")


def demo_text(demo: Demo) -> str:
    """The demo's result as printed."""
    names = [demo.study.classifiers[i] for i in spread(len(demo.study.classifiers))]
    # One row a classifier, with the estimate of every method side by side.
    wide = demo.table.filter(pl.col("classifier").is_in(names)).pivot(
        "method", index=["classifier", "true_adjusted_accuracy"], values="adjusted_accuracy"
    )
    model = demo.fitted.record.name
    # The model alone has an interval here.
    interval = demo.table.filter(pl.col("method") == model)
    table = wide.join(
        interval.select("classifier", "reference_accuracy", "lower", "upper"), on="classifier"
    )
    cells: dict[str, Cell] = {"classifier": "{classifier}", "reference": "{reference_accuracy:1p}"}
    cells |= {label_of(name): f"{{{name}:1p}}" for name in (*METHODS, model)}
    cells |= {"95 % interval": "{lower:1p} to {upper:1p}"}
    cells |= {TRUTH_FOLDER: "{true_adjusted_accuracy:1p}"}
    diagnosis = examine(demo.fitted.posterior, demo.fitted, with_agreement=False)
    return "\n".join(
        [
            demo.answer,
            "",
            "What every method says remains of the drop, mean over classifiers:",
            "",
            method_table(demo.methods),
            "",
            "Accuracy at the reference's selection frequencies, in percent:",
            "",
            list_rows(table, cells),
            f"{len(table)} of {len(demo.study.classifiers)} classifiers; estimates.csv of --out "
            "has all of them.",
            "",
            f"Trust, as `bayesrep diagnose` says: {diagnosis.trust}. "
            + VERDICT_TEXTS[diagnosis.trust].format(assumption=diagnosis.assumption),
            *(f"- {sentence}" for sentence in diagnosis.sentences),
        ]
    )


def _headline(study: Study, fitted: Fitted, truth: pl.DataFrame) -> str:
    drop = drop_of(gaps(fitted), measured_drop(study), correction_notes(fitted))
    gap = float(truth["true_gap"].mean())  # type: ignore[arg-type]
    remaining = drop.remaining
    inside = remaining.lower is not None and remaining.lower <= gap <= (remaining.upper or gap)
    verdict = "inside the interval" if inside else "outside the interval"
    return (
        f"{answer_for(study, drop)}\nThe simulation knows the truth: "
        f"{percent(gap, 1)} points remain, {verdict}."
    )


def demo_facts(demo: Demo) -> dict[str, Any]:
    """The demo's result as one JSON object, fractions throughout."""
    attributes = demo.fitted.group.attrs
    return {
        "study": {"name": demo.study.name, **dict(demo.study.provenance)},
        "methods": demo.methods.to_dicts(),
        "fitted_by": attributes["method"],
        "max_rhat": demo.table["rhat"].max(),
        "min_ess_bulk": demo.table["ess_bulk"].min(),
        "min_ess_tail": demo.table["ess_tail"].min(),
        "verdict": attributes["verdict"],
        "versions": json.loads(attributes["versions"]),
    }


def check_demo_folder(out: Path) -> None:
    """Refuse, before any work, a folder that holds something other than an earlier demo."""
    foreign = not out.is_dir() or any(out.iterdir())
    if out.exists() and not (out / DEMO_FILE).is_file() and foreign:
        raise OptionError("out-not-earlier-demo", out=out)


def write_demo(demo: Demo, out: Path) -> None:
    """Write study, posterior, tables, page and, with [pictures], figure; replace an older demo."""
    check_demo_folder(out)
    with replaced_folder(out.resolve()) as folder:
        demo.study.write(folder / "study")
        write_posterior(demo.fitted.posterior, folder / "posterior.nc")
        demo.table.write_csv(folder / "estimates.csv")
        facts = json.dumps(demo_facts(demo), indent=1)
        figure = on_paper(posterior_figure(demo.fitted, demo.study))
        for suffix in (".png", ".svg") if has_pictures() else ():
            save_picture(figure, folder / f"adjusted-accuracy{suffix}")
        content = gather(demo.study, demo.fitted.posterior, points=demo.points)
        write_page(content, folder / "report.html")
        (folder / DEMO_FILE).write_text(facts + "\n", encoding="utf-8")
