"""`bayesrep collect pilot`: simulated workers answer, to try everything before a cent is spent."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from bayesrep.commands.options import add_shared, given_options, seed
from bayesrep.commands.output import emit, new_folder

EXAMPLE = "tasks --out trial"


def add(parser: ArgumentParser) -> None:
    option = parser.add_argument
    option("collection", type=Path, metavar="COLLECTION", help="folder of the tasks")
    option("--people", type=int, dest="number", metavar="N", help="how many there are (30)")
    option("--own", type=float, help="mean selection frequency of an image's own label (0.85)")
    option("--other", type=float, help="mean selection frequency of another label (0.1)")
    option("--varied", type=float, help="beta: how alike images are; small is varied (4.0)")
    option("--spread", type=float, help="sd of people's leniencies, on the logit scale (0.5)")
    option("--spam", type=float, help="share of people who do not look (0.0)")
    option("--seconds", type=float, help="median time of a task (60.0)")
    option("--seed", type=seed, help="of everything (0)")
    option(
        "--out",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="of the answers, a file a person, as the offline page saves them",
    )
    add_shared(parser, "--force")


def run(arguments: Namespace) -> int:
    from bayesrep import collect
    from bayesrep.collect import simulated_workers

    new_folder(arguments.out, arguments)
    people = simulated_workers.Respondents(
        **given_options(arguments, simulated_workers.Respondents)
    )
    answers = simulated_workers.answer(collect.read_collection(arguments.collection), people)
    simulated_workers.write_pilot(arguments.out, answers)
    done = sum(len(each["answers"]) for each in answers)
    facts = {"people": len(answers), "assignments": done, "out": str(arguments.out)}
    text = (
        f"{len(answers):,} simulated workers completed {done:,} tasks; written to {arguments.out}"
    )
    return emit(arguments, text, facts)
