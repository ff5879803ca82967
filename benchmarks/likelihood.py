"""What one evaluation of the joint model costs beside other ways to write it.

    python -m benchmarks.likelihood [--large 1000000] [--out FOLDER]
    python -m benchmarks.likelihood --quick      prints, writes nothing

(a) One log joint density in four forms (ours; cells with ``gammaln``; the textbook on images in
    NumPyro; SciPy on cells and on images), with and without gradient and compilation, in 64 and
    32 bits, on every kind of device JAX finds, with the largest differences from ours;
(b) its gradient in a compiled loop, as the sampler makes it, over the numbers of classifiers,
    annotators and chains;
(c) whole fits, as by default, of studies of 10^4 and of ``--large`` images per data set in one
    process, after a first fit that compiles, alternating, median of three. The large study is
    summed from shards.

Every time is a median of repeats, every ratio one of times of the same run. ``--quick`` runs small
sizes in two minutes, without (b), to try the benchmark: the published page stays as it is. How a
GPU compares with the CPU here, without other ways to write the density, is what ``bayesrep bench``
measures.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import bayesrep
from bayesrep import Study, SufficientStatistics
from bayesrep.inference.density import Density, build_density
from bayesrep.inference.device import find_devices
from bayesrep.inference.problem import pose, programs
from bayesrep.models.options import JointOptions
from bayesrep.report.table_format import MISSING_TEXT, columns
from bayesrep.studies.statistics import Cells
from benchmarks import _textbook_models as models
from benchmarks._requirements import (
    Requirement,
    requirement_numbers,
    requirement_text,
    say,
)
from experiments.results import save

LOOP = 300
LIMITS = {64: 1e-4, 32: 1e-2}
"""Of a gradient's largest difference from ours, by bits: what is further is another function's."""
OPTIONS = JointOptions()


@dataclass(frozen=True)
class Sizes:
    """How large a study, and the sweeps."""

    images: int = 10_000
    classifiers: int = 136
    sweep_classifiers: tuple[int, ...] = (1, 10, 100, 136, 1_000, 10_000)
    sweep_annotators: tuple[int, ...] = (10, 36, 100, 200)
    sweep_chains: tuple[int, ...] = (1, 4, 16, 64, 256, 1_024)
    textbook_classifiers: int = 1_000  # more of them, or of chains, and it does not finish
    textbook_chains: int = 4
    bits: tuple[int, ...] = (64, 32)
    large: int = 1_000_000
    turns: int = 4
    python: bool = True  # what is not compiled takes a minute to be called first


QUICK = Sizes(1_000, 5, (), (), (), 5, 1, (64,), 20_000, 2, python=False)


class Form(NamedTuple):
    """One way to write the density: what JAX differentiates and its data."""

    name: str
    density: Density
    data: Any
    constant: float  # its log density less ours


def devices() -> dict[str, str]:
    """The kinds of device that are timed, by platform."""
    return {name: device.device_kind for name, device in find_devices().items()}


def median_seconds(call: Callable[[], Any], repeats: int) -> float:
    """Median wall time of a call."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def settled_seconds(call: Callable[[], Any], budget: float = 1.5) -> float:
    """Median wall time of as many calls, 3 to 9, as the budget of seconds allows."""
    call()  # compiles
    begin = time.perf_counter()
    call()
    once = time.perf_counter() - begin
    return median_seconds(call, int(np.clip(budget / once, 3, 9)))


def unweighted_statistics(study: Study) -> SufficientStatistics:
    """A study's statistics for models whose classifiers do not know that they share images."""
    whole = SufficientStatistics.from_study(study)
    cells = {role: replace(each, squares=None) for role, each in whole.cells.items()}
    return SufficientStatistics(whole.classifiers, cells)


def tiled(study: Study, classifiers: int) -> tuple[SufficientStatistics, Study]:
    """The study with its classifiers repeated up to a number: costs depend on shapes alone."""
    given = len(study.classifiers)
    index = np.arange(classifiers) % given
    names = tuple(f"{study.classifiers[i]}-{turn // given}" for turn, i in enumerate(index))
    whole = SufficientStatistics.from_study(study)
    cells = {
        role: Cells(c.selected, c.shown, c.images, c.correct[:, index])
        for role, c in whole.cells.items()
    }
    if classifiers > given * 10:
        return SufficientStatistics(names, cells), study
    parts = {
        role: {"selected": data.selected, "shown": data.shown, "correct": data.correct[:, index]}
        for role, data in (("reference", study.reference), ("replication", study.replication))
    }
    wide = Study.from_arrays(
        reference=parts["reference"], replication=parts["replication"], classifiers=names
    )
    return SufficientStatistics(names, cells), wide


