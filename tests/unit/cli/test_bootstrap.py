"""The script ./gradbed on machines made of stand-ins for apt-get, dpkg-query, id and Python: no network, no root."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

PACKAGES = [
    "ethtool",
    "gcc",
    "iproute2",
    "iputils-ping",
    "libc6-dev",
    "mininet",
    "openvswitch-switch",
    "procps",
    "python3",
    "python3-venv",
]

TOOLS = ["cat", "cksum", "dirname", "flock", "grep", "ln", "mkdir", "readlink", "rm", "seq", "sh", "tail"]
"""All that the script may use of a base system."""

STAND_INS = {
    "id": "echo ${MACHINE_UID:-0}",
    "sleep": 'echo "sleep $*" >>"$MACHINE/calls"',
    "dpkg-query": """
        echo dpkg-query >>"$MACHINE/calls"
        for package; do :; done
        [ -e "$MACHINE/packages/$package" ] && printf 'install ok installed'
    """,
    "systemctl": 'echo "systemctl $*" >>"$MACHINE/calls"',
    "apt-get": """
        [ -n "$SYSTEMD_OFFLINE" ] || echo 'services are started' >>"$MACHINE/calls"
        while [ "$1" = -o ]; do shift 2; done
        echo "apt-get $*" >>"$MACHINE/calls"
        if [ "$1" = update ]; then
            [ -e "$MACHINE/lists-locked" ] || exit 0
            rm "$MACHINE/lists-locked"
            echo 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)'
            exit 100
        fi
        if [ -n "${APT_FAILS:-}" ]; then
            printf 'Reading package lists...\\nE: %s\\n' "$APT_FAILS"
            exit 100
        fi
        for word; do
            case $word in install | -*) ;; *) : >"$MACHINE/packages/$word" ;; esac
        done
    """,
}

PYTHON = """#!/bin/sh
# A stand-in for Python: knows of versions, venv, pip, and hands the command line's arguments back.
[ "$1" != -I ] || shift
case "$1 $2" in
    "-c "*) exit "${PYTHON_TOO_OLD:-0}" ;;
    "-m venv")
        echo venv >>"$MACHINE/calls"
        [ -z "${VENV_FAILS:-}" ] || { echo "$VENV_FAILS"; exit 1; }
        mkdir -p "$3/bin" "$3/lib/python3.11/site-packages"
        cat "$0" >"$3/bin/python"
        chmod +x "$3/bin/python" ;;
    "-m pip")
        shift 2
        echo "pip $*" >>"$MACHINE/calls"
        [ ! -p "$MACHINE/pip-waits" ] || read -r _ <"$MACHINE/pip-waits"
        [ -z "${PIP_IS_KILLED:-}" ] || kill -KILL $PPID
        if [ -n "${PIP_FAILS:-}" ]; then
            printf 'Collecting fastapi\\nERROR: %s\\nhint: see above\\n' "$PIP_FAILS"
            exit 1
        fi ;;
    "-m cli")
        shift 2
        [ ! -e /proc/$$/fd/9 ] || echo 'inherits the lock'
        for word; do printf '<%s>' "$word"; done ;;
