"""Plans, what matching leaves, and what matching again shows, in words and tables."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesrep.report.table_format import Cell, list_rows
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words, templates_by_name

FEW_ANSWERS = 10
"""Answers about an image below which the assumed shape of p(s) speaks."""

_LABEL_TEXT = templates_by_name(
    "every answer another {worker}'s", "answers about the {images} at hand", "{images}"
)
"""Crowds and purchases that speak of the study's parts, and how other words say them."""

if TYPE_CHECKING:
    from bayesrep.planning import Design, Option, Plan, Prices, Purchase, Rematched


def plan_facts(plan: "Plan", prices: "Prices") -> dict[str, Any]:
    """Everything a plan says, ready for JSON; widths are fractions."""
    return {
        **_facts_of(plan.design),
        "cost": plan.cost,
        "width": plan.width,
        "range": list(plan.range),
        "wanted": plan.wanted,
        "reached": plan.reached,
        "expected": {
            name: value if np.isfinite(value) else None
            for name, value in plan.expected._asdict().items()
        },
        "studies": plan.studies,
        "certified": plan.certified,
        "correction": plan.correction,
        "prices": asdict(prices),
        "options": list(map(_row, plan.options)),
        "by_money": list(map(_row, plan.by_money)),
        "other_crowds": [
            {"crowd": label, "workers": workers, "width": width}
            for label, workers, width in plan.crowds
        ],
        "power": {f"{difference:g}": power for difference, power in plan.power.items()},
    }


def plan_text(plan: "Plan", prices: "Prices", words: Words = IMAGE_WORDS) -> str:
    """Print a plan: the design, its expected results, and the alternatives."""
    parts = _describe_design(plan, words), _describe_basis(plan, words)
    return "\n".join([*parts[0], *parts[1], *_describe_others(plan, prices, words)])


def _describe_design(plan: "Plan", words: Words) -> list[str]:
    """Describe the proposed design and its expected results."""
    design, expected = plan.design, plan.expected
    total = 2 * design.images * design.answers
    who = f"every one by another {words.worker}"
    if (workers := design.in_all) is not None:
        kind = "one crowd" if design.crowds == 1 else "two crowds"
        who = f"by {kind} of {workers:,} {words.workers} in all, {total / workers:,.0f} each"
    n_covered = round(expected.mean_held * plan.studies)
    return [
        f"Collect {design.images:,} {words.images} of each data set with {design.answers} answers "
        f"about each: {total:,} answers, {who}; cost {plan.cost:,.2f}.",
        f"Show an {words.image} in as many different grids as it has answers, and keep which (a "
        "column context): answers in one grid go together.",
        "",
        f"Expected width of the 95 % interval of the mean gap: {100 * plan.width:.2f} points "
        f"({100 * plan.range[0]:.2f} to {100 * plan.range[1]:.2f} from study to study); of one "
        f"{words.classifier} {100 * expected.single_width:.2f}.",
        f"Over {plan.studies} simulated studies ({plan.certified} certified) intervals held the "
        f"true mean in {n_covered}, and {100 * expected.single_held:.0f} % of single "
        f"{words.classifiers}.",
    ]


def _describe_basis(plan: "Plan", words: Words) -> list[str]:
    """Describe the assumptions behind a plan's numbers."""
    design, lines = plan.design, list[str]()
    if design.answers < FEW_ANSWERS:
        lines.append(
            f"{design.answers} answers per {words.image} say little about the shape of the "
            "distribution of selection frequencies: the rest comes from the prior. With "
            f"{FEW_ANSWERS} or more (--answers) it comes from the data."
        )
    lines.append(
        "Widths of other designs are by normal approximations, times "
        f"{plan.correction:.2f} as these studies say."
    )
    if plan.power:
        texts = ", ".join(
            f"{100 * difference:g} points {100 * power:.0f} %"
            for difference, power in plan.power.items()
        )
        lines.append(f"Power to tell two {words.classifiers} apart, selection removed: {texts}.")
    return lines


def _describe_others(plan: "Plan", prices: "Prices", words: Words) -> list[str]:
    """Describe other designs for the same width or money, and with other crowds."""
    by_answers: dict[str, Cell] = {
        "answers": "{answers}",
        words.images: "{images:,}",
        "in all": "{total:,}",
        "cost": "{cost:,.0f}",
        "width": "{width:2p}",
    }
    title = "The cheapest design with each number of answers"
    if plan.wanted is None:
        title = "The best for the money with each number of answers"
    lines = ["", f"{title}:", "", list_rows(map(_row, plan.options), by_answers)]
    if plan.by_money:
        bought = list_rows(map(_row, plan.by_money), by_answers)
        lines += ["", "What money buys:", "", bought, "", _trade(plan, prices, words)]
    # What other crowds would do to the same design.
    crowd_rows = [
        {
            "crowd": words.restate(label, _LABEL_TEXT),
            "workers": "" if size is None else f"{size:,}",
            "width": width,
        }
        for label, size, width in plan.crowds
    ]
    cells: dict[str, Cell] = {
        "who answers": "{crowd}",
        f"{words.workers} in all": "{workers}",
        "width": "{width:2p}",
    }
    return [*lines, "", "The same design with other crowds:", "", list_rows(crowd_rows, cells)]


