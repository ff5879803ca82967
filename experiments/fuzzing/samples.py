"""Sound files of every format that is read, small and the same at every call.

Each function returns the contents of a folder: relative path to bytes.
"""

import gzip
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

import bayesrep
from bayesrep.sources.evals.inspect_logs import zipfile as zipped
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.study import Study

Files = dict[str, bytes]

FRAMES = Path(__file__).resolve().parents[2] / "tests" / "pickled_frames"
WNIDS = ("n01440764", "n01443537", "n01484850", "n01491361")  # the first classes of ImageNet
IMAGES = 12


def study() -> Study:
    """Two data sets of 40 images and three classifiers."""
    return bayesrep.simulate_study(seed=0, images=40, annotators=10, classifiers=3)


def folder_of(write: Callable[[Path], object]) -> Files:
    """What a function leaves in an empty folder."""
    with TemporaryDirectory() as name:
        root = Path(name)
        write(root)
        files = sorted(path for path in root.rglob("*") if path.is_file())
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def study_files() -> Files:
    """A study on disk."""
    return folder_of(lambda root: study().write(root / "study"))


def answered_files() -> Files:
    """A study on disk whose classifiers' answers are known, and what protocols read beside it."""
    data = study()
    answers = [
        Predictions(
            part.name,
            part.images,
            WNIDS,
            np.arange(len(part.images)) % 4,
            data.classifiers,
            ((np.arange(len(part.images)) + ~part.correct.T) % 4)[:, :, None],
        )
        for part in data.datasets.values()
    ]
    files = folder_of(lambda root: data.write(root / "study", answers=answers))
    names = data.reference.images.tolist()
    rows = [(name, WNIDS[number % 4]) for number, name in enumerate(names)]
    people = [("reference", name, who, wnid) for name, wnid in rows[:9] for who in ("ann", "bo")]
    return {
        **files,
        "sets.csv": csv(["image", "label"], rows),
        "sets.json": json.dumps({name: [wnid] for name, wnid in rows}).encode(),
        "people.csv": csv(["dataset", "image", "labeler", "answer"], people),
    }


def csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> bytes:
    """A table as text."""
    lines = [",".join(map(str, row)) for row in (columns, *rows)]
    return ("\n".join(lines) + "\n").encode()


def tables(kind: str) -> Files:
    """Counts, annotations, predictions and images of your own, as csv or parquet."""
    rng = np.random.default_rng(0)
    keys = [
        (name, f"{name}-{number}") for name in ("reference", "replication") for number in range(9)
    ]
    images = pl.DataFrame(keys, schema=["dataset", "image"], orient="row")
    shown = rng.integers(5, 10, len(keys))
    one, other = (
        pl.Series([WNIDS[(number + step) % 3] for number in range(len(keys))]) for step in (0, 1)
    )
    right = rng.random(len(keys)) < 0.7
    answers = [
        images.with_columns(
            pl.lit(name).alias("classifier"),
            pl.Series("correct", right),
            one.zip_with(pl.Series(right), other).alias("label_1"),
            pl.Series("probability_1", rng.integers(1, 10, len(keys)) / 10),
            one.alias("label"),
        )
        for name, right in (("one", right), ("two", ~right))
    ]
    frames = {
        "counts": images.with_columns(
            pl.Series("selected", rng.binomial(shown, 0.7)), pl.Series("shown", shown)
        ),
        "predictions": pl.concat(answers),
        "images": images.with_columns(one.alias("label"), pl.lit("all").alias("group")),
    }
    return {f"{name}.{kind}": table(frame, kind) for name, frame in frames.items()}


def table(frame: pl.DataFrame, kind: str) -> bytes:
    """A table as the bytes of a file."""
    stream = io.BytesIO()
    (frame.write_csv if kind == "csv" else frame.write_parquet)(stream)
    return stream.getvalue()


def npy(values: Any) -> bytes:
    """An array as the bytes of a file."""
    stream = io.BytesIO()
    np.save(stream, values, allow_pickle=True)
    return stream.getvalue()


