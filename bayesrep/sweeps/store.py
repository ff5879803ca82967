"""The folder of a sweep: what was asked for, a file for every finished run, and the tables.

sweep.json          the version, and of every run its place in the grid, by key
runs/KEY.json       what a finished run came to
runs/KEY.nc         its posterior, where the grid asks for it
.claims             locks of the processes that make runs (`bayesrep.sweeps.claims`)
runs.parquet        a row a run
estimates.parquet   a row a run, quantity and classifier
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl

from bayesrep.atomic import find_foreign, replaced_file
from bayesrep.bounds import is_of_kind
from bayesrep.errors import OptionError, StudyError
from bayesrep.files import strict_json
from bayesrep.posterior.files import write_posterior
from bayesrep.store import keep, read_kept, write_json
from bayesrep.sweeps.claims import FOLDER_CLAIM, claim, open_claims
from bayesrep.sweeps.coverage import SCORE_COLUMNS
from bayesrep.sweeps.execute import Result
from bayesrep.sweeps.run_spec import SweepRun
from bayesrep.version import __version__

SWEEP_RECORD, RUNS_FOLDER, RUN_KEY_GLOB = "sweep.json", "runs", "[0-9a-f]" * 16
RUNS_TABLE, ESTIMATES_TABLE = "runs.parquet", "estimates.parquet"
RESULT_TYPES: Mapping[str, type] = {
    **{"fingerprint": str, "images": int, "replication_images": int, "classifiers": int},
    **{"fitted_by": str, "fitted_components": int, "device_kind": str, "rhat_max": float},
    **{"ess_min": float, "divergences": int, "pareto_k": float, "converged": bool},
    **dict.fromkeys(("verdict", "advice", "tried", "error"), str),
    "versions": dict,
}
"""The columns of a run's result that are the same whenever it is made, and what they hold."""
OTHER_COLUMNS = {"run", "seconds", *RESULT_TYPES, *SCORE_COLUMNS}  # names that no axis has
RUN_STAGES = ("estimating", "fitting", "summary")
"""Stages that are a run's own; further ones are parts of "fitting"."""
ESTIMATE_TYPES = {
    "run": pl.String,
    "quantity": pl.String,
    "classifier": pl.String,
    **dict.fromkeys(("estimate", "sd", "lower", "upper", "truth"), pl.Float64),
}


def begin(out: Path, file: Path, runs: Sequence[SweepRun]) -> None:
    """Make the folder, or go on in it where every run that it knows is asked for again."""
    axes_by_key = json.loads(json.dumps({run.key: run.axes() for run in runs}))
    # What a process leaves that was stopped before it had written the record is ours. The record is
    # read last: another command may write it, and runs, while this one looks at the folder.
    strange = out.exists() and (
        not out.is_dir() or find_foreign(out, [RUNS_FOLDER]) or find_foreign(out / RUNS_FOLDER, [])
    )
    if strange and _record(out) is None:
        raise OptionError("out-not-earlier-run", out=out)
    out.mkdir(parents=True, exist_ok=True)
    with open_claims(out) as claims:
        claim(claims, FOLDER_CLAIM, wait=True)
        _refuse_others(out, file, axes_by_key)
        write_json(out / SWEEP_RECORD, {"version": __version__, "runs": axes_by_key})
        (out / RUNS_FOLDER).mkdir(exist_ok=True)
        for run_left in out.glob(".*.partial"):
            run_left.unlink(missing_ok=True)  # of a process that was killed
        for run_left in (out / RUNS_FOLDER).glob(f".{RUN_KEY_GLOB}.*.partial"):
            if claim(claims, run_left.name[1:].partition(".")[0], wait=False):
                run_left.unlink(missing_ok=True)


def _refuse_others(out: Path, file: Path, requested: Mapping[str, Mapping[str, Any]]) -> None:
    if (old := _record(out)) is not None:
        if old["version"] != __version__:
            raise OptionError(
                "sweep-of-another-version", out=out, version=old["version"], current=__version__
            )
        others = [axes for key, axes in old["runs"].items() if key not in requested]
        if others and others[0] in requested.values():
            raise OptionError("sweep-of-changed-study", out=out, study=others[0]["study"])
        if others:
            raise OptionError(
                "sweep-of-another-grid",
                out=out,
                file=file,
                others=len(others),
                held=len(old["runs"]),
                run=describe_place(others[0]),
            )


def describe_place(axes: Mapping[str, Any]) -> str:
    """A place in the grid in a few words."""
    return ", ".join(f"{name}={value}" for name, value in axes.items() if value is not None)


def keep_result(out: Path, run: SweepRun, result: Result) -> None:
    """Keep a result, after the posterior that it may have: who has the one has both."""
    if "posterior" in result:
        write_posterior(result.pop("posterior"), out / RUNS_FOLDER / f"{run.key}.nc", force=True)
    keep(out / RUNS_FOLDER, run.key, result)


def find_finished(out: Path, runs: Iterable[SweepRun]) -> dict[str, Result]:
    """The results of finished runs; without a posterior that is kept, a fit is to be made again."""
    wanted = {run.key: run.keeps_posterior for run in runs}
    return {
        key: result
        for key, result in read_results(out, wanted).items()
        if not wanted[key]
        or result["error"] is not None
        or (out / RUNS_FOLDER / f"{key}.nc").exists()
    }


def read_results(out: Path, keys: Iterable[str]) -> dict[str, Result]:
    """Read the results of the finished runs; a run with a damaged file is to be made again."""
    results = read_kept(out / RUNS_FOLDER, keys)
    return {key: result for key, result in results.items() if _is_whole(result)}


