"""Every command says of the library's options what the library says: words, defaults, names."""

import inspect
import io
import json
import re
import shlex
import subprocess
import sys
from argparse import ArgumentParser
from contextlib import redirect_stdout
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest
import zoo
from refusals import check, refusal

import bayesrep
from bayesrep import choices, cli, commands, protocols
from bayesrep.choices import AccuracyInterval, Kept, Key, PassTarget, Precision, Prior, Role
from bayesrep.cli import COMMANDS, GROUPS, TABLE_COMMANDS
from bayesrep.commands import import_command
from bayesrep.errors import reason
from bayesrep.estimators.annotators import extrapolate
from bayesrep.models import MODELS
from bayesrep.planning import MATCHING_METHODS, match_images, next_batch, plan, rematch
from bayesrep.report.demo import run_demo
from bayesrep.report.sections import gather
from bayesrep.sources import READERS, raw_answers
from bayesrep.studies.validation import REQUIRED_ROLES

# The functions whose options a command takes; import and figure pass on what is asked for, to
# one of several.
FUNCTIONS = {
    "demo": [run_demo],
    "simulate": [bayesrep.simulate_study],
    "predict": [bayesrep.predict],
    "estimate": [bayesrep.estimate, extrapolate],
    "fit": [bayesrep.fit],
    "collect match": [match_images, rematch],
    "collect plan": [plan, next_batch],
    "papers compare": [protocols.compare, protocols.confusion],
    "report": [gather],
    "run": [gather],
}
WORDS = {
    ("answers import", "source"): tuple(raw_answers.RAW_SOURCES),
    ("answers import", "maybe_is"): raw_answers.MAYBE_RULES,
    ("fit", "method"): choices.list_methods(),
    ("run", "method"): choices.list_methods(),
    ("import evals", "key"): get_args(Key),
    ("predict", "precision"): get_args(Precision),
    ("predict", "keep"): get_args(Kept),
    ("collect match", "method"): tuple(MATCHING_METHODS),
    ("collect plan", "prior"): get_args(Prior),
    ("papers compare", "interval"): protocols.INTERVALS,
    ("papers passk", "target"): get_args(PassTarget),
}
OWN = {"humans", "sets", "posterior"}  # of these, what is typed is a file that is read first


def arguments_of(name):
    parser = ArgumentParser(conflict_handler="resolve")
    import_command(name).add(parser)
    return {action.dest: action for action in parser._actions if action.dest != "help"}


def shown(default):
    """A default as the help says it."""
    if isinstance(default, tuple) and all(isinstance(each, int) for each in default):
        return f"{default[0]}:{default[-1]}"
    return ",".join(default) if isinstance(default, tuple) else str(default)


def options():
    """What a command takes of its functions' parameters, by the first that has a default."""
    for name, functions in FUNCTIONS.items():
        for argument, action in arguments_of(name).items():
            found = [
                each
                for function in functions
                if (each := inspect.signature(function).parameters.get(argument)) is not None
                and each.default is not each.empty
            ]
            if found and argument not in OWN:
                yield name, argument, action, found[0]


def said_otherwise(name, argument, action, parameter):
    """What a command says of an option that the library does not say."""
    if action.nargs != 0 and action.default not in (None, argument):  # roles are their own names
        yield f"default {action.default!r}"  # a flag is false where it is not given
    if action.nargs != 0 and parameter.default is not None and action.default is None:
        if not action.help.endswith(told := f"(default {shown(parameter.default)})"):
            yield f"help without {told}"
    if get_origin(parameter.annotation) is Literal:
        if tuple(action.choices) != get_args(parameter.annotation):
            yield f"choices {action.choices!r}"
    elif action.choices and tuple(action.choices) != WORDS[name, argument]:
        yield f"choices {action.choices!r}"


def test_options_are_the_librarys():
    held = list(options())
    assert len(held) >= 30
    wrong = {
        (name, argument): found
        for name, argument, *rest in held
        if (found := list(said_otherwise(name, argument, *rest)))
    }
    assert wrong == {}


def test_words_are_those_of_the_room():
    found = {(name, argument): arguments_of(name)[argument].choices for name, argument in WORDS}
    assert {key: tuple(choices) for key, choices in found.items()} == WORDS


