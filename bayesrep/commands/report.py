"""`bayesrep report`: write a page of all results that needs no network."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import bayesrep
from bayesrep.choices import FEW_REPLICATES
from bayesrep.commands.options import (
    PEOPLE_INPUTS,
    add_inputs,
    add_shared,
    given_inputs,
    given_options,
    import_in_thread,
    keep_compiled,
    read_draws,
)
from bayesrep.commands.output import emit, finding, new_file
from bayesrep.errors import OptionError, plain_text

EXAMPLE = "my-study posterior.nc --out report.html"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    add_shared(parser, "study")
    option("posterior", type=Path, nargs="?", metavar="posterior.nc", help="a fit's posterior")
    option("--out", type=Path, required=True, metavar="report.html", help="page to write")
    text = f"replicates for the estimators' intervals (default {FEW_REPLICATES})"
    option("--bootstrap", type=int, metavar="B", help=text)
    option(
        "--fail-if",
        action="append",
        default=[],
        metavar="CONDITION",
        help='condition on which to exit with status 1, such as "adjusted_gap > 2" (points) or '
        '"trust == no"; may be repeated',
    )
    add_inputs(parser, images="folder of the reference's images", **PEOPLE_INPUTS)
    add_shared(parser, "--allow-unconverged")


def run(arguments: Namespace) -> int:
    if arguments.out.suffix.lower() not in (".html", ".htm"):
        raise OptionError("out-not-html", out=arguments.out)
    new_file(arguments.out, arguments)
    keep_compiled()
    inputs = given_inputs(arguments)
    conditions: list[Any] = []
    if arguments.fail_if:
        from bayesrep.report.fail_if import parse_condition

        conditions = list(map(parse_condition, arguments.fail_if))
    _ = bayesrep.read_study  # imports it
    with import_in_thread("numpyro"):
        study = bayesrep.read_study(arguments.study)
    from bayesrep.report.page import write_page
    from bayesrep.report.page_json import numbers_of
    from bayesrep.report.sections import gather

    file = arguments.posterior
    posterior = None if file is None else read_draws(file)
    if posterior is not None:
        from bayesrep.posterior.fitted import Fitted

        Fitted(study, posterior).require_convergence(allow_unconverged=arguments.allow_unconverged)
    options: dict[str, Any] = {**given_options(arguments, gather), "posterior": posterior}
    if images := inputs.pop("images", None):
        from bayesrep.report.pictures import Pictures

        options["pictures"] = Pictures.in_folder(images)
    if inputs:
        from bayesrep.protocols import read_people, read_predictions

        (answers,) = read_predictions(arguments.study, ("reference",))
        options["people"] = answers, read_people(answers, **inputs)
    content = gather(study, progress=not arguments.quiet, **options)
    numbers = numbers_of(content)
    failed = [violated for each in conditions if (violated := each.finding(numbers))]
    write_page(content, arguments.out)
    caveat = f"No answer, since {content.caveat}:" if content.caveat else ""
    lines = [f"Written to {arguments.out}", caveat, str(numbers["answer"] or "")]
    for why in dict.fromkeys(content.missing_sections.values()):
        names = (name for name, each in content.missing_sections.items() if each == why)
        lines.append(f"Not shown ({', '.join(names)}): {why}")
    facts = {"out": str(arguments.out), "failed": failed, **numbers}
    text = "\n".join(map(plain_text, filter(None, lines)))
    status = emit(arguments, text, facts, study.left_out)
    return finding(f"failed: {'; '.join(failed)}") if failed else status
