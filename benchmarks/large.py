"""Time and memory of commands against size: answers of workers, and studies of many classifiers.

    python -m benchmarks.large [--answers N,...] [--studies CLASSIFIERSxIMAGES,...]

Answers are of 2,000 workers, twenty about an image, as two CSV files; studies are simulated. Every
command is a process of its own, one after the other, with programs that were compiled before it at
the first size alone. Memory is the largest of the process.
"""

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bayesrep.report.table_format import MISSING_TEXT, columns
from benchmarks._requirements import say
from experiments.results import save

NAME = "benchmark-large"
ANSWERS, STUDIES = "100000,1000000,10000000", "200x5000,2000x10000,2000x50000"
AN_IMAGE, WORKERS, CLASSIFIERS = 20, 2_000, 5
ROLES = ("reference", "replication")


def measure(*words: str | Path) -> tuple[float, float]:
    """Seconds and largest memory (GB) of a command; whoever asked hears of one that fails."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "bayesrep", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: a finding
        raise SystemExit(f"{NAME}: {' '.join(map(str, words))} ended with {process.returncode}")
    return time.perf_counter() - begin, used.ru_maxrss / 1024**2


def write_answers(folder: Path, total: int) -> None:
    """What 2,000 workers answered about images of two data sets, and who is right on these."""
    rng = np.random.default_rng(0)
    images = total // 2 // AN_IMAGE
    right: list[pl.DataFrame] = []
    for role in ROLES:
        names = np.array([f"{role}_{number}.jpg" for number in range(images)])
        s = rng.beta(4, 1.5, images)
        first = rng.integers(WORKERS, size=(images, 1))
        worker = (first + np.arange(AN_IMAGE) * (WORKERS // AN_IMAGE)) % WORKERS
        table = {
            "image": np.repeat(names, AN_IMAGE),
            "worker": worker.ravel(),
            "answer": np.where(rng.random(images * AN_IMAGE) < np.repeat(s, AN_IMAGE), "yes", "no"),
        }
        pl.DataFrame(table).write_csv(folder / f"{role}.csv")
        correct = {f"model{number}": rng.random(images) < s for number in range(CLASSIFIERS)}
        right.append(pl.DataFrame({"dataset": [role] * images, "image": names, **correct}))
    pl.concat(right).write_parquet(folder / "correct.parquet")


def steps_of_answers(folder: Path) -> Iterator[tuple[str, Sequence[str | Path]]]:
    """Commands from two files of answers to a study and what its crowd adds."""
    answers, study = folder / "answers.parquet", folder / "study"
    files = [f"{role}={folder / role}.csv" for role in ROLES]
    named = [word for role in ROLES for word in (f"--{role}", role)]
    yield "answers import", ["answers", "import", "table", *files, "--out", answers]
    yield "answers count", ["answers", "count", answers, "--out", folder / "counts.parquet"]
    tables = [answers, folder / "correct.parquet"]
    yield "import tables", ["import", "tables", *tables, *named, "--out", study]
    yield "answers crowd", ["answers", "crowd", study]
    yield "check", ["check", study]


def steps_of_study(folder: Path, sizes: Sequence[int]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Commands on a study of many classifiers, to the report."""
    study, (classifiers, images) = folder / "study", sizes
    many = ["--classifiers", classifiers, "--images", images]
    yield "simulate", ["simulate", study, *many]
    yield "check", ["check", study]
    yield "estimate", ["estimate", study, "--quiet"]
    posterior, quiet = folder / "posterior.nc", "--quiet"
    yield "fit", ["fit", study, "--out", posterior, quiet]
    yield "summarize", ["summarize", study, posterior]
    yield "report", ["report", study, posterior, "--out", folder / "report.html", quiet]


def measure_steps(size: str, steps: Iterator[tuple[str, Sequence[Any]]]) -> list[dict[str, Any]]:
    """A row for each command at a size."""
    rows: list[dict[str, Any]] = []
    for name, words in steps:
        say(f"{size}: {name}")
        seconds, gigabytes = measure(*words)
        rows.append({"size": size, "command": name, "seconds": seconds, "gigabytes": gigabytes})
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A line a command, and two columns a size."""
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    held = {(row["command"], row["size"]): row for row in rows}
    header = ["", *(part for size in sizes for part in (f"s, {size}", "GB"))]
    lines: list[list[str]] = []
    for command in dict.fromkeys(row["command"] for row in rows):
        line = [command]
        for size in sizes:
            row = held.get((command, size))
            line += (
                [MISSING_TEXT, MISSING_TEXT]
                if row is None
                else [f"{row['seconds']:.1f}", f"{row['gigabytes']:.1f}"]
            )
        lines.append(line)
    return columns(header, lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and write docs/results/benchmark-large.{md,json}."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__)
    parser.add_argument("--answers", default=ANSWERS)
    parser.add_argument("--studies", default=STUDIES)
    arguments = parser.parse_args(argv)
    parts: list[list[dict[str, Any]]] = [[], []]
    for total in map(int, arguments.answers.split(",")):
        with tempfile.TemporaryDirectory() as place:
            # In a process of its own: what this one had at most a child would be said to have had.
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                pool.submit(write_answers, Path(place), total).result()
            parts[0] += measure_steps(f"{total:,} answers", steps_of_answers(Path(place)))
    for size in arguments.studies.split(","):
        with tempfile.TemporaryDirectory() as place:
            of_study = steps_of_study(Path(place), [int(part) for part in size.split("x")])
            parts[1] += measure_steps(size.replace("x", " x "), of_study)
    text = "\n\n".join(map(table, parts))
    print(text)
    remarks = (
        f"Answers: of {WORKERS:,} workers, {AN_IMAGE} about an image, {CLASSIFIERS} classifiers. "
        "Studies: classifiers x images of each data set, simulated, 36 annotators an image. "
        "Seconds of the whole process, and its largest memory."
    )
    command = (
        f"python -m benchmarks.large --answers {arguments.answers} --studies {arguments.studies}"
    )
    save(NAME, command, {"answers": parts[0], "studies": parts[1]}, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