def test_every_option_with_words_is_held():
    found = {
        (name, argument)
        for name in COMMANDS
        for argument, action in arguments_of(name).items()
        if action.choices and argument not in ("table", "dataset")
    }
    assert found == {
        *WORDS,
        ("collect tasks", "kind"),
        ("estimate", "interval"),
    }
    assert protocols.INTERVALS == get_args(AccuracyInterval)
    assert get_args(Role) == REQUIRED_ROLES


def test_the_help_names_every_model_and_method():
    assert all(name in arguments_of("fit")["model"].help for name in MODELS)


def test_every_module_is_a_command():
    """Of a group in its folder; beside them lies what several share."""
    room = Path(commands.__file__).parent
    files = [path.relative_to(room).with_suffix("") for path in room.rglob("*.py")]
    held = {" ".join(path.parts).rstrip("_") for path in files if path.name != "__init__"}
    imports = {f"import {source}" for source in READERS}
    assert (held - {"options", "output", "import"}) | imports == set(COMMANDS)


def test_few_commands_and_groups():
    assert sum(" " not in name for name in COMMANDS) <= 13
    assert len(GROUPS) <= 4
    assert set(GROUPS).isdisjoint(COMMANDS)


def test_tables_are_told_by_their_commands():
    printing = {name for name in COMMANDS if hasattr(import_command(name), "emit_table")}
    assert printing == set(TABLE_COMMANDS)


def test_a_name_that_is_gone_is_answered_by_the_way_now(capsys):
    assert cli.GONE_NAMES.keys().isdisjoint({*COMMANDS, *GROUPS})
    for gone, way in cli.GONE_NAMES.items():
        if now := way.partition("it is now: bayesrep ")[2]:
            assert cli._find_name(now.split()) in COMMANDS
        status, (line,) = said(capsys, *gone.split(), "x")
        assert (status, line) == (2, f"bayesrep: '{gone}' no longer exists; {way}")
        for page in re.findall(r"docs/\S+\.md", way):
            assert (Path(__file__).parents[1] / page).is_file()


@pytest.mark.parametrize(
    ("words", "start", "told"),
    [
        ("colect read", "bayesrep: ", "did you mean 'collect'?"),
        ("collect raed x", "bayesrep: ", "did you mean 'read'?"),
        ("papers zzzzz", "bayesrep: ", "bayesrep papers --help lists them"),
        ("zzzzz", "bayesrep: ", "bayesrep --help lists them"),
        ("collect --json", "bayesrep collect: error: ", "(bayesrep collect --help says more)"),
        ("-- fit", "bayesrep: error: ", "(bayesrep --help says more)"),
    ],
)
def test_a_name_that_there_is_not_is_one_line(capsys, words, start, told):
    status, (line,) = said(capsys, *words.split())
    assert (status, line.startswith(start), line.endswith(told)) == (2, True, True)


def test_the_help_of_a_group_lists_its_steps(capsys):
    for name, group in GROUPS.items():
        assert cli.main([name, "--help"]) == 0
        lines = capsys.readouterr().out.splitlines()
        listed = [line.split()[0] for line in lines if re.match(r" {4}\S", line)]
        assert listed == list(group.steps)


def test_every_command_takes_its_example():
    for name in COMMANDS:
        words = shlex.split(import_command(name).EXAMPLE.split(">")[0])
        assert cli._parse([*name.split(), *words]).command == name


def test_an_option_may_stand_between_positionals(capsys):
    words = ["collect", "read", "tasks", "--own", "a.csv", "--out", "b.csv", "c.csv"]
    parsed = cli._parse(words)
    assert (parsed.own, str(parsed.out)) == (True, "b.csv")
    assert [str(each) for each in parsed.files] == ["a.csv", "c.csv"]
    assert [str(each) for each in cli._parse(["check", "--", "-x"]).paths] == ["-x"]
    assert said(capsys, "summarize", "s", "--top", "3", "p", "q")[0] == 2


def test_every_source_has_a_help_of_its_own(capsys):
    """Its options and no others."""
    for source in READERS:
        assert cli.main(["import", source, "--help"]) == 0
        said = capsys.readouterr().out
        assert "--out" in said
        assert ("--further" in said) == (source == "tables")
        assert ("--solvers" in said) == (source == "evals")


