"""`bayesrep answers crowd`: who answered, how workers differ, and what that adds to errors."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import bayesrep
from bayesrep.commands import shapes
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
    add_shared(parser, "--seed", "--force")


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


FORMS: shapes.Forms = {
    "": {
        "rows": shapes.rows(
            {
                **shapes.COUNT_FIELDS,
                "answers_a_worker": shapes.number("median"),
                "correlation": shapes.nullable(shapes.number("of two answers of a worker")),
                "annotators": shapes.number("an image, mean"),
                "effective_answers": shapes.nullable(shapes.number()),
                "effective_annotators": shapes.nullable(shapes.number()),
                "drift": shapes.nullable(
                    shapes.number("null where the order of answers is not known")
                ),
                "drift_error": shapes.nullable(shapes.number()),
            }
        ),
        "in_common": shapes.nullable(shapes.count("workers of both data sets")),
        "difference_images": shapes.nullable(
            shapes.fraction("standard error of the difference of frequencies, over images")
        ),
        "difference_workers": shapes.nullable(shapes.fraction("and over workers")),
        "sentence": shapes.text("the same in words"),
        "aggregators": shapes.nullable(
            shapes.rows(
                {
                    "dataset": shapes.text(),
                    "method": shapes.text(),
                    "images": shapes.count(),
                    "mean": shapes.fraction("of the probabilities of a yes"),
                    "yes": shapes.fraction("images where it is above 1/2"),
                    "certain": shapes.fraction("images where it is below 0.05 or above 0.95"),
                    "agreement": shapes.fraction("images on the same side of 1/2 as the counts"),
                },
                "null without `--aggregators`",
            )
        ),
        **shapes.LEFT_OUT_FIELD,
    }
}