esac
"""


class Machine:
    """A directory that serves as a machine: its commands, what is installed on it, and a checkout."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.checkout = place / "a folder" / "gradbed"
        self.commands = place / "bin"
        self.python = place / "python3"
        self._calls = place / "calls"
        (place / "packages").mkdir()
        self.commands.mkdir()
        for tool in [*TOOLS, "chmod"]:
            (self.commands / tool).symlink_to(shutil.which(tool) or tool)
        for name, body in STAND_INS.items():
            write_program(self.commands / name, f"#!/bin/sh\n{body}")
        write_program(self.python, PYTHON)
        self.checkout.mkdir(parents=True)
        shutil.copy(ROOT / "setup.py", self.checkout)
        script = (ROOT / "gradbed").read_text()
        write_program(self.checkout / "gradbed", script.replace("/usr/bin/python3", str(self.python)))

    @property
    def venv(self) -> Path:
        return self.checkout / ".venv"

    def environment(self, **variables: str) -> dict[str, str]:
        return {"PATH": str(self.commands), "MACHINE": str(self.place), **variables}

    def run(
        self,
        *arguments: str,
        command: Path | None = None,
        cwd: Path | None = None,
        user: int | None = None,
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command or self.checkout / "gradbed", *arguments],
            cwd=cwd,
            user=user,
            env=self.environment(**variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def calls(self) -> list[str]:
        """What was called since this was asked last."""
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        self._calls.write_text("")
        return lines


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def bare(tmp_path: Path) -> Machine:
    """A machine with nothing but the base system."""
    return Machine(tmp_path)


@pytest.fixture
def complete(bare: Machine) -> Machine:
    """One on which `gradbed demo` ran."""
    assert bare.run("demo").returncode == 0
    bare.calls()
    return bare


def pip_calls(machine: Machine) -> list[str]:
    return [call for call in machine.calls() if call.startswith("pip")]


def one_line(outcome: subprocess.CompletedProcess[str]) -> str:
    """The error, which must be a single line with exit status 2."""
    assert outcome.returncode == 2, outcome
    assert outcome.stdout == ""
    lines = [line for line in outcome.stderr.splitlines() if ": installing " not in line]
    assert len(lines) == 1, outcome.stderr
    assert lines[0].startswith("gradbed: ")
    return lines[0]


def test_a_bare_machine_gets_everything_and_says_so(bare: Machine) -> None:
    (bare.place / "packages" / "gcc").touch()
    outcome = bare.run("demo", "--an option", "")
    assert (outcome.returncode, outcome.stdout) == (0, "<demo><--an option><>")
    missing = " ".join(package for package in PACKAGES if package != "gcc")
    assert outcome.stderr.splitlines() == [
        f"gradbed: installing Debian packages: {missing}",
        f"gradbed: installing Python packages into {bare.venv} (a minute or two)",
    ]
    apt_and_pip = [call for call in bare.calls() if call != "dpkg-query"]
    assert apt_and_pip == [
        "apt-get update",
        f"apt-get install -y --no-install-recommends {missing}",
        "systemctl disable openvswitch-switch ovs-record-hostname",
        "venv",
        f"pip install --disable-pip-version-check --no-input -e {bare.checkout}",
    ]
    mininet = bare.venv / "lib/python3.11/site-packages/mininet"
    assert os.readlink(mininet) == "/usr/lib/python3/dist-packages/mininet"


def test_a_complete_machine_starts_at_once(complete: Machine) -> None:
    outcome = complete.run("demo", MACHINE_UID="1000")
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "<demo>", "")
    assert complete.calls() == []


def test_from_elsewhere_through_a_symbolic_link(complete: Machine) -> None:
    link = complete.place / "link"
    link.symlink_to(complete.checkout / "gradbed")
    outcome = complete.run("run", command=link, cwd=complete.commands)
    assert (outcome.stdout, complete.calls()) == ("<run>", [])


def test_the_tests_need_more_packages(complete: Machine) -> None:
    assert complete.run("test").stdout == "<test>"
    assert [call.split("gradbed")[-1] for call in pip_calls(complete)] == ["[test]"]
    assert complete.run("demo").stdout == "<demo>"
    assert complete.run("test").stdout == "<test>"
    assert complete.calls() == []


def test_the_tests_come_first(bare: Machine) -> None:
    assert bare.run("test").stdout == "<test>"
    assert len(pip_calls(bare)) == 1
    assert bare.run("demo").stdout == "<demo>"
    assert bare.calls() == []


def test_other_requirements_are_installed_over_the_old_ones(complete: Machine) -> None:
    with (complete.checkout / "setup.py").open("a") as setup:
        setup.write("# changed\n")
    assert complete.run("demo").returncode == 0
    assert [call.split()[0] for call in complete.calls() if call != "dpkg-query"] == ["pip"]
    assert complete.run("demo").stderr == ""


def test_a_moved_checkout_gets_a_new_environment(complete: Machine) -> None:
    complete.checkout = complete.checkout.rename(complete.place / "moved")
    assert complete.run("demo").returncode == 0
    assert "venv" in complete.calls()


def test_another_python_gets_a_new_environment(complete: Machine) -> None:
    complete.python.rename(complete.place / "python3.12")
    complete.python.symlink_to(complete.place / "python3.12")
    assert complete.run("demo").returncode == 0
    assert "venv" in complete.calls()


def test_an_environment_whose_python_went_gets_a_new_one(complete: Machine) -> None:
    (complete.venv / "bin/python").unlink()
    assert complete.run("demo").stdout == "<demo>"
    assert "venv" in complete.calls()


