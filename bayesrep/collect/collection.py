"""The folder of a collection: its tasks, and forms for each way to collect the answers.

Tasks (Tsipras et al. 2020, appendix B) are *contains*, a grid of images and one label, of which all
images that show it are selected; and *classify*, one image and a few labels, of which one for every
object is selected and one is the main object's.

All names reach HTML escaped. Pictures are shown by <img>, in which an SVG's scripts do not run.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, cast, get_args

import polars as pl

from bayesrep.atomic import replaced_folder
from bayesrep.bounds import is_of_kind
from bayesrep.collect.contains_tasks import PLACE_COLUMNS
from bayesrep.errors import StudyError, listing
from bayesrep.files import parquet, strict_json
from bayesrep.files.folders import refuse_foreign
from bayesrep.files.names import normalize_names

TASKS_FILE, LABELS_FILE, FACTS_FILE = "tasks.parquet", "labels.parquet", "collection.json"
FORM_FILES = ("label-studio.xml", "label-studio.json", "mturk.html", "mturk.csv", "page.html")
COLLECTION_FILES = (TASKS_FILE, LABELS_FILE, FACTS_FILE, *FORM_FILES)
"""File names of a collection's folder; a folder with any other file is not replaced."""
MAX_PAGE_TASKS = 2_000
"""Most tasks of the offline page; above it, only the services' forms are written."""
Kind = Literal["contains", "classify"]
_DESCRIPTION_COLUMNS = ("name", "description", "link")
_WEB_PATTERN = r"^(?i:https?://[^\s]+)?$"


@dataclass(frozen=True, eq=False)
class Collection:
    """Tasks and the number of workers to answer each.

    Attributes
    ----------
    kind
        "contains" or "classify".
    tasks
        One row a place that can be selected, tasks one after the other: `task`, `place` (from 1),
        `dataset`, `image`, `label`, `own`, `control`, `source`.
    workers
        Number of workers to answer each task.
    made
        Numbers of the design that made the collection.
    """

    kind: Kind
    tasks: pl.DataFrame
    workers: int
    made: Mapping[str, Any]

    @property
    def rounds(self) -> int:
        """Number of equal parts of its tasks in which no image occurs twice."""
        return int(self.made.get("grids", 1))

    @property
    def fingerprint(self) -> str:
        """Common prefix of its tasks' names."""
        return str(self.tasks["task"][0]).split("-")[0]


def write_collection(
    path: str | Path, collection: Collection, labels: pl.DataFrame | None = None
) -> list[str]:
    """Write a collection, whole or not at all.

    Parameters
    ----------
    path
        The folder, which is replaced.
    collection
        Tasks to write.
    labels
        Descriptions: `label`, and optionally `name`, `description` and `link`, an address of the
        web. By default a label is its own name.

    Returns
    -------
    list of str
        Names of the files.

    Raises
    ------
    StudyError
        If the texts have no column label, or naming labels whose link is something else.
    """
    tasks, kind = collection.tasks, collection.kind
    texts = _describe_labels(tasks, labels)
    by_label = {row["label"]: row for row in texts.to_dicts()}
    facts = {"kind": kind, "workers": collection.workers, "made": dict(collection.made)}
    refuse_foreign(Path(path), COLLECTION_FILES)
    with replaced_folder(Path(path)) as partial:
        (partial / FACTS_FILE).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        parquet.write(tasks, partial / TASKS_FILE)
        parquet.write(texts, partial / LABELS_FILE)
        (partial / "label-studio.xml").write_text(_asset(f"{kind}.xml"), encoding="utf-8")
        with (partial / "label-studio.json").open("w", encoding="utf-8") as stream:
            _write_list(
                stream, (_label_studio(kind, each, by_label) for each in _iterate_tasks(tasks))
            )
        most = int(tasks["place"].to_numpy().max())
        (partial / "mturk.html").write_text(_layout(kind, most), encoding="utf-8")
        # Mechanical Turk puts texts into the page as they are.
        inputs = texts.with_columns(_escape_html(pl.col(_DESCRIPTION_COLUMNS).fill_null("")))
        with (partial / "mturk.csv").open("wb") as stream:
            for number, part in enumerate(_parts(tasks)):
                _mturk(kind, part, inputs, most).write_csv(stream, include_header=not number)
        if tasks["task"].n_unique() <= MAX_PAGE_TASKS:
            (partial / "page.html").write_text(_page(collection, by_label), encoding="utf-8")
        return sorted(each.name for each in partial.iterdir())


