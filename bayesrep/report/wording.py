"""Replace hyphens in the page's visible text by real minus signs.

Names of marks, of fields and of elements stay what they are.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bayesrep.report.figure import Figure
from bayesrep.report.sections.section import Block, Table

Change = Callable[[str], str]
"""Function applied to each text."""

_MINUS_PATTERN = re.compile(r"`[^`]*`|(?<![^\s(±])-(?=[\d.])")


def real_minus(text: str, names: Iterable[str] = ()) -> str:
    """Minus signs before numbers as such; those of `commands` and of names stay as typed."""
    patterns = sorted(
        (re.escape(name) for name in names if _MINUS_PATTERN.search(name)), key=len, reverse=True
    )
    pattern = re.compile(
        "|".join([*(rf"{name}(?![\w.])" for name in patterns), _MINUS_PATTERN.pattern])
    )
    return pattern.sub(lambda part: "\N{MINUS SIGN}" if part[0] == "-" else part[0], text)


def change_block(block: Block, change: Change) -> Block:
    """A part of the page whose every text is changed."""
    return replace(
        block,
        short=change(block.short),
        title=change(block.title),
        lead=change(block.lead),
        missing=change(block.missing),
        controls=[_control(each, change) for each in block.controls],
        figures=[change_figure(each, change) for each in block.figures],
        table=block.table and _table(block.table, change),
        sentences=list(map(change, block.sentences)),
        data=_change_titles(block.data, change),
    )


def change_figure(figure: Figure, change: Change) -> Figure:
    """A figure whose every text is changed: what describes it, and titles of axes and tooltips."""
    return figure._replace(
        label=change(figure.label),
        spec=_change_titles(figure.spec, change),
        reading=change(figure.reading),
        key=[(mark, change(text)) for mark, text in figure.key],
        play=change(figure.play),
        readings=figure.readings
        and figure.readings._replace(texts=_change_texts(figure.readings.texts, change)),
    )


def _change_texts(texts: Any, change: Change) -> Any:
    """Nested sentences, each of them changed."""
    if isinstance(texts, str):
        return change(texts)
    if isinstance(texts, Mapping):
        return {name: _change_texts(each, change) for name, each in texts.items()}
    return [_change_texts(each, change) for each in texts]


def _change_titles(value: Any, change: Change) -> Any:
    """Nested mappings and lists of which every title is changed."""
    if isinstance(value, Mapping):
        return {
            name: change(each)
            if name == "title" and isinstance(each, str)
            else _change_titles(each, change)
            for name, each in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_change_titles(each, change) for each in value]
    return value


def _control(control: Mapping[str, Any], change: Change) -> dict[str, Any]:
    texts = {name: change(control[name]) for name in ("label", "placeholder") if name in control}
    ends = control.get("ends") and [change(end) for end in control["ends"]]
    return {**control, **texts, **({"ends": ends} if ends else {})}


def _table(table: Table, change: Change) -> Table:
    return table._replace(
        label=change(table.label),
        header=list(map(change, table.header)),
        rows=[list(map(change, row)) for row in table.rows],
    )
