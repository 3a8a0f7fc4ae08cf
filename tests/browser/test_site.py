"""The site of the documents in a browser, from a folder: its search works, and no page is wider than its window."""

from __future__ import annotations

from pathlib import Path

import matplotlib.image
import pytest

from gradbed.cli.commands.docs import docs
from tests.browser.browser import BROWSER, WHY_NOT, ask, dom
from tests.browser.site_pictures import PICTURES, make_pictures

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(BROWSER is None, reason=WHY_NOT)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    docs(folder)
    return folder


def test_search_works_from_a_folder(site: Path) -> None:
    page = dom(f"{(site / 'index.html').as_uri()}?q=persistent+PIT", ".md-search-result__list a")
    results = page.partition('class="md-search-result__list"')[2].partition("</ol>")[0]
    assert 'href="ndn.html' in results.replace(site.as_uri() + "/", ""), results[:2000]


@pytest.mark.parametrize("width_px", [360, 1200])
def test_no_page_is_wider_than_its_window(site: Path, width_px: int) -> None:
    """What is too wide, as tables are, moves within itself."""
    for name in ("index", "ndn", "interconnect"):
        page = site / f"{name}.html"
        assert ask(page, "page => page.documentElement.scrollWidth", width_px=width_px) <= width_px, name


def test_the_pictures_of_the_site_can_be_made_anew(site: Path, tmp_path: Path) -> None:
    make_pictures(site, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(PICTURES)
    brightness = {name: matplotlib.image.imread(tmp_path / name)[..., :3].mean() for name in PICTURES}
    assert brightness["site_light.png"] > 0.7 > 0.35 > brightness["site_dark.png"]
    for name in PICTURES:
        assert (Path(__file__).parents[2] / "docs" / "images" / name).exists()
