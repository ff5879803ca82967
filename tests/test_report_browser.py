"""The report in a real browser: Debian's Chromium, driven by playwright."""

import csv
import os
import re
import shutil

import numpy as np
import pytest
import zoo
from scipy.special import betaln, comb

import bayesrep
from bayesrep.numerics.noisy_matching import BetaMixture
from bayesrep.posterior.files import build_posterior
from bayesrep.posterior.groups import find_group
from bayesrep.posterior.schema import VAR_DIMS
from bayesrep.report.page import write_page
from bayesrep.report.sections import Accuracies, Answer, gather
from bayesrep.studies.statistics import SufficientStatistics
from bayesrep.studies.vocabulary import VOCABULARY_OF_NAME
from experiments.papers.lab import explore
from experiments.papers.lab_page import write_lab

pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
from axe_playwright_python.sync_playwright import Axe

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
    pytest.mark.filterwarnings(
        "ignore::bayesrep.errors.EstimateWarning", "ignore::bayesrep.errors.ConvergenceWarning"
    ),
]
HOSTILE = "<script>alert(1)</script>"
NAMES = (HOSTILE, "resnet18", "resnet, 50")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
QUIET += ["--disable-background-networking", "--disable-component-update"]
READY = "html[data-ready=true]"


def renamed(posterior, study):
    """The posterior as if it were of this study, whose classifiers have other names."""
    groups, coordinates = {}, {"classifier": ("classifier", np.array(study.classifiers))}
    for name in VAR_DIMS:
        if (group := find_group(posterior, name)) is not None:
            flat = [str(c) for c in group.coords if len(group[c].dims) == 1]
            variables = {*group.data_vars, *group.coords}.difference(flat)
            groups[name] = {str(v): (group[v].dims, group[v].values) for v in variables}
            for coordinate in flat:
                values = group[coordinate]
                coordinates.setdefault(coordinate, (values.dims[0], values.values))
    for dim in ("chain", "draw"):  # of thinned groups they are others
        coordinates.pop(dim, None)
    attributes = dict(posterior.posterior.attrs)
    attributes["study_fingerprint"] = study.fingerprint()
    attributes["statistics_digest"] = SufficientStatistics.from_study(study).digest()
    return build_posterior(groups, coordinates, attributes)


def write_report(tmp_path_factory, provenance):
    datasets = zoo.study("tiny").datasets
    study = bayesrep.Study(datasets, NAMES, name=HOSTILE, provenance=provenance)
    content = gather(study, renamed(zoo.posterior("tiny", **zoo.SHORT), study), bootstrap=5)
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_page(content, path)
    return content, path


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return write_report(tmp_path_factory, {})


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


def open_page(browser, path=None, anchor="", **options):
    """Open a page that has time to load on a busy machine, and wait until it is drawn."""
    page = browser.new_page(**options)
    page.set_default_navigation_timeout(120_000)
    return show(page, path, anchor) if path else page


def show(page, path, anchor=""):
    page.goto(path.as_uri() + anchor)
    page.wait_for_selector(READY, timeout=60_000)
    return page


@pytest.fixture
def opened(browser, report):
    """The page, and what its console and its requests said."""
    said = []
    page = open_page(browser, viewport={"width": 1440, "height": 900}, accept_downloads=True)
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else 0)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append("a dialog") or dialog.dismiss())
    page.on("request", lambda request: said.append(request.url) if _is_elsewhere(request) else 0)
    yield show(page, report[1])
    assert said == []
    page.close()


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    """The same page of items, models and judges."""
    return write_report(tmp_path_factory, {"words": "evaluation"})[1]


SAID = """() => [document.title, document.body.innerText, document.getElementById("tip").innerText,
    ...[...document.querySelectorAll("[aria-label], [placeholder], noscript")].map((node) =>
        ["aria-label", "placeholder"].map((name) => node.getAttribute(name)) + node.textContent)]"""
OURS = re.compile(r"(?i)\b(images?|classifiers?|annotators?|annotations?|workers?|people)\b")


def test_an_evaluations_page_says_item_model_and_judge_whatever_is_done(browser, evaluation):
    page = open_page(browser, evaluation, viewport={"width": 1440, "height": 900})

    def said():
        return "\n".join(page.evaluate(SAID))

    seen = [said()]
    assert "An item that" in seen[0]
    page.select_option("#method", "naive")
    slide(page, "annotators", 1)
    slide(page, "selected", 3)
    slide(page, "toy_answers", 5)
    page.fill("#curve-classifier", "none")
    seen.append(said())
    assert "No model is called so" in seen[-1]
    for name in ("drops", "ranking", "pairs", "curve", "pvalues", "hero"):
        marks = f"#{name} svg [role=graphics-symbol], #{name} svg path"
        for mark in page.locator(marks).all()[:40]:
            if (box := mark.bounding_box()) and page.evaluate("tip.hidden"):
                mark.scroll_into_view_if_needed()
                box = mark.bounding_box()
                page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        seen.append(said())
        page.keyboard.press("Escape")
    assert any("\nmodel: " in text or "items: " in text for text in seen)
    for text in seen:
        of_page = text.replace("--people", "")  # an option is called as it is
        assert not OURS.search(of_page), OURS.search(of_page)
    page.close()


