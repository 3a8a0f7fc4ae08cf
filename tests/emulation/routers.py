"""Make every switch of a running network an IPv4 router (p4src/router.p4), through P4Runtime."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Any

import grpc
import networkx
from finsy.proto import p4i, p4r, p4r_grpc
from google.protobuf import text_format

from emulation.network import EmulatedNetwork
from switch.program_cache import compiled_files
from tests.emulation.sandboxed import ROOT
from topo.graph import Switch, Topology

ELECTION = p4r.Uint128(low=1)
TIMEOUT_S = 60


def route_everything(network: EmulatedNetwork) -> None:
    """Push the program to all switches, with a route to every host along one shortest path."""
    program = compiled_files(ROOT / "p4src" / "router.p4", {})
    p4info = text_format.Parse(program.p4info.read_text(), p4i.P4Info())
    config = p4r.ForwardingPipelineConfig(p4info=p4info, p4_device_config=program.json.read_bytes())
    for switch in network.topology.switches:
        with grpc.insecure_channel(network.fabric.control_address(switch.name)) as channel:
            stub = p4r_grpc.P4RuntimeStub(channel)
            requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
            arbitration = p4r.MasterArbitrationUpdate(device_id=switch.number, election_id=ELECTION)
            requests.put(p4r.StreamMessageRequest(arbitration=arbitration))
            stream = stub.StreamChannel(iter(requests.get, None), timeout=TIMEOUT_S)
            assert next(stream).arbitration.status.code == 0
            stub.SetForwardingPipelineConfig(
                p4r.SetForwardingPipelineConfigRequest(
                    device_id=switch.number,
                    election_id=ELECTION,
                    action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                    config=config,
                ),
                timeout=TIMEOUT_S,
            )
            updates = [
                p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry))
                for entry in _entries(network.topology, switch, p4info)
            ]
            stub.Write(
                p4r.WriteRequest(device_id=switch.number, election_id=ELECTION, updates=updates), timeout=TIMEOUT_S
            )
            requests.put(None)


def _entries(topology: Topology, switch: Switch, p4info: Any) -> Iterator[Any]:
    tables = {table.preamble.alias: table.preamble.id for table in p4info.tables}
    actions = {action.preamble.alias: action.preamble.id for action in p4info.actions}
    distances = dict(networkx.all_pairs_shortest_path_length(topology.graph))

    def entry(table: str, match: Any, action: str, *values: int) -> Any:
        params = [p4r.Action.Param(param_id=i, value=_shortest(value)) for i, value in enumerate(values, start=1)]
        call = p4r.Action(action_id=actions[action], params=params)
        return p4r.TableEntry(table_id=tables[table], match=[match], action=p4r.TableAction(action=call))

    for neighbour, port in topology.neighbours(switch.name).items():
        node = topology.host(neighbour) if topology.is_host(neighbour) else topology.switch(neighbour)
        match = p4r.FieldMatch(field_id=1, exact=p4r.FieldMatch.Exact(value=_shortest(port)))
        yield entry("next_hops", match, "forward", port, _mac(switch.mac), _mac(node.mac))
    for host in topology.hosts:
        towards = min(topology.neighbours(switch.name), key=lambda name: distances[name][host.name])
        lpm = p4r.FieldMatch.LPM(value=IPv4Address(host.ip).packed, prefix_len=32)
        match = p4r.FieldMatch(field_id=1, lpm=lpm)
        yield entry("routes", match, "set_next_hop", topology.port(switch.name, towards))


def _mac(text: str) -> int:
    return int(text.replace(":", ""), 16)


def _shortest(value: int) -> bytes:
    """P4Runtime's canonical form (section 8.4): no leading zero bytes, at least one byte."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
