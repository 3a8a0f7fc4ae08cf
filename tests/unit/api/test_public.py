"""What docs/api.md calls public and private is so."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import gradbed as gb
from tests.unit.test_architecture import MAY_IMPORT

ROOT = Path(__file__).resolve().parents[3]
SECTION = re.search(r"## Public and private names\n(.*?)\n## ", (ROOT / "docs" / "api.md").read_text(), re.DOTALL)
ROW = re.compile(r"^\| [^|]*\(`([\w.]+)`\) \| (.*) \|$", re.MULTILINE)


def section() -> str:
    assert SECTION is not None
    return SECTION[1]


def test_every_package_besides_is_said_to_be_private() -> None:
    named = re.findall(r"`(\w+)`", section().split("are private")[0].split("All other packages")[1])
    assert sorted(named) == sorted(set(MAY_IMPORT) - {"api"})


def test_what_is_private_exists_and_what_is_public_is_offered() -> None:
    rows = ROW.findall(section())
    assert len(rows) == 5
    for private, public in rows:
        importlib.import_module(private)
        assert private.split(".")[1] not in gb.__all__
        names = re.findall(r"\bgb\.(\w+)", public)
        assert names
        assert set(names) <= set(gb.__all__)


@pytest.mark.parametrize("call", re.findall(r'`gb\.run\(("\w+", \w+=\{.*?\})\)`', SECTION[1] if SECTION else ""))
def test_the_sections_are_taken(call: str) -> None:
    """As a study of one trial, which checks all of it and runs nothing."""
    assert len(eval(f"gb.Study({call})", {"gb": gb})) == 1


def test_there_are_some() -> None:
    assert section().count("gb.run(") == 3
