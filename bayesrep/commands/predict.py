"""`bayesrep predict`: evaluate classifiers on images, and write their predictions into a study."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Any, get_args

import bayesrep
from bayesrep.choices import Precision
from bayesrep.commands.options import given_options, names
from bayesrep.commands.output import (
    emit,
    emit_table,
    finding,
    new_file,
    report_missing_arguments,
    say,
)


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("--images", type=Path, metavar="PATH", help="class folders, flat folder, .tar or .csv")
    option("--dataset", metavar="NAME", help="the data set's name in the study")
    option("--study", type=Path, help="the study's folder, created where needed")
    option(
        "--classifiers",
        type=names,
        metavar="NAMES|@FILE",
        help="names of timm or hf-hub:..., separated by commas, or a file with one a line",
    )
    option("--catalog", metavar="NAME", help="the classifiers of a paper: see --list")
    option("--list", action="store_true", help="list the catalogs and stop")
    option("--labels", type=Path, metavar="FILE", help="ground truth of a flat folder")
    option(
        "--classes", type=Path, metavar="FILE", help="index, name: the outputs, if not ImageNet's"
    )
    option(
        "--among",
        metavar="CLASSES",
        help="answers among some classes: imagenet-a, imagenet-r, a file with one a line, a folder "
        "of class folders, ObjectNet's mappings; or all",
    )
    option("--device", help="auto, cpu, cuda, cuda:1, mps")
    option("--batch-size", type=_count_or_auto, metavar="auto|N")
    option("--precision", choices=get_args(Precision))
    option("--compile", action="store_true", help="torch.compile, held to uncompiled answers")
    option("--workers", type=_count_or_auto, metavar="auto|N", help="threads")
    option("--weights", type=Path, metavar="DIR", help="files of weights instead of the hub's")
    option("--cache", type=Path, metavar="DIR", help="keep preprocessed images for later runs")
    option("--ray", metavar="ADDRESS|local", help="spread over Ray (extra [ray])")
    option(
        "--allow-failures",
        action="store_true",
        help="leave the study without images that cannot be decoded",
    )
    option("--force", action="store_true", help="predict again from the start")
    option("--no-progress", action="store_true", help="no progress on stderr")
    option("--csv", type=Path, metavar="FILE", help="also write the table here")


def _count_or_auto(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is neither auto nor a whole number above 0")
    return int(text)


def run(arguments: Namespace) -> int:
    from bayesrep.report.text import predictions_table
    from bayesrep.studies.reading import images_left_out
    from bayesrep.vision.stages import Stages

    if arguments.list:
        return _list_catalogs(arguments)
    needed = ("images", "dataset", "study")
    missing = [f"--{name}" for name in needed if getattr(arguments, name) is None]
    if not arguments.classifiers and not arguments.catalog:
        missing.append("--classifiers or --catalog")
    if missing:
        return report_missing_arguments("predict", missing)
    if arguments.csv:
        new_file(arguments.csv)
    arguments.classifiers = _classifiers(arguments)
    report = bayesrep.predict(
        arguments.images,
        arguments.dataset,
        arguments.classifiers,
        arguments.study,
        progress=not arguments.no_progress,
        **given_options(arguments, bayesrep.predict),
    )
    done = f"Written to {arguments.study}/predictions"
    text = "\n".join([predictions_table(report.table), *_choice(report), *report.changes(), done])
    if report.listed:
        text += f"\nNew in the study, with predictions on every data set: {len(report.listed)}"
    facts = {
        "failures": report.failures.to_dicts(),
        "listed": list(report.listed),
        "among": report.among or None,
        "outside": report.outside,
        "passes": [each.rounded() for each in report.stages],
        "stages": Stages.joined(report.stages).rounded(),
    }
    emit_table(arguments, report.table, text, facts, images_left_out(arguments.study))
    # An incomplete table is a finding, so that scripts notice.
    if left_out := len(report.left_out):
        return finding(
            f"{left_out} of {len(report.table)} classifiers were left out; the table says why"
        )
    if refused := len(report.refused):
        return finding(
            f"{refused} image{'s' if refused != 1 else ''} could not be decoded, {arguments.study}/"
            "failures.parquet says why; repair them and run this again, or give --allow-failures "
            "to leave the study without them"
        )
    return 0


def _choice(report: Any) -> list[str]:
    """Say which classes answers are among, and how many images show none of them."""
    if not report.among:
        return []
    left_out = f"; {report.outside:,} images of other classes are passed over"
    return [f"Answers: {report.among}{left_out if report.outside else ''}"]


def _classifiers(arguments: Namespace) -> list[str]:
    """The classifiers given, then those of the catalog that timm still has."""
    from bayesrep.vision import catalog_names

    given_names = arguments.classifiers or []
    if not arguments.catalog:
        return given_names
    known, vanished = catalog_names(arguments.catalog)
    for entry in vanished:
        say(f"{entry.classifier}: {entry.note}")
    return [*given_names, *(name for name in known if name not in given_names)]


def _list_catalogs(arguments: Namespace) -> int:
    from bayesrep.report.text import columns
    from bayesrep.vision.catalogs import CATALOGS, catalog_names, read_catalog

    parts: list[str] = []
    facts: dict[str, Any] = {}
    for name, source in CATALOGS.items():
        known, _ = catalog_names(name)
        entries = [(each, each.timm if each.timm in known else None) for each in read_catalog(name)]
        rows = [[entry.classifier, timm or "-", entry.note] for entry, timm in entries]
        parts.append(f"{name}: {source}\n\n{columns(['in the paper', 'in timm', ''], rows)}")
        facts[name] = [
            {"classifier": entry.classifier, "timm": timm, "note": entry.note}
            for entry, timm in entries
        ]
    return emit(arguments, "\n\n".join(parts), {"catalogs": facts})


def describe_kept(arguments: Namespace) -> str:
    from bayesrep.vision import describe_kept

    if arguments.study is None or not arguments.classifiers:
        return "nothing was written"
    return describe_kept(arguments.study, arguments.dataset, arguments.classifiers)
