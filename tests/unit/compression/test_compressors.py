"""Compressors: what is sent and what is held back make up all gradients exactly, and what each promises."""

from __future__ import annotations

import math
import tracemalloc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.compressors import methods
from gradbed.hosts.compressors.content import written
from gradbed.hosts.compressors.error_feedback import ErrorFeedback
from gradbed.hosts.compressors.fingerprint import MODULUS, fingerprint
from gradbed.hosts.compressors.methods import INT32_MAX, Compressor, Setting, TopK, compressor, nearly_square, top_k
from gradbed.hosts.learning.quantise import quantise
from gradbed.hosts.systems.compression.frames import HEADER_BYTES, Route, part_frames, received_parts
from gradbed.hosts.systems.compression.gradients import Assembly
from tools.bench import compressors as bench

EVERY = [
    "none",
    "topk:0.01",
    "topk:1",
    "randomk:0.1",
    "threshold:0.5",
    "quantise:8",
    "quantise:4",
    "sign",
    "powersgd:2",
]
VALUES = 3001
OWN = AgentAddress(name="h2", ip="10.0.0.2", mac="02:00:00:00:00:02", gateway_mac="02:00:00:00:01:00")
ROUTE = Route(7, OWN, "10.0.0.1", OWN.gateway_mac)


def made(name: str, worker: int = 0, values: int = VALUES) -> Compressor:
    return compressor(name, Setting(worker, seed=1, exponent=20, shapes=nearly_square(values)))


def gradient(seed: int, values: int = VALUES) -> NDArray[np.int32]:
    return (np.random.default_rng(seed).normal(size=values) * 2**20).astype(np.int32)


# ---- Nothing gets lost ----


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_what_was_sent_and_what_is_held_back_is_the_sum_of_all_gradients(name: str, momentum: float) -> None:
    chosen, feedback = made(name), ErrorFeedback(VALUES, momentum=momentum)
    added, sent = np.zeros(VALUES, np.int64), np.zeros(VALUES, np.int64)
    for round_number in range(20):
        momentum_adds = feedback.take(gradient(round_number))
        added += gradient(round_number) + (0 if momentum_adds is None else momentum_adds)
        content = chosen.compress(feedback.held, round_number)
        arrived = chosen.restored(content.decoded())
        places = content.places if chosen.is_placewise else slice(None)
        feedback.sent(places, arrived[places])
        sent += arrived
        assert np.array_equal(sent + feedback.held, added)
        assert (momentum_adds is None) == (not momentum)


def test_without_error_feedback_what_is_left_out_is_forgotten() -> None:
    feedback = ErrorFeedback(3, keeps=False)
    feedback.take(np.array([5, 6, 7], np.int32))
    feedback.sent(np.array([0]), np.array([5]))
    feedback.take(np.array([1, 1, 1], np.int32))
    assert feedback.held.tolist() == [1, 1, 1]


def test_momentum_is_forgotten_where_something_was_sent() -> None:
    feedback = ErrorFeedback(2, momentum=0.5)
    feedback.take(np.array([8, 8], np.int32))
    feedback.sent(np.array([0]), np.array([8]))
    momentum_adds = feedback.take(np.array([0, 0], np.int32))
    assert momentum_adds is not None and momentum_adds.tolist() == [0, 4]
    assert feedback.held.tolist() == [0, 12]


def test_what_is_held_back_may_outgrow_32_bits() -> None:
    """In either direction, by gradients as by what is sent, whatever was taken in before."""
    most, feedback = np.array([INT32_MAX, -INT32_MAX, 0], np.int32), ErrorFeedback(3)
    feedback.take(most)
    assert feedback.held.dtype == np.int32
    feedback.take(np.array([0, -1, 5], np.int32))
    assert feedback.held.tolist() == [INT32_MAX, -INT32_MAX - 1, 5]
    feedback.sent(slice(None), np.array([-INT32_MAX, 0, 2**40]))
    assert feedback.held.tolist() == [2 * INT32_MAX, -INT32_MAX - 1, 5 - 2**40]
    small = ErrorFeedback(2)
    for _ in range(20):
        small.take(np.array([2**30, -(2**30)], np.int32))
        small.sent(np.array([0, 1]), np.array([2**30, -(2**30)]))
    assert small.held.dtype == np.int32 and not small.held.any()


