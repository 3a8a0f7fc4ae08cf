"""Sources that the documents name, and where they are in the project."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "api",
    "cli",
    "common",
    "controller",
    "docs/data",
    "emulation",
    "examples",
    "experiments",
    "formats",
    "hosts",
    "p4src",
    "switch",
    "tests",
    "tools",
    "topo",
)
"""Where sources are looked for: what people keep in their checkout besides is theirs."""
LANGUAGES = {
    ".c": "c",
    ".cc": "cpp",
    ".csv": "text",
    ".h": "c",
    ".p4": "p4",
    ".py": "python",
    ".toml": "toml",
    ".txt": "text",
    ".yaml": "yaml",
}
"""Files that are shown, by the end of their names, and the language that colours them."""
CODE = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"\w+\.(py|p4|c)")
PATH = re.compile(r"[\w.-]+(/[\w.-]+)+")


def source_of(code: str) -> str | None:
    """Return the path of the source that a piece of `code` names; None if it names none that is shown.

    It names one by its path from the top, or by a file name that only one source has.
    """
    if PATH.fullmatch(code):
        known = Path(code).suffix in LANGUAGES and any(code.startswith(f"{folder}/") for folder in FOLDERS)
        return code if known and ".." not in code and (ROOT / code).is_file() else None
    if NAME.fullmatch(code):
        found = _by_name().get(code, ())
        return found[0] if len(found) == 1 else None
    return None


def sources_named(markdown: str) -> Iterator[str]:
    """Yield each source that a text names in `code`, by its path from the top, once for each time."""
    for code in CODE.findall(markdown):
        if source := source_of(code):
            yield source


@functools.cache
def _by_name() -> dict[str, tuple[str, ...]]:
    """Return the paths of sources by their file names, by which pages name them after a first whole path."""
    found: dict[str, tuple[str, ...]] = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if NAME.fullmatch(path.name) and path.is_file():
                found[path.name] = (*found.get(path.name, ()), path.relative_to(ROOT).as_posix())
    return found


def page_of(source: str) -> str:
    """Return the Markdown of the page that shows a source."""
    text = (ROOT / source).read_text(encoding="utf-8")
    # Longer than any fence in the source itself.
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`+", text))])
    language = LANGUAGES[Path(source).suffix]
    return (
        f"---\ntitle: {source}\nhide: [toc]\nsearch: {{exclude: true}}\n---\n\n# `{source}`\n\n"
        f'{fence}{language} linenums="1"\n{text.rstrip()}\n{fence}\n'
    )
