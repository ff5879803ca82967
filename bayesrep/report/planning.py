"""Plans, what matching leaves, and what matching again shows, in words and tables."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesrep.report.text import Cell, list_rows
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words, templates_by_name

FEW_ANSWERS = 10
"""Answers about an image below which the assumed shape of p(s) speaks."""

_LABELS = templates_by_name(
    "every answer another {worker}'s", "answers about the {images} at hand", "{images}"
)
"""Crowds and purchases that speak of the study's parts, and how other words say them."""

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from bayesrep.lab import Design, Option, Plan, Prices, Purchase, Rematched


def plan_facts(found: "Plan", prices: "Prices") -> dict[str, Any]:
    """Everything a plan says, ready for JSON; widths are fractions."""
    return {
        **_facts_of(found.design),
        "cost": found.cost,
        "width": found.width,
        "range": list(found.range),
        "wanted": found.wanted,
        "reached": found.reached,
        "expected": {
            name: value if np.isfinite(value) else None
            for name, value in found.expected._asdict().items()
        },
        "studies": found.studies,
        "certified": found.certified,
        "correction": found.correction,
        "prices": asdict(prices),
        "options": [_row(option) for option in found.options],
        "by_money": [_row(option) for option in found.by_money],
        "other_crowds": [
            {"crowd": label, "workers": workers, "width": width}
            for label, workers, width in found.crowds
        ],
        "power": {f"{difference:g}": power for difference, power in found.power.items()},
    }


def plan_text(found: "Plan", prices: "Prices", words: Words = IMAGE_WORDS) -> str:
    """What to collect, what to expect, and what else there would be."""
    lines = [*_describe_design(found, words), *_describe_basis(found, words)]
    lines += _describe_others(found, prices, words)
    return "\n".join(lines)


def _describe_design(found: "Plan", words: Words) -> list[str]:
    """What to collect, and what to expect of it."""
    design, expected = found.design, found.expected
    total = 2 * design.images * design.answers
    who = f"every one by another {words.worker}"
    if (workers := design.in_all) is not None:
        kind = "one crowd" if design.crowds == 1 else "two crowds"
        who = f"by {kind} of {workers:,} {words.workers} in all, {total / workers:,.0f} each"
    held = round(expected.mean_held * found.studies)
    return [
        f"Collect {design.images:,} {words.images} of each data set with {design.answers} answers "
        f"about each: {total:,} answers, {who}; cost {found.cost:,.2f}.",
        f"Show an {words.image} in as many different grids as it has answers: answers in one grid "
        "go together.",
        "",
        f"Expected width of the 95 % interval of the mean gap: {100 * found.width:.2f} points "
        f"({100 * found.range[0]:.2f} to {100 * found.range[1]:.2f} from study to study); of one "
        f"{words.classifier} {100 * expected.single_width:.2f}.",
        f"Over {found.studies} simulated studies ({found.certified} certified) intervals held the "
        f"true mean in {held}, and {100 * expected.single_held:.0f} % of single "
        f"{words.classifiers}.",
    ]


def _describe_basis(found: "Plan", words: Words) -> list[str]:
    """What the numbers of a plan rest on."""
    design, lines = found.design, list[str]()
    if design.answers < FEW_ANSWERS:
        lines.append(
            f"{design.answers} answers per {words.image} say little about the shape of the "
            "distribution of selection frequencies: the rest comes from the prior. With "
            f"{FEW_ANSWERS} or more (--answers) it comes from the data."
        )
    lines.append(
        "Widths of other designs are by normal approximations, times "
        f"{found.correction:.2f} as these studies say."
    )
    if found.power:
        told = ", ".join(
            f"{100 * difference:g} points {100 * power:.0f} %"
            for difference, power in found.power.items()
        )
        lines.append(f"Power to tell two {words.classifiers} apart, selection removed: {told}.")
    return lines


def _describe_others(found: "Plan", prices: "Prices", words: Words) -> list[str]:
    """What else there would be for the width or the money, and with other crowds."""
    by_answers: dict[str, Cell] = {
        "answers": "{answers}",
        words.images: "{images:,}",
        "in all": "{total:,}",
        "cost": "{cost:,.0f}",
        "width": "{width:2p}",
    }
    title = "The cheapest design with each number of answers"
    if found.wanted is None:
        title = "The best for the money with each number of answers"
    lines = ["", f"{title}:", "", list_rows([_row(o) for o in found.options], by_answers)]
    if found.by_money:
        lines += [
            "",
            "What money buys:",
            "",
            list_rows([_row(o) for o in found.by_money], by_answers),
        ]
        lines += ["", _trade(found, prices, words)]
    # What other crowds would do to the same design.
    crowd_rows = [
        {
            "crowd": words.restate(label, _LABELS),
            "workers": "" if size is None else f"{size:,}",
            "width": width,
        }
        for label, size, width in found.crowds
    ]
    shown: dict[str, Cell] = {
        "who answers": "{crowd}",
        f"{words.workers} in all": "{workers}",
        "width": "{width:2p}",
    }
    return [*lines, "", "The same design with other crowds:", "", list_rows(crowd_rows, shown)]


