"""Label Studio's exports: tasks with their annotations (JSON), or a row an annotation (JSON-MIN).

An annotation holds a result for every control that was used. Kinds in `VALUE_KEYS` can answer;
where a control was answered about several regions of an image, that is one about the image only if
all say the same. Annotations that were skipped, rejected by the last review or marked as ground
truth are left out, and so are predictions.
"""

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.errors import StudyError, TableWarning, listing, plain_text
from bayesrep.files import strict_json
from bayesrep.files.json_parts import as_word
from bayesrep.files.tables import ENDINGS, warn_unread
from bayesrep.sources.exports.columns import (
    Columns,
    drop_marked,
    join_choices,
    name_image,
    tell_anonymous,
)

VALUE_KEYS: Mapping[str, str] = {
    "choices": "choices",
    "rating": "rating",
    "number": "number",
    "taxonomy": "taxonomy",
    "pairwise": "selected",
    "textarea": "text",
}
"""Types of controls that can hold an answer, and where their values have it."""
_FREE = "textarea"
_MIN = "choice"
_MARKS = {"was_cancelled", "ground_truth", "last_action"}
_FACTS = {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time"} | _MARKS
_UPLOAD = r"^(?:.*/)?upload/(?:\d+/)?[0-9a-f]{8}-"

Said = tuple[str, list[str] | None]
"""The type of a control, and what was said with it; None where that can be no answer."""


@dataclass(frozen=True, eq=False)
class Annotation:
    """What one worker did of one task.

    Attributes
    ----------
    task
        The task.
    held
        The annotation; in JSON-MIN the same as the task.
    worker
        Who did it.
    """

    task: Mapping[str, Any]
    held: Mapping[str, Any]
    worker: str

    @property
    def data(self) -> Mapping[str, Any]:
        """What the task is about."""
        return self.task if self.held is self.task else self.task["data"]


def count_annotations(tasks: Iterable[Mapping[str, Any]], where: str) -> list[Annotation]:
    """The annotations of all tasks that count."""
    every: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
    predictions = 0
    for task in tasks:
        # The small JSON export has one annotation a task, in the task itself.
        every += [(task, held) for held in task.get("annotations", [task])]
        predictions += len(task.get("predictions") or ())
    marks = {name: [str(held.get(name)) for _, held in every] for name in sorted(_MARKS)}
    marks["review"] = [_last_review(held.get("reviews")) for _, held in every]
    rows = drop_marked(pl.DataFrame(marks).with_row_index(), where)["index"]
    annotations: list[Annotation] = []
    nameless = Counter[tuple[int, str]]()
    for task, held in map(every.__getitem__, rows):
        small = held is task
        # Annotations without a name count as answers of different people.
        worker = _person_name(held.get("annotator" if small else "completed_by"))
        if worker is None:
            number = str(held.get("annotation_id" if small else "id"))
            nameless[id(task), number] += 1
            name = f"annotation {number} of task {task.get('id')}, {nameless[id(task), number]}"
            worker = f"nobody ({where}: {name})"
        annotations.append(Annotation(task, held, worker))
    tell_anonymous(nameless.total(), where, "completed_by or annotator is empty")
    if predictions:
        text = f"{where}: {predictions:,} predictions of models are no answers, and left out"
        warnings.warn(TableWarning(text), stacklevel=2)
    return annotations


def _last_review(reviews: Sequence[Mapping[str, Any]] | None) -> str:
    """What the last of an annotation's reviews says."""
    by_time = sorted(reviews or (), key=lambda review: str(review.get("created_at")))
    return "rejected" if by_time and by_time[-1].get("accepted") is False else ""


def _person_name(person: Any) -> str | None:
    """What Label Studio calls someone: a number, or an object that has one; None if nothing."""
    if isinstance(person, dict):
        person = person.get("id", person.get("email"))
    return None if person is None or str(person).strip() == "" else str(person)


def read_label_studio(path: str | Path, asked: Columns) -> pl.DataFrame:
    """The answer of every annotation that counts."""
    if (where := str(path)).lower().endswith(ENDINGS):
        raise StudyError("not-label-studio-export", path=path, reason="a table, such as its CSV")
    held = strict_json.read(path)
    try:
        annotations = count_annotations(held, where)
        field = asked.image or "image"
        images = [name_image(each.data, field, where) for each in annotations]
        said = [dict(collect_answers(each, field)) for each in annotations]
        # An export may hold several controls; one of them is the answer.
        control = _control(annotations, said, asked, where)
        others = dict.fromkeys(name for each in said for name in each if name != control)
        warn_unread(list(others), "answers", (), where)
        rows = [
            {
                "image": image,
                "worker": each.worker,
                "answer": _answer(each, of.get(control, []), control, asked, where),
                "task": str(each.task.get("id")),
                "seconds": each.held.get("lead_time"),
            }
            for each, image, of in zip(annotations, images, said, strict=True)
        ]
        schema = {name: pl.String for name in ("image", "worker", "answer", "task")}
        table = pl.DataFrame(rows, schema={**schema, "seconds": pl.Float64})
    # The file's structure is taken for granted above, so any slip is a file of another kind.
    except (TypeError, KeyError, AttributeError, pl.exceptions.PolarsError) as error:
        raise StudyError(
            "not-label-studio-export",
            path=path,
            reason=f"no {error}" if isinstance(error, KeyError) else "its parts are of other types",
        ) from None
    return _without_prefixes(table, where)


def collect_answers(each: Annotation, field: str) -> Iterator[tuple[str, list[Said]]]:
    """By control, what was said with it, a value a region; `field` says what the task is about."""
    if each.held is each.task:
        for name, value in each.task.items():
            if name not in _FACTS and name != field:
                yield name, _of_small(value)
        return
    answers: dict[str, list[Said]] = {}
    for result in each.held["result"]:
        if "from_name" in result:
            said = answers.setdefault(str(result["from_name"]), [])
            kind = str(result["type"])
            key = VALUE_KEYS.get(kind)
            said.append((kind, None if key is None else _words(result["value"][key])))
    yield from answers.items()


def _of_small(value: Any) -> list[Said]:
    """A value of JSON-MIN, which does not say the type: a list of objects is one of regions."""
    regions = value if isinstance(value, list) and any(isinstance(x, dict) for x in value) else None
    said: list[Said] = []
    for each in [value] if regions is None else regions:
        if isinstance(each, dict):
            key = next((key for key in VALUE_KEYS.values() if key in each), None)
            said.append(("region", None) if key is None else ("choices", _words(each[key])))
        else:
            said.append(("choices", _words(each)))
    return said


def _words(value: Any) -> list[str]:
    """A value as words: one, several, or of a taxonomy the path to each."""
    if value is None:
        return []
    parts = value if isinstance(value, list) else [value]
    paths = (part if isinstance(part, list) else [part] for part in parts)
    return ["/".join(as_word(each, "a choice") or "" for each in path) for path in paths]


def _control(
    annotations: Sequence[Annotation],
    said: Sequence[Mapping[str, Sequence[Said]]],
    asked: Columns,
    where: str,
) -> str:
    """The control that is the answer; where none was ever used, any name will do."""
    types = {name: of[0] for each in said for name, of in each.items() if of}
    if not types:
        return ""
    told = [f"{name} ({kind})" for name, (kind, _) in types.items()]
    small = any(each.held is each.task for each in annotations)
    if asked.answer or small:
        name = asked.answer or _MIN
        if name not in types:
            raise StudyError(
                "no-such-control",
                where=where,
                control=name,
                controls=listing(types if small else told, "control"),
            )
    else:
        holding = {name: kind for name, (kind, words) in types.items() if words is not None}
        chosen = [name for name, kind in holding.items() if kind == "choices"]
        chosen = chosen or [name for name, kind in holding.items() if kind != _FREE]
        if len(chosen) > 1:
            raise StudyError(
                "answer-control-ambiguous", where=where, controls=listing(chosen, "control")
            )
        if not chosen:
            raise StudyError(
                "controls-without-answer", where=where, controls=listing(told, "control")
            )
        (name,) = chosen
    if types[name][1] is None:
        kind = plain_text(types[name][0])
        raise StudyError("control-without-answer", where=where, control=plain_text(name), kind=kind)
    return name


def _answer(each: Annotation, of: Sequence[Said], control: str, asked: Columns, where: str) -> str:
    """What an annotation says of the image; nothing where the control was not used."""
    said = [words for _, words in of if words is not None]
    answers = {join_choices(words, asked, where) for words in said}
    if len(answers) > 1:
        raise StudyError(
            "answers-about-regions",
            where=where,
            task=plain_text(str(each.task.get("id"))),
            control=plain_text(control),
            answers=listing(sorted(answers), "answer"),
        )
    return answers.pop() if answers else ""


def _without_prefixes(table: pl.DataFrame, where: str) -> pl.DataFrame:
    """Images by the names that files had before they were uploaded, unless two become one."""
    names = table.select("image").unique(maintain_order=True)
    names = names.with_columns(own=pl.col("image").str.replace(_UPLOAD, ""))
    changed = names.filter(pl.col("image") != pl.col("own"))
    if changed.is_empty():
        return table
    old, new = changed.row(0)
    told = (
        f"images are named without the upload's prefix: {plain_text(old)!r} is {plain_text(new)!r}"
    )
    twice = names.filter(pl.col("own").is_duplicated())["own"].unique(maintain_order=True)
    if len(twice):
        told = (
            "images are named with the upload's prefix, since without it several would be "
            f"{listing(twice)}"
        )
    else:
        table = table.with_columns(pl.col("image").str.replace(_UPLOAD, ""))
    warnings.warn(TableWarning(f"{where}: {told}"), stacklevel=2)
    return table
