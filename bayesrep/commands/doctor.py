"""`bayesrep doctor`: what a folder allows to say, and what is missing for more."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

from bayesrep.commands.output import DONE, emit, finding

CHOICES = ("metric", "filter", "scorer")


def add(parser: ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        type=Path,
        nargs="+",
        metavar="PATH",
        help="a study, answers without counts, a table of attempts, or logs of evaluation tools",
    )
    for name in CHOICES:
        parser.add_argument(f"--{name}", metavar="NAME", help=f"of logs with several: the {name}")


def run(arguments: Namespace) -> int:
    from bayesrep.report.text import allowed_text
    from bayesrep.sources.doctor import examine_data
    from bayesrep.sources.evals.records import Asked
    from bayesrep.studies.allows import supported

    metric, filters, scorer = (
        () if (name := getattr(arguments, of)) is None else (name,) for of in CHOICES
    )
    asked = Asked(metric, filters, scorer)
    what, found = examine_data(arguments.paths, asked)
    sound = supported(found)
    facts = {"is": what, "supported": sound, "allows": [asdict(each) for each in found]}
    emit(arguments, allowed_text(what, found), facts)
    if sound:
        return DONE
    return finding(
        "a drop from one version to the other is not told apart from a difference between the "
        "versions by these data"
    )
