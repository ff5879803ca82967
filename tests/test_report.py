"""The report's numbers and its page, without a browser."""

import json
import re
from base64 import b64decode
from dataclasses import replace
from html import unescape
from importlib.resources import files
from io import BytesIO

import numpy as np
import polars as pl
import pytest
import zoo
from refusals import check, refusal, refused
from scipy.integrate import quad
from scipy.special import comb
from scipy.stats import beta, binom

import bayesrep
from bayesrep.cli import main
from bayesrep.errors import PosteriorError, StudyError, Violation
from bayesrep.estimators.annotators import compare_annotators
from bayesrep.models import MODELS
from bayesrep.posterior.fitted import Fitted
from bayesrep.report import methods
from bayesrep.report.answer import Drop, Estimate, answer_for, headline
from bayesrep.report.figure import FILE_SUFFIXES
from bayesrep.report.figure_registry import FIGURES_BY_NAME
from bayesrep.report.methods import look_of
from bayesrep.report.page import page, report_html, write_page
from bayesrep.report.page_json import REPORT_FORMAT, numbers_of
from bayesrep.report.pictures import Pictures
from bayesrep.report.sections import (
    SECTION_TYPES,
    Accuracies,
    Answer,
    Content,
    CurvesSection,
    Frequencies,
    Image,
    Ranking,
    Trust,
    gather,
)
from bayesrep.report.sections.accuracies import classifier_sentences
from bayesrep.report.sections.curves import S_COARSE as CURVE_GRID
from bayesrep.report.sections.frequencies import S_FINE, MixtureDraws, Shares
from bayesrep.report.sections.image import posterior_by_count
from bayesrep.report.sections.photographs import Photographs
from bayesrep.report.sections.ranking import _neighbours
from bayesrep.report.sections.section import Source
from bayesrep.report.wording import real_minus
from experiments.style import save_figure

pytestmark = pytest.mark.filterwarnings(
    "ignore::bayesrep.errors.EstimateWarning", "ignore::bayesrep.errors.ConvergenceWarning"
)


@pytest.fixture(scope="module")
def study():
    return zoo.study("tiny")


@pytest.fixture(scope="module")
def posterior():
    return zoo.posterior("tiny", **zoo.SHORT)


@pytest.fixture(scope="module")
def content(study, posterior):
    return gather(study, posterior, bootstrap=5)


def embedded(html, name):
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', html, re.S)
    return json.loads(found.group(1))


WORDS = r"(?i)\b(images?|classifiers?|annotators?|annotations?|workers?|people)\b"
"""Of studies of images alone. `classifier_curve` and the like are names of parameters."""


def read_aloud(html):
    """What a reader gets of a page without its scripts: text, labels, titles of figures."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.S)
    labels = re.findall(r'(?:aria-label|placeholder|content|title)="([^"]*)"', body)
    shown = [unescape(re.sub(r"<[^>]+>", " ", body)), *map(unescape, labels)]
    titles = re.findall(r'"(?:title|description)":("(?:[^"\\]|\\.)*")', html)
    return [*shown, *map(json.loads, titles)]


def test_a_page_of_an_evaluation_has_items_models_and_judges(study, posterior):
    evaluation = replace(study, provenance={**study.provenance, "words": "evaluation"})
    other = gather(evaluation, posterior, bootstrap=5)
    html = page(other)
    for text in read_aloud(html):
        assert not re.search(WORDS, text), re.search(f".*{WORDS}.*", text)[0]
    told = " ".join(read_aloud(html))
    for words in ("What every model loses", "How often items were selected", "One item", "judges"):
        assert words in told
    # Nor do the sentences that follow a control, of which the page shows one at a time.
    shown = embedded(html, "content")
    readings = [[each["first"], each["texts"]] for each in shown["readings"].values()]
    sentences = list(all_texts([readings, shown["sentences"], shown["unknown"]]))
    assert len(sentences) > 20
    for text in sentences:
        assert not re.search(WORDS, text), text
    assert any(text.startswith("An item that 1 of 8 judges selected") for text in sentences)
    assert numbers_of(other)["answer"].startswith("Models are ")
    assert set(numbers_of(other)["study"]) == {"name", "classifiers", "images"}  # a contract


def all_texts(value):
    """Every text in nested lists and mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from all_texts(each)