def _is_elsewhere(request):
    return not request.url.startswith(("file:", "blob:", "data:"))


def drawing(page, name):
    return page.inner_html(f"#{name}")


def slide(page, control, value):
    page.eval_on_selector(
        f"#{control}",
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }",
        str(value),
    )


FIGURES = ["hero", "answer-chart", "drops", "ranking", "pairs", "histogram-reference"]
FIGURES += ["histogram-replication", "density", "image", "toy", "curve", "pvalues"]
FIGURES += ["chains", "energy"]


def test_every_figure_is_drawn_has_a_reading_and_is_called_what_it_shows(opened, report):
    """Vega gives every drawing a label of its own; that is not "Vega visualization"."""
    content, _ = report
    labels = {figure.id: figure.label for block in content.blocks() for figure in block.figures}
    labels["hero"] = content.opening.figure.label
    assert "(" in labels["answer-chart"]  # its numbers
    for name in FIGURES:
        assert opened.locator(f"#{name} svg path").count() > 0, name
        assert len(opened.inner_text(f"#{name}-reading")) > 20, name
        assert opened.get_attribute(f"#{name}", "aria-label") == labels[name]


def test_dots_rise_where_motion_is_wanted(opened):
    marks = "document.querySelectorAll('#hero svg g.mark-symbol path')"
    places = f"[...{marks}].map((p) => p.outerHTML)"
    still = opened.evaluate(places)
    opened.click("#hero-play")
    opened.wait_for_function(f"before => ({places}).join() !== before", arg=",".join(still))
    assert "points lost, as measured" in opened.text_content("#hero")
    opened.wait_for_selector("#hero-play:enabled")
    assert opened.evaluate(places) == still
    assert "selection" in opened.text_content("#hero")


def test_nothing_moves_where_it_is_not_wanted(browser, report):
    page = open_page(browser, report[1], reduced_motion="reduce")
    page.evaluate(
        """() => {
            const places = () => [...document.querySelectorAll("#hero svg g.mark-symbol path")];
            window.seen = new Set();
            new MutationObserver(() => seen.add(places().map((p) => p.outerHTML).join())).observe(
                document.getElementById("hero"),
                { subtree: true, attributes: true, childList: true });
        }"""
    )
    page.click("#hero-play")
    page.wait_for_selector("#hero-play:disabled")
    page.wait_for_selector("#hero-play:enabled")
    assert page.evaluate("seen.size") <= 2  # as measured, and adjusted; nothing between
    page.close()


def test_a_link_leads_to_a_classifier(browser, report):
    page = open_page(browser, report[1], "#resnet%2C%2050")
    assert page.inner_text("#one-told").startswith("resnet, 50: ")
    assert page.inner_text("#classifiers tr.chosen th") == "resnet, 50"
    assert page.input_value("#curve-classifier") == "resnet, 50"
    assert page.inner_text("#pairs-reading").startswith("resnet, 50 against the 2")
    page.fill("#classifier", "resnet18")
    assert page.inner_text("#one-told").startswith("resnet18: ")
    assert page.url.endswith("#resnet18")
    assert page.get_attribute("#one-link", "href") == "#resnet18"
    page.close()


