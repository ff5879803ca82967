"""The report: how long it takes, how large it is, how soon it answers.

    python -m benchmarks.report

A simulated study of the paper's size (10,000 + 10,000 images, 136 classifiers) with its posterior,
and one of 2,000 classifiers (2,000 + 2,000 images, Laplace). Each report is made by the command in
a process of its own, three times; pages are opened in Chromium.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bayesrep
from bayesrep.posterior import write_posterior
from bayesrep.report.table_format import columns
from benchmarks._requirements import Requirement, requirement_numbers, requirement_text, say
from experiments.results import save

MANY = 2000
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
QUIET += ["--disable-background-networking", "--disable-component-update"]
MOVES = """async (control) => {
    const node = document.getElementById(control), took = [];
    const low = Number(node.min), span = Number(node.max) - low;
    for (let move = 0; move < 20; move++) {
        const begin = performance.now();
        node.value = low + Math.round(span * (0.2 + 0.03 * move));
        node.dispatchEvent(new Event("input"));
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        took.push(performance.now() - begin);
    }
    return took.sort((a, b) => a - b)[10];
}"""


def make(folder: Path, classifiers: int, images: int, method: str) -> None:
    """A study and its posterior on disk."""
    study = bayesrep.simulate_study(seed=0, images=images, classifiers=classifiers)
    draws = {} if classifiers < MANY else {"draws": 125}
    posterior = bayesrep.fit(study, method=method, progress=False, **draws)
    study.write(folder / "study")
    write_posterior(posterior, folder / "posterior.nc")


def report_seconds(folder: Path) -> float:
    """Wall seconds of the command, from the start of its process."""
    command = [sys.executable, "-m", "bayesrep", "report", folder / "study"]
    command += [folder / "posterior.nc", "--out", folder / "report.html", "--force"]
    begin = time.perf_counter()
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def page_times(path: Path) -> dict[str, float]:
    """Seconds until every figure is drawn, and the median answer of each slider in ms."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=QUIET)
        opened = []
        for _ in range(3):
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            begin = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready=true]", timeout=120_000)
            opened.append(time.perf_counter() - begin)
        page.select_option("#method", "naive")
        moves = {
            name: float(page.evaluate(MOVES, name))
            for name in ("annotators", "selected", "alpha", "toy-annotators")
        }
        browser.close()
    return {"interactive": statistics.median(opened), **moves}


def measured(classifiers: int, images: int, method: str) -> dict[str, Any]:
    """All numbers of one size of study."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        say(f"{classifiers} classifiers: a study and its posterior")
        make(folder, classifiers, images, method)
        seconds = [report_seconds(folder) for _ in range(3)]
        say(f"{classifiers} classifiers: report in {seconds} s")
        path = folder / "report.html"
        size = path.stat().st_size / 1e6
        return {"seconds": seconds, "megabytes": size, **page_times(path)}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark and write its part of docs/results/speed.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.parse_args(argv)
    found = {136: measured(136, 10_000, "nuts"), MANY: measured(MANY, 2_000, "laplace")}
    rows = [
        [
            f"{classifiers:,}",
            f"{statistics.median(each['seconds']):.1f}",
            f"{each['megabytes']:.2f}",
            f"{each['interactive']:.2f}",
            *(f"{each[name]:.0f}" for name in ("annotators", "selected", "alpha")),
        ]
        for classifiers, each in found.items()
    ]
    header = ["classifiers", "report (s)", "MB", "interactive (s)", "naive (ms)", "image (ms)"]
    text = columns([*header, "toy (ms)"], rows)
    print(text)
    usual, many = found[136], found[MANY]
    slowest = max(usual[name] for name in ("annotators", "selected", "alpha", "toy-annotators"))
    required = [
        Requirement("a report takes", statistics.median(usual["seconds"]), "at most", 15, " s"),
        Requirement("its page has", usual["megabytes"], "at most", 3, " MB"),
        Requirement("it is interactive after", usual["interactive"], "at most", 2, " s"),
        Requirement("its slowest slider answers after", slowest, "at most", 100, " ms"),
        Requirement(f"with {MANY:,} classifiers it has", many["megabytes"], "at most", 10, " MB"),
    ]
    remarks = (
        f"{requirement_text(required)}\n\nMedians of three; compiled programs are kept from the "
        "first command. Sliders: from a move to the next frame, median of twenty. The scatter of "
        "2,000 classifiers is drawn on a canvas, that of fewer as SVG."
    )
    numbers = {
        "136": usual,
        str(MANY): many,
        "required": requirement_numbers(required),
    }
    save("benchmark-report", "python -m benchmarks.report", numbers, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
