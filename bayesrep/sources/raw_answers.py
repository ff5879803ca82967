"""Raw answers of annotators from the exports of annotation tools: one row an answer."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.files.names import normalize_name, normalize_names
from bayesrep.files.values import is_missing, lack_names, parse_flags, people, texts
from bayesrep.sources.exports.columns import Columns, tell_anonymous
from bayesrep.sources.exports.label_studio import read_label_studio
from bayesrep.sources.exports.mturk import read_mturk
from bayesrep.sources.exports.reassessed import read_reassessed
from bayesrep.sources.exports.tables import read_answer_table, read_crowd_kit
from bayesrep.studies.representation import number

EMPTY_ANSWER = "(empty)"  # word for no answer, as of a box that was not ticked
RAW_SOURCES: Mapping[str, Callable[[str | Path, Columns], pl.DataFrame]] = {
    "table": read_answer_table,
    "crowd-kit": read_crowd_kit,
    "mturk": read_mturk,
    "label-studio": read_label_studio,
    "reassessed": read_reassessed,
}


def read_raw(source: str, path: str | Path, columns: Columns | None = None) -> pl.DataFrame:
    """Read the answers of one file.

    Parameters
    ----------
    source
        A name of `SOURCES`.
    path
        The file.
    columns
        Columns of the file, if the source leaves them open.

    Returns
    -------
    polars.DataFrame
        One row an answer, as text: `image`, `worker`, `answer` (of several choices, with the
        separator between them), and where they are known `label`, `task` (what one worker did at a
        time), `control` and, as numbers, `seconds` (of the task).

    Raises
    ------
    StudyError
        In one line, naming the file, what is wrong with it and what to do.
    """
    if source not in RAW_SOURCES:
        raise OptionError("unknown-answers-source", source=source, sources=", ".join(RAW_SOURCES))
    table = RAW_SOURCES[source](path, columns or Columns())
    if table.is_empty():
        raise StudyError("file-without-answers", path=path)
    named = [name for name in ("image", "label") if name in table.columns]
    table = table.with_columns(
        *(texts(table[name], str(path)) for name in named),
        normalize_names(table["worker"]),
        normalize_names(pl.col("answer")).replace("", None).fill_null(EMPTY_ANSWER),
    )
    table = name_nobodies(table, [*named, "worker"], str(path))
    return table.with_columns(people(table["worker"], str(path)))


def name_nobodies(table: pl.DataFrame, question: Sequence[str], where: str) -> pl.DataFrame:
    """Give every answer without a worker's name a worker of its own."""
    # A word for a missing value is none where it would have answered a question twice.
    worker, is_repeated = table["worker"], table.select(question).is_duplicated()
    nobodies = worker.filter(is_repeated & is_missing(worker)).unique().implode()
    nobody = lack_names(worker) | worker.is_in(nobodies).fill_null(value=False)
    names = listing(worker.filter(nobody).fill_null("").unique(maintain_order=True), "worker")
    tell_anonymous(int(nobody.sum()), where, names)
    row = pl.int_range(1, pl.len() + 1).cast(pl.String)
    own = pl.concat_str(pl.lit(f"nobody ({where}: answer "), row, pl.lit(")"))
    return table.with_columns(worker=pl.when(nobody).then(own).otherwise("worker"))


def decide(
    answers: pl.DataFrame,
    *,
    yes: Sequence[str] = (),
    no: Sequence[str] = (),
    maybe: Sequence[str] = (),
    maybe_is: str | None = None,
    seed: int = 0,
) -> pl.DataFrame:
    """Decide which answers are a yes; every word needs a meaning, and none is guessed.

    Parameters
    ----------
    answers
        From `read_raw`.
    yes, no, maybe
        Words, regardless of case. Without either yes or no, `yes`, `true`, `1` and their opposites
        are understood as in every table but for words of `maybe`, and nothing else.
    maybe_is
        Meaning of the words of `maybe`: "yes", "no", "half" (a random half of them counts as yes,
        so that counts stay whole numbers) or "left-out".
    seed
        Seed of the half.

    Returns
    -------
    polars.DataFrame
        With `selected` (bool) in place of `answer`.

    Raises
    ------
    OptionError
        Where words are left without a place or have two, or `maybe` has no meaning.
    """
    words = {"yes": _lower_case(yes), "no": _lower_case(no), "maybe": _lower_case(maybe)}
    for one, other in (("yes", "no"), ("yes", "maybe"), ("no", "maybe")):
        if both := sorted(words[one] & words[other]):
            raise OptionError(
                "word-with-two-meanings", word=both[0], meaning=one, other_meaning=other
            )
    if bool(words["maybe"]) != (maybe_is is not None):
        raise OptionError("maybe-half-given")
    if maybe_is not in (None, *MAYBE_RULES):
        raise OptionError(
            "unknown-meaning-of-maybe", choices=", ".join(MAYBE_RULES), maybe_is=maybe_is
        )
    word = answers["answer"].str.to_lowercase()
    is_yes, is_no, is_maybe = (word.is_in(sorted(words[name])) for name in ("yes", "no", "maybe"))
    # Without the user's words the usual ones mean yes and no.
    if not words["yes"] and not words["no"]:
        is_flag = parse_flags(word).set(is_maybe, None)
        is_yes, is_no = ((is_flag == each).fill_null(value=False) for each in (True, False))
    if len(strange := answers.filter(~(is_yes | is_no | is_maybe))):
        counted = strange["answer"].value_counts(sort=True).rows()
        words_text = listing(
            [f"{text} ({number(count, 'time')})" for text, count in counted], "answer"
        )
        comma = any("," in text for text, _ in counted)
        hint = "; a word that holds a comma stands in quotes: --yes '\"Yes, it fits\"'"
        raise OptionError("answer-without-meaning", answers=words_text, hint=hint if comma else "")
    if maybe_is == "yes":
        is_yes |= is_maybe
    elif maybe_is == "half":
        rows = np.flatnonzero(is_maybe.to_numpy())
        half = np.random.default_rng(seed).permutation(rows)[: len(rows) // 2]
        is_yes = is_yes.scatter(half, values=True)
    decided = answers.drop("answer").with_columns(selected=is_yes)
    return decided.filter(~is_maybe) if maybe_is == "left-out" else decided


MAYBE_RULES = ("yes", "no", "half", "left-out")


def _lower_case(words: Sequence[str]) -> set[str]:
    return {normalize_name(word).lower() for word in words}


def describe_answers(answers: pl.DataFrame) -> pl.DataFrame:
    """Summarize a table of answers, a row a data set."""
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
