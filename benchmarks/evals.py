"""Logs of evaluations: how fast samples of lm-evaluation-harness are read, and in what memory.

    python -m benchmarks.evals [--gigabytes 2]

Files of 256 MB with lines of 1 to 16 kB are read on one core: by bayesrep, and line by line with
Python's json, which is what most scripts do. Then two files that make the gigabytes asked for are
imported by `bayesrep import evals`, as a whole process. Files are made in a temporary folder.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bayesrep.report.table_format import columns
from experiments.results import save

SIZES = (1_000, 2_000, 4_000, 8_000, 16_000)
BYTES = 2**28
TIME = "2026-01-21T03-44-18.458309"
_READ = """
import sys, time
from pathlib import Path
from bayesrep.sources.evals.records import LogChoices
from bayesrep.sources.evals.detect_format import read_logs
read_logs(["m=" + sys.argv[2]], LogChoices())  # imports, and polars' first call
begin, wall = time.process_time(), time.perf_counter()
log = read_logs(["m=" + sys.argv[1]], LogChoices())[0]
print(len(log.records), time.process_time() - begin, time.perf_counter() - wall)
"""
_JSON = """
import json, sys, time
begin, wall, rows = time.process_time(), time.perf_counter(), []
with open(sys.argv[1], "rb") as file:
    for line in file:
        row = json.loads(line)
        rows.append((row["doc_id"], row["filter"], row["doc_hash"], row["exact_match"]))
print(len(rows), time.process_time() - begin, time.perf_counter() - wall)
"""
_ONE_CORE = {**os.environ, "POLARS_MAX_THREADS": "1"}


def line(number: int, size: int, rng: random.Random) -> str:
    """A sample of about so many bytes: text with quotes, line ends and some other letters."""
    words = ["the", "graph", 'of "y"', "x^2\n", "\\frac{2}{3}", "naïve", "=", "and", "12"]
    row: dict[str, Any] = {
        "doc_id": number,
        "doc": {"idx": number, "problem": "How many? " * 8, "answer": "3"},
        "target": "3",
        "arguments": {"gen_args_0": {"arg_0": "", "arg_1": {"until": ["\n\n"], "temperature": 0}}},
        "resps": [[""]],
        "filtered_resps": [""],
        "filter": "none",
        "metrics": ["exact_match"],
        "doc_hash": f"{rng.getrandbits(256):064x}",
        "prompt_hash": f"{rng.getrandbits(256):064x}",
        "target_hash": f"{rng.getrandbits(256):064x}",
        "exact_match": float(rng.random() < 0.6),
    }
    left = max(size - len(json.dumps(row)), 0) // 3
    text = " ".join(rng.choices(words, k=left // 5 + 1))
    while len(text) < left:
        text += text
    row["arguments"]["gen_args_0"]["arg_0"] = text[:left]
    row["resps"] = [[text[:left]]]
    row["filtered_resps"] = [text[:left]]
    return json.dumps(row, ensure_ascii=False)


def write(path: Path, size: int, total: int) -> int:
    """Fill a file with lines of some size; how many."""
    rng = random.Random(0)
    some = [line(0, size, rng) for _ in range(200)]
    number, written = 0, 0
    with open(path, "w", encoding="utf-8") as file:
        while written < total:
            made = some[number % len(some)].replace('"doc_id": 0', f'"doc_id": {number}', 1)
            written += file.write(made + "\n")
            number += 1
    return number


def one_core(program: str, *files: Path) -> tuple[int, float]:
    """Records, and the lesser of two processor times."""
    best = float("inf")
    records = 0
    for _ in range(2):
        command = [sys.executable, "-c", program, *map(str, files)]
        said = subprocess.run(command, env=_ONE_CORE, capture_output=True, text=True, check=True)
        number, cpu, _ = said.stdout.split()
        records, best = int(number), min(best, float(cpu))
    return records, best


def imported(folder: Path, total: int) -> dict[str, float]:
    """A whole `bayesrep import evals` of two files: seconds and the largest resident memory."""
    place = folder / "org__model"
    place.mkdir()
    files = [place / f"samples_{task}_{TIME}.jsonl" for task in ("old", "new")]
    records = sum(write(file, 4_000, total // 2) for file in files)
    size = sum(file.stat().st_size for file in files)
    words = ["import", "evals", str(place), "--reference", "old", "--replication", "new"]
    begin = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "bayesrep", *words, "--quiet", "--out", str(folder / "out")],
        stdout=subprocess.DEVNULL,
        env=_ONE_CORE,
    )
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise RuntimeError("bayesrep import failed")
    return {
        "records": records,
        "gb": size / 2**30,
        "seconds": time.perf_counter() - begin,
        "processor_seconds": usage.ru_utime + usage.ru_stime,
        "memory_gb": usage.ru_maxrss / 2**20,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and write docs/results/benchmark-evals.{md,json}."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evals", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    arguments = parser.parse_args(argv)
    rows: list[dict[str, float]] = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        small = folder / "samples_small.jsonl"
        write(small, 1_000, 2**20)
        for size in SIZES:
            file = folder / f"samples_{size}.jsonl"
            write(file, size, BYTES)
            megabytes = file.stat().st_size / 1e6
            records, ours = one_core(_READ, file, small)
            _, plain = one_core(_JSON, file)
            rows.append(
                {
                    "bytes": file.stat().st_size / records,
                    "records": records,
                    "records_per_second": records / ours,
                    "megabytes_per_second": megabytes / ours,
                    "json_records_per_second": records / plain,
                }
            )
            file.unlink()
        whole = imported(folder, int(arguments.gigabytes * 2**30))
    text = columns(
        ["bytes a line", "records", "records/s", "MB/s", "records/s, json"],
        [
            [
                *(f"{row['bytes']:,.0f}", f"{row['records']:,.0f}"),
                f"{row['records_per_second']:,.0f}",
                f"{row['megabytes_per_second']:,.0f}",
                f"{row['json_records_per_second']:,.0f}",
            ]
            for row in rows
        ],
    )
    remarks = f"""One core reads items, scores, filters and hashes of samples of
lm-evaluation-harness, checks that every line is JSON, and that no key of an item or a score is
given twice. Beside it, the records that Python's json parses and does not check. Processor time,
the lesser of two runs in processes of their own.

`bayesrep import evals` of {whole["gb"]:.1f} GB in two files ({whole["records"]:,.0f} records of
4 kB), a whole process on one core, takes {whole["processor_seconds"]:.1f} s of processor
time ({whole["seconds"]:.1f} s where others used the machine too) and at most
{whole["memory_gb"]:.2f} GB of memory."""
    print(f"{text}\n\n{remarks}")
    command = f"python -m benchmarks.evals --gigabytes {arguments.gigabytes:g}"
    save("benchmark-evals", command, {"lines": rows, "import": whole}, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