def test_a_page_without_posterior_has_the_words_too(study):
    lacking = dict.fromkeys(SECTION_TYPES, Violation("no-posterior-given"))
    other = replace(study, provenance={"words": "evaluation"})
    for text in read_aloud(page(Content(other, lacking))):
        assert not re.search(WORDS, text), text


def test_a_page_of_images_says_what_the_sections_say(content):
    html = page(content)
    text = read_aloud(html)[0]
    for block in content.blocks():
        said = [block.short, block.title, block.lead, *block.sentences]
        said += [figure.reading for figure in block.figures]
        said += [control["label"] for control in block.controls]
        for each in said:
            assert each.replace("`", "") in re.sub(r"\s+", " ", text).replace("\u2212", "-"), each


def test_the_pages_script_computes_no_number():
    """What it shows comes from Python, sentences and all: it sets parameters and picks texts."""
    script = files("bayesrep.report").joinpath("assets/page.js").read_text("utf-8")
    assert script.count("\n") <= 450
    assert not re.findall(r"Math\.(?:exp|log|sin|pow|sqrt)\w*", script)
    assert not re.search(r"(?i)\bselection frequency\b|\bclassifiers? (?:is|are)\b", script)


def test_every_control_sets_a_parameter_of_a_chart(content):
    """By its name, and every parameter that a control sets begins with the control's value."""
    html = page(content)
    params = {
        each["name"]: each["value"]
        for spec in embedded(html, "specs").values()
        for each in spec.get("params", [])
        if "value" in each
    }
    controls = [control for block in content.blocks() for control in block.controls]
    named = {
        control["id"]: control for control in controls if control["kind"] in ("range", "select")
    }
    assert set(named) == {"method", "annotators", "selected", "toy_pool", "toy_answers"}
    for name, control in named.items():
        assert str(params[name]) == str(control["value"]), name


def test_the_sentence_of_a_classifier_has_its_numbers(content, study):
    estimated, ranking = content[Accuracies], content[Ranking]
    said = classifier_sentences(estimated, (ranking.rank, ranking.measured))
    assert len(said) == len(study.classifiers)
    row = estimated.classifiers.row(1, named=True)
    adjusted, lost = 100 * row["joint"], 100 * (row["reference"] - row["replication"])
    assert said[1].startswith(f"{row['classifier']}: {100 * row['reference']:.1f} % on the")
    assert f"{adjusted:.1f} ({100 * row['joint_lower']:.1f} to" in said[1]
    moved = f"{adjusted - 100 * row['replication']:.1f}"
    assert f"Of {lost:.1f} points, {moved} come from selection" in said[1]
    assert f"it ranks {ranking.rank[0, 1]:.0f} of 3 (" in said[1]
    assert "ranks" not in classifier_sentences(estimated)[1]


def test_numbers_below_zero_have_a_minus_sign():
    assert real_minus("-1 is -1.5 better (-1)", ["-1", "m"]) == "-1 is −1.5 better (-1)"
    assert real_minus("-0.3 (-1.2 to -0.1), ±-.5") == "−0.3 (−1.2 to −0.1), ±−.5"
    for text in ("`--set x=-1 -2`", "2024-05-01", "a-1", "--seed", "vit -b", "1e-6"):
        assert real_minus(text) == text


def having(content, *sections):
    """A content with some sections' numbers in the place of its own."""
    return replace(content, sections={**content.sections, **{type(s): s for s in sections}})


def test_every_section_is_there_and_nothing_is_missing(content):
    assert not content.missing_sections
    html = page(content)
    order = re.findall(r'<section id="([a-z-]+)"', html)
    assert order == [
        *("answer-section", "answer", "trust", "accuracies", "table", "ranks-section"),
        *("frequencies", "image-section", "bias", "curves", "checks-section", "again"),
    ]
    specs = embedded(html, "specs")
    assert set(specs) >= {"hero", "drops", "ranking", "pairs", "histogram-reference", "density"}
    for name, spec in specs.items():  # what a drawing says of itself is what the page says of it
        assert f'id="{name}" role="img" aria-label="{spec["description"]}"' in unescape(html)
    ids = re.findall(r'<[^>]* id="([^"]+)"', html[: html.index("<script")])
    assert len(ids) == len(set(ids))


