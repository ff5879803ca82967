"""`bayesrep answers clean`: leave out answers by published rules of quality control."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bayesrep.commands.options import names
from bayesrep.commands.output import emit, new_file, write_csv
from bayesrep.errors import OptionError

EXAMPLE = "answers.csv --rules repeats,controls --out clean.csv"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "table",
        type=Path,
        help="a table, a row an answer: dataset, image, worker, selected; for some rules "
        "task, control (positive, negative or nothing), seconds",
    )
    option("--out", type=Path, required=True, metavar="FILE", help="the answers to count, as CSV")
    option(
        "--rules",
        type=names,
        required=True,
        metavar="NAME,NAME",
        help="engstrom2020, tsipras2020, time, repeats, controls, equal: applied in this order",
    )
    option("--seconds", type=float, default=0.0, help="least time of a task (rule time)")
    option("--answers", type=int, help="of every image (rule equal); the fewest that any has")


def run(arguments: Namespace) -> int:
    from bayesrep.answers.quality import RuleInputs, clean_answers
    from bayesrep.report.answers_text import cleaned_text
    from bayesrep.sources.table_files import read_answers

    if arguments.answers is not None and arguments.answers < 1:
        raise OptionError("answers-option-below-one", answers=arguments.answers)
    if not arguments.seconds >= 0:
        raise OptionError("task-seconds-below-zero", seconds=arguments.seconds)
    new_file(arguments.out, arguments)
    answers = read_answers(arguments.table)
    inputs = RuleInputs(arguments.seconds, arguments.answers, arguments.seed or 0)
    cleaned = clean_answers(answers, arguments.rules, inputs)
    write_csv(cleaned.kept, arguments.out)
    facts = {"rows": cleaned.dropped.to_dicts(), "effect": cleaned.effect.to_dicts()}
    return emit(arguments, cleaned_text(cleaned), {**facts, "out": str(arguments.out)})
