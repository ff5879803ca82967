"""The documents tell the truth about what is in the project: tests, files and methods they name."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import textwrap
import tomllib
import warnings
from dataclasses import fields
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import polars as pl
import pytest
import zoo
from fits import TUTORIALS

import bayesrep
from bayesrep import collect as collecting
from bayesrep import estimators, inference, planning, protocols, sources
from bayesrep.cli import COMMANDS, GROUPS, _find_name, main
from bayesrep.estimators import ESTIMATORS
from bayesrep.files.netcdf import Group, Variable
from bayesrep.posterior.files import StoredPosterior
from bayesrep.posterior.groups import name_groups, need_group
from experiments.results import read_numbers

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
execute = runpy.run_path(str(DOCS / "execute.py"))
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def told(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def called(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_links_lead_somewhere():
    dead = [
        f"{called(page)} links to {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", told(page))
        if not target.startswith(("http://", "https://")) and not (page.parent / target).exists()
    ]
    assert dead == []


def test_tests_that_are_named_exist():
    gone = []
    for page in PAGES:
        for name, function in re.findall(r"`(tests/[\w./]+\.py)(?:::(\w+))?", told(page)):
            file = ROOT / name
            if not file.is_file() or (function and f"def {function}(" not in told(file)):
                gone.append(f"{called(page)} names {name}::{function}")
    assert gone == []


DEVELOPERS = [ROOT / "CONTRIBUTING.md", DOCS / "architecture.md"]
NAMED_PATH = re.compile(r"`([\w.-]*/[\w./-]*|[\w-]+\.(?:py|md|toml|yml))(?:::(\w+))?`")


def test_paths_that_are_named_exist():
    """From the checkout's root or the package's; NAME and figureN stand for what is to be added."""
    gone = []
    for page in DEVELOPERS:
        for name, function in NAMED_PATH.findall(told(page)):
            if name in ("site/", ".venv/bin/pre-commit"):  # what is made and not kept
                continue
            path = Path(re.sub(r"/(NAME|figureN)\.py$", "/", name))
            places = [root / path for root in (ROOT, ROOT / "bayesrep") if (root / path).exists()]
            known = places and (
                not function or re.search(rf"(def|class) {function}\b", told(places[0]))
            )
            if not known:
                gone.append(f"{called(page)} names {name}::{function}")
    assert gone == []


def test_targets_of_make_that_are_named_exist():
    targets = set(re.findall(r"^([a-z]+):.*##", told(ROOT / "Makefile"), flags=re.M))
    named = {
        page: set(re.findall(r"(?:`|^\$ )make ([a-z]+)", told(page), flags=re.M)) for page in PAGES
    }
    gone = [f"{called(page)} names make {n}" for page in PAGES for n in named[page] - targets]
    assert gone == []
    assert named[ROOT / "CONTRIBUTING.md"] | {"help"} == targets
    # .ci/run calls the second of the two that set up, run and test.
    assert re.search(
        r'^BAYESREP_DEMO=.* part "tests" make test', told(ROOT / ".ci/run"), flags=re.M
    )


def test_every_point_of_the_published_code_is_there():
    page = told(DOCS / "papers-disagree.md")
    text = execute["section"](page, "What the published code does differently")
    assert re.findall(r"^\| (\d+) \|", text, flags=re.MULTILINE) == [str(n) for n in range(1, 14)]


def test_every_method_is_documented():
    text = told(ROOT / "docs" / "estimators.md")
    rows = {
        name: "".join(re.findall(rf"^\| `{name}` \|(.*)$", text, flags=re.MULTILINE))
        for name in ESTIMATORS
    }
    assert [name for name, row in rows.items() if not row] == []
    missing = [
        f"{option.name} of {name}"
        for name, kind in ESTIMATORS.items()
        for option in fields(kind)
        if f"`{option.name}`" not in rows[name]
    ]
    assert missing == []


RESULTS = {
    name: (page, text)
    for page in (DOCS / "results").glob("*.md")
    for name, _, text in (part.partition("\n") for part in told(page).split("\n## ")[1:])
}


def test_every_result_has_its_command_and_its_numbers():
    """A section of results names the module that made it, and the module exists."""
    for name, (_, text) in RESULTS.items():
        made = re.search(r"^Made by `python -m ([\w.]+)", text, flags=re.M)
        assert made, name
        assert find_spec(made[1]), name
    pages = {page for page, _ in RESULTS.values()}
    assert sorted(RESULTS) == sorted(
        name for page in pages for name in json.loads(page.with_suffix(".json").read_text("utf-8"))
    )


def test_every_result_is_in_the_index():
    index = told(DOCS / "results" / "README.md")
    links = {name: f"({page.name}#{name.replace('.', '')})" for name, (page, _) in RESULTS.items()}
    assert [name for name, link in links.items() if link not in index] == []


def test_every_picture_is_shown():
    shown = {
        (page.parent / name).resolve()
        for page in PAGES
        for name in re.findall(r"\]\(([^)#]+\.(?:png|svg))", told(page))
    }
    pictures = {path for kind in ("png", "svg") for path in DOCS.rglob(f"*.{kind}")}
    assert pictures - shown == set()


def test_the_site_lists_every_page_once():
    _, _, nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")
    listed = re.findall(r"[\w./-]+\.md", nav)
    assert sorted(listed) == sorted(
        page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")
    )


def test_every_command_is_on_its_page():
    """The texts themselves are put there when the site is built."""
    text = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    helped = re.findall(r"<!-- help: (.+) -->", text)
    assert sorted(helped) == sorted([*COMMANDS, *GROUPS])
    titled = re.findall(r"^##+ bayesrep (.+)$", text, flags=re.MULTILINE)
    assert titled == helped


TYPED = re.compile(r"(?:`|(?:^|&& )[$>] )bayesrep ([a-z][\w .-]*)", flags=re.MULTILINE)


def test_every_command_that_is_told_exists():
    """On a page, or in a sentence of the package or of an experiment; a group is told alone."""
    rooms = ("bayesrep", "docs", "experiments", "benchmarks")
    kinds = ("py", "toml", "csv", "html", "js", "ipynb")
    files = [path for room in rooms for kind in kinds for path in ROOT.glob(f"{room}/**/*.{kind}")]
    typed = {words for path in (*PAGES, *files) for words in TYPED.findall(told(path))}
    assert len(typed) > 150
    assert {words for words in typed if _find_name(words.split()) not in COMMANDS} <= set(GROUPS)


def test_every_public_name_is_in_the_reference():
    """Under any of its paths; those of modules of the same name show the module instead."""
    text = "\n".join(told(page) for page in DOCS.glob("reference/*.md"))
    paths = re.findall(r"^::: (\S+)$", text, flags=re.MULTILINE)
    shown = {(path.rpartition(".")[2], id(resolve_name(path))) for path in paths}
    missing = {
        f"{room.__name__}.{name}"
        for room in (bayesrep, collecting, estimators, inference, planning, protocols, sources)
        for name in room.__all__
        if (name, id(getattr(room, name))) not in shown
    }
    # The room `bayesrep.report` takes the call of its function.
    assert missing == {"bayesrep.__version__", "bayesrep.report"}


def test_every_public_name_is_in_the_index():
    """With the page that has it, under the heading that the page has."""
    text = told(DOCS / "reference" / "names.md")
    rows = re.findall(
        r"^\| \[`(\w+)`\]\[bayesrep\.(\w+)\] \| .+ \| \[(.+)\]\((.+)\) \|$", text, re.M
    )
    assert sorted(name for name, *_ in rows) == sorted(set(bayesrep.__all__) - {"__version__"})
    for name, target, heading, page in rows:
        assert target == name
        shown = told(DOCS / "reference" / page)
        assert shown.startswith(f"# {heading}\n")
        assert re.search(rf"^::: bayesrep\.([\w.]+\.)?{name}$", shown, re.M), name


def years(study: bayesrep.Study) -> pl.DataFrame:
    return pl.DataFrame({"classifier": study.classifiers, "year": [2012, 2015, 2020]})


def scores(study: bayesrep.Study) -> pl.DataFrame:
    """Scores of 1 to 5, right answers from 3 on."""
    parts = []
    for data in study.datasets.values():
        steps = np.arange(len(data.images)) % 3
        for column, name in enumerate(study.classifiers):
            score = 1 + np.where(data.correct[:, column], 2 + steps, steps % 2)
            rows = {"dataset": data.name, "image": data.images, "classifier": name, "score": score}
            parts.append(pl.DataFrame(rows))
    return pl.concat(parts)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with what the pages read: my-study, posterior.nc, adjusted.csv, tables, a sweep."""
    folder = tmp_path_factory.mktemp("docs")
    study, posterior = zoo.study("tiny"), zoo.posterior("tiny", **zoo.QUICK)
    study.write(folder / "my-study")
    shutil.copy(zoo.posterior_path("tiny", **zoo.QUICK), folder / "posterior.nc")
    table = bayesrep.summarize(study, posterior)
    table.write_csv(folder / "adjusted.csv")
    years(study).write_csv(folder / "classifiers.csv")
    called = pl.col("dataset").replace(
        {data.name: f"v{n}" for n, data in enumerate(study.datasets.values(), 1)}
    )
    for name, rows in (("counts", study.counts), ("scores", scores(study))):
        rows.with_columns(called).write_csv(folder / f"{name}.csv")
    grid = "method = ['raw', 'naive']\nannotators = ['all', 5]\n[[study]]\nfolder = 'my-study'\n"
    (folder / "grid.toml").write_text(grid)
    assert main(["sweep", str(folder / "grid.toml"), "--out", str(folder / "sweep")]) == 0
    fits = {"method": ["laplace"], "seed": [0, 1], "keep": "posterior"}
    fits |= {"study": [{"folder": str(folder / "my-study")}]}
    bayesrep.sweep(fits, folder / "folder")
    return folder


