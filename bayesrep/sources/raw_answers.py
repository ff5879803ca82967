"""What annotators answered, as the tools that asked them export it: one row an answer.

    table          any CSV or Parquet table with columns for image, worker and answer
    crowd-kit      task, worker, label
    mturk          batch results of Amazon Mechanical Turk: CSV, a row an assignment
    label-studio   its JSON export, whole or "JSON-MIN"
    reassessed     raters.npz of Reassessed ImageNet (Beyer et al. 2020): tensor, info, ids

`read_raw` returns words as they were answered; `decide` says which of them are a yes. An answer may
be about one of several labels of an image (column `label`), where all that apply were to be
selected.
"""

import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bayesrep.errors import OptionError, StudyError, listing, reason
from bayesrep.files import npy, strict_json
from bayesrep.files.tables import FALSE_WORDS, TRUE_WORDS
from bayesrep.sources.table_files import read_table, require, texts

EMPTY = "(empty)"
"""The word for no answer, as for a box that was not ticked."""
RATINGS = ("no", "maybe", "yes")
"""The last axis of Reassessed ImageNet's tensor."""


@dataclass(frozen=True)
class Columns:
    """Where a file says what; None where its source says.

    Attributes
    ----------
    image, worker, answer
        Columns of a table. Of Mechanical Turk image and answer may hold a ``*`` each, for the
        numbers of an assignment's images: `Input.image*` and `Answer.image*`. Of Label Studio
        `image` is a key of the task's data, `answer` the name of a control.
    label
        Column of the label that was asked about.
    separator
        Between answers of which several could be selected: every one that anybody selected becomes
        a label, and each answer a yes or a no to each of them.
    """

    image: str | None = None
    worker: str | None = None
    answer: str | None = None
    label: str | None = None
    separator: str | None = None


def read_raw(source: str, path: str | Path, columns: Columns | None = None) -> pl.DataFrame:
    """Read the answers of one file.

    Parameters
    ----------
    source
        A name of `SOURCES`.
    path
        The file.
    columns
        Where it says what, as far as the source leaves that open.

    Returns
    -------
    polars.DataFrame
        One row an answer, as text: `image`, `worker`, `answer`, and where they are known `label`,
        `task` (what one worker did at a time), `control` and, as numbers, `seconds` (of the task).

    Raises
    ------
    StudyError
        In one line, naming the file, what is wrong with it and what to do.
    """
    if source not in SOURCES:
        raise OptionError("unknown-answers-source", source=source, sources=", ".join(SOURCES))
    asked = columns or Columns()
    table = SOURCES[source](path, asked)
    if table.is_empty():
        raise StudyError("file-without-answers", path=path)
    named = [name for name in ("image", "worker") if name in table.columns]
    table = table.with_columns(
        *(texts(table[name], str(path)) for name in named),
        pl.col("answer").cast(pl.String).str.strip_chars().replace("", None).fill_null(EMPTY),
    )
    return table if asked.separator is None else _each(table, asked.separator)


def _each(table: pl.DataFrame, separator: str) -> pl.DataFrame:
    """A yes or no for every choice that anybody made, of answers with several."""
    chosen = table.with_row_index("row").with_columns(
        pl.col("answer").replace(EMPTY, "").str.split(separator)
    )
    pairs = chosen.select("row", label="answer").explode("label")
    pairs = pairs.with_columns(pl.col("label").str.strip_chars()).filter(pl.col("label") != "")
    pairs = pairs.unique().with_columns(answer=pl.lit("yes"))
    labels = pairs.select(pl.col("label").unique().sort())
    every = chosen.drop("answer", *({"label"} & set(chosen.columns))).join(labels, how="cross")
    return every.join(pairs, on=["row", "label"], how="left", maintain_order="left").select(
        pl.exclude("row", "answer"), pl.col("answer").fill_null("no")
    )


