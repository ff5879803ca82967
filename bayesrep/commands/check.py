"""`bayesrep check`: list every broken rule of a study."""

from argparse import ArgumentParser, Namespace

import bayesrep
from bayesrep.commands.options import add_shared
from bayesrep.commands.output import emit, finding
from bayesrep.errors import StudyError, plain


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study")


def run(arguments: Namespace) -> int:
    from bayesrep.report.text import describe_study
    from bayesrep.studies.storage import awaits_counts, check_study

    if awaits_counts(arguments.study):
        return _check_answers(arguments)
    try:
        study = bayesrep.read_study(arguments.study)
    except StudyError:
        if not arguments.study.is_dir():
            raise
        broken = check_study(arguments.study)
        emit(arguments, "\n".join(broken), {"study": str(arguments.study), "broken": broken})
        rules = "rule is" if len(broken) == 1 else "rules are"
        return finding(f"{arguments.study}: {len(broken)} {rules} broken")
    text = f"{describe_study(study)}\nNo rule is broken."
    return emit(arguments, text, {"study": str(arguments.study), "broken": []}, study.left_out)


def _check_answers(arguments: Namespace) -> int:
    """Check a folder of answers to which counts are still to be added."""
    from bayesrep.protocols import read_predictions
    from bayesrep.studies.folder import PREDICTIONS, names_in
    from bayesrep.studies.storage import images_left_out

    held = names_in(arguments.study / PREDICTIONS, "")
    answers = [read_predictions(arguments.study, (name,), ranks=1)[0] for name in held]
    lines = [
        f"{plain(each.dataset)}: answers of {len(each.classifiers)} classifiers to "
        f"{len(each.images):,} images"
        for each in answers
    ]
    lines.append("No counts of annotators yet: enough for match, multilabel and compare.")
    facts = {"study": str(arguments.study), "broken": []}
    return emit(arguments, "\n".join(lines), facts, images_left_out(arguments.study))