def forms(statistics_: SufficientStatistics, study: Study | None) -> list[Form]:
    """Ours, cells with gammaln and, given the study, the textbook; 64-bit data."""
    with jax.enable_x64(new_val=True):
        problem = pose(statistics_, model="joint", options={})
        data = problem.data()
        made = [Form("ours", programs(problem, data).density, data, 0.0)]
        cells = jax.tree.map(jnp.asarray, models.on_cells(statistics_))
        made.append(_form("cells with gammaln", models.cells_with_gammaln, cells, 0.0))
        if study is not None:
            rows = jax.tree.map(jnp.asarray, models.on_images(study))
            constant = models.log_choices(rows)
            made.append(_form("textbook on images", models.per_image, rows, constant))
    return made


def _form(name: str, model: Callable[..., None], data: Any, constant: float) -> Form:
    return Form(name, build_density(lambda d: model(d, OPTIONS), data), data, constant)


def point(ours: Form) -> dict[str, Any]:
    """Values of all sites near the prior means."""
    rng = np.random.default_rng(0)
    with jax.enable_x64(new_val=True):
        zero = {
            "shared": jnp.zeros(ours.density.shared),
            "units": jnp.zeros((ours.density.units, ours.density.per_unit)),
        }
        shapes = {name: value.shape for name, value in ours.density.to_sites(zero).items()}
    means = {
        "first_location": OPTIONS.first_location[0],
        "log_step": OPTIONS.log_step[0],
        "log_concentration": OPTIONS.log_concentration[0],
        "population_curve": np.array(
            [OPTIONS.level[0], OPTIONS.slope[0], *np.zeros(OPTIONS.size - 2)]
        ),
        "classifier_curve": np.array([OPTIONS.level[0], OPTIONS.slope[0], 0, 0, 0]),
    }
    return {
        name: means.get(name, 0.0) + 0.1 * rng.standard_normal(shape)
        for name, shape in shapes.items()
    }


def cast(tree: Any, bits: int) -> Any:
    """A tree with its floats in 32 or 64 bits."""

    def one(leaf: Any) -> Any:
        array = np.asarray(leaf)
        return array.astype(f"float{bits}") if np.issubdtype(array.dtype, np.floating) else array

    return jax.tree.map(one, tree)


class At:
    """A form at a position on a device, ready to be timed; use it inside ``with at.settings()``."""

    def __init__(self, form: Form, sites: dict[str, Any], device: Any, bits: int) -> None:
        self.form, self.bits, self.device = form, bits, device
        with jax.enable_x64(new_val=True):
            position = form.density.to_position(sites)
        with self.settings():
            self.position, self.data = jax.device_put(
                (cast(position, bits), cast(form.data, bits)), device
            )
        self.potential = form.density.potential
        self.both = jax.value_and_grad(form.density.potential)
        self.compiled = jax.jit(self.both)

    def settings(self) -> Any:
        """Precision of everything inside."""
        return jax.enable_x64(new_val=self.bits == 64)

    def seconds(self, function: Callable[..., Any]) -> float:
        """Of one call of a function of position and data."""
        with self.settings(), jax.default_device(self.device):
            return settled_seconds(
                lambda: jax.block_until_ready(function(self.position, self.data))
            )

    def in_python(self) -> dict[str, float]:
        """Seconds of the density and its gradient operation by operation."""
        with jax.disable_jit():
            return {
                "density_python": self.seconds(self.potential),
                "gradient_python": self.seconds(self.both),
            }

    def in_loop(self, chains: int | None = None) -> float:
        """Seconds of one gradient in a compiled loop as the sampler makes it, for each chain."""
        many = self.both if chains is None else jax.vmap(self.both, in_axes=(0, None))
        position = self.position
        if chains is not None:
            position = jax.tree.map(
                lambda x: jnp.broadcast_to(x, (chains, *x.shape)), self.position
            )
        with self.settings(), jax.default_device(self.device):
            single = self.compiled if chains is None else jax.jit(many)
            jax.block_until_ready(single(position, self.data))
            once = median_seconds(lambda: jax.block_until_ready(single(position, self.data)), 3)
            # 300 gradients where they are quick; the slow need fewer for as good a clock.
            count = int(np.clip(1.0 / once, 3, LOOP))

            @jax.jit
            def loop(position: Any, data: Any) -> Any:
                def step(_: Any, at: Any) -> Any:
                    gradient = many(at, data)[1]
                    return jax.tree.map(lambda x, g: x - 1e-12 * g, at, gradient)

                return jax.lax.fori_loop(0, count, step, position)

            run = settled_seconds(lambda: jax.block_until_ready(loop(position, self.data)))
        return run / count / (chains or 1)


