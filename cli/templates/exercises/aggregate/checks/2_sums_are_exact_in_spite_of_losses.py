"""Three workers with windows and timers, on links that lose, duplicate and delay."""

from __future__ import annotations

import random
import struct
from collections import deque

from gradbed.experiments.exercises.bench import Bench, Refusal, ethernet

WORKERS, FRAGMENTS, WINDOW, LANES = 3, 300, 32, 4
LOSS, DUPLICATES, LATE = 0.08, 0.05, 0.05
RESEND_AFTER = 60
"""Steps of the conversation."""
ETHER_TYPE, GRADIENT, SUM = 0x88B6, 1, 2
HEADER = struct.Struct("!BBI4i")
Values = tuple[int, ...]


class Worker:
    """Sends fragment f once it has the sum of f - WINDOW, and again until it has that of f."""

    def __init__(self, number: int, gradient: list[Values]) -> None:
        self.number, self.gradient = number, gradient
        self.sums: dict[int, Values] = {}
        self.sent_at: dict[int, int] = {}
        self.oldest = 1

    def due(self, step: int) -> int | None:
        """A fragment to be sent now."""
        while self.oldest in self.sums:
            self.oldest += 1
        for fragment in range(self.oldest, min(self.oldest + WINDOW, FRAGMENTS + 1)):
            waits = self.sent_at.get(fragment, -RESEND_AFTER) + RESEND_AFTER
            allowed = fragment <= WINDOW or fragment - WINDOW in self.sums
            if fragment not in self.sums and allowed and waits <= step:
                self.sent_at[fragment] = step
                return fragment
        return None

    def frame(self, fragment: int) -> bytes:
        payload = HEADER.pack(GRADIENT, self.number, fragment, *self.gradient[fragment - 1])
        return ethernet(99, self.number + 1, ETHER_TYPE, payload)


def check(bench: Bench) -> None:
    draw = random.Random(1)
    bench.do("mc_mgrp_create 1\nmc_node_create 0 1 2 3\nmc_node_associate 1 0")
    gradients = [
        [tuple(draw.randrange(-(2**29), 2**29) for _ in range(LANES)) for _ in range(FRAGMENTS)]
        for _ in range(WORKERS)
    ]
    right = [tuple(map(sum, zip(*each, strict=True))) for each in zip(*gradients, strict=True)]
    workers = [Worker(n, gradient) for n, gradient in enumerate(gradients)]
    late: deque[tuple[int, int, bytes]] = deque()
    for step in range(20 * FRAGMENTS):
        if all(len(worker.sums) == FRAGMENTS for worker in workers):
            return
        worker = workers[draw.randrange(WORKERS)]
        fragment = worker.due(step)
        arriving = [] if fragment is None else [(worker.number + 1, worker.frame(fragment))]
        if arriving and draw.random() < LOSS:
            arriving.clear()
        elif arriving and draw.random() < DUPLICATES:
            arriving *= 2
        elif arriving and draw.random() < LATE:
            late.append((step + 200, *arriving[0]))  # and a copy of it, long after
        while late and late[0][0] <= step:
            arriving.append(late.popleft()[1:])
        for port, frame in arriving:
            for out, answer in bench.send(port, frame, 10):
                if draw.random() >= LOSS:
                    take(workers, out, answer, right)
    missing = sum(FRAGMENTS - len(worker.sums) for worker in workers)
    raise Refusal(
        "three workers, links that lose 8 % of the packets: every worker gets every sum in the end",
        f"{WORKERS} times {FRAGMENTS} sums",
        f"{missing} are missing: does a worker that asks again get an answer?",
    )


def take(workers: list[Worker], port: int, answer: bytes, right: list[Values]) -> None:
    """A worker gets a packet. Refusal if it is no sum, or a wrong one."""
    if not 1 <= port <= WORKERS:
        raise Refusal("sums leave by the workers' ports", "ports 1 to 3", f"port {port}")
    kind, _, fragment, *values = HEADER.unpack(answer[14 : 14 + HEADER.size])
    if kind != SUM or not 1 <= fragment <= FRAGMENTS:
        raise Refusal("what leaves is a sum", f"kind {SUM}", f"kind {kind} of fragment {fragment}")
    if tuple(values) != right[fragment - 1]:
        raise Refusal(
            f"the sum of fragment {fragment} on links that lose and duplicate",
            f"{right[fragment - 1]}",
            f"{tuple(values)}",
        )
    workers[port - 1].sums.setdefault(fragment, tuple(values))
