"""The offline page in a real browser, keyboard alone, and Label Studio itself on loopback."""

import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import numpy as np
import polars as pl
import pytest

from bayesrep.collect import (
    Collection,
    GridDesign,
    match_assignments,
    plan_classify,
    plan_grids,
    write_collection,
)
from bayesrep.sources.assignments import read_assignments

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
STUDIO = os.environ.get("LABEL_STUDIO") or shutil.which("label-studio")
HOSTILE = "<img src=x onerror=alert(1)>, \"cats\" & 'dogs'"
PIXEL = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f"
    b"\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d"
    b"\x00\x00\x00\x00IEND\xaeB`\x82"
)


def images(folder, number, labels):
    """Images asked about every label; the last one's picture is missing."""
    (folder / "pics").mkdir(parents=True, exist_ok=True)
    for image in range(number - 1):
        (folder / "pics" / f"{image} #.png").write_bytes(PIXEL)
    rows = [
        ("v1", f"{image}.png", label, not n, f"pics/{image}%20%23.png")
        for image in range(number)
        for n, label in enumerate(labels)
    ]
    columns = ["dataset", "image", "label", "own", "source"]
    return pl.DataFrame(rows, columns, orient="row")


def written(folder, *of):
    """A collection, in a folder beside the pictures that it shows."""
    collection = Collection(*of)
    write_collection(folder / "col", collection)
    shutil.copytree(folder / "pics", folder / "col" / "pics")
    return folder, collection


@pytest.fixture
def contains(tmp_path):
    design = GridDesign(4, 2, size=8, positive=0, negative=0)
    tasks = plan_grids(images(tmp_path, 12, (HOSTILE,)), None, design)
    return written(tmp_path, "contains", tasks, 2, {"grids": 2})


@pytest.fixture
def classify(tmp_path):
    tasks = plan_classify(images(tmp_path, 2, (HOSTILE, "dog", "ball")))
    return written(tmp_path, "classify", tasks, 1, {})


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield chromium
        chromium.close()


def opened(browser, folder, said, address="", worker=""):
    """The page, or one of another address, begun by a worker; errors and dialogs are heard."""
    page = browser.new_page(accept_downloads=True)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append("a dialog") or dialog.dismiss())
    page.goto(address or (folder / "col" / "page.html").as_uri())
    if worker:
        begin(page, worker)
    return page


def begin(page, worker):
    page.fill("#worker", worker)
    page.click("#begin button")


def saved(page, button, file):
    with page.expect_download() as download:
        page.click(button)
    download.value.save_as(file)
    return file


def test_grids_are_answered_by_keyboard(browser, contains):
    """Four grids of six: a name, the first and third image of each, and the file."""
    folder, collection = contains
    said = []
    page = opened(browser, folder, said)
    page.keyboard.press("Tab")
    page.keyboard.type("Ann O'Nym <b>")
    page.keyboard.press("Enter")
    seen = []
    for grid in range(4):
        page.wait_for_function(f"document.getElementById('done').textContent === '{grid + 1}'")
        seen.append(page.get_attribute("#task", "data-task"))
        assert HOSTILE in page.inner_text("h1:visible")
        assert page.locator("#images input").count() == 6
        page.keyboard.press("Space")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        page.keyboard.press("Enter")
    file = saved(page, "#download", folder / "a.json")
    page.close()
    assert said == []
    found = match_assignments(collection, read_assignments([file]))
    assert found.assignments["selected"].to_list() == [[1, 3]] * 4
    assert set(found.assignments["worker"]) == {"Ann O'Nym <b>"}
    assert (found.assignments["seconds"] >= 0).all()
    assert sorted(seen) == sorted(set(collection.tasks["task"]))
    # One round is done before the other, so that no image comes twice before all others.
    number = [int(name.split("-")[1]) for name in seen]
    assert {frozenset(number[:2]), frozenset(number[2:])} == {frozenset({1, 2}), frozenset({3, 4})}


def test_answers_stay_in_the_browser_until_they_are_saved(browser, contains):
    folder, collection = contains
    said = []
    page = opened(browser, folder, said, worker="Ann")
    page.click("#images input >> nth=0")
    page.click("#next")
    first = saved(page, "#save", folder / "a.json")
    page.reload()
    begin(page, "Ann")
    assert page.inner_text("#done") == "2"
    for _ in range(3):
        page.click("#next")
    later = saved(page, "#download", folder / "b.json")
    page.close()
    found = match_assignments(collection, read_assignments([first, later]))
    assert found.left_out == {"the same assignment in two files": 1}
    assert [len(each) for each in found.assignments["selected"].to_list()] == [1, 0, 0, 0]


# A picture that cannot be shown is replaced by words.
SETTLED = "[...document.querySelectorAll('#images img')].every((x) => x.complete && x.naturalWidth)"


def test_a_picture_that_is_missing_is_said(browser, contains):
    folder, _ = contains
    page = opened(browser, folder, [], worker="Ann")
    broken = 0
    for _ in range(4):
        page.wait_for_function(SETTLED)
        broken += page.locator(".broken").count()
        page.click("#next")
    page.close()
    assert broken == 2  # once a round


def test_images_are_classified(browser, classify):
    folder, collection = classify
    said = []
    page = opened(browser, folder, said, worker="Ann")
    for answer, message in (
        ((), "Select at least one label."),
        (("[name=place] >> nth=1",), "Say which is the label"),
        (("[name=main] >> nth=0",), "must be one of those"),
    ):
        for box in answer:
            page.click(f"#labels {box}")
        page.click("#next")
        assert message in page.inner_text("#wrong")
        assert page.inner_text("#done") == "1"
    page.click("#labels [name=place] >> nth=0")
    page.click("#next")
    assert page.inner_text("#wrong") == ""
    page.click("#labels [name=place] >> nth=2")
    page.click("#labels [name=main] >> nth=2")
    page.click("#next")
    file = saved(page, "#download", folder / "a.json")
    page.close()
    assert said == []
    read = read_assignments([file])
    assert read["selected"].to_list() == [[1, 2], [3]]
    assert read["main"].to_list() == [1, 3]
    table = match_assignments(collection, read).table()
    assert table.filter("main")["selected"].all()
    assert table["main"].sum() == 2


