"""A thousand Interests and data, in any order, against what a pending Interest table is."""

from __future__ import annotations

import random
import struct
from collections import defaultdict

from gradbed.experiments.exercises.bench import Bench, ethernet

PACKETS, NAMES, FACES, UPSTREAM = 1500, 40, (1, 2, 3), 4
ETHER_TYPE, INTEREST, DATA = 0x8624, 1, 2


def named(kind: int, name: int, payload: bytes = b"") -> bytes:
    return ethernet(10, 1, ETHER_TYPE, struct.pack("!BI", kind, name) + payload)


def check(bench: Bench) -> None:
    for node, bits in enumerate(range(1, 8)):
        ports = " ".join(str(face) for face in FACES if bits >> (face - 1) & 1)
        bench.do(f"mc_mgrp_create {bits}\nmc_node_create 0 {ports}\nmc_node_associate {bits} {node}")
    bench.do(f"add fib hdr.named.name:0x00000000/22 ask(face:{UPSTREAM})")
    draw = random.Random(1)
    names = draw.sample(range(1024), NAMES)
    waiting: dict[int, set[int]] = defaultdict(set)
    for number in range(PACKETS):
        name = draw.choice(names)
        before = sorted(waiting[name])
        told = f"name {name}, for which {f'faces {before} wait' if before else 'nobody waits'}"
        if draw.random() < 0.7:
            face = draw.choice(FACES)
            frame = named(INTEREST, name)
            goes_on = not before or face in before
            waiting[name].add(face)
            bench.expect(f"face {face} asks for {told}", face, frame, *([(UPSTREAM, frame)] if goes_on else []))
        else:
            frame = named(DATA, name, struct.pack("!I", number))
            waiting[name].clear()
            bench.expect(f"data of {told}", UPSTREAM, frame, *[(face, frame) for face in before])
