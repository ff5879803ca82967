"""From the files of a source to a study's folder, as far as the files go."""

from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

from bayesrep.errors import OptionError, StudyError, listing
from bayesrep.sources import READERS
from bayesrep.sources.tables.recognise import CANDIDATES
from bayesrep.studies.contents import StudyContents
from bayesrep.studies.rules import REQUIRED_ROLES
from bayesrep.studies.selection import Selection
from bayesrep.studies.study_folder import StudyFolder
from bayesrep.studies.words import ENTRY


def import_files(
    source: str,
    files: Sequence[Path],
    out: Path,
    *,
    force: bool = False,
    keep_workers: bool = False,
    selections: Mapping[str, Any] | None = None,
    words: str | None = None,
    progress: bool = False,
    **options: Any,
) -> StudyContents:
    """Read published data or tables, write what they hold, and return what the folder holds then.

    Options are those of the source's reader, None where they are left to it; any other is an
    `OptionError`. Workers' names are personal data: codes that cannot be undone, new ones every
    time, are written in their place unless they are to be kept. `selections` are the rules by
    which the counts kept images, by the data set's name (`Selection.parse` takes them). `words`
    names the vocabulary of what is printed of the study, in place of the source's.
    """
    reader = READERS[source]
    known = signature(reader.read).parameters
    given = {name: value for name, value in options.items() if value is not None}
    refuse_unknown_options(source, given, known)
    rules = {name: _rule(name, rule) for name, rule in (selections or {}).items()}
    ours = {"keep_workers": keep_workers, "progress": progress}
    given |= {name: value for name, value in ours.items() if name in known}
    if "name" in known and known["name"].default is None:
        given.setdefault("name", out.resolve().name)
    waited = StudyFolder(out).awaits_counts
    if waited and reader.adds_counts:
        # Answers say which data set is which.
        roles = (*REQUIRED_ROLES, CANDIDATES)
        given = {role: n for role, n in StudyFolder(out).roles.items() if role in roles} | given
    contents = reader.read(files, **given)
    if rules:
        contents = _apply_rules(contents, rules)
    if words is not None:
        contents = replace(contents, provenance={**contents.provenance, ENTRY: words})
    contents.write(out, force=force)
    if waited and contents.lacks("predictions"):
        # Answers on more images than are counted are no study yet: predict drops them.
        with suppress(StudyError):
            return StudyContents.open(out)
    return contents


def refuse_unknown_options(source: str, given: Iterable[str], known: Container[str]) -> None:
    """Refuse options that a source does not take."""
    for name in given:
        if name not in known:
            raise OptionError("option-foreign-to-source", source=source, option=name)


def _rule(name: str, given: Any) -> Selection:
    try:
        return Selection.parse(given)
    except StudyError as error:
        raise OptionError(error.violation.add_place(f"--selection of {name!r}")) from None


def _apply_rules(contents: StudyContents, rules: Mapping[str, Selection]) -> StudyContents:
    """The contents with what selected the images of some data sets."""
    if contents.lacks("counts"):
        raise OptionError("selection-but-files-lack-counts")
    names = [data.name for data in contents.datasets.values()]
    if strange := sorted(set(rules) - set(names)):
        raise OptionError(
            "selection-of-unknown-data-set",
            data_sets=listing(strange, "data set"),
            known_data_sets=", ".join(names),
        )
    return replace(
        contents,
        datasets={
            role: replace(data, selection=rules.get(data.name, data.selection))
            for role, data in contents.datasets.items()
        },
    )
