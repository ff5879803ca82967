"""`bayesrep papers rematch`: whether the bias of matching shows in the answers at hand."""

from argparse import ArgumentParser, Namespace

import bayesrep
from bayesrep.choices import PAPER_REPLICATES
from bayesrep.commands.options import add_shared, given_options
from bayesrep.commands.output import emit_table
from bayesrep.errors import OptionError
from bayesrep.studies.vocabulary import words_of

EXAMPLE = "my-study --images 2000"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    add_shared(parser, "study")
    option("--pool", metavar="ROLE", help="the data set to choose images from (candidates)")
    option(
        "--matched-on",
        dest="answers",
        type=int,
        metavar="N",
        help="answers about each candidate that matching sees; the others are held out (5)",
    )
    option("--images", type=int, metavar="N", help="how many to choose (a quarter of the pool)")
    option("--per-class", type=int, metavar="N", help="how many to choose of every class (label)")
    option("--deals", type=int, help="how often the answers are dealt out (20)")
    option(
        "--bootstrap",
        type=int,
        metavar="B",
        help=f"replicates for D.1's intervals ({PAPER_REPLICATES})",
    )


def run(arguments: Namespace) -> int:
    from bayesrep.lab import rematch
    from bayesrep.report.plan_text import rematch_text

    if arguments.images is not None and arguments.per_class is not None:
        raise OptionError("images-and-per-class-given")
    study = bayesrep.read_study(arguments.study)
    options = given_options(arguments, rematch)
    options["by_class"] = arguments.per_class is not None
    options["size"] = arguments.per_class if options["by_class"] else arguments.images
    rematched = rematch(study, **options)
    source = rematched.by_source
    facts = {
        "held_out": rematched.held_out.to_dicts(),
        "by_source": None if source is None else source.to_dicts(),
    }
    text = rematch_text(rematched, words_of(study))
    return emit_table(arguments, rematched.by_answers, text, facts, study.left_out)
