"""What readers see of the page, in the words of its study and with real minus signs.

Sections speak of images, classifiers and annotators, as the library does; here, once, all that they
say becomes what the study says. Names of marks, of fields and of elements stay what they are.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from bayesrep.report.picture import Figure, Say, translate_titles
from bayesrep.report.sections.section import Block, Table

_MINUS = re.compile(r"`[^`]*`|(?<![^\s(±])-(?=[\d.])")


def real_minus(text: str, names: Iterable[str] = ()) -> str:
    """Minus signs before numbers as such; those of `commands` and of names stay as typed.

    Parameters
    ----------
    text
        A sentence or a cell.
    names
        Those of the study, of which some may look like numbers.
    """
    kept = sorted((re.escape(name) for name in names if _MINUS.search(name)), key=len, reverse=True)
    pattern = re.compile("|".join([*(rf"{name}(?![\w.])" for name in kept), _MINUS.pattern]))
    return pattern.sub(lambda part: "\N{MINUS SIGN}" if part[0] == "-" else part[0], text)


def translate_block(block: Block, say: Say) -> Block:
    """A part of the page, said by ``say``."""
    return replace(
        block,
        short=say(block.short),
        title=say(block.title),
        lead=say(block.lead),
        missing=say(block.missing),
        controls=[_control(each, say) for each in block.controls],
        figures=[worded_figure(each, say) for each in block.figures],
        table=block.table and _table(block.table, say),
        sentences=list(map(say, block.sentences)),
        data=translate_titles(block.data, say),
    )


def worded_figure(figure: Figure, say: Say) -> Figure:
    """A figure, said by ``say``: what describes it, and the titles of its axes and tooltips."""
    return figure._replace(
        label=say(figure.label),
        spec=translate_titles(figure.spec, say),
        reading=say(figure.reading),
        key=[(mark, say(text)) for mark, text in figure.key],
        play=say(figure.play),
        readings=figure.readings
        and figure.readings._replace(texts=_translate_texts(figure.readings.texts, say)),
    )


def _translate_texts(texts: Any, say: Say) -> Any:
    """Nested sentences, said by ``say``."""
    if isinstance(texts, str):
        return say(texts)
    if isinstance(texts, Mapping):
        return {name: _translate_texts(each, say) for name, each in texts.items()}
    return [_translate_texts(each, say) for each in texts]


def _control(control: Mapping[str, Any], say: Say) -> dict[str, Any]:
    said = {name: say(control[name]) for name in ("label", "placeholder") if name in control}
    ends = control.get("ends") and [say(end) for end in control["ends"]]
    return {**control, **said, **({"ends": ends} if ends else {})}


def _table(table: Table, say: Say) -> Table:
    return table._replace(
        label=say(table.label),
        header=list(map(say, table.header)),
        rows=[list(map(say, row)) for row in table.rows],
    )
