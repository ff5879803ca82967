"""The package as a whole: what importing it does, what it exports, how its rooms depend."""

import ast
import json
import pickle
import re
import string
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest

import bayesrep
from bayesrep.errors import MAX_LISTED, BayesrepError, Violation, listing, sentences

ROOT = Path(bayesrep.__file__).parents[1]
SOURCES = sorted((ROOT / "bayesrep").rglob("*.py"))

KINDS = {"Violation", "problems.add", "refusal", BayesrepError.__name__} | {
    kind.__name__ for kind in BayesrepError.__subclasses__()
}
MAKERS = {"errors.py", "violations.py"}  # which make errors of whatever rule they are handed

QUICK = ("--no-compilation", "--jaxtyping-packages=")  # checked shapes import JAX
HEAVY = {"arviz", "jax", "matplotlib", "numpyro", "pandas", "polars", "scipy", "torch", "xarray"}

IMPORT_EVERYTHING = """
import importlib, json, os, pkgutil, sys
import arviz, jax, matplotlib, numpyro, polars, scipy  # what they change is theirs

def state():
    return {"config": {k: repr(v) for k, v in jax.config.values.items()}, "env": dict(os.environ)}

before = state()
import bayesrep
extras = {"torch", "torchvision", "timm", "ray", "pymc", "nutpie", "cvxpy"}
names = [m.name for m in pkgutil.walk_packages(bayesrep.__path__, "bayesrep.")]
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in extras:
            raise
after = state()
changed = sorted(
    f"{part}.{key}"
    for part in before
    for key in {*before[part], *after[part]}
    if before[part].get(key) != after[part].get(key)
)
json.dump({"modules": names, "changed": changed}, sys.stdout)
"""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def run_python(code: str) -> str:
    """Standard output of `code` in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


def test_import_is_light():
    loaded = run_python("import bayesrep, json, sys; print(json.dumps(sorted(sys.modules)))")
    assert HEAVY.isdisjoint(json.loads(loaded))


def test_public_names_resolve():
    absent = [name for name in bayesrep.__all__ if getattr(bayesrep, name, None) is None]
    assert absent == []
    assert set(bayesrep.__all__) <= set(dir(bayesrep))


def test_public_names_are_those_the_type_checker_sees():
    tree = ast.parse(Path(bayesrep.__file__).read_text())
    seen = {
        (alias.name, node.module)
        for block in tree.body
        if isinstance(block, ast.If)
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == set(bayesrep._MODULE_OF_NAME.items())
    assert {name for name, _ in seen} | {"__version__"} == set(bayesrep.__all__)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = bayesrep.nonsense


def test_version_is_the_installed_one():
    assert bayesrep.__version__ == version("bayesrep")


@pytest.mark.compiles
def test_importing_every_module_changes_no_global_setting():
    report = json.loads(run_python(IMPORT_EVERYTHING))
    assert "bayesrep.studies.study" in report["modules"]
    assert report["changed"] == []


def test_rooms_import_downwards_only():
    result = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_source_is_portable_and_silent():
    """It names no place on one machine, and prints in one file only."""
    wrong = []
    for path in SOURCES:
        text = path.read_text()
        if re.search(r"(?<![\w.])/(work|tmp|root|home)/", text):
            wrong.append((str(path), "place"))
        if path.parts[-2:] != ("commands", "output.py"):
            calls = [n.func for n in ast.walk(tree_of(path)) if isinstance(n, ast.Call)]
            if "print" in {getattr(call, "id", None) for call in calls}:
                wrong.append((str(path), "print"))
    assert wrong == []


def test_workbooks_and_frames_of_pandas_take_no_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"openpyxl", "pyarrow"} <= {re.match(r"[\w-]+", n)[0] for n in project["dependencies"]}


# --- the table of rules -----------------------------------------------------------------------


def rooms() -> dict[str, dict[str, str]]:
    return tomllib.loads((ROOT / "bayesrep" / "rules.toml").read_text(encoding="utf-8"))


def braces(sentence: str) -> set[str]:
    """The facts that a sentence names."""
    named = (field for _, field, _, _ in string.Formatter().parse(sentence) if field is not None)
    return {re.split(r"[.\[]", field)[0] for field in named}


@dataclass(frozen=True)
class Raised:
    """A call that makes an error or a violation: where, of which rules, with which facts.

    `rules` is empty where the call takes the rule from a name; `open` where it takes further facts
    from a mapping that is not written down in the same function.
    """

    at: str
    rules: frozenset[str]
    facts: frozenset[str]
    open: bool

    def fits(self, sentence: str) -> bool:
        wanted = braces(sentence)
        return self.facts <= wanted if self.open else self.facts == wanted


def calls_of(path: Path) -> tuple[list[Raised], set[str]]:
    """The calls of a file that raise by a rule, and the other strings in its code."""
    tree = tree_of(path)
    nodes = list(ast.walk(tree))
    functions = [n for n in nodes if isinstance(n, ast.FunctionDef)]
    found: list[Raised] = []
    seen: set[ast.AST] = set()
    for call in (n for n in nodes if isinstance(n, ast.Call) and n.args):
        kind = ast.unparse(call.func)
        kind = kind if kind in KINDS else kind.rpartition(".")[2]
        first = call.args[0]
        told = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
        rules = frozenset(each.value for each in told if isinstance(each, ast.Constant))
        if kind not in KINDS or not (rules or call.keywords):
            continue  # another call, or one that takes a violation
        within = [f for f in functions if f.lineno <= call.lineno <= (f.end_lineno or 0)]
        facts, rest = facts_of(call, max(within, key=lambda f: f.lineno, default=tree))
        at = f"{path.relative_to(ROOT)}:{call.lineno}"
        found.append(Raised(at, rules, facts, rest))
        seen |= {*told, *ast.walk(first)}
    for each in nodes:
        if isinstance(each, ast.Compare):  # asks for a rule, raises none
            seen |= set(ast.walk(each))
    others = {n.value for n in nodes if isinstance(n, ast.Constant) and n not in seen}
    return found, {each for each in others if isinstance(each, str)}


def facts_of(call: ast.Call, function: ast.AST) -> tuple[frozenset[str], bool]:
    """The facts that a call gives, and whether there may be more."""
    found = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
    rest = False
    for name in (ast.unparse(k.value) for k in call.keywords if k.arg is None):
        mappings = [
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
        ]
        if len(mappings) == 1 and isinstance(mappings[0], ast.Dict):
            found |= {ast.literal_eval(key) for key in mappings[0].keys if key is not None}
        else:
            rest = True
    return frozenset(found), rest


def test_every_rule_is_raised_with_the_facts_of_its_sentence():
    """Where a call takes the rule by a name, its file has the rules that it may stand for."""
    known = {rule: said for room in rooms().values() for rule, said in room.items()}
    wrong: list[str] = []
    named: set[str] = set()
    for folder in ("bayesrep", "experiments", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            calls, others = calls_of(path)
            passed = {rule for rule in others if rule in known}
            takers = [call for call in calls if not call.rules and path.name not in MAKERS]
            for call in calls:
                for rule in call.rules:
                    if rule not in known:
                        wrong.append(f"{call.at}: no rule {rule!r}")
                    elif not call.fits(known[rule]):
                        wrong.append(f"{call.at}: {rule}: {set(call.facts)}")
            wrong += [
                f"{call.at}: takes no rule of its file"
                for call in takers
                if not any(call.fits(known[rule]) for rule in passed)
            ]
            wrong += [
                f"{path.relative_to(ROOT)}: {rule}: no call takes it"
                for rule in passed
                if not any(call.fits(known[rule]) for call in takers)
            ]
            named |= passed | {rule for call in calls for rule in call.rules}
    assert wrong == []
    assert sorted(set(known) - named) == [], "never raised"


def test_rules_and_sentences_are_told_once():
    listed = [(rule, said) for room in rooms().values() for rule, said in room.items()]
    rules, said = zip(*listed, strict=True)
    assert [rule for rule, count in Counter(rules).items() if count > 1] == [], "in two rooms"
    assert [each for each, count in Counter(said).items() if count > 1] == [], "of two rules"
    kebab = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
    assert [rule for rule in rules if not kebab.fullmatch(rule)] == []
    assert sentences() == dict(listed)


def test_a_violation_travels_to_other_processes():
    """With its offenders, as a pickle and as JSON; also when its line is told otherwise."""
    offenders = [f"image {number}" for number in range(MAX_LISTED + 2)]
    plain = Violation("image-repeated", where="v1", images=listing(offenders))
    for violation in (plain, plain.add_place("a.csv"), Violation("no-posterior-to-compare")):
        sent = json.loads(json.dumps(violation.to_json()))
        for other in (pickle.loads(pickle.dumps(violation)), Violation.of_json(sent)):
            assert isinstance(other, Violation)
            assert other == violation
            assert (other.rule, other.facts) == (violation.rule, violation.facts)
            assert other.offenders == violation.offenders
    assert plain.offenders == tuple(offenders)


# --- the words of the code --------------------------------------------------------------------

ALONE = set(
    """of by in on at to from with without within into onto beside before after above below between
    around along among across under over against through inside outside up down off out near far
    told said held kept drawn done made given taken shown chosen seen known begun gone lost dealt
    left meant unread unwritten hidden shrunk broken frozen escaped heard taught untaught together
    alone once twice both each all any some few fewer many several more most less least none nothing
    only also so such same other others alike equal enough there here now then maybe again exactly
    first last next one two three own ours usual ready sane safe strange valid wrong right tidy
    plain likely unlikely whole possible fine finite exact positive nearest nearer further lower
    upper lowest highest largest smallest best worst longest shortest long short careful lacking
    failing holding looking leaning missing raw flat dense degenerate unknown usable who which where
    when why not as than""".split()
)
"""Prepositions, participles, adverbs, pronouns and adjectives: a name needs a verb or a noun."""
NOUNS_IN_ED = {"red", "need", "feed", "seed", "speed"}
INNER_ROOMS = ("models", "inference")
"""Rooms that name their programs as JAX and NumPyro do: `lower`, `jitted`, `vectorized`."""


def is_nameless(name: str) -> bool:
    words = name.strip("_").lower().split("_")
    return all(w in ALONE or (w.endswith("ed") and w not in NOUNS_IN_ED) for w in words)


def definitions(node: ast.AST, within: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Functions and classes with their dotted names, those inside others included."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield f"{within}.{child.name}", child
            yield from definitions(child, f"{within}.{child.name}")
        else:
            yield from definitions(child, within)


def test_functions_and_classes_are_named_and_parameters_begin_with_a_noun():
    """What the reference promises keeps its name."""
    pages = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "docs").rglob("*.md"))
    promised = {
        name.rsplit(".", 1)[1] for name in re.findall(r"^::: (\S+\.\w+)", pages, flags=re.M)
    }
    nameless, classes, beginnings = set(), Counter(), []
    for path in SOURCES:
        place = path.relative_to(ROOT / "bayesrep").with_suffix("").as_posix()
        for dotted, node in definitions(tree_of(path), place):
            name = dotted.rsplit(".", 1)[1]
            if isinstance(node, ast.ClassDef):
                classes[name] += 1
            inner = place.split("/")[0] in INNER_ROOMS
            if not (inner or isinstance(node, ast.ClassDef)) and is_nameless(name):
                nameless |= {dotted} if promised.isdisjoint(dotted.split(".")) else set()
            described = ast.get_docstring(node) or ""
            beginnings += re.findall(r"\n\w.*\n    Of .*", described) and [dotted]
    assert nameless == set()
    assert [name for name, times in classes.items() if times > 1] == []
    assert beginnings == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("of", True),
        ("_told", True),
        ("_at_once", True),
        ("_checked", True),
        ("seed", False),
        ("_check_counts", False),
        ("rows_of", False),
    ],
)
def test_a_name_is_a_noun_or_has_a_verb(name, expected):
    assert is_nameless(name) == expected


LONG_LINES = 40
"""A longer function, its docstring left out, says in comments what its steps are for."""
PRAGMA = re.compile(r"# (type|noqa|pyright|pragma)\b")


def test_long_functions_have_comments():
    silent = []
    for path in SOURCES:
        with tokenize.open(path) as source:
            tokens = [
                t for t in tokenize.generate_tokens(source.readline) if t.type == tokenize.COMMENT
            ]
        commented = {t.start[0] for t in tokens if not PRAGMA.match(t.string)}
        for dotted, node in definitions(tree_of(path), path.relative_to(ROOT).as_posix()):
            if isinstance(node, ast.ClassDef):
                continue
            lines = set(range(node.lineno, node.end_lineno + 1))
            if ast.get_docstring(node) is not None:
                lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
            if len(lines) > LONG_LINES and lines.isdisjoint(commented):
                silent.append(dotted)
    assert silent == []


# --- the tests themselves ---------------------------------------------------------------------


def test_studies_are_simulated_in_the_zoo():
    """Every other shape of study is a program to compile; tests/statistics needs its own."""
    asked = "simulate_study" + "("
    texts = {p.name: p.read_text(encoding="utf-8") for p in (ROOT / "tests").glob("*.py")}
    callers = {name for name, text in texts.items() if asked in text}
    assert callers == {"zoo.py", "test_simulate.py", "test_scenarios.py"}
    calls = (n for n in ast.walk(ast.parse(texts["zoo.py"])) if isinstance(n, ast.Call))
    forms = {text for text in map(ast.unparse, calls) if text.startswith(f"bayesrep.{asked}")}
    assert 1 <= len(forms) <= 12


def test_what_needs_a_compiler_is_left_out_where_that_is_asked():
    """Of two files the one that imports JAX, of the other the one test whose process does."""
    files = ["tests/test_splines.py", "tests/test_package.py"]
    names = "test_splines or test_unknown_name or every_module"
    command = [sys.executable, "-m", "pytest", "-q", *QUICK, *files, "-k", names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^1 passed, 1 skipped, \d+ deselected", done.stdout, flags=re.M), done.stdout
    assert "needs a compiler: jax" in done.stdout


def test_module_runs_as_a_command():
    result = subprocess.run(
        [sys.executable, "-m", "bayesrep", "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert "usage: bayesrep" in result.stdout
