"""What a notebook shows of a fit: figures, report, diagnosis; and what ArviZ makes of it."""

import re
import warnings
from dataclasses import replace
from html import escape, unescape
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import zoo
from refusals import refused

import bayesrep
from bayesrep.cli import main
from bayesrep.errors import BayesrepError, OptionError
from bayesrep.inference import cells
from bayesrep.posterior.files import arviz
from bayesrep.posterior.fitted import Fitted
from bayesrep.report.figure import on_paper
from bayesrep.report.figure_registry import find_figure
from bayesrep.report.notebook import VEGA_LITE_MIME
from bayesrep.report.sections import gather


@pytest.fixture(scope="module")
def study():
    return zoo.study("tiny")


@pytest.fixture(scope="module")
def posterior():
    return zoo.posterior("tiny", **zoo.SHORT)


ANYWAY = {"allow_unconverged": True}
PLOTS = {
    "accuracies": (bayesrep.plot_accuracies, ANYWAY),
    "gaps": (bayesrep.plot_gaps, {"bootstrap": 0, **ANYWAY}),
    "ranks": (bayesrep.plot_ranks, {"top": 2, **ANYWAY}),
    "pairs": (bayesrep.plot_pairs, ANYWAY),
    "curves": (bayesrep.plot_curves, {}),
    "frequencies": (bayesrep.plot_frequencies, {}),
}


@pytest.fixture(scope="module", params=PLOTS)
def plot(request, study, posterior):
    function, options = PLOTS[request.param]
    return function(study, posterior, **options)


def test_a_plot_shows_itself_and_is_saved(plot, tmp_path):
    bundle = plot._repr_mimebundle_()
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert bundle[VEGA_LITE_MIME] == plot.spec
    for suffix in (".pdf", ".svg", ".png"):
        file = plot.save(tmp_path / f"figure{suffix}")
        assert file.stat().st_size > 1000
        first = file.read_bytes()
        assert plot.save(file, force=True).read_bytes() == first, suffix  # drawn again, the same
    with refused(OptionError, "saved-file-exists", {"file": str(file)}):
        plot.save(file)
    odd = tmp_path / "figure.docx"
    with refused(OptionError, "figure-ending-unknown", {"path": str(odd)}):
        plot.save(odd)
    text = plot.save(tmp_path / "figure.json").read_text("utf-8")
    drawn = (tmp_path / "figure.svg").read_text("utf-8")
    assert "<text" in drawn
    assert "NaN" not in drawn
    assert "var(--" not in text + drawn  # colours of the page


def test_what_a_plot_shows_is_what_the_command_and_the_page_show(study, posterior):
    """The same chart and the same rows, whoever asks for it."""
    plot = bayesrep.plot_accuracies(study, posterior, **ANYWAY)
    page = gather(study, posterior, bootstrap=0).opening.figure
    drawn = find_figure("accuracies").draw(study, posterior)
    assert plot.spec["layer"] == drawn["layer"]
    assert plot.spec["layer"] == on_paper(page)["layer"]
    rows = plot.spec["datasets"]["classifiers"]
    for other in (drawn, on_paper(page)):
        for one, more in zip(rows, other["datasets"]["classifiers"], strict=True):
            assert one.items() <= more.items()
    curves = bayesrep.plot_curves(study, posterior)
    assert curves.spec == find_figure("curves").draw(study, posterior)
    assert (
        bayesrep.plot_ranks(study, posterior, **ANYWAY).spec["layer"]
        == (find_figure("ranks").draw(study, posterior)["layer"])
    )


