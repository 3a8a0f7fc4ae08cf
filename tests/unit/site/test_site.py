"""The documents as a site (gradbed docs): whole, without a network, and every link leads somewhere."""

from __future__ import annotations

import functools
import html
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

import gradbed
from gradbed import plugin
from gradbed.cli.commands.docs import docs
from gradbed.cli.main import GradbedCommands
from gradbed.cli.site import build as site_build
from gradbed.cli.site.sources import source_of
from gradbed.common.errors import UserError
from gradbed.common.modules import homes_of

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[3]
MADE = ("contributing.md", "license.md", "plugin_reference.md", "reference.md")
"""Pages of no file in docs/."""
STUDIES = sorted(ROOT.glob("experiments/systems/*/studies/*.yaml"))
PAGES = sorted((ROOT / "docs").glob("*.md"))


class Page(HTMLParser):
    """Of an HTML file: what it links to, what it loads, and the anchors that it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {str(given[name]) for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preconnect"):
            self.loads.append(str(given["href"]))
        if tag in ("script", "img", "iframe") and given.get("src"):
            self.loads.append(str(given["src"]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    assert docs(folder) == 0
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}


def wrong_links(pages: dict[Path, Page]) -> Iterator[str]:
    for path, page in pages.items():
        for link in {*page.links, *page.loads}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                yield f"{path.name} -> {link}"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{path.name} -> {link}: no such place"


def test_every_link_leads_to_a_file_and_a_place_in_it(pages: dict[Path, Page]) -> None:
    assert len(pages) > 100
    assert list(wrong_links(pages)) == []


def test_a_wrong_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#here">b</a> <a href="c.html">c</a> <img src="d.png">')
    (tmp_path / "b.html").write_text('<p id="there">')
    found = {path: Page(path) for path in tmp_path.iterdir()}
    assert sorted(wrong_links(found)) == [
        "a.html -> b.html#here: no such place",
        "a.html -> c.html",
        "a.html -> d.png",
    ]


def test_pages_load_nothing_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    assert [load for page in pages.values() for load in page.loads if urlsplit(load).netloc] == []
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert re.findall(r"url\(['\"]?(?:https?:)?//", styles) == []


def test_search_has_the_documents_but_not_the_sources(site: Path) -> None:
    """As a script, since a page from a folder cannot fetch JSON."""
    index = json.loads((site / "search" / "search_index.js").read_text().removeprefix("var __index = "))
    found = {entry["location"].split("#")[0] for entry in index["docs"]}
    assert {f"{page.stem}.html" for page in PAGES} <= found
    assert [location for location in found if location.startswith("source/")] == []


def test_sources_that_a_page_names_are_a_click_away(site: Path, pages: dict[Path, Page]) -> None:
    page = pages[site / "aggregation.html"]
    assert "source/p4src/include/aggregation/slots.p4.html" in page.links
    shown = (site / "source/p4src/include/aggregation/slots.p4.html").read_text()
    text = re.sub(r"<[^>]+>", "", shown)
    for line in (ROOT / "p4src/include/aggregation/slots.p4").read_text().splitlines()[:40]:
        assert line.strip() in text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def test_the_reference_has_every_public_name_with_its_docstring(site: Path, pages: dict[Path, Page]) -> None:
    text = " ".join(re.sub(r"<[^>]+>", "", (site / "reference.html").read_text()).split())
    for name in gradbed.__all__:
        if not name.startswith("_"):
            assert f"gradbed.{name}" in pages[site / "reference.html"].anchors, name
            assert f"gradbed.{name}" in text, name
            first = " ".join(str(getattr(gradbed, name).__doc__).partition(".")[0].split())
            assert html.escape(first.replace("`", ""), quote=False) in text, name


def test_the_reference_of_plugins_has_what_authors_use_with_its_fields(site: Path, pages: dict[Path, Page]) -> None:
    """Each public name by its docstring, and what a system, a phase and an agent's context have."""
    page = pages[site / "plugin_reference.html"]
    text = " ".join(re.sub(r"<[^>]+>", "", (site / "plugin_reference.html").read_text()).split())
    for name, module in homes_of(plugin._MODULES).items():
        assert f"{module}.{name}" in page.anchors, name
        assert f"gradbed.plugin.{name}" in text, name
        if (shown := getattr(plugin, name)).__doc__ and isinstance(shown, type):
            first = " ".join(shown.__doc__.partition(".")[0].partition(":")[0].split())
            assert html.escape(first.replace("`", ""), quote=False) in text, name
    for place in (
        "gradbed.experiments.system.System.metrics",
        "gradbed.controller.core.service.Service.admit",
        "gradbed.experiments.phases.Phase",
        "gradbed.hosts.agents.context.AgentContext.wait",
        "gradbed.hosts.torch_hook.register",
    ):
        assert place in page.anchors, place


