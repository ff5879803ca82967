"""The run of Anzaku et al. (2022) over hundreds of networks: what it takes, and a rehearsal.

    python -m experiments.many_models REFERENCE REPLICATION --out DIR [--classifiers NAMES|@FILE]
    python -m experiments.many_models --rehearse

The paper runs 286 networks of ImageNet over 50,000 + 10,000 images, and 278 of CIFAR-10 over 10,000
+ 2,000, 564 in all; it names 24, the catalog anzaku2022, which is what is run by default. Others
are named by a file with one a line: whatever timm has, ``hf-hub:`` names, or with ``--weights`` and
``--classes`` one's own of CIFAR (`docs/predict.md`). REFERENCE and REPLICATION are folders of
images as `bayesrep predict` takes them. A run that was interrupted goes on where it was.

What it takes. 286 networks are 17.2 million images through a network, 278 of CIFAR 3.3 million
small ones; each image is decoded once for all. At 2,000 images a second, mean over the networks,
the 17.2 million are 2.4 hours, at 500 they are 9.5: it wants a GPU. At ten a second the 24 alone
are 40 hours. Weights come from the hub, from 20 MB to 2 GB a network. `bayesrep predict` says how
fast it is; nobody has done the whole run with this script.

The rehearsal does the whole of it on drawn images and three small networks that were fitted to
others: predict, match, and the page of figures.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bayesrep import cli
from bayesrep.protocols import match, read_predictions
from bayesrep.report.text import rows_table
from experiments import chain
from experiments.results import save

NETWORKS, IMAGES = 286, 60_000
"""Of ImageNet in the paper; images of both data sets."""


def run(
    folders: Sequence[Path], out: Path, which: Sequence[str], *, more: Sequence[str] = ()
) -> dict[str, Any]:
    """Predict both data sets, match, and write the paper's page.

    Parameters
    ----------
    folders
        Images of the reference and of the replication.
    out
        Gets a study and the page.
    which
        Words for `bayesrep predict` that say which classifiers.
    more
        Further ones: --weights DIR, --device cuda, ...

    Returns
    -------
    dict
        The rows of `bayesrep match`, and the table.
    """
    study = out / "study"
    roles = [word for role in ("reference", "replication") for word in (f"--{role}", role)]
    for role, folder in zip(("reference", "replication"), folders, strict=True):
        words = ["--images", str(folder), "--dataset", role, "--study", str(study)]
        _done("predict", *words, *which, *more)
    _done("paper", "anzaku2022", str(study), *roles, "--out", str(out / "page"), "--force")
    both = read_predictions(study, ("reference", "replication"), confidence=True)
    found = match(*both)
    return {"rows": found.accuracies.to_dicts(), "table": rows_table(found.accuracies)}


def _done(*words: str) -> None:
    if status := cli.main(list(words)):
        raise SystemExit(status)


def rehearse(root: Path, images: int) -> dict[str, Any]:
    """The same on drawn images and small networks."""
    chain.make_data(root, images, seed=0)
    chain.train(root / "weights", min(images, 1000), seed=0)
    which = ["--classifiers", ",".join(chain.CLASSIFIERS)]
    more = ["--weights", str(root / "weights"), "--no-progress"]
    return run([root / "v1", root / "v2"], root / "out", which, more=more)


def main(argv: Sequence[str] | None = None) -> int:
    """Run it, or rehearse it and write docs/results/many-models.{md,json}."""
    parser = argparse.ArgumentParser(prog="python -m experiments.many_models", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    option = parser.add_argument
    option("folders", type=Path, nargs="*", metavar="FOLDER", help="REFERENCE REPLICATION")
    option("--out", type=Path, metavar="DIR")
    option("--rehearse", action="store_true")
    option("--images", type=int, default=400, help="of the rehearsal, in each data set (400)")
    for name in ("classifiers", "weights", "classes", "device"):
        option(f"--{name}", help="as `bayesrep predict` takes it")
    arguments = parser.parse_args(argv)
    if not arguments.rehearse:
        if len(arguments.folders) != 2 or arguments.out is None:
            parser.error("give REFERENCE REPLICATION --out DIR, or --rehearse")
        given = ("weights", "classes", "device")
        more = [word for name in given if (value := getattr(arguments, name))
                for word in (f"--{name}", value)]  # fmt: skip
        which = ["--catalog", "anzaku2022"]
        if arguments.classifiers:
            which = ["--classifiers", arguments.classifiers]
        print(run(arguments.folders, arguments.out, which, more=more)["table"])
        return 0
    with tempfile.TemporaryDirectory() as folder:
        found = rehearse(Path(folder), arguments.images)
    text = str(found.pop("table"))
    print(text)
    remarks = (
        f"The rehearsal: {arguments.images:,} + {arguments.images:,} drawn images, "
        f"{len(chain.CLASSIFIERS)} networks of timm's tests whose last layers were fitted to "
        f"others of the kind. The paper's {NETWORKS} networks of ImageNet are "
        f"{NETWORKS * IMAGES / 1e6:.1f} million images through one, "
        f"{NETWORKS * IMAGES / 3600 / 2000:.1f} hours at 2,000 a second; that run was not done."
    )
    command = "python -m experiments.many_models --rehearse"
    save("many-models", command, found, text, remarks=remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
