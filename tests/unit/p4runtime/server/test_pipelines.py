"""SetForwardingPipelineConfig and GetForwardingPipelineConfig."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from finsy.proto import p4d, p4r

from gradbed.common.errors import UserError
from gradbed.switch.p4runtime.status import StatusCode
from tests.unit.p4runtime.client import (
    DELETE,
    INSERT,
    MODIFY,
    TIMEOUT_S,
    Client,
    action,
    entry,
    exact,
    lpm,
    serving,
    texts,
)
from tests.unit.p4runtime.fake_device import FakeDevice, FakeProgram
from tests.unit.p4runtime.sample_program import (
    DROP,
    HOSTS,
    KEYLESS,
    KINDS,
    MARK,
    PORT_COUNTER,
    PRESET,
    ROUTES,
    TOTALS,
    bmv2_json,
    config,
    p4info,
)

ROUTE = entry(ROUTES, lpm(1, b"\x0a\x00\x00\x00", 8), action=action(MARK, b"\x01"), metadata=b"m")


def refusal(call: Callable[[], object]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    details = caught.value.details()
    assert details and "\n" not in details
    return caught.value.code(), details


def test_get_before_set(bare_client: Client) -> None:
    assert not bare_client.get_pipeline().HasField("config")


def test_get_gives_what_was_set(client: Client) -> None:
    sent = config(cookie=7)
    assert client.get_pipeline().config == sent
    cookie = p4r.ForwardingPipelineConfig.Cookie(cookie=7)
    assert client.get_pipeline("COOKIE_ONLY").config == p4r.ForwardingPipelineConfig(cookie=cookie)
    assert client.get_pipeline("P4INFO_AND_COOKIE").config == p4r.ForwardingPipelineConfig(
        cookie=cookie, p4info=sent.p4info
    )
    assert client.get_pipeline("DEVICE_CONFIG_AND_COOKIE").config == p4r.ForwardingPipelineConfig(
        cookie=cookie, p4_device_config=sent.p4_device_config
    )
    client.push_sample()
    assert client.get_pipeline().config == config()


@pytest.mark.parametrize("running", [True, False])
def test_a_response_type_that_nobody_knows(
    client: Client, bare_client: Client, devices: dict[int, FakeDevice], running: bool
) -> None:
    request = p4r.GetForwardingPipelineConfigRequest(device_id=1 if running else 2, response_type=9)
    code, text = refusal(lambda: client.stub.GetForwardingPipelineConfig(request, timeout=TIMEOUT_S))
    assert (code, text) == (grpc.StatusCode.INVALID_ARGUMENT, "there is no response type 9")


def test_a_program_without_objects_may_go_without_a_description(client: Client) -> None:
    def clear(pipeline: p4r.ForwardingPipelineConfig, document: dict) -> None:
        pipeline.p4info.Clear()
        for name in ("counter_arrays", "register_arrays", "meter_arrays", "parse_vsets", "learn_lists"):
            document[name] = []
        document["pipelines"][0].update(tables=[], action_profiles=[])

    client.push("VERIFY", broken(clear))


HIDDEN_TABLE = {
    "name": "switch_0_table",
    "id": 0,
    "key": [{"match_type": "exact", "name": "switch_0_key", "target": ["ipv4", "protocol"], "mask": None}],
    "match_type": "exact",
    "type": "simple",
    "max_size": 1024,
    "with_counters": False,
    "support_timeout": False,
    "direct_meters": None,
    "action_ids": [0, 1],
    "actions": ["switch_0_case", "switch_0_case_0"],
    "base_default_next": None,
    "next_tables": {"switch_0_case": None, "switch_0_case_0": None},
    "default_entry": {"action_id": 1, "action_const": True, "action_data": [], "action_entry_const": True},
    "entries": [
        {
            "match_key": [{"match_type": "exact", "key": "0x40"}],
            "action_entry": {"action_id": 0, "action_data": []},
            "priority": 1,
        }
    ],
}
"""What p4c 1.2.4.2 makes of `switch (hdr.ipv4.protocol) { 64: {} default: {} }`: P4Info does not describe it."""


def with_hidden_table(table: dict) -> p4r.ForwardingPipelineConfig:
    """A config with an empty P4Info, of a program that has this table alone."""

    def change(pipeline: p4r.ForwardingPipelineConfig, document: dict) -> None:
        pipeline.p4info.Clear()
        for name in ("counter_arrays", "register_arrays", "meter_arrays", "parse_vsets", "learn_lists"):
            document[name] = []
        document["actions"] = [
            {"name": name, "id": number, "runtime_data": [], "primitives": []}
            for number, name in enumerate(table["actions"])
        ]
        document["pipelines"][0].update(tables=[table], action_profiles=[], init_table=table["name"])
        document["pipelines"][0]["conditionals"] = []

    return broken(change)


def test_a_switch_on_a_value_needs_no_description(client: Client) -> None:
    client.push("VERIFY", with_hidden_table(HIDDEN_TABLE))


def test_a_switch_with_a_default_case_alone_needs_no_description(client: Client) -> None:
    client.push("VERIFY", with_hidden_table({**HIDDEN_TABLE, "entries": []}))


@pytest.mark.parametrize(
    "difference",
    [
        {"name": "Ingress.routes", "entries": []},
        {"name": "Ingress.routes", "default_entry": {"action_id": 1, "action_const": False, "action_data": []}},
        {"name": "Ingress.routes", "with_counters": True},
    ],
    ids=["entries may be added", "the default action may change", "direct counter"],
)
def test_a_table_that_controllers_use_needs_a_description(client: Client, difference: dict) -> None:
    code, text = refusal(lambda: client.push("VERIFY", with_hidden_table({**HIDDEN_TABLE, **difference})))
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert (
        text == "the pipeline cannot be realized: the P4Info is empty, and the program has the table Ingress.routes"
    )


def test_unknown_device(bare_client: Client) -> None:
    bare_client.device_id = 9
    assert refusal(bare_client.get_pipeline)[0] == grpc.StatusCode.NOT_FOUND
    assert refusal(bare_client.push_sample)[0] == grpc.StatusCode.NOT_FOUND
    assert refusal(bare_client.read)[0] == grpc.StatusCode.NOT_FOUND


def test_only_the_primary_pushes(bare_client: Client, device: FakeDevice) -> None:
    assert refusal(bare_client.push_sample)[0] == grpc.StatusCode.PERMISSION_DENIED
    assert device.loads == 0


def test_reads_need_a_pipeline(bare_client: Client) -> None:
    code, text = refusal(lambda: bare_client.read(entry(0)))
    assert code == grpc.StatusCode.FAILED_PRECONDITION
    assert "no forwarding pipeline config" in text  # finsy recognises this text


def test_commit_clears_the_state(client: Client, device: FakeDevice) -> None:
    client.write((INSERT, ROUTE))
    client.push_sample()
    assert client.read(entry(ROUTES)) == []
    assert device.loads == 2


def test_commit_clears_the_replication_engine(client: Client, device: FakeDevice) -> None:
    client.write(
        (INSERT, p4r.MulticastGroupEntry(multicast_group_id=1, replicas=[p4r.Replica(port=b"\x01")])),
        (INSERT, p4r.CloneSessionEntry(session_id=1, replicas=[p4r.Replica(port=b"\x01")])),
    )
    client.push_sample()
    assert client.read(p4r.MulticastGroupEntry(), p4r.CloneSessionEntry()) == []
    assert device.replication.groups == {} and device.replication.sessions == {}


def test_verify_changes_nothing(client: Client, device: FakeDevice) -> None:
    client.write((INSERT, ROUTE))
    client.push("VERIFY", config(cookie=8))
    assert client.read(entry(ROUTES)) == [ROUTE]
    assert client.get_pipeline("COOKIE_ONLY").config.cookie.cookie == 7
    assert device.loads == 1


def broken(change: Callable[[p4r.ForwardingPipelineConfig, dict], object]) -> p4r.ForwardingPipelineConfig:
    document = json.loads(json.dumps(bmv2_json()))
    result = p4r.ForwardingPipelineConfig(p4info=p4info())
    change(result, document)
    if not result.p4_device_config:
        result.p4_device_config = json.dumps(document).encode()
    return result


def tables(document: dict) -> list[dict]:
    return document["pipelines"][0]["tables"]


BROKEN = {
    "not JSON": lambda c, d: setattr(c, "p4_device_config", b"\xff{"),
    "not an object": lambda c, d: setattr(c, "p4_device_config", b"[]"),
    "nested too deeply": lambda c, d: setattr(c, "p4_device_config", b"[" * 100_000),
    "empty object": lambda c, d: d.clear(),
    "tables are no list": lambda c, d: d["pipelines"][0].update(tables=3),
    "table without name": lambda c, d: tables(d)[0].pop("name"),
    "table is missing": lambda c, d: tables(d).pop(0),
    "key is missing": lambda c, d: tables(d)[0].update(key=[]),
    "match kind differs": lambda c, d: tables(d)[0]["key"][0].update(match_type="exact"),
    "entry of an unknown action": lambda c, d: tables(d)[3]["entries"][0]["action_entry"].update(action_id=77),
    "entry without key": lambda c, d: tables(d)[3]["entries"][0].pop("match_key"),
    "entry with wrong number": lambda c, d: tables(d)[3]["entries"][0]["match_key"][0].update(key="zz"),
    "entry with too few arguments": lambda c, d: tables(d)[3]["entries"][1]["action_entry"].update(action_data=[]),
    "parameters differ": lambda c, d: d["actions"][2]["runtime_data"].pop(),
    "direct counter is missing": lambda c, d: tables(d)[0].pop("with_counters"),
    "counter is missing": lambda c, d: d["counter_arrays"].pop(0),
    "register is missing": lambda c, d: d["register_arrays"].pop(0),
    "register of another width": lambda c, d: d["register_arrays"][0].update(bitwidth=32),
    "id 0": lambda c, d: setattr(c.p4info.tables[0].preamble, "id", 0),
    "id twice": lambda c, d: setattr(c.p4info.tables[1].preamble, "id", ROUTES),
    "unknown action": lambda c, d: c.p4info.tables[0].action_refs.add(id=5),
    "unknown match type": lambda c, d: setattr(c.p4info.tables[0].match_fields[0], "match_type", 77),
    "field without width": lambda c, d: _without_width(c.p4info.tables[0].match_fields[0], tables(d)[0]),
    "prefixes of strings": lambda c, d: _name_by_strings(c.p4info, c.p4info.tables[0].match_fields[0]),
    "unknown action profile": lambda c, d: c.p4info.action_profiles.pop(),
    "no such action profile": lambda c, d: d["pipelines"][0]["action_profiles"].pop(),
    "no such meter": lambda c, d: d["meter_arrays"].pop(0),
    "no such direct meter": lambda c, d: _table(d, "Ingress.metered").pop("direct_meters"),
    "no such value set": lambda c, d: d["parse_vsets"].pop(),
    "value set of another width": lambda c, d: d["parse_vsets"][1].update(compressed_bitwidth=47),
    "no such digest": lambda c, d: d["learn_lists"].pop(),
    "no idle timeouts": lambda c, d: _table(d, "Ingress.aging").pop("support_timeout"),
    "register of structs": lambda c, d: setattr(c.p4info.registers[0].type_spec.struct, "name", "x"),
    "half a byte of packet-out": lambda c, d: c.p4info.controller_packet_metadata[1].metadata.pop(),
    "nothing is described": lambda c, d: c.p4info.Clear(),
    "nothing but the package is described": lambda c, d: (c.p4info.Clear(), c.p4info.pkg_info.SetInParent()),
    "packet-in of unknown layout": lambda c, d: d["header_types"].pop(),
}


def _table(document: dict, name: str) -> dict:
    [table] = [table for table in document["pipelines"][0]["tables"] if table["name"] == name]
    return table


def _without_width(described: Any, table: dict) -> None:
    described.bitwidth = 0
    table["key"][0]["target"] = ["ipv4", "missing"]


def _name_by_strings(info: Any, described: Any) -> None:
    described.type_name.name = "Name"
    info.type_info.new_types["Name"].translated_type.sdn_string.SetInParent()


@pytest.mark.commit_cases(8)
@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("push", ["VERIFY", "VERIFY_AND_COMMIT"])
def test_unusable_configs_leave_the_old_pipeline(client: Client, device: FakeDevice, what: str, push: str) -> None:
    client.write((INSERT, ROUTE))
    code, text = refusal(lambda: client.push(push, broken(BROKEN[what])))
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert text.startswith("the pipeline cannot be realized: ")
    assert client.read(entry(ROUTES)) == [ROUTE]
    assert device.loads == 1


@pytest.mark.parametrize(
    ("action_name", "pipeline", "code"),
    [
        ("UNSPECIFIED", config(), grpc.StatusCode.INVALID_ARGUMENT),
        ("VERIFY_AND_COMMIT", None, grpc.StatusCode.INVALID_ARGUMENT),
        ("VERIFY_AND_SAVE", None, grpc.StatusCode.INVALID_ARGUMENT),
        ("COMMIT", None, grpc.StatusCode.NOT_FOUND),
        ("COMMIT", config(), grpc.StatusCode.INVALID_ARGUMENT),
    ],
)
def test_unusable_requests(client: Client, action_name: str, pipeline, code: grpc.StatusCode) -> None:
    assert refusal(lambda: client.push(action_name, pipeline))[0] == code


def test_device_that_refuses_the_program(client: Client, device: FakeDevice) -> None:
    client.write((INSERT, ROUTE))
    device.refuse_load = ValueError("too many tables")
    assert refusal(client.push_sample) == (grpc.StatusCode.INVALID_ARGUMENT, "too many tables")
    assert client.read(entry(ROUTES)) == [ROUTE]


class TestSaveAndCommit:
    def test_replays_what_was_written(self, client: Client, device: FakeDevice) -> None:
        client.write((INSERT, entry(HOSTS, exact(1, b"\x01"), action=action(DROP))))
        client.push("VERIFY_AND_SAVE", config(cookie=8, routes="Ingress.other_routes"))
        assert device.loads == 1
        assert client.get_pipeline("COOKIE_ONLY").config.cookie.cookie == 7
        assert client.read(entry(HOSTS)) == []
        counted = entry(KINDS, exact(1, b"\x06"), counter_data=p4r.CounterData(packet_count=3))
        register = p4r.RegisterEntry(register_id=TOTALS, index=p4r.Index(index=1), data=p4d.P4Data(bitstring=b"\x05"))
        counter = p4r.CounterEntry(
            counter_id=PORT_COUNTER, index=p4r.Index(index=2), data=p4r.CounterData(packet_count=9)
        )
        group = p4r.MulticastGroupEntry(multicast_group_id=3, replicas=[p4r.Replica(port=b"\x01")])
        session = p4r.CloneSessionEntry(session_id=4, replicas=[p4r.Replica(port=b"\x01")])
        default = entry(ROUTES, is_default_action=True, action=action(MARK, b"\x02"))
        [kept, dropped] = client.read(entry(PRESET))
        kept.action.CopyFrom(action(DROP))
        gone = entry(ROUTES, lpm(1, b"\x0b\x00\x00\x00", 8), action=action(DROP))
        client.write(
            (INSERT, gone),
            (INSERT, ROUTE),
            (DELETE, gone),
            (MODIFY, default),
            (MODIFY, counted),
            (MODIFY, kept),
            (DELETE, dropped),
            (MODIFY, register),
            (MODIFY, counter),
            (INSERT, group),
            (INSERT, session),
        )
        questions = [
            entry(0, counter_data=p4r.CounterData()),
            entry(0, is_default_action=True),
            p4r.RegisterEntry(),
            p4r.CounterEntry(),
            p4r.MulticastGroupEntry(),
            p4r.CloneSessionEntry(),
        ]
        staged = client.read(*questions)
        assert ROUTE.metadata in [e.metadata for e in staged if isinstance(e, p4r.TableEntry)]
        client.push("COMMIT")
        assert texts(client.read(*questions)) == texts(staged)
        assert client.get_pipeline().config == config(cookie=8, routes="Ingress.other_routes")
        assert device.loads == 2
        assert [call.action for _, call, _ in device.state.tables["Ingress.other_routes"].entries.values()] == [
            "Ingress.mark"
        ]
        assert device.state.registers["Ingress.totals"] == [0, 5, 0, 0]
        assert device.replication.groups.keys() == {3} and device.replication.sessions.keys() == {4}
        assert refusal(lambda: client.push("COMMIT"))[0] == grpc.StatusCode.NOT_FOUND

    def test_another_push_replaces_the_saved_one(self, client: Client) -> None:
        client.push("VERIFY_AND_SAVE", config(cookie=8))
        client.push_sample(cookie=9)
        assert refusal(lambda: client.push("COMMIT"))[0] == grpc.StatusCode.NOT_FOUND
        assert client.get_pipeline("COOKIE_ONLY").config.cookie.cookie == 9

    def test_packets_still_meet_the_running_pipeline(self, bare_client: Client, device: FakeDevice) -> None:
        stream = bare_client.become_primary()
        bare_client.push("VERIFY_AND_SAVE", config())
        stream.send(packet=p4r.PacketOut(payload=b"x"))
        assert stream.next().error.canonical_code == StatusCode.FAILED_PRECONDITION
        bare_client.push("COMMIT")
        device.packet_in(b"\x00\x00frame")
        assert stream.next().packet.payload == b"frame"


def test_what_compilers_leave_out(client: Client) -> None:
    """A table without key and action of the JSON, the width of a key of type error of the P4Info."""
    lean = config(cookie=8)
    document = json.loads(lean.p4_device_config)
    document["pipelines"][0]["tables"] = [t for t in tables(document) if t["name"] != "Ingress.keyless"]
    lean.p4_device_config = json.dumps(document).encode()
    lean.p4info.tables[0].match_fields[0].bitwidth = 0
    client.push(pipeline=lean)
    assert client.insert(ROUTE) == StatusCode.OK
    assert client.modify(entry(KEYLESS, is_default_action=True)) == StatusCode.NOT_FOUND


def test_actions_that_are_also_called_from_a_control(client: Client, device: FakeDevice) -> None:
    """p4c emits those a second time, with their arguments built in."""
    called = config(cookie=8)
    document = json.loads(called.p4_device_config)
    document["actions"] += [{"name": "Ingress.forward", "id": 9, "runtime_data": []}]
    called.p4_device_config = json.dumps(document).encode()
    client.push(pipeline=called)
    assert client.insert(ROUTE) == StatusCode.OK
    document["actions"][2]["runtime_data"].pop()
    called.p4_device_config = json.dumps(document).encode()
    code, text = refusal(lambda: client.push(pipeline=called))
    assert code == grpc.StatusCode.INVALID_ARGUMENT and "has 2 parameters in the P4Info, 1 in the JSON" in text


class TestReconcile:
    def test_keeps_the_state(self, client: Client, device: FakeDevice) -> None:
        counted = entry(ROUTES, *ROUTE.match, action=action(DROP), counter_data=p4r.CounterData(packet_count=5))
        client.write((INSERT, counted))
        [handle] = device.state.tables["Ingress.routes"].entries
        assert device.state.tables["Ingress.routes"].counts[handle] == (5, 0)
        device.state.tables["Ingress.routes"].counts[handle] = (7, 100)
        device.state.registers["Ingress.flags"][1] = 1
        client.push("RECONCILE_AND_COMMIT", config(cookie=8, routes="Ingress.renamed"))
        [kept] = client.read(entry(ROUTES, counter_data=p4r.CounterData()))
        assert kept.counter_data == p4r.CounterData(packet_count=7, byte_count=100)
        assert len(device.state.tables["Ingress.renamed"].entries) == 1
        assert device.state.registers["Ingress.flags"] == [0, 1, 0, 0]
        assert client.get_pipeline("COOKIE_ONLY").config.cookie.cookie == 8

    def test_refuses_what_does_not_fit(self, client: Client, device: FakeDevice) -> None:
        client.write((INSERT, ROUTE))
        smaller = config()
        del smaller.p4info.tables[0]
        code, text = refusal(lambda: client.push("RECONCILE_AND_COMMIT", smaller))
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert text == f"the forwarding state cannot be preserved: there is no table {ROUTES}"
        assert client.read(entry(ROUTES)) == [ROUTE]
        assert device.loads == 1

    def test_first_pipeline(self, bare_client: Client, device: FakeDevice) -> None:
        bare_client.become_primary()
        bare_client.push("RECONCILE_AND_COMMIT", config())
        assert device.loads == 1


def test_twenty_pushes_compile_once_and_block_nobody() -> None:
    started, go_on = threading.Event(), threading.Event()
    builds: list[dict] = []

    def build(document: dict) -> FakeProgram:
        builds.append(document)
        started.set()
        assert go_on.wait(TIMEOUT_S)
        return FakeProgram(document)

    devices = {i: FakeDevice(i) for i in range(1, 22)}
    with serving(devices, build=build) as client:
        clients = [Client(client.channel, device_id) for device_id in devices]
        for each in clients:
            each.become_primary()
        with ThreadPoolExecutor(20) as pool:
            pushes = [pool.submit(c.push_sample) for c in clients[:20]]
            assert started.wait(TIMEOUT_S)
            # The compiler is at work: everything else goes on.
            assert client.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=TIMEOUT_S)
            assert refusal(lambda: clients[20].write((INSERT, ROUTE)))[0] == grpc.StatusCode.FAILED_PRECONDITION
            assert not any(push.done() for push in pushes)
            go_on.set()
            for push in pushes:
                push.result(TIMEOUT_S)
        assert len(builds) == 1
        assert [device.loads for device in devices.values()] == [1] * 20 + [0]


def test_primary_that_is_replaced_while_compiling_does_not_commit() -> None:
    started, go_on = threading.Event(), threading.Event()

    def build(document: dict) -> FakeProgram:
        started.set()
        assert go_on.wait(TIMEOUT_S)
        return FakeProgram(document)

    device = FakeDevice(1)
    with serving({1: device}, build=build) as client:
        client.become_primary()
        with ThreadPoolExecutor(1) as pool:
            push = pool.submit(refusal, client.push_sample)
            assert started.wait(TIMEOUT_S)
            newer = Client(client.channel, election_id=2)
            newer.become_primary()
            go_on.set()
            assert push.result(TIMEOUT_S)[0] == grpc.StatusCode.PERMISSION_DENIED
        assert device.loads == 0


def test_failed_builds_are_tried_again() -> None:
    outcomes = iter([UserError("no C compiler found"), RuntimeError("gcc refused\nline 2"), None])

    def build(document: dict) -> FakeProgram:
        error = next(outcomes)
        if error is not None:
            raise error
        return FakeProgram(document)

    with serving({1: FakeDevice(1)}, build=build) as client:
        client.become_primary()
        assert refusal(client.push_sample)[1] == "the pipeline cannot be realized: no C compiler found"
        assert refusal(client.push_sample)[1] == "the pipeline cannot be realized: RuntimeError: gcc refused"
        client.push_sample()


def test_new_primary_waits_for_the_writes_of_the_old_one(client: Client, device: FakeDevice) -> None:
    started, go_on = threading.Event(), threading.Event()
    write = device.state.counters.write

    def slow(*arguments) -> None:
        started.set()
        assert go_on.wait(TIMEOUT_S)
        write(*arguments)

    device.state.counters.write = slow
    counter = p4r.CounterEntry(
        counter_id=PORT_COUNTER, index=p4r.Index(index=0), data=p4r.CounterData(packet_count=1)
    )
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(client.write, (MODIFY, counter))
        assert started.wait(TIMEOUT_S)
        backup = client.stream()
        backup.arbitrate(0)
        assert backup.status() == (StatusCode.ALREADY_EXISTS, 1)
        newer = client.stream()
        newer.arbitrate(2)
        assert backup.status() == (StatusCode.ALREADY_EXISTS, 2)
        assert newer.silent()
        # The old primary may not begin anything.
        late = client.stub.Write.future(client.write_request((MODIFY, counter)))
        go_on.set()
        writing.result(TIMEOUT_S)
        assert newer.status() == (StatusCode.OK, 2)
        assert late.exception(TIMEOUT_S).code() == grpc.StatusCode.PERMISSION_DENIED
