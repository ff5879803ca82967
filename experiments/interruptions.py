"""What an interrupt does to every command that takes time: exit status, message, what is left.

Each command is run once to its end, then again and again, stopped by SIGINT, SIGTERM or SIGKILL
after moments that are spread evenly over that time, or drawn at random. What may be left is
nothing, or what the message names: the checkpoint of a fit, the rows that predict has saved. Then
the same command is run to its end, which has to be as if nothing had happened: the same files are
there, and tables and draws are those of a command that nobody interrupted.
"""

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import bayesrep
from bayesrep.report.table_format import columns
from experiments.results import save

FIRST_SECONDS = 0.4  # the interpreter itself is started, and the command line imported
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
NETWORK = "mobilenetv3_small_050"
PLANNED = ("--prior", "imagenet-v2", "--width", "20", "--cost-answer", "0.01", "--cost-image", "0")
PLANNED += ("--most-images", "200", "--answers", "5", "--studies", "3", "--jobs", "1")
LONGEST = "laplace images=4000 "
"""What a plan begins with, whatever is asked: minutes, which are kept here from one whole plan."""
TABLES = (".csv", ".parquet", ".jsonl")


@dataclass(frozen=True)
class Case:
    """A command and the place to which it writes; ``{}`` in the arguments stands for that place.

    Once it has been run undisturbed also its seconds, and the contents of what it makes. What is
    `begun` already, a file, is put there first.
    """

    name: str
    arguments: tuple[str, ...]
    begun: Path | None = None
    seconds: float = 0.0
    made: Mapping[str, str] = field(default_factory=dict)


def prepare(root: Path, images: int, only: Sequence[str] = ()) -> list[Case]:
    """Make the files that the commands read."""
    study = bayesrep.simulate_study(seed=0, images=images, classifiers=6)
    study.write(root / "study")
    tables(study, root)
    many_answers().write_csv(root / "workers.csv")
    posterior = root / "posterior.nc"
    short = ("--chains", "2", "--set", "warmup=300", "--set", "draws=500")
    if not only or "report" in only:
        command(("fit", str(root / "study"), "--out", str(posterior), *short), root).wait()
    if not only or "predict" in only:
        pictures(root)
    if not only or "plan" in only:
        begin_plan(root)
    counts, answers, folder = (str(root / name) for name in ("counts.csv", "answers.csv", "study"))
    images_of = ("--images", f"v2={root / 'images'}", "--weights", str(root / "weights"))
    return [
        Case("import", ("import", "tables", counts, answers, "--out", "{}")),
        Case("fit", ("fit", folder, "--out", "{}", *short)),
        Case("fit, kept", ("fit", folder, "--out", "{}.nc", *short, "--checkpoint", "{}")),
        Case("run", ("run", counts, answers, "--out", "{}")),
        Case("count", ("answers", "count", str(root / "workers.csv"), "--out", "{}.csv")),
        Case("plan", ("collect", "plan", *PLANNED, "--keep", "{}"), root / "plan.jsonl"),
        Case("report", ("report", folder, str(posterior), "--out", "{}.html")),
        Case(
            "predict",
            ("predict", *images_of, "--study", "{}", "--classifiers", NETWORK),
        ),
    ]


def begin_plan(root: Path) -> None:
    """Keep of a plan what comes before its own studies."""
    kept = root / "plan.jsonl"
    command(("collect", "plan", *PLANNED, "--keep", str(kept)), root).wait()
    lines = kept.read_text(encoding="utf-8").splitlines(keepends=True)
    last = max(place for place, line in enumerate(lines) if LONGEST in line)
    kept.write_text("".join(lines[: last + 1]), encoding="utf-8")


def tables(study: Any, root: Path) -> None:
    """Write a study as the two tables of `bayesrep import tables`."""
    import polars as pl

    counts, answers = [], []
    for role, data in study.datasets.items():
        shown = {"dataset": role, "image": data.images}
        counts.append(pl.DataFrame({**shown, "selected": data.selected, "shown": data.shown}))
        for name, correct in zip(study.classifiers, data.correct.T, strict=True):
            answers.append(pl.DataFrame({**shown, "classifier": name, "correct": correct}))
    pl.concat(counts).write_csv(root / "counts.csv")
    pl.concat(answers).write_csv(root / "answers.csv")


