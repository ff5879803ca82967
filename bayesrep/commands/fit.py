"""`bayesrep fit`: fit a model and write its posterior, converged or not."""

import inspect
import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import bayesrep
from bayesrep import process
from bayesrep.choices import makes_chains
from bayesrep.commands.options import add_shared, given_options, import_in_thread, setting
from bayesrep.commands.output import describe_kept_work, emit, finding, new_file, say
from bayesrep.errors import OptionError, quote_word
from bayesrep.models import MODELS
from bayesrep.plugins import PLUGINS_VAR
from bayesrep.progress import Stopwatch

EXAMPLE = "my-study --out posterior.nc"

DEFAULT_CHAINS, ENOUGH_DRAWS = 4, 800  # chains where none are asked for; draws that need no warning


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    add_shared(parser, "study")
    option("--out", type=Path, required=True, metavar="posterior.nc", help="file for the posterior")
    option(
        "--model",
        metavar="NAME",
        help=f"{', '.join(MODELS)}, or your own by name or as FILE.py:NAME (default joint)",
    )
    option(
        "--set",
        type=setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option or prior of the model, such as components=3, curve=gp or slope=3,2.5, or "
        "a setting of the method: warmup=1000, draws=500, feedback=cut; may be repeated",
    )
    add_shared(parser, "--method")
    option("--groups", metavar="COLUMN", help="column of image groups to pool partially over")
    option(
        "--datasets",
        type=lambda text: tuple(text.split(",")),
        metavar="ROLE,...",
        help="data sets in the hierarchy (default reference,replication)",
    )
    option("--device", help="device: auto, cpu or gpu (default auto)")
    option("--devices", type=int, metavar="N", help="devices to share the chains over (default 1)")
    option("--checkpoint", type=Path, metavar="DIR", help="folder to keep draws in and resume from")
    option("--chains", type=int, metavar="N", help="number of chains (default 4)")


def run(arguments: Namespace) -> int:
    new_file(arguments.out, arguments)
    for name, value in arguments.set:
        if name in ("warmup", "draws") and not isinstance(value, int):
            raise OptionError("setting-not-whole-number", option=name, value=value)
    if why := _warn_of_short_chains(arguments):
        say(why)
    watch = Stopwatch("reading")
    _ = bayesrep.read_study  # imports it
    with import_in_thread("numpyro"):
        study = bayesrep.read_study(arguments.study)
        watch.stage("importing")  # what is left of it
    fit = bayesrep.fit
    before = watch.seconds()
    options: dict[str, Any] = {"progress": not arguments.quiet, **given_options(arguments, fit)}
    options |= dict(arguments.set)
    tree = inspect.unwrap(fit)(study, **options)  # what is only written needs no ArviZ
    watch.stage("writing")
    bayesrep.write_posterior(tree, arguments.out, force=arguments.force)
    attributes = tree["posterior"].attrs
    seconds = before | json.loads(attributes["seconds"]) | {"writing": watch.seconds()["writing"]}
    verdict = attributes["verdict"]
    converged = bool(attributes["converged"])
    answer = ""
    if converged:  # the drop, in the words that begin the report
        from bayesrep.posterior.fitted import Fitted
        from bayesrep.report.conclusion import drop_sentence
        from bayesrep.summary.tables import gaps

        answer = f"{drop_sentence(study, gaps(Fitted(study, tree)))}\n"
    choice, tried = attributes["components_choice"], attributes["tried"]
    why = "".join(f"{sentence}\n" for sentence in (choice, tried) if sentence)
    following = _following_command(arguments, converged=converged)
    text = f"{answer}{verdict}\n{why}Written to {arguments.out}\nNext: {following}"
    facts = {
        "out": str(arguments.out),
        "converged": converged,
        "verdict": verdict,
        "components_choice": choice,
        "tried": tried,
        "seconds": seconds,
    }
    emit(arguments, text, facts, study.left_out)
    return 0 if converged else finding("the fit was written but has not converged")


def _warn_of_short_chains(arguments: Namespace) -> str:
    """Warn that so short chains can hardly pass the checks; empty where they can."""
    settings = dict(arguments.set)
    draws = settings.get("draws")
    of_chains = makes_chains(arguments.method) or arguments.chains or "warmup" in settings
    if not of_chains or not isinstance(draws, int):
        return ""
    total = (arguments.chains or DEFAULT_CHAINS) * draws
    if total >= ENOUGH_DRAWS:
        return ""
    return (
        f"{total:,} draws in all can hardly pass the checks, which want the worth of 400 "
        "independent ones of every quantity; leave draws out for 3,000 in all"
    )


def _following_command(arguments: Namespace, *, converged: bool) -> str:
    """Write the command that reads the fit, and where it finds the model of a file."""
    file, is_file, _ = (arguments.model or "").rpartition(".py:")
    place = f"{PLUGINS_VAR}={quote_word(f'{file}.py')} " if is_file else ""
    words = ("summarize", arguments.study, arguments.out)
    if not converged:
        words = ("diagnose", arguments.out, "--study", arguments.study)
    return place + process.command(*words)


def describe_kept(arguments: Namespace) -> str:
    return describe_kept_work(arguments.checkpoint)
