"""Tables that the steps of a collection exchange, and pools of candidates."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from bayesrep.errors import OptionError
from bayesrep.files.row_numbers import Place
from bayesrep.files.tables import read_only, require
from bayesrep.files.values import all_flags, flags, texts, whole_numbers
from bayesrep.sources.table_files import read_answers

JUDGEMENT_KEY = ("dataset", "image", "label")


def read_questions(path: Path) -> pl.DataFrame:
    """Read the images and labels to ask about: dataset, image, label, and perhaps own, source."""
    return _parse_own(*read_only(path, (*JUDGEMENT_KEY, "source")))


def read_label_table(path: Path) -> pl.DataFrame:
    """Read how often labels were selected; single answers stay as they are, without `shown`."""
    table, where = read_only(path, JUDGEMENT_KEY)
    if "shown" not in table.columns:
        return _parse_own(read_answers(path), where)
    require(table, (*JUDGEMENT_KEY, "own", "selected", "shown"), where)
    counts = [whole_numbers(table[name], where) for name in ("selected", "shown")]
    return _parse_own(table, where).with_columns(counts)


def read_object_answers(path: Path) -> pl.DataFrame:
    """Read what annotators chose of each image: single answers with label, task and main."""
    answers, where = read_answers(path), str(path)
    require(answers, ("label", "task", "main"), where)
    return _parse_own(answers.with_columns(all_flags(answers["main"], where)), where)


def read_fates(path: Path) -> pl.DataFrame:
    """Read what became of every image: dataset, image, label, fate."""
    columns = (*JUDGEMENT_KEY, "fate")
    fates = read_only(path, columns).frame
    require(fates, columns, str(path))
    if any(fates.select(columns).null_count().row(0)):
        raise OptionError("fates-cell-empty", file=path)
    return fates.select(pl.col(columns).cast(pl.String))


def read_judgements(paths: Sequence[Path]) -> tuple[pl.DataFrame, list[Path]]:
    """Read judgements of predictions (dataset, image, label, right), and name the label sets."""
    schema = dict.fromkeys(JUDGEMENT_KEY, pl.String) | {"right": pl.Boolean}
    parts, sets = [pl.DataFrame(schema=schema)], list[Path]()
    for path in paths:
        table, where = (None, "") if path.suffix == ".json" else read_only(path, JUDGEMENT_KEY)
        if table is None or "right" not in table.columns:
            sets.append(path)
            continue
        require(table, JUDGEMENT_KEY, where)
        judged = table.with_columns(flags(table["right"], where)).drop_nulls("right")
        parts.append(judged.select(pl.col(JUDGEMENT_KEY).cast(pl.String), "right"))
    return pl.concat(parts), sets


def read_candidates(
    path: Path, names: Sequence[str], *, by_class: bool = False
) -> list[pl.DataFrame]:
    """Read the counts of data sets that are in one table, each image once."""
    texted = ("dataset", "image", *(("label",) if by_class else ()))
    table, where = read_only(path, JUDGEMENT_KEY)
    require(table, (*texted, "selected", "shown"), where)
    table = table.with_columns(
        *(texts(table[name], where) for name in texted),
        *(whole_numbers(table[name], where) for name in ("selected", "shown")),
    )
    sets = [table.filter(dataset=name) for name in names]
    for name, part in zip(names, sets, strict=True):
        if part.is_empty():
            raise OptionError("no-images-of-dataset", where=where, dataset=name)
        if (again := part["image"].is_duplicated()).any():
            image = part.filter(again)["image"][0]
            raise OptionError("image-twice-in-dataset", where=where, image=image, dataset=name)
    return sets


def _parse_own(table: pl.DataFrame, where: str | Place) -> pl.DataFrame:
    """The table with its column `own`, if it has one, as true or false."""
    return table.with_columns(flags(table["own"], where)) if "own" in table.columns else table