def test_the_title_is_the_finding_and_the_trust_is_beside_it(content, study):
    shown, trust = content[Answer], content[Trust]
    title = headline(shown.drop, classifiers=3)
    html = page(content)  # of chains that are too short
    assert f"<title>No answer: this fit has not converged – {study.name}</title>" in html
    assert f"No answer, since this fit has not converged: {answer_for(study, shown.drop)}" in html
    content = having(content, replace(trust, caveat=""))
    html = page(content)
    assert f"<title>{title} – {study.name}</title>" in html
    assert f'<meta property="og:title" content="{title}">' in html
    assert f'id="told">{answer_for(study, shown.drop)}</p>' in html
    style, words = trust.badge
    assert f'<a class="badge {style}" href="#trust">Trust: {words}</a>' in html
    assert words.startswith(trust.verdict)
    measured, rest = Estimate(0.004, -0.027, 0.049), Estimate(-0.023, -0.052, 0.008)
    drop = Drop(measured, rest, Estimate(0.027, -0.004, 0.056), Estimate(6.75, -1.0, 14.0))
    html = page(having(content, replace(shown, drops={"joint": drop})))
    assert "No clear drop from the reference to the replication: 0.4 points" in html
    assert "No clear drop in accuracy</h1>" in html
    parts = Estimate(0.03, 0.02, 0.04), Estimate(0.07, 0.06, 0.08), Estimate(0.7, 0.6, 0.8)
    drop = Drop(Estimate(0.1, 0.09, 0.11), *parts)
    html = page(having(content, replace(shown, drops={"joint": drop})))
    assert (
        "70 % (60 to 80) of the 10.0\u2011point drop comes from how images were selected</h1>"
        in html
    )


def test_naive_accuracies_run_from_none_to_all_annotators(content, study):
    naive = content[Accuracies].naive
    assert naive.shape == (9, 3)
    np.testing.assert_array_equal(naive[0], study.replication.correct.mean(axis=0))
    table = compare_annotators(study)
    last = table.filter(pl.col("annotators") == 8)["naive"].to_numpy()
    np.testing.assert_allclose(naive[-1], last)


def test_gaps_and_accuracies_are_those_of_estimate_and_summarize(content, study, posterior):
    summary = bayesrep.summarize(study, posterior, allow_unconverged=True)
    rows = content[Accuracies].classifiers
    np.testing.assert_allclose(rows["joint"], summary["adjusted_accuracy"])
    np.testing.assert_allclose(rows["joint_lower"], summary["lower"])
    points = bayesrep.estimate(study, "em-spline")
    np.testing.assert_allclose(rows["em-spline"], points["adjusted_accuracy"])
    gaps = bayesrep.summarize_gaps(study, posterior, allow_unconverged=True)
    by = {row["method"]: row for row in content[Answer].gaps.to_dicts()}
    wanted = gaps.filter(pl.col("quantity") == "bias_corrected_gap").row(0, named=True)
    assert by["joint"]["gap"] == pytest.approx(wanted["estimate"])
    assert by["raw"]["share"] is None
    assert by["joint"]["share"] == pytest.approx(
        1 - by["joint"]["gap"] / by["raw"]["gap"], abs=0.05
    )


def test_shares_and_densities_sum_to_one(content):
    for part in content[Frequencies].shares.values():
        assert part.observed.sum() == pytest.approx(1)
        assert part.predicted[0].sum() == pytest.approx(1)
        # The ends show the value beside them, since a density there may be infinite.
        assert np.trapezoid(part.density[0], S_FINE) == pytest.approx(1, abs=0.06)


def test_one_images_density_is_bayes_rule(content, posterior):
    group = posterior.posterior
    mean, total, weight = (
        group[f"component_{name}"].values.reshape(-1, 2, 2)
        for name in ("mean", "concentration", "weight")
    )
    k, n, at = 5, 8, 60
    found = content[Image].densities["reference"][k, at]
    values, means = [], []
    for draw in range(0, 200, 4):
        a, b = mean[draw, 0] * total[draw, 0], (1 - mean[draw, 0]) * total[draw, 0]

        def joint(s, a=a, b=b, w=weight[draw, 0]):
            return float(w @ beta.pdf(s, a, b)) * comb(n, k) * s**k * (1 - s) ** (n - k)

        total_mass = quad(joint, 0, 1, limit=200)[0]
        values.append(joint(S_FINE[at]) / total_mass)
        means.append(quad(lambda s, joint=joint: s * joint(s), 0, 1, limit=200)[0] / total_mass)
    assert found == pytest.approx(np.mean(values), rel=0.02)
    assert content[Image].means["reference"][k] == pytest.approx(np.mean(means), rel=1e-6)


