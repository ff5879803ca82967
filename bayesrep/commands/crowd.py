"""`bayesrep crowd`: who answered, how workers differ, and what that adds to errors."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import bayesrep
from bayesrep.commands.options import add_shared
from bayesrep.commands.output import emit, new_file


def add(parser: ArgumentParser) -> None:
    add_shared(parser, "study")
    parser.add_argument(
        "--workers", type=Path, metavar="FILE", help="write a table of the workers here (CSV)"
    )
    add_shared(parser, "--force")


def run(arguments: Namespace) -> int:
    from bayesrep.report.text import crowd_text

    if arguments.workers:
        new_file(arguments.workers, force=arguments.force)
    study = bayesrep.read_study(arguments.study)
    crowd = bayesrep.describe_crowd(study)
    if arguments.workers:
        crowd.workers.write_csv(arguments.workers)
    facts = {
        "rows": crowd.datasets.to_dicts(),
        "in_common": crowd.in_common,
        "difference_images": crowd.difference_images,
        "difference_workers": crowd.difference_workers,
        "sentence": crowd.sentence,
    }
    return emit(arguments, crowd_text(crowd), facts, study.left_out)
