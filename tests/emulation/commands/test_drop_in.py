"""The whole tool chain by its names: p4c, simple_switch_grpc, simple_switch_CLI, with finsy as the controller."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import finsy
import pytest
from scapy.utils import RawPcapReader

from gradbed.switch.shims import write_shims
from tests.emulation.engine.test_engine_veth import Bench, ethernet, make_bench
from tests.waiting import wait_until

pytestmark = [pytest.mark.thorough, pytest.mark.root]

PATIENCE_S = 60.0
CPU_PORT = 100
PROGRAM = """
#include <core.p4>
#include <v1model.p4>
@controller_header("packet_in") header packet_in_t { bit<16> port; }
@controller_header("packet_out") header packet_out_t { bit<16> port; }
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers { packet_in_t packet_in; packet_out_t packet_out; ethernet_t ethernet; }
struct metadata {}
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start {
        transition select(sm.ingress_port) { CPU_PORT: from_controller; default: from_network; }
    }
    state from_controller { packet.extract(hdr.packet_out); transition from_network; }
    state from_network { packet.extract(hdr.ethernet); transition accept; }
}
control Verify(inout headers hdr, inout metadata meta) { apply {} }
control In(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    counter(16, CounterType.packets) seen;
    action forward(bit<9> port) { sm.egress_spec = port; }
    action to_controller() {
        sm.egress_spec = CPU_PORT;
        hdr.packet_in.setValid();
        hdr.packet_in.port = (bit<16>)sm.ingress_port;
    }
    table hosts {
        key = { sm.ingress_port: exact; hdr.ethernet.type: exact; }
        actions = { forward; to_controller; }
        default_action = to_controller();
    }
    apply {
        seen.count((bit<32>)(bit<4>)sm.ingress_port);
        if (hdr.packet_out.isValid()) {
            sm.egress_spec = (bit<9>)hdr.packet_out.port;
            hdr.packet_out.setInvalid();
        } else {
            hosts.apply();
        }
    }
}
control Eg(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply {} }
control Compute(inout headers hdr, inout metadata meta) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.packet_in); packet.emit(hdr.ethernet); } }
V1Switch(P(), Verify(), In(), Eg(), Compute(), D()) main;
"""


@pytest.fixture
def bench() -> Iterator[Bench]:
    with make_bench() as bench:
        yield bench


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the executables, first in PATH."""
    folder = tmp_path / "bin"
    write_shims(folder)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def frames(path: Path) -> list[bytes]:
    with RawPcapReader(str(path)) as reader:
        return [frame for frame, _ in reader]


def listens(path: Path) -> bool:
    """Return whether a server takes connections there; its file exists a moment before."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


async def control(address: str, build: Path, bench: Bench) -> None:
    """Push, write, and answer a packet, as finsy's users do."""
    options = finsy.SwitchOptions(p4info=build / "patch.p4info.txtpb", p4blob=build / "patch.json", device_id=3)
    async with finsy.Switch("s1", address, options) as switch:
        assert switch.is_primary
        await switch.insert(
            [
                finsy.P4TableEntry("hosts", match=finsy.Match({"sm.ingress_port": port, "hdr.ethernet.type": 0x88B5}),
                                   action=finsy.Action("forward", port=3 - port))
                for port in (1, 2)
            ]
        )  # fmt: skip
        loop = asyncio.get_running_loop()
        there, back = [ethernet(number) for number in range(20)], [ethernet(number, 100) for number in range(20)]
        for a, b in zip(there, back, strict=True):
            bench.sockets[0].send(a)
            bench.sockets[1].send(b)
        assert await loop.run_in_executor(None, bench.receive, 2, 20) == there
        assert await loop.run_in_executor(None, bench.receive, 1, 20) == back
        question = b"\x02" * 12 + b"\x12\x34" + b"question".ljust(50, b".")
        bench.sockets[1].send(question)
        packet = await anext(aiter(switch.read_packets()))
        assert (packet["port"], packet.payload) == (2, question)
        await switch.write([finsy.P4PacketOut(question[::-1], port=2)])
        assert await loop.run_in_executor(None, bench.receive, 2, 1) == [question[::-1]]
        counts = {e.index: e.packet_count async for e in switch.read([finsy.P4CounterEntry("seen")])}
        assert (counts[1], counts[2]) == (20, 21)


def test_compiled_run_and_programmed_by_their_names(bench: Bench, tools: Path, tmp_path: Path) -> None:
    (tmp_path / "patch.p4").write_text(PROGRAM)
    subprocess.run(
        ["p4c", "--target", "bmv2", "--arch", "v1model", "-D", f"CPU_PORT={CPU_PORT}", "-o", "build",
         "--p4runtime-files", "build/patch.p4info.txtpb", "patch.p4"],
        check=True,
        cwd=tmp_path,
    )  # fmt: skip
    (tmp_path / "pcaps").mkdir()
    address = tmp_path / "p4rt.sock"
    command = ["simple_switch_grpc", "--no-p4", "--device-id", "3", "-i", "1@s1", "-i", "2@s2", "--pcap", "pcaps",
               "--log-console", "--thrift-port", "9090",
               "--", "--grpc-server-addr", f"unix:{address}", "--cpu-port", str(CPU_PORT)]  # fmt: skip
    entered = ["nsenter", f"--target={bench.switch.pid}", "--net", *command]
    log = tmp_path / "switch.log"
    with log.open("w") as output:
        switch = subprocess.Popen(entered, cwd=tmp_path, stdout=output, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: listens(address), PATIENCE_S)
        asyncio.run(asyncio.wait_for(control(f"unix:{address}", tmp_path / "build", bench), PATIENCE_S))
        shell = ["nsenter", f"--target={bench.switch.pid}", "--net", "simple_switch_CLI"]
        commands = "table_num_entries hosts\nmirroring_add 5 1\ncounter_read seen 1\n"
        said = subprocess.run(shell, input=commands, capture_output=True, text=True, check=True).stdout
        assert "RuntimeCmd: 2\n" in said
        assert "20 packets)" in said
        assert "Error" not in said
    finally:
        switch.terminate()
        status = switch.wait(PATIENCE_S)
    assert status == 0, log.read_text()
    text = log.read_text()
    assert "Adding interface s1 as port 1" in text
    assert "a program was loaded" in text
    assert text.rstrip().endswith("stopped")
    came, left = frames(tmp_path / "pcaps" / "s1_in.pcap"), frames(tmp_path / "pcaps" / "s1_out.pcap")
    assert came == [ethernet(number) for number in range(20)]
    assert left == [ethernet(number, 100) for number in range(20)]
    assert len(frames(tmp_path / "pcaps" / "s2_in.pcap")) == 21
    assert frames(tmp_path / "pcaps" / "s2_out.pcap")[-1].endswith(b"\x02" * 12)
