"""`bayesrep answers remeasure`: what items that were kept would say if they were measured again."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bayesrep
from bayesrep.commands.options import add_shared, read_fitted
from bayesrep.commands.output import emit_table
from bayesrep.errors import OptionError, StudyError
from bayesrep.studies.vocabulary import IMAGE_WORDS, named_words, words_of

EXAMPLE = "my-study posterior.nc"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "study",
        type=Path,
        metavar="STUDY|TABLE",
        help="a study, or a table of item, selected, shown or of item, model, solved, attempts",
    )
    option(
        "posterior",
        type=Path,
        nargs="?",
        metavar="posterior.nc",
        help="posterior of a fit; without one each data set is measured by its counts alone",
    )
    option("--selection", metavar="RULE", help="of a table: rule by which its items were kept")
    option("--answers", type=int, metavar="N", help="of a table: predict N new answers per item")
    add_shared(parser, "--allow-unconverged")


def run(arguments: Namespace) -> int:
    from bayesrep.report.study_text import remeasured_table
    from bayesrep.studies.study_folder import StudyFolder

    seed = arguments.seed or 0
    if arguments.posterior is None:
        table = _remeasure_each(arguments, seed)
        folder = arguments.study.is_dir()
        words = named_words(StudyFolder(arguments.study).provenance) if folder else IMAGE_WORDS
        return emit_table(arguments, table, remeasured_table(table, words))
    if arguments.selection is not None or arguments.answers is not None:
        raise OptionError("counts-options-with-fit")
    from bayesrep.posterior.fitted import Fitted

    study, posterior = read_fitted(arguments)
    Fitted(study, posterior).require_convergence(allow_unconverged=arguments.allow_unconverged)
    table = bayesrep.remeasure(study, posterior, seed=seed)
    text = remeasured_table(table, words_of(study))
    return emit_table(arguments, table, text, left_out=study.left_out)


def _remeasure_each(arguments: Namespace, seed: int) -> Any:
    """A row for each set of counts, none of which knows of the others."""
    import polars as pl

    from bayesrep.estimators.remeasured import as_row, remeasure_counts

    rows: list[dict[str, Any]] = []
    options = {"answers": arguments.answers, "seed": seed}
    for name, (selected, n_shown, images), rule in _counts(arguments.study, arguments.selection):
        try:
            row = remeasure_counts(selected, n_shown, rule, images=images, **options)
        except StudyError as error:
            raise error.add_place(f"{arguments.study}: {name}") from None
        rows.append(as_row(name, rule, row))
    return pl.DataFrame(rows)


def _counts(path: Path, rule: str | None) -> Iterator[tuple[str, tuple[Any, Any, Any], Any]]:
    """Yield each data set's, or model's, name; k, n and item names; and selection rule."""
    import polars as pl

    from bayesrep.files.tables import read_only, require
    from bayesrep.files.values import texts, whole_numbers
    from bayesrep.studies.attempts import of_table
    from bayesrep.studies.column_aliases import COLUMN_ALIASES, in_our_words
    from bayesrep.studies.selection import Selection

    if path.is_dir():
        if rule is not None:
            raise OptionError("selection-option-with-study")
        for data in bayesrep.read_study(path).datasets.values():
            yield data.name, (data.selected, data.shown, data.images), data.selection
        return
    stated_rule = None if rule is None else Selection.parse(rule)
    own = ("dataset", "image", "classifier", "selected", "shown", "correct", "attempts")
    sheet = read_only(path, (*own, *COLUMN_ALIASES))
    table, place, columns = sheet.frame, sheet.place, set(sheet.frame.columns)
    if {"solved", "correct"} & columns and not {"selected", "shown"} & columns:
        for each in of_table(table, place, dataset=path.stem):
            counts = each.solved, each.attempts, each.images
            yield f"{each.classifier} on {each.dataset}", counts, stated_rule
        return
    table = table.rename(in_our_words(table.columns, ("image",)))
    require(table, ("selected", "shown"), place)
    if by := [name for name in ("classifier", "model") if name in columns]:
        raise StudyError("counts-by-classifier", where=place, column=by[0])
    if "image" not in table.columns:
        rows = range(place.first, place.first + len(table))
        table = table.with_columns(image=pl.Series([f"{place.noun} {row}" for row in rows]))
    if "dataset" not in table.columns:
        table = table.with_columns(dataset=pl.lit(path.stem))
    table = table.with_columns(
        *(texts(table[name], place) for name in ("dataset", "image")),
        *(whole_numbers(table[name], place) for name in ("selected", "shown")),
    )
    for (name,), part in table.group_by("dataset", maintain_order=True):
        k, n, images = (part[each].to_numpy() for each in ("selected", "shown", "image"))
        yield str(name), (k, n, images), stated_rule
