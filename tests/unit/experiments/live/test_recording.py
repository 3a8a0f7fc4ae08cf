"""Recordings are bounded, and what is left out of them was said again."""

from __future__ import annotations

import gzip
import json
import random
import tracemalloc
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.live.recording import FILE, MOST, VERSION, Recording, recordings

BEGIN = {"kind": "begin", "version": VERSION, "t_us": 0}
LONG_LINE = json.dumps({**BEGIN, "title": "x" * 1_000_000}).encode() + b"\n"
"""Of the file's limit a hundredth part."""


def full(frames: int, seed: int = 1) -> tuple[Recording, dict[str, list[int]]]:
    """A recording of so many frames in which few of 40 directions change, and what they have come to."""
    draw = random.Random(seed)
    recording, state = Recording(), dict[str, list[int]]()
    recording.add(BEGIN)
    for number in range(frames):
        changed = {}
        for direction in draw.sample(range(40), draw.randrange(4)):
            before = state.get(str(direction), [0, 0, 0, 0])
            state[str(direction)] = changed[str(direction)] = [before[0] + 1, before[1] + 1500, 0, draw.randrange(9)]
        recording.add({"kind": "frame", "t_us": number, "links": changed})
    return recording, state


def replayed(recording: Recording) -> dict[str, list[int]]:
    state: dict[str, list[int]] = {}
    for row in recording.of("frame"):
        state |= row["links"]
    return state


@pytest.mark.parametrize("frames", [100, 2001, 9000])
def test_frames_are_bounded_and_their_sum_stays(frames: int) -> None:
    recording, state = full(frames)
    kept = recording.of("frame")
    assert len(kept) <= MOST["frame"]
    assert len(kept) >= min(frames, MOST["frame"] // 2)
    assert kept[-1]["t_us"] == frames - 1
    assert replayed(recording) == state


def test_every_kept_frame_says_what_all_before_it_had_come_to() -> None:
    """Also where frames between have gone."""
    recording, _ = full(5000)
    whole = {}
    state: dict[str, list[int]] = {}
    draw = random.Random(1)
    for number in range(5000):
        for direction in draw.sample(range(40), draw.randrange(4)):
            before = state.get(str(direction), [0, 0, 0, 0])
            state[str(direction)] = [before[0] + 1, before[1] + 1500, 0, draw.randrange(9)]
        whole[number] = dict(state)
    state = {}
    for row in recording.of("frame"):
        state |= row["links"]
        assert state == whole[row["t_us"]]


def test_values_keep_whole_rounds() -> None:
    recording = Recording()
    for round_number in range(3000):
        for agent in range(8):
            row = {"phase": "p", "job": 1, "name": "loss", "round": round_number, "value": agent}
            recording.add({"kind": "value", "t_us": round_number, **row})
    kept = recording.of("value")
    assert len(kept) <= MOST["value"]
    by_round: dict[int, int] = {}
    for row in kept:
        by_round[row["round"]] = by_round.get(row["round"], 0) + 1
    assert set(by_round.values()) == {8}
    assert max(by_round) == 2999


def test_large_rows_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradbed.experiments.live.recording.MOST_BYTES", 100_000)
    recording = Recording()
    for number in range(300):
        row = {"kind": "packets", "t_us": number, "link": 1, "packets": ["f" * 3000]}
        recording.add(row)
    kept = recording.of("packets")
    assert sum(len(json.dumps(row)) for row in kept) <= 100_000
    assert kept[-1]["t_us"] == 299


def test_what_is_saved_is_loaded_in_the_order_of_telling(tmp_path: Path) -> None:
    recording, state = full(50)
    recording.add({"kind": "event", "t_us": 51, "text": "a link failed", "level": "fault"})
    recording.save(tmp_path / FILE)
    found = Recording.load(tmp_path / FILE)
    assert [each.row for each in found.after(0)] == [each.row for each in recording.after(0)]
    assert replayed(found) == state
    assert [each.row["kind"] for each in recording.after(50)] == ["frame", "event"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"no gzip", "is no recording"),
        (gzip.compress(b"{"), "is no recording"),
        (gzip.compress(b""), "is no recording"),
        (gzip.compress(json.dumps({**BEGIN, "version": 99}).encode()), "another version"),
        (gzip.compress(json.dumps(BEGIN).encode() * 50)[:-9], "it cannot be unpacked"),
        (gzip.compress(b'{"a": 1}'), "line 1 is no row of a kind"),
        (gzip.compress(b"[1]"), "line 1 is no row of a kind"),
        (gzip.compress(json.dumps(BEGIN).encode() + b'\n{"kind": "frame", "links": [1]}'), "line 2 is a row 'frame'"),
        (gzip.compress(json.dumps({"kind": "end"}).encode()), "it has no row 'begin'"),
        (gzip.compress(b"[" * 100_000), "line 1 is no JSON"),
        (gzip.compress(b"1" * 5000), "line 1 is no JSON"),
        (gzip.compress(b"[" + b"[]," * 10_000_000 + b"[]]"), "it is larger than recordings are"),
        (gzip.compress(LONG_LINE * 200), "it is larger than recordings are"),
    ],
    # In bytes there is the time, and processes that share the tests have to find the same ones.
    ids=[
        *(
            "not gzip",
            "not JSON",
            "empty",
            "another version",
            "cut off",
            "no kind",
            "a list",
            "links of another type",
        ),
        *("no begin", "nested too deeply", "too many digits", "a line too long", "too many lines"),
    ],
)
def test_what_is_no_recording_is_one_line(tmp_path: Path, content: bytes, complaint: str) -> None:
    (tmp_path / FILE).write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=complaint) as caught:
            Recording.load(tmp_path / FILE)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 200_000_000
    assert "\n" not in str(caught.value)


def test_a_run_without_a_recording_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no run"):
        recordings(tmp_path / "none")
    with pytest.raises(UserError, match="--live"):
        recordings(tmp_path)
    (tmp_path / "trials" / "a").mkdir(parents=True)
    (tmp_path / "trials" / "a" / FILE).touch()
    assert recordings(tmp_path) == [tmp_path / "trials" / "a" / FILE]
