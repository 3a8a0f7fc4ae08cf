"""Pipelines that are saved and not committed yet, on the real data plane: what is written to them is theirs alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4r

from gradbed.switch.p4runtime.status import StatusCode
from tests.unit.p4runtime.client import INSERT, MODIFY, Client, action, entry, exact, ids, pipeline_of, texts
from tests.unit.p4runtime.network import H1, H2, Network, frame, mac, running

AGED, INDIRECT, METERED = 0x1004, 0x1001, 0x1003
CLONED = 0x88B5
SESSION = 5
RATES = p4r.MeterConfig(cir=1, cburst=1, pir=1, pburst=1)


@pytest.fixture(scope="module")
def config() -> p4r.ForwardingPipelineConfig:
    return pipeline_of(Path(__file__).parents[1] / "state.p4")


@pytest.fixture
def network() -> Iterator[Network]:
    with running(manual_clock=True) as network:
        yield network


def test_packets_meet_what_was_staged_once_it_is_committed(
    network: Network, config: p4r.ForwardingPipelineConfig
) -> None:
    of = ids(config.p4info)

    def route(table: str, to: bytes | None, **more: Any) -> p4r.TableEntry:
        call = None if to is None else action(forward, to)
        return entry(of[table], exact(1, mac(H2)), action=call, **more)

    def ports(ether_type: int) -> set[int]:
        return set(network.exchange(1, frame(H2, ether_type=ether_type)))

    forward = of["forward"]
    client = Client(network.address)
    client.become_primary()
    client.push(pipeline=config)
    client.write((INSERT, route("aged", b"\x02")))
    client.push("VERIFY_AND_SAVE", config)
    profile = of["next_hops"]
    member = p4r.ActionProfileMember(action_profile_id=profile, member_id=7, action=action(forward, b"\x03").action)
    referring = route("indirect", None)
    referring.action.action_profile_member_id = 7
    meter = p4r.MeterEntry(meter_id=of["port_meter"], index=p4r.Index(index=1), config=RATES)
    session = p4r.CloneSessionEntry(session_id=SESSION, replicas=[p4r.Replica(port=b"\x03")])
    client.write(
        (INSERT, route("aged", b"\x03", idle_timeout_ns=10**9)),
        (INSERT, member),
        (INSERT, referring),
        (MODIFY, meter),
        (INSERT, session),
    )
    assert client.delete(member) == StatusCode.FAILED_PRECONDITION
    assert client.insert(route("aged", b"\x03")) == StatusCode.ALREADY_EXISTS
    questions = (entry(0), p4r.ActionProfileMember(), p4r.MeterEntry(), p4r.CloneSessionEntry())
    staged = texts(client.read(*questions))
    assert (ports(AGED), ports(INDIRECT), ports(CLONED)) == ({2}, set(), {2})
    assert [network.exchange(1, frame(H2, ether_type=METERED))[2][6:12] for _ in range(2)] == [bytes(6)] * 2
    client.push("COMMIT")
    assert texts(client.read(*questions)) == staged
    assert (ports(AGED), ports(INDIRECT), ports(CLONED)) == ({3}, {3}, {2, 3})
    assert network.exchange(1, frame(H2, H1, METERED))[2][6:12] == bytes(5) + b"\x02"
    client.push("VERIFY_AND_SAVE", config)
    assert len(client.read(entry(0))) == 3
    client.push("RECONCILE_AND_COMMIT", config)
    assert texts(client.read(*questions)) == staged
    assert (ports(AGED), ports(INDIRECT), ports(CLONED)) == ({3}, {3}, {2, 3})
    client.close()
