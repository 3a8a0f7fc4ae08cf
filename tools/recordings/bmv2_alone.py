"""One simple_switch_grpc outside of any network: a socket at each port, and a P4Runtime client."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import U128, p4i, p4r, p4r_grpc, rpc_status

from gradbed.common.errors import UserError
from gradbed.common.resources import Closing
from gradbed.emulation.nodes import Bmv2Switch, free_ports
from gradbed.emulation.veth import VethPair, create_pairs
from gradbed.switch.p4lang.bmv2 import Shell, find_simple_switch_grpc, require_simple_switch

QUIET_S = 0.2
"""BMv2 does not say when it is idle: it counts as idle once nothing has come out so long, in which no thread of it
wanted a processor."""
_POLL_S = 0.005
_TIMEOUT_S = 30.0
_GROUP = 7
_DEVICE_ID, _ELECTION_ID = 1, 1
_IGNORE_OUTGOING = 23  # PACKET_IGNORE_OUTGOING, <linux/if_packet.h>
_AUXDATA = 8  # PACKET_AUXDATA
_SOL_PACKET = 263
_AUXDATA_FORMAT = struct.Struct("=IIIHHHH")  # struct tpacket_auxdata
_HAS_TAG, _HAS_TPID = 1 << 4, 1 << 6  # TP_STATUS_VLAN_VALID, TP_STATUS_VLAN_TPID_VALID
_ETH_P_ALL, _ETH_P_8021Q = 3, 0x8100


class Bmv2Alone(Closing):
    """A switch to record. Run it in gradbed.common.sandbox.run_in_sandbox: it makes interfaces.

    UserError where simple_switch_grpc, or simple_switch_CLI beside it, is not installed.
    """

    def __init__(self, ports: int, folder: Path) -> None:
        binary, self._cli = find_simple_switch_grpc(), require_simple_switch()[1]
        self.name = f"BMv2 {_version(binary)} simple_switch_grpc"
        numbers = range(1, ports + 1)
        create_pairs(
            [
                VethPair(f"s1-eth{p}", f"02:00:00:00:01:{p:02x}", f"s1-t{p}", f"02:00:00:00:02:{p:02x}")
                for p in numbers
            ],
            group=_GROUP,
        )
        grpc_port, thrift_port = free_ports(2)
        self._switch = Bmv2Switch("s1", _DEVICE_ID, binary, grpc_port, thrift_port, folder / "s1.log")
        self._switch.intfs = {p: _Interface(f"s1-eth{p}") for p in numbers}
        with contextlib.ExitStack() as stack:
            self._switch.start([])
            stack.callback(self._switch.stop, deleteIntfs=False)
            self._switch.wait_ready()
            channel = stack.enter_context(grpc.insecure_channel(self._switch.grpc_address))
            self._stub = p4r_grpc.P4RuntimeStub(channel)
            self._stream = stack.enter_context(_primary(self._stub))
            self._sockets = {p: stack.enter_context(_open(f"s1-t{p}")) for p in numbers}
            self._stack = stack.pop_all()

    def close(self) -> None:
        """End the switch."""
        self._stack.close()

    def push(self, bmv2_json: Mapping[str, Any], info: p4i.P4Info) -> None:
        """Load a program."""
        config = p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=json.dumps(bmv2_json).encode())
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=_DEVICE_ID,
            election_id=U128.encode(_ELECTION_ID),
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=config,
        )
        try:
            self._stub.SetForwardingPipelineConfig(request, timeout=_TIMEOUT_S)
        except grpc.RpcError as error:
            raise UserError(f"{self.name} refuses the program: {_words(error)}") from None

    def insert(self, entity: p4r.Entity) -> str:
        """Insert an entity; return why it is refused, or an empty string."""
        update = p4r.Update(type=p4r.Update.INSERT, entity=entity)
        request = p4r.WriteRequest(device_id=_DEVICE_ID, election_id=U128.encode(_ELECTION_ID), updates=[update])
        try:
            self._stub.Write(request, timeout=_TIMEOUT_S)
        except grpc.RpcError as error:
            return _words(error)
        return ""

    def exchange(self, port: int, frame: bytes) -> dict[int, list[bytes]]:
        """Send a frame, and return what came out by which port."""
        self._sockets[port].send(frame)
        out: dict[int, list[bytes]] = {}
        quiet_since_s = time.monotonic()
        while time.monotonic() - quiet_since_s < QUIET_S:
            came = False
            for left_by, end in self._sockets.items():
                for data in _received(end):
                    out.setdefault(left_by, []).append(data)
                    came = True
            if came or self._is_busy():
                quiet_since_s = time.monotonic()
            time.sleep(_POLL_S)
        return out

    def registers(self, info: p4i.P4Info) -> dict[str, list[int]]:
        """Read registers by Thrift: BMv2's P4Runtime reads none."""
        if not info.registers:
            return {}
        shell = Shell(self._cli, self._switch.thrift_port)
        try:
            return {each.preamble.name: shell.register(each.preamble.name) for each in info.registers}
        finally:
            shell.end()

    def counters(self, info: p4i.P4Info) -> dict[str, dict[int, tuple[int, int]]]:
        """Return packets and bytes by index, by name."""
        found: dict[str, dict[int, tuple[int, int]]] = {}
        for each in info.counters:
            cells = found[each.preamble.name] = {}
            asked = p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=each.preamble.id))
            for response in self._stub.Read(p4r.ReadRequest(device_id=_DEVICE_ID, entities=[asked])):
                for entity in response.entities:
                    cell = entity.counter_entry
                    cells[cell.index.index] = (cell.data.packet_count, cell.data.byte_count)
        return found

    def _is_busy(self) -> bool:
        """Return whether a thread of the switch runs, or waits for a processor."""
        assert self._switch.process is not None
        if self._switch.process.poll() is not None:
            raise UserError(f"{self.name} has ended: BMv2 does not survive everything that a program does")
        states = []
        for thread in Path(f"/proc/{self._switch.process.pid}/task").glob("*/stat"):
            with contextlib.suppress(OSError):  # the thread has ended
                states.append(thread.read_text().rpartition(") ")[2][:1])  # proc_pid_stat(5)
        return "R" in states


