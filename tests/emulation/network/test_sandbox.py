"""The sandbox: what is inside, what comes out, and that nothing is left, whatever ends it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gradbed.common import sandbox
from gradbed.common.errors import UserError
from gradbed.common.sandbox import run_in_sandbox
from tests.emulation.programs import PATIENCE_S, descendants, eventually, run_program, started
from tests.emulation.sandboxed import ROOT, in_sandbox

pytestmark = pytest.mark.root


# Exit statuses.


def exits_with(status: object) -> Callable[[], int]:
    def function() -> int:
        sys.exit(status)  # type: ignore[arg-type]

    return function


def raises(error: BaseException) -> Callable[[], int]:
    def function() -> int:
        raise error

    return function


def kills_itself(number: int) -> Callable[[], int]:
    def function() -> int:
        os.kill(os.getpid(), number)
        time.sleep(PATIENCE_S)
        return 0

    return function


STATUSES: list[tuple[Callable[[], int], int]] = [
    (lambda: 0, 0),
    (lambda: 7, 7),
    (exits_with(None), 0),
    (exits_with(9), 9),
    (exits_with("no such thing"), 1),
    (raises(ValueError("a bug")), 1),
    (raises(UserError("one clear line")), 2),
    (raises(KeyboardInterrupt()), 130),
    (kills_itself(signal.SIGTERM), 143),
    (kills_itself(signal.SIGKILL), 137),
    (kills_itself(signal.SIGINT), 130),
    (lambda: run_in_sandbox(lambda: 5) + 1, 6),
]


def print_statuses() -> None:
    for function, _ in STATUSES:
        status = run_in_sandbox(function)
        print(status, flush=True)


def test_exit_statuses_and_messages() -> None:
    outcome = run_program(print_statuses)
    assert [int(line) for line in outcome.stdout.split()] == [status for _, status in STATUSES]
    assert outcome.returncode == 0
    assert "no such thing\n" in outcome.stderr
    assert "one clear line\n" in outcome.stderr
    assert outcome.stderr.count("Traceback") == 1
    assert "ValueError: a bug" in outcome.stderr


def works_beside() -> None:
    """Twice: no thread is left of the first time."""
    caller = os.getpid()
    for status in (3, 4):
        with tempfile.TemporaryDirectory() as folder:
            done, seen = Path(folder) / "done", Path(folder) / "seen"

            def function(done: Path = done, seen: Path = seen, status: int = status) -> int:
                while not done.exists():
                    time.sleep(0.01)
                seen.touch()
                return status

            def meanwhile(done: Path = done, seen: Path = seen) -> None:
                done.touch()
                while not seen.exists():
                    time.sleep(0.01)
                time.sleep(0.2)
                print("meanwhile", os.getpid() == caller, threading.current_thread() is not threading.main_thread())

            print(run_in_sandbox(function, meanwhile=meanwhile))


def test_what_is_done_meanwhile() -> None:
    outcome = run_program(works_beside)
    assert outcome.stdout.splitlines() == ["meanwhile True True", "3", "meanwhile True True", "4"]
    assert outcome.stderr == ""


# What the function sees.


def print_surroundings() -> None:
    def function() -> int:
        print(os.getpid(), os.listdir("/sys/class/net"), sorted(p for p in os.listdir("/proc") if p.isdigit()))
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
            print("loopback works")
        here = {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "pid", "mnt", "ipc", "uts")}
        print([kind for kind in here if here[kind] == outside[kind]])
        print(os.getcwd(), len(os.listdir("/sys/fs/cgroup")) == cgroups)
        print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.pthread_sigmask(0, []))
        return 0

    outside = {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "pid", "mnt", "ipc", "uts")}
    cgroups = len(os.listdir("/sys/fs/cgroup"))
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGCHLD), os.listdir("/proc/self/fd")
    run_in_sandbox(function)
    after = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGCHLD), os.listdir("/proc/self/fd")
    print(after == before, signal.pthread_sigmask(0, []))


def test_surroundings() -> None:
    outcome = run_program(print_surroundings)
    assert outcome.stderr == ""
    assert outcome.stdout.splitlines() == [
        "2 ['lo'] ['1', '2']",
        "loopback works",
        "['uts']",
        f"{ROOT} True",
        "True set()",
        "True set()",
    ]


def echo_once_to_the_outside() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()

    def function() -> int:
        with socket.socket() as inner:
            assert inner.connect_ex(address) != 0, "the namespace is the caller's own"
        connection, _ = listener.accept()
        connection.sendall(connection.recv(100))
        return 0

    code = "import socket, sys; c = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); c.sendall(b'hello');"
    client = subprocess.Popen([sys.executable, "-c", code + "print(c.recv(100).decode())", str(address[1])])
    assert run_in_sandbox(function) == 0
    assert client.wait() == 0


def test_a_socket_opened_before_still_serves_the_outside() -> None:
    outcome = run_program(echo_once_to_the_outside)
    assert (outcome.stdout, outcome.stderr) == ("hello\n", "")


# What is left.


def leave_a_daemon() -> None:
    def function() -> int:
        # Its parent ends first, so that it becomes a child of init; it ignores what can be ignored.
        code = (
            "import os, signal, time; os.fork() and os._exit(0); signal.signal(15, signal.SIG_IGN); time.sleep(600)"
        )
        subprocess.run([sys.executable, "-c", code], pass_fds=[write_end], start_new_session=True, check=True)
        return 3

    read_end, write_end = os.pipe()
    status = run_in_sandbox(function)
    os.close(write_end)
    os.set_blocking(read_end, False)
    print(status, os.read(read_end, 1))  # end of file: nobody holds the other end any more


def test_the_functions_end_is_everybodys_end() -> None:
    outcome = run_program(leave_a_daemon)
    assert (outcome.stdout, outcome.stderr) == ("3 b''\n", "")


def sleep_with_children() -> None:
    def function() -> int:
        for _ in range(3):
            subprocess.Popen(["sleep", "600"], start_new_session=True)
        subprocess.Popen(["unshare", "--net", "sleep", "600"], start_new_session=True)
        print("up", flush=True)
        time.sleep(600)
        return 0

    run_in_sandbox(lambda: run_in_sandbox(function))


def _network_namespaces(pids: list[int]) -> set[str]:
    return {os.readlink(f"/proc/{pid}/ns/net") for pid in pids}


@in_sandbox
def test_nothing_survives_a_sigkill_of_the_caller() -> None:
    from pyroute2 import IPRoute

    with started(sleep_with_children) as process, IPRoute() as netlink:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        assert eventually(lambda: len(descendants(process.pid)) == 10), "two sandboxes of 3, and 4 children"
        inside = descendants(process.pid)
        assert eventually(lambda: len(_network_namespaces(inside)) == 3), "two sandboxes' and one child's"
        namespaces = _network_namespaces(inside)
        # A veth pair goes when the namespace of either end goes: our ends tell when theirs have.
        for number, namespace in enumerate(sorted(namespaces)):
            pid = next(pid for pid in inside if os.readlink(f"/proc/{pid}/ns/net") == namespace)
            netlink.link("add", ifname=f"probe{number}", kind="veth", peer={"ifname": "p", "net_ns_pid": pid})
        assert len(netlink.get_links()) == 4
        process.kill()
        process.wait()
        assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in inside))
        assert eventually(lambda: len(netlink.get_links()) == 1)


# Signals.


def count_interrupts() -> None:
    def function() -> int:
        interrupts = 0
        terminations: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _: terminations.append(number))
        announced = False
        # A signal cuts the first wait short; a second one would show up in the next.
        for _ in range(2):
            try:
                if not announced:
                    announced = True
                    print("up", sys.stdout.isatty(), flush=True)
                deadline = time.monotonic() + PATIENCE_S
                while not (interrupts or terminations) and time.monotonic() < deadline:
                    time.sleep(0.05)
                time.sleep(0.4)
            except KeyboardInterrupt:
                interrupts += 1
        print("interrupts", interrupts, "terminations", len(terminations), flush=True)
        return 4

    sys.exit(run_in_sandbox(function))


def take_terminal_and_count_interrupts() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    count_interrupts()


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize(
    ("send", "expected"),
    [
        (lambda pid: os.kill(pid, signal.SIGINT), "interrupts 1 terminations 0\n"),
        (lambda pid: os.killpg(pid, signal.SIGINT), "interrupts 1 terminations 0\n"),
        (lambda pid: os.kill(pid, signal.SIGTERM), "interrupts 0 terminations 1\n"),
        (lambda pid: os.killpg(pid, signal.SIGTERM), "interrupts 0 terminations 1\n"),
    ],
    ids=["INT to the caller", "INT to the group", "TERM to the caller", "TERM to the group"],
)
def test_a_signal_reaches_the_function_once(send: Callable[[int], None], expected: str) -> None:
    with started(count_interrupts) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up False\n"
        send(process.pid)
        assert process.stdout.readline() == expected
        assert process.wait(PATIENCE_S) == 4


def test_ctrl_c_at_a_terminal_interrupts_once() -> None:
    master, slave = pty.openpty()
    with started(take_terminal_and_count_interrupts, stdin=slave, stdout=slave, stderr=slave) as process:
        os.close(slave)
        assert _read_line(master) == "up True"
        os.write(master, b"\x03")
        assert _read_line(master).removeprefix("^C") == "interrupts 1 terminations 0"
        assert process.wait(PATIENCE_S) == 4
    os.close(master)


def _read_line(terminal: int) -> str:
    line = b""
    while not line.endswith(b"\n"):
        assert select.select([terminal], [], [], PATIENCE_S)[0], f"only {line!r} was printed"
        line += os.read(terminal, 1)
    return line.decode().strip()


# What it refuses.


def test_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError, match=r"^gradbed run needs root: run with sudo$"):
        run_in_sandbox(lambda: 0, "gradbed run")


def test_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        with pytest.raises(RuntimeError, match="before any thread"):
            run_in_sandbox(lambda: 0)
    finally:
        release.set()
        thread.join()


def fail_to_unshare() -> None:
    def forbid(flags: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    sandbox.unshare = forbid
    run_in_sandbox(lambda: 0, "gradbed run")


def fail_to_mount() -> None:
    def forbid(*_arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    sandbox.mount = forbid
    run_in_sandbox(lambda: 0, "gradbed run")


def fail_in_a_chroot() -> None:
    """mount(2): EINVAL where propagation is changed of what is no mount point."""

    def forbid(*_arguments: object) -> None:
        raise OSError(22, "Invalid argument")

    sandbox.mount = forbid
    run_in_sandbox(lambda: 0, "gradbed run")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (fail_to_unshare, "Operation not permitted (in a container: run it privileged)"),
        (fail_to_mount, "Permission denied (in a container: run it privileged)"),
        (fail_in_a_chroot, sandbox.IN_CHROOT),
    ],
    ids=["unshare", "mount", "chroot"],
)
def test_a_kernel_that_forbids_it_is_a_user_error(program: Callable[[], None], reason: str) -> None:
    line = f"gradbed run needs namespaces of its own: {reason}"
    assert run_program(program).stderr.splitlines()[-1] == f"gradbed.common.errors.UserError: {line}"