def many_answers() -> Any:
    """Answers of workers, enough for a few seconds of counting."""
    import polars as pl

    rng = np.random.default_rng(0)
    size = 1_000_000
    return pl.DataFrame(
        {
            "dataset": np.where(rng.random(size) < 0.5, "v1", "v2"),
            "image": rng.integers(0, 50_000, size).astype(str),
            "worker": np.arange(size).astype(str),
            "selected": rng.integers(0, 2, size),
        }
    )


def pictures(root: Path) -> None:
    """Make images in class folders, and weights of an untrained network."""
    import torch
    from PIL import Image
    from safetensors.torch import save_file

    from bayesrep.studies.imagenet import synsets
    from bayesrep.vision.torch_loading import load_timm

    rng = np.random.default_rng(0)
    for number in range(200):
        folder = root / "images" / synsets()[number % 4]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (375, 500, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.jpg")
    torch.manual_seed(0)
    (root / "weights").mkdir()
    weights = load_timm().create_model(NETWORK).state_dict()
    save_file(weights, root / "weights" / f"{NETWORK}.safetensors")


def command(arguments: Sequence[str], root: Path) -> subprocess.Popen[bytes]:
    """Start ``bayesrep`` with a cache of compiled programs that is this experiment's own."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(root / "cache"), "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(
        [sys.executable, "-m", "bayesrep", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
    )


def at(case: Case, place: Path) -> tuple[str, ...]:
    """The arguments of a case that writes to a place, with what is begun there."""
    if case.begun is not None and not place.exists():
        shutil.copy(case.begun, place)
    return tuple(part.replace("{}", str(place)) for part in case.arguments)


def contents(root: Path) -> dict[str, str]:
    """Digests of the tables and draws below a folder; of other files, which hold times, the names.

    Hidden files are left out: what a killed process leaves of its own, and what `predict` knows.
    """
    named = {path.relative_to(root): path for path in sorted(root.rglob("*")) if path.is_file()}
    return {
        str(name): digest(path)
        for name, path in named.items()
        if not any(part.startswith(".") for part in name.parts)
    }


def digest(path: Path) -> str:
    """Of a table its bytes, of draws every array."""
    if path.suffix in TABLES:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    if path.suffix != ".nc":
        return ""
    import h5py

    found = hashlib.sha256()

    def take(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            values = np.asarray(item[()])
            texts = values.dtype.hasobject
            found.update(name.encode())
            found.update(repr(values.tolist()).encode() if texts else values.tobytes())

    with h5py.File(path) as file:
        file.visititems(take)
    return found.hexdigest()


def whole(case: Case, root: Path) -> Case:
    """The case with the time that it takes when nobody interrupts it, and what it makes."""
    begun = time.monotonic()
    place = Path(tempfile.mkdtemp(dir=root)) / "out"
    process = command(at(case, place), root)
    _, said = process.communicate()
    assert process.returncode == 0, (case.name, process.returncode, said[-500:])
    return replace(case, seconds=time.monotonic() - begun, made=contents(place.parent))


def interrupt(case: Case, root: Path, number: signal.Signals, delay: float) -> dict[str, Any]:
    """Stop a case after a delay; what the process returned, said and left."""
    with tempfile.TemporaryDirectory(dir=root) as name:
        place = Path(name) / "out"
        process = command(at(case, place), root)
        time.sleep(delay)
        ended = process.poll() is not None
        process.send_signal(number)
        sent = time.monotonic()
        _, said = process.communicate()
        seconds = time.monotonic() - sent
        left = sorted(str(path.relative_to(name)) for path in Path(name).rglob("*"))
        again, differs, told = None, [], ""
        if not ended:
            following = command(at(case, place), root)
            _, said_again = following.communicate()
            again = following.returncode
            said += said_again
            told = said_again.decode(errors="replace").strip().rpartition("\n")[2]
            made = contents(Path(name))
            differs = sorted(
                file
                for file in made.keys() | case.made.keys()
                if made.get(file) != case.made.get(file)
            )
        lines = said.decode(errors="replace").replace("\r", "\n").splitlines()
        return {
            "signal": number.name,
            "delay": delay,
            "ended_before": ended,
            "status": process.returncode,
            "again": again,
            "seconds": seconds,
            "traceback": any("Traceback" in line for line in lines),
            "message": next((line for line in lines if "interrupted; " in line), "").replace(
                name, "."
            ),
            "half": [path for path in left if path.endswith((".partial", ".part", ".previous"))],
            "differs": differs,
            "again_said": told.replace(name, "."),
            "left": len(left),
        }


def run(
    images: int, times: int, seed: int | None = None, only: Sequence[str] = ()
) -> dict[str, Any]:
    """Interrupt every command, or some, so many times by each signal; by chance with a seed."""
    random = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        cases = prepare(root, images, only)
        for case in [case for case in cases if not only or case.name in only]:
            timed = whole(whole(case, root), root) if case.name != "import" else whole(case, root)
            delays = np.linspace(FIRST_SECONDS, 0.97 * timed.seconds, times)
            if seed is not None:
                delays = random.uniform(0.0, timed.seconds, times)
            found[case.name] = {
                "seconds": timed.seconds,
                "runs": [
                    interrupt(timed, root, number, float(delay))
                    for delay in tqdm(delays, desc=case.name, file=sys.stderr)
                    for number in SIGNALS
                ],
            }
    return found


def text_of(found: dict[str, Any]) -> str:
    """The printed table."""
    rows = []
    for name, part in found.items():
        for number in SIGNALS:
            runs = [run for run in part["runs"] if run["signal"] == number.name]
            statuses = Counter(
                f"{run['status']}{' (was done)' if run['ended_before'] else ''}" for run in runs
            )
            seconds = [run["seconds"] for run in runs]
            again = Counter(str(run["again"]) for run in runs if run["again"] is not None)
            rows.append(
                [
                    name,
                    f"{part['seconds']:.1f}",
                    number.name,
                    ", ".join(f"{status} x {count}" for status, count in statuses.items()),
                    str(sum(run["traceback"] for run in runs)),
                    str(sum(bool(run["half"]) for run in runs)),
                    ", ".join(f"{status} x {count}" for status, count in again.items()),
                    f"{sum(not r['differs'] for r in runs if r['again'] is not None)}"
                    f" of {again.total()}",
                    f"{np.median(seconds):.1f} / {max(seconds):.1f}",
                ]
            )
    header = ["command", "seconds", "signal", "status", "tracebacks", "half files"]
    header += ["the same again", "same result", "to its end"]
    return columns(header, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment and write docs/results/interruptions.{md,json}."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=500, help="in each data set of the study")
    parser.add_argument("--times", type=int, default=3, help="interruptions by each signal")
    parser.add_argument("--seed", type=int, help="draw the moments by chance")
    parser.add_argument("--only", action="append", default=[], help="a command; nothing is written")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let background jobs ignore it
    found = run(options.images, options.times, options.seed, options.only)
    text = text_of(found)
    print(text)
    if options.only:
        print(json.dumps([odd for part in found.values() for odd in part["runs"]], indent=1))
        return 0
    moments = f"Moments from {FIRST_SECONDS} s after the start to the end"
    if options.seed is not None:
        moments = "Moments by chance between the start and the end"
    remarks = (
        "130 is what an interrupt should end with, 143 what SIGTERM should, -9 is SIGKILL, after "
        "which a half file of a hidden name may be left. `the same again`: how the same command "
        "ends that is run next (2: it was done, and what exists is not replaced). `same result`: "
        "then the same files are there as of a command that nobody interrupted, with the same "
        f"tables and draws to the last byte. {moments} of the whole run, which took the seconds of "
        "the second column; `to its end`: median and largest time in seconds from the signal to "
        "the end of the process, which is long where a program is being compiled: XLA cannot be "
        "stopped in the middle of one."
    )
    command_line = f"python -m experiments.interruptions --images {options.images}"
    command_line += f" --times {options.times}"
    command_line += "" if options.seed is None else f" --seed {options.seed}"
    save("interruptions", command_line, {"commands": found}, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
