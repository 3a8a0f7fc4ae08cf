"""--resume keeps a trial only where all is as it was that the trial is made of: the program's whole input, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.experiments.systems.workload.configuration import WorkloadConfiguration

PROGRAM = (
    '#include <core.p4>\n#include <v1model.p4>\n#include "parts/ports.p4"\n#ifdef MORE\n#include "more.p4"\n#endif\n'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    (tmp_path / "program.p4").write_text(PROGRAM)
    (tmp_path / "parts" / "ports.p4").write_text('#include "numbers.p4"\n')
    (tmp_path / "parts" / "numbers.p4").write_text("const bit<9> PORT = 1;\n")
    (tmp_path / "more.p4").write_text("\n")
    return tmp_path


def identity(folder: Path, **program: object) -> str:
    section = {"path": folder / "program.p4", **program}
    canonical = WorkloadConfiguration.model_validate({"program": section}).canonical()
    assert canonical.program.sha256
    return canonical.program.sha256


@pytest.mark.parametrize("file", ["program.p4", "parts/ports.p4", "parts/numbers.p4"])
def test_a_file_that_is_included_at_any_depth_makes_another_trial(folder: Path, file: str) -> None:
    before = identity(folder)
    assert identity(folder) == before
    changed = folder / file
    text = changed.read_text()
    changed.write_text(text + "// the same length of time later, other contents\n")
    assert identity(folder) != before
    changed.write_text(text)
    assert identity(folder) == before


def test_what_macros_include_counts_where_they_are_defined(folder: Path) -> None:
    plain, more = identity(folder), identity(folder, macros=["MORE"])
    (folder / "more.p4").write_text("const bit<9> OTHER = 2;\n")
    assert identity(folder) == plain
    assert identity(folder, macros=["MORE"]) != more


def test_programs_that_a_topology_file_names_bring_what_they_include(folder: Path) -> None:
    """As those of the p4lang tutorials do: a switch runs its own program."""
    (folder / "other.p4").write_text(PROGRAM)
    (folder / "topology.json").write_text(
        '{"hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11"}, '
        '"h2": {"ip": "10.0.2.2/24", "mac": "08:00:00:00:02:22"}}, '
        '"switches": {"s1": {"program": "other.p4"}, "s2": {"program": "program.p4"}}, '
        '"links": [["h1", "s1-p1"], ["s1-p2", "s2-p2"], ["h2", "s2-p1"]]}'
    )

    def of_both() -> str:
        configuration = {
            "topology": {"kind": str(folder / "topology.json")},
            "program": {"path": folder / "program.p4"},
        }
        return WorkloadConfiguration.model_validate(configuration).canonical().program.sha256

    (folder / "other.p4").write_text('#include "others.p4"\n')
    (folder / "others.p4").write_text("\n")
    before = of_both()
    (folder / "others.p4").write_text("const bit<9> OTHER = 2;\n")
    assert of_both() != before


def test_a_program_that_is_wrong_is_still_a_trial(folder: Path) -> None:
    """The trial says what is wrong."""
    (folder / "program.p4").write_text('#include "missing.p4"\n')
    before = identity(folder)
    (folder / "missing.p4").write_text("\n")
    assert identity(folder) != before
