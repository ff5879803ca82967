"""Readers of published data and of your own tables, one file a source; `READERS` has all."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bayesrep.sources import arrays, cifar10_1, cifar10h, evals, imagenetv2, madrylab, tables
from bayesrep.studies.draft import StudyContents

__all__ = ["READERS", "Reader"]


@dataclass(frozen=True)
class Reader:
    """Reader of one source, and its description for users.

    Attributes
    ----------
    read
        Function that takes a sequence of paths, and options by keyword where it has any.
    text
        Description of the source and its files.
    example
        Arguments of `bayesrep import`, after the name of the source.
    has_counts
        True if its files may hold counts of annotators.
    adds_counts
        True if its counts may be added to answers that await them.
    survey
        Function that lists the contents of the files before any choice: a row a data set, and
        groups of these; with paths and options as `read`.
    """

    read: Callable[..., StudyContents]
    text: str
    example: str
    has_counts: bool = True
    adds_counts: bool = False
    survey: Callable[..., Any] | None = None


READERS: Mapping[str, Reader] = {
    "tables": Reader(
        tables.read,
        "Your own tables, CSV, TSV, Excel, Parquet or gzipped: counts (dataset, image, selected, "
        "shown) or annotations (dataset, image, selected, and worker where known), predictions "
        "(dataset, image, classifier, correct, or label_1, the label that was predicted), and "
        "images with labels or groups where there are any. Columns are recognised by name; "
        "`bayesrep check` lists every problem in them.",
        "counts.csv predictions.csv --reference v1 --replication v2 --out my-study",
        adds_counts=True,
    ),
    "evals": Reader(
        evals.read_evaluations,
        "Logs of evaluations of language models: lm-evaluation-harness, Inspect, Every Eval Ever, "
        "or tables and JSON Lines of item, model and score. Items are images, models classifiers, "
        "judges annotators. Without --out it lists what the logs hold.",
        "logs --reference gsm8k --replication gsm1k --solvers org/a,org/b --out study",
        survey=evals.list_contents,
    ),
    "cifar10h": Reader(
        cifar10h.read,
        "A placebo on real annotators: two random parts of CIFAR-10's test set with the human "
        "answers of Peterson et al. (2019), so that the true gap is zero for every classifier. "
        "Takes github.com/jcpeterson/cifar-10h (cifar10h-counts.npy, with the true labels as a "
        ".npy vector beside) and github.com/modestyachts/CIFAR-10.1 (the predictions of 20 "
        "classifiers on CIFAR-10): the folders or the files, in any order. It does not compare "
        "CIFAR-10 with CIFAR-10.1: for that see cifar10.1.",
        "cifar-10h CIFAR-10.1 --out placebo",
    ),
    "cifar10.1": Reader(
        cifar10_1.read,
        "Predictions of 20 classifiers on CIFAR-10 and CIFAR-10.1: the folder "
        "github.com/modestyachts/CIFAR-10.1 and the labels of CIFAR-10's test set as a .npy "
        "vector. Nobody counted annotators, so they are for `papers compare`; "
        "counts may be added as a table.",
        "CIFAR-10.1 cifar10_test_set_original_labels.npy --out cifar",
        has_counts=False,
    ),
    "imagenetv2": Reader(
        imagenetv2.read,
        "Predictions of 45 classifiers on ImageNet and ImageNet-v2: the folder `data` of "
        "github.com/modestyachts/ImageNetV2. With a table of counts (dataset, image, selected, "
        "shown) they are a study; alone they are for `papers compare`.",
        "ImageNetV2/data counts.csv --out imagenet-v2",
    ),
    "madrylab": Reader(
        madrylab.read,
        "The annotations behind Engstrom et al. (2020), of github.com/MadryLab/"
        "dataset-replication-analysis: one frame of url, dataset (v1, v2), selected and "
        "correct_CLASSIFIER, as torch saved it (nothing in it is run), or as Parquet or CSV.",
        "frame.parquet --out engstrom",
    ),
    "arrays": Reader(
        arrays.read,
        "Data sets that come as arrays, such as CIFAR-10.2 and CINIC-10, a folder each, the "
        "reference's first: labels.npy (whole numbers), classes.txt if classes have names, and for "
        "each classifier NAME.npy (probabilities [N, K], class numbers [N], or the best [N, R]); "
        "for `papers compare`.",
        "cifar-10 cinic-10 --out cinic",
        has_counts=False,
    ),
}
