"""A headless Chromium that opens a page in a frame and answers one question about it."""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WHY_NOT = "no browser is installed (apt-get install chromium)"

_IN_TIME_S = 60
# The frame can be narrower than a window. The answer ends up in the wrapper's DOM, which is dumped.
_WRAPPER = """<!DOCTYPE html>
<meta charset="utf-8">
<iframe id="page" style="width: {width_px}px; height: 800px; border: 0" src="{page}"></iframe>
<pre id="answer"></pre>
<script>
document.getElementById("page").onload = event => {{
    const window_ = event.target.contentWindow, page = event.target.contentDocument;
    let answer;
    try {{
        answer = {{value: ({question})(page, window_)}};
    }} catch (error) {{
        answer = {{error: String(error)}};
    }}
    document.getElementById("answer").textContent = JSON.stringify(answer);
}};
</script>
"""


def ask(page: Path, question: str, *, width_px: int = 1200, dark: bool = False) -> Any:
    """What a JavaScript function of (document, window) returns for a page. dark: the colour scheme preferred."""
    assert BROWSER is not None, WHY_NOT
    with tempfile.TemporaryDirectory() as folder:
        wrapper = Path(folder) / "wrapper.html"
        wrapper.write_text(_WRAPPER.format(width_px=width_px, page=page.as_uri(), question=question))
        dumped = _dumped(wrapper.as_uri(), folder, "--allow-file-access-from-files", dark=dark)
    told = re.search(r'<pre id="answer">(.+?)</pre>', dumped, re.DOTALL)
    assert told, f"the browser gave no answer: {dumped[-2000:]}"
    answer = json.loads(html.unescape(told[1]))
    assert "error" not in answer, answer["error"]
    return answer.get("value")


def dom(url: str) -> str:
    """The document at a URL once its scripts have run, as HTML, in a browser that reaches this machine only."""
    assert BROWSER is not None, WHY_NOT
    with tempfile.TemporaryDirectory() as folder:
        return _dumped(url, folder, "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")


def picture(page: Path, target: Path, *, width_px: int = 1200, height_px: int = 800, dark: bool = False) -> None:
    """What a window of that size shows of a page, as a PNG."""
    import matplotlib.image

    with tempfile.TemporaryDirectory() as folder:
        # Some versions leave the last lines of a window white, as high as a browser's bars would be.
        size = f"--window-size={width_px},{height_px + 200}"
        whole = Path(folder) / "whole.png"
        _started(page.as_uri(), folder, size, "--hide-scrollbars", f"--screenshot={whole}", dark=dark)
        assert whole.exists(), f"the browser drew no picture of {page}"
        matplotlib.image.imsave(target, matplotlib.image.imread(whole)[:height_px])


def _dumped(url: str, folder: str, *options: str, dark: bool = False) -> str:
    return _started(url, folder, *options, "--dump-dom", dark=dark)


def _started(url: str, folder: str, *options: str, dark: bool) -> str:
    assert BROWSER is not None, WHY_NOT
    return _run(
        BROWSER,
        "--headless",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-sandbox",  # Chromium's own sandbox is not for root; the pages are ours
        "--no-first-run",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        f"--user-data-dir={folder}/profile",
        "--virtual-time-budget=10000",
        *options,
        url,
    )


def _run(*command: str) -> str:
    """Standard output; the browser's helper processes end with it."""
    browser = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    try:
        output, _ = browser.communicate(timeout=_IN_TIME_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(browser.pid, signal.SIGKILL)
        browser.wait()
    return output
