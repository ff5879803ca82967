"""Label Studio's exports: tasks with their annotations (JSON), or a row an annotation (JSON-MIN).

Skipped, rejected and ground-truth annotations are left out, and so are predictions.
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
from bayesrep.files.json_stream import as_word
from bayesrep.files.tables import TABLE_ENDINGS, warn_unread
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
"""Types of controls that can hold an answer, with its key in their values."""
_FREE_TEXT_TYPE = "textarea"
_JSON_MIN_CONTROL = "choice"
_MARK_FIELDS = {"was_cancelled", "ground_truth", "last_action"}
_FACT_FIELDS = {
    *"id annotator annotation_id created_at updated_at lead_time".split(),
    *_MARK_FIELDS,
}
_UPLOAD_PATTERN = r"^(?:.*/)?upload/(?:\d+/)?[0-9a-f]{8}-"

ControlValue = tuple[str, list[str] | None]  # its type and values; None: no answer


@dataclass(frozen=True, eq=False)
class Annotation:
    """One worker's annotation of one task."""

    task: Mapping[str, Any]  # the task
    record: Mapping[str, Any]  # the annotation; in JSON-MIN the same as the task
    worker: str  # its worker

    @property
    def data(self) -> Mapping[str, Any]:
        """Data of the task."""
        return self.task if self.record is self.task else self.task["data"]


def count_annotations(tasks: Iterable[Mapping[str, Any]], where: str) -> list[Annotation]:
    """List the valid annotations of all tasks."""
    every: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
    predictions = 0
    for task in tasks:
        # The small JSON export has one annotation a task, in the task itself.
        every += [(task, record) for record in task.get("annotations", [task])]
        predictions += len(task.get("predictions") or ())
    marks = {name: [str(record.get(name)) for _, record in every] for name in sorted(_MARK_FIELDS)}
    # Of an annotation's reviews the last counts.
    reviews = (record.get("reviews") or () for _, record in every)
    last = [sorted(each, key=lambda review: str(review.get("created_at")))[-1:] for each in reviews]
    rejected = [bool(each) and each[0].get("accepted") is False for each in last]
    marks["review"] = ["rejected" if each else "" for each in rejected]
    rows = drop_marked(pl.DataFrame(marks).with_row_index(), where)["index"]
    annotations: list[Annotation] = []
    nameless = Counter[tuple[int, str]]()
    for task, record in map(every.__getitem__, rows):
        small = record is task
        # Annotations without a name count as answers of different people.
        worker = record.get("annotator" if small else "completed_by")
        if isinstance(worker, dict):
            worker = worker.get("id", worker.get("email"))
        if worker is None or str(worker).strip() == "":
            number = str(record.get("annotation_id" if small else "id"))
            nameless[id(task), number] += 1
            name = f"annotation {number} of task {task.get('id')}, {nameless[id(task), number]}"
            worker = f"nobody ({where}: {name})"
        annotations.append(Annotation(task, record, str(worker)))
    tell_anonymous(nameless.total(), where, "completed_by or annotator is empty")
    if predictions:
        text = f"{where}: {predictions:,} predictions of models are no answers, and left out"
        warnings.warn(TableWarning(text), stacklevel=2)
    return annotations


