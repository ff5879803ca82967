"""Tasks for a test set of ImageNet's size, and forty million answers read back.

    python -m benchmarks.collect [--images 100000] [--labels 14] [--answers 40000000]

Each is a whole process of `bayesrep collect`. Tasks are grids of 48 images, eight of them controls,
in three rounds; the answers are batch results of Mechanical Turk in nine files, read, checked,
counted by image and label, and written as Parquet. Files are made in a temporary folder, 4 GB.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from bayesrep.collect import read_collection
from bayesrep.report.table_format import columns
from bayesrep.studies.imagenet import synsets
from experiments.results import save

FILES, SIZE, PEOPLE = 9, 48, 3_200


def timed(*words: object) -> tuple[float, float]:
    """Wall seconds and largest resident memory, in GB, of a command in a process of its own."""
    begin = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "bayesrep", *map(str, words)], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise RuntimeError(f"bayesrep {words[0]} {words[1]} failed")
    return time.perf_counter() - begin, usage.ru_maxrss / 2**20


def write_questions(folder: Path, images: int, labels: int) -> None:
    """So many labels of every image, its own first, and ten controls of every class."""
    names = np.array(synsets())
    near = np.concatenate([[0], 7 * np.arange(1, labels)])
    asked = (np.arange(images)[:, None] + near) % len(names)
    pl.DataFrame(
        {
            "dataset": ["v1"] * asked.size,
            "image": np.repeat([f"ILSVRC2012_val_{n:08d}.JPEG" for n in range(images)], labels),
            "label": names[asked.ravel()],
            "own": np.tile(np.arange(labels) == 0, images),
        }
    ).write_parquet(folder / "asked.parquet")
    rows = [(f"control/{name}/{n}.jpg", name) for name in synsets() for n in range(10)]
    pl.DataFrame(rows, ["image", "label"], orient="row").write_parquet(folder / "known.parquet")


def write_batches(folder: Path, answers: int) -> None:
    """Batch results about a collection's tasks: whole assignments, no worker twice at a task."""
    rng = np.random.default_rng(0)
    tasks = read_collection(folder / "tasks").tasks["task"]
    names, least = tasks.unique(maintain_order=True), int(tasks.unique_counts().to_numpy().min())
    size = -(-answers // SIZE)
    task = np.arange(size) % len(names)
    # Rounds through all tasks are done by people of their own.
    rounds = np.arange(size) // len(names)
    crowd = PEOPLE // (int(rounds[-1]) + 1)
    worker = rounds * crowd + rng.integers(crowd, size=size)
    said = np.array(
        [",".join(map(str, np.flatnonzero(rng.random(least) < 0.3) + 1)) for _ in range(5_000)]
    )
    shown = np.array([f"https://example.org/v1/ILSVRC2012_val_{n:08d}.JPEG" for n in range(5_000)])
    (folder / "batches").mkdir()
    for number, rows in enumerate(np.array_split(np.arange(size), FILES)):
        table = {
            "HITId": [f"3H{row:028d}" for row in rows],
            "WorkerId": [f"A{each:012d}" for each in worker[rows]],
            "AssignmentStatus": ["Submitted"] * len(rows),
            "SubmitTime": ["Sat Nov 02 12:44:30 PDT 2019"] * len(rows),
            "WorkTimeInSeconds": rng.integers(20, 200, len(rows)),
            "Reward": ["$0.20"] * len(rows),
            "Input.task": names.gather(task[rows]),
        }
        for place in range(1, SIZE + 1):
            table[f"Input.image{place}"] = shown[rng.integers(len(shown), size=len(rows))]
        table["Answer.selected"] = said[rng.integers(len(said), size=len(rows))]
        pl.DataFrame(table).write_csv(folder / "batches" / f"batch-{number}.csv")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and write its part of docs/results/speed.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.collect", description=__doc__)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=14)
    parser.add_argument("--answers", type=int, default=40_000_000)
    arguments = parser.parse_args(argv)
    with TemporaryDirectory() as place:
        folder = Path(place)
        write_questions(folder, arguments.images, arguments.labels)
        made = ("--controls", folder / "known.parquet", "--set", "answers=9", "--set", "grids=3")
        asked = folder / "asked.parquet"
        written = timed("collect", "tasks", asked, *made, "--out", folder / "tasks")
        tasks = read_collection(folder / "tasks").tasks
        places, number = len(tasks), tasks["task"].n_unique()
        del tasks
        write_batches(folder, arguments.answers)
        read = timed(
            *("collect", "read", folder / "tasks", folder / "batches"),
            *("--out", folder / "answers.parquet", "--counts", folder / "counts.parquet"),
        )
        answers = pl.scan_parquet(folder / "answers.parquet").select(pl.len()).collect().item()
        size = sum(file.stat().st_size for file in (folder / "batches").iterdir()) / 2**30
    numbers = {
        "tasks": number,
        "places": places,
        "answers": answers,
        "batches_gb": size,
        "write": {"seconds": written[0], "gb": written[1]},
        "read": {"seconds": read[0], "gb": read[1]},
    }
    text = columns(
        ["what", "seconds", "GB of memory"],
        [
            [f"{number:,} tasks of {places:,} places written", *(f"{x:.1f}" for x in written)],
            [f"{answers:,} answers read ({size:.1f} GB of CSV)", *(f"{x:.1f}" for x in read)],
        ],
    )
    print(text)
    command = (
        f"python -m benchmarks.collect --images {arguments.images} --labels {arguments.labels} "
        f"--answers {arguments.answers}"
    )
    save("benchmark-collect", command, numbers, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