class _Interface:
    """The part of Mininet's interface that the node looks at."""

    def __init__(self, name: str) -> None:
        self.name = name


def _version(binary: str) -> str:
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False).stdout.split()
    return said[0] if said else "of an unknown version"


def _words(error: grpc.RpcError) -> str:
    """Return an error in one line; of a batch the message of its one update."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status = rpc_status.Status()
            status.ParseFromString(value)
            for detail in status.details:
                about = p4r.Error()
                if detail.Unpack(about) and about.message:
                    return " ".join(about.message.split())
    return " ".join(f"{error.code().name} {error.details()}".split())


@contextlib.contextmanager
def _primary(stub: Any) -> Iterator[None]:
    """Open a stream as the primary controller, for as long as it is open."""
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    arbitration = p4r.MasterArbitrationUpdate(device_id=_DEVICE_ID, election_id=U128.encode(_ELECTION_ID))
    requests.put(p4r.StreamMessageRequest(arbitration=arbitration))
    call = stub.StreamChannel(iter(requests.get, None))
    try:
        next(call)
        yield
    finally:
        requests.put(None)
        call.cancel()


# ---- Sockets ----


def _open(interface: str) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    end.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
    end.setsockopt(_SOL_PACKET, _AUXDATA, 1)
    end.setblocking(False)
    end.bind((interface, _ETH_P_ALL))
    return end


def _received(end: socket.socket) -> Iterator[bytes]:
    with contextlib.suppress(BlockingIOError):
        while True:
            data, ancillary, _, _ = end.recvmsg(1 << 16, socket.CMSG_SPACE(_AUXDATA_FORMAT.size))
            yield _with_tag(data, ancillary)


def _with_tag(data: bytes, ancillary: list[tuple[int, int, bytes]]) -> bytes:
    """Return the frame with the 802.1Q tag that Linux took off."""
    for level, kind, content in ancillary:
        if (level, kind) == (_SOL_PACKET, _AUXDATA):
            status, _, _, _, _, tag, protocol = _AUXDATA_FORMAT.unpack(content[: _AUXDATA_FORMAT.size])
            if status & _HAS_TAG:
                protocol = protocol if status & _HAS_TPID else _ETH_P_8021Q
                return data[:12] + struct.pack(">HH", protocol, tag) + data[12:]
    return data
