"""Data sets of a study as frames of polars."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from bayesrep.studies.annotated import AnnotatedSet


def describe_datasets(datasets: Mapping[str, AnnotatedSet]) -> pl.DataFrame:
    """The table of `bayesrep.Study.describe`."""
    return pl.DataFrame(
        [
            {
                "role": role,
                "dataset": data.name,
                "images": len(data.images),
                "left_out": len(data.left_out),
                "fewest_annotators": int(data.shown.min()),
                "most_annotators": int(data.shown.max()),
                "mean_selection_frequency": float((data.selected / data.shown).mean()),
                "mean_accuracy": float(data.correct.mean()) if data.correct.size else None,
            }
            for role, data in datasets.items()
        ],
        schema_overrides={"mean_accuracy": pl.Float64},
    )


def tabulate_accuracies(
    datasets: Mapping[str, AnnotatedSet], classifiers: Sequence[str]
) -> pl.DataFrame:
    """The table of `bayesrep.Study.accuracies`."""
    measured = {
        f"{role}_accuracy": data.correct.mean(axis=0)
        for role, data in datasets.items()
        if data.correct.shape[1]
    }
    return pl.DataFrame({"classifier": list(classifiers), **measured})


def tabulate_counts(datasets: Iterable[AnnotatedSet]) -> pl.DataFrame:
    """The table of `bayesrep.Study.counts`."""
    return pl.concat(
        pl.DataFrame(
            {
                "dataset": np.full(len(data.images), data.name),
                "image": data.images,
                "selected": data.selected,
                "shown": data.shown,
            }
        )
        for data in datasets
    )