def cifar10h_files() -> Files:
    """Counts, labels and the predictions of two classifiers on 5,000 images."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 5000)
    right = rng.binomial(50, rng.beta(8, 1, 5000))
    human = np.zeros((5000, 4), dtype=np.uint8)
    human[np.arange(5000), labels] = right
    human[np.arange(5000), (labels + 1) % 4] = 50 - right
    files = {"counts.npy": npy(human), "labels.npy": npy(labels.astype("<u2"))}
    for name in ("one", "two"):
        listed = np.where(rng.random(5000) < 0.9, labels, (labels + 1) % 4).tolist()
        files[f"predictions/{name}_predictions.json"] = json.dumps(listed).encode()
    return files


def cifar10_1_files() -> Files:
    """The repository's folders with predictions of two classifiers on few images."""
    labels = np.arange(30) % 10
    files = {"labels.npy": npy(labels), "datasets/cifar10.1_v4_labels.npy": npy(labels[::-1])}
    for place in ("original", "v4"):
        for shift, name in enumerate(("one", "two")):
            listed = json.dumps(((labels + shift) % 10).tolist()).encode()
            files[f"model_predictions/{place}_predictions/{name}_predictions.json"] = listed
    return files


def array_files() -> Files:
    """Two folders of arrays: labels, names, probabilities and class numbers."""
    rng = np.random.default_rng(0)
    files: Files = {}
    for folder, size in (("one", 30), ("two", 20)):
        scores = rng.dirichlet(np.ones(4), size)
        files[f"{folder}/labels.npy"] = npy(rng.integers(0, 4, size))
        files[f"{folder}/classes.txt"] = b"ant\nbee\ncat\ndog\n"
        files[f"{folder}/net.npy"] = npy(scores)
        files[f"{folder}/top.npy"] = npy(np.argsort(-scores, axis=1)[:, :2])
    return files


def imagenetv2_files() -> Files:
    """The upstream data folder with two test sets, and counts."""
    wnids = [f"n{number:08}" for number in range(10)]
    classes = [{"cid": cid, "wnid": wnid} for cid, wnid in enumerate(wnids)]
    files = {"data/metadata/class_info.json": json.dumps(classes).encode()}
    rows: list[Sequence[object]] = []
    for name in ("old", "new"):
        listed = [[f"{name}{number}", wnids[number % 3]] for number in range(8)]
        files[f"data/datasets/{name}.json"] = json.dumps({"image_filenames": listed}).encode()
        top5 = np.arange(8)[:, None] % 3 + np.arange(5)
        files[f"data/predictions/{name}/good.npy"] = npy(top5)
        rows += [(name, f"{name}{number}", number % 9, 10) for number in range(8)]
    return files | {"counts.csv": csv(["dataset", "image", "selected", "shown"], rows)}


def madrylab_files() -> Files:
    """Annotations, one row each."""
    rows = [
        (f"u{number}", f"v{1 + number % 2}", (number + who) % 3 > 0, number % 4 > 0, number % 5 > 0)
        for number in range(12)
        for who in range(4)
    ]
    return {"frame.csv": csv(["url", "dataset", "selected", "correct_a", "correct_b"], rows)}


def pickle_files() -> Files:
    """Frames that pandas and torch pickled, and arrays of Python objects."""
    frames = {path.name: path.read_bytes() for path in sorted(FRAMES.glob("p*.pkl"))}
    frames |= {path.name: path.read_bytes() for path in sorted(FRAMES.glob("torch-*.pt"))}
    sets = np.array([["a"], ["b", "c"], []], dtype=object)
    return frames | {
        "objects.npy": npy(sets),
        "mapping.npy": npy(np.array({"a": [1, 2.5, None], "b": ("x",)}, dtype=object)),
        "numbers.npy": npy(np.arange(12.0).reshape(3, 4)),
    }


