"""Whole numbers that YAML writes without a limit on digits are refused in one line, in every reader of YAML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.common.yaml_numbers import MOST_BITS
from gradbed.controller.entries.document import parse_document
from gradbed.experiments.exercises.exercise import exercises
from gradbed.experiments.study.yaml_text import read_yaml
from gradbed.topo.files import read_topology

NUMBERS = {
    "sexagesimal": ":".join(["59"] * 3000),
    "hexadecimal": "0x" + "f" * 5000,
    "octal": "0" + "7" * 8000,
    "binary": "0b" + "1" * 30_000,
    "decimal": "9" * 5000,
}


def _read_exercise(file: Path) -> object:
    folder = file.parent / "exercises" / "mine"
    folder.mkdir(parents=True)
    (folder / "exercise.yaml").write_text(f"place: {file.read_text().partition(': ')[2]}")
    return exercises(folder.parent)


def _read_entries(file: Path) -> object:
    return [value.integer() for _, value in parse_document(file.read_text(), file).pairs()]


READERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "study": (read_yaml, "repetitions: {}\n"),
    "topology": (lambda file: read_topology(str(file)), "hosts: {{h1: {{}}}}\nswitches: {{s1: {{}}}}\nlinks: {}\n"),
    "entries": (_read_entries, "size: {}\n"),
    "exercise": (_read_exercise, "place: {}\n"),
}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("reader", READERS)
def test_a_number_without_end_is_refused_in_a_line(tmp_path: Path, reader: str, number: str) -> None:
    read, form = READERS[reader]
    file = tmp_path / "file.yaml"
    file.write_text(form.format(NUMBERS[number]))
    with pytest.raises(UserError) as caught:
        read(file)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 400 + len(str(tmp_path))


def test_the_widest_number_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    for text, value in ((hex(2**MOST_BITS - 1), 2**MOST_BITS - 1), ("1:30", 90)):
        file.write_text(f"repetitions: {text}\n")
        assert read_yaml(file).data == {"repetitions": value}
