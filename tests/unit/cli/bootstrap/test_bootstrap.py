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

ROOT = Path(__file__).resolve().parents[4]

TOOLS = ["cat", "cksum", "dirname", "flock", "grep", "ln", "mkdir", "readlink", "rm", "seq", "sh", "stat", "tail"]
"""All that the script may use of a base system."""

STAND_INS = {
    "id": "echo ${MACHINE_UID:-0}",
    "env": '[ "$1" = --block-signal=INT ] && shift && exec "$@"',
    "setpriv": """
        [ "$1 $2 $3" = "--reuid=$SUDO_UID --regid=$SUDO_GID --clear-groups" ] || exit 9
        shift 3
        MACHINE_UID=$SUDO_UID exec "$@"
    """,
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
[ "$1" != -X ] || { options="$1 $2 "; shift 2; }
[ "$1" != -I ] || shift
case "$1 $2" in
    "-c import ensurepip"*) [ -n "${VENV_IS_THERE-yes}" ] || [ -e "$MACHINE/packages/python3-venv" ] ;;
    "-c "*) exit "${PYTHON_TOO_OLD:-0}" ;;
    "-m zipfile") echo "unpack $4 into ${5##*/lib/}" >>"$MACHINE/calls" ;;
    "-m venv")
        [ "$3" != --without-pip ] || { without=' without pip'; shift; }
        echo "venv${without-}" >>"$MACHINE/calls"
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
    "-m gradbed")
        shift 2
        [ ! -e /proc/$$/fd/9 ] || echo 'inherits the lock'
        printf '%s' "${options-}"
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
        shutil.copytree(ROOT / "requirements", self.checkout / "requirements")
        script = (ROOT / "gradbed").read_text().replace("/usr/bin/python3", str(self.python))
        write_program(self.checkout / "gradbed", script.replace("/usr/share/python-wheels", str(place / "wheels")))

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


def layers_of(call: str) -> list[str]:
    """Those that a call of pip installs."""
    return [
        word.removeprefix("requirements/").removesuffix(".txt")
        for word in call.split("-r ")[1:]
        for word in [word.strip()]
    ]


def one_line(outcome: subprocess.CompletedProcess[str]) -> str:
    """The error, which must be a single line with exit status 2."""
    assert outcome.returncode == 2, outcome
    assert outcome.stdout == ""
    lines = [
        line
        for line in outcome.stderr.splitlines()
        if ": installing " not in line and ": making a Python environment" not in line
    ]
    assert len(lines) == 1, outcome.stderr
    assert lines[0].startswith("gradbed: ")
    return lines[0]


def test_a_bare_machine_gets_what_the_command_line_needs_and_no_more(bare: Machine) -> None:
    outcome = bare.run("demo", "--an option", "", MACHINE_UID="1000")
    assert (outcome.returncode, outcome.stdout) == (0, "<demo><--an option><>")
    assert outcome.stderr.splitlines() == [f"gradbed: making a Python environment in {bare.venv} (some seconds)"]
    assert bare.calls() == [
        "venv",
        "pip install --disable-pip-version-check --no-input --no-compile -r requirements/base.txt",
    ]
    packages = bare.venv / "lib/python3.11/site-packages"
    assert os.readlink(packages / "mininet") == "/usr/lib/python3/dist-packages/mininet"
    assert os.readlink(packages / "gradbed") == "../../../../api"


def test_pip_is_taken_from_where_debian_keeps_it(bare: Machine) -> None:
    wheel = bare.place / "wheels" / "pip-23.0.1-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.touch()
    assert bare.run("demo").returncode == 0
    assert bare.calls()[:2] == ["venv without pip", f"unpack {wheel} into python3.11/site-packages"]


def test_python_without_venv_gets_it_from_debian(bare: Machine) -> None:
    assert bare.run("demo", VENV_IS_THERE="").stdout == "<demo>"
    assert [call for call in bare.calls() if call.startswith("apt-get")] == [
        "apt-get update",
        "apt-get install -y --no-install-recommends python3 python3-venv",
    ]


def test_python_without_venv_and_not_root(bare: Machine) -> None:
    message = one_line(bare.run("demo", VENV_IS_THERE="", MACHINE_UID="1000"))
    assert message.endswith("once, as root, run apt-get install --no-install-recommends python3 python3-venv")


def test_debian_packages_are_installed_where_they_are_missing(bare: Machine) -> None:
    (bare.place / "packages" / "gcc").touch()
    outcome = bare.run("--install-debian", "gcc", "mininet", "openvswitch-switch")
    assert (outcome.returncode, outcome.stdout) == (0, "")
    assert outcome.stderr == "gradbed: installing Debian packages: mininet openvswitch-switch\n"
    assert [call for call in bare.calls() if call != "dpkg-query"] == [
        "apt-get update",
        "apt-get install -y --no-install-recommends mininet openvswitch-switch",
        "systemctl disable openvswitch-switch ovs-record-hostname",
    ]
    assert bare.run("--install-debian", "gcc", "mininet").stderr == ""
    assert set(bare.calls()) == {"dpkg-query"}


def test_a_complete_machine_starts_at_once(complete: Machine) -> None:
    outcome = complete.run("demo", MACHINE_UID="1000")
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "<demo>", "")
    assert complete.calls() == []


def test_from_elsewhere_through_a_symbolic_link(complete: Machine) -> None:
    link = complete.place / "link"
    link.symlink_to(complete.checkout / "gradbed")
    outcome = complete.run("run", command=link, cwd=complete.commands)
    assert (outcome.stdout, complete.calls()) == ("<run>", [])