def evals_files() -> Files:
    """Logs of evaluations in every format, each in a folder of its own."""
    solved, tasks = [number % 3 > 0 for number in range(8)], ("reference", "replication")
    files: Files = {}
    for task in tasks:
        lines = [
            {"doc_id": n, "doc_hash": f"{task}{n}", "resps": [["4"]], "filter": "none"}
            | {"metrics": ["acc"], "acc": float(right)}
            for n, right in enumerate(solved)
        ]
        files[f"lm_eval/one__m/samples_{task}.jsonl"] = json_lines(lines)
        samples = [
            {"id": n, "epoch": 1, "input": f"{task} {n}"}
            | {"scores": {"match": {"value": "C" if right else "I"}}}
            for n, right in enumerate(solved)
        ]
        facts = {"task": task, "model": "m", "task_version": 0}
        header = {"version": 2, "status": "success", "eval": facts}
        for name, packing in (("inspect", zipfile.ZIP_DEFLATED), ("inspect_zstd", 93)):
            packed = io.BytesIO()
            with zipped.ZipFile(packed, "w", packing) as made:
                made.writestr("summaries.json", json.dumps(samples))
                made.writestr("header.json", json.dumps(header))
            files[f"{name}/{task}.eval"] = packed.getvalue()
        files[f"inspect_json/{task}.json"] = json.dumps({**header, "samples": samples}).encode()
    instances = [
        {"schema_version": "0.3.0", "evaluation_id": "1", "model_id": "m", "evaluation_name": task}
        | {"sample_id": f"q{n}", "evaluation": {"score": float(right), "is_correct": right}}
        for task in tasks
        for n, right in enumerate(solved)
    ]
    files["every/samples.jsonl"] = json_lines(instances)
    return files


