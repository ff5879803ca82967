"""The folder of a collection: its grids, and every form in which people can be asked.

    grids.parquet                             what is where; answers are read against it
    labels.parquet                            label, name, description of what is asked about
    label-studio.xml, label-studio.json       labelling configuration and tasks of Label Studio
    mturk.html, mturk.csv                     layout and input of a batch of Mechanical Turk
    page.html                                 a page that needs no service and saves answers as JSON

All names reach HTML escaped. Pictures are shown by <img>, in which an SVG's scripts do not run.
"""

import json
from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.atomic import replaced_folder
from bayesrep.errors import StudyError
from bayesrep.files import parquet

GRIDS, LABELS = "grids.parquet", "labels.parquet"
COLUMNS = ("grid", "place", "dataset", "image", "label", "control", "source")
MOST_ON_A_PAGE = 2_000
"""Grids that the page holds; of more, only the services' forms are written."""


def write_collection(
    path: str | Path, grids: pl.DataFrame, labels: pl.DataFrame | None = None
) -> list[str]:
    """Write a collection, whole or not at all.

    Parameters
    ----------
    path
        The folder, which is replaced.
    grids
        From `plan_grids`.
    labels
        What is said of each label: `label`, and as far as they are known `name`, `description` and
        `link`. By default a label is its own name.

    Returns
    -------
    list of str
        Names of the files.
    """
    told = _told(grids, labels)
    said = {row["label"]: row for row in told.to_dicts()}
    with replaced_folder(Path(path)) as partial:
        grids.write_parquet(partial / GRIDS)
        told.write_parquet(partial / LABELS)
        (partial / "label-studio.xml").write_text(_asset("label-studio.xml"), encoding="utf-8")
        with (partial / "label-studio.json").open("w", encoding="utf-8") as stream:
            _write_list(stream, _label_studio(grids, said))
        (partial / "mturk.html").write_text(_mturk_layout(grids), encoding="utf-8")
        _mturk(grids, said).write_csv(partial / "mturk.csv")
        if grids["grid"].n_unique() <= MOST_ON_A_PAGE:
            (partial / "page.html").write_text(_page(grids, said), encoding="utf-8")
        return sorted(each.name for each in partial.iterdir())


def read_grids(path: str | Path) -> pl.DataFrame:
    """The grids of a collection.

    Raises
    ------
    StudyError
        If there are none.
    """
    file = Path(path) / GRIDS
    table = parquet.read(file, str(file), list(COLUMNS))
    if table.is_empty():
        raise StudyError(f"{file}: holds no grid; write the collection again")
    return table


def _told(grids: pl.DataFrame, labels: pl.DataFrame | None) -> pl.DataFrame:
    """Name, description and link of every label that is asked about."""
    asked = grids.select(pl.col("label").unique().sort())
    columns = ("name", "description", "link")
    if labels is not None:
        if "label" not in labels.columns:
            raise StudyError("descriptions of labels: no column label; they need label, name")
        given = labels.select(
            pl.col("label").cast(pl.String),
            *(pl.col(name).cast(pl.String) for name in columns if name in labels.columns),
        ).unique("label", keep="first", maintain_order=True)
        asked = asked.join(given, on="label", how="left", maintain_order="left")
    missing = [pl.lit(None, pl.String).alias(name) for name in columns if name not in asked.columns]
    asked = asked.with_columns(missing)
    return asked.with_columns(pl.col("name").fill_null(pl.col("label"))).select("label", *columns)


def _asset(name: str) -> str:
    return files("bayesrep.collect").joinpath("assets", name).read_text(encoding="utf-8")


def _each(grids: pl.DataFrame) -> Iterator[tuple[str, str, list[str]]]:
    """Every grid's name, label and pictures, in their places."""
    together = grids.group_by("grid", maintain_order=True).agg(pl.col("label").first(), "source")
    for row in together.iter_rows():
        yield row


def _write_list(stream: Any, items: Iterator[Mapping[str, Any]]) -> None:
    """A JSON list, an item a line, never whole in memory."""
    stream.write("[")
    for number, item in enumerate(items):
        stream.write("\n" if not number else ",\n")
        stream.write(json.dumps(item, ensure_ascii=False))
    stream.write("\n]\n")


def _label_studio(
    grids: pl.DataFrame, said: Mapping[str, Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Tasks: pictures are the choices of a list that comes with the task."""
    for grid, label, sources in _each(grids):
        about = said[label]
        choices = [
            {"value": str(place), "html": f'<img src="{escape(source)}" class="asked" alt="{place}">'}
            for place, source in enumerate(sources, 1)
        ]
        question = f"Select all images that show: {about['name']}"
        data = {"grid": grid, "question": question, "choices": choices}
        yield {"data": data | {"description": about["description"] or ""}}


def _mturk_layout(grids: pl.DataFrame) -> str:
    """The page of a task, with a place for every picture of the largest grid."""
    places = range(1, int(grids["place"].to_numpy().max()) + 1)
    boxes = "\n".join(
        f'    <label><input type="checkbox" name="image{place}" value="on">'
        f'<img src="${{image{place}}}" alt="image {place}"></label>'
        for place in places
    )
    return _asset("mturk.html").replace("<!-- images -->", boxes)


def _mturk(grids: pl.DataFrame, said: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """A row a grid; a smaller grid leaves columns empty.

    Mechanical Turk puts the text into the page as it is, so it is escaped here.
    """
    most = int(grids["place"].to_numpy().max())
    together = grids.group_by("grid", maintain_order=True).agg(
        pl.col("label").first(), pl.col("source")
    )
    told = {
        name: [escape(said[label][name] or "") for label in together["label"]]
        for name in ("name", "description", "link")
    }
    escaped = together["source"].list.eval(_escaped(pl.element()))
    images = {f"image{n + 1}": escaped.list.get(n, null_on_oob=True).fill_null("") for n in range(most)}
    return pl.DataFrame({"grid": together["grid"], **told, **images})


def _escaped(text: pl.Expr) -> pl.Expr:
    """As `html.escape` does."""
    for letter, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#x27;")):
        text = text.str.replace_all(letter, name, literal=True)
    return text


def _page(grids: pl.DataFrame, said: Mapping[str, Mapping[str, Any]]) -> str:
    """The offline page, with all grids in it."""
    tasks = [
        {
            "grid": grid,
            "name": said[label]["name"],
            "description": said[label]["description"] or "",
            "link": said[label]["link"] or "",
            "images": sources,
        }
        for grid, label, sources in _each(grids)
    ]
    held = json.dumps(tasks, ensure_ascii=False).replace("<", "\\u003c")
    return _asset("page.html").replace("/* tasks */ []", held)