@pytest.mark.parametrize("before", ["bare", "complete"])
def test_an_interrupted_installation_starts_afresh(before: str, request: pytest.FixtureRequest) -> None:
    machine: Machine = request.getfixturevalue(before)
    killed = machine.run("test", PIP_IS_KILLED="yes")
    assert killed.returncode == -signal.SIGKILL
    (machine.venv / "half-written").touch()
    machine.calls()
    assert machine.run("test").stdout == "<test>"
    assert [call.split()[0] for call in machine.calls() if call != "dpkg-query"] == ["venv", "pip"]
    assert not (machine.venv / "half-written").exists()


@contextlib.contextmanager
def started(machine: Machine, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """gradbed in a process group of its own, which is gone in the end."""
    process = subprocess.Popen(
        [machine.checkout / "gradbed", *arguments],
        env=machine.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_two_at_the_same_time_install_once(bare: Machine) -> None:
    pip_waits = bare.place / "pip-waits"
    os.mkfifo(pip_waits)
    with started(bare, "demo") as first:
        assert first.stderr is not None
        while "Python packages" not in first.stderr.readline():
            assert first.poll() is None
        with started(bare, "p4") as second:
            assert second.stderr is not None
            assert second.stderr.readline() == "gradbed: waiting for another installation to end\n"
            time.sleep(0.3)  # enough for a second that does not really wait to start its own pip
            pip_waits.write_text("go on\n")
            assert (first.communicate(timeout=60)[0], first.returncode) == ("<demo>", 0)
            assert (second.communicate(timeout=60)[0], second.returncode) == ("<p4>", 0)
    assert len(pip_calls(bare)) == 1


def test_a_locked_package_list_is_waited_for(bare: Machine) -> None:
    (bare.place / "lists-locked").touch()
    assert bare.run("demo").returncode == 0
    calls = [call for call in bare.calls() if call.startswith(("apt-get", "sleep"))]
    assert calls[:3] == ["apt-get update", "sleep 3", "apt-get update"]
    assert calls[3].startswith("apt-get install")


def test_not_root_and_debian_packages_missing(bare: Machine) -> None:
    for package in PACKAGES[1:-1]:
        (bare.place / "packages" / package).touch()
    message = one_line(bare.run("demo", MACHINE_UID="1000"))
    assert f"({PACKAGES[0]} {PACKAGES[-1]})" in message
    assert message.endswith(f"once, as root, run {bare.checkout}/gradbed demo")
    assert set(bare.calls()) == {"dpkg-query"}


def test_not_root_and_nothing_missing_but_python_packages(bare: Machine) -> None:
    for package in PACKAGES:
        (bare.place / "packages" / package).touch()
    assert bare.run("--help", MACHINE_UID="1000").stdout == "<--help>"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_checkout_that_cannot_be_written() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to other users
        Path(folder).chmod(0o755)
        machine = Machine(Path(folder))
        for package in PACKAGES:
            (machine.place / "packages" / package).touch()
        outcome = machine.run("p4", user=65534)
        expected = f"{machine.checkout} cannot be written: once, as root, run {machine.checkout}/gradbed p4"
        assert expected in one_line(outcome)


def test_no_apt(bare: Machine) -> None:
    (bare.commands / "apt-get").unlink()
    assert "needs Debian 12, Ubuntu 22.04 or newer" in one_line(bare.run("demo"))
    assert not bare.venv.exists()


def test_an_old_python(bare: Machine) -> None:
    assert "needs Python 3.10 or newer" in one_line(bare.run("demo", PYTHON_TOO_OLD="1"))
    assert not bare.venv.exists()


@pytest.mark.parametrize(
    ("step", "reason", "shown"),
    [
        ("APT_FAILS", "Unable to locate package mininet", "apt-get failed: E: Unable to locate package mininet"),
        ("VENV_FAILS", "No space left on device", "no Python environment: No space left on device"),
        ("PIP_FAILS", "No matching distribution", "pip failed: ERROR: No matching distribution"),
    ],
)
def test_a_step_that_fails_is_one_line_and_tried_again(bare: Machine, step: str, reason: str, shown: str) -> None:
    message = one_line(bare.run("demo", **{step: reason}))
    assert shown in message
    assert message.endswith(f"all of it: {bare.checkout}/.venv-install.log)")
    assert reason in (bare.checkout / ".venv-install.log").read_text()
    assert bare.run("demo").stdout == "<demo>"
