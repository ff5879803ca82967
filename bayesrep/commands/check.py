"""`bayesrep check`: what data hold, every rule that they break, and what they allow to say."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import bayesrep
from bayesrep import process
from bayesrep.commands.options import TABLE_OPTIONS, add_roles, table_options
from bayesrep.commands.output import LeftOut, emit, finding
from bayesrep.errors import OptionError, StudyError, plain_text
from bayesrep.files.given_files import split_name
from bayesrep.studies.leniency import add_people
from bayesrep.studies.vocabulary import named_words, words_of

EXAMPLE = "counts.csv predictions.csv --reference v1 --replication v2"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "paths",
        type=Path,
        nargs="+",
        metavar="PATH",
        help="folder of a study; the tables that `bayesrep import tables` or `run` would take "
        "(NAME=FILE: all rows are of that data set); a table of attempts; or logs of evaluations",
    )
    add_roles(parser)


def run(arguments: Namespace) -> int:
    from bayesrep.report.study_text import allowed_text
    from bayesrep.sources.data_uses import are_logs, judge_logs

    paths = arguments.paths
    missing = next((path for path in paths if not split_name(path)[1].exists()), None)
    if missing is not None and (missing.suffix or len(paths) > 1):
        raise OptionError("check-path-missing", path=missing)
    folders = [path for path in paths if path.is_dir()]
    named = bool(table_options(arguments))
    if missing is None and not named and are_logs([split_name(path)[1] for path in paths]):
        what, allowed = judge_logs(paths)
        facts = {"is": what, "files": list(map(str, paths)), "broken": [], **_facts_of(allowed)}
        return emit(arguments, f"{what}\n\n{allowed_text(allowed)}", facts)
    if not folders and all(split_name(path)[1].is_file() for path in paths):
        return _check_files(arguments)
    if len(paths) > 1:
        strange = next(path for path in paths if not path.is_file())
        raise OptionError("check-path-not-file", path=strange)
    if named:
        raise OptionError("roles-given-with-study")
    return _check_folder(arguments, paths[0])


def _facts_of(allowed: Sequence[Any]) -> dict[str, Any]:
    from bayesrep.studies.capabilities import supports_adjustment

    supported = supports_adjustment(allowed)
    return {"supported": supported, "allows": [asdict(each) for each in allowed]}


def _check_files(arguments: Namespace) -> int:
    from bayesrep.report.study_text import allowed_text, describe_study
    from bayesrep.sources.data_uses import judge_contents
    from bayesrep.sources.tables import check_tables

    options = table_options(arguments)
    people = options.pop("people", None)
    tables, problems = check_tables(arguments.paths, **options)
    facts = {"files": [str(path) for path in arguments.paths], "broken": problems}
    if tables is None:
        return _report_violations(arguments, problems, facts, "the tables")
    tables = replace(tables, provenance=add_people(tables.provenance, people))
    counts_alone = tables.lacks("predictions")
    if counts_alone:
        words = named_words(tables.provenance)
        counted = ", ".join(
            f"{plain_text(d.name)} ({len(d.images):,} {words.images})"
            for d in tables.datasets.values()
        )
        lines = [f"counts of {counted}, and no predictions yet"]
    else:
        allowed = judge_contents(tables)
        lines = [describe_study(tables.study()), "", allowed_text(allowed), ""]
        facts |= _facts_of(allowed)
    named: list[str] = []
    for each in TABLE_OPTIONS:
        given = getattr(arguments, each, None)
        for text in given if isinstance(given, list) else [given]:
            named += [] if text is None else [f"--{each}", str(text)]
    then = ("import", "tables") if counts_alone else ("run",)
    following = process.command(*then, *arguments.paths, *named, "--out", "FOLDER")
    lines += ["No rule is broken.", f"Next: {following}"]
    return emit(arguments, "\n".join(lines), facts)


def _check_folder(arguments: Namespace, path: Path) -> int:
    from bayesrep.studies.reading import check_study
    from bayesrep.studies.study_folder import StudyFolder

    facts = {"study": str(path)}
    describe = _of_answers if StudyFolder(path).awaits_counts else _of_study
    try:
        text, more, left_out = describe(path)
        return emit(arguments, text, {**facts, "broken": [], **more}, left_out)
    except StudyError as error:
        if not path.is_dir():
            raise
        broken = [str(error)] if describe is _of_answers else check_study(path)
    return _report_violations(arguments, broken, {**facts, "broken": broken}, str(path))


def _report_violations(
    arguments: Namespace, broken: Sequence[str], facts: Mapping[str, Any], where: str
) -> int:
    from bayesrep.studies.representation import number

    emit(arguments, "\n".join(map(plain_text, broken)), facts)
    return finding(f"{where}: {number(len(broken), 'fault')}")


_Told = tuple[str, Mapping[str, Any], LeftOut]


def _of_study(path: Path) -> _Told:
    from bayesrep.estimators.finite_sample import finite_sample_gaps, mean_frequencies
    from bayesrep.report.other_images import frequencies_text
    from bayesrep.report.study_text import allowed_text, describe_study
    from bayesrep.studies.capabilities import of_study
    from bayesrep.studies.study_folder import StudyFolder

    study = bayesrep.read_study(path)
    allowed = of_study(study, StudyFolder(path).attempts)
    gaps = finite_sample_gaps(study) if study.classifiers else None
    means = mean_frequencies(study)
    lines = [describe_study(study), frequencies_text(means, gaps, words_of(study))]
    facts = {
        "frequencies": means.to_dicts(),
        "finite_sample": [] if gaps is None else gaps.to_dicts(),
        **_facts_of(allowed),
    }
    if any(data.answers is not None for data in study.datasets.values()):
        lines.append(plain_text(bayesrep.describe_crowd(study).sentence))
    lines += ["", allowed_text(allowed), "", "No rule is broken."]
    return "\n".join(lines), facts, study.left_out


def _of_answers(path: Path) -> _Told:
    """Describe a folder of answers to which counts are still to be added."""
    from bayesrep.report.study_text import allowed_text
    from bayesrep.sources.data_uses import judge_contents
    from bayesrep.studies.draft import StudyContents

    contents = StudyContents.open(path)
    allowed = judge_contents(contents)
    words = named_words(contents.provenance)
    lines = [
        f"{plain_text(each.dataset)}: answers of {len(each.classifiers)} {words.classifiers} to "
        f"{len(each.images):,} {words.images}"
        for each in contents.answers
    ]
    lines.append(f"No counts of {words.annotators} yet: enough for papers compare.")
    lines += ["", allowed_text(allowed)]
    return "\n".join(lines), _facts_of(allowed), contents.left_out
