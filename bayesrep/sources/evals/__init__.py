"""Logs of evaluation tools, one file a format; the same records come out of each.

every_eval_ever.py   instance-level JSON Lines of Every Eval Ever, schema 0.3
lm_eval.py           samples_*.jsonl of lm-evaluation-harness, with results_*.json
inspect_logs.py      logs of Inspect: .eval (its header and summaries) and .json
score_tables.py      tables of item, model and score, whose columns may be called anyhow
recognised.py        which of these a file is
records.py           what each of them becomes: a row for each item, model, attempt and score
verdicts.py          from scores to solved or not
joined.py            one model's file beside another's: which items are the same, which lack
evidence.py          what all of them say of two data sets
counted.py           where the counts of a study come from: judges, solvers, a table
contents.py          what logs hold, where nothing has been chosen yet
reading.py           the door: from paths to a study, or to answers that await their counts
"""

from bayesrep.sources.evals.contents import list_contents
from bayesrep.sources.evals.reading import read_evaluations

__all__ = ["list_contents", "read_evaluations"]
