"""`gradbed systems`: the parts of each system, which its page names, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.experiments.systems import SYSTEMS, parts_of
from tests.command import ROOT, gradbed, run_well
from tests.tiny import install_tiny

OURS = [name for name, place in SYSTEMS.items() if place.startswith("gradbed.")]


def code_line(name: str) -> str:
    """What stands at the top of a system's page."""
    code = [part.place for part in parts_of(name) if not part.place.startswith(("docs/", "tests/"))]
    return f"The code: {', '.join(f'`{place}`' for place in code if not place.endswith('/studies/'))}."


@pytest.mark.parametrize("name", OURS)
def test_a_systems_page_says_where_its_code_is(name: str) -> None:
    lines = (ROOT / "docs" / f"{name}.md").read_text().split("\n\n")
    assert " ".join(lines[1].split()) == code_line(name)


@pytest.mark.parametrize("name", OURS)
def test_every_folder_of_a_systems_name_is_listed(name: str) -> None:
    folders = [path for path in ROOT.glob(f"*/systems/{name}") if path.parts[-3] not in ("docs", "results", "build")]
    folders += (ROOT / "p4src" / "include").glob(name)
    listed = {ROOT / part.place for part in parts_of(name)}
    assert folders and set(folders) <= listed
    assert all(place.exists() for place in listed)


def test_a_list_of_all_and_one_of_another_package(tmp_path: Path) -> None:
    install_tiny(tmp_path)
    listed = run_well("systems", PYTHONPATH=tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in listed] == [*OURS, "tiny"]
    assert run_well("systems", "tiny", PYTHONPATH=tmp_path).stdout.split()[0] == f"{tmp_path}/tiny/"


def test_an_unknown_system_is_one_line() -> None:
    refused = gradbed("systems", "nnd")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "gradbed: no system is called 'nnd'; did you mean 'ndn'?\n"
