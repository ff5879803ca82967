"""The table of subsets as it is printed: a row a participant, subsets side by side."""

import polars as pl

from bayesrep.report.table_format import columns, percent
from bayesrep.studies.validation import REQUIRED_ROLES
from bayesrep.studies.vocabulary import IMAGE_WORDS, Words

_MOST_BESIDE = 4


def subsets_text(table: pl.DataFrame, words: Words = IMAGE_WORDS) -> str:
    """Rows of `bayesrep.protocols.compare_subsets` as in table 2 of Shankar et al. (2020)."""
    names = table["subset"].unique(maintain_order=True).to_list()
    who = table.filter(subset=names[0])
    parts = []
    for start in range(0, len(names), _MOST_BESIDE):
        names_shown = names[start : start + _MOST_BESIDE]
        header = ["participant", "kind"]
        rows = [[row["participant"], words.name_of(row["kind"])] for row in who.to_dicts()]
        for name in names_shown:
            part = table.filter(subset=name)
            header += [name, "replication"]
            for cells, row in zip(rows, part.to_dicts(), strict=True):
                cells += [percent(row[f"{role}_accuracy"]) for role in REQUIRED_ROLES]
        sizes = [""] * 2 + [
            f"{table.filter(subset=name)[f'{role}_images'].max():,}"
            for name in names_shown
            for role in REQUIRED_ROLES
        ]
        parts.append(columns(header, [[words.images, *sizes[1:]], *rows]))
    metric = table["metric"][0]
    remark = f"Accuracy ({metric}) in percent, on the reference and beside it the replication."
    return "\n\n".join([*parts, remark])