def test_a_plot_shows_the_rows_of_its_table(study, posterior):
    table = bayesrep.summarize(study, posterior, **ANYWAY)
    plot = bayesrep.plot_accuracies(study, posterior, **ANYWAY)
    rows = plot.spec["datasets"]["classifiers"]
    assert [row["classifier"] for row in rows] == table["classifier"].to_list()
    shown = [row["joint"] for row in rows]
    np.testing.assert_allclose(shown, table["adjusted_accuracy"], atol=1e-5)
    for name, drop in (("selection_gap", 0), ("bias_corrected_gap", 1)):
        gaps = bayesrep.summarize_gaps(study, posterior, **ANYWAY)
        value = 100 * gaps.filter(quantity=name)["estimate"][0]
        text = plot.spec["datasets"]["told"][1 - drop]["text"]
        assert text.startswith(f"{value:.1f} (".replace("-", "\N{MINUS SIGN}"))
    ranks = bayesrep.plot_ranks(study, posterior, **ANYWAY)
    assert len(ranks.spec["datasets"]["ranking"]) == 3


def test_pairs_are_those_that_the_command_shows(study, posterior):
    table = bayesrep.compare_classifiers(study, posterior, **ANYWAY)
    close = table.sort((table["probability"] - 0.5).abs())
    plot = bayesrep.plot_pairs(study, posterior, top=2, **ANYWAY)
    rows = plot.spec["datasets"]["pairs"]
    shown = [(row["classifier"], row["other"]) for row in rows]
    assert shown == close.select("classifier", "other").rows()[:2]
    columns = {"difference": "mean", "raw_difference": "measured", "lower": "lower"}
    for name, field in columns.items():
        np.testing.assert_allclose([row[field] for row in rows], 100 * close[name][:2], atol=1e-4)
    assert rows[0]["pair"] == f"{rows[0]['classifier']} \N{MINUS SIGN} {rows[0]['other']}"
    one, _, other = study.classifiers
    plot = bayesrep.plot_pairs(study, posterior, between=[other, one], **ANYWAY)
    (row,) = plot.spec["datasets"]["pairs"]
    assert (row["classifier"], row["other"]) == (one, other)


OURS = re.compile(r"(?i)\b(images?|classifiers?|annotators?|annotations?|workers?|people)\b")


def test_plots_of_an_evaluation_say_item_and_model(study, posterior):
    """Whose fit is that of the same study of images: its words are no part of it."""
    evaluation = replace(study, provenance={**study.provenance, "words": "evaluation"})
    told = {}
    for words, each in (("images", study), ("evaluation", evaluation)):
        for name, (function, options) in PLOTS.items():
            plot = function(each, posterior, **options)
            texts = [plot.spec["description"], *titles(plot.spec)]
            told[name, words] = " | ".join(texts)
    for name in PLOTS:
        assert not OURS.search(told[name, "evaluation"]), name
        theirs = told[name, "evaluation"] != told[name, "images"]
        assert theirs == bool(OURS.search(told[name, "images"])), name
    assert "share of items (%)" in told["frequencies", "evaluation"]
    assert "Models' ranks" in told["ranks", "evaluation"]
    assert "| model |" in told["accuracies", "evaluation"]


