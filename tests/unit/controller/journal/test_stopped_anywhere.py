"""What is left when a controller is killed, put to sleep or refused at any of its system calls.

The judge is the file, and a successor that reads it: a job is there or it is not, and what was answered is there.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.controller.core.controller import Controller
from gradbed.controller.core.jobs import Journal
from gradbed.controller.core.term import Superseded, Term, take_charge
from gradbed.controller.planning.plan import Plan
from gradbed.topo.generators import star
from tests.unit.controller.fake_southbound import FakeSouthbound
from tests.unit.controller.journal.traced import Traced, on_x86_64
from tests.unit.controller.lamps import LAMPS

TOPOLOGY = star(2)
Tell = Callable[[bytes], None]

FIRST, SECOND = {"switch": "s1", "lamp": 0}, {"switch": "s1", "lamp": 1}


class Telling(FakeSouthbound):
    """Tells which job numbers a switch has heard of."""

    def __init__(self, tell: Tell = lambda text: None) -> None:
        super().__init__([switch.name for switch in TOPOLOGY.switches])
        self._tell = tell

    def apply(self, plan: Plan) -> None:
        super().apply(plan)
        for entry in plan["s1"].entries:
            if entry.table == "lamps":
                self._tell(b"heard %d\n" % entry.match["job"])


def controller(journal: Path, tell: Tell = lambda text: None) -> Controller:
    programs = {switch.name: "lamps" for switch in TOPOLOGY.switches}
    return Controller(TOPOLOGY, Telling(tell), [LAMPS], programs, journal=Journal(journal))


def lamps(journal: Path) -> list[int]:
    """Of the jobs that a successor takes over."""
    return [job.state.lamp for job in controller(journal).jobs()]


def next_number(journal: Path) -> int:
    return controller(journal).add_job("lamps", {"switch": "s1", "lamp": 3}).number


def prepared(folder: Path, count: int) -> Iterator[Path]:
    """Journals with one job, one after the other."""
    for number in range(count):
        place = folder / str(number)
        place.mkdir()
        controller(place / "jobs.json").add_job("lamps", FIRST)
        yield place / "jobs.json"


def adds(journal: Path) -> Callable[[Tell], None]:
    """A controller that is asked for a second job."""
    lights = controller(journal)

    def work(tell: Tell) -> None:
        lights.southbound = Telling(tell)
        try:
            lights.add_job("lamps", SECOND)
            tell(b"done\n")
        except UserError as error:
            tell(b"refused\n" if "cannot write the journal" in str(error) else b"what?\n")

    return work


def deletes(journal: Path) -> Callable[[Tell], None]:
    lights = controller(journal)

    def work(tell: Tell) -> None:
        try:
            lights.delete_job("lamps", 1)
            tell(b"done\n")
        except UserError:
            tell(b"refused\n")

    return work


MAX_STOPS = 400

CASES = pytest.mark.parametrize(
    ("asked", "before", "after"), [(adds, [0], [0, 1]), (deletes, [0], [])], ids=["adds", "deletes"]
)
Asked = Callable[[Path], Callable[[Tell], None]]


@pytest.mark.thorough
@CASES
def test_killed_at_any_system_call(asked: Asked, before: list[int], after: list[int], tmp_path: Path) -> None:
    seen, stops = set(), 0
    for stops, journal in enumerate(prepared(tmp_path, MAX_STOPS)):
        with Traced(asked(journal)) as process:
            alive = all(process.step() for _ in range(stops))
            if alive:
                process.kill()
            told = process.told()
        found = lamps(journal)
        assert found in (before, after), stops
        if b"done" in told:
            assert found == after, stops
        if b"heard 2" in told:
            assert next_number(journal) > 2, stops
        seen.add((found == after, b"done" in told))
        if not alive:
            break
    # It ended by itself at last, and was killed in each of the three states.
    assert seen == {(False, False), (True, False), (True, True)}
    assert 20 < stops < MAX_STOPS - 1


@pytest.mark.thorough
@on_x86_64
@CASES
@pytest.mark.parametrize(
    "error",
    # Nothing tells one error from another.
    [pytest.param(errno.ENOSPC, id="full"), pytest.param(errno.EIO, id="broken", marks=pytest.mark.nightly)],
)
def test_refused_at_any_system_call(
    asked: Asked, before: list[int], after: list[int], error: int, tmp_path: Path
) -> None:
    outcomes = set()
    for stops, journal in enumerate(prepared(tmp_path, MAX_STOPS)):
        with Traced(asked(journal)) as process:
            alive = all(process.step() for _ in range(2 * stops + 1))
            if alive and process.call() in FILE_CALLS:
                process.fail(error)
            process.go_on()
            told = process.told().split(b"\n")
            assert process.exit_status == 0, stops
        answer = told[-2] if len(told) > 1 else b""
        # One that could not even tell (its pipe was refused) is none of these.
        assert lamps(journal) == {b"done": after, b"refused": before}[answer], (stops, told)
        assert not (journal.parent / "jobs.json.new").exists() or answer == b"refused"
        outcomes.add(answer)
        if not alive:
            break
    assert outcomes == {b"done", b"refused"}
    assert 10 < stops < MAX_STOPS - 1


# Those of x86-64 by which files are made, renamed and removed (arch/x86/entry/syscalls/syscall_64.tbl): close, lseek,
# ioctl, fsync, fdatasync, rename, unlink, openat, newfstatat, unlinkat, renameat, renameat2. Of write see below.
FILE_CALLS = {3, 8, 16, 74, 75, 82, 87, 257, 262, 263, 264, 316}


@pytest.mark.thorough
@CASES
def test_a_disk_that_is_full_anywhere_in_a_record(
    asked: Asked, before: list[int], after: list[int], tmp_path: Path
) -> None:
    """The kernel cuts the write short: files may have so many bytes and not one more (RLIMIT_FSIZE)."""
    outcomes = []
    for step, journal in enumerate(prepared(tmp_path, MAX_STOPS)):
        room = STEP_BYTES * step
        answer = with_room(room, asked(journal))
        outcomes.append(answer)
        assert lamps(journal) == {b"done": after, b"refused": before}[answer], room
        assert os.listdir(journal.parent) == ["jobs.json"], "what could not be written takes no room"
        if answer == b"done":
            break
    assert outcomes[0] == b"refused"
    assert outcomes[-1] == b"done"


STEP_BYTES = 7


def with_room(room: int, work: Callable[[Tell], None]) -> bytes:
    """What it says in the end where files have so many bytes."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        work(lambda text: _ignore(os.write(writing, text)))
        os._exit(0)
    os.close(writing)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with open(reading, "rb") as pipe:
        return pipe.read().splitlines()[-1]