def difference(
    ours: Form,
    form: Form,
    sites: dict[str, Any],
    device: Any,
    bits: int,
    options: dict[str, Any] | None = None,
) -> list[float]:
    """Largest absolute difference of the log density, and relative one of the gradient, from ours.

    From ours in 64 bits on the CPU, both compiled, with the compiler's options; the gradient's
    relative to its largest entry.
    """

    def both(form: Form, bits: int, device: Any) -> tuple[float, Any]:
        def potential(position: Any, data: Any) -> Any:
            values = ours.density.to_sites(position)
            return form.density.potential(form.density.to_position(values), data)

        with jax.enable_x64(new_val=True):
            start = ours.density.to_position(sites)
        with jax.enable_x64(new_val=bits == 64), jax.default_device(device):
            arguments = jax.device_put((cast(start, bits), cast(form.data, bits)), device)
            compiled = jax.jit(jax.value_and_grad(potential), compiler_options=options)
            value, gradient = compiled(*arguments)
        flat = [np.asarray(leaf, dtype=float).ravel() for leaf in jax.tree.leaves(gradient)]
        return -float(value), np.concatenate(flat)

    wanted, slope = both(ours, 64, jax.devices("cpu")[0])
    value, gradient = both(form, bits, device)
    return [
        abs(value - form.constant - wanted),
        float(np.abs(gradient - slope).max() / np.abs(slope).max()),
    ]


def is_refused(
    ours: Form, form: Form, sites: dict[str, Any], device: Any, bits: int, apart: Sequence[float]
) -> bool:
    """Whether a form's gradient is another one, so that its time says nothing; then it is told."""
    if apart[1] <= LIMITS[bits]:
        return False
    plain = difference(ours, form, sites, device, bits, {"xla_backend_optimization_level": 0})
    say(
        f"{form.name} is not timed: its compiled gradient differs from ours by {apart[1]:.1e} of "
        f"its largest entry (at most {LIMITS[bits]:.0e}); compiled at level 0 by {plain[1]:.1e}"
    )
    return True


COLUMNS = ("density", "gradient", "loop", "density_python", "gradient_python")


def compare(sizes: Sizes) -> list[dict[str, Any]]:
    """All forms at the main size, on all devices and in both precisions."""
    study = bayesrep.simulate_study(images=sizes.images, classifiers=sizes.classifiers)
    made = forms(unweighted_statistics(study), study)
    sites = point(made[0])
    rows: list[dict[str, Any]] = []
    for platform, device in find_devices().items():
        for bits in sizes.bits:
            for form in made:
                say(f"{form.name}, {platform}, {bits} bits")
                apart = difference(made[0], form, sites, device, bits)
                row = {"form": form.name, "device": platform, "bits": bits, "difference": apart}
                if not is_refused(made[0], form, sites, device, bits, apart):
                    at = At(form, sites, device, bits)
                    row["density"] = at.seconds(jax.jit(at.potential))
                    row |= {"gradient": at.seconds(at.compiled), "loop": at.in_loop()}
                    row |= at.in_python() if sizes.python else {}
                rows.append(row)
    return rows + scipy_rows(made[0], sites, study)


def scipy_rows(ours: Form, sites: dict[str, Any], study: Study) -> list[dict[str, Any]]:
    """SciPy's log density on cells and on images; it has no gradient."""
    at = At(ours, sites, jax.devices("cpu")[0], 64)
    with at.settings():
        wanted = -float(jax.jit(at.potential)(at.position, at.data))
    rows: list[dict[str, Any]] = []
    cells = models.on_cells(SufficientStatistics.from_study(study))
    for name, data in (("SciPy on cells", cells), ("SciPy on images", models.on_images(study))):
        say(name)

        def density(data: models.Data = data) -> float:
            return models.scipy_log_density(sites, data, OPTIONS)

        error = abs(density() - models.log_choices(data) - wanted)
        rows.append(
            {
                "form": name,
                "device": "cpu",
                "bits": 64,
                "density_python": settled_seconds(density),
                "difference": [error, None],
            }
        )
    return rows