def test_a_narrow_component_between_points_of_the_grid_has_a_mean():
    """No density is above zero at any point: what is read out still says where the count is."""
    at = np.array([0.205, 0.625])
    a = 1e8 * at[None]
    density, mean = posterior_by_count(MixtureDraws(a, 1e8 - a, np.array([[0.5, 0.5]])), 10)
    assert not density.any()
    joint = binom.pmf(np.arange(11)[:, None], 10, at)
    np.testing.assert_allclose(mean, joint @ at / joint.sum(axis=1), rtol=1e-5)


def test_curves_have_the_answers_of_their_cells(content, study):
    data = study.replication
    counts = content[CurvesSection]
    assert counts.images.sum() == 500
    np.testing.assert_array_equal(counts.right.sum(axis=1), data.correct.sum(axis=0))
    mean, lower, upper = counts.bands
    assert np.all((lower <= mean) & (mean <= upper))
    # The mean curve explains the answers at a count: its average over that count's frequencies.
    k = 8
    mass = content[Frequencies].shares["replication"].density[0] * binom.pmf(k, 8, S_FINE)
    fitted = np.sum(mass * np.interp(S_FINE, CURVE_GRID, counts.bands[0, 0])) / mass.sum()
    right = data.correct[data.selected == k, 0]
    assert fitted == pytest.approx(right.mean(), abs=4 * 0.5 / np.sqrt(len(right)))


def test_what_is_expected_at_a_count_is_what_the_draws_predict(content, posterior):
    curves = content[CurvesSection]
    group = posterior.posterior_predictive
    right = group["correct"].values.reshape(-1, 3, group["correct"].shape[-1]).sum(axis=2)
    total = (curves.expected[0] * curves.images).sum(axis=1)
    np.testing.assert_allclose(total, right.mean(axis=0))
    mean, lower, upper = curves.expected
    assert np.all((lower <= mean) & (mean <= upper))
    seen = curves.right / curves.images
    # 95 % intervals of 9 counts of 3 classifiers: 17 of 27 or fewer would be one in a million.
    assert ((lower <= seen) & (seen <= upper)).sum() > 17


def test_ranks_and_neighbours_are_those_of_the_tables(content, study, posterior):
    found = content[Ranking]
    table = bayesrep.rank_classifiers(study, posterior, allow_unconverged=True)
    assert [found.classifiers[each] for each in found.order] == table["classifier"].to_list()
    wanted = table["rank", "lower", "upper"].to_numpy().T
    np.testing.assert_allclose(found.rank[:, found.order], wanted)
    pairs = bayesrep.compare_classifiers(study, posterior, allow_unconverged=True)
    assert found.neighbours.shape == (3, 2)
    for row in pairs.iter_rows(named=True):
        one, other = (study.classifiers.index(row[name]) for name in ("classifier", "other"))
        (at,) = np.flatnonzero(found.neighbours[one] == other)
        wanted = [row[name] for name in ("difference", "lower", "upper", "probability")]
        np.testing.assert_allclose(found.differences[:, one, at], wanted)


@pytest.mark.parametrize(("size", "count"), [(2, 1), (5, 4), (30, 10)])
def test_neighbours_are_next_to_it(size, count):
    order = np.random.default_rng(0).permutation(size)
    place = np.argsort(order)
    for each, others in enumerate(_neighbours(order, count)):
        assert len(set(others)) == count
        assert each not in others
        assert list(place[others]) == sorted(place[others])
        assert np.ptp([*place[others], place[each]]) == count


def test_the_count_shown_first_is_where_the_pools_differ(content, study):
    image = content[Image]
    one, other = image.means.values()
    apart = np.abs(one - other)
    assert apart[image.first] > np.median(apart) / 2
    assert (study.reference.selected == image.first).any()


