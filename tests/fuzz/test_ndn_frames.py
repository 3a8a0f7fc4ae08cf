"""Packets of NDN, whole and damaged, to its routers: names, lengths and parts are random in ways that walks over the
parser's states (test_frames.py) do not come to."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradbed.experiments.systems.ndn.metrics import DROP_REASONS
from gradbed.formats import tlv
from gradbed.formats.tlv import generic
from gradbed.hosts.systems.ndn.packets import VersionHead, data_frame, ethernet, interest_frame, version_frames
from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.program_cache import compiled_files
from tests.fuzz.sanitized import build_driver, entry_for_all, run_driver
from tests.fuzz.sources import ROOT

LANES = 64
HEADER = ethernet(bytes.fromhex("020000000001"))
VERSIONS = (1, 300)
FRAMES = 20_000
NIGHTLY_RUNS, NIGHTLY_FRAMES = 10, 100_000
SEEN = [reason for reason in DROP_REASONS if reason not in ("no_group", "not_ours")]
WORK = ("content_hits", "content_kept", "pending_satisfied", "subscriptions_made", "subscriptions_ended")


def names(rng: random.Random) -> list[tuple[bytes, ...]]:
    """Of gradients few, so that Interests, subscriptions and Data meet."""
    publisher, training = generic(rng.choice("ab")), generic("t")
    numbers = tlv.numbered(tlv.VERSION, rng.choice(VERSIONS)), tlv.numbered(tlv.SEGMENT, rng.randrange(2))
    return [
        *((generic(operation), publisher, training) for operation in ("insert", "delete", "distribute")),
        (training, publisher, *numbers),
        (generic("distribute"), publisher, training, *numbers),
        tuple(generic(rng.randbytes(rng.randrange(36))) for _ in range(rng.randrange(1, 12))),
        tuple(generic(b"") for _ in range(rng.choice([8, 9, 700]))),
    ]


def packets(rng: random.Random) -> list[bytes]:
    """Of every kind that routers treat in its own way."""
    found = []
    for name in names(rng):
        found.append(
            interest_frame(HEADER, name, rng.getrandbits(32), rng.choice([1, 300, 70_000]), rng.random() < 0.3)
        )
        found.append(data_frame(HEADER, name))
        found.append(HEADER + tlv.tlv(0x64, tlv.tlv(rng.choice([0x50, 0x51]), found[-1][len(HEADER) :])))
        found.append(data_frame(HEADER, name, tlv.tlv(tlv.CONTENT, rng.randbytes(rng.randrange(400)))))
    lanes = np.full((2, LANES), rng.getrandbits(20), np.int32)
    for prefix in ((generic("distribute"), generic("a"), generic("t")), (generic("t"), generic("a"))):
        for batch in version_frames(HEADER, prefix, rng.choice(VERSIONS), VersionHead(0.5), lanes):
            found += [frame.tobytes() for frame in batch]
    return found


def with_lies(frame: bytes, rng: random.Random) -> bytes:
    """Bytes that may be types or lengths are other ones."""
    damaged = bytearray(frame)
    for _ in range(rng.randrange(3)):
        damaged[rng.randrange(len(HEADER), min(len(damaged), 80))] = rng.choice([0, 1, 7, 8, 32, 33, 253, 254, 255])
    return bytes(damaged)


def small_router() -> dict[str, Any]:
    """With little memory, so that it is soon full."""
    defines = {"LANES": str(LANES), "CONTENTS": "16", "SUBSCRIPTIONS": "8", "PENDING": "8"}
    program: dict[str, Any] = json.loads(compiled_files(ROOT / "p4src" / "ndn.p4", defines).json.read_text())
    return program


def routing_lines(program: dict[str, Any]) -> list[str]:
    """All names lead somewhere (lines of frames/setup.h)."""
    model = load_program(program)
    return [entry_for_all(model, "fib", "towards", 1), entry_for_all(model, "port_sets", "has_group")]


def check(folder: Path, runs: int, frames: int) -> None:
    """Random frames, in runs with packets of their own."""
    program = small_router()
    driver = build_driver(program, folder)
    everything = routing_lines(program)
    out = 0
    counted: Counter[str] = Counter()
    for seed in range(runs):
        rng = random.Random(seed)
        seeds = [with_lies(frame, rng) for frame in itertools.chain(*(packets(rng) for _ in range(8)))]
        lines = [*everything, *(f"seed {each.hex()}" for each in seeds)]
        out += run_driver(driver, program, seed, frames, walks=0, more=lines, counted=counted)
    # Some 5 % come out: three of five frames are no packets any more once they are damaged, and two of three packets
    # are Data that nobody has asked for.
    assert out > runs * frames / 30
    # Every frame is taken in as a packet, or counted as what is wrong with it; and all parts of a router have work.
    # An Interest whose hop limit is 0 is not taken in, one that has it from this router is: both are dropped for it.
    malformed = (*DROP_REASONS[: DROP_REASONS.index("hop_limit")], "link_header", "not_ours")
    told = counted["ndn_in"] + sum(counted[f"dropped_{reason}"] for reason in malformed)
    assert runs * frames - counted["dropped_hop_limit"] <= told <= runs * frames
    assert all(counted[name] > 0 for name in (*(f"dropped_{reason}" for reason in SEEN), *WORK))


@pytest.mark.thorough
def test_packets_and_damaged_ones(tmp_path: Path) -> None:
    check(tmp_path, 1, FRAMES)


@pytest.mark.nightly
def test_a_million_of_them(tmp_path: Path) -> None:
    check(tmp_path, NIGHTLY_RUNS, NIGHTLY_FRAMES)