def test_layers_come_on_top_of_those_before(complete: Machine) -> None:
    outcome = complete.run("--install-python", "p4")
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "")
    complete.run("--install-python", "run", "p4")
    assert [layers_of(call) for call in pip_calls(complete)] == [["base", "p4"], ["base", "p4", "run"]]
    for layers in (["p4"], ["run"], ["run", "p4"]):
        assert complete.run("--install-python", *layers).returncode == 0
    assert complete.run("demo").stdout == "<demo>"
    assert complete.calls() == []


def test_a_layer_may_come_first(bare: Machine) -> None:
    assert bare.run("--install-python", "run").returncode == 0
    assert [layers_of(call) for call in pip_calls(bare)] == [["base", "run"]]
    assert bare.run("demo").stdout == "<demo>"
    assert bare.calls() == []


def test_other_requirements_are_installed_over_the_old_ones(complete: Machine) -> None:
    complete.run("--install-python", "run")
    complete.calls()
    with (complete.checkout / "requirements" / "p4.txt").open("a") as requirements:
        requirements.write("# changed\n")
    assert complete.run("demo").returncode == 0
    (call,) = complete.calls()
    assert layers_of(call) == ["base", "run"]
    assert complete.run("demo").stderr == ""


def test_a_layer_that_an_older_checkout_had_is_forgotten(complete: Machine) -> None:
    complete.run("--install-python", "run")
    complete.calls()
    (complete.checkout / "requirements" / "run.txt").unlink()
    assert complete.run("demo").stdout == "<demo>"
    assert [layers_of(call) for call in pip_calls(complete)] == [["base"]]
    complete.calls()
    assert complete.run("demo").stdout == "<demo>"
    assert complete.calls() == []


def test_the_tab_key_installs_nothing(bare: Machine) -> None:
    outcome = bare.run(_GRADBED_COMPLETE="complete_bash")
    assert (outcome.returncode, outcome.stdout, outcome.stderr, bare.calls()) == (0, "", "", [])


def test_under_sudo_the_environment_is_the_callers(bare: Machine) -> None:
    stat = bare.commands / "stat"
    stat.unlink()
    write_program(stat, "#!/bin/sh\necho 1000\n")
    outcome = bare.run("demo", SUDO_UID="1000", SUDO_GID="100", HOME="/root", MACHINE_UID="0")
    assert outcome.stdout == "-X pycache_prefix=/root/.cache/gradbed/bytecode <demo>", outcome
    assert len(pip_calls(bare)) == 1
    assert bare.run("demo", MACHINE_UID="1000").stdout == "<demo>"


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


@pytest.mark.parametrize("arguments", [["demo"], ["--install-python", "run"]])
@pytest.mark.parametrize("before", ["bare", "complete"])
def test_an_interrupted_installation_starts_afresh(
    before: str, arguments: list[str], request: pytest.FixtureRequest
) -> None:
    machine: Machine = request.getfixturevalue(before)
    if before == "complete":
        (machine.checkout / "requirements" / "base.txt").write_text("changed")
    killed = machine.run(*arguments, PIP_IS_KILLED="yes")
    assert killed.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL, 2)
    (machine.venv / "half-written").touch()
    machine.calls()
    assert machine.run(*arguments).returncode == 0
    assert [call.split()[0] for call in machine.calls()] == ["venv", "pip"]
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
        while "Python environment" not in first.stderr.readline():
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
    assert bare.run("--install-debian", "mininet").returncode == 0
    calls = [call for call in bare.calls() if call.startswith(("apt-get", "sleep"))]
    assert calls[:3] == ["apt-get update", "sleep 3", "apt-get update"]
    assert calls[3].startswith("apt-get install")


def test_not_root_and_debian_packages_missing(bare: Machine) -> None:
    (bare.place / "packages" / "gcc").touch()
    message = one_line(bare.run("--install-debian", "ethtool", "gcc", "mininet", MACHINE_UID="1000"))
    assert "(ethtool mininet)" in message
    assert message.endswith("as root, run apt-get install --no-install-recommends ethtool mininet")
    assert set(bare.calls()) == {"dpkg-query"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_checkout_that_cannot_be_written() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to other users
        Path(folder).chmod(0o755)
        machine = Machine(Path(folder))
        outcome = machine.run("p4", user=65534)
        expected = f"{machine.checkout} cannot be written: once, as its owner, run {machine.checkout}/gradbed p4"
        assert expected in one_line(outcome)


def test_no_apt(bare: Machine) -> None:
    (bare.commands / "apt-get").unlink()
    assert "needs Debian 12, Ubuntu 22.04 or newer" in one_line(bare.run("--install-debian", "mininet"))
    assert bare.run("--help").stdout == "<--help>"


def test_an_old_python(bare: Machine) -> None:
    assert "needs Python 3.10 or newer" in one_line(bare.run("demo", PYTHON_TOO_OLD="1"))
    assert not bare.venv.exists()


def test_debian_packages_that_cannot_be_had(bare: Machine) -> None:
    message = one_line(bare.run("--install-debian", "mininet", APT_FAILS="Unable to locate package mininet"))
    assert "apt-get failed: E: Unable to locate package mininet" in message
    assert message.endswith(f"all of it: {bare.checkout}/.venv-install.log)")


@pytest.mark.parametrize(
    ("step", "reason", "shown"),
    [
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
