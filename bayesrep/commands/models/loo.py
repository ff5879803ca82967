"""`bayesrep models loo`: compare fits of one study by how well they predict what is left out."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bayesrep.commands.options import read_draws
from bayesrep.commands.output import emit_table

EXAMPLE = "posterior.nc k3.nc"


def add(parser: ArgumentParser) -> None:
    parser.add_argument("posteriors", type=Path, nargs="+", metavar="posterior.nc", help="of `fit`")


def run(arguments: Namespace) -> int:
    from bayesrep.checks import compare_fits
    from bayesrep.posterior.groups import read_record
    from bayesrep.report.fits_text import fits_text

    fits = {str(path): read_draws(path) for path in arguments.posteriors}
    table = compare_fits(fits)
    words = read_record(next(iter(fits.values()))).words
    return emit_table(arguments, table, fits_text(table, words))