def test_sentence_and_picture_are_copied(browser, report):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = open_page(context, report[1])
    page.click("[data-copy=told]")
    page.wait_for_selector("[data-copy=told]:text-is('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == page.inner_text("#told")
    page.click("[data-picture=hero]")
    page.wait_for_selector("[data-picture=hero]:text-matches('Copied|Saved')")
    context.close()


@pytest.mark.parametrize("width", [390, 768, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(browser, report, width, scheme):
    page = open_page(
        browser, report[1], viewport={"width": width, "height": 844}, color_scheme=scheme
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    style = "getComputedStyle(document.body)"
    ink, paper = page.evaluate(f"[{style}.color, {style}.backgroundColor]")
    bright = [sum(map(int, value[4:-1].split(","))) for value in (ink, paper)]
    assert (bright[0] > bright[1]) == (scheme == "dark")
    found = Axe().run(page).response["violations"]
    assert [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found] == []
    page.close()


CONTROLS = (
    ("selected", 1, "image"),
    ("toy_answers", 30, "toy"),
    ("curve-classifier", "resnet, 50", "curve"),
    ("rank-classifier", "resnet18", "pairs"),
    ("search", "resnet", "drops"),
)


def test_controls_change_what_is_drawn(opened):
    for control, value, figure in CONTROLS:
        before, reading = drawing(opened, figure), opened.inner_text(f"#{figure}-reading")
        slide(opened, control, value)
        opened.wait_for_function(
            "([id, text, before]) => document.getElementById(`${id}-reading`).textContent !== text"
            " && document.getElementById(id).innerHTML !== before",
            arg=[figure, reading, before],
        )


def test_the_slider_of_naive_matching_shows_its_accuracies(opened, report):
    content, _ = report
    assert opened.locator("#annotators").is_hidden()
    opened.select_option("#method", "naive")
    assert opened.locator("#annotators").is_visible()
    slide(opened, "annotators", 3)
    accuracies = content[Accuracies]
    gap = 100 * float(np.mean(accuracies.classifiers["reference"].to_numpy() - accuracies.naive[3]))
    assert f"on average {gap:.2f} points" in opened.inner_text("#drops-reading")
    slide(opened, "annotators", 0)
    raw = 100 * content[Answer].gaps["gap"][0]
    assert f"on average {raw:.2f} points" in opened.inner_text("#drops-reading")


def test_sliders_answer_within_a_tenth_of_a_second(opened):
    """The median of twenty moves of the costliest figures, on a machine that may be busy."""
    for control, values in (("toy_answers", range(20, 40)), ("selected", [1, 5] * 10)):
        took = opened.evaluate(
            """async ([control, values]) => {
                const node = document.getElementById(control), took = [];
                for (const value of values) {
                    const begin = performance.now();
                    node.value = value;
                    node.dispatchEvent(new Event("input"));
                    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
                    took.push(performance.now() - begin);
                }
                return took.sort((a, b) => a - b)[took.length / 2];
            }""",
            [control, list(values)],
        )
        # Absolute times are no test on shared machines: ten times what is asked for.
        assert took < 1000


def test_hovering_shows_a_name_as_text(opened):
    point = opened.locator("#drops svg g.mark-symbol path").first
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    opened.mouse.move(box["x"] + box["width"] / 2 + 14, box["y"] + 9)  # near is near enough
    opened.wait_for_selector("#tip:visible")
    shown = opened.inner_text("#tip")
    assert any(name in shown for name in NAMES)
    assert "at the same selection frequency" in shown
    opened.keyboard.press("Escape")
    assert opened.locator("#tip").is_hidden()


def test_touching_shows_a_name_and_chooses_it(browser, report):
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = open_page(context, report[1])
    for figure in ("hero", "drops", "ranking"):
        point = page.locator(f"#{figure} svg g.mark-symbol path").last
        point.scroll_into_view_if_needed()
        box = point.bounding_box()
        page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2 + 4)
        page.wait_for_selector("#tip:visible")
        name = page.locator("#tip b").inner_text()
        assert name in NAMES
        assert page.inner_text("#one-told").startswith(f"{name}: ")
        page.keyboard.press("Escape")
    context.close()


def test_a_hostile_name_stays_text(opened):
    assert HOSTILE in opened.inner_text(".kicker")
    cells = opened.locator("#classifiers th.name").all_inner_texts()
    assert HOSTILE in cells
    slide(opened, "curve-classifier", HOSTILE)
    opened.wait_for_function(
        "name => document.getElementById('curve-reading').textContent.includes(name)", arg=HOSTILE
    )


def test_the_table_sorts_and_searches(opened, report):
    content, _ = report
    rows = content[Accuracies].classifiers.sort("em-spline", descending=True)
    order = rows["classifier"].to_list()
    heads = opened.locator("#classifiers thead th").all_inner_texts()
    assert heads[:2] == ["classifier", "Posterior ▼"] or heads[:2] == ["classifier", "Posterior"]
    assert "EM + spline" not in heads
    opened.check("#all-methods")
    opened.click("#classifiers th button:text-is('EM + spline')")
    assert opened.locator("#classifiers tbody th").all_inner_texts() == order
    heading = opened.locator("#classifiers th:has(button:text-is('EM + spline'))")
    assert heading.get_attribute("aria-sort") == "descending"
    opened.keyboard.press("Enter")
    assert opened.locator("#classifiers tbody th").all_inner_texts() == order[::-1]
    opened.fill("#table-search", "resnet")
    left = sorted(opened.locator("#classifiers tbody th").all_inner_texts())
    assert left == ["resnet, 50", "resnet18"]


def test_numbers_download_as_csv(opened, report, tmp_path):
    content, _ = report
    with opened.expect_download() as waiting:
        opened.click("[data-csv=classifiers]")
    waiting.value.save_as(tmp_path / "all.csv")
    with open(tmp_path / "all.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = {row["classifier"]: float(row["joint"]) for row in rows}
    rows = content[Accuracies].classifiers
    wanted = dict(zip(rows["classifier"], rows["joint"], strict=True))
    assert found == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("figures", [FIGURES[:7], FIGURES[7:]], ids=["first", "last"])
def test_the_numbers_of_every_figure_download(opened, tmp_path, figures):
    """In two halves: Chromium asks a person before a page's eleventh download."""
    for name in figures:
        with opened.expect_download() as waiting:
            opened.click(f"[data-csv={name}]")
        waiting.value.save_as(tmp_path / f"{name}.csv")
        assert (tmp_path / f"{name}.csv").stat().st_size > 50


def test_the_toy_model_is_equation_1(opened):
    """Means of the replication that the page says, beside SciPy's beta functions."""
    p, q = 3, 2
    for pool, (a, b), n in (("0", (2, 2), 10), ("1", (1.5, 3), 3), ("3", (6, 1.5), 40)):
        opened.select_option("#toy_pool", pool)
        slide(opened, "toy_answers", n)
        k = np.arange(n + 1)
        mass = comb(n, k) * np.exp(betaln(p + k, q + n - k) - betaln(p, q))
        mean, own = 100 * mass @ ((a + k) / (a + b + n)), 100 * p / (p + q)
        text = opened.inner_text("#toy-reading")
        assert f"mean selection frequency is {mean:.1f} %" in text
        assert f"the reference's {own:.1f} %" in text
        way = "lost to" if own > mean else "gained by"
        assert f"{abs(own - mean):.1f} points are {way}" in text


def test_a_click_on_the_legend_hides_a_population(opened):
    lines = "document.querySelectorAll('#toy svg g.mark-line path').length"
    assert opened.evaluate(lines) == 3
    for left in (2, 3):  # and another shows it again
        opened.locator("#toy svg .role-legend-symbol path").first.click(force=True)
        opened.wait_for_function(f"{lines} === {left}")


def test_the_lab_says_what_theory_says(browser, tmp_path):
    """What is chosen by controls, beside the same by `explore`."""

    def beta(mean, concentration):
        a = mean * concentration
        return BetaMixture(np.array([a]), np.array([concentration - a]), np.ones(1))

    path, said = tmp_path / "lab.html", []
    start = beta(0.6, 5.0), beta(0.5, 4.0)
    write_lab(path, *start, explore(*start, (3, 10)).to_dicts(), VOCABULARY_OF_NAME["images"])
    page = open_page(browser, viewport={"width": 390, "height": 844})
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else 0)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url) if _is_elsewhere(request) else 0)
    show(page, path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("#lab svg").count() == page.locator("#lab-gap svg").count() == 1
    before = drawing(page, "lab"), drawing(page, "lab-gap")
    for n, method, careless in ((10, 0, 0), (3, 1, 0), (40, 1, 20)):
        page.select_option("#lab_pool", "2")  # harder by 10 points
        slide(page, "lab_answers", n)
        page.select_option("#lab_careless", str(careless // 20))
        page.select_option("#lab_method", str(method))
        table = explore(start[0], beta(0.4, 4.0), (n,), careless=careless / 100)
        left = 100 * table[("fine", "published")[method]][0]
        reading = page.inner_text("#lab-reading")
        found = float(reading.split("%: ")[1].split(" points")[0])
        assert found == pytest.approx(left, abs=0.04)
        lost = float(reading.split("loses ")[1].split(" points")[0])
        assert lost == pytest.approx(0.7 * found, abs=0.01)
    assert drawing(page, "lab") != before[0]
    assert drawing(page, "lab-gap") != before[1]
    assert not said
    page.close()


def test_the_page_can_be_used_by_keyboard(opened):
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(80):
        opened.keyboard.press("Tab")
        reached.add(opened.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"method", "search", "selected", "toy_pool", "curve-classifier"} <= reached


def test_the_printed_page_holds_all_sections(browser, report, tmp_path):
    page = open_page(browser, report[1])
    page.emulate_media(media="print")
    assert page.locator(".controls").first.is_hidden()
    heads = page.locator("#classifiers thead th:visible")
    assert heads.count() == 6
    assert page.evaluate("getComputedStyle(document.body).printColorAdjust") == "exact"
    page.set_viewport_size({"width": 680, "height": 1000})  # of A4 between its margins
    right = page.evaluate(
        "Math.max(...[...document.querySelectorAll('#classifiers td')]"
        ".map((cell) => cell.getBoundingClientRect().right))"
    )
    assert right <= 680
    page.pdf(path=os.fspath(tmp_path / "report.pdf"))
    assert (tmp_path / "report.pdf").stat().st_size > 50_000
    page.close()
