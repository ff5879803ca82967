"""Counts that selected their own images: the truncated likelihood, and measuring again."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
import zoo
from kept_counts import WEIGHT, A, B, dealt
from refusals import check, refusal, refused
from scipy import special, stats

import bayesrep
from bayesrep import OptionError, Study, StudyError
from bayesrep.cli import main
from bayesrep.errors import EstimateWarning
from bayesrep.estimators.remeasured import remeasure_counts
from bayesrep.models import counts
from bayesrep.models.curves import curve_family
from bayesrep.models.joint import joint_data
from bayesrep.models.mixtures import Mixtures
from bayesrep.posterior.verdict import advise
from bayesrep.studies.annotated import AnnotatedSet
from bayesrep.studies.selection import Selection
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.summary.remeasured import kept_factor

SHOWN = {"grid": [5], "two": [3, 5], "listed": [*range(30, 60), 200]}


def mixture():
    return Mixtures(jnp.log(jnp.asarray(WEIGHT))[None], jnp.asarray(A), jnp.asarray(B))


def density(s):
    return WEIGHT @ stats.beta.pdf(s, *(x.reshape(-1, *[1] * np.ndim(s)) for x in (A, B)))


def mass(k, n):
    return float(WEIGHT @ stats.betabinom.pmf(k, n, A, B))


def a_study(sizes, rule, seed=0):
    """Kept images of both data sets, some of every size."""
    rng = np.random.default_rng(seed)
    sides = {}
    for role in ("reference", "replication"):
        n = rng.choice(sizes, size=4_000)
        component = rng.choice(2, size=4_000, p=WEIGHT)
        k = rng.binomial(n, rng.beta(A[component], B[component]))
        kept = rng.random(4_000) < rule.probability(k, n)
        sides[role] = {
            "selected": k[kept],
            "shown": n[kept],
            "correct": rng.random((kept.sum(), 2)) < 0.7,
            "selection": rule,
        }
    return Study.from_arrays(**sides, classifiers=["a", "b"])


RULES = {
    "words": lambda sizes: Selection.parse("at least 60 %"),
    "table": lambda sizes: Selection.parse(
        [(k, n, (1 + k) / (2 + n)) for n in sizes for k in range(n // 3, n + 1)]
    ),
}


@jax.jit  # here and below: each operation alone would be a program
def law_of_counts(a, laid_out):
    """Log probabilities of the pairs that are kept, of every group, and of all counts."""
    log_mass = counts.log_pair_masses(mixture()._replace(a=a), laid_out.pairs)
    kept = counts.log_pairs_kept(laid_out, log_mass)
    return kept, counts.log_likelihood_of(laid_out, log_mass, mixture())


slope_of_counts = jax.jit(jax.grad(lambda a, laid_out: law_of_counts(a, laid_out)[1]))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("sizes", SHOWN)
def test_the_likelihood_is_that_of_counts_that_pass(sizes, rule):
    chosen = RULES[rule](SHOWN[sizes])
    study = a_study(SHOWN[sizes], chosen)
    cells = SufficientStatistics.of(study).reference
    data = joint_data([SufficientStatistics.of(study).cells])
    laid_out = data.datasets[0]
    log_kept = law_of_counts(jnp.asarray(A), laid_out)[0][0]

    def total(n):
        k = np.arange(n + 1)
        keeps = chosen.probability(k, np.full(n + 1, n))
        return sum(p * mass(each, n) for each, p in zip(k.tolist(), keeps, strict=True))

    totals = {n: total(n) for n in np.unique(cells.shown).tolist()}
    expected = 0.0
    for k, n, images in zip(cells.selected, cells.shown, cells.images, strict=True):
        keeps = float(chosen.probability(k, n))
        expected += images * np.log(keeps * mass(k, n) / totals[n])
    tables = counts.complete([cells])
    at = counts.pair_of_cells(tables[0])
    assert float(tables[0].images @ log_kept[at]) == pytest.approx(expected, rel=1e-10)
    # All counts that can be there of an n have probability 1 together.
    sums = {n: np.exp(log_kept[at])[tables[0].shown == n].sum() for n in totals}
    assert list(sums.values()) == pytest.approx([1.0] * len(sums), abs=1e-12)
    assert np.isfinite(slope_of_counts(jnp.asarray(A), laid_out)).all()


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("family", ["bernstein", "spline"])
@pytest.mark.parametrize("sizes", ["two", "listed"])
def test_averages_are_those_of_the_images_kept(sizes, family):
    rule = Selection.parse("at least 60 %")
    study = a_study(SHOWN[sizes], rule)
    laid_out = joint_data([SufficientStatistics.of(study).cells]).datasets[0]
    curves = curve_family(family, 8, 5, monotone=False)
    terms = jnp.asarray([[0.3, 1.5, -0.4, 0.2, 0.1]])

    @jax.jit
    def averages(terms, laid_out):
        right = curves.probability(terms)[:, None, :]
        accuracy = counts.average_accuracy(right, mixture(), laid_out, curves)
        return accuracy, counts.average_frequency(mixture(), laid_out)

    accuracy, frequency = averages(terms, laid_out)
    sizes, count = np.unique(study.reference.shown, return_counts=True)
    share = count / count.sum()

    # Gauss and Jacobi's nodes of either beta: of what keeps an image, a polynomial, exactly.
    rules = [special.roots_sh_jacobi(300, a + b - 1, a) for a, b in zip(A, B, strict=True)]
    s = np.concatenate([nodes for nodes, _ in rules])
    mass = np.concatenate([w * q / q.sum() for w, (_, q) in zip(WEIGHT, rules, strict=True)])

    def average(values):
        found = 0.0
        for n, part in zip(sizes.tolist(), share, strict=True):
            k = np.arange(n + 1)
            passes = k[rule.probability(k, np.full(n + 1, n)) > 0]
            keeps = mass * stats.binom.pmf(passes[:, None], n, s).sum(axis=0)
            found += part * (values @ keeps) / keeps.sum()
        return found

    curve = np.asarray(curves.accuracy(terms, s))[0]
    tolerance = 1e-7 if family == "bernstein" else 1e-5
    assert float(accuracy[0, 0]) == pytest.approx(average(curve), abs=tolerance)
    assert float(frequency[0]) == pytest.approx(average(s), abs=1e-7)


@pytest.mark.usefixtures("float64")
def test_a_rule_that_keeps_all_changes_nothing():
    told = a_study([3, 5], Selection.parse("at least 0"))
    untold = replace(
        told, datasets={r: replace(d, selection=None) for r, d in told.datasets.items()}
    )
    family = curve_family("bernstein", 8, 3, monotone=False)
    curve = family.probability(jnp.asarray([[0.1, 2.0, -0.5]]))[:, None, :]
    found = []
    for study in (told, untold):
        laid_out = joint_data([SufficientStatistics.of(study).cells]).datasets[0]
        log_mass = counts.log_pair_masses(mixture(), laid_out.pairs)
        found.append(
            (
                counts.log_likelihood_of(laid_out, log_mass, mixture()),
                counts.average_accuracy(curve, mixture(), laid_out, family)[0, 0],
                counts.average_frequency(mixture(), laid_out)[0],
            )
        )
    assert np.asarray(found[0]) == pytest.approx(np.asarray(found[1]), rel=1e-12)


def test_the_density_of_kept_images_is_one():
    rule = Selection.parse("at least 3 of 5")
    data = AnnotatedSet("v", np.array(["x"]), [4], [5], np.ones((1, 1), bool), selection=rule)
    at = np.linspace(0, 1, 2001)
    factor = kept_factor(A[None], B[None], WEIGHT[None], data, at)[0]
    # But for the rule's own error near 1.
    assert np.trapezoid(factor * density(at), at) == pytest.approx(1, abs=5e-4)
    others = replace(data, selection=Selection.parse("at least 3 of 5 by other answers"))
    assert (kept_factor(A[None], B[None], WEIGHT[None], others, at) == 1).all()


@pytest.fixture(scope="module")
def kept():
    """By Laplace: its draws do for a test where its certificate is refused by a little, too."""
    return zoo.study("kept"), zoo.posterior("kept", **zoo.QUICK)


def test_images_are_measured_again_by_their_rule(kept):
    study, fit = kept
    table = bayesrep.remeasure(study, fit)
    assert table["selection"].to_list() == ["at least 70 %"] * 2
    assert (table["regression_upper"] < 0).all()
    assert table.equals(bayesrep.remeasure(study, fit))


def test_measuring_again_is_what_betas_say():
    """Of images with one count all is closed: E[s | k, n] and P(k' | n', k, n) of a mixture."""
    study, fit = zoo.study("kept"), zoo.posterior("kept", **zoo.QUICK, dependence=0.0)
    group = fit["posterior"]
    names = ("mean", "concentration", "weight")
    mean, total, weight = (
        group[f"component_{name}"].values.reshape(-1, 2, 2)[:, 0] for name in names
    )
    a, b = mean * total, (1 - mean) * total
    k, count = np.unique(study.reference.selected, return_counts=True)
    own = weight[:, None] * stats.betabinom.pmf(k[:, None], 10, a[:, None], b[:, None])
    own /= own.sum(axis=-1, keepdims=True)
    a, b = a[:, None] + k[:, None], b[:, None] + (10 - k[:, None])
    frequency = (own * a / (a + b)).sum(axis=-1) @ count / count.sum()
    drops = (own * stats.betabinom.cdf(6, 10, a, b)).sum(axis=-1) @ count / count.sum()
    row = bayesrep.remeasure(study, fit).row(0, named=True)
    assert row["frequency"] == pytest.approx(np.median(frequency), abs=1e-3)
    assert row["dropped"] == pytest.approx(np.median(drops), abs=3e-3)


def test_what_does_not_allow_for_a_rule_says_so(kept):
    study, _ = kept
    with pytest.warns(EstimateWarning, match="selected"):
        bayesrep.estimate(study, "naive")
    by_counts = {"dataset": "reference", "model": "workers"}
    with refused(OptionError, "model-ignores-selection", by_counts) as found:
        bayesrep.fit(study, model="workers", progress=False)
    assert "model='joint'" in found.value.facts["other_models"]
    halves = {
        role: replace(data, groups={"half": np.where(np.arange(len(data.shown)) % 2, "a", "b")})
        for role, data in study.datasets.items()
    }
    grouped = replace(study, datasets=halves)
    with refused(OptionError, "groups-with-selected-data-set", {"dataset": "reference"}):
        bayesrep.fit(grouped, groups="half", progress=False)


def test_checks_of_the_counts_know_the_rule(kept):
    study, fit = kept
    said = bayesrep.diagnose(fit, study)
    counts_of = said.predictions.filter(kind="counts")
    assert (counts_of["p_adjusted"] > 0.01).all()
    assert said.dependence is not None


def test_a_rule_that_leaves_one_count_identifies_nothing():
    said = advise(SufficientStatistics.of(a_study([4], Selection.parse("all"))))
    assert len(said) == 2
    for role, sentence in zip(("reference", "replication"), said, strict=True):
        assert role in sentence
        assert "(all)" in sentence
        assert "1 count:" in sentence
        assert "nothing is" in sentence


def test_counts_alone_are_measured_again():
    selected, _ = dealt(1, 500)
    asked = {"draws": 2_000, "seed": 0}
    told = remeasure_counts(selected, 5, "at least 3 of 5", **asked)
    assert told.measured == pytest.approx(selected.mean() / 5)
    untold = remeasure_counts(selected, 5, **asked)
    assert untold.dropped is None
    assert untold.frequency[1] > told.frequency[2]  # what the rule is for
    assert told == remeasure_counts(selected, 5, "at least 3 of 5", **asked)
    assert remeasure_counts(np.zeros(300, int), 4, "none of 4", **asked).measured == 0


NOT_KEPT = "image-not-kept-by-selection"


@pytest.mark.parametrize(
    ("selected", "rule", "broken", "facts"),
    [
        ([3, 2], "at least 3 of 5", NOT_KEPT, {"images": ["1"], "selected": 2, "shown": 5}),
        ([6], None, "selected-exceeds-shown", {"images": ["0"]}),
        ([], None, "data-set-without-images", {}),
        ([3], "most", "selection-rule-unknown", {"selection": "most"}),
    ],
)
def test_counts_that_are_none_are_refused(selected, rule, broken, facts):
    with refused(StudyError, broken, facts):
        remeasure_counts(np.array(selected, dtype=int), 5, rule)


def test_the_command_takes_tables(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    selected, _ = dealt(5, 200)
    table = pl.DataFrame({"item": range(len(selected)), "selected": selected, "shown": 5})
    table.write_csv("c.csv")
    assert main(["answers", "remeasure", "c.csv", "--selection", "at least 3 of 5"]) == 0
    assert "would not pass the rule again" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("item,model,solved,attempts\nq1,m,3,5\nqé,m,2,5\n", "qé"),
        ("image,dataset,selected,shown\nq1,m,3,5\nqé,m,2,5\n", "qé"),
        ("Selected,Shown\n4,5\n2,5\n", "line 3"),  # a row without a name
    ],
)
def test_what_a_rule_did_not_keep_is_named_as_in_the_table(tmp_path, text, image):
    (tmp_path / "c.csv").write_text(text, encoding="utf-8")
    found = refusal(["answers", "remeasure", tmp_path / "c.csv", "--selection", "at least 3 of 5"])
    check(found, NOT_KEPT, {"images": [image], "selection": "at least 3 of 5"})


@pytest.mark.parametrize(
    ("text", "rule", "facts"),
    [
        ("image,dataset,selected,shown\na,v,3,5\nb,,4,5", "value-missing-in-rows", "dataset"),
        ("item,selected,shown\na,3,5\n,4,5", "value-missing-in-rows", "image"),
        ("item,model,selected,shown\na,m,3,5", "counts-by-classifier", "model"),
    ],
)
def test_counts_that_nobody_can_name_are_refused(tmp_path, text, rule, facts):
    (tmp_path / "c.csv").write_text(text)
    check(refusal(["answers", "remeasure", tmp_path / "c.csv"]), rule, {"column": facts})
