"""From the files of a source to a study's folder, as far as the files go."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from secrets import token_bytes
from typing import Any, TypeAlias

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.sources import ANSWERED, ANSWERS, READERS
from bayesrep.sources.evals import Evaluations, read_evaluations
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.selection import Selection
from bayesrep.studies.study import AnnotatedSet, Study
from bayesrep.studies.writing import write_annotations, write_answers

# A study; the answers on both data sets, to be counted; data sets, to be predicted, by role; or
# what logs say, with a study or without.
Imported: TypeAlias = Study | list[Predictions] | Mapping[str, AnnotatedSet] | Evaluations


def import_files(
    source: str,
    files: Sequence[Path],
    out: Path,
    *,
    force: bool = False,
    keep_workers: bool = False,
    selections: Mapping[str, Any] | None = None,
    progress: bool = False,
    **options: Any,
) -> Imported:
    """Read published data or tables, write what they hold, and return it.

    A study lacks its counts where ImageNet-v2's folder or logs of evaluations come alone or the
    source has none (`bayesrep.sources.ANSWERS`), and its predictions where tables hold none.
    Options are those of the source's reader, None where they are left to it; any other is an
    `OptionError`. Workers' names are personal data: codes that cannot be undone, new ones every
    time, are written in their place unless they are to be kept. `selections` are the rules by
    which the counts kept images, by the data set's name (`Selection.of` takes them).
    """
    reader: Callable[..., Any] = READERS.get(source) or ANSWERS[source]
    options = {name: value for name, value in options.items() if value is not None}
    door = read_evaluations if source == "evals" else reader
    known = inspect.signature(door).parameters
    for name in options:
        if name not in known:
            raise OptionError("option-foreign-to-source", source=source, option=name)
    rules = {name: _rule(name, given) for name, given in (selections or {}).items()}
    if source == "evals":  # its workers are models and scorers, whose names stay
        evaluations = read_evaluations(files, progress=progress, **options)
        if evaluations.study is None:
            if rules:
                raise OptionError("selection-but-logs-lack-counts")
            write_answers(
                evaluations.answers,
                out,
                force=force,
                attempts=evaluations.attempts,
                provenance=evaluations.provenance,
            )
        else:
            study = _with_rules(evaluations.study, rules)
            study.write(out, force=force, attempts=evaluations.attempts)
            evaluations = replace(evaluations, study=study)
        return evaluations
    answers: list[Predictions] = []
    alone = source in ANSWERS and all(path.is_dir() for path in files)
    if source not in READERS or alone:
        if rules:
            raise OptionError("selection-but-files-lack-counts")
        answers = ANSWERS[source](files, **options)
        write_answers(answers, out, force=force)
        return answers
    if source in ANSWERED:
        study, answers = ANSWERED[source](files, **options)
    else:
        study = READERS[source](files, **options)
    if not keep_workers:
        study = _with_codes(study)
    if isinstance(study, Study):
        study = _with_rules(study, rules)
    else:
        study = _apply_rules(study, rules)
    if isinstance(study, Study):
        study.write(out, force=force, answers=answers)
    else:
        name = options.get("name") or "study"
        provenance = {"source": source, "files": [path.name for path in files]}
        write_annotations(study, out, name=name, provenance=provenance, force=force)
    return study


def _rule(name: str, given: Any) -> Selection:
    try:
        return Selection.of(given)
    except StudyError as error:
        raise OptionError(error.violation.within(f"--selection of {name!r}")) from None


def _with_rules(study: Study, rules: Mapping[str, Selection]) -> Study:
    """The study with what selected the images of some data sets."""
    return replace(study, datasets=_apply_rules(study.datasets, rules)) if rules else study


def _apply_rules(
    datasets: Mapping[str, AnnotatedSet], rules: Mapping[str, Selection]
) -> dict[str, AnnotatedSet]:
    names = [data.name for data in datasets.values()]
    if strange := sorted(set(rules) - set(names)):
        raise OptionError(
            "selection-of-unknown-data-set",
            data_sets=listing(strange, "data set"),
            known_data_sets=", ".join(names),
        )
    return {
        role: replace(data, selection=rules.get(data.name, data.selection))
        for role, data in datasets.items()
    }


def _with_codes(study: Study | Mapping[str, AnnotatedSet]) -> Study | dict[str, AnnotatedSet]:
    """The same, workers' names replaced."""
    salt = token_bytes(32)
    datasets = study.datasets if isinstance(study, Study) else study
    coded = {
        role: data if data.answers is None else replace(data, answers=data.answers.coded(salt))
        for role, data in datasets.items()
    }
    return replace(study, datasets=coded) if isinstance(study, Study) else coded
