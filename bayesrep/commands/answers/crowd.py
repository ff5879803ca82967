"""`bayesrep answers crowd`: who answered, how workers differ, and what that adds to errors."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import bayesrep
from bayesrep.commands.options import add_shared
from bayesrep.commands.output import emit, new_file, write_csv
from bayesrep.studies.vocabulary import words_of

EXAMPLE = "my-study"


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study")
    parser.add_argument(
        "--workers", type=Path, metavar="FILE", help="write a table of the workers here (CSV)"
    )
    parser.add_argument(
        "--aggregators",
        action="store_true",
        help="what crowd-kit's Dawid-Skene, MACE and GLAD say of the same answers (extra [crowd])",
    )


def run(arguments: Namespace) -> int:
    from bayesrep.report.answers_text import aggregators_text, crowd_text

    if arguments.workers:
        new_file(arguments.workers, arguments)
    study = bayesrep.read_study(arguments.study)
    crowd = bayesrep.describe_crowd(study)
    others = None
    if arguments.aggregators:
        from bayesrep.answers import aggregate_answers

        others = aggregate_answers(study, seed=arguments.seed or 0)
    if arguments.workers:
        write_csv(crowd.workers, arguments.workers)
    facts = {
        "rows": crowd.datasets.to_dicts(),
        "in_common": crowd.in_common,
        "difference_images": crowd.difference_images,
        "difference_workers": crowd.difference_workers,
        "sentence": crowd.sentence,
        "aggregators": None if others is None else others.to_dicts(),
    }
    words = words_of(study)
    text = crowd_text(crowd, words)
    if others is not None:
        text += f"\n\n{aggregators_text(others, words)}"
    return emit(arguments, text, facts, study.left_out)
