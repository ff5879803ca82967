"""Your own annotations and predictions: tables, recognised by their columns.

docs/how-to/own-data.md describes them; all problems are found at once, a reader raises the first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_bytes

import polars as pl

from bayesrep.errors import StudyError, Violation
from bayesrep.files.given_files import refuse_copies, split_name
from bayesrep.files.names import normalize_name
from bayesrep.files.tables import fold_heading, read_sheets
from bayesrep.files.text_table import Sheet
from bayesrep.sources.tables.build import Joined, build_contents, build_study, join_tables
from bayesrep.sources.tables.recognise import (
    CANDIDATES_ROLE,
    KNOWN_COLUMNS,
    PREDICTED_KINDS,
    GivenTables,
    TypedTable,
    name_files,
    recognise_frame,
    recognise_sheet,
    warn_of_unnamed_classifiers,
)
from bayesrep.studies import validation
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.studies.violations import Problems

LISTING_ADVICE = ": `bayesrep check` with the same files lists all"


def read(
    paths: Sequence[str | Path],
    *,
    reference: str = "reference",
    replication: str = "replication",
    candidates: str | None = None,
    further: Mapping[str, str] | None = None,
    rename: Mapping[str, str] | None = None,
    name: str | None = None,
    keep_workers: bool = True,
) -> StudyContents:
    """Read a study, or its counts where there are no predictions yet, and the answers.

    Parameters
    ----------
    paths
        `.csv`, `.tsv`, `.txt` (each also with `.gz`), `.xlsx` and `.parquet` files in any order;
        docs/how-to/own-data.md has their columns. NAME=FILE is a file whose rows are all of one
        data set, which then needs no column dataset.
    reference, replication
        Names of the two data sets in the column dataset.
    candidates
        Its name of the pool that the replication was chosen from, if the tables hold it too;
        predictions on it may be left out.
    further
        Its names of further data sets, by their roles.
    rename
        Columns of any of the tables, by what they are to be called.
    name
        The study's name.
    keep_workers
        True to keep workers' names, instead of irreversible codes, new ones every time.

    Returns
    -------
    StudyContents
        Images in the order of the counts or annotations, classifiers in that of the predictions;
        the answers, where all tables of predictions have a column label_1.

    Raises
    ------
    StudyError
        In one line, naming the files, the lines, images or classifiers, the rule broken and what
        to do; where more is wrong, how much. Where the labels of answers are missing.

    Warns
    -----
    TableWarning
        Where a file's encoding had to be guessed, columns are not read, or images are matched under
        other names.
    """
    called = _role_names(reference, replication, candidates, further)
    contents = build_contents(_sound(*_read(paths, called, rename)), paths, name)
    if keep_workers:
        return contents
    salt = token_bytes(32)
    coded = {
        role: data if data.answers is None else replace(data, answers=data.answers.coded(salt))
        for role, data in contents.datasets.items()
    }
    return replace(contents, datasets=coded)


def check_tables(
    paths: Sequence[str | Path],
    *,
    reference: str = "reference",
    replication: str = "replication",
    candidates: str | None = None,
    further: Mapping[str, str] | None = None,
    rename: Mapping[str, str] | None = None,
) -> tuple[StudyContents | None, list[Violation]]:
    """Find everything that is wrong with tables.

    Parameters
    ----------
    paths, reference, replication, candidates, further, rename
        As for `read`.

    Returns
    -------
    tuple
        What `read` returns, None where something is wrong; and a line for each thing that is.
    """
    called = _role_names(reference, replication, candidates, further)
    joined, problems = _read(paths, called, rename)
    if joined is None or problems:
        return None, problems
    return problems.attempt(partial(build_contents, joined, paths, None)), problems


def of_frames(
    frames: Mapping[str, pl.DataFrame],
    *,
    reference: str,
    replication: str,
    candidates: str | None,
    further: Mapping[str, str] | None,
    name: str,
) -> Study:
    """Make a study from tables in memory, as `read` does from files."""
    called = _role_names(reference, replication, candidates, further)
    problems = Problems()
    every = [table for kind in frames for table in recognise_frame(frames[kind], kind, problems)]
    tables = GivenTables(every, called)
    joined = join_tables(tables, [*frames], PREDICTED_KINDS, problems, named=not problems)
    return build_study(_sound(joined, problems, ""), {"source": "frames"}, name)


def _role_names(
    reference: str, replication: str, candidates: str | None, further: Mapping[str, str] | None
) -> dict[str, str]:
    names: dict[str, str] = dict(zip(REQUIRED_ROLES, (reference, replication), strict=True))
    if candidates is not None:
        names[CANDIDATES_ROLE] = candidates
    if repeated := [role for role in further or () if role in names]:
        raise StudyError("role-has-own-option", role=repeated[0])
    names |= further or {}
    names = {role: normalize_name(name) for role, name in names.items()}
    validation.raise_first(validation.role_violations("the tables", list(names.items())))
    return names


def _read(
    paths: Sequence[str | Path], called: Mapping[str, str], new_name_of: Mapping[str, str] | None
) -> tuple[Joined | None, Problems]:
    """Read every file and set them beside each other; what is wrong, whatever of it is."""
    problems, every = Problems(), list[TypedTable]()
    new_names = {fold_heading(old): new for old, new in (new_name_of or {}).items()}
    absent = dict(new_name_of or {})

    def rename(headings: list[str]) -> list[str]:
        for old in [*absent]:
            if fold_heading(old) in map(fold_heading, headings):
                del absent[old]
        return [new_names.get(fold_heading(heading), heading) for heading in headings]

    given = [split_name(path) for path in paths]
    files = [file for _, file in given]
    problems.attempt(partial(refuse_copies, files))
    named = not problems
    for dataset, file in given:
        sheets = problems.attempt(partial(read_sheets, str(file), KNOWN_COLUMNS, rename))
        named &= sheets is not None
        for sheet in sheets or ():
            of_dataset = problems.attempt(partial(_name_dataset, sheet, dataset))
            parts = recognise_sheet(of_dataset, problems) if of_dataset else []
            named &= bool(parts)
            every += parts
    for old in absent:
        problems.add("renamed-column-absent", where=name_files(files), column=old)
    tables = GivenTables(every, called)
    warn_of_unnamed_classifiers(tables)
    return join_tables(tables, files, (), problems, named=named), problems


def _name_dataset(sheet: Sheet, dataset: str) -> Sheet:
    frame, place = sheet
    if not dataset:
        return sheet
    if "dataset" in frame.columns:
        raise StudyError("data-set-named-twice", where=place, dataset=dataset)
    return Sheet(frame.with_columns(pl.lit(dataset).alias("dataset")), place)


def _sound(joined: Joined | None, problems: Problems, listed: str = LISTING_ADVICE) -> Joined:
    """Return sound tables, or raise `StudyError` with the first problem."""
    if joined is None or problems:
        more = len(problems) - 1
        also = f" ({more} more{listed})" if more else ""
        raise StudyError(problems[0].append_text(also))
    return joined
