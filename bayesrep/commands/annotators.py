"""`bayesrep annotators`: estimates for every number of annotators, and whether they are a line."""

from argparse import ArgumentParser, Namespace
from dataclasses import asdict

import bayesrep
from bayesrep.commands.options import add_shared
from bayesrep.commands.output import emit_table, new_table


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study", "--csv", "--force")


def run(arguments: Namespace) -> int:
    from bayesrep.estimators.annotators import compare_annotators, linearity
    from bayesrep.report.text import annotators_table

    new_table(arguments)
    study = bayesrep.read_study(arguments.study)
    table = compare_annotators(study)
    line = linearity(table)
    facts = {"linearity": asdict(line) if line else None}
    return emit_table(arguments, table, annotators_table(table, line), facts, study.left_out)
