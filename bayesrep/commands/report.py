"""`bayesrep report`: write a page of all results that needs no network."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import bayesrep
from bayesrep.commands.options import add_shared, given, keep_compiled
from bayesrep.commands.output import emit, new_file
from bayesrep.errors import OptionError


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    add_shared(parser, "study")
    option("posterior", type=Path, nargs="?", metavar="posterior.nc")
    option("--out", type=Path, required=True, metavar="report.html")
    option("--bootstrap", type=int, metavar="B", help="replicates for intervals (50)")
    add_shared(parser, "--objects", "--counts", "--crowd-sd", "--seed", "--force")


def run(arguments: Namespace) -> int:
    if arguments.out.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"--out is {arguments.out}; name a file that ends in .html")
    new_file(arguments.out, force=arguments.force)
    keep_compiled()
    from bayesrep.files import trial

    trial.start()  # beside the import of JAX
    from bayesrep.report.page import write_page
    from bayesrep.report.sections import gather

    file = arguments.posterior
    posterior = None if file is None else bayesrep.read_posterior(file)
    study = bayesrep.read_study(arguments.study)
    options: dict[str, Any] = {**given(arguments, gather), "posterior": posterior}
    if arguments.objects is not None or arguments.counts is not None:
        from bayesrep.protocols import read_people, read_predictions

        (answers,) = read_predictions(arguments.study, ("reference",))
        options["people"] = answers, read_people(answers, **given(arguments, read_people))
    content = gather(study, **options)
    write_page(content, arguments.out)
    lines = [f"Written to {arguments.out}"]
    for why in dict.fromkeys(content.missing.values()):
        names = (name for name, each in content.missing.items() if each == why)
        lines.append(f"Not shown ({', '.join(names)}): {why}")
    facts = {"out": str(arguments.out), "missing": dict(content.missing)}
    return emit(arguments, "\n".join(lines), facts, study.left_out)
