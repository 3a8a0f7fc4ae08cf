"""The state of a running switch, taken over P4Runtime, and plans."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4d, p4r

from gradbed.cli.p4 import setup as p4_setup
from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Lpm, MulticastGroup, Plan, RegisterValue, SwitchPlan, TableEntry
from gradbed.controller.southbound.p4runtime.codec import encode_entry
from gradbed.controller.southbound.p4runtime.schema import ProgramSchema
from gradbed.switch.compiler import compile_p4
from gradbed.switch.engine import Engine
from gradbed.switch.insight.p4runtime_state import SwitchSnapshot, read_switch, write_updates
from gradbed.switch.insight.recorder import InstrumentedProgram, build_instrumented
from gradbed.switch.insight.source import SourceMap
from gradbed.switch.insight.trace import build_trace
from gradbed.switch.insight.trace_events import TableApplication, Trace
from gradbed.switch.insight.traced_switch import TracedSwitch
from gradbed.switch.server import P4RuntimeServer
from gradbed.switch.state.pipeline import build_pipeline
from tests.unit.insight.tracing import ORDERS, ROUTED, ROUTER
from tests.unit.p4runtime.client import DELETE, INSERT, MODIFY, Client

ENTRIES = [
    TableEntry(table="orders", match={"hdr.order.what": what}, action=action, params=params)
    for what, action, params in (
        (2, "spread", {"group": 12}),
        (3, "mirror", {"port": 4}),
        (5, "remember", {}),
    )
]


@pytest.fixture
def address() -> Iterator[str]:
    """A server for device 1, which runs nothing yet."""
    with Engine(manual_clock=True) as engine:
        server = P4RuntimeServer({1: engine.add_switch(1)}, ["127.0.0.1:0"])
        server.start()
        yield f"127.0.0.1:{server.ports[0]}"
        server.stop()


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    client = Client(address)
    client.become_primary()
    yield client
    client.close()


def push(client: Client, source: Path) -> Any:
    compiled = compile_p4(source)
    client.push(
        pipeline=p4r.ForwardingPipelineConfig(
            p4info=compiled.p4info, p4_device_config=json.dumps(compiled.json).encode()
        )
    )
    return compiled.p4info


def write(client: Client, *updates: tuple[int, Any]) -> None:
    request = p4r.WriteRequest(device_id=1, updates=[p4r.Update(type=kind, entity=e) for kind, e in updates])
    request.election_id.low = client.election_id
    client.stub.Write(request)


def replication(**fields: Any) -> Any:
    return p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(**fields))


def replicas(*ports: int) -> list[Any]:
    return [p4r.Replica(egress_port=port, instance=3) for port in ports]


def trace_with(snapshot: SwitchSnapshot, *frames: bytes) -> list[Trace]:
    pipeline = build_pipeline(snapshot.p4info, snapshot.device_config, build_instrumented)
    program = pipeline.program
    assert isinstance(program, InstrumentedProgram)
    sources = SourceMap(program.model)
    traces = []
    with TracedSwitch(program) as switch:
        assert write_updates(switch.device, pipeline, snapshot.updates, replace=True) == ()
        for frame in frames:
            passage = switch.send(0, frame)
            traces.append(build_trace(program, sources, 0, frame, passage.records, passage.outputs))
    return traces


def table(of: Trace, stage: int = 1) -> TableApplication:
    return next(event for event in of.stages[stage].events if isinstance(event, TableApplication))


def test_everything_that_a_switch_holds(client: Client, address: str) -> None:
    info = push(client, ORDERS)
    schema = ProgramSchema(info)
    plan = schema.normalised(SwitchPlan.of("orders", ENTRIES))
    register = p4r.RegisterEntry(
        register_id=schema.registers["seen"].id, index=p4r.Index(index=3), data=p4d.P4Data(bitstring=b"\x29")
    )
    send = schema.tables["orders"].actions["send"]
    default = p4r.TableEntry(table_id=schema.tables["orders"].id, is_default_action=True)
    default.action.action.action_id = send.id
    default.action.action.params.add(param_id=1, value=b"\x09")
    write(
        client,
        *((INSERT, encode_entry(schema, entry)) for entry in plan.entries),
        (MODIFY, p4r.Entity(register_entry=register)),
        (MODIFY, p4r.Entity(table_entry=default)),
        (
            INSERT,
            replication(
                multicast_group_entry=p4r.MulticastGroupEntry(multicast_group_id=12, replicas=replicas(8, 9))
            ),
        ),
        (INSERT, replication(clone_session_entry=p4r.CloneSessionEntry(session_id=7, replicas=replicas(10)))),
    )
    snapshot = read_switch(address, 1)
    assert snapshot.unread == ()
    spread, mirror, remember, other = trace_with(
        snapshot, bytes([2, 0]), bytes([3, 0]), bytes([5, 3]), bytes([77, 0])
    )
    assert [port for port, _ in spread.outputs] == [8, 9]
    assert sorted(port for port, _ in mirror.outputs) == [4, 10]
    uses = [use for statement in table(remember).statements for use in statement.cells]
    assert [(use.old, use.new) for use in uses] == [(41, None), (41, 42)]
    assert not table(other).hit
    assert [port for port, _ in other.outputs] == [9]


def test_entries_come_without_their_counts(client: Client, address: str) -> None:
    info = push(client, ROUTER)
    schema = ProgramSchema(info)
    route = TableEntry(
        table="routes",
        match={"hdr.ipv4.dst_addr": Lpm(value=0x0A000000, prefix_bits=8)},
        action="set_next_hop",
        params={"next_hop": 1},
    )
    (entry,) = schema.normalised(SwitchPlan.of("router", [route])).entries
    entity = encode_entry(schema, entry)
    entity.table_entry.counter_data.packet_count = 1000
    entity.table_entry.counter_data.byte_count = 70_000
    write(client, (INSERT, entity))
    (told,) = trace_with(read_switch(address, 1), ROUTED)
    assert (table(told).hit, table(told).counted) == (True, (1, len(ROUTED)))


def test_entries_of_the_program_that_are_gone(client: Client, address: str, tmp_path: Path) -> None:
    source = tmp_path / "initial.p4"
    text = ORDERS.read_text()
    added = "        entries = { 1: send(1); 2: send(2); }\n        size = 16;\n"
    assert text.count("        size = 16;\n") == 1
    source.write_text(text.replace("        size = 16;\n", added))
    schema = ProgramSchema(push(client, source))
    gone = p4r.TableEntry(table_id=schema.tables["orders"].id)
    gone.match.add(field_id=1).exact.value = b"\x01"
    write(client, (DELETE, p4r.Entity(table_entry=gone)))
    first, second = trace_with(read_switch(address, 1), bytes([1, 0]), bytes([2, 0]))
    assert not table(first).hit
    assert table(second).hit


def test_switch_without_pipeline(client: Client, address: str) -> None:
    with pytest.raises(UserError, match="1") as caught:
        read_switch(address, 1)
    assert "\n" not in str(caught.value)


def test_switch_that_is_not_there() -> None:
    with pytest.raises(UserError, match=r"switch 1 at 127\.0\.0\.1:1: UNAVAILABLE") as caught:
        read_switch("127.0.0.1:1", 1)
    assert "\n" not in str(caught.value)


# ---- Plans ----

ROUTER_PLAN = SwitchPlan.of(
    "router",
    [
        TableEntry(
            table="routes",
            match={"hdr.ipv4.dst_addr": Lpm(value=0x0A000100, prefix_bits=24)},
            action="set_next_hop",
            params={"next_hop": 1},
        ),
        TableEntry(
            table="next_hops",
            match={"meta.next_hop": 1},
            action="forward",
            params={"port": 3, "src_mac": 1, "dst_mac": 2},
        ),
    ],
)


def outputs(source: Path, entries: Path, frame: bytes, switch_name: str | None = None) -> list[int]:
    setup = p4_setup.load(source, None, None, None, None)
    with TracedSwitch(setup.program) as switch:
        setup.fill(switch, [entries], switch_name)
        return [port for port, _ in switch.send(0, frame).outputs]


def test_plan_of_one_switch(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(ROUTER_PLAN.model_dump_json())
    assert outputs(ROUTER, path, ROUTED) == [3]


def test_plan_of_a_network(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    Plan(switches={"e1": ROUTER_PLAN, "e2": SwitchPlan.of("router")}).save(path)
    assert outputs(ROUTER, path, ROUTED, "e1") == [3]
    assert outputs(ROUTER, path, ROUTED, "e2") == []
    for name in (None, "e3"):
        with pytest.raises(UserError, match="the plan is for e1, e2: say whose part to take with --switch"):
            outputs(ROUTER, path, ROUTED, name)


def test_plan_with_groups_and_registers(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    cells = [RegisterValue(register_name="seen", index=3, value=41)]
    groups = [MulticastGroup(id=12, ports=(5, 6))]
    path.write_text(SwitchPlan.of("orders", ENTRIES, groups, cells).model_dump_json())
    assert outputs(ORDERS, path, bytes([2, 0])) == [5, 6]
    setup = p4_setup.load(ORDERS, None, None, None, None)
    with TracedSwitch(setup.program) as switch:
        setup.fill(switch, [path], None)
        switch.send(0, bytes([5, 3]))
        assert switch.device.state.registers.read("OrderIngress.seen", 3) == 42


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not a plan"),
        ('{"program": "router", "entries": [{"table": "routes"}]}', "not a plan"),
        ('{"program": "r", "entries": [{"table": "rules", "match": {}, "action": "x"}]}', "no table 'rules'"),
        ('{"program": "r", "entries": [], "groups": [{"id": 1, "ports": [600]}]}', "600"),
    ],
)
def test_plans_that_do_not_fit(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        outputs(ROUTER, path, ROUTED)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
