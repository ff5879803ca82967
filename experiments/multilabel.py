"""Multi-label accuracy on ImageNet: the 45 published classifiers and the reassessed labels.

    python -m experiments.multilabel DIR --labels real.json --classes superclasses.npy \
        --objects annotations_classify_task.pkl --images image_info.pkl

DIR is the ``data`` folder of github.com/modestyachts/ImageNetV2; real.json holds the label sets of
Beyer et al. (2020), superclasses.npy the 11 superclasses of Tsipras et al. (2020), and
annotations_classify_task.pkl what their annotators chose, image_info.pkl which images were clear
without it (nothing in either is executed). By these their figures 3 to 6 and 22 are made again.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from bayesrep import cli
from bayesrep.protocols import (
    class_subsets,
    compare_labels_with_people,
    compare_predictions_with_people,
    multilabel,
    read_groups,
    read_label_sets,
    read_people,
)
from bayesrep.report.protocols_text import multilabel_table
from bayesrep.report.table_format import percent, rows_table
from bayesrep.sources.imagenetv2 import VALIDATION_SET, read_test_set
from experiments.results import save
from experiments.style import Color, legend_below, panels


def multilabel_figure(table: pl.DataFrame) -> Any:
    """Multi-label against top-1 accuracy, and both on images with one and with several labels.

    Parameters
    ----------
    table
        Of `bayesrep.protocols.multilabel`.
    """
    wide = table.pivot("metric", index=["classifier", "subset"], values="accuracy")
    every = wide.filter(pl.col("subset") == "all").sort("top-1")
    figure, (left, right) = panels(2)
    x = 100 * every["top-1"].to_numpy()
    left.plot(x, x, color=Color.GREY, lw=1, ls="--", label="y = x")
    for metric, color in (("multi-label", Color.BLUE), ("top-5", Color.RED)):
        if metric in every.columns:
            left.plot(x, 100 * every[metric].to_numpy(), "o", ms=3.5, color=color, label=metric)
    left.set_ylabel("accuracy (%)")
    order = every.select("classifier")
    for subset, fill in (("one label", "full"), ("several labels", "none")):
        rows = order.join(wide.filter(pl.col("subset") == subset), on="classifier", how="left")
        for metric, color in (("top-1", Color.INK), ("multi-label", Color.BLUE)):
            right.plot(
                x,
                100 * rows[metric].to_numpy(),
                "o",
                ms=3.5,
                fillstyle=fill,
                color=color,
                label=f"{metric}, {subset}",
            )
    right.set_ylabel("accuracy (%)")
    for axes in (left, right):
        axes.set_xlabel("top-1 accuracy on all images (%)")
    legend_below(figure, columns=4)
    return figure


def findings(table: pl.DataFrame) -> dict[str, Any]:
    """What the papers say of their classifiers, of these."""
    wide = table.pivot("metric", index=["classifier", "subset"], values="accuracy")
    every = wide.filter(pl.col("subset") == "all")
    one, several = (
        wide.filter(pl.col("subset") == f"{part}") for part in ("one label", "several labels")
    )
    top1, top5, multi = (every[name].to_numpy() for name in ("top-1", "top-5", "multi-label"))
    return {
        "median_multi_label_less_top1": float(np.median(multi - top1)),
        "median_top5_less_multi_label": float(np.median(top5 - multi)),
        "correlation_with_top1": float(np.corrcoef(top1, multi)[0, 1]),
        "top1_drop_on_several": float((one["top-1"] - several["top-1"]).mean()),  # type: ignore[arg-type]
        "multi_label_drop_on_several": float(
            (one["multi-label"] - several["multi-label"]).mean()  # type: ignore[arg-type]
        ),
        "corrections_that_forgave_nothing": float(every["top-5 corrections already right"].mean()),  # type: ignore[arg-type]
    }


def objects_file(annotations: Path, images: Path, study: Path, file: Path) -> dict[str, int]:
    """What the published annotators see, as `bayesrep collect read --table objects` writes it.

    Returns
    -------
    dict
        How many images there are of each fate.
    """
    command = ["collect", "read", annotations, "--table", "objects", "--fates", images]
    command += ["--study", study]
    said = StringIO()
    with redirect_stdout(said):
        status = cli.main([*map(str, command), "--out", str(file), "--force", "--json"])
    if status:
        raise SystemExit(status)
    return json.loads(said.getvalue())["images"]


def imported(data: Path, folder: Path) -> Path:
    """The published answers as a study, as `bayesrep import imagenetv2` writes it."""
    study = folder / "study"
    command = ["import", "imagenetv2", str(data), "--out", str(study)]
    with redirect_stdout(StringIO()):
        status = cli.main([*command, "--quiet"])
    if status:
        raise SystemExit(status)
    return study


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/papers.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.multilabel", description=__doc__)
    parser.add_argument("data", type=Path, metavar="DIR")
    parser.add_argument("--labels", type=Path, required=True, metavar="FILE")
    parser.add_argument("--classes", type=Path, required=True, metavar="FILE")
    parser.add_argument("--objects", type=Path, required=True, metavar="FILE")
    parser.add_argument("--images", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args(argv)
    predictions = read_test_set(arguments.data, VALIDATION_SET)
    sets = read_label_sets([arguments.labels], predictions)
    groups = read_groups(arguments.classes, predictions.classes)
    table = multilabel(predictions, sets, subsets=class_subsets(predictions.classes, groups))
    with TemporaryDirectory() as folder:
        file, study = Path(folder) / "objects.csv", imported(arguments.data, Path(folder))
        objects_file(arguments.objects, arguments.images, study, file)
        people = read_people(predictions, objects=file)
    sees = compare_labels_with_people(predictions, people)
    judges = compare_predictions_with_people(predictions, people)
    means = judges.group_by("statistic", "figure", maintain_order=True).agg(
        pl.col("of", "share").mean(), least=pl.col("share").min(), most=pl.col("share").max()
    )
    text = (
        f"{multilabel_table(table)}\n\nWhat people see (Tsipras et al., 2020):\n\n"
        f"{rows_table(sees)}\n\nMeans over the classifiers:\n\n{rows_table(means)}"
    )
    print(text)
    found = findings(table)
    by = {row["statistic"]: row["share"] for row in means.iter_rows(named=True)}
    drop = by["one object: right by the own label"] - by["several objects: right by the own label"]
    corrections = {
        row["classifier"]: row["share"]
        for row in judges.filter(pl.col("figure") == "22").iter_rows(named=True)
    }
    numbers = {
        "findings": found,
        "people": sees.to_dicts(),
        "judged": judges.to_dicts(),
        "images_without_a_right_label": int((sets.known & (sets.sizes == 0)).sum()),
        "images_with_several": int((sets.sizes > 1).sum()),
        "rows": table.to_dicts(),
    }
    remarks = (
        f"Of 50,000 images {numbers['images_without_a_right_label']:,} have no right label and are "
        f"left out, {numbers['images_with_several']:,} have several. Multi-label accuracy is "
        f"{percent(found['median_multi_label_less_top1'])} points above top-1 and "
        f"{percent(found['median_top5_less_multi_label'])} below top-5 in the median (8.9 and 7.4 "
        "by the labels of Shankar et al., 2020, on other classifiers); its correlation with top-1 "
        f"is {found['correlation_with_top1']:.4f}. Of the answers that top-5 put right, "
        f"{percent(found['corrections_that_forgave_nothing'], 0)} % named another right label at "
        "first; the others were mistakes.\n\n"
        f"On images with several labels top-1 is {percent(found['top1_drop_on_several'])} points "
        "lower than on those with one, multi-label accuracy "
        f"{percent(found['multi_label_drop_on_several'])}: many of these images are ambiguous. By "
        "what people see (3,380 images of the Classify task, half of the published, and as large a "
        "part of those that were clear) top-1 is "
        f"{percent(drop)} points lower on several objects than on one (more than 10 in the paper), "
        f"and the answers that are the label of one of several objects, "
        f"{percent(by['several objects: right by any object'])} %, are nearly as many as top-1 has "
        f"right where there is one, {percent(by['one object: right by the own label'])} %: the "
        "paper's figure 4. Of the top-5 corrections "
        f"{percent(corrections['resnet50'])} % (resnet50) and "
        f"{percent(corrections['nasnet_large_tf'])} % (nasnet_large_tf) are two objects, about "
        "20 % in the paper."
    )
    command = (
        "python -m experiments.multilabel DIR --labels real.json --classes superclasses.npy "
        "--objects annotations_classify_task.pkl --images image_info.pkl"
    )
    save("multi-label", command, numbers, text, multilabel_figure(table), remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
