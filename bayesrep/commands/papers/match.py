"""`bayesrep papers match`: accuracy on images about which a classifier says alike."""

from argparse import ArgumentParser, Namespace

from bayesrep.commands.options import add_datasets, add_protocol, given_options
from bayesrep.commands.output import emit_table
from bayesrep.studies.vocabulary import named_words

EXAMPLE = "my-study"


def add(parser: ArgumentParser) -> None:
    add_protocol(parser, "accuracies", "curves", "confidence")
    add_datasets(parser)
    parser.add_argument("--epsilon", type=float, help="largest difference in probability (0.005)")
    parser.add_argument("--runs", type=int, help="random matchings (10)")


def run(arguments: Namespace) -> int:
    from bayesrep.protocols import match, read_predictions
    from bayesrep.report.protocols_text import matched_table
    from bayesrep.report.table_format import rows_table
    from bayesrep.studies.study_folder import StudyFolder

    roles = (arguments.reference, arguments.replication)
    both = read_predictions(arguments.study, roles, ranks=1, confidence=True)
    folder = StudyFolder(arguments.study)
    words = named_words(folder.provenance)
    matched = match(*both, progress=not arguments.quiet, **given_options(arguments, match))
    table = getattr(matched, arguments.table)
    text = (
        matched_table(table, words)
        if arguments.table == "accuracies"
        else rows_table(table, words=words)
    )
    return emit_table(arguments, table, text, left_out=folder.images_left_out)
