"""A private network, process and mount namespace for one function call, which nothing outlives.

Three processes stand between the caller and the function:

    caller      relays signals, waits                                          namespaces of the caller
    monitor     only there because a process cannot move itself into a new pid namespace
    init        pid 1: reaps orphans, passes signals on                        the new namespaces
    function    pid 2

The kernel kills the monitor with the caller and init with the monitor (PR_SET_PDEATHSIG), and a pid namespace dies
with its init; network namespaces, and both ends of their veth pairs, go with their last process. So SIGKILL to the
caller leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from gradbed.common.errors import ProcessLost, UserError, nobody_reads, trouble
from gradbed.common.namespaces import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    loopback_up,
    mount,
    require_root,
    unshare,
)
from gradbed.common.signals import die_with_parent, wakeups

RELAYED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)

IN_CHROOT = (
    "/ is no mount point, as in a plain chroot; outside, run mount --bind FOLDER FOLDER before chroot FOLDER, or "
    "take --clock virtual"
)

SAME_SIGNAL_S = 0.5
"""A relayed signal that init got itself within this time was sent to the whole process group, the function too."""


def run_in_sandbox(
    function: Callable[[], int], what: str = "this command", meanwhile: Callable[[], None] | None = None
) -> int:
    """Call `function` in new network, pid, mount and IPC namespaces; return its exit status, or 128 + signal.

    Inside: loopback is up and the only interface, /proc and /sys show the new namespaces, the current
    directory, environment, open files and the terminal are the caller's. A socket opened before stays in
    the network namespace where it was made, and usable. Ctrl-C raises KeyboardInterrupt in the function
    once; signals in RELAYED that are sent to the caller alone are passed on to the function. When it ends,
    whatever processes it leaves are killed before this returns. It ends by os._exit: no atexit handlers
    run; an uncaught exception prints its traceback and is status 1, KeyboardInterrupt 130, SystemExit its code. A
    UserError, a ProcessLost, a full disk, and output that nobody reads any more, end it as in `gradbed`
    (cli/main.py).
    meanwhile: is called here, in a thread of its own, once the function runs; this returns when both have ended.

    Must be called in the main thread while no other Python thread runs, since it forks (RuntimeError).
    UserError if not root (`what` needs root), or where the kernel or a container forbids namespaces.
    """
    require_root(what)
    if threading.active_count() > 1:
        raise RuntimeError("run_in_sandbox forks: call it before any thread is started")
    sys.stdout.flush()
    sys.stderr.flush()
    relayed = {number for number in RELAYED if signal.getsignal(number) is not signal.SIG_IGN}
    # Blocked until every process has its way of dealing with them; blocked signals wait, they are not lost.
    former_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*relayed, signal.SIGCHLD})
    report_read, report_write = os.pipe()
    caller = os.getpid()
    monitor = os.fork()
    if monitor == 0:
        os.close(report_read)
        _monitor(function, caller, relayed, former_mask, report_write)
    os.close(report_write)
    with wakeups({*relayed, signal.SIGCHLD}, former_mask) as woken:
        init, problem = _read_report(report_read)
        with _beside(meanwhile):
            status = _relay_until_exit(monitor, init, woken)
    if problem:
        advice = "" if problem == IN_CHROOT else " (in a container: run it privileged)"
        raise UserError(f"{what} needs namespaces of its own: {problem}{advice}")
    return status


# The caller's side.


def _read_report(report: int) -> tuple[int, str]:
    """Init's pid (0 if there is none) and what went wrong ("" if nothing). Returns when the function starts."""
    with open(report, encoding="utf-8") as lines:
        answer = dict(line.rstrip("\n").split(" ", 1) for line in lines)
    return int(answer.get("init", 0)), answer.get("problem", "")


@contextlib.contextmanager
def _beside(meanwhile: Callable[[], None] | None) -> Iterator[None]:
    if meanwhile is None:
        yield
        return
    thread = threading.Thread(target=meanwhile, name="meanwhile")
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _relay_until_exit(monitor: int, init: int, woken: int) -> int:
    while True:
        exited, status = os.waitpid(monitor, os.WNOHANG)
        if exited:
            return _exit_status(status)
        for number in os.read(woken, 64):
            if number != signal.SIGCHLD and init:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(init, _relay(number))


def _relay(number: int) -> int:
    """Return the real-time signal that asks init to pass signal `number` on; init alone is sent it."""
    return signal.SIGRTMIN + number


def _exit_status(wait_status: int) -> int:
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else 128 - code


# The monitor's and init's side.