def milliseconds(value: float | None) -> str:
    """A time for a table."""
    return MISSING_TEXT if value is None else f"{1e3 * value:.3g}"


def _ratio(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> float | None:
    """Times as slow as ours on the same device in the same precision."""
    if "loop" not in row:
        return None
    return row["loop"] / next(
        r["loop"]
        for r in rows
        if (r["form"], r["device"], r["bits"]) == ("ours", row["device"], row["bits"])
    )


def comparison_table(rows: Sequence[dict[str, Any]]) -> str:
    """The main table."""
    lines = []
    for row in rows:
        ratio, (value, gradient) = _ratio(row, rows), row["difference"]
        lines.append(
            [
                row["form"],
                row["device"],
                str(row["bits"]),
                *(milliseconds(row.get(name)) for name in COLUMNS),
                MISSING_TEXT if ratio is None else f"{ratio:,.1f}",
                f"{value:.1e}",
                MISSING_TEXT if gradient is None else f"{gradient:.1e}",
            ]
        )
    header = ["log joint density, ms", "device", "bits", "density", "+ gradient", "in a loop"]
    header += ["not jitted", "+ gradient", "x ours", "differs by", "gradient by"]
    return columns(header, lines)


def sweep(sizes: Sizes) -> dict[str, dict[str, dict[str, float]]]:
    """Seconds of one gradient in a loop: sweep and size, then device, then form."""
    study = bayesrep.simulate_study(images=sizes.images, classifiers=sizes.classifiers)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for count in sizes.sweep_classifiers:
        cells, wide = tiled(study, count)
        images = wide if count <= sizes.textbook_classifiers else None
        found[f"classifiers {count:,}"] = _sweep_point(forms(cells, images))
    for count in sizes.sweep_annotators:
        other = bayesrep.simulate_study(
            images=sizes.images, classifiers=sizes.classifiers, annotators=count
        )
        made = forms(unweighted_statistics(other), other)
        found[f"annotators {count:,}"] = _sweep_point(made)
    made = forms(unweighted_statistics(study), study)
    for count in sizes.sweep_chains:
        some = made if count <= sizes.textbook_chains else made[:2]
        found[f"chains {count:,}, each"] = _sweep_point(some, count)
    return found


def _sweep_point(made: Sequence[Form], chains: int | None = None) -> dict[str, dict[str, float]]:
    sites = point(made[0])
    found: dict[str, dict[str, float]] = {}
    for platform, device in find_devices().items():
        say(f"sweep: {made[0].density.units} classifiers, {chains or 1} chains, {platform}")
        found[platform] = {
            form.name: At(form, sites, device, 64).in_loop(chains)
            for form in made
            if not is_refused(
                *(made[0], form, sites, device, 64),
                difference(made[0], form, sites, device, 64),
            )
        }
    return found


def sweep_tables(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """One table a sweep: a row a size, for each device ours, the others and their ratios."""
    tables: list[str] = []
    for kind in ("classifiers", "annotators", "chains"):
        points = {name: by for name, by in found.items() if name.startswith(kind)}
        if not points:
            continue
        platforms = list(next(iter(points.values())))
        header = [f"gradient in a loop, 64 bits, ms: {kind}"]
        header += [
            f"{name}, {p}" for p in platforms for name in ("ours", "gammaln", "x", "textbook", "x")
        ]
        rows: list[list[str]] = []
        for name, by in points.items():
            row = [name]
            for times in by.values():
                ours = times["ours"]
                row.append(milliseconds(ours))
                for other in ("cells with gammaln", "textbook on images"):
                    slow = times.get(other)
                    row += [
                        milliseconds(slow),
                        MISSING_TEXT if slow is None else f"{slow / ours:,.1f}",
                    ]
            rows.append(row)
        tables.append(columns(header, rows))
    return "\n\n".join(tables)


def shards(images: int, size: int = 100_000) -> SufficientStatistics:
    """Statistics of a simulated study of any size, summed from shards."""
    count = max(1, images // size)
    total: SufficientStatistics | None = None
    for seed in range(count):
        study = bayesrep.simulate_study(seed=seed, images=min(images, size), classifiers=20)
        part = SufficientStatistics.from_study(study)
        total = part if total is None else total + part
    if total is None:
        raise ValueError("a study needs images")
    return total


def fit_cost(large: int, turns: int) -> dict[str, float]:
    """Seconds of a whole fit at 10^4 and at ``large`` images, on the same cells."""
    studies = {"small": shards(10_000), "large": shards(large)}
    studies = {name: on_all_cells(study) for name, study in studies.items()}
    times: dict[str, list[float]] = {name: [] for name in studies}
    for turn in range(turns):
        for name, study in studies.items():
            say(f"fit {turn + 1} of {turns}, {name}")
            begin = time.perf_counter()
            bayesrep.fit(study, progress=False)
            if turn:  # the first turn compiles
                times[name].append(time.perf_counter() - begin)
    return {f"{name}_s": statistics.median(values) for name, values in times.items()}


def on_all_cells(study: SufficientStatistics) -> SufficientStatistics:
    """The same statistics with every count 0..36 present, so that both sizes share a program."""
    cells = {}
    for role, given in study.cells.items():
        images = np.zeros(37, dtype=np.int64)
        correct = np.zeros((37, given.correct.shape[1]), dtype=np.int64)
        images[given.selected], correct[given.selected] = given.images, given.correct
        cells[role] = Cells(np.arange(37), np.full(37, 36), images, correct)
    return SufficientStatistics(study.classifiers, cells)


def fit_table(fits: dict[str, float], large: int) -> str:
    """Whole fits by number of images."""
    rows = [
        ["fit, 10,000 + 10,000 images, 20 classifiers", f"{fits['small_s']:.2f} s"],
        [f"fit, {large:,} + {large:,} images", f"{fits['large_s']:.2f} s"],
    ]
    return columns(["what", "median"], rows)


def requirements(rows: Sequence[dict[str, Any]], classifiers: int) -> list[Requirement]:
    """The numbers asked for, on the CPU in 64 bits."""
    loop = {
        r["form"]: r["loop"]
        for r in rows
        if (r["device"], r["bits"]) == ("cpu", 64) and "loop" in r
    }
    ours = loop["ours"]
    return [
        Requirement(
            f"Gradient at {classifiers} classifiers, in a loop", 1e3 * ours, "at most", 0.3, " ms"
        ),
        Requirement(
            "Textbook on images over ours",
            loop.get("textbook on images", np.nan) / ours,
            *("at least", 300, ""),
        ),
        Requirement(
            "Cells with gammaln over ours",
            loop.get("cells with gammaln", np.nan) / ours,
            *("at least", 3, ""),
        ),
    ]


REMARKS = """Log density of the joint model without and with its gradient, in milliseconds: compiled
and called from Python, in a compiled loop as the sampler makes it, and not compiled. "differs by"
is the largest difference of the log density from ours in 64 bits, the known constant of binomial
coefficients aside; "gradient by" the largest of the gradient, relative to its largest entry. What
the textbook differs by in 64 bits comes from JAX's `betaln`, an approximation good to about 1e-6,
which NumPyro's `BetaBinomial` uses. A form whose compiled gradient differs from ours by more than
1e-4 (in 32 bits 1e-2) is not timed. SciPy has no gradient."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; unless it is quick, write docs/results/benchmark-likelihood.{md,json}."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.likelihood", description=__doc__)
    parser.add_argument("--large", type=int)
    parser.add_argument("--quick", action="store_true", help="small sizes, to try the benchmark")
    parser.add_argument("--out", type=Path, help="folder of the page, instead of the published one")
    arguments = parser.parse_args(argv)
    sizes = QUICK if arguments.quick else Sizes()
    large = arguments.large or sizes.large
    rows = compare(sizes)
    print(comparison_table(rows), end="\n\n", flush=True)
    sweeps = sweep(sizes)
    print(sweep_tables(sweeps), end="\n\n", flush=True)
    fits = fit_cost(large, sizes.turns)
    print(fit_table(fits, large))
    if arguments.quick and arguments.out is None:
        return 0
    reached = requirements(rows, sizes.classifiers)
    numbers = {
        "devices": devices(),
        "required": requirement_numbers(reached),
        "comparison": rows,
        "sweeps": sweeps,
        **fits,
    }
    text = "\n\n".join([comparison_table(rows), sweep_tables(sweeps), fit_table(fits, large)])
    command = f"python -m benchmarks.likelihood --large {large}"
    remarks = f"{REMARKS}\n\n{requirement_text(reached)}"
    save("benchmark-likelihood", command, numbers, text, remarks=remarks, folder=arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