def _is_whole(result: Any) -> bool:
    """Return whether a file holds a whole result; that of a failed run has no estimates."""
    if not isinstance(result, dict) or not {"seconds", "error"} <= result.keys():
        return False
    columns, stages = result.get("estimates", {}), result["seconds"]
    if not isinstance(columns, dict) or not isinstance(stages, dict) or "study" not in stages:
        return False
    complete = not columns or columns.keys() == ESTIMATE_TYPES.keys() - {"run"}
    return (
        complete
        and all(is_of_kind(each, float) for each in stages.values())
        and all(_is_missing_or(result.get(name), kind) for name, kind in RESULT_TYPES.items())
        and all(isinstance(column, list) for column in columns.values())
        and len({len(column) for column in columns.values()}) <= 1
        and all(
            _is_missing_or(value, str if ESTIMATE_TYPES[name] == pl.String else float)
            for name, column in columns.items()
            for value in column
        )
    )


def _is_missing_or(value: Any, kind: type) -> bool:
    """Return whether a cell is empty or of a kind, as a count below 2^31."""
    return value is None or is_of_kind(value, kind) and (kind is not int or 0 <= value < 2**31)


def _is_place(axes: Any) -> bool:
    """Return whether axes are those that `SweepRun.axes` writes."""
    if not isinstance(axes, dict) or not OTHER_COLUMNS.isdisjoint(axes):
        return False
    return all(isinstance(axes.get(name), str) for name in ("study", "method")) and all(
        all(is_of_kind(number, float) for number in value)
        if isinstance(value, list)
        else any(_is_missing_or(value, kind) for kind in (str, float, bool))
        for value in axes.values()
    )


def read_tables(out: Path) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Both tables of the finished runs, and how many the grid has; refused where none is."""
    record = _record(out)
    if record is None:
        raise OptionError("sweep-folder-missing", folder=out, file=SWEEP_RECORD)
    axes_by_key: dict[str, Any] = record["runs"]
    results = read_results(out, axes_by_key)
    if not results:
        raise OptionError("sweep-without-finished-runs", folder=out)
    return (*tables(axes_by_key, results), len(axes_by_key))


def _record(out: Path) -> dict[str, Any] | None:
    """Read the record of a folder; None if it is not a sweep's."""
    with suppress(StudyError, KeyError, TypeError, AttributeError):
        record = strict_json.read(out / SWEEP_RECORD)
        runs = record["runs"]
        if isinstance(record["version"], str) and all(
            re.fullmatch(RUN_KEY_GLOB, key) and _is_place(axes) for key, axes in runs.items()
        ):
            return record
    return None


def tables(
    axes_by_key: Mapping[str, Mapping[str, Any]], results: Mapping[str, Result]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables of runs and of estimates, in the grid's order."""
    keys = [key for key in axes_by_key if key in results]
    axes = list(dict.fromkeys(name for key in keys for name in axes_by_key[key]))
    stages = list(dict.fromkeys(name for key in keys for name in results[key]["seconds"]))
    rows: dict[str, list[Any]] = {"run": keys}
    rows |= {name: _unify_column([axes_by_key[key].get(name) for key in keys]) for name in axes}
    rows |= {name: [results[key].get(name) for key in keys] for name in RESULT_TYPES}
    rows["versions"] = [None if each is None else json.dumps(each) for each in rows["versions"]]
    seconds = [results[key]["seconds"] for key in keys]
    # Compilation, most of it in the first run of a size, is a column of its own.
    spent = [max(working_seconds(each) - each.get("compiling", 0.0), 0.0) for each in seconds]
    sizes = [results[key].get("ess_min") for key in keys]
    rows["seconds"] = spent
    rows["ess_per_second"] = [
        size / time if size is not None and time else None
        for size, time in zip(sizes, spent, strict=True)
    ]
    rows |= {f"seconds_{n.replace(' ', '_')}": [s.get(n) for s in seconds] for n in stages}
    of_runs = pl.DataFrame(rows, strict=False, infer_schema_length=None)
    numbers = [
        "seconds",
        "ess_per_second",
        *(n for n, kind in RESULT_TYPES.items() if kind is float),
    ]
    of_runs = of_runs.with_columns(
        pl.col(*numbers).cast(pl.Float64), pl.col("error").cast(pl.String)
    )
    columns: dict[str, list[Any]] = {name: [] for name in ESTIMATE_TYPES}
    for key in keys:
        estimates = results[key].get("estimates", {})
        for name, values in estimates.items():
            columns[name] += values
        columns["run"] += [key] * len(estimates.get("quantity", ()))
    return of_runs, pl.DataFrame(columns, schema=ESTIMATE_TYPES)


def _unify_column(values: list[Any]) -> list[Any]:
    """A column of one kind: text, where some are words, numbers or lists and others are not."""
    kinds = {float if is_of_kind(each, float) else type(each) for each in values} - {type(None)}
    return [each if each is None or len(kinds) < 2 else str(each) for each in values]


def working_seconds(stages: Mapping[str, float]) -> float:
    """Seconds of a run, but for making its study."""
    return round(sum(stages.get(name, 0.0) for name in RUN_STAGES), 3)


def write_tables(out: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Write the tables of what is finished."""
    with open_claims(out) as claims:
        claim(claims, FOLDER_CLAIM, wait=True)
        runs, estimates, _ = read_tables(out)
        for table, name in ((runs, RUNS_TABLE), (estimates, ESTIMATES_TABLE)):
            with replaced_file(out / name) as partial:
                table.write_parquet(partial)
    return runs, estimates