def _monitor(
    function: Callable[[], int],
    caller: int,
    relayed: set[signal.Signals],
    former_mask: set[int | signal.Signals],
    report: int,
) -> NoReturn:
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        die_with_parent(caller)
        unshare(CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC)
        lifeline_read, lifeline_write = os.pipe()
        init = os.fork()
        if init == 0:
            os.close(lifeline_write)
            _init(function, lifeline_read, relayed, former_mask, report)
        os.close(lifeline_read)
        os.write(report, b"init %d\n" % init)
        os.close(report)
        _, wait_status = os.waitpid(init, 0)
        status = _exit_status(wait_status)
    except OSError as error:
        os.write(report, f"problem {error.strerror}\n".encode())
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _init(
    function: Callable[[], int],
    lifeline: int,
    relayed: set[signal.Signals],
    former_mask: set[int | signal.Signals],
    report: int,
) -> NoReturn:
    status = 1
    try:
        die_with_parent()
        ended = select.poll()
        ended.register(lifeline, select.POLLIN)
        if ended.poll(0):
            os._exit(1)  # the monitor died before the kernel knew that we want to go with it
        os.close(lifeline)
        _mount_proc_and_sys()
        loopback_up()
        relays = {_relay(number): number for number in relayed}
        signal.pthread_sigmask(signal.SIG_BLOCK, relays)
        missed = _take_pending(relayed)
        child = os.fork()
        if child == 0:
            os.close(report)
            _call(function, former_mask)
        os.close(report)
        for number in missed:
            os.kill(child, number)
        status = _reap_until_exit(child, relayed, relays)
    except OSError as error:
        os.write(report, f"problem {error.strerror}\n".encode())
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _mount_proc_and_sys() -> None:
    try:
        mount("none", "/", None, MS_REC | MS_PRIVATE)
    except OSError as error:
        raise OSError(error.errno, IN_CHROOT) if error.errno == errno.EINVAL else error from None
    guarded = MS_NOSUID | MS_NODEV | MS_NOEXEC
    mount("proc", "/proc", "proc", guarded)
    # A new sysfs shows the new network namespace; what is mounted below the old one (cgroups) stays visible.
    below = [(path, os.open(path, os.O_PATH)) for path in _mounts_below("/sys")]
    mount("sysfs", "/sys", "sysfs", guarded)
    for path, covered in below:
        if os.path.isdir(path):
            mount(f"/proc/self/fd/{covered}", path, None, MS_BIND | MS_REC)
        os.close(covered)


def _mounts_below(top: str) -> list[str]:
    """Return the mount points under `top`, without those under another of them."""
    mountinfo = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    places = sorted({line.split()[4] for line in mountinfo.splitlines()})  # proc_pid_mountinfo(5)
    outer: list[str] = []
    for place in places:
        if place.startswith(top + "/") and not any(place.startswith(found + "/") for found in outer):
            outer.append(place)
    return outer


def _take_pending(numbers: set[signal.Signals]) -> list[int]:
    taken = []
    while (info := signal.sigtimedwait(numbers, 0)) is not None:
        taken.append(info.si_signo)
    return taken


def _reap_until_exit(child: int, relayed: set[signal.Signals], relays: dict[int, signal.Signals]) -> int:
    """Be pid 1 until `child` ends; return its status. The kernel kills all other processes when pid 1 exits."""
    received_s = dict.fromkeys(relayed, float("-inf"))
    while True:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                return _exit_status(ended[1])
        number = signal.sigwaitinfo({signal.SIGCHLD, *relayed, *relays}).si_signo
        if number in relays:
            if time.monotonic() - received_s[relays[number]] > SAME_SIGNAL_S:
                os.kill(child, relays[number])
        elif number != signal.SIGCHLD:
            received_s[signal.Signals(number)] = time.monotonic()


def _call(function: Callable[[], int], former_mask: set[int | signal.Signals]) -> NoReturn:
    status = 1
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, former_mask)
        status = function()
    except UserError as error:
        print(f"{error.prefix}{error}", file=sys.stderr)
        status = 2
    except ProcessLost as error:
        print(f"gradbed: {error}", file=sys.stderr)
        status = error.status
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    except SystemExit as request:
        if isinstance(request.code, int) or request.code is None:
            status = request.code or 0
        else:
            print(request.code, file=sys.stderr)
    except BaseException as error:
        known = trouble(error)
        if known is not None:
            print(f"{known.prefix}{known}", file=sys.stderr)
            status = 2
        elif nobody_reads(error):
            status = 128 + signal.SIGPIPE
        else:
            traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status & 0xFF)
