"""From the files of a source to a study's folder, as far as the files go."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from secrets import token_bytes
from typing import Any, TypeAlias

from bayesrep.errors import OptionError
from bayesrep.sources import ANSWERED, ANSWERS, READERS
from bayesrep.studies.predictions import Predictions
from bayesrep.studies.study import AnnotatedSet, Study
from bayesrep.studies.writing import write_annotations, write_answers

# A study; the answers on both data sets, to be counted; or data sets, to be predicted, by role.
Imported: TypeAlias = Study | list[Predictions] | Mapping[str, AnnotatedSet]


def import_files(
    source: str,
    files: Sequence[Path],
    out: Path,
    *,
    force: bool = False,
    keep_workers: bool = False,
    **options: Any,
) -> Imported:
    """Read published data or tables, write what they hold, and return it.

    A study lacks its counts where ImageNet-v2's folder comes alone or the source has none
    (`bayesrep.sources.ANSWERS`), and its predictions where
    tables hold none. Options are those of the source's reader, None where they are left to it;
    any other is an `OptionError`. Workers' names are personal data: codes that cannot be undone,
    new ones every time, are written in their place unless they are to be kept.
    """
    reader: Callable[..., Any] = READERS.get(source) or ANSWERS[source]
    options = {name: value for name, value in options.items() if value is not None}
    for name in options:
        if name not in inspect.signature(reader).parameters:
            raise OptionError(f"the source {source} takes no --{name}")
    answers: list[Predictions] = []
    alone = source in ANSWERS and all(path.is_dir() for path in files)
    if source not in READERS or alone:
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
        study.write(out, force=force, answers=answers)
    else:
        name = options.get("name") or "study"
        provenance = {"source": source, "files": [path.name for path in files]}
        write_annotations(study, out, name=name, provenance=provenance, force=force)
    return study


def _with_codes(study: Study | Mapping[str, AnnotatedSet]) -> Study | dict[str, AnnotatedSet]:
    """The same, workers' names replaced."""
    salt = token_bytes(32)
    datasets = study.datasets if isinstance(study, Study) else study
    coded = {
        role: data if data.answers is None else replace(data, answers=data.answers.coded(salt))
        for role, data in datasets.items()
    }
    return replace(study, datasets=coded) if isinstance(study, Study) else coded
