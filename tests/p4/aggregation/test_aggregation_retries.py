"""One switch with p4src/aggregation.p4 and gradients that are sent again, in case they were lost: retries."""

from __future__ import annotations

from pathlib import Path

import pytest

from hosts.systems.aggregation.gradient import Gradient
from hosts.systems.aggregation.gradient_format import Flags
from tests.emulation.sandboxed import in_sandbox
from tests.p4.aggregation.aggregation_packets import (
    DEFINES,
    NEXT_NUMBER,
    OWN_NUMBER,
    PORTS,
    Run,
    answer,
    failures,
    gradient,
    resend,
    switch_plan,
)
from tests.p4.switch_under_test import COMPILERS, KINDS, switch_under_test

pytestmark = pytest.mark.root


def retry(worker: int, number: int = 0, **fields: int) -> bytes:
    return gradient(worker, number, flags=Flags.RETRY, **fields)  # type: ignore[arg-type]


def a_retry_of_a_lost_packet_completes_the_sum(run: Run) -> None:
    run.consumed(gradient(0))
    run.consumed(gradient(2))
    header = run.to_server(retry(1))[Gradient]
    assert (header.worker_bitmap, int(header.flags)) == (0b111, Flags.PARTIAL | Flags.RETRY)
    assert run.events() == {"claimed": 1, "added": 2, "completed": 1}


def a_retry_leaves_an_incomplete_sum_where_it_is(run: Run) -> None:
    run.consumed(gradient(0))
    run.consumed(gradient(1))
    run.consumed(retry(0))
    run.consumed(retry(1))
    assert run.events() == {"claimed": 1, "added": 1, "duplicate": 2}
    run.sum_to_server(gradient(2), 0, 1, 2)


def one_workers_retry_repeats_a_lost_sum(run: Run) -> None:
    for worker in (1, 2):
        run.consumed(gradient(worker))
    run.sum_to_server(gradient(0), 0, 1, 2)
    for _ in range(2):
        run.consumed(retry(1))
        run.consumed(retry(2))
        run.sum_to_server(retry(0), 0, 1, 2)
    run.consumed(gradient(0))
    assert run.events() == {"claimed": 1, "added": 2, "completed": 1, "duplicate": 5, "repeated": 2}
    run.answered(answer())
    run.single_to_server(retry(0))
    assert run.events()["released"] == 1


def a_retry_never_claims(run: Run) -> None:
    run.single_to_server(retry(0))
    run.consumed(gradient(1))
    assert run.events() == {"resend_single": 1, "claimed": 1}


def a_sum_that_was_repeated_can_still_be_taken_along(run: Run) -> None:
    run.consumed(gradient(0, fan_in=2))
    run.sum_to_server(gradient(1, fan_in=2), 0, 1)
    run.sum_to_server(retry(0, fan_in=2), 0, 1)
    run.sum_to_server(resend(1, fan_in=2), 0, 1)
    run.single_to_server(retry(0, fan_in=2))


def late_packets_are_summed_like_others(run: Run) -> None:
    run.consumed(gradient(0, fan_in=2))
    header = run.to_server(gradient(1, fan_in=2, flags=Flags.LATE))[Gradient]
    assert (header.worker_bitmap, int(header.flags)) == (0b11, Flags.PARTIAL | Flags.LATE)


BEHAVIOURS = (
    a_retry_of_a_lost_packet_completes_the_sum,
    a_retry_leaves_an_incomplete_sum_where_it_is,
    one_workers_retry_repeats_a_lost_sum,
    a_retry_never_claims,
    a_sum_that_was_repeated_can_still_be_taken_along,
    late_packets_are_summed_like_others,
)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("kind", KINDS)
@in_sandbox
def test_behaviours(kind: str, compiler: str, tmp_path: Path) -> None:
    plan = switch_plan(OWN_NUMBER, NEXT_NUMBER)
    with switch_under_test(kind, compiler, "aggregation", DEFINES, plan, PORTS, tmp_path) as switch:
        assert failures(BEHAVIOURS, [switch], lambda: Run(switch)) == []
