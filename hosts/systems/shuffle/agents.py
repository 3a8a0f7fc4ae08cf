"""The agent of a shuffle: a worker, or the master."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gradbed.formats.addresses import ip_integer, mac_bytes
from gradbed.formats.shuffle import CODED_PORT, COMPONENTS, MULTICAST_MAC, REQUEST_BITS
from gradbed.hosts.agents.context import AgentContext, Interface, drain
from gradbed.hosts.protocols.frames import Frames
from gradbed.hosts.systems.shuffle.coded_frames import Packer, Parsed
from gradbed.hosts.systems.shuffle.config import ShuffleConfig
from gradbed.hosts.systems.shuffle.reception import SampleReception
from gradbed.hosts.systems.shuffle.samples import (
    DigitSamples,
    Fragments,
    SampleSource,
    Store,
    cut,
    digest,
    in_base64,
    original,
)
from gradbed.hosts.systems.shuffle.sending import Sending


def prepare(config: ShuffleConfig) -> None:
    """Load the data set once for all workers of this machine."""
    if isinstance(config.source, DigitSamples):
        config.source.sizes_bytes(1)


def worker(context: AgentContext, config: ShuffleConfig) -> None:
    """Emits ready; begun; shuffled (begun_us, shuffled_us, waits_us) once it has sent and decoded everything; at the
    end final with statistics, after it has deleted what it is not to keep."""
    with context.open(udp_port=CODED_PORT) as interface:
        interface.join(mac_bytes(MULTICAST_MAC))
        store = Store(config.fragment_bytes)
        for sample in config.stored:
            size_bytes = config.sizes_bytes[sample]
            store.put(sample, _fragments(config.source, sample, size_bytes, config.fragment_bytes))
        # All is made before: workers that share a processor are to begin together.
        made = _ShuffleWorker(context, config, interface, store)
        context.emit("ready")
        if context.wait_for_begin():
            made.run()


@functools.lru_cache(maxsize=1 << 14)
def _fragments(source: SampleSource, sample: int, size_bytes: int, fragment_bytes: int) -> Fragments:
    """Return the fragments of a sample. On the virtual clock the workers that store it share them."""
    fragments = cut(original(source, sample, size_bytes), fragment_bytes)
    fragments.flags.writeable = False
    return fragments


class _ShuffleWorker:
    def __init__(self, context: AgentContext, config: ShuffleConfig, interface: Interface, store: Store) -> None:
        self._context = context
        self._config = config
        self._interface = interface
        self._store = store
        self._begun_us = 0
        own = config.workers[config.index]
        self._packer = Packer(config.job, config.index, own, config.bits, config.fragment_bytes)
        self._ips = [ip_integer(each.ip) for each in config.workers]
        self._reception = SampleReception(config, store, context.compute)
        self._sending = Sending(config, store, self._reception, self._packer, self._send, context.compute)
        self._reported = False
        self._statistics = {"requests": 0, "foreign": 0, "send_failures": 0}

    def _send(self, frames: Frames) -> None:
        self._statistics["send_failures"] += len(frames) - self._interface.send(frames)

    def run(self) -> None:
        context = self._context
        self._begun_us = context.now_us()
        self._reception.begin(self._begun_us)
        self._sending.begin(self._begun_us)
        context.emit("begun")
        while not context.stopped:
            while self._receive() is not None:
                pass
            self._sending.work(context.now_us())
            self._ask()
            self._tell_when_done()
            now_us = context.now_us()
            times = (self._sending.deadline_us(now_us), self._reception.deadline_us)
            context.wait(min((time for time in times if time is not None), default=None))
        drain(context, self._receive)
        lent = self._store.lent
        self._store.keep(self._config.keep)
        contents = self._store.contents(dict(self._config.sizes_bytes))
        tell = self._config.tell_contents
        context.emit(
            "final",
            statistics={
                **self._statistics,
                "placement": {str(sample): digest(held) for sample, held in sorted(contents.items())},
                **({"contents": {str(sample): in_base64(held) for sample, held in contents.items()}} if tell else {}),
                "complete": self._reported,
                "borrowed": self._store.borrowed,
                "lent_left": lent,
                "decoded": self._reception.decoded,
                "duplicates": self._reception.duplicates,
                "misdirected": self._reception.misdirected,
                "useless_repairs": self._reception.useless_repairs,
                "repairs": self._sending.repairs,
                "coded_repairs": self._sending.coded_repairs,
                "late_requests": self._sending.late_requests,
            },
        )

    def _receive(self) -> object | None:
        """Take in one batch; None: nothing waits."""
        buffer, lengths = self._interface.receive()
        if not len(lengths):
            return None
        config = self._config
        parsed = Parsed(buffer, lengths, config.job, config.bits, config.fragment_bytes)
        self._statistics["foreign"] += parsed.foreign
        now_us = self._context.now_us  # decoding takes time
        for frames in (parsed.scheduled, parsed.repairs, parsed.requests):
            for worker in set(frames["bfir_id"].tolist()):
                self._reception.heard(worker - 1)
        for frame in parsed.scheduled:
            self._reception.take_scheduled(
                int(frame["bfir_id"]) - 1,
                int(frame["transmission"]),
                int(frame["fragment"]),
                frame["payload"],
                now_us(),
            )
        for frame in parsed.repairs:
            count = min(int(frame["count"]), COMPONENTS)
            components = [(int(sample), int(fragment)) for sample, fragment in frame["components"][:count]]
            self._reception.take_repair(components, frame["payload"], now_us())
        for frame in parsed.requests:
            missing = np.flatnonzero(np.unpackbits(frame["missing"])) + int(frame["fragment"])
            self._sending.request(
                int(frame["bfir_id"]) - 1,
                int(frame["transmission"]),
                int(frame["sample"]),
                missing.tolist(),
                now_us(),
            )
        return parsed

    def _ask(self) -> None:
        for told, whom, missing in self._reception.asking(self._context.now_us()):
            first = int(np.argmax(missing))
            self._statistics["requests"] += 1
            self._send(
                self._packer.request(
                    told.wanted,
                    missing[first : first + REQUEST_BITS],
                    fragment=first,
                    transmission=told.number,
                    dst_ip=self._ips[whom],
                )
            )

    def _tell_when_done(self) -> None:
        if not self._reported and self._reception.complete and self._sending.complete:
            self._reported = True
            waits: dict[str, Any] = {str(number): wait for number, wait in self._sending.waits_us.items()}
            self._context.emit(
                "shuffled", begun_us=self._begun_us, shuffled_us=self._context.now_us(), waits_us=waits
            )
