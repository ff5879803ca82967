"""Logs of evaluation tools, one file a format; the same records come out of each.

every_eval_ever.py   instance-level JSON Lines of Every Eval Ever, schema 0.3
lm_eval.py           samples_*.jsonl of lm-evaluation-harness, with results_*.json
inspect_logs.py      logs of Inspect: .eval (its header and summaries) and .json
score_tables.py      tables of item, model and score, with columns of any name
detect_format.py     detection of these formats
records.py           the common form of all: a row for each item, model, attempt and score
solved.py            from scores to solved or not
match_items.py       items of several models' files: equal, missing or repeated ones
evidence.py          verdicts of all logs on two data sets
count_source.py      counts of a study from judges, solvers or a table
survey.py            contents of logs before any choice
reading.py           start here: from paths to a study, or to answers that await their counts
"""

from bayesrep.sources.evals.reading import read_evaluations
from bayesrep.sources.evals.survey import list_contents

__all__ = ["list_contents", "read_evaluations"]
