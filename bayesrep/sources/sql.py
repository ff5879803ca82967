"""SQL statement whose result is a study: for answers in a database, or on many machines.

It takes two tables,

    annotations   dataset, image, selected (true and false, or 1 and 0): one row an answer
    predictions   dataset, image, classifier, correct: one row an image and classifier

and its result, dataset, image, selected, shown, classifier, correct, is what `import tables` takes.
Nothing is dropped: an answer without `selected` makes its image's count missing, and an image that
only one of the two tables has is in the result with what is missing, so that the import names it.
"""

from bayesrep.errors import OptionError

SQL_DIALECTS = {"duckdb": ('"', "BIGINT"), "spark": ("`", "BIGINT"), "bigquery": ("`", "INT64")}
"""By dialect: quote of a name, and type of a whole number."""

_STATEMENT_TEMPLATE = """\
WITH counted AS (
  SELECT
    dataset,
    image,
    CASE WHEN COUNT(*) = COUNT(selected)
      THEN CAST(SUM(CAST(selected AS {whole})) AS {whole}) END AS selected,
    COUNT(*) AS shown
  FROM {annotations}
  WHERE dataset IN ({names})
  GROUP BY dataset, image
), predicted AS (
  SELECT dataset, image, classifier, correct
  FROM {predictions}
  WHERE dataset IN ({names})
)
SELECT
  COALESCE(counted.dataset, predicted.dataset) AS dataset,
  COALESCE(counted.image, predicted.image) AS image,
  counted.selected,
  counted.shown,
  predicted.classifier,
  predicted.correct
FROM counted
FULL OUTER JOIN predicted
  ON counted.dataset = predicted.dataset AND counted.image = predicted.image
ORDER BY dataset, image, classifier
"""


def statement(
    dialect: str,
    *,
    annotations: str = "annotations",
    predictions: str = "predictions",
    reference: str = "reference",
    replication: str = "replication",
) -> str:
    """Write the statement.

    Parameters
    ----------
    dialect
        A name of `SQL_DIALECTS`.
    annotations, predictions
        Tables, with dots between the parts of a name.
    reference, replication
        Names of the two data sets in the column dataset.

    Raises
    ------
    OptionError
        If there is no such dialect, or a table's name has an empty part or the dialect's quote.
    """
    if dialect not in SQL_DIALECTS:
        raise OptionError("unknown-sql-dialect", dialect=dialect, dialects=", ".join(SQL_DIALECTS))
    quote, whole = SQL_DIALECTS[dialect]

    def table(name: str) -> str:
        parts = name.split(".")
        if quote in name or not all(part.strip() for part in parts):
            raise OptionError("table-name-not-sql", table=name, dialect=dialect)
        return ".".join(f"{quote}{part}{quote}" for part in parts)

    # Spark and BigQuery escape with a backslash, which must be doubled itself.
    escaped = "\\'" if dialect in ("spark", "bigquery") else "''"

    def text(value: str) -> str:
        if escaped.startswith("\\"):
            value = value.replace("\\", "\\\\")
        return "'" + value.replace("'", escaped) + "'"

    return _STATEMENT_TEMPLATE.format(
        whole=whole,
        annotations=table(annotations),
        predictions=table(predictions),
        names=", ".join(map(text, (reference, replication))),
    )
