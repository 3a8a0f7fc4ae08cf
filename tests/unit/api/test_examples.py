"""examples/python: what they show is so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"


def output(place: Path, *arguments: str | Path) -> str:
    ended = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=place, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr + ended.stdout
    return ended.stdout


def test_live_tables(tmp_path: Path) -> None:
    lines = output(tmp_path, EXAMPLES / "live_tables.py").splitlines()
    # Two links of 10 us and two of 1000 us; 42 bytes at 100 Mbit/s take 3.36 us on each.
    first, second = ("east", "west") if "east" in lines[0] else ("west", "east")
    assert lines[0] == f"shortest way through {', '.join(sorted(['north', first, 'south']))}: 2033 us"
    assert lines[1] == f"the other way through {', '.join(sorted(['north', second, 'south']))}: 2033 us"
    assert lines[2] == "with that link cut, through north: lost"
    assert lines[3] == "with alice refused, through north: lost"
    assert lines[4] == "last UDP port seen at south: 4242"


@pytest.mark.thorough
def test_tests_of_ones_own_network(tmp_path: Path) -> None:
    said = output(tmp_path, "-m", "pytest", "-q", "-o", "addopts=", "-p", "no:cacheprovider", EXAMPLES)
    assert "3 passed" in said


@pytest.mark.nightly
def test_a_test_of_ones_own_network_can_fail(tmp_path: Path) -> None:
    for name in ("gate.yaml", "test_gate.py"):
        (tmp_path / name).write_text((EXAMPLES / name).read_text())
    program = (EXAMPLES / "gate.p4").read_text()
    (tmp_path / "gate.p4").write_text(program.replace("            refused.apply();\n", ""))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 1
    assert "test_refused_sources_reach_nobody" in ended.stdout


@pytest.mark.nightly
def test_sweep(tmp_path: Path) -> None:
    lines = output(tmp_path, EXAMPLES / "sweep.py").splitlines()
    rows = {line.split()[0]: [float(word) for word in line.split()[1:]] for line in lines[2:5]}
    assert list(rows) == ["0.2", "0.5", "0.8"]
    p99_us = [row[1] for row in rows.values()]
    assert p99_us == sorted(p99_us)
    assert (tmp_path / lines[5]).exists()


@pytest.mark.nightly
def test_compare(tmp_path: Path) -> None:
    lines = output(tmp_path, EXAMPLES / "compare.py").splitlines()
    assert lines[-1] == "all sums are exact"
    speedups = [float(line.split()[-1]) for line in lines[2:6]]
    assert speedups[0] == 1
    assert speedups == sorted(speedups) and speedups[-1] > 2


@pytest.mark.nightly
def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    for name in ("gate.p4", "gate.yaml"):
        (tmp_path / name).write_text((EXAMPLES / name).read_text())
    notebook = nbformat.read(EXAMPLES / "first_hour.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in notebook.cells)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute(env={**os.environ, "IPYTHONDIR": str(tmp_path / "ipython")})
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert "".join(outputs[-1]["data"]["text/plain"]).splitlines()[0].split()[:2] == ["from", "to"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    texts = ["".join(output.get("data", {}).get("text/plain", "")) for output in outputs]
    assert "{'s1': 1, 's2': 0, 'l1': 1, 'l2': 1}" in texts or "{'s1': 0, 's2': 1, 'l1': 1, 'l2': 1}" in texts
    assert "True" in texts and "[]" in texts