def titles(spec):
    """Every title in a specification, and what a tooltip would show by a field's name."""
    if isinstance(spec, dict):
        for name, value in spec.items():
            if name == "title" and isinstance(value, str):
                yield value
            elif name == "tooltip":
                yield from (str(each.get("title", each["field"])) for each in value)
            else:
                yield from titles(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from titles(value)


def test_a_plot_refuses_what_the_tables_refuse(study, posterior):
    with refused(OptionError, "study-lacks-classifiers", {"classifiers": ["nope"]}):
        bayesrep.plot_curves(study, posterior, ["nope"])
    for function, rule in (
        (bayesrep.plot_ranks, "ranks-shown-below-one"),
        (bayesrep.plot_pairs, "pairs-shown-below-one"),
    ):
        with refused(OptionError, rule, {"top": 0}):
            function(study, posterior, top=0)
    with refused(OptionError, "between-unknown-classifier", {"classifier": "nope"}):
        bayesrep.plot_pairs(study, posterior, between=["nope"], **ANYWAY)
    one = study.classifiers[0]
    with refused(OptionError, "between-names-one-classifier", {"classifier": one}):
        bayesrep.plot_pairs(study, posterior, between=[one], **ANYWAY)
    other = zoo.cut(study, images=300)
    for function, options in PLOTS.values():
        with refused(bayesrep.PosteriorError, "posterior-of-another-study"):
            function(other, posterior, **options)
        with refused(bayesrep.StudyError, "path-instead-of-study", {"path": "folder"}):
            function("folder", posterior, **options)


def test_the_report_is_shown_in_a_frame_and_saved(study, posterior, tmp_path):
    made = bayesrep.report(study, posterior, tmp_path / "report.html", bootstrap=0)
    assert (tmp_path / "report.html").read_text("utf-8") == made.html
    frame = made._repr_html_()
    assert frame.count("<iframe") == 1
    assert 'sandbox="allow-scripts' in frame
    assert unescape(re.search(r'srcdoc="([^"]*)"', frame)[1]) == made.html
    assert dict(made.missing) == {}
    assert len(repr(made)) < 80
    there, bare = tmp_path / "report.html", tmp_path / "report"
    with refused(OptionError, "saved-file-exists", {"file": str(there)}):
        bayesrep.report(study, posterior, there)
    endings = {"file": str(bare), "endings": ".html, .htm"}
    with refused(OptionError, "saved-ending-unknown", endings):
        bayesrep.report(study, posterior, bare)


def test_the_room_of_that_name_stays_a_module():
    import bayesrep.report.figure as figures

    assert bayesrep.report.figure is figures
    with refused(bayesrep.StudyError, "path-instead-of-study", {"path": "folder"}):
        bayesrep.report("folder")


def test_a_diagnosis_reads_as_the_command_prints_it(study, posterior, capsys):
    told = bayesrep.diagnose(posterior)
    text = str(told)
    assert text.startswith(f"Trust: {told.trust}. ")
    assert repr(told).count("\n") == 0
    assert len(repr(told)) < 100
    page = told._repr_html_()
    assert all(escape(row[0]) in page for row in told.checks.iter_rows())
    main(["diagnose", str(zoo.posterior_path("tiny", **zoo.SHORT))])
    printed = capsys.readouterr()
    # The command line adds commands to paste, a line each.
    lines = [line for line in printed.out.splitlines() if not line.startswith("  $ ")]
    assert lines == text.splitlines(), printed.err
    assert repr(Fitted(study, posterior)).startswith("<Fitted: joint by nuts, 2 x 100 draws, 3 ")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("posterior.nc", "'posterior.nc'"),
        (None, "an object of type NoneType"),
        (3, "an object of type int"),
        ({}, "an object of type dict"),
    ],
)
def test_what_is_no_posterior_is_refused(study, given, found):
    for call in (bayesrep.diagnose, lambda it: bayesrep.summarize(study, it)):
        with refused(bayesrep.PosteriorError, "object-not-a-posterior", {"found": found}):
            call(given)


def test_public_names_are_all_that_is_listed():
    assert dir(bayesrep) == sorted(bayesrep.__all__)
    assert issubclass(bayesrep.StudyError, BayesrepError)


# ArviZ


def test_arviz_finds_one_likelihood_and_the_prior(study, posterior):
    """Its own functions, unasked for names: leave-one-out, its PIT and power scaling."""
    module = arviz()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Pareto's k, which is large where a cell is
        found = module.loo(posterior)
        scaled = _sensitivity(module, posterior)
        drawn = _pit(module, posterior)
    elpd = getattr(found, "elpd_loo", None) or found.elpd
    likelihood = posterior.log_likelihood["correct"].values
    assert likelihood.mean(axis=(0, 1)).sum() - 60 < elpd < likelihood.mean(axis=(0, 1)).sum() + 30
    assert scaled.shape == (3,)
    assert np.isfinite(scaled).all()
    assert drawn is not None
    names = ("log_prior", "log_likelihood", "posterior_predictive", "posterior")
    assert len({posterior[name].sizes["draw"] for name in names}) == 1