def read_collection(path: str | Path) -> Collection:
    """Read the tasks of a collection.

    Raises
    ------
    StudyError
        If the folder holds none, or they are damaged.
    """
    folder = Path(path)
    facts = strict_json.read(folder / FACTS_FILE)
    fields: Mapping[str, Any] = facts if isinstance(facts, dict) else {}
    kind, workers = fields.get("kind"), fields.get("workers")
    if kind not in get_args(Kind) or not is_of_kind(workers, int) or workers < 1:
        raise StudyError("not-a-collection", where=folder / FACTS_FILE)
    tasks = parquet.read(folder / TASKS_FILE, str(folder / TASKS_FILE), PLACE_COLUMNS)
    if tasks.is_empty():
        raise StudyError("collection-without-task", where=folder / TASKS_FILE)
    return Collection(
        cast(Kind, kind), tasks.select(PLACE_COLUMNS), workers, fields.get("made", {})
    )


def _describe_labels(tasks: pl.DataFrame, labels: pl.DataFrame | None) -> pl.DataFrame:
    table = tasks.select(pl.col("label").unique().sort())
    if labels is not None:
        if "label" not in labels.columns:
            raise StudyError("label-descriptions-without-label")
        described = labels.select(
            normalize_names(pl.col("label")),
            *(
                pl.col(name).cast(pl.String)
                for name in _DESCRIPTION_COLUMNS
                if name in labels.columns
            ),
        ).unique("label", keep="first", maintain_order=True)
        table = table.join(described, on="label", how="left", maintain_order="left")
    missing = [
        pl.lit(None, pl.String).alias(name)
        for name in _DESCRIPTION_COLUMNS
        if name not in table.columns
    ]
    table = table.with_columns(missing).with_columns(pl.col("link").str.strip_chars())
    # A link may be clicked on a page where workers are logged in: allow web addresses alone.
    web = pl.col("link").fill_null("").str.contains(_WEB_PATTERN)
    if len(strange := table.filter(~web)):
        raise StudyError("label-link-not-web", labels=listing(strange["label"], "label"))
    return table.with_columns(pl.col("name").fill_null(pl.col("label"))).select(
        "label", *_DESCRIPTION_COLUMNS
    )


def _asset(name: str) -> str:
    return files("bayesrep.collect").joinpath("assets", name).read_text(encoding="utf-8")


def _iterate_tasks(tasks: pl.DataFrame) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield every task's name, and the labels and pictures at its places."""
    for part in _parts(tasks):
        yield from _group_by_task(part).select("task", "label", "source").iter_rows()


def _parts(tasks: pl.DataFrame, places: int = 2**17) -> Iterator[pl.DataFrame]:
    """Yield whole tasks in batches of about so many places."""
    begin = 0
    while begin < len(tasks):
        part = tasks.slice(begin, places)
        if begin + len(part) < len(tasks):
            part = part.head(int((part["task"] != part["task"][-1]).sum()) or len(part))
        yield part
        begin += len(part)


def _group_by_task(tasks: pl.DataFrame) -> pl.DataFrame:
    return tasks.group_by("task", maintain_order=True).agg("label", "source")


def _write_list(stream: Any, items: Iterator[Mapping[str, Any]]) -> None:
    """Write a JSON list, one item a line, never whole in memory."""
    stream.write("[")
    for number, item in enumerate(items):
        stream.write("\n" if not number else ",\n")
        stream.write(json.dumps(item, ensure_ascii=False))
    stream.write("\n]\n")