def test_axes_are_equal_and_hold_every_point(content):
    found = content[Answer].accuracies
    low, high = found.range()
    spec = content.opening.figure.spec
    assert spec["width"] == spec["height"]
    domains = [
        channel["scale"]["domain"]
        for layer in spec["layer"]
        for name, channel in layer["encoding"].items()
        if name in ("x", "y") and "scale" in channel
    ]
    assert len(domains) > 8
    assert all(domain == [low, high] for domain in domains)
    own = found.methods[-1]
    for name in ("reference", "replication", "truth", own, f"{own}_lower", f"{own}_upper"):
        assert found.classifiers[name].is_between(low / 100, high / 100).all()


def test_the_truth_of_a_simulation_is_shown(content, study):
    answer = content[Answer]
    wanted = study.reference.correct.mean() - np.mean(study.truth.adjusted_accuracy)
    assert answer.truth == pytest.approx(wanted)
    assert f"the truth is {100 * wanted:.1f} points" in page(content)
    unknown = gather(replace(study, truth=None), bootstrap=0)
    assert unknown[Answer].truth is None
    assert "truth" not in numbers_of(unknown)["classifiers"]


def test_the_page_is_made_by_one_function(study, posterior, content):
    assert report_html(study, posterior, bootstrap=5) == page(content)


def test_the_numbers_are_a_twin_of_the_page(content):
    numbers = numbers_of(content)
    assert numbers["format"] == REPORT_FORMAT
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    drop = content[Answer].drop
    assert numbers["drop"]["remaining"]["value"] == pytest.approx(drop.remaining.value, abs=1e-5)
    assert numbers["trust"]["verdict"] == content[Trust].verdict
    assert numbers["headline"] == content.opening.title


@pytest.mark.parametrize("options", [{"curve": "spline"}, {"monotone": True}])
def test_every_family_of_curves_is_shown(study, options):
    posterior = zoo.posterior("tiny", **options, **zoo.QUICK)
    bands = CurvesSection.compute(Source(study, Fitted(study, posterior))).bands
    assert bands.shape == (3, 3, 41)
    if "monotone" in options:
        assert np.all(np.diff(bands[0], axis=1) >= -1e-9)


def test_without_a_posterior_the_possible_sections_are_shown(study):
    content = gather(study, bootstrap=0)
    assert set(content.missing_sections) == {"frequencies", "trust", "posterior", "curves", "ranks"}
    html = page(content)
    assert (
        "The joint model's answer is not shown: there is no posterior; <code>bayesrep fit" in html
    )
    assert "<li>Can I trust this?; Who is better; Accuracy by" in html
    assert "The pools are estimated by EM from the counts" in html
    assert "`" not in html[html.index("<body>") : html.index("<script")]
    specs = embedded(html, "specs")
    assert {"answer-chart", "hero", "drops", "histogram-reference", "image", "toy"} <= set(specs)
    assert not {"density", "curve", "chains", "ranking"} & set(specs)
    numbers = embedded(html, "numbers")
    assert numbers["trust"] is numbers["ranks"] is None
    assert numbers["method"] == "em-spline"


def test_images_are_shown_small_and_hold_nothing_of_their_files(study, tmp_path):
    from PIL import Image as Pillow

    for name in study.reference.images[:40].tolist():
        picture = Pillow.new("RGB", (400, 300), (200, 10, 10))
        picture.save(tmp_path / f"{name}.jpg", comment=b"whose it is")
    content = gather(study, bootstrap=0, pictures=Pictures.in_folder(tmp_path))
    shown = content[Photographs].thumbnails
    assert 1 < len(shown) <= 15
    frequencies = [int(each.text.split()[-2]) for each in shown]
    assert frequencies == sorted(frequencies)
    html = page(content)
    for each in shown:
        assert f'<img src="{each.source}" alt="">' in html
        data = b64decode(each.source.removeprefix("data:image/jpeg;base64,"))
        with Pillow.open(BytesIO(data)) as small:
            assert max(small.size) == 160
            assert np.abs(np.asarray(small).mean(axis=(0, 1)) - (200, 10, 10)).max() < 4
        assert b"whose it is" not in data
    assert "Images by selection frequency" not in page(gather(study, bootstrap=0))