RUNNABLE = [
    pytest.param(textwrap.dedent(code), id=f"{page.stem}-{number}")
    for page in sorted(DOCS.glob("how-to/*.md"))
    if page.stem != "own-model"  # whose blocks build on one another, as those on ArviZ do
    for number, code in enumerate(
        re.findall(
            r"^ *```python\n(.*?)^ *```$",
            told(page).replace(execute["section"](told(page), "In ArviZ"), ""),
            flags=re.M | re.S,
        )
    )
    if not re.search("k1|fits_v1|per_instance_stats", code)  # what the reader has
]


@pytest.mark.parametrize("code", RUNNABLE)
def test_the_code_runs(code: str, written: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(written)
    with warnings.catch_warnings():
        if "import arviz" in code:  # which warns of other packages, and of weights
            warnings.simplefilter("ignore")
        exec(compile(code, "page", "exec"), {"bayesrep": bayesrep})


@pytest.mark.usefixtures("kept_fits")
def test_the_front_door_runs(capsys: pytest.CaptureFixture[str]):
    """Its Python; tests/test_run.py types its command, and make's targets are there (above)."""
    text = told(ROOT / "README.md")
    assert len(text.splitlines()) <= 60
    assert sum(file.stat().st_size for file in ROOT.glob("examples/*.csv")) <= 60_000
    (code,) = execute["blocks"](text)
    exec(compile(code, "page", "exec"), {})
    assert "adjusted_accuracy" in capsys.readouterr().out
    typed = re.findall(r"^\$ (\S+ \S+)", text, flags=re.M)
    activated = "source .venv/bin/activate"
    assert typed == ["make demo", "make test", activated, "bayesrep run"]


def widen(posterior: Any, classifiers: int) -> StoredPosterior:
    """A posterior as if of so many classifiers, with predictions of every tenth draw."""
    names = np.array([f"classifier {number}" for number in range(classifiers)])
    groups = {}
    for name in name_groups(posterior):
        group = need_group(posterior, name)
        if name == "posterior_predictive":
            group = group.take("draw", range(0, group.sizes["draw"], 10))
        if "classifier" in group.sizes:
            group = group.take("classifier", np.arange(classifiers) % group.sizes["classifier"])
            coords = {**group.coords, "classifier": Variable(("classifier",), names)}
            group = Group(group.data_vars, coords, group.attrs)
        groups[name] = group
    return StoredPosterior(groups, groups["posterior"].attrs)


@pytest.mark.parametrize("classifiers", [3, 136])
def test_the_page_on_arviz_runs(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, classifiers: int
):
    """Blocks in tabs are `python` for ArviZ 0.23 and `py` for 1.x."""
    import arviz as az

    monkeypatch.chdir(tmp_path)
    posterior = inference.read_posterior(written / "posterior.nc")
    bayesrep.write_posterior(widen(posterior, classifiers), "posterior.nc")
    text = execute["section"](told(DOCS / "how-to" / "read-output.md"), "In ArviZ")
    names: dict = {}
    left_out = "py" if hasattr(az, "psens") else "python"
    for indent, kind, code in re.findall(
        r"^( *)```(python|py)\n(.*?)^ *```$", text, flags=re.M | re.S
    ):
        if not indent or kind != left_out:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Pareto's k, large where a cell is
                exec(compile(textwrap.dedent(code), "page", "exec"), names)
    assert {"found", "some"} <= set(names)


SHORTER = {
    "numpyro_model(study)": "numpyro_model(study, degree=8, terms=3, components=2)",
    "infer.NUTS(": "infer.NUTS(max_tree_depth=3, model=",
    "num_warmup=500, num_samples=1000": "num_warmup=10, num_samples=10",
    "5000": "20",
    "num_samples=1000": "num_samples=10",
    "num_steps=500": "num_steps=10",
    "jax.random.key(4), 1000": "jax.random.key(4), 10",
    "tune=500, draws=1000": "tune=10, draws=10",
    '"nuts", progress': '"laplace", progress',
}
"""Of the page on samplers: few draws of a small model, whose numbers nobody reads here."""


def test_the_page_on_samplers_runs(
    written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """blackjax and nutpie where they are installed; they are no dependencies."""
    import arviz as az
    import jax

    monkeypatch.chdir(written)
    monkeypatch.setattr(bayesrep, "fit", zoo.fit)
    names: dict = {}
    wide = jax.config.jax_enable_x64
    try:
        page = told(DOCS / "how-to" / "own-model.md")
        for code in execute["blocks"](execute["section"](page, "Run your own sampler")):
            for long, short in SHORTER.items():
                code = code.replace(long, short)
            with warnings.catch_warnings(), jax.numpy_rank_promotion("allow"):
                warnings.simplefilter("ignore")  # of the libraries
                try:
                    exec(compile(code, "page", "exec"), names)
                except ModuleNotFoundError as error:
                    assert error.name in ("blackjax", "nutpie")  # noqa: PT017
        # And ArviZ names what NumPyro drew, as the page says.
        box = names["box"]
        with warnings.catch_warnings(), jax.numpy_rank_promotion("allow"):
            warnings.simplefilter("ignore")
            shown = {"dims": box.dims, "coords": box.coords, "log_likelihood": False}
            drawn = az.from_numpyro(names["mcmc"], **shown)
    finally:
        jax.config.update("jax_enable_x64", wide)
    told_of = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert set(told_of) >= {"NUTS", "SVI", "fit"}
    accuracy = drawn["posterior"]["adjusted_accuracy"]
    assert list(accuracy["classifier"].values) == box.coords["classifier"]
    assert ((accuracy > 0) & (accuracy < 1)).all()
    assert (np.ptp(accuracy.values, axis=1) > 0).all()


def test_the_page_on_models_runs(
    written: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    own_models,
):
    """Its model is near the joint one, and has the curves that its accuracies are means of."""
    import jax
    from scipy.special import logsumexp

    monkeypatch.chdir(written)
    names: dict = {}
    page = told(DOCS / "how-to" / "own-model.md").partition("\n## Run your own sampler")[0]
    for code in execute["blocks"](page):
        code = re.sub(r'model="[\w-]+",', r'\g<0> method="laplace", progress=False,', code)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of draws that are few
            exec(compile(code, "page", "exec"), names)
    assert "draws can be trusted" in capsys.readouterr().out
    check_covariate(names)
    fitted = names["posterior"]["posterior"]
    joint = zoo.posterior("tiny", **zoo.QUICK)["posterior"]
    means = [fit["adjusted_accuracy"].values.mean(axis=(0, 1)) for fit in (fitted, joint)]
    np.testing.assert_allclose(*means, atol=0.03)
    assert not np.allclose(*means, atol=1e-6)
    # A curve's mean under the reference's density of s, by the trapezoid rule, of a few draws.
    with jax.enable_x64(new_val=True):
        from bayesrep.posterior.groups import read_record

        made = read_record(names["posterior"])
        few = {name: fitted[name].values[0, :3] for name in fitted.data_vars}
        logit = np.linspace(-30, 30, 4001)
        s = 1 / (1 + np.exp(-logit))
        curves = np.asarray(made.model.curves(few, made.options, s, np.ones(1)))
    mean, total = (few[f"component_{of}"][:, 0] for of in ("mean", "concentration"))
    a, b = (mean * total)[..., None], ((1 - mean) * total)[..., None]
    log_density = -a * np.logaddexp(0, -logit) - b * np.logaddexp(0, logit)
    log_density -= logsumexp(log_density, axis=-1, keepdims=True)
    weight = np.einsum("dk,dks->ds", few["component_weight"][:, 0], np.exp(log_density))
    wanted = np.einsum("dcs,ds->dc", curves, weight)
    np.testing.assert_allclose(few["adjusted_accuracy"], wanted, atol=1e-5)


def check_covariate(names: dict):
    """Its summary, report and ArviZ's table are there; without an effect it is the joint model."""
    import arviz as az
    import jax
    from numpyro.infer.util import log_density
    from scipy.stats import norm

    study, fit = names["study"], names["by_year"]
    assert np.isfinite(names["effect"].values).all()
    assert bayesrep.summarize(study, fit, allow_unconverged=True).height == 3
    assert "with-year" in bayesrep.report(study, fit, bootstrap=0).html
    assert list(az.summary(fit, var_names=["effect", "log_scatter"]).index) == [
        "effect",
        "log_scatter",
    ]
    with jax.enable_x64(new_val=True):
        own, joint = names["MODELS"]["with-year"], names["MODELS"]["joint"]
        options = own.options(years=names["years"])
        cells = [bayesrep.SufficientStatistics.of(study).cells]
        data = own.data(cells, {}, options)
        np.testing.assert_allclose(np.mean(data.year), 0, atol=1e-12)
        with pytest.raises(ValueError, match="2 years of 3 classifiers"):
            own.data(cells, {}, own.options(years=(1.0, 2.0)))
        values = dict(own.start(data, options)) | {"log_scatter": np.log(0.75)}
        with_year, without = (
            float(jax.jit(lambda given, each=each: log_density(*each, {}, given)[0])(values))
            for each in ((own.function, (data, options)), (joint.function, (data.joint, options)))
        )
    priors = norm(0, 0.5).logpdf(0) + norm(-1, 1).logpdf(np.log(0.75))
    assert with_year - without == pytest.approx(priors, abs=1e-9)


@pytest.mark.usefixtures("kept_fits")
def test_the_tutorial_in_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its notebook too, which has the same code; on a smaller study."""
    monkeypatch.chdir(tmp_path)
    text = execute["PAGE"].read_text(encoding="utf-8")
    book = execute["notebook"](text)
    assert {cell["cell_type"] for cell in book["cells"]} == {"markdown", "code"}
    codes = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    assert [f"{code}\n" for code in codes] == execute["blocks"](text)
    assert TUTORIALS[0] in codes[0]
    names: dict = {}
    shown = [execute["run"](code.replace(*TUTORIALS), names) for code in codes]
    printed = "".join(text for text, _ in shown)
    assert "no prediction of classifier" in printed
    assert "Trust: " in printed
    assert "intervals hold the truth" in printed
    assert shown[-1][1] is True
    assert {path.name for path in tmp_path.iterdir()} >= {"report.html", "accuracies.pdf"}


def test_every_figure_is_in_the_gallery():
    live = runpy.run_path(str(DOCS / "live.py"))
    text = live["gallery"]()
    for name in live["FIGURES"]:
        assert f"### {name}\n" in text or f"`{name}`" in text, name
    plots = {name for name in bayesrep.__all__ if name.startswith("plot_")}
    assert plots == set(re.findall(r"^bayesrep\.(plot_\w+)\(study, posterior\)$", text, flags=re.M))


def test_the_placebo_is_told_in_the_numbers_of_its_result():
    text = told(DOCS / "results" / "placebo.md").partition("\n## ")[0]
    summary = read_numbers("placebo")["summary"]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    shown = [tuple(map(float, row[1:])) for row in rows[1:-1]]
    names = ("raw", "naive", "jackknife", "em-spline", "joint")
    found = [(summary[n]["mean_gap"], summary[n]["standard_error"]) for n in names]
    assert shown == [tuple(round(100 * value, 2) + 0.0 for value in pair) for pair in found]
    assert f"{100 * summary['inside']:.1f} %" in text


def test_the_citation_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {bayesrep.__version__}\n" in text


def test_the_derivation_is_exact(capsys: pytest.CaptureFixture[str]):
    text = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    code, printed = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL).groups()
    exec(compile(code, "page", "exec"), {})
    found = capsys.readouterr().out
    assert [float(part) for part in found.split()] == pytest.approx(
        [float(part) for part in printed.split()], abs=1e-9
    )
    assert found.split()[1] == found.split()[2]


def test_the_density_is_written_by_hand(capsys: pytest.CaptureFixture[str]):
    import jax

    text = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    page = text.partition("### Write it by hand")[2]
    code, printed = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL).groups()
    wide = jax.config.jax_enable_x64
    try:
        exec(compile(code, "page", "exec"), {})
    finally:
        jax.config.update("jax_enable_x64", wide)
    found = [
        [float(part) for part in line.split()] for line in capsys.readouterr().out.splitlines()
    ]
    for by_hand, ours in found:
        assert by_hand == pytest.approx(ours, rel=1e-12)
    told = [[float(part) for part in line.split()] for line in printed.splitlines()]
    assert sum(found, []) == pytest.approx(sum(told, []), rel=1e-6)


def test_the_variables_that_are_named_are_in_the_file(written: Path):
    posterior = inference.read_posterior(written / "posterior.nc")
    text = execute["section"](told(DOCS / "how-to" / "read-output.md"), "A posterior")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", text, flags=re.MULTILINE)
    named = {group: re.findall(r"`(\w+)`", cell) for group, cell in rows}
    assert set(named) >= {"posterior", "sample_stats", "log_density"}
    only_nuts = {"diverging", "num_steps", "acceptance_rate", "energy", "step_size"}
    for group, names in named.items():
        assert set(names) - only_nuts <= set(posterior[group].variables), group
    attributes = re.search(r"Attributes say how the fit was made: (.*?)\.\n", text, re.DOTALL)[1]
    assert set(re.findall(r"`(\w+)`", attributes)) <= set(posterior.posterior.attrs)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site."""
    for module in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(module, reason="the extra [docs] builds the site: make docs")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        # The theme's news of its successor; and without the live report, whose fit takes long.
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "BAYESREP_LIVE_REPORT": "0"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


class Loaded(HTMLParser):
    """Addresses that a page loads by itself; links that a reader follows are not among them."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag == "link" and values.get("rel") not in ("next", "prev", "canonical"):
            self.found.append(values.get("href"))
        elif tag != "a":
            self.found += [values[name] for name in ("src", "srcset", "data") if name in values]


def test_no_page_of_the_site_loads_anything_from_elsewhere(site: Path):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > len(list(DOCS.rglob("*.md")))  # and the page of a wrong address
    for page in pages:
        text = page.read_text(encoding="utf-8")
        parser = Loaded()
        parser.feed(text)
        assert any(str(address).endswith("iframe-worker.js") for address in parser.found), page.name
        elsewhere = [a for a in parser.found if a and re.match(r"(\w+:)?//", a)]
        assert elsewhere == [], page.name
        assert 'class="mermaid"' not in text  # diagrams are drawn by a script from elsewhere
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(\w+:)?//", sheet.read_text("utf-8")), sheet


def test_the_site_says_what_the_docstrings_and_commands_say(site: Path):
    for page in (site / "reference").glob("*.html"):
        assert "doc-symbol-module" not in page.read_text(encoding="utf-8"), page.name
    commands = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    assert "usage: bayesrep fit" in commands
    inference_page = (site / "reference" / "inference.html").read_text(encoding="utf-8")
    assert 'id="bayesrep.fit"' in inference_page
    assert 'id="bayesrep.report"' in (site / "reference" / "figures.html").read_text("utf-8")
    for page in site.rglob("*.html"):
        assert not re.search(r":(mod|func|class):<code>", page.read_text("utf-8")), page.name


def test_the_site_offers_what_is_no_page(site: Path):
    """The changelog; the notebook; results are found after guides."""
    changes = (site / "changelog.html").read_text(encoding="utf-8")
    assert ">Unreleased<" in changes
    book = json.loads((site / "tutorial-python.ipynb").read_text(encoding="utf-8"))
    assert book["nbformat"] == 4
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    boosts = {each["location"].partition("#")[0]: each.get("boost", 1) for each in index["docs"]}
    assert boosts["results/placebo.html"] < boosts["estimators.html"]


def test_the_live_report_is_on_its_page():
    live = runpy.run_path(str(DOCS / "live.py"))
    assert live["wanted"]()
    text = (DOCS / "report.md").read_text(encoding="utf-8")
    assert 'src="live.html"' in text


def test_the_source_distribution_can_build_the_site():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    held = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {"mkdocs.yml", "docs", "bayesrep", "Makefile", "CITATION.cff"} <= set(held)
