"""`bayesrep doctor`: what a folder allows to say, and what is missing for more."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

from bayesrep.commands.output import DONE_STATUS, emit, finding

EXAMPLE = "my-study"

CHOICE_OPTIONS = ("metric", "filter", "scorer")


def add(parser: ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        type=Path,
        nargs="+",
        metavar="PATH",
        help="a study, answers without counts, a table of attempts, or logs of evaluation tools",
    )
    for name in CHOICE_OPTIONS:
        parser.add_argument(f"--{name}", metavar="NAME", help=f"of logs with several: the {name}")


def run(arguments: Namespace) -> int:
    from bayesrep.report.study_text import allowed_text
    from bayesrep.sources.doctor import examine_data
    from bayesrep.sources.evals.records import LogChoices
    from bayesrep.studies.capabilities import supports_adjustment

    metric, filters, scorer = (
        () if (name := getattr(arguments, option)) is None else (name,) for option in CHOICE_OPTIONS
    )
    what, findings = examine_data(arguments.paths, LogChoices(metric, filters, scorer))
    sound = supports_adjustment(findings)
    facts = {"is": what, "supported": sound, "allows": [asdict(each) for each in findings]}
    emit(arguments, allowed_text(what, findings), facts)
    if sound:
        return DONE_STATUS
    return finding(
        "these data do not tell a drop from one version to the other apart from a difference "
        "between the versions"
    )
