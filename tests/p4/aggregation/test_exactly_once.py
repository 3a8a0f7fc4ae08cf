"""Whatever the network does, each worker's gradient is in each sum exactly once: p4src/aggregation.p4 against random
orders, losses, repetitions, resends, lost slots and other jobs."""

from __future__ import annotations

import functools

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from gradbed.experiments.programs import P4_SOURCES
from gradbed.switch.codegen import BuiltProgram, build_program
from gradbed.switch.compiler import compile_p4
from tests.examples import examples
from tests.p4.aggregation.lossy_network import (
    EVERYBODY,
    FAR,
    FRAGMENTS,
    LANES,
    NEAR,
    SERVER,
    SLOTS,
    WORKERS,
    LossyNetwork,
    digits,
    labels,
)

PATIENCE = 12
"""Resends of everybody until all must be done: one for each level, one for a request, some to spare."""


@functools.cache
def program() -> BuiltProgram:
    compiled = compile_p4(P4_SOURCES / "aggregation.p4", defines={"LANES": str(LANES), "SLOTS": str(SLOTS)})
    return build_program(compiled.json)


workers, fragments = st.integers(0, WORKERS - 1), st.integers(0, FRAGMENTS - 1)
switches = st.sampled_from((*NEAR, FAR))
which = st.integers(0, 1 << 16)
sends = st.tuples(st.sampled_from(("send", "retry")), workers, fragments)
deliveries = st.tuples(st.just("deliver"), which, which)
mishaps = st.one_of(
    st.tuples(st.sampled_from(("lose", "repeat", "repeat", "deliver all")), which, which),
    st.tuples(st.just("forget"), switches, which),
    st.tuples(st.sampled_from(("occupy", "vacate")), switches, st.integers(0, 4)),
)
steps = st.lists(st.one_of(sends, *[deliveries] * 2, mishaps), min_size=20, max_size=60)
routes = st.lists(st.sampled_from((0, *NEAR, FAR)), min_size=WORKERS, max_size=WORKERS)
one_switch = st.just([NEAR[0]] * WORKERS)


def take(network: LossyNetwork, step: tuple[str, int, int]) -> None:
    kind, one, other = step
    if kind == "send":
        network.send(one, other)
    elif kind == "retry":
        network.retry(one, other)
    elif kind == "forget":
        network.forget(one)
    elif kind == "occupy":
        network.occupy(one, other)
    elif kind == "vacate":
        network.vacate(one, other)
    elif kind == "deliver all":
        network.deliver_all()
    elif kind == "repeat":
        network.under_way.append(network.past[one % len(network.past)])
    elif network.under_way and kind == "lose":
        del network.under_way[one % len(network.under_way)]
    elif network.under_way:
        network.deliver(one % len(network.under_way))


@pytest.mark.thorough
@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    firsts=st.lists(st.one_of(one_switch, routes), min_size=FRAGMENTS, max_size=FRAGMENTS),
    second=st.booleans(),
    static=st.booleans(),
    magnitudes=st.one_of(
        st.just([1 << 12] * WORKERS),
        st.lists(st.sampled_from((1 << 12, 1 << 29, 1 << 30, (1 << 31) - 1, 1 << 31)), min_size=4, max_size=4),
    ),
    schedule=steps,
)
def test_each_gradient_is_in_each_sum_once(
    firsts: list[list[int]],
    second: bool,
    static: bool,
    magnitudes: list[int],
    schedule: list[tuple[str, int, int]],
) -> None:
    label = {
        (worker, number): each
        for number, first in enumerate(firsts)
        for worker, each in enumerate(labels(first, second))
    }
    with LossyNetwork(program(), label, static=static, magnitudes=magnitudes) as network:
        for number in range(FRAGMENTS):
            for worker in range(WORKERS):
                network.send(worker, number)
        for step in schedule:
            take(network, step)
        event(f"sums complete before the end: {sum(bitmap == EVERYBODY for bitmap in network.server.bitmaps)}")
        assert network.settle(PATIENCE)
        assert network.server.sums == [digits(EVERYBODY)] * FRAGMENTS


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("static", [False, True])
def test_without_mishaps_the_switches_do_the_sums(static: bool, second: bool) -> None:
    """Nothing reaches the server but one packet for each fragment, if slots suffice."""
    first = [*NEAR, *NEAR] if second else [FAR] * WORKERS
    label = {(worker, 0): each for worker, each in enumerate(labels(first, second))}
    with LossyNetwork(program(), label, static=static, magnitudes=[1 << 12] * WORKERS) as network:
        for worker in range(WORKERS):
            network.send(worker, 0)
        network.deliver_all()
        assert [place for place, _ in network.past].count(SERVER) == 1
        assert network.server.sums[0] == digits(EVERYBODY)
        assert network.answered == {(worker, 0) for worker in range(WORKERS)}