def batch_text(
    purchases: Sequence["Purchase"],
    design: "Design",
    width_now: float,
    target: float,
    words: Words = IMAGE_WORDS,
) -> str:
    """Go on, and with what."""
    rows = [
        {**each._asdict(), "label": words.restate(each.label, _LABEL_TEXT)} for each in purchases
    ]
    cells: dict[str, Cell] = {
        "buy": "{label}",
        words.images: "{images:,}",
        "answers": "{answers:.1f}",
        "width then": "{width:2p}",
    }
    best = purchases[0]
    enough = best.width <= target
    reached = "that would do" if enough else f"more will be needed for {100 * target:g}"
    return (
        f"Go on: the interval is {100 * width_now:.2f} points wide with {design.images:,} "
        f"{words.images} of each data set and {design.answers} answers about each; "
        f"{100 * target:g} were asked.\nBuy {rows[0]['label']}: {100 * best.width:.2f} points "
        f"then, and {reached}.\n\n{list_rows(rows, cells)}"
    )


def _trade(plan: "Plan", prices: "Prices", words: Words) -> str:
    """State whether another answer or another image is worth more."""
    best = min(plan.laws, key=lambda law: law.slope * prices.of_image(law.answers))
    few = [law.answers for law in plan.laws if law.answers < best.answers]
    many = [law.answers for law in plan.laws if law.answers > best.answers]
    parts = [f"At these prices {best.answers} answers per {words.image} are the best value"]
    if few:
        parts.append(f"with {few[-1]} or fewer, add answers before {words.images}")
    if many:
        parts.append(f"with {many[0]} or more, add {words.images} instead")
    return "; ".join(parts) + "."


def _facts_of(design: "Design") -> dict[str, Any]:
    return {
        "images": design.images,
        "answers": design.answers,
        "workers": design.in_all,
        "crowds": design.crowds,
    }


def _row(option: "Option") -> Mapping[str, Any]:
    design = option.design
    return {
        **_facts_of(design),
        "total": 2 * design.images * design.answers,
        "cost": option.cost,
        "width": option.width,
    }


def rematch_text(result: "Rematched", words: Words = IMAGE_WORDS) -> str:
    """Print the results of matching again: appendix D.1 to D.3."""
    lines: list[str] = []
    if len(result.by_answers):
        cells: dict[str, Cell] = {
            "answers": "{annotators}",
            "gap": "{gap:2p}",
            "95 % interval": "{lower:2p} to {upper:2p}",
        }
        first, last = (result.by_answers["gap"][place] for place in (0, -1))
        most = result.by_answers["annotators"][-1]
        still = last < result.by_answers["gap"][-2 % most]
        falls = "The gap still falls" if still else "It is flat"
        lines += [
            "D.1  Mean accuracy gap of candidates weighted like the reference's counts, by answers "
            f"about an {words.image}:",
            "",
            list_rows(result.by_answers, cells),
            "",
            f"From {100 * first:.2f} points with one answer to {100 * last:.2f} with {most}. "
            f"{falls} there: matching on more answers would leave less of it.",
            "",
        ]
    # D.2 compares what was matched with answers that were held out.
    cells = {
        "reference known by": "{reference_answers} answers",
        "frequencies by": "{by}",
        "reference": "{reference:1p}",
        "sampled": "{sampled:1p}",
        "difference": "{difference:2p}",
        "s.e.": "{error:2p}",
    }
    lines += [
        f"D.2  Mean selection frequencies of {words.images} matched again:",
        "",
        list_rows(result.held_out, cells),
        "",
        _held_out_sentence(result.held_out.to_dicts(), words),
    ]
    # D.3 needs four answers more to hold out.
    if result.by_source is None:
        lines += ["", "D.3  Too few answers to hold four more out."]
        return "\n".join(lines)
    cells = {
        "matched from": "{source}",
        "candidates": "{candidates:,.0f}",
        "frequency": "{frequency:1p}",
        "difference": "{frequency_difference:2p}",
        "accuracy": "{accuracy:1p}",
        "of accuracy": "{accuracy_difference:2p}",
        "s.e.": "{accuracy_error:2p}",
    }
    lines += [
        "",
        "D.3  The same matching from candidates that 2 of 4 held-out answers select:",
        "",
        list_rows(result.by_source, cells),
    ]
    return "\n".join(lines)


def _held_out_sentence(rows: Sequence[Mapping[str, Any]], words: Words) -> str:
    """State the last two rows in words."""
    matched, held_out = rows[-2:]
    drop, error = matched["sampled"] - held_out["sampled"], held_out["error"]
    sentence = (
        f"By answers that had no part in the choice the {words.images} are selected "
        f"{100 * drop:.2f} points less often than by those they were chosen by"
    )
    if held_out["difference"] < -2 * error:
        return (
            f"{sentence}, and {-100 * held_out['difference']:.2f} points less often than the "
            "reference: matching left them harder."
        )
    return f"{sentence}; no clear difference to the reference is left."
