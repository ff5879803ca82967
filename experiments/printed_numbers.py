"""The numbers that four papers print, computed again of their published data.

    python -m experiments.printed_numbers DATA

DATA holds published files, each folder as its owners publish it: imagenetv2/data (Recht et al.,
2019), cifar10.1 and cifar10h (labels of CIFAR-10), imagenet-multilabel (Tsipras et al., 2020; half
of the Classify task's images), reassessed-imagenet (Beyer et al., 2020), timm-results. What is not
at hand, and what rests on it, is said in the row. The simulated study is no data of theirs: nothing
here is taken from it.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from scipy.stats import binomtest

from bayesrep.protocols import (
    compare_labels_with_people,
    compare_predictions_with_people,
    imagenet_subsets,
    multilabel,
    proportion_interval,
    read_groups,
    read_label_sets,
    read_people,
    shankar2020,
)
from bayesrep.report.table_format import percent
from bayesrep.sources.cifar10_1 import read_answers
from bayesrep.sources.imagenetv2 import MATCHED_FREQUENCY_SET, VALIDATION_SET, read_test_set
from bayesrep.studies.populations import published_accuracies
from experiments.multilabel import imported, objects_file
from experiments.papers.printed import printed_numbers
from experiments.papers.tsipras2020.labels import label_numbers
from experiments.results import save

AGREES, DIFFERS, HALF, NOT = "agrees", "differs", "half of the data", "not at hand"
DRAW = "python -m experiments.papers"
TEN = "alexnet densenet161 resnet50 vgg16 inceptionv3".split()
"""Of the ten classifiers of Tsipras et al., appendix B.1.1, those among the 45 (or their like)."""
SUPERCLASSES = (130, 88, 59, 60, 61, 63, 172, 90, 92, 117, 68)


@dataclass(frozen=True)
class Found:
    """A number computed again.

    Attributes
    ----------
    key
        Of `printed_numbers`.
    ours
        As text.
    agreement
        One of four words.
    command
        That makes it.
    why
        Why it differs, or what it is of.
    """

    key: str
    ours: str
    agreement: str
    command: str
    why: str = ""


def _is(agrees: bool) -> str:  # noqa: FBT001
    return AGREES if agrees else DIFFERS


def of_engstrom() -> Iterator[Found]:
    """From table 2 alone: their answers and counts are not published in files at hand."""
    names, reference, replication = published_accuracies()
    simulated = "bayesrep simulate full --classifiers 136; bayesrep check full"
    yield Found("classifiers", f"{len(names)}", _is(len(names) == 136), simulated)
    drop = float((reference - replication).mean())
    why = "table 2's own mean; the text does not say over which classifiers it averages"
    yield Found("drop", percent(drop, 2), DIFFERS, "bayesrep papers compare full", why)
    slope = float(np.polyfit(reference, replication, 1)[0])
    near = abs(slope - 1.13) <= 0.05
    yield Found("slope", f"{slope:.2f}", _is(near), "bayesrep papers compare full --table lines")
    half = 100 * 1.96 * np.sqrt(replication * (1 - replication) / 10_000)
    why = "a share of 10,000 images cannot be known so well: √(A (1 − A) / N)"
    ours = f"± {half.min():.2f} to {half.max():.2f}"
    yield Found("finite-sample", ours, DIFFERS, "bayesrep check STUDY", why)
    share = 10 / (10 + 2 + 2)
    by_hand = _share_of_reference(10, 2, 2)
    text, command = (
        f"{by_hand:.4f} = 10 / 14",
        f"{DRAW} paper-3 --set annotators=10",
    )
    yield Found("equation-1", text, _is(abs(by_hand - share) < 1e-6), command)
    why = "counts and answers of their study are no files at hand; any study's are on its page"
    for key in (
        *("reference-frequency", "replication-frequency", "cleaned-frequency", "naive-gain"),
        *("naive-gap", "jackknife-gap", "em-gap", "selection-gap", "em-slope", "half"),
    ):
        yield Found(key, "–", NOT, f"{DRAW} engstrom2020 STUDY --out DIR", why)
    why = "answers of Recht et al. about the pool of candidates are no files at hand"
    for key in ("candidates-10", "candidates-5", "held-out"):
        yield Found(key, "–", NOT, "bayesrep collect match STUDY --check", why)


def _share_of_reference(n: int, a: float, b: float) -> float:
    """How much of p₁ there is in what matching on n answers accepts, by summing over the counts."""
    from scipy.stats import beta, betabinom

    s = np.linspace(1e-4, 1 - 1e-4, 20_001)
    k = np.arange(n + 1)
    ratio = betabinom.pmf(k, n, a + 1, b) / betabinom.pmf(k, n, a, b)
    binomial = betabinom.pmf(k, n, 1, 1)[:, None] * beta.pdf(s, k[:, None] + 1, n - k[:, None] + 1)
    accepted = beta.pdf(s, a, b) * (ratio @ binomial)
    one, flickr = beta.pdf(s, a + 1, b), beta.pdf(s, a, b)
    return float(np.linalg.lstsq(np.column_stack([one, flickr]), accepted, rcond=None)[0][0])


def of_anzaku(data: Path) -> Iterator[Found]:
    """From published answers without probabilities: what does not need these."""
    yield Found("models", f"{278 + 286}", _is(278 + 286 == 564), "–")
    from bayesrep.vision.catalogs import read_catalog

    named = len(read_catalog("anzaku2022"))
    yield Found(
        "named-models",
        f"{named}",
        _is(named == 24),
        "bayesrep predict --classifiers anzaku2022 ...",
    )
    both = [
        read_test_set(data / "imagenetv2" / "data", name)
        for name in (VALIDATION_SET, MATCHED_FREQUENCY_SET)
    ]
    sizes = [len(each.images) for each in both]
    text = f"{sizes[0]:,} and {sizes[1]:,}"
    command = (
        "bayesrep import imagenetv2 imagenetv2/data --out study; bayesrep papers compare study"
    )
    yield Found("sizes-imagenet", text, _is(sizes == [50_000, 10_000]), command)
    gaps = both[0].correct.mean(axis=1) - both[1].correct.mean(axis=1)
    network = [not name.startswith("fv_") for name in both[0].classifiers]
    text = f"{percent(gaps[network].min())} to {percent(gaps[network].max())}"
    within = gaps[network].min() >= 0.105 and gaps[network].max() < 0.145
    why = "networks alone; the two Fisher vector classifiers lose 8.3 and 9.2" if not within else ""
    others = ", ".join(percent(gap) for gap in gaps[~np.array(network)])
    why = f"43 networks of 45 classifiers; the two Fisher vectors lose {others}"
    yield Found("drop-imagenet", text, _is(bool(within)), command, why)
    labels = data / "cifar10h" / "cifar10_test_set_original_labels.npy"
    command = (
        "bayesrep import cifar10.1 cifar10.1 LABELS --out study; bayesrep papers compare study"
    )
    cifar = read_answers(data / "cifar10.1", labels, version="v6")
    sizes = [len(each.images) for each in cifar]
    text, right = f"{sizes[0]:,} and {sizes[1]:,} (v6)", sizes == [10_000, 2_000]
    yield Found("sizes-cifar", text, _is(right), command, "v4 has 2,021 images")
    gaps = cifar[0].correct.mean(axis=1) - cifar[1].correct.mean(axis=1)
    text = f"{percent(gaps.min())} to {percent(gaps.max())}"
    within = 0.025 < gaps.min() and gaps.max() < 0.155
    yield Found("drop-cifar", text, _is(bool(within)), command, "20 classifiers, v6")
    why = "no probabilities of it are at hand, and timm's published accuracies here leave it out"
    near = _timm_gap(data, "resnext101_32x32d.fb_wsl_ig1b_ft_in1k")
    more = f"{why}; its smaller sister 32x32d has {near:.2f}"
    yield Found("gap", "–", NOT, "python -m experiments.timm_results DIR", more)
    why = "published predictions with probabilities are no files at hand"
    for key in ("matched-gap", "unmatched-accuracy", "narrower"):
        yield Found(key, "–", NOT, f"{DRAW} anzaku2022 STUDY --out DIR", why)


def _timm_gap(data: Path, model: str) -> float:
    folder = data / "timm-results"
    top1 = [
        pl.read_csv(folder / f"results-{name}.csv").filter(pl.col("model") == model)["top1"][0]
        for name in ("imagenet", "imagenetv2-matched-frequency")
    ]
    return float(top1[0] - top1[1])


def of_shankar(data: Path) -> Iterator[Found]:
    """Tables 1 and 2 against each other and the text; and what label sets of others say."""
    masks, table = imagenet_subsets(), shankar2020()
    command = f"{DRAW} shankar2020 study --input labels=real.json --out DIR"
    for key, name, printed in (
        ("objects", "objects", 590),
        ("organisms", "organisms", 410),
        ("dogs", "dogs", 118),
        ("without-dogs", "without dogs", 882),
    ):
        size = int(masks[name].sum())
        why = "398 animals, 3 kinds of people, 2 plants, 7 fungi" if key == "organisms" else ""
        yield Found(key, f"{size}", _is(size == printed), command, why)
    every = table.filter(subset="all")
    published = "bayesrep papers compare study --table published"
    for role in ("reference", "replication"):
        right = np.rint(1000 * every[f"{role}_accuracy"].to_numpy())
        ends = proportion_interval(right, np.full(8, 1000), "clopper-pearson")
        fits = np.all(
            [
                np.abs(end - every[f"{role}_{name}"].to_numpy()) <= 0.00101
                for end, name in zip(ends, ("lower", "upper"), strict=True)
            ],
            axis=0,
        )
        why = "" if fits.all() else "each is that of 3 or 4 more right answers: the page of papers"
        text = f"{int(fits.sum())} of 8"
        yield Found(f"intervals-{role}", text, _is(bool(fits.all())), published, why)
    gaps = (every["reference_accuracy"] - every["replication_accuracy"] - every["gap"]).to_numpy()
    exact = int((np.abs(gaps) < 0.0005).sum())
    why = "the others differ by 0.1, as gaps of accuracies before rounding may"
    yield Found("gaps", f"{exact} of 8", _is(np.abs(gaps).max() < 0.00101), published, why)
    machines, people = (every.filter(kind=kind) for kind in ("classifier", "human"))
    low, high = machines["gap"].min(), machines["gap"].max()
    text = f"{percent(low)} to {percent(high)}"  # type: ignore[arg-type]
    yield Found("machine-drop", text, AGREES, published, "three classifiers of 72 are printed")
    most = float(people["gap"].abs().max())  # type: ignore[arg-type]
    yield Found("human-drop", percent(most), _is(most <= 0.01), published)
    yield from _changes(table)
    yield from _arithmetic()
    sets_of = read_test_set(data / "imagenetv2" / "data", VALIDATION_SET)
    yield from _by_label_sets(data, sets_of)


def _changes(table: pl.DataFrame) -> Iterator[Found]:
    command = (
        "bayesrep papers compare study --table subsets --input humans=FILE --input labels=FILE"
    )
    printed = {
        "dogs-humans": ("without dogs", 1.9, 1.8),
        "dogs-best": ("without dogs", 0.6, 1.1),
        "objects-humans": ("objects", 3.3, 3.4),
        "objects-best": ("objects", -0.5, -0.5),
    }
    roles = ("reference_accuracy", "replication_accuracy")
    for key, (subset, *wanted) in printed.items():
        who = pl.col("kind") == "human" if key.endswith("humans") else pl.lit(value=True)
        if key.endswith("best"):
            who = pl.col("participant") == "FixResNeXt"
        part, every = (table.filter(who, subset=name) for name in (subset, "all"))
        changes = [100 * float((part[role] - every[role]).mean()) for role in roles]  # type: ignore[arg-type]
        text = " and ".join(f"{change:.1f}".replace("-", "−") for change in changes)
        # Of a mean over rounded accuracies, half of the last digit.
        fits = all(abs(a - b) < 0.101 for a, b in zip(changes, wanted, strict=True))
        why = "" if fits else "table 2: 96.0 − 95.5 and 90.1 − 89.6; AdvProp gains 0.5 and 1.0"
        yield Found(key, text, _is(fits), command, why)


def _arithmetic() -> Iterator[Found]:
    pairs = "bayesrep papers compare STUDY --table pairs --input humans=FILE --input labels=FILE"
    for key, lead, printed in (("mcnemar", 18, 0.037), ("mcnemar-v2", 43, 0.0002)):
        fitting = [
            n
            for n in range(lead, 400, 2)
            if abs(binomtest((n - lead) // 2, n).pvalue / printed - 1) < 0.05
        ]
        text = f"{fitting[0]} to {fitting[-1]} discordant images" if fitting else "none fits"
        why = (
            f"single answers are no files at hand; a lead of {lead} images in 1,000 has this p then"
        )
        yield Found(key, text, NOT, pairs, why)
    why = (
        "of 1,000 images each; 756 and 714 are 77 and 73 % of 982 and 978, which the text names not"
    )
    fast = "bayesrep papers compare STUDY --table subsets --input humans=FILE"
    yield Found("fast", f"{75.6} and {71.4}", DIFFERS, fast, why)
    total = 1320 + 531 + 239
    why = "90 more than there were; some were both, or are counted twice"
    review = "bayesrep collect tasks --kind review"
    yield Found("reviewed", f"{total:,}", DIFFERS, review, why)
    total = 19 + 8
    why = "the sum of the text's parts; the images themselves are no files at hand"
    missed = "bayesrep papers compare STUDY --table missed --input humans=FILE --input labels=FILE"
    yield Found("missed-classifiers", f"{total}", _is(total == 27), missed, why)
    why = "people's answers are no files at hand"
    yield Found("missed-people", "–", NOT, missed, why)


def _by_label_sets(data: Path, predictions: object) -> Iterator[Found]:
    from bayesrep.studies.predictions import Predictions

    assert isinstance(predictions, Predictions)
    sets = read_label_sets([data / "reassessed-imagenet" / "real.json"], predictions)
    command = "bayesrep papers compare study --table multilabel --input labels=real.json"
    other = "other label sets (Beyer et al., 2020), 45 other classifiers; their own are not at hand"
    keys = np.arange(len(predictions.images)) * len(predictions.classes) + predictions.first
    distinct = len(np.unique(keys))
    why = "top-1 of 45 other classifiers on 50,000 images; theirs are of 72 on 40,683"
    review = "bayesrep collect tasks study --kind review"
    yield Found("predictions", f"{distinct:,}", NOT, review, why)
    sizes = sets.sizes[sets.sizes > 0]
    yield Found("several", percent(float((sizes > 1).mean())), DIFFERS, command, other)
    yield Found("labels", f"{sizes[sizes > 1].mean():.1f}", DIFFERS, command, other)
    wide = multilabel(predictions, sets, subsets={}, trials=1).filter(subset="all")
    wide = wide.pivot("metric", index="classifier", values="accuracy")
    multi = wide["multi-label"].to_numpy()
    above, below = (
        np.median(np.abs(multi - wide[metric].to_numpy())) for metric in ("top-1", "top-5")
    )
    yield Found("above-top1", percent(float(above)), DIFFERS, command, other)
    yield Found("below-top5", percent(float(below)), DIFFERS, command, other)


def of_tsipras(data: Path) -> Iterator[Found]:
    """From half of the images of the Classify task, and what is said of all 10,000."""
    folder = data / "imagenet-multilabel"
    predictions = read_test_set(data / "imagenetv2" / "data", VALIDATION_SET)
    with TemporaryDirectory() as place:
        file, study = Path(place) / "objects.csv", imported(data / "imagenetv2/data", Path(place))
        source = folder / "annotations_classify_task.pkl"
        kinds = objects_file(source, folder / "image_info.pkl", study, file)
        people = read_people(predictions, objects=file)
    first = (
        "bayesrep collect read annotations_classify_task.pkl --table objects --fates "
        "image_info.pkl --study study --out objects.csv"
    )
    went, unselected = kinds["classify"], kinds["own label never selected"]
    yield Found("classify", f"{went:,}", _is(went == 6761), first)
    yield Found("unselected", f"{unselected:,}", _is(unselected == 150), first)
    table = compare_labels_with_people(predictions, people)
    sees = {row["statistic"]: row for row in table.to_dicts()}
    said = pl.DataFrame(compare_predictions_with_people(predictions, people))
    mean = dict(said.group_by("statistic").agg(pl.col("share").mean()).rows())
    half = "3,380 of 6,761 images: half would be {:,}"
    command = f"{first}; bayesrep papers compare study --table people --input objects=objects.csv"
    several = sees["with several objects, the main one is another"]
    for key, number, whole in (
        ("several-objects", several["of"], 2156),
        ("other-main", several["images"], 650),
        ("unchosen", sees["the own label is chosen for no object"]["images"], 119),
    ):
        # Of the images of the whole, each is in the half by chance: four standard errors.
        share = whole / 6761
        error = np.sqrt(whole * 0.25 * (1 - share))
        fits = abs(number - whole * 3380 / 6761) < 4 * error
        word = HALF if fits else DIFFERS
        yield Found(key, f"{number:,}", word, command, half.format(round(whole / 2)))
    total = several["of"] / sees["1 object"]["of"]
    with_clear = "and as large a part of the 2,923 images that were clear, which show one object"
    of_judged = f"{first}; bayesrep papers compare study --table judged --input objects=objects.csv"
    yield Found("fifth", percent(total), _is(total > 0.2), command, with_clear)
    one, many = (f"{part}: right by the own label" for part in ("one object", "several objects"))
    drop = mean[one] - mean[many]
    yield Found("top1-drop", percent(drop), _is(drop > 0.1), of_judged, "mean of 45 classifiers")
    near = mean["several objects: right by any object"] - mean[one]
    yield Found("any-object", percent(near), _is(abs(near) < 0.03), of_judged, "figure 4(b)")
    best = said.filter(statistic="top-5 corrections that are two objects")
    last = {row["classifier"]: row["share"] for row in best.to_dicts()}["nasnet_large_tf"]
    why = "nasnet_large_tf, one of the more recent"
    yield Found("corrections", percent(last), _is(abs(last - 0.2) < 0.03), of_judged, why)
    assert people.number is not None
    assert people.main is not None
    agree = float((people.main == predictions.labels)[people.number > 0].mean())
    why = f"{with_clear}; the 316 ambiguous or never selected images are left out"
    yield Found("agree", percent(agree), _is(abs(agree - 0.8) < 0.05), command, why)
    why = "answers of the Contains task are no files at hand"
    for key in ("as-often", "half-as-often"):
        yield Found(
            key,
            "–",
            NOT,
            f"{DRAW} tsipras2020 STUDY --input counts=FILE --out DIR",
            why,
        )
    rows = [predictions.classifiers.index(name) for name in TEN]
    labels = label_numbers(predictions, rows).mean()
    why = f"by {len(rows)} of the ten ({', '.join(TEN)}): the others are not among the 45"
    yield Found("candidates", f"{labels:.1f}", NOT, f"{DRAW} tsipras-13 study ...", why)
    yield from _tasks()
    groups = read_groups(folder / "superclasses.npy", predictions.classes)["superclass"]
    sizes = sorted(int((groups == name).sum()) for name in set(groups.tolist()) if name)
    text = ", ".join(map(str, sorted(sizes, reverse=True)))
    fits = sizes == sorted(SUPERCLASSES)
    command = (
        "bayesrep papers compare study --table multilabel --input labels=FILE "
        "--input classes=superclasses.npy"
    )
    yield Found("superclasses", f"{text} ({sum(sizes):,} in all)", _is(fits), command)
    wanted = {"alexnet": 56.52, "vgg13": 69.43, "vgg16": 71.59, "resnet50": 76.13}
    accuracy = dict(zip(predictions.classifiers, predictions.correct.mean(axis=1), strict=True))
    text = ", ".join(f"{percent(float(accuracy[name]), 2)}" for name in wanted)
    why = (
        "three of four to the digit; vgg13 has 69.93 (a digit misprinted); inception_v3 by other "
        f"weights and sizes {percent(float(accuracy['inceptionv3']), 2)}"
    )
    same = [abs(100 * accuracy[name] - value) < 0.011 for name, value in wanted.items()]
    yield Found("accuracies", text, _is(all(same)), "bayesrep papers compare study", why)


def _tasks() -> Iterator[Found]:
    grids = 3934 * 9
    yield Found("grids", f"{grids:,}", _is(grids == 35_406), "–", "arithmetic of the text")
    left = 513 + 3104
    yield Found("omitted", f"{left:,}", _is(left == 3617), "–", "arithmetic of the text")
    tasks = 6761 * 9
    why = "59,580 are 9 answers about 6,620 images; the text does not say what became of 141"
    yield Found("tasks", f"{tasks:,}", DIFFERS, "–", why)


def main(argv: Sequence[str] | None = None) -> int:
    """Compute all and write its part of docs/results/papers.md."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.printed_numbers", description=__doc__
    )
    parser.add_argument("data", type=Path, metavar="DATA")
    data = parser.parse_args(argv).data
    found = {
        "engstrom2020": of_engstrom(),
        "anzaku2022": of_anzaku(data),
        "shankar2020": of_shankar(data),
        "tsipras2020": of_tsipras(data),
    }
    by = {(paper, each.key): each for paper, rows in found.items() for each in rows}
    rows = []
    for each in printed_numbers():
        ours = by[each.paper, each.key]
        rows.append(
            {
                **{name: getattr(each, name) for name in ("paper", "place", "what", "printed")},
                **{name: getattr(ours, name) for name in ("ours", "agreement", "command", "why")},
            }
        )
    counted = {
        word: sum(row["agreement"] == word for row in rows) for word in (AGREES, HALF, DIFFERS, NOT)
    }
    summary = ", ".join(f"{count} {word}" for word, count in counted.items())
    print(summary)
    table = _table(rows)
    remarks = (
        f"{len(rows)} numbers: {summary}. *Not at hand*: what it rests on is in no published file "
        "that the experiment reads; the command makes it of anybody's study. *Half of the data*: "
        "of the images of the Classify task 3,380 of 6,761 are read, so that about half of each "
        "count is to be expected. Where a paper differs from itself: [where the papers disagree "
        f"with themselves](../papers-disagree.md).\n\n{table}"
    )
    numbers = {"counted": counted, "rows": rows}
    save(
        "printed-numbers", "python -m experiments.printed_numbers DATA", numbers, "", None, remarks
    )
    return 0


def _table(rows: Sequence[dict[str, str]]) -> str:
    def cell(text: str) -> str:
        return text.replace("|", "\\|") or " "

    lines = list[str]()
    for paper in dict.fromkeys(row["paper"] for row in rows):
        lines += [f"### {paper}", ""]
        lines += [
            "| place | what | printed | ours | | command | why |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in rows:
            if row["paper"] == paper:
                command = "–" if row["command"] == "–" else f"`{row['command']}`"
                cells = [row["place"], row["what"], row["printed"], row["ours"]]
                cells += [row["agreement"], command, row["why"]]
                lines.append(f"| {' | '.join(map(cell, cells))} |")
        lines.append("")
    return "\n".join(lines).rstrip()


if __name__ == "__main__":
    sys.exit(main())
