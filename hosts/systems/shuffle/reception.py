"""The receiving side: packets become samples as soon as they can be decoded, and what is missing is asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.hosts.systems.shuffle.config import PlannedReception, ShuffleConfig
from gradbed.hosts.systems.shuffle.samples import Fragments, Store

CONSTANT_TIMEOUTS, MOST_DOUBLINGS = 4, 3
"""What is asked for so often at equal distances is lost again, not late; only then the distances double, but not far:
where each of six links loses 20 %, one of 15 questions is answered."""

UNANSWERED = 4
"""So often in turn one holder of a sample is asked; then it may have stopped, and the next one is."""

Compute = Callable[[Callable[[], Fragments]], Fragments]
"""gradbed.hosts.agents.context.AgentContext.compute."""


@dataclass
class _Arriving:
    """A transmission of which something may still be missing."""

    told: PlannedReception
    plain: NDArray[np.uint8]
    """Fragments of the wanted sample, valid where `have` is set."""
    have: NDArray[np.bool_]
    coded: dict[int, NDArray[np.uint8]] = field(default_factory=dict)
    """Fragments that cannot be decoded yet."""
    overtaken_us: int | None = None
    """When something came that its sender sent later."""
    asked: int = 0
    asked_us: int = 0
    unanswered: int = 0
    """How often it was asked for since something of it came."""
    unanswered_since_us: int = 0

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Fragments that have come in no form, shape (fragments,)."""
        found = ~self.have
        found[list(self.coded)] = False
        return found

    @property
    def is_silent(self) -> bool:
        """Return whether nothing has come for several requests."""
        return self.unanswered >= UNANSWERED

    @property
    def asked_worker(self) -> int:
        """Whom to ask now."""
        return self.told.asked[self.unanswered // UNANSWERED % len(self.told.asked)]


class SampleReception:
    """Everything that comes to one worker. compute: does what takes the worker's processor some time."""

    def __init__(self, config: ShuffleConfig, store: Store, compute: Compute) -> None:
        self._config = config
        self._store = store
        self._compute = compute
        self._begun_us = self._news_us = 0
        fragment_bytes = config.fragment_bytes
        self._arriving = {}
        self._of_sender: defaultdict[int, list[_Arriving]] = defaultdict(list)
        for told in sorted(config.incoming, key=lambda told: told.place):
            fragments = config.fragments(told.wanted)
            arriving = _Arriving(told, np.zeros((fragments, fragment_bytes), np.uint8), np.zeros(fragments, bool))
            self._arriving[told.number] = arriving
            self._of_sender[told.sender].append(arriving)
        self._open = dict(self._arriving)
        self._probed_us: dict[int, int] = {}
        """By worker from whom nothing comes: when it was asked last, for whichever transmission."""
        self.decoded = 0
        self.duplicates = 0
        self.misdirected = 0
        self.useless_repairs = 0

    def begin(self, now_us: int) -> None:
        """Senders begin now."""
        self._begun_us = self._news_us = now_us

    @property
    def complete(self) -> bool:
        """Return whether all that the worker needs is there, and nothing is expected any more."""
        return not self._open

    def has(self, transmission: int) -> bool:
        """Return whether a transmission to this worker has come and was decoded."""
        return transmission in self._arriving and transmission not in self._open

    def heard(self, worker: int) -> None:
        """Something has come from this one."""
        self._probed_us.pop(worker, None)

    def take_scheduled(
        self, sender: int, transmission: int, fragment: int, payload: NDArray[np.uint8], now_us: int
    ) -> None:
        """A packet of a transmission. payload is kept, so it must not change."""
        known = self._arriving.get(transmission)
        if known is None or known.told.sender != sender:
            self.misdirected += 1
            return
        self._note_order(known, fragment, now_us)
        arriving = self._open.get(transmission)
        if arriving is None or fragment >= len(arriving.have):
            # Beyond the end of the wanted sample others' go on.
            self.duplicates += arriving is None and fragment < len(known.have)
            return
        if arriving.have[fragment] or fragment in arriving.coded:
            self.duplicates += 1
            return
        self._news_us = now_us
        arriving.unanswered = 0
        arriving.coded[fragment] = payload
        self._decode(arriving)

    def take_repair(self, components: Sequence[tuple[int, int]], payload: NDArray[np.uint8], now_us: int) -> None:
        """The sum of these fragments (sample, fragment): of use where all but one are known."""
        fragments = {each: self._store.fragment(*each) for each in components}
        unknown = [each for each, held in fragments.items() if held is None]
        if len(unknown) != 1:
            self.useless_repairs += 1
            return
        ((sample, fragment),) = unknown
        known = [held for held in fragments.values() if held is not None]
        wanting = [
            each
            for each in self._open.values()
            if each.told.wanted == sample and fragment < len(each.have) and not each.have[fragment]
        ]
        self.useless_repairs += not wanting
        total = self._compute(lambda: np.bitwise_xor.reduce([payload, *known])) if known and wanting else payload
        for arriving in wanting:
            self._news_us = now_us
            arriving.unanswered = 0
            arriving.plain[fragment] = total
            arriving.have[fragment] = True
            arriving.coded.pop(fragment, None)
            self._decode(arriving)

    def _note_order(self, came: _Arriving, fragment: int, now_us: int) -> None:
        for arriving in self._of_sender[came.told.sender]:
            if arriving.told.place > came.told.place:
                return
            if arriving.overtaken_us is None and arriving.told.number in self._open:
                before = len(arriving.have) if arriving is not came else fragment
                if arriving.missing[:before].any():
                    arriving.overtaken_us = now_us

    def _decode(self, arriving: _Arriving) -> None:
        """Decode a transmission once it has come, if all its other samples are there."""
        told = arriving.told
        if arriving.missing.any():
            return
        if arriving.coded:
            others = [self._store.find(sample, told.number) for sample in told.samples if sample != told.wanted]
            known = [other for other in others if other is not None]
            if len(known) < len(others):
                return
            came = np.array(sorted(arriving.coded))
            payload = np.stack([arriving.coded[fragment] for fragment in came.tolist()])
            arriving.plain[came] = self._compute(lambda: decoded(payload, came, known)) if known else payload
            arriving.have[came] = True
            arriving.coded.clear()
        self._finish(arriving)

    def _finish(self, arriving: _Arriving) -> None:
        """Put the sample, which is whole, where it belongs, and decode what has waited for it."""
        told = arriving.told
        if told.number not in self._open:
            return
        del self._open[told.number]
        self.decoded += 1
        if told.lent_for is None:
            self._store.put(told.wanted, arriving.plain)
            self._end_loans_for(told.number)
        else:
            self._store.lend(told.wanted, arriving.plain, told.lent_for)
        for waiting in list(self._open.values()):
            if waiting.coded:
                self._decode(waiting)

    def _end_loans_for(self, transmission: int) -> None:
        """End the loans for a decoded transmission: what was lent goes, and what has not come is not needed."""
        self._store.give_back(transmission)
        for number, other in list(self._open.items()):
            if other.told.lent_for == transmission:
                del self._open[number]

    # ---- What is missing ----

    def _due_us(self, arriving: _Arriving) -> int:
        """Return when to ask for what is missing of it (again)."""
        planned_us = self._begun_us + arriving.told.planned_us
        silent_us = max(self._news_us, planned_us)
        since_us = silent_us if arriving.overtaken_us is None else min(silent_us, arriving.overtaken_us)
        wait_us = self._config.timeout_us << min(max(0, arriving.asked - CONSTANT_TIMEOUTS), MOST_DOUBLINGS)
        asked_us = arriving.asked_us
        if arriving.is_silent:
            # It may have stopped: what is wanted of it takes turns.
            asked_us = max(asked_us, self._probed_us.get(arriving.asked_worker, 0))
        return max(since_us, asked_us) + wait_us

    def asking(self, now_us: int) -> Iterator[tuple[PlannedReception, int, NDArray[np.bool_]]]:
        """Yield what to ask for now: the transmission, the worker to ask, and which fragments are missing.

        Counts as asked.

        UserError where nothing has come of a transmission for give_up_us, whoever was asked.
        """
        for arriving in sorted(self._open.values(), key=lambda each: each.asked_us if each.is_silent else -1):
            missing = arriving.missing
            # What has come and cannot be decoded waits for a loan, which is asked for itself.
            if missing.any() and self._due_us(arriving) <= now_us:
                self._give_up_or_go_on(arriving, now_us)
                whom = arriving.asked_worker
                if arriving.is_silent:
                    self._probed_us[whom] = now_us
                arriving.asked += 1
                arriving.unanswered += 1
                arriving.asked_us = now_us
                arriving.overtaken_us = None
                yield arriving.told, whom, missing

    def _give_up_or_go_on(self, arriving: _Arriving, now_us: int) -> None:
        if not arriving.unanswered:
            arriving.unanswered_since_us = now_us
        elif now_us - arriving.unanswered_since_us >= self._config.give_up_us:
            asked = " and ".join(self._config.workers[worker].name for worker in sorted(arriving.told.asked))
            raise UserError(
                f"sample {arriving.told.wanted} does not come, though {asked} should have it and was asked "
                f"{arriving.unanswered} times: did that worker stop?"
            )

    @property
    def deadline_us(self) -> int | None:
        """Return when `asking` has something at the earliest, if nothing comes; None: never."""
        return min((self._due_us(each) for each in self._open.values() if each.missing.any()), default=None)


def decoded(coded: Fragments, numbers: NDArray[np.int64], known: Sequence[Fragments]) -> Fragments:
    """Return the one sample of a sum that is not known. coded: some of its fragments, with these numbers."""
    found = coded.copy()
    for other in known:
        within = numbers < len(other)
        found[within] ^= other[numbers[within]]
    return found