def test_what_names_a_source() -> None:
    assert source_of("p4src/include/aggregation/slots.p4") == "p4src/include/aggregation/slots.p4"
    assert source_of("persistent_pit.p4") == "p4src/include/ndn/persistent_pit.p4"
    for code in (
        "service.py",
        "p4src/nothing.p4",
        "p4src/*.p4",
        "../x.py",
        "results/x.csv",
        "cli/../setup.py",
        "greedy",
    ):
        assert source_of(code) is None, code


# ---- What the documents have ----


def test_every_page_is_in_the_navigation_once() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text().partition("\ntheme:")[0])["nav"]
    named = re.findall(r"'([\w-]+\.md)'", str(nav))
    assert sorted(name for name in named if name not in MADE) == [p.name for p in PAGES]


def test_the_first_page_leads_to_every_page_and_the_readme_to_it() -> None:
    first = (ROOT / "docs" / "index.md").read_text()
    assert [page.name for page in PAGES if page.name != "index.md" and f"]({page.name})" not in first] == []
    assert "](docs/index.md)" in (ROOT / "README.md").read_text()


def test_every_command_has_its_place_in_a_page() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    assert [name for name in GradbedCommands.entries if not re.search(rf"gradbed {name}\b", text)] == []


def test_every_image_is_shown() -> None:
    text = "\n".join(page.read_text() for page in [*PAGES, ROOT / "README.md"])
    assert [path.name for path in (ROOT / "docs" / "images").iterdir() if f"images/{path.name}" not in text] == []


@pytest.mark.parametrize("system", sorted({path.parents[1].name for path in STUDIES}))
def test_the_page_of_a_system_has_four_parts(system: str) -> None:
    found = re.findall(r"^## (.+)$", (ROOT / "docs" / f"{system}.md").read_text(), re.MULTILINE)
    third = "Step by step" if system in ("workload", "training") else "The source, step by step"
    assert found == ["The idea", "Try it", third, "Results"]


def test_every_study_of_a_figure_is_in_the_index_of_sources() -> None:
    """As the number that --only takes."""
    text = (ROOT / "docs" / "sources.md").read_text()
    named = {
        (system, number)
        for system, numbers in re.findall(r"`gradbed figures (\w+) --only ([\d,]+)`", text)
        for number in numbers.split(",")
    }
    made = {tuple(found.groups()) for path in STUDIES if (found := re.match(r"(\w+?)_(\d+)_", path.name))}
    assert named == made


MESSAGES = [
    cell
    for line in (ROOT / "docs" / "troubleshooting.md").read_text().splitlines()
    if line.startswith("| `") and "FILE:LINE" not in line
    for cell in re.findall(r"`([^`]+)`", line.split(" | ")[0])
]


@pytest.mark.parametrize("message", MESSAGES)
def test_the_messages_that_are_explained_are_gradbeds(message: str) -> None:
    """Each piece between what is filled in stands in a source."""
    for piece in filter(None, (piece.strip(" ()?;:,") for piece in message.split("..."))):
        assert re.sub(r"\s+", " ", piece) in sources(), piece


@functools.cache
def sources() -> str:
    """The messages of all sources, strings of several lines joined."""
    folders = ("cli", "common", "controller", "emulation", "experiments", "hosts", "switch", "topo")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    text = "\n".join(path.read_text() for path in [*files, ROOT / "gradbed"])
    return re.sub(r'"\s*\n\s*f?"', "", text)


