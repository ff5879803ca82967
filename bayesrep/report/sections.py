"""The page's sections: their sentences, controls and figures, as data for its template.

Each is a mapping with the keys of `_section`; figures are drawn by the page's script under the
same names (`bayesrep.report.charts`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bayesrep.report.answer import Estimate, answer_for
from bayesrep.report.content import Content
from bayesrep.report.text import percent

__all__ = ["LABELS", "method_labels", "sections"]

LABELS = {
    "raw": "As measured",
    "naive": "Naive matching",
    "jackknife": "Jackknife",
    "em-spline": "EM + spline",
    "joint": "Posterior",
    "shared-difficulty": "Posterior",
}
VERDICTS = {
    "yes": ("verdict-yes", "Yes: every check is fine."),
    "with care": ("verdict-care", "With care: something is not as it should be."),
    "no": ("verdict-no", "No: do not use this fit."),
}


def method_labels(content: Content) -> dict[str, str]:
    """What every method shown is called, in order."""
    return {name: LABELS[name] for name in content.gaps["method"].to_list()}


def _section(name: str, short: str, title: str, lead: str = "", **more: Any) -> dict[str, Any]:
    """One section of the page, with nothing in it but what is given."""
    empty: dict[str, Any] = {
        "lead_class": "",
        "share": None,
        "long": False,
        "notes": [],
        "controls": [],
        "figures": [],
        "table": None,
        "sentences": [],
        "settings": None,
        "repeat": "",
    }
    return {**empty, "id": name, "short": short, "title": title, "lead": lead, **more}


def _figure(name: str, label: str, reading: str = "") -> dict[str, str]:
    return {"id": name, "label": label, "reading": reading}


def sections(content: Content) -> Iterator[dict[str, Any]]:
    """All sections, in order; those that cannot be shown say why."""
    yield _answer(content)
    yield _scatter(content)
    yield _table(content)
    yield _frequencies(content)
    yield _image(content)
    yield _toy()
    yield _curves(content)
    yield _trust(content)


def _notes(content: Content, *names: str) -> list[str]:
    return [
        f"Not shown, since {content.missing[name]}." for name in names if name in content.missing
    ]


def _answer(content: Content) -> dict[str, Any]:
    rows = content.gaps.to_dicts()
    told = [
        [
            LABELS[row["method"]],
            percent(row["gap"], 2),
            "–"
            if row["lower"] is None
            else f"{percent(row['lower'], 2)} to {percent(row['upper'], 2)}",
            "–" if row["share"] is None else percent(row["share"], 0),
        ]
        for row in rows
    ]
    return _section(
        "answer",
        "Answer",
        "The answer",
        answer_for(content.study, content.drop),
        lead_class="answer",
        share=_share(content.drop.told_share),
        notes=_notes(content, "posterior"),
        figures=[
            _figure(
                "answer-chart",
                "Bars of the mean accuracy gap by method, with intervals",
                "The first bar is the drop as measured, the others what is left of it once "
                "images are compared at the same selection frequency; lines are 95 % intervals.",
            )
        ],
        table={
            "id": "gaps",
            "label": "Mean gaps",
            "csv": False,
            "header": ["method", "mean gap (%)", "95 % interval", "share explained (%)"],
            "rows": told,
        },
    )


def _share(told: Estimate | None) -> dict[str, Any] | None:
    """One bar: what selection explains of the drop, and what remains."""
    if told is None:
        return None
    parts = [("selection", told.value), ("remains", 1 - told.value)]
    return {
        "label": f"Selection explains {percent(told.value, 0)} % of the drop "
        f"({percent(told.lower, 0)} to {percent(told.upper, 0)})",
        "parts": [
            {"kind": kind, "percent": round(100 * part, 1), "text": f"{kind} {percent(part, 0)} %"}
            for kind, part in parts
        ],
    }


def _scatter(content: Content) -> dict[str, Any]:
    methods = method_labels(content)
    chosen = list(methods)[-1]
    return _section(
        "accuracies",
        "Accuracies",
        "Every classifier on both data sets",
        "Move over a point for its name. Naive matching with no annotator is the accuracy as "
        "measured; more annotators leave less noise in the matching, never none.",
        notes=_notes(content, "posterior"),
        controls=[
            {
                "kind": "select",
                "id": "method",
                "label": "Accuracies",
                "options": list(methods.items()),
                "value": chosen,
            },
            {
                "kind": "range",
                "id": "annotators",
                "label": "Annotators used",
                "low": 0,
                "high": len(content.naive) - 1,
                "step": 1,
                "value": len(content.naive) - 1,
            },
            {
                "kind": "search",
                "id": "search",
                "label": "Find a classifier",
                "placeholder": "part of a name",
            },
        ],
        figures=[
            _figure("scatter", "Accuracy on the replication against accuracy on the reference")
        ],
    )


def _table(content: Content) -> dict[str, Any]:
    return _section(
        "table",
        "Table",
        "All estimates",
        "Adjusted accuracies in percent: what each classifier would score on the replication if "
        "its images were selected as often as the reference's. Click a heading to sort.",
        long=True,
        controls=[
            {
                "kind": "search",
                "id": "table-search",
                "label": "Find a classifier",
                "placeholder": "part of a name",
            }
        ],
        table={
            "id": "classifiers",
            "label": "All estimates of every classifier",
            "csv": True,
            "header": [],
            "rows": [],
        },
    )


def _frequencies(content: Content) -> dict[str, Any]:
    means = {
        role: percent(float((data.selected / data.shown).mean()))
        for role, data in content.study.datasets.items()
    }
    told = ", ".join(f"{role} {mean} %" for role, mean in means.items())
    fitted = any(part.density is not None for part in content.frequencies.values())
    predicted = any(part.predicted is not None for part in content.frequencies.values())
    reading = f"Observed mean selection frequencies: {told}."
    if predicted:
        reading += " Vertical lines are what the fit expects of such counts (95 %)."
    figures = [_figure("histogram", "Histograms of observed selection frequencies", reading)]
    if fitted:
        figures.append(
            _figure(
                "density",
                "Fitted distributions of the true selection frequency",
                "The fitted distributions of the true selection frequency, with 95 % bands: n "
                "annotators determine n moments of them, so do not read their details.",
            )
        )
    return _section(
        "frequencies",
        "Selection",
        "How often images were selected",
        notes=_notes(content, "frequencies"),
        figures=figures,
    )


def _image(content: Content) -> dict[str, Any]:
    title = "One image: what its measurement says"
    if content.image is None:
        return _section("image-section", "One image", title, notes=_notes(content, "frequencies"))
    n = content.image.annotators
    return _section(
        "image-section",
        "One image",
        title,
        "The same measurement means different things in different pools: an image is more likely "
        "to come from where its pool is dense.",
        controls=[
            {
                "kind": "range",
                "id": "selected",
                "label": f"Annotators who selected it, of {n}",
                "low": 0,
                "high": n,
                "step": 1,
                "value": round(0.7 * n),
            }
        ],
        figures=[
            _figure("image", "Distribution of one image's true selection frequency in both pools")
        ],
    )


def _toy() -> dict[str, Any]:
    return _section(
        "bias",
        "Why",
        "Why matching on noisy counts is biased",
        "A model of two betas: the reference's selection frequencies follow Beta(α + 1, β), the "
        "candidates' Beta(α, β). Candidates are picked so that their counts match the "
        "reference's; the replication that results (equation 1 of Engstrom et al., 2020) still "
        "lies lower, and lower the fewer annotators count.",
        controls=[
            {
                "kind": "range",
                "id": "alpha",
                "label": "α of the candidates",
                "low": 0.5,
                "high": 8,
                "step": 0.5,
                "value": 2,
            },
            {
                "kind": "range",
                "id": "beta",
                "label": "β of both",
                "low": 0.5,
                "high": 8,
                "step": 0.5,
                "value": 2,
            },
            {
                "kind": "range",
                "id": "toy-annotators",
                "label": "Annotators",
                "low": 0,
                "high": 100,
                "step": 1,
                "value": 10,
            },
        ],
        figures=[_figure("toy", "Distributions of selection frequency in the two-beta model")],
    )


def _curves(content: Content) -> dict[str, Any]:
    title = "Accuracy by selection frequency"
    if content.curves is None:
        return _section("curves", "Curves", title, notes=_notes(content, "curves"))
    return _section(
        "curves",
        "Curves",
        title,
        "The line is the fitted curve g(s) with its 95 % band, against the true selection "
        "frequency; points are observed frequencies, which are noisy, so that the points are "
        "flatter than the curve.",
        controls=[
            {
                "kind": "list",
                "id": "curve-classifier",
                "label": "Classifier",
                "value": content.study.classifiers[0],
            }
        ],
        figures=[_figure("curve", "Accuracy of a classifier against selection frequency")],
    )


def _trust(content: Content) -> dict[str, Any]:
    title = "Can I trust this?"
    if content.trust is None:
        return _section("trust", "Trust", title, notes=_notes(content, "trust"))
    trust = content.trust
    style, lead = VERDICTS.get(trust.verdict, VERDICTS["with care"])
    figures = []
    if trust.p_values is not None:
        figures.append(
            _figure(
                "pvalues",
                "Histogram of p-values of the classifiers' answers",
                "Posterior predictive checks of the answers: flat where the curves fit; a heap "
                "at the left would be classifiers that they do not fit.",
            )
        )
    if trust.ranks is not None:
        figures.append(
            _figure(
                "ranks",
                "Rank histograms of the mean adjusted accuracy by chain",
                "Chains that agree have flat lines that lie over each other.",
            )
        )
    if trust.energy is not None:
        figures.append(
            _figure(
                "energy",
                "Energy of the chains and its changes",
                "A change as wide as the energy itself means that the sampler moves freely.",
            )
        )
    checks = [
        [str(row["check"]), *(_cell(row[name]) for name in ("value", "wanted", "trust"))]
        for row in trust.checks.iter_rows(named=True)
    ]
    return _section(
        "trust",
        "Trust",
        title,
        lead,
        lead_class=f"answer {style}",
        long=True,
        figures=figures,
        table={
            "id": "checks",
            "label": "Checks",
            "csv": False,
            "header": ["check", "value", "wanted", "trust"],
            "rows": checks,
        },
        sentences=[
            *trust.sentences,
            "How far classifiers agree beyond what selection explains takes longer to check: "
            "bayesrep diagnose posterior.nc --study STUDY.",
        ],
        settings=trust.settings,
        repeat=f"{trust.command}\nbayesrep report STUDY posterior.nc --out report.html",
    )


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