def batch_text(
    found: Sequence["Purchase"],
    design: "Design",
    width_now: float,
    wanted: float,
    words: Words = IMAGE_WORDS,
) -> str:
    """Go on, and with what."""
    rows = [{**each._asdict(), "label": words.restate(each.label, _LABELS)} for each in found]
    shown: dict[str, Cell] = {
        "buy": "{label}",
        words.images: "{images:,}",
        "answers": "{answers:.1f}",
        "width then": "{width:2p}",
    }
    best = found[0]
    reached = (
        "and that would do"
        if best.width <= wanted
        else f"and more will be needed for {100 * wanted:g}"
    )
    return (
        f"Go on: the interval is {100 * width_now:.2f} points wide with {design.images:,} "
        f"{words.images} of each data set and {design.answers} answers about each; "
        f"{100 * wanted:g} were asked.\nBuy {rows[0]['label']}: {100 * best.width:.2f} points "
        f"then, {reached}.\n\n{list_rows(rows, shown)}"
    )


def _trade(found: "Plan", prices: "Prices", words: Words) -> str:
    """Whether another answer or another image would be worth more."""
    best = min(found.laws, key=lambda law: law.slope * prices.of_image(law.answers))
    few = [law.answers for law in found.laws if law.answers < best.answers]
    many = [law.answers for law in found.laws if law.answers > best.answers]
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


def rematch_text(found: "Rematched", words: Words = IMAGE_WORDS) -> str:
    """What matching again shows: appendix D.1 to D.3."""
    lines: list[str] = []
    if len(found.by_answers):
        shown: dict[str, Cell] = {
            "answers": "{annotators}",
            "gap": "{gap:2p}",
            "95 % interval": "{lower:2p} to {upper:2p}",
        }
        first, last = (found.by_answers["gap"][place] for place in (0, -1))
        most = found.by_answers["annotators"][-1]
        falls = "The gap still falls" if last < found.by_answers["gap"][-2 % most] else "It is flat"
        lines += [
            "D.1  Mean accuracy gap of candidates weighted like the reference's counts, by answers "
            f"about an {words.image}:",
            "",
            list_rows(found.by_answers, shown),
            "",
            f"From {100 * first:.2f} points with one answer to {100 * last:.2f} with {most}. "
            f"{falls} there: matching on more answers would leave less of it.",
            "",
        ]
    # D.2 compares what was matched with answers that were held out.
    shown = {
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
        list_rows(found.held_out, shown),
        "",
        _held_out_sentence(found.held_out.to_dicts(), words),
    ]
    # D.3 needs four answers more to hold out.
    if found.by_source is None:
        lines += ["", "D.3  Too few answers to hold four more out."]
        return "\n".join(lines)
    shown = {
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
        list_rows(found.by_source, shown),
    ]
    return "\n".join(lines)


def _held_out_sentence(rows: Sequence[Mapping[str, Any]], words: Words) -> str:
    """What the last two rows say, in words."""
    matched, held = rows[-2:]
    drop, error = matched["sampled"] - held["sampled"], held["error"]
    sentence = (
        f"By answers that had no part in the choice the {words.images} are selected "
        f"{100 * drop:.2f} points less often than by those they were chosen by"
    )
    if held["difference"] < -2 * error:
        return (
            f"{sentence}, and {-100 * held['difference']:.2f} points less often than the "
            "reference: matching left them harder."
        )
    return f"{sentence}; no clear difference to the reference is left."


def lab_text(
    table: "pl.DataFrame",
    reference: float,
    pool: float,
    out: "Path | None",
    words: Words = IMAGE_WORDS,
) -> str:
    """What matching leaves, by number of answers."""
    shown: dict[str, Cell] = {"answers": "{answers}"}
    if table["weight"].null_count() < len(table):
        shown["reference's share %"] = "{weight:1p}"
    shown |= {
        "five bins": "{published:2p}",
        "every count": "{fine:2p}",
        "simulated": "{simulated:2p}",
        "s.e.": "{error:2p}",
        "posterior": "{posterior:2p}",
        "measured again": "{measured_replication:1p} of {measured_reference:1p}",
    }
    lines = [
        f"Mean selection frequency: reference {100 * reference:.1f} %, candidates "
        f"{100 * pool:.1f} %. Bias left after matching, by answers per {words.image}, in points:",
        "",
        list_rows(table, shown),
        "",
        "Reference's share: of the replication's distribution, by equation 1; the rest is like the "
        "candidates. Simulated: every count.",
    ]
    if out is not None:
        lines.append(f"Written to {out}: the same with sliders")
    return "\n".join(lines)