def test_what_does_not_fit_a_packet_is_held_back() -> None:
    held = np.array([3 * INT32_MAX, -3 * INT32_MAX, 5], np.int64)
    for name in ("none", "topk:1", "randomk:1", "threshold:0.000001"):
        content = made(name, values=3).compress(held, 0)
        assert content.decoded().tolist() == [INT32_MAX, -INT32_MAX, 5]


@pytest.mark.parametrize("name", EVERY)
def test_an_empty_gradient_has_an_empty_content(name: str) -> None:
    chosen = made(name, values=0)
    content = chosen.compress(np.zeros(0, np.int64), 0)
    assert len(content.codes) == 0 and len(chosen.restored(content.decoded())) == 0


@pytest.mark.parametrize("name", EVERY)
def test_a_gradient_of_zeros_stands_for_zeros(name: str) -> None:
    content = made(name).compress(np.zeros(VALUES, np.int64), 0)
    assert not made(name).restored(content.decoded()).any()


@pytest.mark.parametrize("name", EVERY)
def test_nan_and_infinity_are_integers_before_anything_is_compressed(name: str) -> None:
    """NaN is 0, infinity the largest; two rounds of it are more than a packet's 32 bits, and none of it is lost."""
    drawn = np.random.default_rng(1).normal(size=VALUES)
    drawn[:3] = np.nan, np.inf, -np.inf
    whole = quantise(drawn, 20)
    assert whole.clipped == 3 and whole.values[:3].tolist() == [0, INT32_MAX, -INT32_MAX]
    chosen, feedback, added = made(name), ErrorFeedback(VALUES), np.zeros(VALUES, np.int64)
    arrived = np.zeros(VALUES, np.int64)
    for round_number in range(3):
        feedback.take(whole.values)
        added += whole.values
        content = chosen.compress(feedback.held, round_number)
        gradient = Assembly(chosen.length(VALUES), lambda number: chosen.drawn(VALUES, number))
        for frame in part_frames(ROUTE, written(content, HEADER_BYTES), round_number, 0):
            (parts,) = received_parts(frame[None], np.array([len(frame)], np.uint32), ROUTE.job)
            gradient.add(parts)
        assert gradient.rejected == 0
        restored = chosen.restored(gradient.values)
        places = content.places if chosen.is_placewise else slice(None)
        feedback.sent(places, restored[places])
        arrived += restored
    assert np.array_equal(arrived + feedback.held, added)


# ---- Selection ----


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize(("values", "k"), [(10, 3), (1000, 50), (400_000, 4_000), (400_000, 1), (400_000, 300_000)])
@pytest.mark.parametrize("spread", ["normal", "few different ones", "rising"])
def test_top_k_is_that_of_a_sort(dtype: type, values: int, k: int, spread: str) -> None:
    drawn: NDArray[Any] = {
        "normal": np.random.default_rng(2).normal(size=values) * 1e6,
        "few different ones": np.random.default_rng(2).integers(-3, 4, values),
        "rising": np.arange(values) % 5_000,
    }[spread].astype(dtype)
    expected = np.sort(np.lexsort((np.arange(values), -np.abs(drawn.astype(np.float64))))[:k])
    assert np.array_equal(top_k(drawn, k), expected)


@pytest.mark.parametrize("values", [100, 400_000])
def test_nan_is_never_chosen_and_infinity_first(values: int) -> None:
    drawn = np.random.default_rng(3).normal(size=values).astype(np.float32)
    drawn[::3], drawn[7] = np.nan, -np.inf
    chosen = top_k(drawn, 5)
    assert 7 in chosen and len(chosen) == 5 and not np.isnan(drawn[chosen]).any()
    assert len(top_k(drawn, values)) == np.count_nonzero(~np.isnan(drawn))


