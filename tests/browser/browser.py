"""A headless Chromium, driven by Playwright: one question about a page, its document, or a picture of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WHY_NOT = "no browser is installed (apt-get install chromium)"

IN_TIME_S = 60


@contextmanager
def browser(*flags: str) -> Iterator[Any]:
    """It reaches this machine only."""
    from playwright.sync_api import sync_playwright

    assert BROWSER is not None, WHY_NOT
    alone = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    with sync_playwright() as playwright:
        # Chromium's own sandbox is not for root; the pages are ours.
        found = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", alone, *flags])
        try:
            yield found
        finally:
            found.close()


@contextmanager
def _loaded(url: str, width_px: int = 1200, height_px: int = 800, dark: bool = False) -> Iterator[Any]:
    with browser() as chromium:
        page = chromium.new_page(
            viewport={"width": width_px, "height": height_px}, color_scheme="dark" if dark else "light"
        )
        page.set_default_timeout(1000 * IN_TIME_S)
        page.goto(url)
        yield page


def ask(page: Path, question: str, *, width_px: int = 1200, dark: bool = False) -> Any:
    """What a JavaScript function of (document, window) returns for a page. dark: the colour scheme preferred."""
    with _loaded(page.as_uri(), width_px, dark=dark) as loaded:
        return loaded.evaluate(f"() => ({question})(document, window)")


def dom(url: str, selector: str) -> str:
    """The document at a URL, as HTML, once its scripts have put there what a CSS selector names."""
    with _loaded(url) as loaded:
        loaded.wait_for_selector(selector, state="attached")
        return str(loaded.content())


def picture(page: Path, target: Path, *, width_px: int = 1200, height_px: int = 800, dark: bool = False) -> None:
    """What a window of that size shows of a page, as a PNG."""
    with _loaded(page.as_uri(), width_px, height_px, dark) as loaded:
        loaded.screenshot(path=target)
