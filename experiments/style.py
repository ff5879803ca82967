"""Figures of experiments, drawn by matplotlib without a display; saved whole."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bayesrep.atomic import replaced_file
from bayesrep.report import methods
from bayesrep.report.figure import check_format, save_picture


class Color:
    """Colours of figures for a paper: the methods' own, and ink."""

    INK = "#222222"
    RED, YELLOW, GREEN, PURPLE, BLUE, GREY = (
        look.paper
        for look in (
            *(methods.RAW_LOOK, methods.NAIVE_LOOK, methods.JACKKNIFE_LOOK),
            *(methods.EM_SPLINE, methods.POSTERIOR_LOOK, methods.OTHER_LOOK),
        )
    )


@contextmanager
def default_style() -> Generator[None]:
    """Draw as matplotlib does unasked, whatever a matplotlibrc or the process has set."""
    from matplotlib import style

    with style.context("default"):
        yield


def panels(count: int, *, rows: int = 1) -> tuple[Any, list[Any]]:
    """An empty figure in the house style and its axes, ``count`` of them in so many rows."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = -(-count // rows)
    size = (7.2, 5.0) if count == 1 else (4.6 * columns, 4.6 * rows)
    figure = Figure(figsize=size, dpi=160 if count == 1 else 140, layout="constrained")
    FigureCanvasAgg(figure)
    every = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in every[count:]:
        axes.remove()
    for axes in every[:count]:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)
    return figure, every[:count]


def legend_below(figure: Any, *, columns: int = 6) -> None:
    """One legend for all panels, under them, where it covers no data."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=min(len(handles), columns),
        frameon=False,
        fontsize=9,
    )


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure, a specification or a drawing, whole or not at all, the same bytes again."""
    kind = check_format(path).suffix.lower()[1:]
    if isinstance(figure, Mapping):
        save_picture(figure, path)
        return
    from matplotlib import rc_context

    # Text that can be searched and edited.
    settings: Any = {"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "bayesrep"}
    date = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with default_style(), rc_context(settings), replaced_file(path) as partial:
        figure.savefig(partial, format=kind, metadata=date.get(kind))
