"""Tables in memory: pandas, polars, Arrow, Hugging Face datasets, or columns by name."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import polars as pl

from bayesrep.errors import StudyError, reason
from bayesrep.files import parquet
from bayesrep.files.row_numbers import Place
from bayesrep.files.text_table import leave_out_index
from bayesrep.sources import tables
from bayesrep.sources.tables.recognise import KNOWN_COLUMNS
from bayesrep.studies.input_arrays import align_rows
from bayesrep.studies.leniency import Annotators, add_people, warn_of_people
from bayesrep.studies.study import Study


def read_frames(
    counts: Any = None,
    predictions: Any = None,
    *,
    annotations: Any = None,
    images: Any = None,
    reference: str = "reference",
    replication: str = "replication",
    candidates: str | None = None,
    further: Mapping[str, str] | None = None,
    name: str = "study",
    people: Annotators = None,
) -> Study:
    """Make a study from tables in memory.

    Parameters
    ----------
    counts
        Columns dataset, image, selected, shown: how many of those who saw an image selected it.
    predictions
        Columns dataset, image, classifier, correct; or dataset, image and one column of true and
        false per classifier. Like all tables a pandas or polars frame, a pyarrow table, a Hugging
        Face dataset, a mapping of columns or a sequence of rows (mappings); its other columns are
        ignored. An index of pandas that is called as a column is one; others are left out.
    annotations
        Instead of counts, columns dataset, image, worker, selected: one row per answer.
    images
        Columns dataset, image, label, and any further ones as groups of images.
    reference, replication
        Names of the two data sets in the column dataset.
    candidates
        Its name of the pool that the replication was chosen from, if the tables hold it too.
    further
        Its names of further data sets, by their roles.
    name
        The study's name.
    people
        Who answered, as `bayesrep.Study.from_arrays` takes it.

    Returns
    -------
    Study
        Images in the order of the counts or annotations, classifiers in that of the predictions.

    Raises
    ------
    StudyError
        In one line, naming the table, the rows, images or classifiers, the rule broken and what
        to do.

    Examples
    --------
    >>> import bayesrep
    >>> counts = {"dataset": ["v1", "v2"], "image": ["a", "b"], "selected": [9, 8], "shown": 10}
    >>> right = {"dataset": ["v1", "v2"], "image": ["a", "b"], "resnet18": [True, False]}
    >>> study = bayesrep.read_frames(counts, right, reference="v1", replication="v2")
    >>> study.replication.images.tolist()
    ['b']
    """
    table_of_kind = {
        "counts": counts,
        "annotations": annotations,
        "predictions": predictions,
        "images": images,
    }
    frames = {
        kind: as_polars(table, kind) for kind, table in table_of_kind.items() if table is not None
    }
    study = tables.of_frames(
        frames,
        reference=reference,
        replication=replication,
        candidates=candidates,
        further=further,
        name=name,
    )
    warn_of_people(study.datasets, people)
    return replace(study, provenance=add_people(study.provenance, people))


def as_polars(table: Any, where: str, columns: Collection[str] = KNOWN_COLUMNS) -> pl.DataFrame:
    """Convert another library's table to a polars frame, with a named index as a column."""
    try:
        source: Any = table
        for number, name in enumerate(source.columns if hasattr(source, "iloc") else (), 1):
            if name is None or name != name or not str(name).strip():  # NaN, from a lost heading
                value = list(source[name])[0] if len(source) else None
                column = f"column {number}"
                raise StudyError("column-without-name", where=where, column=column, value=value)
        frame = _frame(table, where)
        schema = None if isinstance(table, pl.LazyFrame) else getattr(table, "schema", None)
        index = parquet.index_names(getattr(schema, "metadata", None) or {})  # Arrow's
        if frame is not None and hasattr(table, "iloc"):
            labels = cast(Any, table).index
            index = [
                str(name or f"__index_level_{level}__") for level, name in enumerate(labels.names)
            ]
            frame = frame.with_columns(
                pl.Series(name, labels.get_level_values(level).tolist(), strict=False)
                for level, name in enumerate(index)
                if name not in frame.columns
            )
    except StudyError:
        raise
    except Exception as error:  # whatever the other library raises
        raise StudyError("table-object-unreadable", where=where, reason=reason(error)) from error
    if frame is None:
        raise StudyError("object-not-a-table", where=where, type_name=type(table).__name__)
    return leave_out_index(parquet.read_decimals(frame), Place(where), columns, index)


def _frame(table: Any, where: str) -> pl.DataFrame | None:
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    if hasattr(table, "to_polars"):  # Hugging Face datasets, Ibis
        return table.to_polars()
    if hasattr(table, "__arrow_c_stream__"):
        try:
            return pl.DataFrame(table)
        except Exception:  # pandas with columns of several types
            if not hasattr(table, "columns"):
                raise
            return _of_columns(table, table.columns)
    if isinstance(table, Mapping):
        columns = cast(Mapping[Any, Any], table)
        rows = align_rows({str(name): values for name, values in columns.items()}, where)
        return _of_columns(rows, map(str, columns))
    is_list = isinstance(table, Sequence) and not isinstance(table, str | bytes)
    if is_list and all(isinstance(row, Mapping) for row in cast(Sequence[Any], table)):
        return pl.DataFrame(table, strict=False, infer_schema_length=None)
    return None


def _of_columns(table: Any, names: Iterable[Any]) -> pl.DataFrame:
    columns = ((str(name), table[name]) for name in names)
    return pl.DataFrame(
        {name: each.tolist() if hasattr(each, "tolist") else each for name, each in columns},
        strict=False,
    )
