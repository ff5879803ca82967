"""`bayesrep sweep`: every run of a grid of studies, methods and options, and what they come to."""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesrep import process
from bayesrep.commands.output import DONE_STATUS, emit, finding, new_file, progress_line, say
from bayesrep.errors import OptionError

if TYPE_CHECKING:
    from bayesrep.sweeps.execute import Result
    from bayesrep.sweeps.run_spec import SweepRun
    from bayesrep.sweeps.scheduler import Forecast

EXAMPLE = "grid.toml --out sweep"

REPORT_SECONDS = 1.0  # seconds between lines of progress, at least


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("grid", type=Path, nargs="?", metavar="grid.toml", help="grid of runs, in TOML")
    option("--out", type=Path, metavar="PATH", help="folder of the runs; with --figure, its file")
    option(
        "--jobs",
        type=int,
        metavar="N",
        help="processes at a time, each with its share of the cores and a GPU of its own (default: "
        "one for each GPU, else 1)",
    )
    option("--ray", metavar="ADDRESS", help="Ray cluster to use instead: local, auto or HOST:PORT")
    option("--table", type=Path, metavar="FOLDER", help="sweep whose results so far to print")
    option("--figure", type=Path, metavar="FOLDER", help="sweep to draw (FOLDER/figure.png)")


def run(arguments: Namespace) -> int:
    modes = [each for each in ("grid", "table", "figure") if getattr(arguments, each) is not None]
    if arguments.seed is not None:
        raise OptionError("sweep-seeds-in-grid")
    if len(modes) != 1 or (modes == ["grid"] and arguments.out is None):
        raise OptionError("sweep-takes-grid-or-folder")
    return {"grid": _make_runs, "table": _print_table, "figure": _draw_figure}[modes[0]](arguments)


def describe_kept(arguments: Namespace) -> str:
    if arguments.grid is None:
        return "nothing was written"
    jobs = () if arguments.jobs is None else ("--jobs", arguments.jobs)
    ray = () if arguments.ray is None else ("--ray", arguments.ray)
    again = process.command("sweep", arguments.grid, "--out", arguments.out, *jobs, *ray)
    return f"this makes what is missing: {again}"


def _make_runs(arguments: Namespace) -> int:
    if arguments.jobs is not None and arguments.jobs < 1:
        raise OptionError("jobs-below-one", jobs=arguments.jobs)
    from concurrent.futures.process import BrokenProcessPool

    from bayesrep.sweeps import scheduler, store
    from bayesrep.sweeps.grid import read_grid

    out = arguments.out
    # A stopped sweep goes on: only runs without a result are made.
    runs, done = scheduler.begin_grid(read_grid(arguments.grid), out)
    missing = [each for each in runs if each.key not in done]

    def watch(jobs: int) -> scheduler.OnResult:
        return _Watch(runs, done, jobs, show=not arguments.quiet).take_run

    n_made = 0
    if missing and arguments.ray is not None:
        n_made = scheduler.make_on_cluster(missing, out, cluster=arguments.ray, on_result=watch)
    elif missing:
        try:
            n_made = scheduler.make_here(missing, out, arguments.jobs, watch)
        except BrokenProcessPool:
            return finding(f"a process was ended from outside; {describe_kept(arguments)}")
    else:
        say(f"{out} is up to date; nothing was made again")
    of_runs, estimates = store.write_tables(out)
    from bayesrep.sweeps.coverage import count_runs, remarks_text, scores, scores_facts, scores_text

    table = scores(of_runs, estimates)
    failed = int(of_runs["error"].count())
    text = [
        scores_text(table),
        "",
        *remarks_text(of_runs),
        f"{count_runs(len(runs))}, {n_made} made now: {out}/{store.RUNS_TABLE} and "
        f"{out}/{store.ESTIMATES_TABLE}",
    ]
    facts: dict[str, Any] = {
        "out": str(out),
        "runs": len(runs),
        "made": n_made,
        "failed": failed,
        "rows": scores_facts(table),
    }
    emit(arguments, "\n".join(text), facts)
    return finding(f"{failed} of {count_runs(len(runs))} failed") if failed else DONE_STATUS


def _print_table(arguments: Namespace) -> int:
    from bayesrep.sweeps.coverage import count_runs, remarks_text, scores, scores_facts, scores_text
    from bayesrep.sweeps.store import read_tables

    runs, estimates, axes_by_key = read_tables(arguments.table)
    table = scores(runs, estimates)
    more = [*remarks_text(runs)]
    if len(runs) < axes_by_key:
        more.append(f"{len(runs)} of {count_runs(axes_by_key)} finished")
    text = "\n".join([scores_text(table), *([""] if more else []), *more])
    facts = {"runs": axes_by_key, "finished": len(runs), "rows": scores_facts(table)}
    return emit(arguments, text, facts)


def _draw_figure(arguments: Namespace) -> int:
    from bayesrep.report.figure import check_format, save_picture
    from bayesrep.sweeps.figures import sweep_figure
    from bayesrep.sweeps.store import read_tables

    out = arguments.out or arguments.figure / "figure.png"
    new_file(check_format(out), arguments)
    runs, estimates, _ = read_tables(arguments.figure)
    save_picture(sweep_figure(runs, estimates), out)
    return emit(arguments, f"Written to {out}", {"out": str(out)})


class _Watch:
    """Progress on standard error, with the expected end."""

    def __init__(
        self, runs: "Sequence[SweepRun]", done: "Mapping[str, Result]", jobs: int, *, show: bool
    ) -> None:
        from bayesrep.sweeps.scheduler import finished_run

        self.left = {each.key: each for each in runs if each.key not in done}
        self.done = [finished_run(each, done[each.key]) for each in runs if each.key in done]
        self.total, self.jobs, self.show, self.said = len(runs), jobs, show, 0.0
        values: dict[str, set[str]] = {}
        for name, value in (pair for each in runs for pair in each.axes().items()):
            values.setdefault(name, set()).add(str(value))
        # Axes with one value everywhere would repeat in every line.
        self.named = [name for name, some in values.items() if name == "method" or len(some) > 1]
        if show and self.done:
            progress_line(f"[{len(self.done)}/{self.total}] done before")

    def take_run(self, run: "SweepRun", result: "Result") -> None:
        from bayesrep.sweeps.scheduler import finished_run, forecast
        from bayesrep.sweeps.store import describe_place

        self.left.pop(run.key)
        self.done.append(finished_run(run, result))
        now = time.monotonic()
        if not self.show or (self.left and now - self.said < REPORT_SECONDS):
            return
        self.said = now
        took = f"{self.done[-1].seconds:.1f} s"
        ends = _ends(forecast(self.done, [*self.left.values()], self.jobs)) if self.left else ""
        failed = f"; failed: {result['error']}" if result["error"] else ""
        axes = run.axes()
        place = describe_place({name: axes.get(name) for name in self.named})
        progress_line(f"[{len(self.done)}/{self.total}] {place}: {took}{failed}{ends}")


def _ends(remaining: "Forecast") -> str:
    end = time.strftime("%H:%M", time.localtime(time.time() + remaining.seconds))
    untimed = ", ".join(f"{count} of {method}" for method, count in remaining.untimed.items())
    if untimed:
        return f"; {_span(remaining.seconds)} left and {untimed}, of which none is timed yet"
    return f"; {_span(remaining.seconds)} left, until {end}"


def _span(seconds: float) -> str:
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}" if unit == "h" else f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
