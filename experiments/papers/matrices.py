"""Matrices of what is taken for what, side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from experiments.style import panels


def matrices_figure(
    matrices: Mapping[str, pl.DataFrame], names: Sequence[str], value: str = "rate"
) -> Any:
    """Matrices of label and answer side by side, without their diagonals."""
    figure, axes = panels(len(matrices), rows=2)
    place = {name: number for number, name in enumerate(names)}
    for panel, (title, rows) in zip(axes, matrices.items(), strict=True):
        signed = "difference" in rows.columns
        matrix = np.zeros((len(names), len(names)))
        for row in rows.iter_rows(named=True):
            matrix[place[row["label"]], place[row["answer"]]] = row[
                "difference" if signed else value
            ]
        np.fill_diagonal(matrix, np.nan)
        limit = np.nanmax(np.abs(matrix)) or 1.0
        image = panel.imshow(
            100 * matrix,
            cmap="RdBu_r" if signed else "Blues",
            vmin=-100 * limit if signed else 0,
            vmax=100 * limit,
        )
        panel.grid(visible=False)
        panel.set_title(title, fontsize=10)
        panel.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        panel.set_yticks(range(len(names)), names, fontsize=7)
        figure.colorbar(image, ax=panel, shrink=0.7, label="%")
        panel.label_outer()
    return figure
