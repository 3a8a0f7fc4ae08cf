"""The shell scripts by which the Vagrantfile sets its machine up, with stand-ins for what they call."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.cli.bootstrap.test_bootstrap import write_program

ROOT = Path(__file__).resolve().parents[4]
PACKAGES = "https://packages.example/ubuntu"

STAND_INS = {
    "apt-get": 'echo "apt-get $*" >>"$MACHINE/calls"',
    "curl": 'for url; do :; done; echo "curl $url" >>"$MACHINE/calls"; echo KEY',
    "gpg": 'for file; do :; done; { echo binary; cat; } >"$file"',
    "git": 'echo "git $*" >>"$MACHINE/calls"',
    "sudo": 'exec "$@"',
}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    for folder in ("bin", "gradbed", "usr/share/keyrings", "etc/apt/sources.list.d"):
        (tmp_path / folder).mkdir(parents=True)
    for name, text in STAND_INS.items():
        # Also one that fails after it has printed something.
        text = f'{text}\n[ "$FAILING" != {name} ]'
        write_program(tmp_path / "bin" / name, f"#!/bin/sh\n{text}\n")
    write_program(tmp_path / "gradbed" / "gradbed", '#!/bin/sh\necho "gradbed $*" >>"$MACHINE/calls"\n')
    return tmp_path


def provision(number: int, machine: Path, failing: str = "") -> tuple[int, list[str]]:
    """Exit status of one of the scripts, and what was called. Files of the system are below `machine`."""
    scripts = re.findall(r"<<~SHELL\n(.*?)\n *SHELL\n", (ROOT / "Vagrantfile").read_text(), re.DOTALL)
    assert len(scripts) == 2
    script = re.sub(r"(?<=[ =])/(?=usr/|etc/)", f"{machine}/", scripts[number])
    environment = {
        "PATH": f"{machine}/bin:/usr/bin:/bin",
        "HOME": str(machine),
        "MACHINE": str(machine),
        "P4LANG_APT": PACKAGES,
        "FAILING": failing,
    }
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True)
    calls = machine / "calls"
    return done.returncode, calls.read_text().splitlines() if calls.exists() else []


def test_bmv2_and_p4c_come_from_a_signed_source(machine: Path) -> None:
    status, calls = provision(0, machine)
    assert status == 0
    assert calls[-3:] == [
        f"curl {PACKAGES}/Release.key",
        "apt-get update -q",
        "apt-get install -y -q p4lang-bmv2 p4lang-p4c",
    ]
    key = machine / "usr/share/keyrings/p4lang.gpg"
    assert key.read_text() == "binary\nKEY\n"
    source = (machine / "etc/apt/sources.list.d/p4lang.list").read_text()
    assert source == f"deb [signed-by={key}] {PACKAGES}/ /\n"


@pytest.mark.parametrize("failing", ["apt-get", "curl", "gpg"])
def test_without_the_packages_there_is_no_machine(failing: str, machine: Path) -> None:
    status, calls = provision(0, machine, failing)
    assert status != 0
    assert not any("p4lang-bmv2" in call for call in calls)


def test_the_clone_runs(machine: Path) -> None:
    (machine / "gradbed" / ".git").mkdir()
    status, calls = provision(1, machine)
    assert (status, calls[-2:]) == (0, ["git reset -q --hard", "gradbed --help"])


def test_what_was_unpacked_from_a_zip_file_runs(machine: Path) -> None:
    """Without a history, and with programs that nobody may execute."""
    folder = machine / "gradbed"
    (folder / "cli").mkdir()
    others = {folder / ".ci" / "run": "#!/bin/sh\n", folder / "cli" / "main.py": "print(1)  # no #! here\n"}
    for path, text in others.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for path in (folder / "gradbed", *others):
        path.chmod(0o644)
    status, calls = provision(1, machine)
    assert (status, calls[-1]) == (0, "gradbed --help")
    assert not any(call.startswith("git ") for call in calls)
    assert [os.access(path, os.X_OK) for path in others] == [True, False]


@pytest.mark.parametrize("failing", ["apt-get", "git"])
def test_without_a_clone_there_is_no_machine(failing: str, machine: Path) -> None:
    (machine / "gradbed" / ".git").mkdir()
    status, calls = provision(1, machine, failing)
    assert status != 0
    assert "gradbed --help" not in calls
