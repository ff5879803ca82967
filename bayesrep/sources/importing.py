"""Import of a source's files into a study's folder, complete or not yet."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.sources import READERS
from bayesrep.sources.tables.recognise import CANDIDATES_ROLE
from bayesrep.studies.draft import StudyContents
from bayesrep.studies.leniency import Annotators, add_people, warn_of_people
from bayesrep.studies.selection import Selection
from bayesrep.studies.study_folder import StudyFolder
from bayesrep.studies.validation import REQUIRED_ROLES


def import_files(
    source: str,
    files: Sequence[Path],
    out: Path,
    *,
    force: bool = False,
    keep_workers: bool = False,
    selections: Mapping[str, Any] | None = None,
    people: Annotators = None,
    progress: bool = False,
    **options: Any,
) -> StudyContents:
    """Read published data or tables, write them to a folder, and return its contents."""
    reader = READERS[source]
    parameters = signature(reader.read).parameters
    reader_options = {name: value for name, value in options.items() if value is not None}
    rules: dict[str, Selection] = {}
    for name, rule in (selections or {}).items():
        try:
            rules[name] = Selection.parse(rule)
        except StudyError as error:
            raise OptionError(error.violation.add_place(f"--selection of {name!r}")) from None
    ours = {"keep_workers": keep_workers, "progress": progress}
    reader_options |= {name: value for name, value in ours.items() if name in parameters}
    if "name" in parameters and parameters["name"].default is None:
        reader_options.setdefault("name", out.resolve().name)
    waited = StudyFolder(out).awaits_counts
    if waited and reader.adds_counts:
        # The roles of the waiting answers decide the roles of the counts.
        roles = (*REQUIRED_ROLES, CANDIDATES_ROLE)
        reader_options = {
            role: n for role, n in StudyFolder(out).roles.items() if role in roles
        } | reader_options
    contents = reader.read(files, **reader_options)
    if rules:
        if contents.lacks("counts"):
            raise OptionError("selection-but-files-lack-counts")
        names = [data.name for data in contents.datasets.values()]
        if strange := sorted(set(rules) - set(names)):
            raise OptionError(
                "selection-of-unknown-data-set",
                data_sets=listing(strange, "data set"),
                known_data_sets=", ".join(names),
            )
        datasets = {
            role: replace(data, selection=rules.get(data.name, data.selection))
            for role, data in contents.datasets.items()
        }
        contents = replace(contents, datasets=datasets)
    contents = replace(contents, provenance=add_people(contents.provenance, people))
    warn_of_people(contents.datasets, people)
    contents.write(out, force=force)
    if waited and contents.lacks("predictions"):
        # Answers on more images than are counted are no study yet: predict drops them.
        with suppress(StudyError):
            return StudyContents.open(out)
    return contents
