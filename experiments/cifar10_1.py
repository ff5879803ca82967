"""CIFAR-10 against CIFAR-10.1: accuracies of the 20 classifiers with published answers.

    python -m experiments.cifar10_1 DIR --labels FILE

DIR is the folder of github.com/modestyachts/CIFAR-10.1, FILE the labels of CIFAR-10's test set.
Both published versions of CIFAR-10.1 are compared: v4, the paper's, and v6, its rebalanced
successor.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bayesrep.protocols import compare
from bayesrep.report.protocols_text import comparison_table
from bayesrep.report.robustness_figures import robustness_figure
from bayesrep.sources.cifar10_1 import read_answers
from experiments.imagenetv2 import line_numbers, line_remark
from experiments.results import save


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and write its part of docs/results/published.md."""
    parser = argparse.ArgumentParser(prog="python -m experiments.cifar10_1", description=__doc__)
    parser.add_argument("repository", type=Path, metavar="DIR")
    parser.add_argument("--labels", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args(argv)
    found = {
        version: compare(*read_answers(arguments.repository, arguments.labels, version=version))
        for version in ("v4", "v6")
    }
    text = "\n\n".join(
        f"CIFAR-10.1 {version}\n\n{comparison_table(each.accuracies, each.lines)}"
        for version, each in found.items()
    )
    print(text)
    numbers = {
        version: {
            "lines": line_numbers(each.lines),
            "accuracies": each.accuracies.to_dicts(),
        }
        for version, each in found.items()
    }
    both = {version: each.accuracies for version, each in found.items()}
    figure = robustness_figure(both, fitted=both["v4"], metric="")
    remarks = " ".join(
        f"Version {version}: {line_remark(each.lines, len(each.accuracies))}"
        for version, each in found.items()
    )
    remarks += (
        " On the plain scale the slope is far above 1: the better a classifier, the less it loses. "
        "On the probit scale much of that is gone, since accuracies near 100 % have less to lose."
    )
    command = "python -m experiments.cifar10_1 DIR --labels FILE"
    save("cifar-10.1", command, numbers, text, figure, remarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
