"""`bayesrep summarize`: adjusted accuracies with credible intervals, and the answer in words."""

from argparse import ArgumentParser, Namespace

import bayesrep
from bayesrep.commands.options import add_shared, read_fitted
from bayesrep.commands.output import emit_table
from bayesrep.errors import plain


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study", "posterior", "--csv", "--force", "--allow-unconverged")


def run(arguments: Namespace) -> int:
    from bayesrep.report.answer import answer_for, drop_of, measured_drop
    from bayesrep.report.text import estimates_table, gaps_table, populations_text
    from bayesrep.summary.joint_draws import together

    study, posterior = read_fitted(arguments)
    unconverged, draws = arguments.allow_unconverged, together(study, posterior)
    table = bayesrep.summarize(study, posterior, allow_unconverged=unconverged, draws=draws)
    gaps = bayesrep.summarize_gaps(study, posterior, allow_unconverged=unconverged, draws=draws)
    measured = measured_drop(study)
    answer = plain(answer_for(study, drop_of(gaps, measured)))
    text = (
        f"{estimates_table(table)}\n\nMean over classifiers and line:\n\n"
        f"{gaps_table(gaps, clear=measured.above)}\n\n{answer}\n{populations_text(gaps)}"
    )
    return emit_table(arguments, table, text, {"gaps": gaps.to_dicts()}, study.left_out)
