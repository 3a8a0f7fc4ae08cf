"""Which of several controllers with one journal is in charge: the one whose term it is.

    JOURNAL/NUMBER/           the term; its number is higher than all before
        jobs.json             the journal (jobs.py)
        NUMBER.alive          locked by the process in charge, which touches it a few times a second

Who takes charge renames the folder of the term before to its own. The kernel lets one of several do that, and from
then on nothing that another one writes arrives: its paths have gone. So nobody has to trust a lock or a clock for the
journal to have one writer. These only tell when to take charge: at once when the process in charge has ended, whose
lock goes with it, and after STANDBY_TIMEOUT_S when it stands still. A predecessor that goes on then can change
neither the journal nor the switches, where its election id is the lower one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from gradbed.common.errors import UserError

HEARTBEAT_S = 0.25
STANDBY_TIMEOUT_S = 1.5
"""Without a heartbeat, before another one takes charge."""
POLL_S = 0.05
_MOST_SILENCE_S = 2 * POLL_S
"""Between two looks. Who looks later has not run itself, and the one in charge may not have either."""
_LOOKS_FOR_A_TERM = 20

_logger = logging.getLogger(__name__)


class Superseded(UserError):
    """Raised when another controller has taken charge."""


class Term:
    """The term of a controller that is in charge, as far as it knows (see `take_charge`).

    Args:
        number: Higher than those of all terms before; nanoseconds since 1970 unless the clock was set back.
        folder: The term's folder. A successor finds what is written there by its path, and writing fails once there
            is one.
        lock: File descriptor of the lock on the sign of life.
    """

    def __init__(self, number: int, folder: Path, lock: int) -> None:
        self.number = number
        self.folder = folder
        self._lock = lock
        self._ended = threading.Event()

    @property
    def journal(self) -> Path:
        return self.folder / "jobs.json"

    def election_id(self, at_least: int) -> int:
        """Return the election id to be primary with at a switch, higher than in all terms before.

        Raises:
            Superseded: Another controller is in charge.
        """
        bid = max(self.number, at_least, time.time_ns())
        # Not earlier: a controller that takes charge after this bids later, and so higher.
        self.beat()
        return bid

    def beat(self) -> None:
        """Show that this controller is alive; Superseded, OSError."""
        try:
            os.utime(_sign(self.folder))
        except FileNotFoundError:
            raise Superseded(
                "another controller has taken charge of the switches: this one ends, start it again to stand by"
            ) from None

    def keep(self, lost: Callable[[Superseded], None]) -> None:
        """Beat from a thread of its own until `end`; `lost` is called there if another one takes charge."""
        threading.Thread(target=self._keep, args=(lost,), name="term", daemon=True).start()

    def end(self) -> None:
        """Let the next one take charge at once."""
        self._ended.set()
        os.close(self._lock)

    def _keep(self, lost: Callable[[Superseded], None]) -> None:
        while not self._ended.wait(HEARTBEAT_S):
            try:
                self.beat()
            except Superseded as error:
                lost(error)
                return
            except OSError as error:
                _logger.warning("cannot show that this controller is alive: %s", error)


def take_charge(
    journal: Path, standing_by: Callable[[], None] = lambda: None, timeout_s: float = STANDBY_TIMEOUT_S
) -> Term:
    """Wait until no other controller is in charge, or gave a sign of life for so long, and be. `standing_by` is
    called once if there is one.

    journal: the folder that all of them have; made if it is not there. UserError if it is none or cannot be written.
    """
    try:
        return _take_charge(journal, standing_by, timeout_s)
    except OSError as error:
        raise UserError(f"cannot write the journal {journal}: {error.strerror}") from None


def _take_charge(journal: Path, standing_by: Callable[[], None], timeout_s: float) -> Term:
    # An open file and when it was touched, as this process saw it change: clocks of files are not compared with ours.
    last: tuple[int, int] | None = None
    silent_s, looked_s = 0.0, time.monotonic()
    waiting = False
    while True:
        held = _current(journal)
        found, locked = _look(_sign(journal / str(held)))
        now_s = time.monotonic()
        silent_s += min(now_s - looked_s, _MOST_SILENCE_S)
        looked_s = now_s
        if (held, found) != last:
            last, silent_s = (held, found), 0.0
        if not locked or silent_s >= timeout_s:
            if (term := _claim(journal, held)) is not None:
                return term
            continue
        if not waiting:
            waiting = True
            standing_by()
        time.sleep(POLL_S)


def _current(journal: Path) -> int:
    """Return the number of the present term; 0, which no term has, for a new journal."""
    for _ in range(_LOOKS_FOR_A_TERM):
        with contextlib.suppress(FileNotFoundError):
            numbers = [int(name) for name in os.listdir(journal) if name.isdecimal()]
            if numbers:
                return max(numbers)
        # A folder that is being renamed may be missed, too; then nothing is made.
        _make(journal)
    raise UserError(f"{journal} is no journal of a controller: remove it to start afresh")


def _make(journal: Path) -> None:
    """Make the journal with its first term in it, once, even if several processes try at the same time."""
    draft = Path(tempfile.mkdtemp(prefix=f"{journal.name}.", dir=journal.parent))
    try:
        (draft / "0").mkdir()
        draft.rename(journal)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def _sign(folder: Path) -> Path:
    return folder / f"{folder.name}.alive"


def _look(sign: Path) -> tuple[int, bool]:
    """Return when it was touched last, in nanoseconds, and whether a process has it locked."""
    try:
        file = os.open(sign, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0, False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return 0, False
    except BlockingIOError:
        return os.fstat(file).st_mtime_ns, True
    finally:
        os.close(file)


def _claim(journal: Path, held: int) -> Term | None:
    """Claim the next term; None if another process was faster."""
    before, folder = journal / str(held), journal / str(max(held + 1, time.time_ns()))
    sign = before / _sign(folder).name
    try:
        # It comes into the term with its folder, so that no process sees a term without it.
        lock = os.open(sign, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        before.rename(folder)
    except FileNotFoundError:
        os.close(lock)
        return None
    except OSError:
        os.close(lock)
        with contextlib.suppress(OSError):
            sign.unlink()
        raise
    for other in folder.glob("*.alive"):
        if other != _sign(folder):
            other.unlink(missing_ok=True)
    return Term(int(folder.name), folder, lock)
