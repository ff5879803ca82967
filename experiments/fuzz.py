"""Damaged and forged files for every reader, each read in a process with limits.

Whatever a file holds, a reader may refuse it in one line or accept it. What must not happen: a
traceback or other foreign text, the death of the process, more than 10 s or 2 GB, another process
started, or numbers that differ from the sound file's where the format has a checksum.

    python -m experiments.fuzz --inputs 20000 [--target NAME] [--seed 0] [--jobs 2]
    python -m experiments.fuzz --target NAME --only 123    one input, with all that is known of it

Input number i of a target is the same everywhere (with the same versions of the libraries that
write the sound files). A killed run goes on with the same command.
"""

import argparse
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from bayesrep.report.table_format import columns
from experiments.fuzzing.targets import TARGETS
from experiments.fuzzing.worker import PRINTED
from experiments.results import save

SECONDS = 10.0
START = 120.0
"""A worker may take this long to import what it needs and to make the sound files."""
CHUNK = 1000
KEPT = 3
"""Failures of each kind that are kept, by target."""
OUTCOMES = {
    "refused": "refused in one line",
    "equal": "accepted, the same",
    "warned": "accepted, warned",
    "another": "accepted, another sound file",
    "altered": "ALTERED unnoticed",
    "traceback": "TRACEBACK",
    "crash": "CRASH",
    "hang": "HANG",
    "memory": "MEMORY",
    "subprocess": "SUBPROCESS",
}
BAD = tuple(name for name, title in OUTCOMES.items() if title.split()[0].isupper())
REMARKS = """\
Every input is a sound file changed in one to three places (half of them bytewise, half of them
knowing the format) and read as the commands read it, in a process of its own that may take 10 s and
2 GB more than for the sound file. A refusal is one line. *Another sound file* means that the change
made a file that nothing tells from one that somebody wrote: a digit in a CSV, a pixel, an edited
table. *Altered unnoticed* counts bytes changed by accident in files that hold a checksum (our own
Parquet files and posteriors, checkpoints), accepted with other numbers. See SECURITY.md."""


def inputs_of(total: int, names: Sequence[str]) -> dict[str, int]:
    """How many inputs each target gets of a total."""
    shares = {name: TARGETS[name].share for name in names}
    return {
        name: max(1, round(total * share / sum(shares.values()))) for name, share in shares.items()
    }


def outcomes(name: str, seed: int, numbers: range) -> Iterator[dict[str, Any]]:
    """The outcome of every input, by workers that are restarted after those they die of."""
    start = numbers.start
    while start < numbers.stop:
        with TemporaryDirectory() as folder:
            for facts in _worker(name, seed, range(start, numbers.stop), Path(folder)):
                start = facts["number"] + 1
                yield facts


