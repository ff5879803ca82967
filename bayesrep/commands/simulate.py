"""`bayesrep simulate`: write a simulated study of known truth."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import bayesrep
from bayesrep.commands.options import ends, given_options
from bayesrep.commands.output import emit, new_folder

EXAMPLE = "world --classifiers 10 --images 2000"


def add(parser: ArgumentParser) -> None:
    def annotators(text: str) -> int | tuple[int, int]:
        low, high = ends(text)
        return (low, high) if ":" in text else low

    option = parser.add_argument
    option("out", type=Path, metavar="OUT", help="folder for the study")
    option("--images", type=int, metavar="N", help="images in each data set (default 10000)")
    option(
        "--annotators",
        type=annotators,
        metavar="N|LOW:HIGH",
        help="annotators per image (default 36, or the scenario's)",
    )
    option("--classifiers", type=int, metavar="N", help="number of classifiers (default 136)")
    option("--scenario", metavar="NAME", help="scenario, such as two-panels (default plain)")


def run(arguments: Namespace) -> int:
    from bayesrep.report.study_text import describe_study

    new_folder(arguments.out, arguments)
    study = bayesrep.simulate_study(**given_options(arguments, bayesrep.simulate_study))
    study.write(arguments.out, force=arguments.force)
    text = f"{describe_study(study)}\nWritten to {arguments.out}; its truth is in study.json"
    return emit(arguments, text, {"out": str(arguments.out), "fingerprint": study.fingerprint()})
