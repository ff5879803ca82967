"""`bayesrep summarize`: adjusted accuracies with credible intervals, and the answer in words."""

from argparse import ArgumentParser, Namespace
from statistics import median

import bayesrep
from bayesrep.commands.options import add_length, add_shared, length, read_fitted
from bayesrep.commands.output import emit_table
from bayesrep.errors import plain

ENOUGH = 10
"""Annotators of an image below which the prior is named."""
NO_SLOPE = (
    "No slope is told: by the shared-difficulty model it came out too low, by 0.03 with 10 "
    "classifiers. Fit the joint model for it; its interval allows for the shared images too."
)


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study", "posterior")
    add_length(parser, "classifier")
    add_shared(parser, "--crowd-sd", "--csv", "--force")
    add_shared(parser, "--allow-unconverged")


def run(arguments: Namespace) -> int:
    from bayesrep.checks.classes import judge_classes
    from bayesrep.checks.crowd import judge_unknown_crowd
    from bayesrep.checks.dependence import judge_dependence
    from bayesrep.posterior.fitted import Fitted
    from bayesrep.report.answer import answer_for, drop_of, measured_drop
    from bayesrep.report.text import estimates_table, gaps_table, populations_text
    from bayesrep.summary import tables

    top = length(arguments)
    study, posterior = read_fitted(arguments)
    fitted = Fitted(study, posterior, arguments.crowd_sd or 0.0)
    fitted = fitted.trusted(allow_unconverged=arguments.allow_unconverged)
    table, gaps = tables.accuracies(fitted), tables.gaps(fitted)
    measured = measured_drop(study)
    answer = plain(answer_for(study, drop_of(gaps, measured)))
    band, assumed = judge_dependence(posterior)
    text = (
        f"{estimates_table(table, top)}\n\nMean over classifiers and line:\n\n"
        f"{gaps_table(gaps, clear=measured.above)}\n\n{answer}\n{populations_text(gaps)}"
        f"\n{plain(assumed.sentence)}"
    )
    if fitted.knows_workers:
        crowd = plain(bayesrep.describe_crowd(study).sentence)
        text += f"\n{crowd} The intervals above allow for it."
    else:
        text += f"\n{judge_unknown_crowd(fitted).sentence}"
    text += "".join(f"\n{plain(found.sentence)}" for found in judge_classes(fitted))
    if advice := str(fitted.group.attrs.get("advice", "")):
        text += f"\n{plain(advice)}"
    elif (
        most := min(int(median(data.shown.tolist())) for data in study.datasets.values())
    ) < ENOUGH:
        s = "s" * (most != 1)
        text += (
            f"\nFrom {most} annotator{s} an image, as most have, counts tell {most} moment{s} of "
            "the selection frequencies: what else the answer needs is the prior's; diagnose says "
            "how much that moves it."
        )
    if len(study.classifiers) > 1 and not fitted.right_about_slopes:
        text += f"\n{NO_SLOPE}"
    facts = {
        "gaps": gaps.to_dicts(),
        "dependence": None if band is None else band.to_dicts(),
    }
    return emit_table(arguments, table, text, facts, study.left_out)
