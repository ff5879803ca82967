"""Matched accuracy of several hundred classifiers, as Anzaku et al. (2022) have it of 564.

    python -m experiments.many_models --list          the classifiers of ImageNet
    python -m experiments.many_models --estimate      hours and disk, measured on this machine
    python -m experiments.many_models --rehearse      everything, small, in a minute
    python -m experiments.many_models --reference DIR --replication DIR --study STUDY

The paper's 564 are 286 networks of ImageNet from timm, of which it names 24, and 278 that it
trained on CIFAR-10 itself. ``--list`` has what timm has today of the architectures of its table 3,
without weights whose tags are younger than the paper. Classifiers of CIFAR-10 are your own:
``--weights`` is a folder with a folder for each, as timm saves it, and ``--classes`` the table of
their classes.

Classifiers that see the same pixels run together, so that pixels of one kind are on the disk at a
time. The same command goes on where it was stopped.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bayesrep
from bayesrep.commands.options import names as of_names
from bayesrep.errors import BayesrepError, PredictionError
from bayesrep.protocols import MatchedAccuracy, fit_lines, match, read_predictions
from bayesrep.protocols.matched import MATCH_ON
from bayesrep.report.table_format import columns, rows_table
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.vision import catalog_names
from bayesrep.vision.architectures import Architecture, describe
from bayesrep.vision.classes import IMAGENET, read_classes
from bayesrep.vision.devices import choose_device
from bayesrep.vision.timing import Stages
from bayesrep.vision.torch_loading import load_timm
from experiments.chain import CLASSIFIERS, make_data, train
from experiments.matched import mean_table
from experiments.model_costs import costs, estimate, in_same_pixels, measured
from experiments.papers.anzaku2022 import confidence_scatter, matched_accuracy_figure
from experiments.style import save_figure

IMAGES = 60_000  # of ImageNet's validation set and of ImageNet-v2
# The architectures of table 3, as timm names begin.
_FAMILIES = re.compile(
    r"(tf_|legacy_|gluon_)*(vgg|densenet|resnet\d|resnext|inception_resnet|efficientnet(?!v2)|dpn|"
    r"seresne|senet|hrnet|deit_|pnasnet|visformer|vit_(tiny|small|base|large|huge)_)"
)
_LATER = re.compile(r"clip|in12k|ra4_e|rope|sbb")  # tags of recipes published after the paper


def imagenet_classifiers() -> list[str]:
    """Names in timm, those first that the paper names."""
    timm = load_timm()
    named, _ = catalog_names("anzaku2022")
    others = [
        name
        for name in timm.list_pretrained()
        if _FAMILIES.match(name)
        and not _LATER.search(name)
        and timm.get_pretrained_cfg(name).num_classes == len(IMAGENET)
    ]
    return list(dict.fromkeys([*named, *others]))


def saved_classifiers(weights: Path) -> list[str]:
    """Names of the folders of classifiers that timm has saved."""
    return sorted(file.parent.name for file in weights.glob("*/config.json"))


def evaluate(
    images: dict[str, Path],
    names: Sequence[str],
    study: Path,
    labels: Path | None = None,
    **options: Any,
) -> tuple[Stages, list[str]]:
    """Predict both data sets, classifiers that see the same pixels together; what was left out.

    The labels are the reference's.
    """
    passes: list[Stages] = []
    groups, left_out = _described(names, options)
    for role, path in images.items():
        truth = labels if role == REQUIRED_ROLES[0] else None
        for group in groups:
            asked = [each.name for each in group]
            try:
                report = bayesrep.predict(path, role, asked, study, labels=truth, **options)
            except PredictionError as error:
                if not (study / "predictions" / role).is_dir():  # nothing works: images, device
                    raise
                left_out += [f"{role}, {name}: {error}" for name in asked]
                continue
            passes += report.stages
            rows = report.left_out.iter_rows(named=True)
            left_out += [f"{role}, {row['classifier']}: {row['status']}" for row in rows]
    return Stages.joined(tuple(passes)), left_out


def _described(
    names: Sequence[str], options: dict[str, Any]
) -> tuple[list[list[Architecture]], list[str]]:
    """Groups of classifiers that see the same pixels, and why some are left out."""
    classes = IMAGENET if options.get("classes") is None else read_classes(options["classes"])
    found: list[Architecture] = []
    refused: list[str] = []
    for name in names:
        try:
            found.append(describe(name, options.get("weights"), classes))
        except PredictionError as error:
            refused.append(str(error))
    return in_same_pixels(found), refused


def compared(study: Path, seed: int = 0) -> tuple[MatchedAccuracy, str]:
    """Matched accuracies of all classifiers that have answers on both, and the printed tables."""
    both = read_predictions(study, REQUIRED_ROLES, ranks=1, confidence=True)
    found = match(*both, seed=seed, progress=False)
    accuracies = [each.correct.mean(axis=1) for each in both]
    wide = found.accuracies.pivot("quantity", index=["criterion", "classifier"], values="estimate")
    rows = [
        [criterion, f"{(part['matched_gap'].abs() < part['gap'].abs()).sum()} of {len(part)}"]
        for (criterion,), part in wide.group_by("criterion", maintain_order=True)
    ]
    correlation = np.corrcoef(
        found.confidence["accuracy"].to_numpy(), found.confidence["confidence"].to_numpy()
    )[0, 1]
    text = [
        mean_table(found),
        columns(["criterion", "gap narrower when matched"], rows),
        f"accuracy and mean confidence correlate by {correlation:.2f}",
    ]
    if len(both[0].classifiers) > 2:
        text.append(rows_table(fit_lines(*accuracies)))
    return found, "\n\n".join(text)


def write(found: MatchedAccuracy, out: Path) -> None:
    """Tables and the figures 1 and 4 (algorithm 1), 7 (algorithm 2)."""
    out.mkdir(parents=True, exist_ok=True)
    found.accuracies.write_csv(out / "accuracies.csv")
    found.confidence.write_csv(out / "confidence.csv")
    found.curves.write_csv(out / "curves.csv")
    save_figure(confidence_scatter(found.confidence), out / "confidence.png")
    for criterion in MATCH_ON:
        figure = matched_accuracy_figure(found.accuracies, criterion)
        save_figure(figure, out / f"matched-{criterion.replace('+', '-')}.png")


def run(
    images: dict[str, Path], names: Sequence[str], study: Path, out: Path, **options: Any
) -> int:
    """Everything: predictions, tables and figures."""
    stages, left_out = evaluate(images, names, study, **options)
    if stages.images:
        print(f"{stages.images:,} images went by: {stages.line()}")
    print("\n".join(["left out:", *left_out]) if left_out else "no classifier left out")
    found, text = compared(study)
    write(found, out)
    print(f"\n{text}\n")
    return 1 if left_out else 0


def rehearse(images: int, root: Path, out: Path) -> int:
    """The same with drawn images of eight classes and three small fitted networks, twice."""
    make_data(root, images, seed=0)
    train(root / "weights", 2 * images, seed=0)
    sets = {role: root / name for role, name in zip(REQUIRED_ROLES, ("v1", "v2"), strict=True)}
    options: dict[str, Any] = {"weights": root / "weights"}
    status = run(sets, CLASSIFIERS, root / "study", out, **options)
    again, _ = evaluate(sets, CLASSIFIERS, root / "study", **options)
    files = list((root / "study" / "predictions").glob("*/*.parquet"))
    answers = 2 * images * len(CLASSIFIERS)
    size = sum(file.stat().st_size for file in files) / answers
    print(f"The same again evaluates {again.images} images. An answer takes {size:.0f} bytes.")
    return status or int(again.images > 0)


def estimated(names: Sequence[str], images: int, device: str) -> str:
    """Say what a run takes on this machine."""
    choose_device(device)  # before minutes of counting
    found = costs(names)
    machine = measured(list(dict.fromkeys(c.architecture.preprocessing for c in found)), device)
    numbers = estimate(found, images, machine)
    rows = [
        ["classifiers", f"{numbers['classifiers']:,}"],
        ["images", f"{numbers['images']:,}"],
        ["operations", f"{numbers['operations'] / 1e18:.2f} x 10^18"],
        ["weights to fetch", f"{numbers['weights_bytes'] / 1e9:,.0f} GB"],
        ["largest weights", f"{numbers['largest_weights_bytes'] / 1e9:.1f} GB"],
        ["pixels on the disk at a time", f"{numbers['pixels_bytes'] / 1e9:,.0f} GB at most"],
        ["answers", f"{numbers['answers_bytes'] / 1e9:.1f} GB"],
        ["reading, decoding, preprocessing", f"{numbers['reading_hours']:,.1f} h"],
        ["computing", f"{numbers['computing_hours']:,.1f} h"],
        [
            f"all, on {numbers['device']} with {machine.crew.readers} cores",
            f"{numbers['hours']:,.1f} h",
        ],
    ]
    speeds = ", ".join(f"{kind} {rate / 1e9:,.0f}" for kind, rate in numbers["rates"].items())
    hours = numbers["operations"] / 20e12 / 3600
    return (
        f"{columns(['what it takes', ''], rows)}\n\n10^9 operations a second of one core or GPU, "
        f"by kind of network: {speeds}. A GPU that keeps up 20 x 10^12 computes for {hours:,.0f} h."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment, or say what it would take."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.many_models",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    option = parser.add_argument
    option("--list", action="store_true", help="print the names and stop")
    option("--estimate", action="store_true", help="say what it takes and stop")
    option("--rehearse", action="store_true", help="small images and networks, no network needed")
    option("--images", type=int, help=f"of the estimate ({IMAGES:,}) or the rehearsal (100)")
    option("--reference", type=Path, metavar="PATH", help="as --images of bayesrep predict")
    option("--replication", type=Path, metavar="PATH")
    option("--study", type=Path)
    option("--out", type=Path, metavar="DIR", help="tables and figures (STUDY/many-models)")
    option("--classifiers", type=of_names, metavar="NAMES|@FILE", help="instead of --list")
    option("--weights", type=Path, metavar="DIR")
    option("--classes", type=Path, metavar="FILE")
    option("--labels", type=Path, metavar="FILE", help="of a flat reference folder")
    option("--device", default="auto")
    option("--compile", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.images is not None and arguments.images < 20:
        parser.error(f"{arguments.images} images are too few; give 20 or more")
    if arguments.rehearse:
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            return rehearse(arguments.images or 100, root, arguments.out or root / "out")
    if arguments.classes and not (arguments.classifiers or arguments.weights):
        parser.error("--classes takes --weights or --classifiers")
    try:
        return _asked(parser, arguments)
    except (BayesrepError, OSError) as error:
        parser.error(str(error))


def _asked(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    chosen = _names(arguments)
    if arguments.list:
        print("\n".join(chosen))
        return 0
    if arguments.estimate:
        print(estimated(chosen, arguments.images or IMAGES, arguments.device))
        return 0
    if not (arguments.reference and arguments.replication and arguments.study):
        parser.error("--reference, --replication and --study are needed; or --rehearse")
    options = {
        name: getattr(arguments, name)
        for name in ("weights", "classes", "labels", "device", "compile")
    }
    sets = dict(zip(REQUIRED_ROLES, (arguments.reference, arguments.replication), strict=True))
    out = arguments.out or arguments.study / "many-models"
    status = run(sets, chosen, arguments.study, out, **options)
    print(f"Tables and figures in {out}")
    return status


def _names(arguments: argparse.Namespace) -> list[str]:
    if arguments.classifiers:
        return arguments.classifiers
    if arguments.classes:
        return saved_classifiers(arguments.weights)
    return imagenet_classifiers()


if __name__ == "__main__":
    sys.exit(main())