def _sensitivity(module, posterior):
    if hasattr(module, "psens"):
        chosen = {"component_var_names": ["shared"], "var_names": ["adjusted_accuracy"]}
        return np.ravel(module.psens(posterior, component="prior", **chosen))
    table = module.psense_summary(
        posterior, var_names=["adjusted_accuracy"], prior_var_names=["shared"], round_to=12
    )
    return table["prior"].to_numpy().astype(float)


def _pit(module, posterior):
    if hasattr(module, "psens"):
        return module.plot_loo_pit(posterior, y="correct")
    return module.plot_loo_pit(posterior, var_names=["correct"])


OF_ACCURACIES = {"var_names": ["adjusted_accuracy"]}
OF_ANSWERS = {"var_names": ["correct"]}
OLD = {"loo_pit": {"y": "correct"}, "plot_ppc": {"num_pp_samples": 20}, "plot_bpv": {}}
NEW = {"loo_pit": OF_ANSWERS, "plot_ppc_dist": {}, "plot_ppc_tstat": {}}
BOTH = {
    **dict.fromkeys(["summary", "ess", "extract"], OF_ACCURACIES),
    **dict.fromkeys(["plot_forest", "plot_trace", "plot_rank", "plot_pair"], OF_ACCURACIES),
    "plot_energy": {},
}
"""What is called with which options, but for what another test calls."""


def test_arvizs_functions_take_it_as_it_is(posterior):
    """All that docs/how-to/read-output.md names, of the ArviZ that is installed."""
    module = arviz()
    old = hasattr(module, "psens")
    for name, chosen in (BOTH | (OLD if old else NEW)).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own plots, and of Pareto's k
            assert getattr(module, name)(posterior, **chosen) is not None, name
        plt.close("all")
    page = Path(__file__).parents[1] / "docs" / "how-to" / "read-output.md"
    table = page.read_text("utf-8").partition("\n### Groups")[2].partition("\n## ")[0]
    named = {n for n in re.findall(r"`(\w+)`", table) if hasattr(module, n)}
    elsewhere = {"loo", "compare", "plot_loo_pit", "psens", "psense_summary"}
    assert named - elsewhere <= set(BOTH | (OLD if old else NEW))


def test_a_store_of_zarr_needs_zarr(posterior, tmp_path):
    """Which is no dependency; the page says what to install."""
    if find_spec("zarr") is None:
        with pytest.raises(ImportError, match="(?i)zarr"):
            posterior.to_zarr(tmp_path / "posterior.zarr")
    else:
        posterior.to_zarr(tmp_path / "posterior.zarr")
        assert (tmp_path / "posterior.zarr").is_dir()


def test_what_is_observed_is_predicted(posterior):
    """Under the same names: ArviZ compares all of them, unasked for names."""
    observed, predicted = posterior["observed_data"], posterior["posterior_predictive"]
    assert set(observed.data_vars) == set(predicted.data_vars)
    for name, values in observed.data_vars.items():
        assert predicted[name].dims[2:] == values.dims


def test_arviz_compares_two_fits(posterior):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Pareto's k
        table = arviz().compare({"one": posterior, "other": posterior})
    assert table["weight"].to_list() == pytest.approx([0.5, 0.5])


def test_predictions_are_of_some_draws_where_they_are_many(monkeypatch, study):
    """And the draws are those that the likelihood has, by name."""
    from bayesrep.inference.problem import pose

    problem = pose(study, model="joint", options={})
    assert cells.thinning(problem, 4, 750) == (1, 1)
    monkeypatch.setattr(cells, "MAX_PREDICTIONS", 1000)
    assert cells.thinning(problem, 4, 750) == (1, 10)
    monkeypatch.setattr(cells, "MAX_LOGITS", 4 * 750 * 3 * 9 // 3)
    kept, predicted = cells.thinning(problem, 4, 750)
    assert kept > 1
    assert predicted % kept == 0
    assert predicted >= 10