def decide(
    answers: pl.DataFrame,
    *,
    yes: Sequence[str] = (),
    no: Sequence[str] = (),
    maybe: Sequence[str] = (),
    maybe_is: str | None = None,
    seed: int = 0,
) -> pl.DataFrame:
    """Say which answers are a yes; every word needs a place, and no one's is guessed.

    Parameters
    ----------
    answers
        From `read_raw`.
    yes, no, maybe
        Words, whatever their case. Where none is given, `yes`, `true`, `1` and their opposites
        are understood, and nothing else.
    maybe_is
        What the words of `maybe` count as: "yes", "no", "half" (a random half of them counts as
        yes, so that counts stay whole numbers) or "left-out".
    seed
        Of the half.

    Returns
    -------
    polars.DataFrame
        With `selected` (bool) in place of `answer`.

    Raises
    ------
    OptionError
        Where words are left without a place or have two, or `maybe` has no meaning.
    """
    words = {"yes": _lower(yes), "no": _lower(no), "maybe": _lower(maybe)}
    if not any(words.values()):
        words |= {"yes": set(TRUE_WORDS), "no": set(FALSE_WORDS)}
    for one, other in (("yes", "no"), ("yes", "maybe"), ("no", "maybe")):
        if both := sorted(words[one] & words[other]):
            raise OptionError(
                "word-with-two-meanings", word=both[0], meaning=one, other_meaning=other
            )
    if bool(words["maybe"]) != (maybe_is is not None):
        raise OptionError("maybe-half-given")
    if maybe_is not in (None, *MAYBE):
        raise OptionError("unknown-meaning-of-maybe", choices=", ".join(MAYBE), maybe_is=maybe_is)
    word = answers["answer"].str.to_lowercase()
    is_yes, is_no, is_maybe = (word.is_in(sorted(words[name])) for name in ("yes", "no", "maybe"))
    if len(strange := answers.filter(~(is_yes | is_no | is_maybe))):
        counted = strange["answer"].value_counts(sort=True).rows()
        told = listing([f"{text} ({count:,} times)" for text, count in counted], "answer")
        raise OptionError("answer-without-meaning", answers=told)
    if maybe_is == "yes":
        is_yes |= is_maybe
    elif maybe_is == "half":
        rows = np.flatnonzero(is_maybe.to_numpy())
        half = np.random.default_rng(seed).permutation(rows)[: len(rows) // 2]
        is_yes = is_yes.scatter(half, values=True)
    decided = answers.drop("answer").with_columns(selected=is_yes)
    return decided.filter(~is_maybe) if maybe_is == "left-out" else decided


MAYBE = ("yes", "no", "half", "left-out")


def _lower(words: Sequence[str]) -> set[str]:
    return {word.strip().lower() for word in words}


def _table(path: str | Path, asked: Columns) -> pl.DataFrame:
    """Any table; its columns by name."""
    names = {"image": asked.image or "image", "worker": asked.worker or "worker"}
    names["answer"] = asked.answer or "answer"
    if asked.label:
        names["label"] = asked.label
    table = read_table(path, (*names.values(), "task"))
    require(table, tuple(names.values()), str(path))
    more = [
        name
        for name in ("task", "control", "seconds")
        if name in table.columns and name not in names.values()
    ]
    chosen = [pl.col(column).cast(pl.String).alias(name) for name, column in names.items()]
    return table.select(*chosen, *more)


def _crowd_kit(path: str | Path, asked: Columns) -> pl.DataFrame:
    """crowd-kit's own columns; its tasks are images, its labels answers."""
    return _table(
        path,
        Columns(asked.image or "task", asked.worker or "worker", asked.answer or "label", None),
    ).drop("task", strict=False)


def _mturk(path: str | Path, asked: Columns) -> pl.DataFrame:
    """Batch results: a row an assignment, with inputs and answers of one image or of a grid."""
    where, needed = str(path), ("HITId", "WorkerId")
    table = read_table(path, ("HITId", "WorkerId"))
    require(table, needed, where)
    table = table.with_columns(pl.all().cast(pl.String))
    if "Answer.taskAnswers" in table.columns:
        table = with_task_answers(table, where)
    image, answer = (
        each or _only(table.columns, prefix, option, where)
        for each, prefix, option in (
            (asked.image, "Input.", "image"),
            (asked.answer, "Answer.", "answer"),
        )
    )
    keys = [("worker", "WorkerId"), ("task", "HITId")]
    if "WorkTimeInSeconds" in table.columns:
        keys.append(("seconds", "WorkTimeInSeconds"))
    if asked.label:
        keys.append(("label", asked.label))
    pairs = _pairs(image, answer, table.columns, where)
    unticked = [said for _, said in pairs if "*" in answer and said not in table.columns]
    table = table.with_columns(pl.lit(None, pl.String).alias(name) for name in unticked)
    parts: list[pl.DataFrame] = []
    for shown, said in pairs:
        require(table, (shown, said, *(column for _, column in keys)), where)
        named = [pl.col(column).alias(name) for name, column in keys]
        part = table.select(pl.col(shown).alias("image"), pl.col(said).alias("answer"), *named)
        parts.append(part.filter(pl.col("image").fill_null("") != ""))
    found = pl.concat(parts)
    if "seconds" in found.columns:
        found = found.with_columns(pl.col("seconds").cast(pl.Float64, strict=False))
    return found


def _only(columns: Sequence[str], prefix: str, option: str, where: str) -> str:
    """The one column with a prefix."""
    found = [name for name in columns if name.startswith(prefix)]
    if len(found) != 1:
        raise StudyError(
            "assignment-column-ambiguous",
            where=where,
            prefix=prefix,
            columns=", ".join(found) or "none",
            option=option,
        )
    return found[0]


def _pairs(image: str, answer: str, columns: Sequence[str], where: str) -> list[tuple[str, str]]:
    """Columns of images and of the answers about them, which are missing where none was given.

    A batch has no column for a box that nobody ticked.
    """
    if "*" not in image + answer:
        return [(image, answer)]
    if image.count("*") != 1 or answer.count("*") != 1:
        raise OptionError(
            "column-patterns-need-one-star", image_pattern=image, answer_pattern=answer
        )
    pattern = re.compile(re.escape(image).replace(r"\*", r"(\d+)"))
    stars = [found[1] for name in columns if (found := pattern.fullmatch(name))]
    if not stars:
        raise StudyError(
            "no-column-of-pattern", where=where, column=image, columns=", ".join(columns)
        )
    pairs = [(image.replace("*", star), answer.replace("*", star)) for star in stars]
    if not any(said in columns for _, said in pairs):
        raise StudyError(
            "no-column-of-pattern", where=where, column=answer, columns=", ".join(columns)
        )
    return pairs


def with_task_answers(table: pl.DataFrame, where: str) -> pl.DataFrame:
    """The answers of a form as columns: `Answer.name` of `[{"name": ...}]` or of its choices."""
    rows: list[dict[str, str]] = []
    for number, text in enumerate(table["Answer.taskAnswers"].fill_null("[]").to_list(), 1):
        try:
            forms = strict_json.parse(text)
            rows.append({f"Answer.{k}": v for form in forms for k, v in _form(form).items()})
        except (ValueError, TypeError, AttributeError) as error:
            raise StudyError(
                "task-answers-not-a-list", where=where, row=number, reason=reason(error)
            ) from None
    names = list(dict.fromkeys(name for row in rows for name in row))
    if taken := sorted(set(names) & set(table.columns)):
        raise StudyError("answer-named-like-column", where=where, column=taken[0])
    new = {name: pl.Series([row.get(name) for row in rows], dtype=pl.String) for name in names}
    return table.drop("Answer.taskAnswers").with_columns(**new)


def _form(form: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a form as text; of choices the one that is true."""
    found: dict[str, str] = {}
    for name, value in form.items():
        if isinstance(value, dict):
            chosen = [str(key) for key, on in value.items() if on is True]
            if list(value) == ["on"]:
                chosen = ["true" if value["on"] else "false"]
            value = "|".join(chosen)
        found[name] = "" if value is None else str(value)
    return found


def _label_studio(path: str | Path, asked: Columns) -> pl.DataFrame:
    """Tasks with their annotations, or the small export with a row an annotation."""
    tasks = strict_json.read(path)
    rows: list[dict[str, Any]] = []
    try:
        for task in tasks:
            if "annotations" in task:
                rows += _of_task(task, asked, str(path))
            else:
                rows.append(_of_small(task, asked, str(path)))
    except (TypeError, KeyError, AttributeError) as error:
        raise StudyError(
            "not-label-studio-export",
            path=path,
            error_type=type(error).__name__,
            reason=reason(error),
        ) from None
    schema = {name: pl.String for name in ("image", "worker", "answer", "task")}
    return pl.DataFrame(rows, schema={**schema, "seconds": pl.Float64})


def _of_task(task: Mapping[str, Any], asked: Columns, where: str) -> list[dict[str, Any]]:
    image = _image_of(task["data"], asked, where)
    rows: list[dict[str, Any]] = []
    for each in task["annotations"]:
        if each.get("was_cancelled"):
            continue  # skipped: nothing was answered
        controls = {
            str(result["from_name"]): result["value"]["choices"]
            for result in each["result"]
            if result.get("type") == "choices"
        }
        name = asked.answer or (next(iter(controls)) if len(controls) == 1 else None)
        if name is None and len(controls) > 1:
            raise StudyError(
                "answer-control-ambiguous",
                where=where,
                task=task.get("id"),
                choices=", ".join(controls),
            )
        rows.append(
            {
                "image": image,
                "worker": who(each["completed_by"]),
                "answer": _joined(controls.get(name or "", []), asked),
                "task": str(task.get("id")),
                "seconds": each.get("lead_time"),
            }
        )
    return rows


def _of_small(task: Mapping[str, Any], asked: Columns, where: str) -> dict[str, Any]:
    said = task.get(asked.answer or "choice")
    if isinstance(said, dict):
        said = said["choices"]
    return {
        "image": _image_of(task, asked, where),
        "worker": who(task["annotator"]),
        "answer": _joined([said] if isinstance(said, str) else said or [], asked),
        "task": str(task.get("id")),
        "seconds": task.get("lead_time"),
    }


def _image_of(data: Mapping[str, Any], asked: Columns, where: str) -> str:
    name = asked.image or "image"
    if name not in data:
        raise StudyError(
            "task-without-image", where=where, field=name, fields=", ".join(map(str, data))
        )
    return str(data[name])


def who(person: Any) -> str:
    """What Label Studio calls someone: a number, or an object that has one."""
    return str(person.get("id", person.get("email"))) if isinstance(person, dict) else str(person)


def _joined(choices: Sequence[str], asked: Columns) -> str:
    return (asked.separator or "|").join(map(str, choices))


def _reassessed(path: str | Path, asked: Columns) -> pl.DataFrame:
    """The tensor [rater, question, answer] of Reassessed ImageNet; questions are image and label.

    The data are Apache-2.0, github.com/google-research/reassessed-imagenet.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {each.filename: each.file_size for each in archive.infolist()}
            needed = ("tensor.npy", "info.npy", "ids.npy")
            if missing := [name for name in needed if name not in sizes]:
                raise ValueError(f"it has no {missing[0]}")
            if sum(sizes.values()) > LARGEST:
                raise ValueError(f"more than {LARGEST // 2**30} GB")
            arrays: list[np.ndarray[Any, Any]] = []
            for name in needed:
                with archive.open(name) as stream:
                    arrays.append(npy.read(stream, sizes[name]))
    except OSError as error:
        raise StudyError("file-unreadable", path=path, reason=reason(error)) from error
    except (ValueError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise StudyError("not-raters-archive", path=path, reason=reason(error)) from None
    tensor, info, ids = arrays
    shape = (len(ids), len(info), len(RATINGS))
    if tensor.shape != shape or info.shape[1:] != (2,) or tensor.dtype.kind not in "fiu":
        raise StudyError(
            "ratings-tensor-misshapen",
            path=path,
            shape=list(tensor.shape),
            ratings=", ".join(RATINGS),
            rater_count=shape[0],
            question_count=shape[1],
        )
    rater, question, answer = np.nonzero(tensor)
    return pl.DataFrame(
        {
            "image": info[question, 0].astype(np.str_),
            "worker": ids[rater].astype(np.str_),
            "label": info[question, 1].astype(np.str_),
            "answer": np.array(RATINGS)[answer],
        }
    )


LARGEST = 2**32
"""Bytes of an archive's arrays."""

SOURCES: Mapping[str, Callable[[str | Path, Columns], pl.DataFrame]] = {
    "table": _table,
    "crowd-kit": _crowd_kit,
    "mturk": _mturk,
    "label-studio": _label_studio,
    "reassessed": _reassessed,
}


def own_labels(answers: pl.DataFrame, labels: pl.DataFrame, where: str) -> pl.DataFrame:
    """The answers about images' own labels.

    Parameters
    ----------
    answers
        With `dataset`, `image`, `label`.
    labels
        `dataset`, `image`, `label`: one row an image.
    where
        The labels' file.

    Raises
    ------
    StudyError
        Where the answers have no labels, or there are images nobody was asked about the label of.
    """
    key = ["dataset", "image", "label"]
    require(answers, key, "the answers")
    labels = labels.select(pl.col(key).cast(pl.String))
    kept = answers.join(labels, on=key, how="semi", maintain_order="left")
    asked = labels.join(answers, on=key[:2], how="semi")
    if len(never := asked.join(answers, on=key, how="anti")):
        raise StudyError(
            "label-never-asked-about", where=where, images=listing(never["image"].to_list())
        )
    return kept


def described(answers: pl.DataFrame) -> pl.DataFrame:
    """What a table of answers holds, a row a data set.

    Parameters
    ----------
    answers
        With `dataset`, `image`, `worker`, `selected`, and perhaps `label`.
    """
    question = ["image", *({"label"} & set(answers.columns))]
    repeated = pl.struct([*question, "worker"]).is_first_distinct().not_().sum()
    return answers.group_by("dataset", maintain_order=True).agg(
        images=pl.col("image").n_unique(),
        questions=pl.struct(question).n_unique(),
        workers=pl.col("worker").n_unique(),
        answers=pl.len(),
        yes=pl.col("selected").mean(),
        repeated=repeated,
    )
