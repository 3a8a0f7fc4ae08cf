"""A controller that stands by takes over in the middle of a run, on real switches.

Who is in charge a switch itself tells, to a stream of this test's that never wants to be.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from finsy.proto import U128, p4r, p4r_grpc

from gradbed.experiments.runtimes.real import RealRuntime
from tests.emulation.programs import eventually
from tests.emulation.sandboxed import in_sandbox
from tests.emulation.systems.test_robustness import (
    FRAGMENTS,
    PATIENT_US,
    ROUNDS,
    Run,
    all_connected,
    bmv2_or_skip,
    events_of,
)

pytestmark = [pytest.mark.thorough, pytest.mark.root]

# So that a controller stands by; when it takes over each test says.
FAULTS = [{"fault": "controller-failover", "at_ms": 1e9}]
# To a controller one is as the other: tests/emulation/network/test_controller_bmv2.py. BMv2 as arbiter beside ours:
# tests/unit/p4runtime/server/test_bmv2_arbitration.py.
ON_EACH = pytest.mark.parametrize("switch", ["gradbed", pytest.param("bmv2", marks=pytest.mark.nightly)])


def running(tmp_path: Path, switch: str) -> Run:
    delay = {"delay_us": 0} if switch == "bmv2" else {}
    return Run(
        tmp_path, program={"model": switch}, link=delay, faults=FAULTS, workload={"min_timeout_us": PATIENT_US}
    )


def check_undisturbed(run: Run, result: Any) -> None:
    """No switch lost a slot, a counter or a route: every fragment was summed there once, and none was resent."""
    assert result.failures == []
    assert result.metrics["resends"] == 0
    spines = sum(events_of(run.runtime, name)["completed"] for name in ("s1", "s2"))
    assert (spines, events_of(run.runtime, "l1")["completed"]) == (ROUNDS * FRAGMENTS, ROUNDS * FRAGMENTS)


@in_sandbox
@ON_EACH
def test_a_controller_that_is_killed_has_its_successor_at_once(switch: str, tmp_path: Path) -> None:
    bmv2_or_skip(switch)
    seen: dict[str, Any] = {}

    def kill(runtime: RealRuntime) -> None:
        before = runtime.client.jobs(), runtime.client.plan_text()
        start_s = time.monotonic()
        stand_by = runtime._stand_by

        def successor_is_there() -> None:
            seen["takeover_s"] = time.monotonic() - start_s
            stand_by()

        runtime._stand_by = successor_is_there  # type: ignore[method-assign]
        runtime.fail_over_controller()
        seen["same"] = (runtime.client.jobs(), runtime.client.plan_text()) == before

    with running(tmp_path, switch) as run:
        result = run.sum(after=2, happening=kill)
        print(f"{switch}: switches hold the plan of the next one {seen['takeover_s']:.2f} s after the kill")
        # A second or two on a machine that has nothing else to do.
        assert seen["takeover_s"] < 20
        assert seen["same"]
        check_undisturbed(run, result)
        # The job was deleted by the successor, and the next one follows it.
        run.runtime.fail_over_controller()
        assert all_connected(run.runtime)
        assert run.runtime.client.jobs() == []
        assert run.runtime.client.add_job("aggregation", {"workers": ["h3"], "server": "h1"})["job"] == 2


class Observer:
    """What one switch says of its primary, and of what others send."""

    def __init__(self, runtime: RealRuntime, switch: str) -> None:
        target = runtime.targets()[switch]
        self._device_id = target["device_id"]
        self._channel = grpc.insecure_channel(target["address"], options=[("grpc.enable_http_proxy", 0)])
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)

    def primary(self) -> int:
        """Its election id."""

        def bid() -> Iterator[Any]:
            low = p4r.Uint128(low=1)
            yield p4r.StreamMessageRequest(
                arbitration=p4r.MasterArbitrationUpdate(device_id=self._device_id, election_id=low)
            )

        stream = self._stub.StreamChannel(bid())
        try:
            return int(U128.decode(next(stream).arbitration.election_id))
        finally:
            stream.cancel()

    def write_as(self, election_id: int) -> grpc.StatusCode:
        """What becomes of a Write, of nothing, with this election id."""
        request = p4r.WriteRequest(device_id=self._device_id, election_id=U128.encode(election_id))
        try:
            self._stub.Write(request)
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    def close(self) -> None:
        self._channel.close()


@contextmanager
def observed(runtime: RealRuntime, switch: str) -> Iterator[Observer]:
    observer = Observer(runtime, switch)
    try:
        yield observer
    finally:
        observer.close()


@in_sandbox
@ON_EACH
def test_a_controller_that_stood_still_can_write_no_more(switch: str, tmp_path: Path) -> None:
    bmv2_or_skip(switch)

    def stand_still(runtime: RealRuntime) -> None:
        old, new = runtime._controller, runtime._standby
        assert old is not None
        assert new is not None
        jobs = runtime.client.jobs()
        with observed(runtime, "l1") as observer:
            before = observer.primary()
            assert observer.write_as(before) == grpc.StatusCode.OK
            os.kill(old.pid, signal.SIGSTOP)
            start_s = time.monotonic()
            assert eventually(lambda: observer.primary() > before)
            print(f"{switch}: another primary {time.monotonic() - start_s:.2f} s after the stop")
            # Its stream is still there, as it would be were it to go on.
            assert observer.write_as(before) == grpc.StatusCode.PERMISSION_DENIED
            os.kill(old.pid, signal.SIGCONT)
            new.expect("ready", 60)
            runtime._controller, runtime._standby = new, None
            assert observer.write_as(observer.primary()) == grpc.StatusCode.OK
        with pytest.raises(Exception, match="another controller has taken charge of the switches"):
            old.expect("ready", 60)
        old.stop(1)
        assert runtime.client.jobs() == jobs

    with running(tmp_path, switch) as run:
        check_undisturbed(run, run.sum(after=2, happening=stand_still))
