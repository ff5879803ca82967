"""Make the pictures of the tutorial, from the demo's own output: `python docs/pictures.py`.

The page is opened in the Chromium that is installed.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from bayesrep.cli import main

PICTURES = Path(__file__).resolve().parent / "images" / "tutorial"
SCREEN = {"width": 1280, "height": 800}
DRAWN = "[...document.querySelectorAll('#answer-section .chart')].every((x) => x.children.length)"


def first_screen(page: Path, picture: Path) -> None:
    """What a report shows before anything is scrolled."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport=SCREEN, color_scheme="light")
        tab.goto(page.resolve().as_uri())
        tab.wait_for_function(DRAWN)
        tab.screenshot(path=picture)
        browser.close()


def write() -> int:
    """Run the demo, and keep its figure and its report's first screen."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "demo-output"
        if status := main(["demo", "--quick", "--out", str(out)]):
            return status
        shutil.copy(out / "adjusted-accuracy.png", PICTURES / "demo.png")
        first_screen(out / "report.html", PICTURES / "report.png")
    return 0


if __name__ == "__main__":
    sys.exit(write())
