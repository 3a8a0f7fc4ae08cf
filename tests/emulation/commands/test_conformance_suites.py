"""python -m tools.conformance with a made-up checkout: its tests find our switch and leave nothing behind."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.command import tool
from tools.conformance.suites.environment import SCRATCH

pytestmark = [pytest.mark.thorough, pytest.mark.root]

SCRIPT = """\
p4c --target bmv2 --arch v1model --p4runtime-files small.p4info.txtpb small.p4 || exit 1
sudo LEVEL=1 simple_switch_grpc -i 0@veth0 -i 1@veth2 --no-p4 &
sleep 2
touch written_here /tmp/{mark}
sudo `which ptf` --test-params="grpcaddr='localhost:9559'" --test-dir .
sudo pkill --signal 9 simple_switch
"""
# In place of ptf: it cannot be had everywhere.
PTF = """\
#!/bin/sh
ip link show veth3 >/dev/null && echo "small.PortTest ... ok"
python3 -c "import socket; socket.create_connection(('localhost', 9559))" && echo "small.ServerTest ... ok"
test -e small.json && test -e small.p4info.txtpb && echo "small.CompilerTest ... ok"
echo "small.WrongTest ... FAIL"
"""
PROGRAM = """
#include <v1model.p4>
struct none_t { }
parser P(packet_in p, out none_t h, inout none_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control V(inout none_t h, inout none_t m) { apply { } }
control I(inout none_t h, inout none_t m, inout standard_metadata_t s) { apply { s.egress_spec = 1; } }
control D(packet_out p, in none_t h) { apply { } }
V1Switch(P(), V(), I(), I(), V(), D()) main;
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    files = {"good/small.p4": PROGRAM, "refused/small.p4": PROGRAM.replace("egress_spec", "nowhere"), "testlib/x": "",
             "ptf-tests/x": ""}  # fmt: skip
    for name in ("good", "refused"):
        files[f"{name}/runptf.sh"] = SCRIPT.format(mark=f"{tmp_path.name}-{name}")
    for name, text in files.items():
        (tmp_path / "p4-guide" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "p4-guide" / name).write_text(text)
    return tmp_path / "p4-guide"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A Python that has ptf and p4runtime_sh, and the program ptf beside it."""
    folder = tmp_path / "environment"
    folder.mkdir()
    for module in ("ptf", "p4runtime_sh"):
        (folder / f"{module}.py").write_text("")
    programs = {"python": f'#!/bin/sh\nPYTHONPATH={folder} exec {sys.executable} "$@"\n', "ptf": PTF}
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder / "python"


def conformance(*arguments: object) -> subprocess.CompletedProcess[str]:
    return tool("conformance", *arguments)


def test_scripts_run_on_our_switch(checkout: Path, python: Path) -> None:
    before, scratch = sorted(checkout.rglob("*")), set(SCRATCH.glob("gradbed-suite-*"))
    ended = conformance(checkout, "--python", python)
    lines = ended.stdout.splitlines()
    assert [line for line in lines if line.startswith("good")] == [
        "good small.PortTest  passed",
        "good small.ServerTest  passed",
        "good small.CompilerTest  passed",
        "good small.WrongTest  failed",
    ]
    (refused,) = (line for line in lines if line.startswith("refused"))
    assert "error" in refused and "nowhere" in refused
    assert ended.returncode == 1 and "3 of 5 passed" in lines
    assert sorted(checkout.rglob("*")) == before
    assert not list(Path(tempfile.gettempdir()).glob(f"{checkout.parent.name}-*"))
    assert set(SCRATCH.glob("gradbed-suite-*")) <= scratch


def test_what_must_pass(checkout: Path, python: Path, tmp_path: Path) -> None:
    names = tmp_path / "names"
    names.write_text("good small.PortTest\n")
    assert conformance(checkout, "--python", python, "--only", "good", "--expect", names).returncode == 0
    names.write_text("good small.WrongTest\n")
    assert conformance(checkout, "--python", python, "--only", "good", "--expect", names).returncode == 1


def test_a_python_without_what_they_import(checkout: Path) -> None:
    ended = conformance(checkout, "--python", sys.executable)
    assert ended.returncode == 2 and "p4runtime_sh" in " ".join(ended.stderr.split())
    assert conformance(checkout, "--python", "/nowhere/python").returncode == 2
