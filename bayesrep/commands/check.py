"""`bayesrep check`: list every broken rule of a study."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import bayesrep
from bayesrep.commands.options import add_shared
from bayesrep.commands.output import LeftOut, emit, finding
from bayesrep.errors import StudyError, plain


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study")


def run(arguments: Namespace) -> int:
    from bayesrep.studies.reading import check_study
    from bayesrep.studies.writing import awaits_counts

    path, facts = arguments.study, {"study": str(arguments.study)}
    describe = _of_answers if awaits_counts(path) else _of_study
    try:
        text, left_out = describe(path)
        return emit(arguments, text, {**facts, "broken": []}, left_out)
    except StudyError as error:
        if not path.is_dir():
            raise
        broken = [str(error)] if describe is _of_answers else check_study(path)
    emit(arguments, "\n".join(broken), {**facts, "broken": broken})
    rules = "rule is" if len(broken) == 1 else "rules are"
    return finding(f"{path}: {len(broken)} {rules} broken")


def _of_study(path: Path) -> tuple[str, LeftOut]:
    from bayesrep.estimators.other_images import finite_sample_gaps, mean_frequencies
    from bayesrep.report.other_images import frequencies_text
    from bayesrep.report.text import describe_study

    study = bayesrep.read_study(path)
    gaps = finite_sample_gaps(study) if study.classifiers else None
    lines = [describe_study(study), frequencies_text(mean_frequencies(study), gaps)]
    if any(data.answers is not None for data in study.datasets.values()):
        lines.append(plain(bayesrep.describe_crowd(study).sentence))
    return "\n".join([*lines, "No rule is broken."]), study.left_out


def _of_answers(path: Path) -> tuple[str, LeftOut]:
    """What a folder holds to which counts are still to be added."""
    from bayesrep.protocols import read_predictions
    from bayesrep.studies.folder import PREDICTIONS, names_in
    from bayesrep.studies.reading import images_left_out

    held = names_in(path / PREDICTIONS, "")
    answers = [read_predictions(path, (name,), ranks=1)[0] for name in held]
    lines = [
        f"{plain(each.dataset)}: answers of {len(each.classifiers)} classifiers to "
        f"{len(each.images):,} images"
        for each in answers
    ]
    lines.append("No counts of annotators yet: enough for match, multilabel and compare.")
    return "\n".join(lines), images_left_out(path)
