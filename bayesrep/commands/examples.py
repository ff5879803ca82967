"""One whole command of each kind, as its help ends with it."""

from collections.abc import Mapping

TABLES = "counts.csv predictions.csv --reference v1 --replication v2"
FITTED = "my-study posterior.nc"

EXAMPLES: Mapping[str, str] = {
    "run": f"run {TABLES} --out my-folder",
    "demo": "demo --quick --out demo-output",
    "simulate": "simulate world --classifiers 10 --images 2000",
    "import": f"import tables {TABLES} --out my-study",
    "predict": "predict --images val/ --dataset v1 --study my-study --classifiers resnet50",
    "check": f"check {TABLES}",
    "estimate": "estimate my-study --bootstrap 450",
    "fit": "fit my-study --out posterior.nc",
    "mixtures": "mixtures my-study --components 1:4",
    "annotators": "annotators my-study",
    "summarize": f"summarize {FITTED} --csv adjusted.csv",
    "ranks": f"ranks {FITTED}",
    "pairs": f"pairs {FITTED} --between resnet50,vit_b16",
    "images": "images my-study all.nc --csv images.csv",
    "diagnose": "diagnose posterior.nc --study my-study",
    "loo": "loo posterior.nc k3.nc",
    "match": "match my-study",
    "compare": "compare my-study",
    "figure": f"figure accuracies {FITTED} --out figure.pdf",
    "report": f"report {FITTED} --out report.html",
}
"""What follows `bayesrep`; the guides of the commands that are missing have several each."""

SOURCES = (
    f"import tables {TABLES} --out my-study",
    "import cifar10h cifar10h/*.npy cifar10.1/model_predictions/original_predictions --out placebo",
    "import imagenetv2 ImageNetV2/data counts.csv --out imagenet-v2",
    "import madrylab frame.parquet --out engstrom",
    "import sql --dialect duckdb --reference v1 --replication v2 > study.sql",
)
"""A whole command for each source of `import`."""


def epilog(name: str) -> str:
    """The examples of a command, as its help ends with them."""
    lines = SOURCES if name == "import" else (EXAMPLES[name],) if name in EXAMPLES else ()
    noun = "examples" if len(lines) > 1 else "example"
    return "\n".join([f"{noun}:", *(f"  bayesrep {line}" for line in lines)]) if lines else ""