def filled(folder, row):
    """A task of Mechanical Turk, which puts a row of its input into the layout as it is."""
    layout = (folder / "col" / "mturk.html").read_text(encoding="utf-8")
    inputs = pl.read_csv(folder / "col" / "mturk.csv", infer_schema=False).fill_null("")
    for name, value in inputs.row(row, named=True).items():
        layout = layout.replace(f"${{{name}}}", value)
    assert "${" not in layout
    # The elements of the service are loaded from elsewhere; what we wrote works without.
    layout = re.sub(r'<script src="https:.*?</script>', "", layout)
    (folder / "col" / "task.html").write_text(layout, encoding="utf-8")
    return (folder / "col" / "task.html").as_uri()


def test_the_layout_of_mechanical_turk_gives_the_places(browser, contains):
    folder, collection = contains
    said = []
    page = opened(browser, folder, said, filled(folder, 0))
    assert page.locator(".images img").count() == 6
    assert HOSTILE in page.inner_text("h2")
    assert page.input_value("[name=selected]") == "none"
    for seen in ("2,5", "none"):
        for place in (1, 4):
            page.locator(".images input").nth(place).click()
        assert page.input_value("[name=selected]") == seen
    page.close()
    assert said == []


def test_the_layout_of_classify_gives_places_and_the_main_one(browser, classify):
    folder, _ = classify
    page = opened(browser, folder, [], filled(folder, 1))
    assert page.locator(".asked input[type=checkbox]").count() == 3
    page.locator("input[type=checkbox]").nth(0).check()
    page.locator("input[type=checkbox]").nth(2).check()
    page.locator("input[type=radio]").nth(2).check()
    assert page.input_value("[name=selected]") == "1,3"
    assert page.input_value("[name=main]") == "3"
    page.close()


# Label Studio.


class Studio:
    """Label Studio on loopback, spoken to by its API."""

    token = "0123456789abcdef0123456789abcdef01234567"

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        words = ["start", "--no-browser", "--port", str(port), "--internal-host", "127.0.0.1"]
        words += ["--username", "someone@example.com", "--password", "not a secret 1"]
        words += ["--user-token", self.token]
        settings = {
            "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
            "COLLECT_ANALYTICS": "false",
            "SENTRY_DSN": "",
            "FRONTEND_SENTRY_DSN": "",
            "LATEST_VERSION_CHECK": "false",
        }
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | settings
        silent = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
        self.process = subprocess.Popen(
            [str(STUDIO), *words], env=environment, cwd=folder, **silent
        )

    def wait(self):
        for _ in range(180):
            try:
                with urllib.request.urlopen(f"{self.base}/health", timeout=5):
                    return
            except OSError:
                assert self.process.poll() is None, "Label Studio ended"
                time.sleep(1)
        raise AssertionError("Label Studio does not answer")

    def call(self, method, path, body=None):
        headers = {"Authorization": f"Token {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.loads(reply.read() or "null")


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    if STUDIO is None:
        pytest.skip("Label Studio is not installed")
    running = Studio(tmp_path_factory.mktemp("studio"))
    try:
        running.wait()
        yield running
    finally:
        running.process.terminate()
        running.process.wait(30)


@pytest.mark.parametrize("kind", ["contains", "classify"])
@pytest.mark.parametrize("form", ["JSON", "JSON_MIN"])
def test_what_label_studio_exports_is_what_was_answered(studio, kind, form, request, tmp_path):
    _, collection = request.getfixturevalue(kind)
    folder = tmp_path / "col"
    config = (folder / "label-studio.xml").read_text(encoding="utf-8")
    project = studio.call("POST", "/api/projects", {"title": kind, "label_config": config})["id"]
    tasks = json.loads((folder / "label-studio.json").read_text(encoding="utf-8"))
    studio.call("POST", f"/api/projects/{project}/import", tasks)
    rng = np.random.default_rng(0)
    given = {}
    for task in studio.call("GET", f"/api/tasks?project={project}&page_size=100")["tasks"]:
        places = [int(each["value"]) for each in task["data"]["choices"]]
        chosen = [place for place in places if rng.random() < 0.5] or places[:1]
        result = [choice("selected", chosen, kind)]
        if kind == "classify":
            result.append(choice("main", chosen[-1:], kind))
        body = {"result": result, "lead_time": 7.5}
        studio.call("POST", f"/api/tasks/{task['id']}/annotations", body)
        given[task["data"]["task"]] = chosen
    exported = studio.call("GET", f"/api/projects/{project}/export?exportType={form}")
    (tmp_path / "export.json").write_text(json.dumps(exported), encoding="utf-8")
    found = match_assignments(collection, read_assignments([tmp_path / "export.json"]))
    assert dict(found.assignments.select("task", "selected").iter_rows()) == given
    assert set(found.assignments["seconds"]) == {7.5}
    if kind == "classify":
        assert found.assignments["main"].to_list() == [
            given[task][-1] for task in found.assignments["task"]
        ]


def choice(name, places, kind):
    """A result as Label Studio's own page makes it."""
    return {
        "from_name": name,
        "to_name": {"contains": "description", "classify": "image"}[kind],
        "type": "choices",
        "value": {"choices": [str(place) for place in places]},
    }
