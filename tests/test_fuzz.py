"""A small fixed sample of `python -m experiments.fuzz`, read in this process."""

import pytest

from experiments import fuzz
from experiments.fuzzing.mutations import ACCIDENTS, STRUCTURED, structured
from experiments.fuzzing.targets import TARGETS
from experiments.fuzzing.worker import one, prepare, random_of

INPUTS = 20
ELSEWHERE = {"options", "posterior"}  # JAX compiles for these


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    made = {}

    def prepare_once(name):
        if name not in made:
            root = tmp_path_factory.mktemp(name)
            made[name] = (root, *prepare(name, root))
        return made[name]

    return prepare_once


@pytest.mark.parametrize("name", sorted(set(TARGETS) - ELSEWHERE))
def test_no_reader_stumbles(prepared, name):
    root, target, files, wanted = prepared(name)
    for number in range(INPUTS):
        facts = one(target, files, root, random_of(name, 0, number), wanted)
        assert facts["outcome"] not in fuzz.BAD, (name, number, facts)


def test_an_input_is_the_same_in_another_process(prepared):
    name = "tables-csv"
    root, target, files, wanted = prepared(name)
    told = {facts["number"]: facts for facts in fuzz.outcomes(name, 0, range(3))}
    for number in range(3):
        here = one(target, files, root, random_of(name, 0, number), wanted)
        assert told[number] == {"number": number, **here}


@pytest.mark.parametrize("accident", ACCIDENTS, ids=lambda accident: accident.__name__)
def test_accidents_are_functions_of_the_generator(accident):
    data = bytes(range(256)) * 4
    changed = [accident(random_of("x", 0, number), data) for number in range(5)]
    assert changed == [accident(random_of("x", 0, number), data) for number in range(5)]
    assert any(each != data for each in changed)
    accident(random_of("x", 0, 0), b"")  # nothing to change, and no error


def test_every_format_is_forged_too(prepared):
    for name in sorted(set(TARGETS) - ELSEWHERE):
        _, _, files, _ = prepared(name)
        for file, data in files.items():
            if name == "run" and not file.endswith("run.json"):
                continue  # whose files hold a word where a run's hold results
            odd = [structured(random_of(name, 0, number), file, data) for number in range(9)]
            assert any(each is not None for each in odd) == file.endswith(tuple(STRUCTURED))


def test_the_table_names_the_command_that_repeats_a_failure():
    failure = {"number": 7, "outcome": "crash", "text": "SIGSEGV"}
    counts = {"inputs": 9, "counts": {"refused": 8, "crash": 1}, "failures": [failure]}
    text = fuzz.report({"study": counts}, seed=3)
    assert "python -m experiments.fuzz --target study --seed 3 --only 7" in text
    assert sum(fuzz.inputs_of(100_000, list(TARGETS)).values()) == 100_000
