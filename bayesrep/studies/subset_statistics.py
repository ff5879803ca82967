"""Sufficient statistics of a subset of a study's images, and of each group of images."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bayesrep.errors import StudyError, listing
from bayesrep.studies.statistics import SufficientStatistics, count_cells
from bayesrep.studies.study import Study
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.studies.vocabulary import words_of


def statistics_on(study: Study, rows: Mapping[str, NDArray[np.intp]]) -> SufficientStatistics:
    """Sufficient statistics of some images."""
    cells = {role: count_cells(study.datasets[role], numbers) for role, numbers in rows.items()}
    return SufficientStatistics(study.classifiers, cells, words_of(study))


def statistics_by_group(
    study: Study, column: str, roles: Sequence[str] = REQUIRED_ROLES
) -> dict[str, SufficientStatistics]:
    """Sufficient statistics of every group of images, sorted by the group's name."""
    members: dict[str, NDArray[np.str_]] = {}
    for role in roles:
        data = study.datasets[role]
        if column not in data.groups:
            facts = {"column": column, "known_columns": ", ".join(sorted(data.groups)) or "none"}
            raise StudyError("data-set-without-group-column", dataset=data.name, **facts)
        members[role] = data.groups[column]
    names = {role: set(np.unique(values).tolist()) for role, values in members.items()}
    common, union = set.intersection(*names.values()), set.union(*names.values())
    if absent := sorted(union - common):
        groups = listing(absent, "group")
        raise StudyError("group-missing-in-data-set", column=column, groups=groups)
    return {
        name: statistics_on(study, {r: np.flatnonzero(members[r] == name) for r in roles})
        for name in sorted(union)
    }