@pytest.mark.parametrize(
    ("file", "rule"),
    [
        ("notes.txt", "no-pictures-in-folder"),
        ("another.jpg", "folder-lacks-pictures"),
        ("IMAGE.jpg", "picture-not-decodable"),
    ],
)
def test_a_folder_without_the_studys_images_is_refused_before_the_work(
    study, tmp_path, monkeypatch, file, rule
):
    begun: list[object] = []
    monkeypatch.setattr("bayesrep.report.sections.point_estimates", lambda *_: begun.append(1))
    study.write(tmp_path / "study")
    folder = tmp_path / "pictures"
    folder.mkdir()
    file = file.replace("IMAGE", str(study.reference.images[0]))
    (folder / file).write_bytes(b"of nothing")
    out = tmp_path / "report.html"
    violation = refusal(["report", tmp_path / "study", "--out", out, "--input", f"images={folder}"])
    if rule == "picture-not-decodable":
        check(violation, rule, {"path": str(folder / file)})
    else:
        check(violation, rule, {"folder": str(folder)})
    if rule == "no-pictures-in-folder":
        assert violation.facts["endings"].startswith(".bmp")
    assert begun == []
    assert not out.exists()


def test_a_study_of_further_data_sets_is_shown(study):
    """There are colours for as many as there are."""
    more = {f"role {n}": replace(study.replication, name=f"set {n}") for n in range(6)}
    every = replace(study, datasets={**study.datasets, **more})
    specs = embedded(page(gather(every, bootstrap=0)), "specs")
    assert {f"histogram-{role}" for role in every.datasets} <= set(specs)


def test_images_left_out_are_counted(study):
    left_out = replace(study.replication, left_out={"broken.jpg": "truncated"})
    fewer = replace(study, datasets={**study.datasets, "replication": left_out})
    said = ", 1 more left out, which could not be decoded"
    assert said in page(gather(fewer, bootstrap=0))
    assert said not in page(gather(study, bootstrap=0))


def test_a_missing_variable_leaves_out_what_takes_it(study, posterior):
    part, name = posterior.copy(), "population_reference_accuracy"
    if hasattr(part, "children"):  # a DataTree, as of ArviZ 1
        part["posterior"] = type(part)(part["posterior"].to_dataset().drop_vars(name))
    else:
        part.posterior = part.posterior.drop_vars(name)
    content = gather(study, part, bootstrap=0)
    assert name in content.missing_sections["posterior"]
    assert content[CurvesSection].bands.shape == (3, 3, 41)
    assert name in page(content)


def test_every_method_has_a_name_and_a_colour():
    assert {look_of(name) for name in MODELS} == {methods.POSTERIOR_LOOK}
    assert look_of("naive(annotators=3)") == methods.NAIVE_LOOK._replace(
        label="naive(annotators=3)"
    )
    assert look_of("bagging") == methods.OTHER_LOOK._replace(label="bagging")  # a further estimator
    for look in (look_of("em-spline"), look_of("bagging")):
        assert f"{look.css}: {look.light};" in methods.style()


def test_a_posterior_of_another_study_is_refused(posterior):
    other = zoo.cut(zoo.study("tiny"), images=300)
    with refused(PosteriorError, "posterior-of-another-study"):
        gather(other, posterior, bootstrap=0)


OF_POSTERIOR = [name for name, figure in FIGURES_BY_NAME.items() if figure.needs_posterior]


@pytest.mark.parametrize("name", OF_POSTERIOR)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of ArviZ
def test_figures_of_a_posterior_are_drawn(study, posterior, tmp_path, name):
    figure = FIGURES_BY_NAME[name]
    options = {"bootstrap": 0} if "bootstrap" in figure.options else {}
    drawn = figure.draw(study, posterior, **options)
    for suffix in FILE_SUFFIXES:
        save_figure(drawn, tmp_path / f"{name}{suffix}")
        assert (tmp_path / f"{name}{suffix}").stat().st_size > 3_000


def test_a_curve_of_an_unknown_classifier_is_refused(study, posterior):
    with refused(StudyError, "classifiers-not-in-study") as error:
        FIGURES_BY_NAME["curves"].draw(study, posterior, classifiers=["vgg"])
    assert error.value.offenders == ("vgg",)


