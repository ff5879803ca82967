"""The report and its figures as objects that a notebook shows and `save` writes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from bayesrep.atomic import replaced_file
from bayesrep.choices import FEW_REPLICATES
from bayesrep.errors import OptionError
from bayesrep.posterior.groups import Posterior
from bayesrep.report.figure import (
    FILE_SUFFIXES,
    check_format,
    has_pictures,
    picture_bytes,
    save_picture,
)
from bayesrep.studies.representation import brief
from bayesrep.studies.study import Study, need_study

FRAME_HEIGHT = 800
"""Height of the report in a notebook, in pixels."""
VEGA_LITE_MIME = "application/vnd.vegalite.v5+json"
"""MIME type that Jupyter draws with Vega by itself."""


@dataclass(frozen=True, eq=False)
class NotebookReport:
    """The page of all results; a notebook shows it in a frame of its own.

    Attributes
    ----------
    html
        The page, which needs no network.
    missing
        What it cannot show, and why.
    """

    html: str
    missing: Mapping[str, str]

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the page, whole or not at all.

        Parameters
        ----------
        path
            A name that ends in .html.
        force
            Replace a file that is there.

        Raises
        ------
        OptionError
            If the name ends in something else, or exists and `force` is not given.
        """
        file = _new(path, (".html", ".htm"), force=force)
        with replaced_file(file) as partial:
            partial.write_text(self.html, encoding="utf-8")
        return file

    def __repr__(self) -> str:
        return brief(self, f"{len(self.html) / 1e6:.1f} MB of HTML; .save(path) writes it")

    def _repr_html_(self) -> str:
        """The page in a frame, whose scripts reach nothing of the notebook."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="bayesrep report" width="100%" '
            f'height="{FRAME_HEIGHT}" style="border: 0" sandbox="allow-scripts '
            'allow-downloads"></iframe>'
        )


def report(
    study: Study,
    posterior: Posterior | None = None,
    out: str | Path | None = None,
    *,
    bootstrap: int = FEW_REPLICATES,
    seed: int = 0,
) -> NotebookReport:
    """All results as one page: shown in a notebook, or saved.

    Parameters
    ----------
    study
        The study.
    posterior
        From `bayesrep.fit` or `bayesrep.read_posterior`; None leaves out what takes one.
    out
        Save the page there too; a file that exists is not replaced (`NotebookReport.save` can).
    bootstrap
        Replicates for the intervals of the point estimates; 0 leaves these out.
    seed
        Seed of the bootstrap.

    Raises
    ------
    OptionError
        If `out` exists or is not a name of a page.
    PosteriorError
        If the posterior belongs to another study.
    StudyError
        If the study is none.
    """
    from bayesrep.report.page import page
    from bayesrep.report.sections import gather

    if out is not None:
        _new(out, (".html", ".htm"), force=False)
    content = gather(need_study(study), posterior, bootstrap=bootstrap, seed=seed)
    notebook = NotebookReport(page(content), content.missing_sections)
    if out is not None:
        notebook.save(out)
    return notebook


@dataclass(frozen=True, eq=False)
class Plot:
    """A figure: interactive in a notebook, and a drawing for a paper.

    Attributes
    ----------
    name
        What it is called.
    spec
        The figure as Vega-Lite, with its data. Altair takes it, to be changed at will:
        `altair.Chart.from_dict(plot.spec)`.
    """

    name: str
    spec: Mapping[str, Any]

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the figure, whole or not at all.

        Parameters
        ----------
        path
            A name that ends in .pdf, .svg or .png (the drawing) or .json (Vega-Lite).
        force
            Replace a file that is there.

        Raises
        ------
        OptionError
            If the name ends in something else, or exists and `force` is not given.
        """
        if Path(path).suffix.lower() != ".json":
            check_format(Path(path))
        file = _new(path, (*FILE_SUFFIXES, ".json"), force=force)
        if file.suffix.lower() != ".json":
            save_picture(self.spec, file)
            return file
        with replaced_file(file) as partial:
            partial.write_text(json.dumps(self.spec, allow_nan=False), encoding="utf-8")
        return file

    def __repr__(self) -> str:
        return brief(self, f"{self.name}; .save(path) writes it, .spec is Vega-Lite")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Vega-Lite for Jupyter, and a picture for whatever cannot draw it."""
        picture = {"image/png": picture_bytes(self.spec, "png")} if has_pictures() else {}
        return {VEGA_LITE_MIME: dict(self.spec), **picture, "text/plain": repr(self)}


def _new(path: str | Path, endings: tuple[str, ...], *, force: bool) -> Path:
    file = Path(path)
    if file.suffix.lower() not in endings:
        raise OptionError("saved-ending-unknown", file=file, endings=", ".join(endings))
    if file.exists() and not force:
        raise OptionError("saved-file-exists", file=file)
    if not file.parent.is_dir():
        raise OptionError("saved-folder-missing", file=file, parent=file.parent)
    return file
