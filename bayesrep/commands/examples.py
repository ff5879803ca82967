"""One whole command of each kind, as its help ends with it."""

from collections.abc import Mapping, Sequence

TABLES = "counts.csv predictions.csv --reference v1 --replication v2"
FITTED_ARGUMENTS = "my-study posterior.nc"

EXAMPLES: Mapping[str, str] = {
    "run": f"run {TABLES} --out my-folder",
    "demo": "demo --quick --out demo-output",
    "check": f"check {TABLES}",
    "doctor": "doctor my-study",
    "import": f"import tables {TABLES} --out my-study",
    "predict": "predict --images val/ --dataset v1 --study my-study --classifiers resnet50",
    "simulate": "simulate world --classifiers 10 --images 2000",
    "estimate": "estimate my-study --bootstrap 450",
    "fit": "fit my-study --out posterior.nc",
    "sweep": "sweep grid.toml --out sweep",
    "diagnose": "diagnose posterior.nc --study my-study",
    "summarize": f"summarize {FITTED_ARGUMENTS} --csv adjusted.csv",
    "ranks": f"ranks {FITTED_ARGUMENTS}",
    "pairs": f"pairs {FITTED_ARGUMENTS} --between resnet50,vit_b16",
    "images": "images my-study all.nc --csv images.csv",
    "figure": f"figure accuracies {FITTED_ARGUMENTS} --out figure.pdf",
    "report": f"report {FITTED_ARGUMENTS} --out report.html",
    "bench": "bench --quick",
    "completion": "completion bash > bayesrep.bash",
    "collect plan": "collect plan --pilot my-pilot --width 2 --cost-answer 0.03 --cost-image 0.1",
    "collect candidates": "collect candidates my-study --out candidates.csv",
    "collect contains": "collect contains candidates.csv --images v1=val --out tasks",
    "collect pilot": "collect pilot tasks --out trial",
    "collect read": "collect read tasks batch.csv --own --out answers.csv --counts counts.csv",
    "collect labels": "collect labels counts.csv --out labels.csv",
    "collect classify": "collect classify labels.csv --images v1=val --out closer",
    "collect objects": "collect objects objects-answers.csv --out objects.csv",
    "collect match": "collect match counts.csv --reference v1 --pool pool --images 2000 "
    "--out chosen.csv",
    "collect review": "collect review my-study --reviewers ann,bob --out review.csv",
    "answers import": "answers import label-studio v1=export.json --yes fits --out answers.csv",
    "answers clean": "answers clean answers.csv --rules repeats,controls --out clean.csv",
    "answers count": "answers count answers.parquet --out counts.csv",
    "answers crowd": "answers crowd my-study",
    "answers dependence": "answers dependence answers.csv --context grid",
    "answers remeasure": f"answers remeasure {FITTED_ARGUMENTS}",
    "papers report": "papers report engstrom2020 my-study --out figures",
    "papers match": "papers match my-study",
    "papers multilabel": "papers multilabel my-study --labels real.json",
    "papers compare": "papers compare my-study",
    "papers annotators": "papers annotators my-study",
    "papers lab": "papers lab --reference 3,2 --pool 2,2 --out lab.html",
    "papers rematch": "papers rematch my-study --images 2000",
    "papers passk": "papers passk attempts.csv --k 1,10,100",
    "models loo": "models loo posterior.nc k3.nc",
    "models mixtures": "models mixtures my-study --components 1:4",
}
"""What follows `bayesrep`, of every command."""

SOURCES: Mapping[str, tuple[str, str]] = {
    "tables": (
        "Your own tables, CSV, TSV, Excel, Parquet or gzipped: counts (dataset, image, selected, "
        "shown) or annotations (dataset, image, selected, and worker where known), predictions "
        "(dataset, image, classifier, correct, or label_1, the label that was predicted), and "
        "images with labels or groups where there are any. Columns are told by their names; "
        "`bayesrep check` lists all that is wrong with them.",
        f"import tables {TABLES} --out my-study",
    ),
    "evals": (
        "Logs of evaluations of language models: lm-evaluation-harness, Inspect, HELM, Every Eval "
        "Ever, SWE-bench, or tables and JSON Lines of item, model and score. Items are images, "
        "models classifiers, judges annotators. Without --out it lists what the logs hold.",
        "import evals logs --reference gsm8k --replication gsm1k --counts judged.csv --out study",
    ),
    "cifar10h": (
        "A placebo on real annotators: two random parts of CIFAR-10's test set with the human "
        "answers of Peterson et al. (2019), so that the true gap is zero for every classifier. "
        "Takes github.com/jcpeterson/cifar-10h (cifar10h-counts.npy, with the true labels as a "
        ".npy vector beside) and github.com/modestyachts/CIFAR-10.1 (the predictions of 20 "
        "classifiers on CIFAR-10): the folders or the files, in any order. It does not compare "
        "CIFAR-10 with CIFAR-10.1: for that see cifar10.1.",
        "import cifar10h cifar-10h CIFAR-10.1 --out placebo",
    ),
    "cifar10.1": (
        "What 20 classifiers answered on CIFAR-10 and CIFAR-10.1: the folder "
        "github.com/modestyachts/CIFAR-10.1 and the labels of CIFAR-10's test set as a .npy "
        "vector. Nobody counted annotators, so it is for `papers compare` and `papers match`; "
        "counts may be added as a table.",
        "import cifar10.1 CIFAR-10.1 cifar10_test_set_original_labels.npy --out cifar",
    ),
    "imagenetv2": (
        "What 45 classifiers answered on ImageNet and ImageNet-v2: the folder `data` of "
        "github.com/modestyachts/ImageNetV2. With a table of counts (dataset, image, selected, "
        "shown) it is a study; alone it is for `papers compare` and `papers match`.",
        "import imagenetv2 ImageNetV2/data counts.csv --out imagenet-v2",
    ),
    "madrylab": (
        "The annotations behind Engstrom et al. (2020), of github.com/MadryLab/"
        "dataset-replication-analysis: one frame of url, dataset (v1, v2), selected and "
        "correct_CLASSIFIER, as torch saved it (nothing in it is run), or as Parquet or CSV.",
        "import madrylab frame.parquet --out engstrom",
    ),
    "arrays": (
        "A folder a data set, the reference's first, for data sets that come as arrays, such as "
        "CIFAR-10.2 and CINIC-10: labels.npy (whole numbers), classes.txt if classes have names, "
        "and NAME.npy a classifier (probabilities [N, K], class numbers [N], or the best [N, R]); "
        "for `papers compare` and `papers match`.",
        "import arrays cifar-10 cinic-10 --out cinic",
    ),
    "sql": (
        "Prints the one statement that a database is to be asked for counts and predictions; what "
        "it answers is what `import tables` takes.",
        "import sql --dialect duckdb --reference v1 --replication v2 > study.sql",
    ),
}
"""What each source of `import` is and takes, and a whole command."""


def epilog(name: str) -> str:
    """The examples of a command, as its help ends with them."""
    if name == "import":
        more = "bayesrep import SOURCE --help says what each source is and takes."
        return f"{_list_examples([line for _, line in SOURCES.values()])}\n\n{more}"
    return _list_examples([EXAMPLES[name]])


def source_epilog(source: str) -> str:
    """The example of one source of `import`, as its help ends with it."""
    return _list_examples([SOURCES[source][1]])


def _list_examples(lines: Sequence[str]) -> str:
    noun = "examples" if len(lines) > 1 else "example"
    return "\n".join([f"{noun}:", *(f"  bayesrep {line}" for line in lines)])
