"""`bayesrep predict`: evaluate classifiers on images, and write their predictions into a study."""

import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from bayesrep.choices import Kept, Precision
from bayesrep.commands.options import given_options, named_path, names
from bayesrep.commands.output import (
    describe_kept_work,
    emit_table,
    finding,
    report_missing_arguments,
    write_table,
)
from bayesrep.errors import OptionError, PredictionWarning
from bayesrep.studies.layout import PREDICTIONS_FOLDER, prediction_folder

EXAMPLE = "--images v1=val/ v2=imagenetv2/ --study my-study --classifiers resnet50"

# By the kind of images, the options that have no use beside it: kept logits are evaluated already.
_NO_USE: Mapping[str, tuple[str, ...]] = {
    "--images": (),
    "--suite": ("labels", "among"),
    "--from-logits": ("classes", "keep", "precision", "weights", "ray"),
}


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "--images",
        type=named_path,
        nargs="+",
        metavar="NAME=PATH",
        help="data sets, by name in the study, and their images: a folder of class folders, a "
        "flat folder, .tar, .tar.gz, .csv, or hf-hub:user/dataset/pattern",
    )
    option("--suite", type=Path, metavar="FILE", help="TOML file of data sets and their options")
    option(
        "--from-logits",
        type=named_path,
        metavar="NAME=FOLDER",
        help="logits to predict from, in place of images: STUDY/logits/DATASET of --keep logits",
    )
    option("--study", type=Path, help="folder of the study, created if needed")
    # Who answers, and what the answers are chosen among and held against.
    option(
        "--classifiers",
        type=names,
        metavar="NAMES|@FILE",
        help="classifiers of timm or hf-hub:..., separated by commas, or a file with one a line; "
        "engstrom2020, tsipras2020, shankar2020, anzaku2022: those of a paper",
    )
    option("--labels", type=Path, metavar="FILE", help="true labels of the images of a flat folder")
    option(
        "--classes", type=Path, metavar="FILE", help="outputs' index and name, if not ImageNet's"
    )
    option(
        "--among",
        metavar="CLASSES",
        help="classes to choose answers among: imagenet-a, imagenet-r, a file with one a line, a "
        "folder of class folders, ObjectNet's mappings, or all (default all)",
    )
    option("--keep", choices=get_args(Kept), help="also keep every output, not only five labels")
    option("--device", help="device: auto, cpu, cuda, cuda:1 or mps (default auto)")
    option("--precision", choices=get_args(Precision), help="networks' arithmetic (default auto)")
    option("--weights", type=Path, metavar="DIR", help="folder of weights, instead of the hub's")
    option("--ray", metavar="ADDRESS|local", help="Ray cluster to run on (extra [ray])")
    option(
        "--allow-failures",
        action="store_true",
        help="leave images that cannot be decoded out of the study",
    )
    option(
        "--results",
        type=Path,
        metavar="FOLDER",
        help="folder for results-DATASET.csv, in the columns of timm's results",
    )


def run(arguments: Namespace) -> int:
    import polars as pl

    from bayesrep.report.protocols_text import predictions_text
    from bayesrep.studies.study_folder import StudyFolder
    from bayesrep.vision import make_timm_table

    if missing := _missing_arguments(arguments):
        return report_missing_arguments("predict", missing)
    # What is said belongs to the answers, whatever the environment does with warnings.
    warnings.simplefilter("always", PredictionWarning)
    reports = _predict(arguments)
    if arguments.results:
        arguments.results.mkdir(parents=True, exist_ok=True)
        for name, report in reports.items():
            file = arguments.results / f"results-{prediction_folder(name).name}.csv"
            write_table(make_timm_table(report, arguments.study, name), file)
    done = f"Written to {arguments.study}/predictions"
    # Of several the table has a column, and the facts a name, for the data set.
    if arguments.suite or len(reports) > 1:
        texts = {name: predictions_text(report) for name, report in reports.items()}
        text = "\n\n".join(f"{name}\n{each}" for name, each in texts.items())
        table = pl.concat(
            [
                report.table.select(pl.lit(name).alias("dataset"), pl.all())
                for name, report in reports.items()
            ]
        )
        facts = {"sets": {name: report.facts() for name, report in reports.items()}}
    else:
        (report,) = reports.values()
        text, table, facts = predictions_text(report), report.table, report.facts()
    if listed := sum(len(report.listed) for report in reports.values()):
        done += f"\nNew in the study, with predictions on every data set: {listed}"
    missing_images = StudyFolder(arguments.study).images_left_out
    emit_table(arguments, table, f"{text}\n{done}", facts, missing_images)
    # An incomplete table is a finding, so that scripts notice.
    if left_out := sum(len(each.left_out) for each in reports.values()):
        return finding(f"{left_out} of {len(table)} classifiers were left out; the table says why")
    if refused := sum(len(each.refused) for each in reports.values()):
        return finding(
            f"{refused} image{'s' if refused != 1 else ''} could not be decoded, {arguments.study}/"
            "failures.parquet says why; repair them and run this again, or give --allow-failures "
            "to leave the study without them"
        )
    return 0


def _missing_arguments(arguments: Namespace) -> list[str]:
    """Refuse an unclear request: one kind of images, their data set, and classifiers are needed."""
    chosen = [
        kind for kind in _NO_USE if getattr(arguments, kind[2:].replace("-", "_")) is not None
    ]
    if len(chosen) > 1:
        raise OptionError("predict-of-several-kinds", options=" and ".join(chosen))
    # Options that the chosen kind of images ignores are refused, not silently dropped.
    useless = [name for name in _NO_USE[chosen[0]] if getattr(arguments, name)] if chosen else []
    if useless:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in useless)
        raise OptionError("predict-option-without-use", options=options, kind=chosen[0])
    missing = [] if chosen else ["--images"]
    if arguments.study is None:
        missing.append("--study")
    if not arguments.classifiers and arguments.from_logits is None:
        missing.append("--classifiers")
    return missing


def _predict(arguments: Namespace) -> dict[str, Any]:
    from bayesrep import vision

    progress = not arguments.quiet
    if arguments.from_logits is not None:
        options = given_options(arguments, vision.predict_from_logits)
        name, folder = arguments.from_logits
        return {name: vision.predict_from_logits(folder, name, arguments.study, **options)}
    options = given_options(arguments, vision.predict_sets)
    if arguments.suite is not None:
        sets = vision.read_suite(arguments.suite)
    else:
        names = [name for name, _ in arguments.images]
        if repeated := next((name for name in names if names.count(name) > 1), None):
            raise OptionError("pair-given-twice", option="--images", name=repeated)
        if arguments.labels and len(names) > 1:
            raise OptionError("labels-of-several-data-sets")
        shared = arguments.labels, arguments.among
        sets = {name: vision.ImageSource(path, *shared) for name, path in arguments.images}
    what = (sets, arguments.classifiers, arguments.study)
    return vision.predict_sets(*what, progress=progress, **options)


def describe_kept(arguments: Namespace) -> str:
    return describe_kept_work(arguments.study and arguments.study / PREDICTIONS_FOLDER)