def test_help_loads_no_other_command_and_nothing_slow():
    """One process for all commands: what the help of all of them loads, each loads less of."""
    code = """
import contextlib, io, json, sys
from bayesrep.cli import COMMANDS, main
def loaded():
    return {name for name in sys.modules if name.startswith("bayesrep.commands.")}
with contextlib.redirect_stdout(io.StringIO()):
    main(["--help"])
    shared = {"bayesrep.commands.options", "bayesrep.commands.output"}
    before = loaded() - shared
    main(["collect", "--help"])
    group = loaded() - shared
    main(["fit", "--help"])
    main(["collect", "read", "--help"])
    after = loaded() - before
    light = {"numpy", "polars"}.isdisjoint(sys.modules)
    for name in COMMANDS:
        main([*name.split(), "--help"])
json.dump([sorted(before | group), sorted(after), light, sorted(sys.modules)], sys.stdout)
"""
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    before, after, light, modules = json.loads(said.stdout)
    assert before == []
    names = ("collect", "collect.read", "fit", "options", "output")
    shared = [f"bayesrep.commands.{name}" for name in names]
    assert after == shared
    assert light
    assert {"jax", "torch", "matplotlib", "scipy", "xarray"}.isdisjoint(modules)


PARENT = {"path": "nowhere/p.nc", "parent": "nowhere"}