Descriptions = Mapping[str, Mapping[str, Any]]


def _label_studio(
    kind: Kind, task: tuple[str, list[str], list[str]], texts: Descriptions
) -> Mapping[str, Any]:
    """Build one task for Label Studio, with its choices numbered by their places."""
    name, labels, sources = task
    data: dict[str, Any] = {"task": name}
    if kind == "contains":
        about = texts[labels[0]]
        data["question"] = f"Select all images that show: {about['name']}"
        data["description"] = " ".join(filter(None, (about["description"], about["link"])))
        choices = [
            f'<img src="{escape(source)}" class="asked" alt="{place}">'
            for place, source in enumerate(sources, 1)
        ]
    else:
        data["image"] = sources[0]
        choices = [f"<span>{escape(texts[label]['name'])}</span>" for label in labels]
    data["choices"] = [{"value": str(place), "html": html} for place, html in enumerate(choices, 1)]
    return {"data": data}


def _layout(kind: Kind, most: int) -> str:
    """Build Mechanical Turk's page of a task, with as many places as the largest task has."""
    places = range(1, most + 1)
    if kind == "contains":
        marks = [
            f'    <label><input type="checkbox" value="{place}">'
            f'<img src="${{image{place}}}" alt="image {place}"></label>'
            for place in places
        ]
    else:
        marks = [
            f'    <tr><td><label><input type="checkbox" value="{place}"> ${{name{place}}}'
            "</label></td>"
            f'<td><input type="radio" name="chosen" value="{place}" '
            f'aria-label="main object: ${{name{place}}}"></td>'
            f'<td class="about">${{description{place}}}</td></tr>'
            for place in places
        ]
    return _asset(f"{kind}.html").replace("<!-- places -->", "\n".join(marks))


def _mturk(kind: Kind, tasks: pl.DataFrame, texts: pl.DataFrame, most: int) -> pl.DataFrame:
    """Make one row a task, with its labels' escaped texts; smaller tasks leave blanks."""
    together = _group_by_task(tasks)
    sources = together["source"].list.eval(_escape_html(pl.element()))
    if kind == "contains":
        joined = pl.DataFrame({"label": together["label"].list.first()})
        about = joined.join(texts, on="label", how="left", maintain_order="left").drop("label")
        return pl.DataFrame({"task": together["task"], **_columns("image", sources, most)}).hstack(
            about.get_columns()
        )
    joined = tasks.select("task", "label").join(
        texts, on="label", how="left", maintain_order="left"
    )
    by_task = joined.group_by("task", maintain_order=True).agg("name", "description")
    return pl.DataFrame(
        {
            "task": together["task"],
            "image": sources.list.first(),
            **_columns("name", by_task["name"], most),
            **_columns("description", by_task["description"], most),
        }
    )


def _columns(name: str, lists: pl.Series, most: int) -> dict[str, pl.Series]:
    """Spread a list over columns name1, name2, ...; empty where it is shorter."""
    return {
        f"{name}{n + 1}": lists.list.get(n, null_on_oob=True).fill_null("") for n in range(most)
    }


def _escape_html(text: pl.Expr) -> pl.Expr:
    return text.str.replace_many({letter: escape(letter) for letter in "&<>\"'"})


def _page(collection: Collection, texts: Descriptions) -> str:
    items: list[dict[str, Any]] = []
    for name, labels, sources in _iterate_tasks(collection.tasks):
        if collection.kind == "contains":
            items.append({"task": name, "about": _about(texts[labels[0]]), "images": sources})
        else:
            about = [_about(texts[label]) for label in labels]
            items.append({"task": name, "image": sources[0], "labels": about})
    text = json.dumps(items, ensure_ascii=False).replace("<", "\\u003c")
    page = _asset("page.html").replace("/* rounds */ 1", str(collection.rounds))
    return page.replace("/* tasks */ []", text)


def _about(row: Mapping[str, Any]) -> dict[str, str]:
    return {name: row[name] or "" for name in _DESCRIPTION_COLUMNS}