HOSTILE = "<script>alert(1)</script>"


def test_names_stay_text(study):
    data = study.datasets
    named = bayesrep.Study(data, (HOSTILE, "]]></SCRIPT\x00", '"&'), name=HOSTILE)
    html = page(gather(named, bootstrap=0))
    assert HOSTILE not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert embedded(html, "numbers")["classifiers"]["classifier"][0] == HOSTILE
    # Nothing but our own six scripts opens or ends one.
    assert len(re.findall(r"<script", html, re.I)) == len(re.findall(r"</script", html, re.I)) == 6


def test_the_page_asks_no_other_host(content):
    html = page(content)
    assert not re.findall(r'(?:src|href)="https?:', html)
    assert len(html) < 3_000_000


def test_the_command_writes_whole_files_and_refuses_to_replace(study, tmp_path, capsys):
    study.write(tmp_path / "study")
    out, posterior = tmp_path / "report.html", zoo.posterior_path("tiny", **zoo.SHORT)
    arguments = ["report", str(tmp_path / "study"), str(posterior), "--out", str(out)]
    arguments += ["--bootstrap", "0"]
    check(refusal(arguments), "not-converged")
    assert not out.exists()
    arguments += ["--allow-unconverged"]
    assert main([*arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["out"] == str(out)
    assert facts["failed"] == []
    written = embedded(out.read_text(encoding="utf-8"), "numbers")
    assert {name: facts[name] for name in written} == written
    check(refusal(arguments), "output-path-exists", {"path": str(out)})
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    # A fit that has not converged says so before its answer, on the page too.
    assert main([*arguments, "--force"]) == 0
    _, caveat, answer, *_ = capsys.readouterr().out.splitlines()
    assert caveat == "No answer, since this fit has not converged:"
    assert answer == facts["answer"]
    head = out.read_text(encoding="utf-8").partition("</h1>")[0]
    assert "No answer: this fit has not converged" in head
    assert facts["headline"] not in head


def test_two_thousand_classifiers_fit_into_ten_megabytes(content, tmp_path):
    """The page of the small study, its classifiers repeated."""
    times = 667
    names = [f"classifier {number}" for number in range(3 * times)]
    accuracies, curves, answer = content[Accuracies], content[CurvesSection], content[Answer]
    ranking = content[Ranking]
    rows = pl.concat([accuracies.classifiers] * times).with_columns(pl.Series("classifier", names))
    three = {name: np.tile(getattr(curves, name), (1, times, 1)) for name in ("bands", "expected")}
    curves = replace(
        curves, **three, classifiers=tuple(names), right=np.tile(curves.right, (times, 1))
    )
    naive = np.tile(accuracies.naive, (5, times))[:41]
    data = {
        role: replace(each, correct=np.tile(each.correct, (1, times)))
        for role, each in content.study.datasets.items()
    }
    many = replace(
        having(
            content,
            replace(accuracies, classifiers=rows, naive=naive),
            replace(answer, accuracies=answer.accuracies._replace(classifiers=rows)),
            curves,
            replace(
                ranking,
                classifiers=tuple(names),
                rank=np.tile(ranking.rank, (1, times)),
                measured=np.tile(ranking.measured, times),
                order=np.arange(len(names)),
                neighbours=np.tile(ranking.neighbours, (times, 1)),
                differences=np.tile(ranking.differences, (1, times, 1)),
                measured_differences=np.tile(ranking.measured_differences, (times, 1)),
            ),
        ),
        study=bayesrep.Study(data, tuple(names)),
    )
    write_page(many, tmp_path / "many.html")
    assert (tmp_path / "many.html").stat().st_size < 10_000_000


def test_the_band_of_a_density_ends_on_its_axis_unless_it_is_many_times_as_high():
    low = np.full(len(S_FINE), 1.0)
    for upper, highest in ((1.5, 1.5), (9.0, 2.0)):
        band = np.stack([low, low, upper * low])
        shares = Shares(np.array([0.0, 1.0]), np.ones(1), np.ones((3, 1)), band)
        section = Frequencies(means={"reference": 0.5}, shares={"reference": shares}, missing="")
        assert section.highest_density == pytest.approx(1.08 * highest)