def read_label_studio(path: str | Path, columns: Columns) -> pl.DataFrame:
    """Read the answer of every valid annotation."""
    if (where := str(path)).lower().endswith(TABLE_ENDINGS):
        raise StudyError("not-label-studio-export", path=path, reason="a table, such as its CSV")
    content = strict_json.read(path)
    try:
        annotations = count_annotations(content, where)
        field = columns.image or "image"
        images = [name_image(each.data, field, where) for each in annotations]
        controls = [dict(collect_answers(each, field)) for each in annotations]
        # An export may hold several controls; one of them is the answer.
        control = _control(annotations, controls, columns, where)
        others = dict.fromkeys(name for each in controls for name in each if name != control)
        warn_unread(list(others), "answers", (), where)
        rows = [
            {
                "image": image,
                "worker": each.worker,
                "answer": _answer(each, values.get(control, []), control, columns, where),
                "task": str(each.task.get("id")),
                "seconds": each.record.get("lead_time"),
            }
            for each, image, values in zip(annotations, images, controls, strict=True)
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


def collect_answers(each: Annotation, field: str) -> Iterator[tuple[str, list[ControlValue]]]:
    """Yield each control's values, one a region; `field` is the task's own and skipped."""
    if each.record is each.task:
        for name, value in each.task.items():
            if name not in _FACT_FIELDS and name != field:
                yield name, _of_small(value)
        return
    answers: dict[str, list[ControlValue]] = {}
    for result in each.record["result"]:
        if "from_name" in result:
            values = answers.setdefault(str(result["from_name"]), [])
            kind = str(result["type"])
            key = VALUE_KEYS.get(kind)
            values.append((kind, None if key is None else _words(result["value"][key])))
    yield from answers.items()


def _of_small(value: Any) -> list[ControlValue]:
    """Parse a value of JSON-MIN, without its type: a list of objects is one of regions."""
    regions = value if isinstance(value, list) and any(isinstance(x, dict) for x in value) else None
    values: list[ControlValue] = []
    for each in [value] if regions is None else regions:
        if isinstance(each, dict):
            key = next((key for key in VALUE_KEYS.values() if key in each), None)
            values.append(("region", None) if key is None else ("choices", _words(each[key])))
        else:
            values.append(("choices", _words(each)))
    return values


def _words(value: Any) -> list[str]:
    """A value as words: one, several, or of a taxonomy the path to each."""
    if value is None:
        return []
    parts = value if isinstance(value, list) else [value]
    paths = (part if isinstance(part, list) else [part] for part in parts)
    return ["/".join(as_word(each, "a choice") or "" for each in path) for path in paths]


def _control(
    annotations: Sequence[Annotation],
    controls: Sequence[Mapping[str, Sequence[ControlValue]]],
    columns: Columns,
    where: str,
) -> str:
    types = {name: values[0] for each in controls for name, values in each.items() if values}
    if not types:
        return ""
    control_names = [f"{name} ({kind})" for name, (kind, _) in types.items()]
    small = any(each.record is each.task for each in annotations)
    if columns.answer or small:
        name = columns.answer or _JSON_MIN_CONTROL
        if name not in types:
            raise StudyError(
                "no-such-control",
                where=where,
                control=name,
                controls=listing(types if small else control_names, "control"),
            )
    else:
        holding = {name: kind for name, (kind, words) in types.items() if words is not None}
        chosen = [name for name, kind in holding.items() if kind == "choices"]
        chosen = chosen or [name for name, kind in holding.items() if kind != _FREE_TEXT_TYPE]
        if len(chosen) > 1:
            raise StudyError(
                "answer-control-ambiguous", where=where, controls=listing(chosen, "control")
            )
        if not chosen:
            raise StudyError(
                "controls-without-answer", where=where, controls=listing(control_names, "control")
            )
        (name,) = chosen
    if types[name][1] is None:
        kind = plain_text(types[name][0])
        raise StudyError("control-without-answer", where=where, control=plain_text(name), kind=kind)
    return name


def _answer(
    each: Annotation, values: Sequence[ControlValue], control: str, columns: Columns, where: str
) -> str:
    """Return an annotation's answer about the image; empty if the control was not used."""
    choices = [words for _, words in values if words is not None]
    answers = {join_choices(words, columns, where) for words in choices}
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
    """Remove the uploads' prefixes from images' names, unless two become one."""
    names = table.select("image").unique(maintain_order=True)
    names = names.with_columns(own=pl.col("image").str.replace(_UPLOAD_PATTERN, ""))
    changed = names.filter(pl.col("image") != pl.col("own"))
    if changed.is_empty():
        return table
    old, new = changed.row(0)
    text = (
        f"images are named without the upload's prefix: {plain_text(old)!r} is {plain_text(new)!r}"
    )
    twice = names.filter(pl.col("own").is_duplicated())["own"].unique(maintain_order=True)
    if len(twice):
        text = (
            "images are named with the upload's prefix, since without it several would be "
            f"{listing(twice)}"
        )
    else:
        table = table.with_columns(pl.col("image").str.replace(_UPLOAD_PATTERN, ""))
    warnings.warn(TableWarning(f"{where}: {text}"), stacklevel=2)
    return table