def _ignore(_written: int) -> None: ...


def test_a_record_that_was_torn_is_not_read(tmp_path: Path) -> None:
    """Every prefix of what a predecessor was writing lies beside the journal. Every prefix in its place, which no
    process leaves, is a line for people, or the whole."""
    (journal,) = prepared(tmp_path, 1)
    before = journal.read_bytes()
    controller(journal).add_job("lamps", SECOND)
    after = journal.read_bytes()
    draft = journal.with_name("jobs.json.new")
    for length in range(len(after) + 1):
        journal.write_bytes(before)
        draft.write_bytes(after[:length])
        assert lamps(journal) == [0]
        journal.write_bytes(after[:length])
        try:
            assert lamps(journal) == [0, 1]
            assert after[length:].strip() == b""
        except UserError as error:
            assert "is no journal of a controller" in str(error)
            assert "\n" not in str(error)


@pytest.mark.thorough
def test_a_claim_that_is_killed_at_any_system_call(tmp_path: Path) -> None:
    """The next one is in charge of the same jobs, once and without waiting."""
    for stops in range(MAX_STOPS):
        folder = tmp_path / str(stops)
        if stops % 2:
            term = take_charge(folder)
            controller(term.journal).add_job("lamps", FIRST)
            term.end()
        with Traced(partial(claims, folder)) as process:
            alive = all(process.step() for _ in range(stops))
            if alive:
                process.kill()
        term = take_charge(folder)
        assert lamps(term.journal) == ([0] if stops % 2 else [])
        assert os.listdir(folder) == [str(term.number)]
        term.end()
        if not alive:
            break
    assert 20 < stops < MAX_STOPS - 1


def claims(folder: Path, tell: Tell) -> None:
    take_charge(folder)
    tell(b"in charge\n")


def adds_and_bids(lights: Controller, term: Term, tell: Tell) -> None:
    try:
        lights.add_job("lamps", SECOND)
        tell(b"done\n")
    except UserError:
        tell(b"refused\n")
    try:
        term.election_id(0)
        tell(b"may bid\n")
    except Superseded:
        tell(b"may not bid\n")


@pytest.mark.thorough
def test_one_that_slept_at_any_system_call_writes_no_more(tmp_path: Path) -> None:
    """It goes on when another one is in charge: its job is in the successor's journal from the beginning, and done,
    or it never is, and is refused."""
    outcomes = set()
    for stops in range(MAX_STOPS):
        folder = tmp_path / str(stops)
        term = take_charge(folder)
        lights = controller(term.journal)
        lights.add_job("lamps", FIRST)

        with Traced(partial(adds_and_bids, lights, term)) as process:
            alive = all(process.step() for _ in range(stops))
            # The lock of this process goes; the child has it, and does not move.
            term.end()
            successor = take_charge(folder, timeout_s=0)
            taken_over = lamps(successor.journal)
            # One record alone: a second one would put right what the sleeper did to the first.
            controller(successor.journal).delete_job("lamps", 1)
            if alive:
                process.go_on()
            told = process.told()
        assert lamps(successor.journal) == taken_over[1:], stops
        if b"done" in told:
            assert taken_over == [0, 1], stops
        if alive:
            outcomes.add(told.splitlines()[0])
        if b"may bid" in told:
            assert taken_over == [0, 1], stops
        successor.end()
        if not alive:
            break
    assert outcomes == {b"done", b"refused"}