def _worker(name: str, seed: int, numbers: range, folder: Path) -> Iterator[dict[str, Any]]:
    """The outcomes that one worker tells, the last one told by its death."""
    words = [name, str(seed), str(numbers.start), str(numbers.stop), str(folder)]
    command = [sys.executable, "-m", "experiments.fuzzing.worker", *words]
    environment = os.environ | {"MALLOC_ARENA_MAX": "2", "POLARS_MAX_THREADS": "2"}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    (folder / PRINTED).touch()
    place = Path(__file__).resolve().parents[1]
    environment["PYTHONPATH"] = os.pathsep.join([str(place), environment.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=environment,
        cwd=place,
        start_new_session=True,
    )
    lines = _Lines(process)
    begun: int | None = None
    try:
        while True:
            line = lines.next(START if begun is None else SECONDS)
            facts = json.loads(line) if line else {}
            if "begin" in facts:
                begun = facts["begin"]
            elif "end" in facts:
                yield {"number": facts.pop("end"), **facts}
            elif line is None:
                if begun is None:
                    raise RuntimeError(f"a worker for {name} did not start within {START:g} s")
                yield {"number": begun, "outcome": "hang", "text": f"more than {SECONDS:g} s"}
                return
            elif process.wait() == 0:
                return
            else:
                said = (folder / PRINTED).read_text(encoding="utf-8", errors="replace")[-2000:]
                if begun is None:
                    raise RuntimeError(f"a worker for {name} died before its first input: {said}")
                code = process.returncode
                text = signal.Signals(-code).name if code < 0 else f"exit status {code}"
                yield {"number": begun, "outcome": "crash", "text": f"{said}\n{text}"}
                return
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        lines.close()


class _Lines:
    """Lines of a process, with a limit on the time for each."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self.stream, self.held = process.stdout, b""
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.stream, selectors.EVENT_READ)

    def next(self, seconds: float) -> bytes | None:
        """The next line; empty at the end; None where there is none in time."""
        until = time.monotonic() + seconds
        while b"\n" not in self.held:
            if not self.selector.select(max(0.0, until - time.monotonic())):
                return None
            part = os.read(self.stream.fileno(), 1 << 16)
            if not part:
                return b""
            self.held += part
        line, _, self.held = self.held.partition(b"\n")
        return line

    def close(self) -> None:
        """Close the stream."""
        self.selector.close()
        self.stream.close()


def chunk(name: str, seed: int, numbers: range) -> dict[str, Any]:
    """Counts of outcomes in a range of inputs, the first failures of each kind, and the time."""
    began = time.monotonic()
    counts: Counter[str] = Counter()
    failures: list[dict[str, Any]] = []
    for facts in outcomes(name, seed, numbers):
        counts[facts["outcome"]] += 1
        if facts["outcome"] in BAD and counts[facts["outcome"]] <= KEPT:
            failures.append(facts)
    seconds = time.monotonic() - began
    return {"counts": dict(counts), "failures": failures, "seconds": seconds}


def run(wanted: dict[str, int], seed: int, jobs: int, interim: Path) -> dict[str, Any]:
    """Counts, failures and seconds of each target; chunks done before come from a file."""
    done = _read_interim(interim)
    tasks = [
        (name, range(start, min(start + CHUNK, total)))
        for name, total in wanted.items()
        for start in range(0, total, CHUNK)
    ]
    missing = [task for task in tasks if _key(seed, *task) not in done]
    with interim.open("a", encoding="utf-8") as stream, ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda task: chunk(task[0], seed, task[1]), missing)
        for task, found in zip(missing, results, strict=True):
            done[_key(seed, *task)] = found
            stream.write(json.dumps({"key": _key(seed, *task), **found}) + "\n")
            stream.flush()
            bad = {name: found["counts"][name] for name in BAD if name in found["counts"]}
            print(f"{_key(seed, *task)}: {found['seconds']:.0f} s {bad or ''}", file=sys.stderr)
    return {
        name: _together([done[_key(seed, n, r)] for n, r in tasks if n == name]) for name in wanted
    }


def _key(seed: int, name: str, numbers: range) -> str:
    return f"{name} {seed} {numbers.start} {numbers.stop}"


def _read_interim(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = [json.loads(line) for line in lines if line.endswith("\n")]
    return {found["key"]: found for found in whole}


def _together(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part["counts"])
    failures = [
        {**failure, "text": _last(failure.get("text", ""))}
        for part in parts
        for failure in part["failures"]
    ]
    first = [f for kind in BAD for f in [g for g in failures if g["outcome"] == kind][:KEPT]]
    return {
        "inputs": counts.total(),
        "counts": dict(counts),
        "failures": first,
        "seconds": round(sum(part["seconds"] for part in parts), 1),
    }


def report(found: dict[str, Any], seed: int) -> str:
    """The table by reader, and how each kept failure is repeated."""
    shown = [
        name for name in OUTCOMES if name in BAD or any(name in f["counts"] for f in found.values())
    ]
    rows = [
        [name, f"{facts['inputs']:,}", *(f"{facts['counts'].get(key, 0):,}" for key in shown)]
        for name, facts in found.items()
    ]
    totals = [sum(facts["counts"].get(key, 0) for facts in found.values()) for key in shown]
    rows.append(
        ["all", f"{sum(f['inputs'] for f in found.values()):,}", *(f"{n:,}" for n in totals)]
    )
    text = columns(["reader", "inputs", *(OUTCOMES[key] for key in shown)], rows)
    lines = [
        f"{failure['outcome']}: python -m experiments.fuzz --target {name} --seed {seed} "
        f"--only {failure['number']}\n    "
        + " ".join(failure[key] for key in ("file", "kind", "text") if failure.get(key))
        for name, facts in found.items()
        for failure in facts["failures"]
    ]
    return "\n\n".join([text, *lines])


def _last(text: str) -> str:
    """The last line of a traceback, which names no place on this machine."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:160] if lines else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the inputs, write its part of docs/results/safety.md; status 1 where anything failed."""
    parser = argparse.ArgumentParser(prog="python -m experiments.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--target", choices=TARGETS, action="append", help="all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one input of one target")
    parser.add_argument("--interim", type=Path, help="where chunks that are done are kept")
    parser.add_argument("--name", default="fuzz", help="of the result")
    arguments = parser.parse_args(argv)
    names = arguments.target or list(TARGETS)
    if arguments.only is not None:
        for facts in outcomes(names[0], arguments.seed, range(arguments.only, arguments.only + 1)):
            print(json.dumps(facts, indent=1).replace("\\n", "\n"))
        return 0
    interim = arguments.interim or Path(gettempdir()) / f"bayesrep-{arguments.name}.jsonl"
    wanted = inputs_of(arguments.inputs, names)
    found = run(wanted, arguments.seed, arguments.jobs, interim)
    text = report(found, arguments.seed)
    print(text)
    if not arguments.target:
        command = f"python -m experiments.fuzz --inputs {arguments.inputs} --seed {arguments.seed}"
        command += f" --name {arguments.name}" * (arguments.name != "fuzz")
        save(arguments.name, command, {"readers": found}, text, remarks=REMARKS)
        interim.unlink()
    return int(any(facts["counts"].get(kind) for facts in found.values() for kind in BAD))


if __name__ == "__main__":
    sys.exit(main())
