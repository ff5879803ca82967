"""Programs that later processes find without tracing: the same numbers, or made again."""

from dataclasses import replace
from functools import partial, wraps
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import zoo
from jax.experimental.compilation_cache.compilation_cache import reset_cache
from numpyro import handlers

from bayesrep.inference import fit, program
from bayesrep.inference.arrowhead import Arrowhead
from bayesrep.inference.problem import _programs, pose, programs
from bayesrep.inference.program import Program
from bayesrep.models import joint

pytestmark = [pytest.mark.usefixtures("float64"), pytest.mark.compiles]


@pytest.fixture
def folder(tmp_path):
    """Where programs are kept here."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    reset_cache()
    yield tmp_path
    jax.config.update("jax_compilation_cache_dir", before)
    reset_cache()


def kept(folder):
    return sorted(folder.glob("*.program"))


def never(*_):
    raise AssertionError("traced")


def sums(tree, power):
    """Results of many types, among them a type of ours and None."""
    total = tree["a"] + tree["b"][0] ** power
    return {
        "z": [total, None],
        "a": (Arrowhead(total, total, 1.0 * total.sum(), power + 1), total),
    }


TREE = {"a": np.arange(3.0), "b": (np.ones(()), None)}
TWO = np.asarray(2)


def test_a_kept_program_is_not_traced_and_gives_the_same_tree(folder):
    plain = jax.jit(sums)(TREE, TWO)
    first = Program(sums, "sums", "all")(TREE, TWO)
    assert len(kept(folder)) == 1
    again = Program(never, "sums", "all")
    for found in (first, again(TREE, TWO), again.compile_for(TREE, TWO)(TREE, TWO)):
        assert jax.tree.structure(found) == jax.tree.structure(plain)
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(plain), strict=True):
            assert one.dtype == other.dtype
            assert np.array_equal(one, other)
    told, wanted = again.compile_for(TREE, TWO).out_info, jax.eval_shape(sums, TREE, TWO)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), told) == jax.tree.map(
        lambda x: (x.shape, x.dtype), wanted
    )


def test_what_tells_programs_apart(folder):
    tree, two = TREE, TWO
    Program(sums, "sums", "all")(tree, two)
    others = [
        (("other", "all"), tree, two),
        (("sums", "some"), tree, two),
        (("sums", "all"), {**tree, "a": np.zeros(4)}, two),
        (("sums", "all"), {**tree, "a": np.zeros(3, int)}, two),
        (("sums", "all"), {"a": tree["a"], "b": [*tree["b"]]}, two),
        (("sums", "all"), tree, np.asarray(2.0)),
    ]
    for number, (names, *arguments) in enumerate(others, 2):
        Program(sums, *names)(*arguments)
        assert len(kept(folder)) == number
    with jax.enable_x64(new_val=False):
        Program(sums, "sums", "all")(tree, two)
    assert len(kept(folder)) == len(others) + 2


def test_code_that_was_changed_makes_another_program(folder, monkeypatch):
    Program(sums, "sums", "all")(TREE, TWO)
    program._digest_sources.cache_clear()
    monkeypatch.setattr(program, "version", lambda name: "another")
    Program(sums, "sums", "all")(TREE, TWO)
    assert len(kept(folder)) == 2


def test_the_code_is_all_of_the_rooms_that_programs_come_from(monkeypatch):
    read = []
    monkeypatch.setattr(program, "digest_parts", lambda parts: read.extend(parts) or "")
    program._digest_sources.__wrapped__()
    text = b"".join(read).decode()
    for name in ("def joint(", "def log_pair_masses(", "def log_binomial(", "def second_order("):
        assert name in text


@pytest.mark.parametrize("damage", ["cut", "empty", "bit", "another"])
def test_what_is_not_as_it_was_kept_is_made_again(folder, damage):
    value = Program(sums, "sums", "all")(TREE, TWO)
    (file,) = kept(folder)
    data = file.read_bytes()
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "empty":
        data = b""
    elif damage == "bit":
        data = data[:-100] + bytes([data[-100] ^ 1]) + data[-99:]
    else:
        Program(lambda tree, power: sums(tree, power + 1), "more", "all")(TREE, TWO)
        (other,) = set(kept(folder)) - {file}
        data = other.read_bytes()[:-1]
    file.write_bytes(data)
    again = Program(sums, "sums", "all")(TREE, TWO)
    assert jax.tree.structure(again) == jax.tree.structure(value)
    assert np.array_equal(again["a"][1], value["a"][1])
    third = Program(never, "sums", "all")(TREE, TWO)
    assert np.array_equal(third["a"][1], value["a"][1])


class Foreign(NamedTuple):
    """A type that no later process could find."""

    value: jax.Array


def test_what_cannot_be_kept_is_computed(folder):
    unknown = Program(lambda x: x + 1, "plain", "")
    assert unknown(np.arange(2.0)).tolist() == [1.0, 2.0]
    foreign = Program(lambda x: Foreign(x + 1), "foreign", "all")
    assert foreign(np.arange(2.0)).value.tolist() == [1.0, 2.0]
    traced = Program(jnp.sin, "sine", "all")
    assert float(jax.grad(traced)(0.0)) == 1.0
    assert traced.jitted.lower(1.0).compile()(1.0) == jnp.sin(1.0)
    quick = Program(jnp.sin, "sine", "all", quick=True)  # its options are of whole programs only
    assert float(jax.jit(quick)(0.5)) == float(jnp.sin(0.5))
    assert kept(folder) == []
    jax.config.update("jax_compilation_cache_dir", None)
    assert float(traced(0.5)) == float(jnp.sin(0.5))
    jax.config.update("jax_compilation_cache_dir", str(folder / "file" / "nowhere"))
    (folder / "file").write_bytes(b"")
    assert float(traced(0.5)) == float(jnp.sin(0.5))


def test_options_that_a_model_closes_over_make_programs_of_their_own(folder):
    """Prior means and scales are no arguments; shapes are the same."""
    study = zoo.cut(zoo.study("tiny"), images=60)
    values = []
    for slope in ((3.0, 2.5), (2.0, 2.5), (3.0, 2.5)):
        _programs.cache_clear()
        problem = pose(study, model="joint", options={"slope": slope})
        data = problem.data()
        tools = programs(problem, data)
        start = {n: np.zeros(np.shape(v)) for n, v in problem.start(data).items()}
        values.append(float(tools.expand(tools.start(start), data).value))
        plain = float(tools.density.potential(tools.start(start), data))
        assert values[-1] == pytest.approx(plain, rel=1e-12)
    assert values[0] == values[2] != values[1]
    _programs.cache_clear()


def other_options(data, options):
    """The joint model under other priors of its curves."""
    return joint.joint(data, replace(options, level=(3.0, 0.05), slope=(0.5, 0.05)))


def handle(handler, *given, **options):
    return lambda: replace(joint.JOINT_MODEL, function=handler(joint.joint, *given, **options))


OTHERS = {
    "wrapped": lambda: replace(joint.JOINT_MODEL, function=wraps(joint.joint)(other_options)),
    "replaced": lambda: replace(joint.JOINT_MODEL, weight=lambda data: data.weight / 2),
    "copied": lambda: replace(joint.JOINT_MODEL),
    "partial": handle(partial),
    "scale": handle(handlers.scale, scale=0.5),
    "mask": handle(handlers.mask, mask=False),
    "block": handle(handlers.block, hide_fn=lambda site: False),
    "condition": handle(handlers.condition, data={"log_step": np.zeros(1)}),
    "substitute": handle(handlers.substitute, data={"log_step": np.zeros(1)}),
    "reparam": handle(handlers.reparam, config={}),
}


def tools_of(model):
    _programs.cache_clear()
    problem = pose(zoo.cut(zoo.study("tiny"), images=60), model=model, options={})
    data = problem.data()
    return programs(problem, data), data


def potential_of(model):
    """The potential at a point as kept programs have it; it is what the density says."""
    tools, data = tools_of(model)
    at = jax.tree.map(lambda each: each + 0.1, tools.density.origin())
    value = float(tools.expand(at, data).value)
    assert value == pytest.approx(float(tools.density.potential(at, data)), rel=1e-12)
    return value


def test_another_model_does_not_meet_the_kept_programs_of_ours(folder, own_models):
    """Whatever its name says: of the two the second would have the first one's numbers."""
    own_models["mine"] = OTHERS["wrapped"]()
    found = [(potential_of(name), len(kept(folder))) for name in ("mine", "joint", "mine")]
    (first, none), (ours, some), again = found
    assert again == (first, some)
    assert first != ours
    assert none == 0 < some


@pytest.mark.parametrize("way", OTHERS)
def test_programs_are_kept_for_our_own_models_alone(own_models, way):
    own_models["mine"] = OTHERS[way]()
    tools = tools_of("mine")[0]
    assert tools.expand.identity == tools.quantities.identity == tools.density.identity == ""


def test_a_fit_makes_each_program_once(folder, monkeypatch):
    """One of other shapes would be made again."""
    made, make = [], Program._make

    def noted(self, *given):
        made.append(f"{self.name} {self.identity}")
        return make(self, *given)

    monkeypatch.setattr(Program, "_make", noted)
    study = zoo.cut(zoo.study("tiny"), images=60)
    _programs.cache_clear()
    fit(study, method="laplace", slope=(2.5, 2.0), progress=False)  # of no other test's options
    _programs.cache_clear()
    names = [identity.split()[0] for identity in made]
    assert {"evaluate", "slopes", "draw", "quantities"} <= set(names)
    assert len(set(made)) == len(made) == len(kept(folder)), names
