"""What reads files of strangers, and what each can know about a file that was changed.

`TARGETS` holds every reader as a command of ours calls it. A reader takes the folder that a
sample was written to and returns what it read.
"""

import hashlib
import io
import pickle
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl

from bayesrep.errors import BayesrepError
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.study import Study
from experiments.fuzzing import samples
from experiments.fuzzing.mutations import bytewise, structured
from experiments.fuzzing.samples import Files


@dataclass(frozen=True)
class Target:
    """A reader.

    Attributes
    ----------
    sample
        Makes the sound files.
    read
        Takes their folder, returns what was read.
    share
        Of a hundred inputs, how many go here.
    changed
        Endings of the names of files that are changed; all where empty.
    sealed
        Endings of the names of files in which an accident can be told from another sound file,
        because the format, or what we write into it, holds a checksum of the contents.
    """

    sample: Callable[[], Files]
    read: Callable[[Path], Any]
    share: float
    changed: tuple[str, ...] = ()
    sealed: tuple[str, ...] = ()

    def input(self, random: Random, files: Mapping[str, bytes]) -> tuple[str, bytes, str]:
        """A file's name, its contents changed, and the kind of the change."""
        names = [name for name in files if not self.changed or name.endswith(self.changed)]
        name = random.choice(names)
        if random.random() < 0.5:
            odd = structured(random, name, files[name])
            if odd is not None:
                return name, odd, "structure"
        return name, bytewise(random, files[name]), "bytes"


def _study(root: Path) -> Any:
    from bayesrep.studies.reading import read_study

    return read_study(root / "study")


def _answers(root: Path) -> Any:
    from bayesrep.studies.answers import read_predictions

    return read_predictions(root / "study")


def _label_sets(name: str) -> Callable[[Path], Any]:
    def read(root: Path) -> Any:
        from bayesrep.protocols.label_sets import read_label_sets

        return read_label_sets([root / name], _sound(root))

    return read


def _people(root: Path) -> Any:
    from bayesrep.protocols.humans import read_humans

    return read_humans(root / "people.csv", _sound(root))


@cache
def _sound(root: Path) -> Predictions:
    """The answers to the reference, which these targets leave as they are."""
    return _answers(root)[0]


def _tables(kind: str) -> Callable[[Path], Any]:
    def read(root: Path) -> Any:
        from bayesrep.sources import tables

        names = ("counts", "predictions", "images")
        return tables.read([root / f"{name}.{kind}" for name in names])

    return read


def _cifar10h(root: Path) -> Any:
    from bayesrep.sources import cifar10h

    files = [root / "counts.npy", root / "labels.npy", root / "predictions"]
    return cifar10h.read(files).study()


def _cifar10_1(root: Path) -> Any:
    from bayesrep.sources import cifar10_1

    return cifar10_1.read_answers(root, root / "labels.npy")


def _array_folders(root: Path) -> Any:
    from bayesrep.sources import arrays

    return arrays.read([root / "one", root / "two"])


def _imagenetv2(root: Path) -> Any:
    from bayesrep.sources import imagenetv2

    files = [root / "data", root / "counts.csv"]
    return imagenetv2.read(files, reference="old", replication="new")


def _evals(root: Path) -> Any:
    """The changed file and those of its format."""
    from bayesrep.sources.evals import read_evaluations

    changed = max((p for p in root.rglob("*") if p.is_file()), key=lambda p: p.stat().st_mtime_ns)
    folder = root / changed.relative_to(root).parts[0]
    found = read_evaluations([folder], reference="reference", replication="replication")
    return found.answers, found.attempts, list(found.notes)


def _madrylab(root: Path) -> Any:
    from bayesrep.sources import madrylab

    return madrylab.read([root / "frame.csv"]).study()