@pytest.mark.parametrize(
    ("words", "rule", "facts"),
    [
        ("figure paper-99 --out x.pdf", "unknown-figure", {"figure": "paper-99"}),
        ("check nowhere", "study-path-missing", {"path": "nowhere"}),
        ("fit nowhere --out nowhere/p.nc", "output-folder-not-writable", PARENT),
        ("diagnose a.nc --against b.nc", "posterior-file-missing", {"path": "a.nc"}),
    ],
)
def test_mistakes_end_with_two(words, rule, facts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(refusal(words.split()), rule, facts)


@pytest.mark.parametrize(
    ("arguments", "status"), [(["figure"], 2), (["predict"], 2), (["figure", "--list"], 0)]
)
def test_what_is_left_out_ends_with_two(arguments, status, capsys):
    assert cli.main(arguments) == status
    assert capsys.readouterr().err.count("\n") == (status == 2)


def test_a_full_disk_is_no_mistake(monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device", "t.csv")

    monkeypatch.setattr("bayesrep.read_study", full)
    assert cli.main(["check", "study"]) == 1
    assert capsys.readouterr().err == "bayesrep: t.csv: No space left on device\n"


def said(capsys, *words):
    status = cli.main([str(word) for word in words])
    return status, capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("words", "command", "told"),
    [
        ("fit --chian 4", "fit", "there is no option --chian; did you mean '--chains'?"),
        ("fit s --method lapace --out p", "fit", "there is no 'lapace'; did you mean 'laplace'?"),
        ("fit s --chian=4", "fit", "there is no option --chian; did you mean '--chains'?"),
        ("simulate --out x", "simulate", "there is no option --out; OUT is given without it"),
        ("collect read --cuonts x", "collect read", "no option --cuonts; did you mean '--counts'?"),
        ("summarize s p --zzz", "summarize", "there is no option --zzz"),
        ("summarize s p q", "summarize", "one argument too many: q"),
        ("--versoin", "", "there is no option --versoin; did you mean '--version'?"),
        ("fit --\x1b[31m", "fit", r"there is no option --\x1b[31m"),
    ],
)
def test_a_mistyped_option_is_answered_by_its_command(capsys, words, command, told):
    """In one line, and before what else is missing."""
    status, (line,) = said(capsys, *words.split())
    program = f"bayesrep {command}".rstrip()
    assert status == 2
    assert line.startswith(f"{program}: error: ")
    assert line.endswith(f"{told} ({program} --help says more)")


def test_every_argument_has_a_help():
    parsers = map(cli._command_parser, COMMANDS)
    actions = [(parser.prog, each) for parser in parsers for each in parser._actions]
    assert [(program, each.dest) for program, each in actions if not each.help] == []


def test_an_option_may_still_be_cut_short(capsys, tmp_path):
    words = ("simulate", tmp_path / "s", "--ima", "60", "--classif=2")
    status, err = said(capsys, *words, "--seed=-1")
    assert (status, err[-1].partition(": ")[2][:14]) == (2, "error: argument"[:14])
    assert said(capsys, *words)[0] == 0


def test_a_line_break_in_a_path_is_no_end_of_a_message(capsys, tmp_path):
    gone = tmp_path / "no\nline"
    status, (line,) = said(capsys, "check", gone)
    assert status == 2
    assert line.endswith(r"no\nline does not exist; give the folder of a study")
    status = cli.main(["simulate", str(gone), "--images", "60", "--classifiers", "2"])
    assert status == 0
    (*_, last) = capsys.readouterr().out.splitlines()
    assert last == rf"Written to {tmp_path}/no\nline; its truth is in study.json"
    error = bayesrep.StudyError("study-path-missing", path="a\nb")
    assert reason(error).startswith(r"a\nb does not exist")
    assert reason(ValueError("first\nsecond")) == "first"


def small_tables(folder, replication, classifier):
    """Counts and predictions of two images of v1 and of another data set."""
    texts = ["dataset,image,selected,shown\n", "dataset,image,classifier,correct\n"]
    for image, selected in {"a": 3, "b": 4, "c": 4, "d": 2}.items():
        dataset = replication if image in "ab" else "v1"
        texts[0] += f"{dataset},{image},{selected},4\n"
        texts[1] += f"{dataset},{image},{classifier},1\n"
    files = [folder / "c.csv", folder / "p.csv"]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    return [*map(str, files)]


def test_a_data_set_cannot_colour_the_terminal_by_its_name(capsys, tmp_path):
    odd = "\x1b[31mv2"
    files = small_tables(tmp_path, odd, "m")
    assert cli.main(["check", *files, "--reference", "v1", "--replication", odd]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert r"$'\x1b[31mv2'" in text.splitlines()[-1]  # as a shell reads it


@pytest.mark.parametrize("name", ["x" * 221, "é" * 37, "x" * 400])
def test_a_name_of_which_no_file_can_be_called_is_refused_by_check_and_import(tmp_path, name):
    given = [*small_tables(tmp_path, "v2", name), "--reference", "v1", "--replication", "v2"]
    words = ["import", "tables", *given, "--out", tmp_path / "s"]
    check(refusal(words), "name-too-long-for-file", {"names": [name]})
    with redirect_stdout(io.StringIO()) as said:
        assert cli.main(["check", *given]) == 1
    assert name[:200] in said.getvalue()


def test_completion_is_written_without_a_compiler_of_arrays():
    code = "import sys; from bayesrep import cli; cli.main(['--print-completion', 'bash']); "
    done = subprocess.run(
        [sys.executable, "-c", code + "print(sorted({'jax', 'torch'} & set(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--chains", "36", "--set", "draws=12"], "432 draws in all"),
        (["--method", "nuts", "--set", "draws=100"], "400 draws in all"),
        (["--set", "draws=100"], ""),
        (["--chains", "4", "--set", "draws=500"], ""),
        (["--chains", "36"], ""),
    ],
)
def test_chains_too_short_to_pass_are_told_before_the_work(words, told):
    from bayesrep.commands.fit import _warn_of_short_chains

    arguments = cli._parse(["fit", "s", "--out", "p.nc", *words])
    assert _warn_of_short_chains(arguments).startswith(told)
    assert bool(_warn_of_short_chains(arguments)) == bool(told)


@pytest.mark.parametrize("file", ["counts.parquet", "images.parquet"])
def test_a_file_that_vanishes_while_it_is_read_is_one_line(capsys, tmp_path, monkeypatch, file):
    """Between the look for it and its opening, as another process's clean-up may do."""
    zoo.cut(zoo.study("tiny"), images=60, classifiers=2).write(tmp_path / "s")
    usual = Path.is_file

    def gone(path):
        found = usual(path)
        if path.name == file:
            path.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "is_file", gone)
    status = cli.main(["check", str(tmp_path / "s")])
    err = capsys.readouterr().err.splitlines()
    assert status in (1, 2)
    assert len(err) == 1
    assert not (tmp_path / "s" / file).exists()