# ---- The command ----


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="holds something else: name a folder that is empty or not there yet"):
        docs(tmp_path)
    with pytest.raises(UserError, match="holds something else"):
        docs(tmp_path / "mine.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("place", [".", "..", "../inner"])
def test_the_folder_in_which_it_is_called_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Not even where it is empty, or an older site."""
    inside = tmp_path / "outer" / "inner"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    (inside.parent / site_build.MARK).touch()
    monkeypatch.setattr(site_build, "_run_mkdocs", lambda site: site.mkdir())
    before = inside.stat().st_ino
    with pytest.raises(UserError, match=r"^you are in /.*: name another folder, such as results/docs$"):
        docs(Path(place))
    assert inside.stat().st_ino == before


def test_runs_in_the_folder_of_a_site_are_no_part_of_it(tmp_path: Path) -> None:
    """A study may be called docs."""
    (tmp_path / site_build.MARK).touch()
    (tmp_path / "20261123-180636").mkdir()
    (tmp_path / "20261123-180636" / "study.json").touch()
    with pytest.raises(UserError, match="holds something else"):
        docs(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_under_sudo_the_site_is_the_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_build, "_run_mkdocs", lambda site: site.mkdir())
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "2345")
    docs(tmp_path / "results" / "docs")
    owners = {path.name: path.stat().st_uid for path in (tmp_path, *tmp_path.rglob("*"))}
    assert owners == {tmp_path.name: 0, "results": 1234, "docs": 1234, site_build.MARK: 1234}


BUILDS_FOR_EVER = """
import signal, sys, time
from pathlib import Path
from gradbed.cli.site import build

def run_mkdocs(site):
    site.mkdir()
    (site / "index.html").touch()
    print(site.parent, flush=True)
    time.sleep(600)

signal.signal(signal.SIGINT, signal.default_int_handler)  # may be ignored where tests run in the background
build._run_mkdocs = run_mkdocs
build.build(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_of_a_site_that_was_interrupted_nothing_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """After Ctrl-C at once, after kill -9 from the next start on."""
    command = [sys.executable, "-c", BUILDS_FOR_EVER, str(tmp_path / "site")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().decode().strip())
        assert left.parent == tmp_path and (left / "site" / "index.html").exists()
        process.send_signal(number)
        process.wait()
    assert list(tmp_path.iterdir()) == ([] if number == signal.SIGINT else [left])
    monkeypatch.setattr(site_build, "_run_mkdocs", lambda site: site.mkdir())
    docs(tmp_path / "site")
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the documents of a site of one page, with the settings of the real one, but without its hook."""
    text = (ROOT / "mkdocs.yml").read_text()
    nav, theme = text.index("nav:"), text.index("\ntheme:")
    text = (text[:nav] + text[theme:]).replace("hooks:\n  - cli/site/hooks.py\n", "")
    (tmp_path / "mkdocs.yml").write_text(text)
    (tmp_path / "docs" / "assets").mkdir(parents=True)
    (tmp_path / "docs" / "index.md").write_text("# One\n")
    monkeypatch.setattr(site_build, "SETTINGS", tmp_path / "mkdocs.yml")
    return tmp_path / "docs"


def test_a_site_is_made_anew_and_stays_where_that_fails(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "site"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    docs(Path("../site"))
    (small / "index.md").write_text("# Two\n")
    docs(target)
    assert "Two" in (target / "index.html").read_text()
    (small / "index.md").write_text("# Three\n\n[away](nowhere.md) [gone](index.md#gone)\n")
    with pytest.raises(UserError, match=r"nowhere\.md.*; .*#gone"):
        docs(target)
    assert "Two" in (target / "index.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["docs", "elsewhere", "mkdocs.yml", "site"]


def test_a_page_that_is_in_no_navigation_is_refused(small: Path, tmp_path: Path) -> None:
    settings = tmp_path / "mkdocs.yml"
    settings.write_text(settings.read_text() + "\nnav: [index.md]\n")
    (small / "lost.md").write_text("# Lost\n")
    with pytest.raises(UserError, match=r"lost\.md"):
        docs(tmp_path / "site")