def _pickles(root: Path) -> Any:
    from bayesrep.sources.pickles.safe_pickle import read_array, read_frame

    changed = max(root.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    return (read_array if changed.suffix == ".npy" else read_frame)(changed)


def _posterior(root: Path) -> Any:
    """Read, and do what `summarize` and `diagnose` do."""
    from bayesrep.checks import diagnose
    from bayesrep.posterior import read_posterior
    from bayesrep.summary import summarize, summarize_gaps

    posterior = read_posterior(root / "posterior.nc")
    study = _one_study()
    tables = [
        make(study, posterior, allow_unconverged=True) for make in (summarize, summarize_gaps)
    ]
    tables.append(diagnose(posterior).checks)
    groups = posterior.groups() if callable(posterior.groups) else posterior.groups
    names = {name.strip("/") for name in groups} - {""}
    return tables, {name: _arrays(posterior[name]) for name in names}


@cache
def _one_study() -> Study:
    return samples.study()


def _arrays(group: Any) -> dict[str, Any]:
    # DataTree and InferenceData both answer to this.
    return {name: group[name].values for name in sorted(map(str, group.data_vars))}


def _checkpoint(root: Path) -> Any:
    from bayesrep.inference.checkpoint import load_block, open_checkpoint

    folder = open_checkpoint(root / "checkpoint", samples.IDENTITY)
    return load_block(folder / samples.BLOCK_NAME, samples.BLOCK)


def _layouts(root: Path) -> Any:
    """Whichever layout the changed file belongs to."""
    from bayesrep.vision.images import list_images

    changed = max((p for p in root.rglob("*") if p.is_file()), key=lambda p: p.stat().st_mtime_ns)
    if changed.suffix == ".tar" or changed.name == "flat.csv":
        found = list_images(changed)
        return found, [found.read(number)[:100] for number in range(min(len(found), 20))]
    if changed.name == "labels.csv":
        return list_images(root / "flat", labels=changed)
    if changed.parent.name == "kit":
        kit = root / "kit"
        return list_images(kit / "images", labels=kit / "ILSVRC2012_validation_ground_truth.txt")
    return list_images(root / "flat")


def _gzipped(root: Path) -> Any:
    from bayesrep.vision.images import list_images

    found = list_images(_changed(root))
    return found, [found.read(number) for number in range(min(len(found), 20))]


def _changed(root: Path) -> Path:
    """The file that was changed last."""
    files = (path for path in root.rglob("*") if path.is_file())
    return max(files, key=lambda path: path.stat().st_mtime_ns)


def _exported(root: Path) -> Any:
    """As `bayesrep answers import` reads what a tool exports."""
    from bayesrep.sources import raw_answers

    file = _changed(root)
    columns = raw_answers.Columns()
    if file.stem == "mturk":
        columns = raw_answers.Columns(image="Input.image*", answer="Answer.image*")
    read = raw_answers.read_raw(file.stem, file, columns)
    words = {"yes": ("yes", "on"), "no": ("no", raw_answers.EMPTY_ANSWER), "maybe": ()}
    decided = raw_answers.decide(read, **words, maybe_is=None, seed=0)
    return raw_answers.describe_answers(decided.with_columns(dataset=pl.lit("v1")))


def _attempts(root: Path) -> Any:
    """As `bayesrep papers passk` does, without what it makes of them."""
    from bayesrep.studies.attempts import read_attempts

    return read_attempts(_changed(root))


def _counted(root: Path) -> Any:
    from bayesrep.answers.counting import count_answers

    found = count_answers([_changed(root)])
    return found.counts, found.datasets


def _cleaned(root: Path) -> Any:
    from bayesrep.answers.quality import clean_answers
    from bayesrep.sources.table_files import read_answers

    rules = ("tsipras2020", "time=6", "repeats")
    found = clean_answers(read_answers(_changed(root)), rules)
    return found.kept, found.dropped, found.effect


def _run_record(root: Path) -> Any:
    """As `bayesrep run` looks at a folder in which all is done, and prints what it said."""
    from bayesrep.commands import run
    from bayesrep.errors import OptionError

    out = root / "out"
    record = run._read_record(out)
    if record is None:
        raise OptionError("run-of-other-inputs", out=out, differences=run.RUN_RECORD)
    run._differences(record["asked"], {"contents": {}, "options": {"seed": 2}, "version": "1"})
    with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
        run._examine(out, record)
        if len(record["seconds"]) == len(run.STAGE_FILES):
            printed = Namespace(out=out, json=False, format="text", command="run")
            run._print_answer(printed, record)
    return record


def _grid(root: Path) -> Any:
    """As `bayesrep sweep` reads it, without a run."""
    from bayesrep.sweeps.grid import read_grid
    from bayesrep.sweeps.studies import add_contents

    grid = read_grid(root / "grid.toml")
    return [run.key for run in grid.runs(add_contents(grid.studies))]


def _suite(root: Path) -> Any:
    from bayesrep.vision.suite import read_suite

    return read_suite(root / "suite.toml")


def _sweep_folder(root: Path) -> Any:
    """As `bayesrep sweep --table` and `--figure` read it."""
    from bayesrep.sweeps.coverage import remarks_text, scores, scores_text
    from bayesrep.sweeps.figures import sweep_figure
    from bayesrep.sweeps.store import read_tables

    runs, estimates, asked = read_tables(root / "out")
    said = scores_text(scores(runs, estimates)), list(remarks_text(runs))
    if crc32(said[0].encode()) % 8 == 0:  # a figure takes long
        sweep_figure(runs, estimates)
    return said, runs.drop("seconds_study", strict=False), estimates, asked


def _prior(root: Path) -> Any:
    """As a model's options take it."""
    from bayesrep.models.options import JointOptions

    text = _changed(root).read_text(encoding="utf-8", errors="replace")
    option = "slope" if "," in text else "weight"
    return getattr(JointOptions(**{option: text}), option)


def _pixels(root: Path) -> Any:
    from bayesrep.errors import PredictionError
    from bayesrep.vision.pixels import decode, explain_failure, quiet_images

    changed = max(root.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    try:
        with quiet_images():
            image = decode(changed.read_bytes())
    except Exception as error:  # as read_block does: one line beside the image's name
        raise PredictionError("no-image-decoded", first=explain_failure(error)) from error
    return image.size, image.tobytes()


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("simulate", "{out}", "--images", "{n}"),
    ("simulate", "{out}", "--annotators", "{n}"),
    ("simulate", "{out}", "--classifiers", "{n}"),
    ("simulate", "{out}", "--seed", "{n}"),
    ("check", "{n}"),
    ("estimate", "{study}", "--bootstrap", "{n}"),
    ("estimate", "{study}", "--seed", "{n}"),
    ("estimate", "{study}", "--methods", "{n}"),
    ("estimate", "{study}", "--interval", "{n}"),
    ("estimate", "{study}", "--table", "annotators", "--forward", "{n}"),
    ("fit", "{study}", "--out", "{out}.nc", "--set", "{n}"),
    ("fit", "{study}", "--out", "{out}.nc", "--set", "components={n}"),
    ("fit", "{study}", "--out", "{out}.nc", "--set", "degree={n}"),
    ("fit", "{study}", "--out", "{out}.nc", "--chains", "{n}"),
    ("fit", "{study}", "--out", "{out}.nc", "--model", "{n}"),
    ("papers", "compare", "{study}", "--table", "matched", "--seed", "{n}"),
    ("papers", "compare", "{study}", "--table", "baseline", "--baseline", "{n}"),
    ("papers", "compare", "{study}", "--datasets", "{n}"),
)
ODD_OPTIONS: tuple[str, ...] = ("-1", "1e9", "99999999999", "9" * 20, "9" * 5000, "nan", "inf", "")
ODD_OPTIONS += ("components=1000000", "=", "a=b", "²", "\x1b[31m", "1:0", "0:99999999999", "1e-400")


def _options(root: Path) -> Any:
    from bayesrep.cli import main
    from bayesrep.errors import OptionError

    words = (root / "command").read_text(encoding="utf-8").split("\0")
    filled = {"study": str(root / "study"), "out": str(root / "out")}
    said = io.StringIO()
    with redirect_stdout(said):
        status = main([word.format(**filled) for word in words])
    if status:
        raise OptionError("file-unreadable", path=words[0], reason=f"exit status {status}")
    return said.getvalue()


@dataclass(frozen=True)
class Options(Target):
    """Not a file: a command with an odd option."""

    def input(self, random: Random, files: Mapping[str, bytes]) -> tuple[str, bytes, str]:
        """The words of the command line, in a file of their own."""
        odd = random.choice(ODD_OPTIONS).replace("{", "").replace("}", "")
        words = [word.replace("{n}", odd) for word in random.choice(COMMANDS)]
        return "command", "\0".join(words).encode("utf-8", "surrogateescape"), "structure"


TARGETS: dict[str, Target] = {
    "pickles": Target(samples.pickle_files, _pickles, 8),
    "tables-csv": Target(lambda: samples.tables("csv"), _tables("csv"), 7),
    "tables-parquet": Target(lambda: samples.tables("parquet"), _tables("parquet"), 6),
    "study": Target(samples.study_files, _study, 8, sealed=(".parquet",)),
    "answers": Target(
        samples.answered_files, _answers, 4, changed=(".parquet",), sealed=(".parquet",)
    ),
    "label-sets-csv": Target(
        samples.answered_files, _label_sets("sets.csv"), 2, changed=("sets.csv",)
    ),
    "label-sets-json": Target(
        samples.answered_files, _label_sets("sets.json"), 3, changed=("sets.json",)
    ),
    "people": Target(samples.answered_files, _people, 2, changed=("people.csv",)),
    "cifar10h": Target(samples.cifar10h_files, _cifar10h, 3),
    "cifar10_1": Target(samples.cifar10_1_files, _cifar10_1, 3),
    "arrays": Target(samples.array_files, _array_folders, 3),
    "imagenetv2": Target(samples.imagenetv2_files, _imagenetv2, 4),
    "evals": Target(samples.evals_files, _evals, 5),
    "madrylab": Target(samples.madrylab_files, _madrylab, 3),
    "posterior": Target(samples.posterior_files, _posterior, 5, changed=(".nc",), sealed=(".nc",)),
    "checkpoint": Target(samples.checkpoint_files, _checkpoint, 4, sealed=(".npz", ".json")),
    "layouts": Target(
        samples.layout_files,
        _layouts,
        7,
        changed=(".tar", ".csv", ".mat", ".txt"),
    ),
    "gzipped": Target(
        samples.gzipped_files, _gzipped, 2, changed=(".gz", ".tgz"), sealed=(".gz", ".tgz")
    ),
    "images": Target(samples.image_files, _pixels, 5.7),
    "raw-answers": Target(samples.exported_answers, _exported, 3),
    "attempts": Target(samples.attempts_files, _attempts, 2),
    "count": Target(samples.counted_tables, _counted, 2),
    "clean": Target(samples.answers_tables, _cleaned, 2),
    "run": Target(samples.run_files, _run_record, 2, changed=(".json",)),
    "grid": Target(samples.grid_files, _grid, 1, changed=("grid.toml",)),
    "prior": Target(samples.prior_files, _prior, 1),
    "sweep-folder": Target(samples.sweep_files, _sweep_folder, 1),
    "suite": Target(samples.suite_files, _suite, 1),
    "options": Options(samples.study_files, _options, 0.3),
}


def digest(value: Any) -> str:
    """A fingerprint of everything that was read."""
    made = hashlib.sha256()
    for part in _parts(value):
        made.update(part)
    return made.hexdigest()


def _objects(values: Any) -> bytes:
    """Lists as bytes; one may hold another over and over, which a pickle says once."""
    try:
        return pickle.dumps(values)
    except RecursionError:
        return b"deep"


def _parts(value: Any) -> Any:
    if isinstance(value, Study):
        value = (value.fingerprint(), value.name, value.truth)
    if hasattr(value, "__array__") and not isinstance(value, pl.DataFrame | pl.Series):
        value = np.asarray(value)
        numbers = value.dtype.kind not in "OUST"
        yield f"{value.shape}{value.dtype.kind}".encode()
        yield np.ascontiguousarray(value).tobytes() if numbers else _objects(value.tolist())
    elif isinstance(value, pl.DataFrame | pl.Series):
        yield repr(value.to_dict() if isinstance(value, pl.DataFrame) else value.to_list()).encode()
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield repr(key).encode("utf-8", "surrogatepass")
            yield from _parts(value[key])
    elif isinstance(value, list | tuple):
        yield f"{len(value)}".encode()
        for item in value:
            yield from _parts(item)
    elif is_dataclass(value):
        for each in fields(value):
            yield each.name.encode()
            yield from _parts(getattr(value, each.name))
    elif isinstance(value, bytes):
        yield value
    else:
        yield repr(value).encode("utf-8", "surrogatepass")


REFUSALS = (BayesrepError, OSError)
"""What the command line says in one line; anything else is a traceback."""
