"""Make the tables of this folder anew, of a simulated study: `python examples/make.py`."""

from pathlib import Path

import polars as pl

import bayesrep

FOLDER = Path(__file__).resolve().parent


def make_tables() -> dict[str, pl.DataFrame]:
    """The tables, by the names of their files: counts of answers, and who is right."""
    study = bayesrep.simulate_study(images=500, annotators=8, classifiers=3, seed=1)
    new_names = {"reference": "v1", "replication": "v2"}
    counts, answers = list[pl.DataFrame](), list[pl.DataFrame]()
    for role, data in study.datasets.items():
        images = [f"{image:0>4}.jpg" for image in data.images]
        keys = {"dataset": [new_names[role]] * len(images), "image": images}
        counts.append(pl.DataFrame({**keys, "selected": data.selected, "shown": data.shown}))
        right = data.correct.astype(int)
        answers.append(pl.DataFrame({**keys, **dict(zip(study.classifiers, right.T, strict=True))}))
    return {"counts.csv": pl.concat(counts), "predictions.csv": pl.concat(answers)}


if __name__ == "__main__":
    for name, table in make_tables().items():
        table.write_csv(FOLDER / name)
