"""The evaluation protocols: cost, memory and agreement with the published pseudo-code.

    python -m benchmarks.protocols [--data DIR --labels real.json]

Matching: one classifier's answers on 50,000 and 10,000 images, both algorithms, 10 runs, beside a
direct transcription of the pseudo-code (every target looks at every source), in one process on one
core; the transcription does one run on every fiftieth target and is multiplied. Then 300
classifiers, in a process of their own for its memory. With ``--data`` (the ``data`` folder of
github.com/modestyachts/ImageNetV2) and ``--labels`` (real.json): multi-label accuracy, all three
intervals and the class bootstrap, 45 classifiers on 50,000 images.
"""

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayesrep.protocols import (
    INTERVALS,
    match,
    multilabel,
    read_label_sets,
    read_predictions,
)
from bayesrep.report.table_format import columns
from bayesrep.sources.imagenetv2 import VALIDATION_SET, read_test_set
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.predictions import Predictions
from benchmarks._requirements import Requirement, requirement_numbers, requirement_text, say
from experiments.matched import one_pair
from experiments.results import save

SIZES, RUNS, MANY, SHARE = (50_000, 10_000), 10, 300, 50


def seconds(work: Callable[[], Any]) -> float:
    """Wall seconds."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def transcription(
    source: list[tuple[int, int, float]],
    target: list[tuple[int, int, float]],
    epsilon: float,
    *,
    by_label: bool,
) -> list[tuple[tuple[int, int, float], tuple[int, int, float]]]:
    """Algorithms 1 and 2 of Anzaku et al. (2022) as they are printed."""
    rest, pairs = list(source), []
    for answer in target:
        _, label, p = answer
        matched = [
            each
            for each in rest
            if (not by_label or each[1] == label) and each[2] - epsilon <= p <= each[2] + epsilon
        ]
        if matched:
            chosen = random.choice(matched)
            rest.remove(chosen)
            pairs.append((chosen, answer))
    return pairs


def transcription_seconds(reference: Predictions, replication: Predictions) -> float:
    """What both algorithms and all runs of one classifier take, from a part of the targets."""
    lists = []
    for data in (reference, replication):
        assert data.confidence is not None
        answers = zip(data.labels, data.first[0], data.confidence[0], strict=True)
        lists.append([(int(y), int(label), float(p)) for y, label, p in answers])
    part = lists[1][::SHARE]
    once = sum(
        seconds(lambda way=way: transcription(lists[0], part, 0.005, by_label=way))
        for way in (True, False)
    )
    return once * SHARE * RUNS


def many(folder: Path) -> dict[str, float]:
    """Read and match all classifiers of a folder; wall seconds and peak memory in GB."""
    took = seconds(
        lambda: match(
            *read_predictions(folder, ranks=1, confidence=True), runs=RUNS, progress=False
        )
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return {"seconds": took, "peak_gb": peak}


def many_apart() -> dict[str, float]:
    """The same in a process that does nothing else."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "study"
        StudyContents(answers=one_pair(1, SIZES, MANY)).write(folder)
        command = [sys.executable, "-m", "benchmarks.protocols", "--many", str(folder)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def multilabel_seconds(data: Path, labels: Path) -> tuple[float, bool]:
    """All of it once for each kind of interval, and whether top-1 equals a direct count."""
    predictions = read_test_set(data, VALIDATION_SET)

    def work() -> None:
        sets = read_label_sets([labels], predictions)
        for kind in INTERVALS:
            multilabel(predictions, sets, interval=kind)

    took = seconds(work)
    return took, _equals_direct_count(data, predictions)


def _equals_direct_count(data: Path, predictions: Predictions) -> bool:
    """Count right first answers in the files, image by image, without our readers."""
    listed = json.loads((data / "datasets" / f"{VALIDATION_SET}.json").read_text())[
        "image_filenames"
    ]
    entries = json.loads((data / "metadata" / "class_info.json").read_text())
    number = {entry["wnid"]: entry["cid"] for entry in entries}
    for place, name in enumerate(predictions.classifiers):
        top5 = np.load(data / "predictions" / VALIDATION_SET / f"{name}.npy")
        pairs = zip(top5[:, 0].tolist(), listed, strict=True)
        if (
            sum(first == number[wnid] for first, (_, wnid) in pairs)
            != predictions.correct[place].sum()
        ):
            return False
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and write its part of docs/results/speed.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.protocols", description=__doc__)
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument("--labels", type=Path, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--many", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if arguments.many:
        print(json.dumps(many(arguments.many)))
        return 0
    pair = one_pair(0, SIZES, 1)
    say("matching one classifier, and by the transcription")
    rounds = []
    for _ in range(arguments.rounds):
        ours = seconds(lambda: match(*pair, runs=RUNS, progress=False))
        theirs = transcription_seconds(*pair)
        rounds.append({"ours": ours, "transcription": theirs, "ratio": theirs / ours})
        say(str(rounds[-1]))
    say(f"{MANY} classifiers")
    all_of_them = many_apart()
    middle = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    rows = [
        ["one classifier", f"{middle['ours']:.2f}"],
        ["one classifier, transcription", f"{middle['transcription']:.0f}"],
        [f"{MANY} classifiers, read and matched", f"{all_of_them['seconds']:.0f}"],
    ]
    required = [
        Requirement("matching one classifier takes", middle["ours"], "at most", 1, " s"),
        Requirement("the transcription takes", middle["ratio"], "at least", 100, " times as long"),
        Requirement(f"{MANY} classifiers take", all_of_them["seconds"], "at most", 300, " s"),
        Requirement("their peak memory is", all_of_them["peak_gb"], "at most", 4, " GB"),
    ]
    numbers: dict[str, Any] = {"rounds": rounds, "many": all_of_them}
    command = "python -m benchmarks.protocols"
    if arguments.data and arguments.labels:
        say("multi-label accuracy")
        took, equal = multilabel_seconds(arguments.data, arguments.labels)
        rows.append(["multi-label, 45 classifiers x 50,000", f"{took:.1f}"])
        required += [
            Requirement("multi-label accuracy of all takes", took, "at most", 20, " s"),
            Requirement("top-1 equals a direct count", float(equal), "at least", 1, ""),
        ]
        numbers |= {"multilabel_seconds": took, "equals_direct_count": equal}
        command += " --data DIR --labels real.json"
    text = columns(["50,000 and 10,000 images, both algorithms, 10 runs", "seconds"], rows)
    print(text)
    numbers["required"] = requirement_numbers(required)
    remarks = (
        f"{requirement_text(required)}\n\nOne core. The transcription's time is that of every "
        f"{SHARE}th target once, times {SHARE * RUNS}. That both draw from the same distribution "
        "is tested on small sets (tests/test_protocols_matching.py)."
    )
    save("benchmark-protocols", command, numbers, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