def worker_answers() -> pl.DataFrame:
    """Answers about nine images of each data set by four workers, with what cleaning asks for."""
    rows = [
        (name, f"{name}-{number}", f"w{worker}", (number + worker) % 3 > 0)
        for name in ("reference", "replication")
        for number in range(9)
        for worker in range(4)
    ]
    schema = ["dataset", "image", "worker", "selected"]
    place = pl.int_range(pl.len())
    return pl.DataFrame(rows, schema, orient="row").with_columns(
        (pl.lit("t") + (place // 12).cast(pl.String)).alias("task"),
        pl.when(place % 7 == 0).then(pl.lit("positive")).alias("control"),
        (place % 40 + 5).alias("seconds"),
    )


def answers_tables() -> Files:
    """The same table as text, with tabs, packed, as Parquet and as a workbook."""
    answers = worker_answers()
    text = table(answers, "csv")
    return {
        "answers.csv": text,
        "answers.tsv": text.replace(b",", b"\t"),
        "answers.csv.gz": gzip.compress(text, mtime=0),
        "answers.parquet": table(answers, "parquet"),
        "answers.xlsx": workbook([answers.columns, *answers.rows()]),
    }


def workbook(rows: Sequence[Sequence[object]]) -> bytes:
    """A table as a workbook, the same at whatever time it is written."""
    from openpyxl import Workbook

    book, stream, packed = Workbook(write_only=True), io.BytesIO(), io.BytesIO()
    sheet = book.create_sheet("answers")
    for row in rows:
        sheet.append(list(row))
    book.save(stream)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in members(stream.getvalue()).items():
            made.writestr(zipfile.ZipInfo(name), re.sub(rb"20\d\d-\d\d-\d\dT[\d:]+Z", b"", data))
    return packed.getvalue()


def counted_tables() -> Files:
    """What `bayesrep answers count` takes, each kind alone."""
    answers = worker_answers().drop("control")  # of which it warns
    return {f"answers.{kind}": table(answers, kind) for kind in ("csv", "parquet")}


def exported_answers() -> Files:
    """Answers as tools export them: Mechanical Turk, both ways of Label Studio, a table."""
    grid = [("H1", f"w{n}", 12 + n, "a", "b", "on" if n % 2 else "", "on") for n in range(4)]
    header = ["HITId", "WorkerId", "WorkTimeInSeconds", "Input.image1", "Input.image2"]
    header += ["Answer.image1", "Answer.image2"]
    choice = {"from_name": "choice", "to_name": "image", "type": "choices"}
    tasks = [
        {
            "id": n,
            "data": {"image": f"{n}.jpg"},
            "annotations": [
                {
                    "completed_by": who,
                    "lead_time": 3.5,
                    "result": [{**choice, "value": {"choices": ["yes" if n % who else "no"]}}],
                }
                for who in (1, 2)
            ],
        }
        for n in range(6)
    ]
    answers = [(*row[1:3], "yes" if row[3] else "no", "False") for row in worker_answers().rows()]
    return {
        "mturk.csv": csv(header, grid),
        "label-studio.json": json.dumps(tasks).encode(),
        "table.csv": csv(["image", "worker", "answer", "_golden"], answers),
    }


def attempts_files() -> Files:
    """Attempts at items, counted and one by one, and a table as a workbook has them."""
    rows = [(f"q{n}", f"m{m}", (n + m) % 5, 5) for n in range(12) for m in range(2)]
    each = [(q, m, int(k < solved)) for q, m, solved, of in rows for k in range(of)]
    counted = pl.DataFrame(rows, ["item", "model", "solved", "attempts"], orient="row")
    return {
        "counted.csv": table(counted, "csv"),
        "counted.parquet": table(counted, "parquet"),
        "each.csv": csv(["item", "model", "solved"], each),
    }


GRID = """
method = ["raw", "naive(annotators=4)", "nuts"]
annotators = ["all", 5]
chains = [2, "default"]
seed = [0, 7]

[options]
components = ["default", 3]
slope = [[3.0, 2.5], "StudentT(4, 3, 2.5)"]
monotone = true

[[study]]
simulate = { images = 40, annotators = [8, "6:9"], seed = [1, 2], dependence = 0.1 }

[[study]]
name = "mine"
folder = "study"

[[study]]
source = "tables"
files = ["counts.csv", "predictions.csv", "images.csv"]
reference = "reference"
"""


def grid_files() -> Files:
    """A grid of every kind of study, and what it names."""
    return study_files() | tables("csv") | {"grid.toml": GRID.encode()}


def suite_files() -> Files:
    """Data sets that are evaluated together."""
    text = (
        '[imagenet]\nimages = "val/"\nlabels = "val.txt"\n\n[a]\nimages = "a.tar"\namong = "all"\n'
    )
    return {"suite.toml": text.encode()}


def sweep_files() -> Files:
    """The folder of a sweep whose runs are made, one of them in vain."""
    from bayesrep.store import keep
    from bayesrep.sweeps import store
    from bayesrep.sweeps.execute import result_of
    from bayesrep.sweeps.run_spec import StudySpec, SweepRun

    sizes = (("annotators", 8), ("classifiers", 2), ("images", 20), ("seed", 1))
    methods = (("raw", None), ("naive", None), ("jackknife", 9))
    runs = [SweepRun(StudySpec("simulate", "world", sizes), name, kept) for name, kept in methods]

    def swept(root: Path) -> None:
        store.begin(root / "out", root / "grid.toml", runs)
        for run in runs:
            keep(
                root / "out" / store.RUNS_FOLDER,
                run.key,
                result_of(run) | {"seconds": {"study": 0.1, "estimating": 0.2}},
            )

    return folder_of(swept)


def prior_files() -> Files:
    """Priors as a grid or the command line has them, each in a file of its own."""
    written = (
        "StudentT(4, loc=3, scale=2.5)",
        "(0, 1.5)",
        "TransformedDistribution(Gumbel(0, 1), [AffineTransform(1, 2)])",
        "MixtureSameFamily(Categorical([0.25, 0.75]), Normal([0, 2], [1, 0.5]))",
    )
    return {f"{number}.prior": text.encode() for number, text in enumerate(written)}


def run_files() -> Files:
    """The folder of a finished `bayesrep run`, of fewer words than a real one."""
    from bayesrep.commands import run
    from bayesrep.files.digests import seal_files

    parts = {
        name: place if "." in place else f"{place}/part" for name, place in run.STAGE_FILES.items()
    }
    files = {f"out/{part}": name.encode() for name, part in parts.items()}

    def sealed(root: Path) -> None:
        for name, data in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        found = dict.fromkeys(("answer", "verdict", "assumption", "components_choice", "tried"), "")
        more = {"sentences": ["Read on."], "matching": [], "trust": "yes", "converged": True}
        record = {
            "asked": {"contents": {"counts.csv": "0" * 64}, "options": {"seed": 1}, "version": "0"},
            "seconds": dict.fromkeys(run.STAGE_FILES, 1.5),
            "seals": {n: seal_files(root / "out", place) for n, place in run.STAGE_FILES.items()},
            "found": {**found, **more},
        }
        run._write_record(root / "out", record)

    return folder_of(sealed)


def json_lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """A row a line."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def posterior_files() -> Files:
    """The study, and draws of the form that a fit of the joint model leaves."""
    from bayesrep.posterior import write_posterior

    made = posterior()
    return study_files() | folder_of(lambda root: write_posterior(made, root / "posterior.nc"))


def posterior() -> Any:
    """Draws of the form that a fit of the joint model leaves, by a random number generator."""
    from bayesrep.numerics.codes import encode
    from bayesrep.posterior.files import build_posterior
    from bayesrep.posterior.groups import CellNames, cell_coordinates
    from bayesrep.posterior.likelihood import LOGIT_VARS

    data = study()
    rng = np.random.default_rng(0)
    sizes = {"chain": 2, "draw": 20, "component": 2, "dataset": 2, "classifier": 3, "term": 5}
    sizes |= {"reference_cell": 11, "replication_cell": 11, "answered_cell": 11}

    def drawn(*dims: str) -> tuple[tuple[str, ...], Any]:
        return dims, rng.beta(5, 3, [sizes[dim] for dim in dims])

    def counted(*dims: str) -> tuple[tuple[str, ...], Any]:
        return dims, rng.integers(0, 20, [sizes[dim] for dim in dims])

    def logarithms(*dims: str) -> tuple[tuple[str, ...], Any]:
        return dims, np.log(drawn(*dims)[1])

    every = ("chain", "draw")
    by_cell = ("classifier", "replication_cell")
    codes = encode(logarithms(*every, *by_cell)[1])
    logits = zip(LOGIT_VARS, ((*every, *by_cell), by_cell, by_cell), codes, strict=True)
    names = (
        "adjusted_accuracy",
        "bias_corrected_gap",
        "selection_gap",
        "population_reference_accuracy",
    )
    groups = {
        "posterior": {
            **{name: drawn(*every, "classifier") for name in names},
            **{
                f"component_{name}": drawn(*every, "dataset", "component")
                for name in ("mean", "concentration", "weight")
            },
            "mean_selection_frequency": drawn(*every, "dataset"),
            "population_curve": drawn(*every, "term"),
        },
        "sample_stats": {
            "diverging": (every, np.zeros((2, 20), dtype=bool)),
            "num_steps": counted(*every),
            "energy": drawn(*every),
        },
        "log_density": {
            "reference_images": logarithms(*every, "reference_cell"),
            "replication_images": logarithms(*every, "replication_cell"),
            **{name: (dims, values) for name, dims, values in logits},
        },
        "observed_data": {
            "reference_images": counted("reference_cell"),
            "replication_images": (("replication_cell",), np.full(11, 20)),
            "correct": counted("classifier", "answered_cell"),
        },
    }
    cells = CellNames(np.full(11, ""), np.arange(11), np.full(11, 10))
    coordinates = {
        "dataset": ("dataset", np.array(["reference", "replication"])),
        "classifier": ("classifier", np.array(data.classifiers)),
        **cell_coordinates("reference", cells),
        **cell_coordinates("replication", cells),
        **cell_coordinates("answered", cells),
    }
    attributes = {
        "model": "joint",
        "method": "nuts",
        "options": json.dumps({"components": 2, "curve": "bernstein"}),
        "traits": json.dumps({"shared": ["population_curve"], "binomial": True}),
        "datasets": json.dumps(["reference", "replication"]),
        "schedule": json.dumps({"chains": 2, "warmup": 20, "draws": 20, "thinning": 1}),
        "versions": json.dumps({"bayesrep": "0"}),
        "groups": "",
        "seed": 0,
        "feedback": "full",
        "device": "cpu",
        "converged": 1,
        "verdict": "The fit has converged.",
        "advice": "",
        "study_fingerprint": data.fingerprint(),
        "statistics_digest": SufficientStatistics.from_study(data).digest(),
    }
    return build_posterior(groups, coordinates, attributes)


BLOCK_NAME = "part-chain-0-block-00000.npz"
BLOCK = [np.arange(24, dtype=np.float32).reshape(2, 12), np.arange(4, dtype=np.uint32)]
IDENTITY = {"study": "0" * 64, "model": "joint", "seed": 0, "schedule": {"chains": 2, "draws": 20}}


def checkpoint_files() -> Files:
    """The manifest of a checkpoint and a block of one chain."""
    stream = io.BytesIO()
    np.savez(stream, **{str(number): array for number, array in enumerate(BLOCK)})
    text = json.dumps(IDENTITY, indent=1) + "\n"
    block = {f"checkpoint/{BLOCK_NAME}": stream.getvalue()}
    return {"checkpoint/checkpoint.json": text.encode(), **block}


def picture(number: int, kind: str, mode: str = "RGB") -> bytes:
    """A small image with some detail."""
    from PIL import Image

    rng = np.random.default_rng(number)
    colours = rng.integers(0, 255, (6, 6, 3), dtype=np.uint8).repeat(6, axis=0).repeat(6, axis=1)
    stream = io.BytesIO()
    Image.fromarray(colours).convert(mode).save(stream, kind)
    return stream.getvalue()


def image_files() -> Files:
    """One image of every format and some modes."""
    kinds = {"jpg": "JPEG", "png": "PNG", "gif": "GIF", "bmp": "BMP", "tif": "TIFF"}
    kinds |= {"webp": "WEBP", "ppm": "PPM"}
    files = {f"image.{end}": picture(0, kind) for end, kind in kinds.items()}
    files |= {"cmyk.jpg": picture(1, "JPEG", "CMYK"), "palette.png": picture(2, "PNG", "P")}
    files["grey.png"] = picture(3, "PNG", "L")
    return files


def archive(members: Mapping[str, bytes]) -> bytes:
    """A tar file."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def layout_files() -> Files:
    """Every layout of images: a table of paths, flat folders with labels, tar shards, the kit."""
    from scipy.io import savemat

    names = [f"ILSVRC2012_val_{number:08}.JPEG" for number in range(1, IMAGES + 1)]
    wnids = [WNIDS[number % 4] for number in range(IMAGES)]
    flat = {f"flat/{name}": f"pixels {name}".encode() for name in names}
    shards = {f"s{n:03}.jpg": b"pixels" * n for n in range(IMAGES)}
    shards |= {f"s{n:03}.cls": str(n).encode() for n in range(IMAGES)}
    kit = {f"kit/images/{name}": b"x" for name in names}
    synsets = np.zeros(4, dtype=[("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O")])
    for number, wnid in enumerate(WNIDS):
        synsets[number] = (number + 1, wnid, f"words of {wnid}")
    stream = io.BytesIO()
    savemat(stream, {"synsets": synsets})
    numbers = "".join(f"{1 + n % 4}\n" for n in range(IMAGES))
    pairs = list(zip(names, wnids, strict=True))
    return {
        **flat,
        **kit,
        "kit/ILSVRC2012_validation_ground_truth.txt": numbers.encode(),
        "kit/meta.mat": stream.getvalue(),
        "flat/val.txt": "".join(f"{name} {wnid}\n" for name, wnid in pairs).encode(),
        "flat.csv": csv(["path", "label"], [(f"flat/{name}", wnid) for name, wnid in pairs]),
        "labels.csv": csv(["image", "label"], pairs),
        "classes.tar": archive({f"{wnid}/{name}": b"pixels" for name, wnid in pairs}),
        "samples.tar": archive(shards),
    }


def gzipped_files() -> Files:
    """An archive packed by gzip as one stream, and one whose parts were packed one by one."""
    whole = archive({f"{wnid}/{number}.png": b"pixels" * 90 for number, wnid in enumerate(WNIDS)})
    parts = [whole[at : at + 1024] for at in range(0, len(whole), 1024)]
    return {
        "whole.tar.gz": gzip.compress(whole, mtime=0),
        "parts.tgz": b"".join(gzip.compress(part, mtime=0) for part in parts),
    }


def members(data: bytes) -> dict[str, bytes]:
    """The files inside a zip."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}