@pytest.mark.parametrize("numbers", ["all", "two of three"])
def test_selection_needs_a_fraction_of_the_gradients_memory(numbers: str) -> None:
    """The sample's bound spares all others, whatever is no number among them, and wherever."""
    drawn = np.random.default_rng(3).standard_normal(2_000_000, dtype=np.float32)
    if numbers != "all":
        drawn[::3] = np.nan
    tracemalloc.start()
    found = top_k(drawn, 20_000)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 20_000 and peak_bytes < 0.5 * drawn.nbytes


@pytest.mark.parametrize(("part", "is_right"), [(0.01, True), (0.00001, True), (0.2, True), (0.01, False)])
def test_the_bench_tells_whether_the_goals_are_met(
    part: float, is_right: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Short gradients are few packets, and the machine may be busy."""
    monkeypatch.setattr(bench, "GOAL_COPIES", 10)
    monkeypatch.setattr(bench, "GOAL_MS", 1e6)
    if not is_right:
        monkeypatch.setattr(methods, "top_k", lambda values, k: top_k(values[1:], k))
    assert bench.run_bench_compressors(40_000, part, 1) == (0 if is_right else 1)
    assert ("met" if is_right else "missed") in capsys.readouterr().out


def test_a_workers_path_needs_one_copy_of_the_gradient() -> None:
    gradient = np.random.default_rng(3).standard_normal(2_000_000, dtype=np.float32)
    assert bench.measured(lambda: bench.our_path(len(gradient), 0.01), gradient, 1).copies == pytest.approx(
        1.1, abs=0.1
    )


def test_the_least_integer_has_the_largest_magnitude() -> None:
    assert top_k(np.array([2**31 - 1, -(2**31), 3], np.int32), 1).tolist() == [1]


def test_a_warm_up_lowers_what_is_kept_from_a_quarter() -> None:
    chosen = TopK(0.001, warm_up_rounds=4)
    kept = [chosen.kept(1_000_000, number) for number in range(6)]
    assert kept[0] == 250_000 and kept[4:] == [1000, 1000]
    assert all(math.isclose(a / b, 250 ** (1 / 4), rel_tol=0.01) for a, b in pairwise(kept[:5]))


# ---- Each one's promise ----


def test_workers_draw_the_same_places_at_random_and_different_ones_by_size() -> None:
    contents = {
        name: [made(name, w).compress(gradient(w).astype(np.int64), 3) for w in (0, 1)]
        for name in EVERY
        if name != "topk:1"
    }
    for name, (one, other) in contents.items():
        agree = np.array_equal(one.places, other.places) and one.unit == other.unit == 1
        # Only then could a switch that adds lanes sum them.
        is_same = name == "none" or name.startswith("randomk")
        assert is_same == (agree and made(name).is_placewise), name


def test_packets_of_values_drawn_at_random_name_no_places() -> None:
    """A round's number is all that a packet needs: 4 bytes for each value, whatever was cut away before."""
    chosen, values = made("randomk:0.01", values=35_200), gradient(5, 35_200)
    content = chosen.compress(values, 7)
    packets = written(content, HEADER_BYTES)
    assert len(content.codes) == 352 and packets.payload_bytes.tolist() == [4 * 352]
    rest = content.chosen(top_k(content.codes, 100))
    assert written(rest, HEADER_BYTES).payload_bytes.tolist() == [4 * 100 + 352 // 8]
    for each in (content, rest):
        came = Assembly(35_200, lambda number: made("randomk:0.01").drawn(35_200, number))
        for frame in part_frames(ROUTE, written(each, HEADER_BYTES), 7, 0):
            (parts,) = received_parts(frame[None], np.array([len(frame)], np.uint32), ROUTE.job)
            came.add(parts)
        expected = np.zeros(35_200, np.int64)
        expected[each.places] = values[each.places]
        assert np.array_equal(came.values, expected) and np.count_nonzero(expected) == len(each.codes)
        assert came.fingerprint == fingerprint(expected, 35_200)
    assert not np.array_equal(content.places, chosen.drawn(35_200, 8))  # type: ignore[arg-type]


@pytest.mark.parametrize("bits", [4, 8])
def test_rounding_at_random_is_right_in_the_mean(bits: int) -> None:
    value = np.full(20_000, 12_345, np.int64)
    value[0] = 7 * 100_000 if bits == 4 else 127 * 100_000  # makes the unit 100,000
    content = made(f"quantise:{bits}", values=len(value)).compress(value, 0)
    assert content.unit == 100_000 and set(content.codes[1:].tolist()) == {0, 1}
    assert content.decoded()[1:].mean() == pytest.approx(12_345, rel=0.05)


def test_low_rank_gets_a_matrix_of_its_rank_right_after_some_rounds() -> None:
    generator = np.random.default_rng(4)
    matrix = np.rint(1e6 * generator.normal(size=(40, 2)) @ generator.normal(size=(2, 30))).astype(np.int64)
    chosen = compressor("powersgd:2", Setting(0, 1, 0, ((40, 30), (5,))))
    vector = np.concatenate([matrix.reshape(-1), [1, 2, 3, 4, 5]])
    for number in range(3):
        found = chosen.restored(chosen.compress(vector, number).decoded())
    assert np.abs(found - vector).max() < 1e-5 * np.abs(vector).max()
    assert found[-5:].tolist() == [1, 2, 3, 4, 5]
    assert chosen.length(1205) == 2 * (40 + 30) + 5


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gzip", "no compressor is called 'gzip'"),
        ("topk", "topk takes the part that is kept"),
        ("topk:0", "topk takes the part"),
        ("topk:nan", "topk takes the part"),
        ("quantise:5", "quantise:8 or quantise:4"),
        ("powersgd:0.5", "the rank"),
        ("threshold:inf", "the least magnitude"),
        ("none:1", "none takes no parameter"),
    ],
)
def test_a_wrong_name_is_answered_with_one_line(name: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        compressor(name)


# ---- Fingerprints ----


def test_fingerprints_add_and_tell_a_change_of_one() -> None:
    one, other = gradient(1).astype(np.int64), -gradient(2).astype(np.int64) << 20
    together = fingerprint(one + other, VALUES)
    assert together == (fingerprint(one, VALUES) + fingerprint(other, VALUES)) % MODULUS
    places = np.array([3, 17])
    assert fingerprint(one[places], VALUES, places) != fingerprint(one[places] + [0, 1], VALUES, places)
    rest = one.copy()
    rest[places] = 0
    parts = fingerprint(one[places], VALUES, places) + fingerprint(rest, VALUES)
    assert parts % MODULUS == fingerprint(one, VALUES)


def test_a_fingerprint_by_places_needs_little_memory() -> None:
    """Whatever their number; as int64 these values alone would take 2.4 MB."""
    values, places = np.ones(300_000, np.int32), np.arange(0, 3_000_000, 10)
    fingerprint(values[:1], 3_000_000, places[:1])  # the weights, once
    tracemalloc.start()
    fingerprint(values, 3_000_000, places)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 1e6


@pytest.mark.parametrize("length", [0, 1, 4095, 4096, 4097, 131_072, 140_000])
def test_a_fingerprint_is_the_same_by_places_and_at_once(length: int) -> None:
    values = np.random.default_rng(length).integers(-(2**31), 2**31, length).astype(np.int32)
    at_once = fingerprint(values, length)
    assert at_once == fingerprint(values, length, np.arange(length)) == fingerprint(values, length, slice(0, length))
    half = length // 2
    parts = [fingerprint(values[part], length, part) for part in (slice(0, half), slice(half, length))]
    assert at_once == sum(parts) % MODULUS and (not length or at_once)
