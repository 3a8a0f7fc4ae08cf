"""One switch of the data plane: a switch.device.Device made of an engine's switch and the state of its program."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Sequence

from switch.device import ActionCall, EntryCall, KeyMatch, MeterCounts, MeterRates, Program, Replica
from switch.engine import abi
from switch.engine.handle import EngineHandle
from switch.engine.statistics import DeviceStatistics
from switch.runtime.access import SwitchState

PacketInCallback = Callable[[bytes], None]
DigestCallback = Callable[[int, tuple[int, ...]], None]

_logger = logging.getLogger("switch.p4")
_UINT32 = 2**32 - 1
_GREATEST_PRIORITY = 7


class EngineDevice:
    """Made by Engine.add_switch. Methods may be called from any thread, also while packets are moving."""

    def __init__(self, engine: EngineHandle, device_id: int, name: str) -> None:
        self._engine = engine
        self._device_id = device_id
        self._name = name
        self._start_ns = engine.call("switch_start", device_id)
        self._program: Program | None = None
        self._state: SwitchState | None = None
        self._packet_in: PacketInCallback | None = None
        self._digest: DigestCallback | None = None

    @property
    def device_id(self) -> int:
        return self._device_id

    @property
    def name(self) -> str:
        return self._name

    @property
    def program(self) -> Program | None:
        return self._program

    def load(self, program: Program) -> None:
        """Run another program from the next packet on, with fresh state.

        Packets between the ingress and the egress of the old one are dropped and counted (swap_drops), as are packets
        that come before the first program (no_program_drops). Packets on links stay. Multicast groups and clone
        sessions go with the old program. If the new one cannot be loaded, the old one goes on.
        """
        state = SwitchState(program, self._engine.guard, lambda: self.clock_ns() // 1000)
        self._engine.call("load", self._device_id, state.pointer)
        old, self._state, self._program = self._state, state, program
        logging.getLogger(__name__).info("switch %s: a program was loaded", self._name)
        if old is not None:
            old.close()
        self._listen()

    def restart(self) -> None:
        """Lose the program and all state, as when the power fails for a moment.

        Ports, links and what travels on them stay, and so do the callbacks of `on_packet_in` and `on_digest`. Packets
        that arrive before the next program are dropped (no_program_drops).
        """
        self._close()
        self._program = None

    @property
    def state(self) -> SwitchState:
        """What the running program keeps. KeyError before the first program."""
        if self._state is None:
            raise KeyError(f"switch {self._name} has no program yet")
        return self._state

    @property
    def start_ns(self) -> int:
        """When the switch was added, of the engine's clock."""
        return self._start_ns

    def clock_ns(self) -> int:
        """Nanoseconds since the switch was added; its timestamps are microseconds of this clock."""
        return self._engine.now_ns() - self._start_ns

    def has_port(self, port: int) -> bool:
        return 0 <= port < abi.MAX_PORTS and bool(self._engine.call("has_port", self._device_id, port))

    def port_is_up(self, port: int) -> bool:
        """False while its link is cut (Engine.set_link_up), and while its interface is down or has no carrier."""
        return 0 <= port < abi.MAX_PORTS and bool(self._engine.call("port_up", self._device_id, port))

    def statistics(self) -> DeviceStatistics:
        row = abi.DeviceStatisticsStruct()
        self._engine.call("device_statistics", self._device_id, row)
        return DeviceStatistics(**abi.values(row))

    # What programs keep: the state keeps the data plane out while it is being read or written

    def table_insert(self, table: str, key: Sequence[KeyMatch], call: EntryCall, priority: int) -> int:
        return self.state.table_insert(table, key, call, priority)

    def table_modify(self, table: str, handle: int, call: EntryCall) -> None:
        self.state.table_modify(table, handle, call)

    def table_delete(self, table: str, handle: int) -> None:
        self.state.table_delete(table, handle)

    def table_set_default(self, table: str, call: ActionCall | None) -> None:
        self.state.table_set_default(table, call)

    def table_entry_count(self, table: str, handle: int) -> tuple[int, int]:
        return self.state.table_entry_count(table, handle)

    def table_entry_count_write(self, table: str, handle: int, packets: int, bytes_: int) -> None:
        self.state.table_entry_count_write(table, handle, packets, bytes_)

    def table_default_count(self, table: str) -> tuple[int, int]:
        return self.state.table_default_count(table)

    def table_default_count_write(self, table: str, packets: int, bytes_: int) -> None:
        self.state.table_default_count_write(table, packets, bytes_)

    def table_initial_handles(self, table: str) -> Sequence[int]:
        return self.state.table_initial_handles(table)

    def table_last_hit_ns(self, table: str, handle: int) -> int:
        return self.state.table_last_hit_us(table, handle) * 1000

    def profile_member_write(self, profile: str, member: int, call: ActionCall) -> None:
        self.state.profile_member_write(profile, member, call)

    def profile_member_delete(self, profile: str, member: int) -> None:
        self.state.profile_member_delete(profile, member)

    def profile_group_write(
        self, profile: str, group: int, members: Sequence[int], watched: Sequence[int | None] = ()
    ) -> None:
        self.state.profile_group_write(profile, group, members, watched)

    def profile_group_delete(self, profile: str, group: int) -> None:
        self.state.profile_group_delete(profile, group)

    def register_read(self, register: str, index: int) -> int:
        return self.state.register_read(register, index)

    def register_read_all(self, register: str) -> list[int]:
        return self.state.register_read_all(register)

    def register_write(self, register: str, index: int, value: int) -> None:
        self.state.register_write(register, index, value)

    def counter_read(self, counter: str, index: int) -> tuple[int, int]:
        return self.state.counter_read(counter, index)

    def counter_read_all(self, counter: str) -> list[tuple[int, int]]:
        return self.state.counter_read_all(counter)

    def counter_write(self, counter: str, index: int, packets: int, bytes_: int) -> None:
        self.state.counter_write(counter, index, packets, bytes_)

    def meter_write(self, meter: str, index: int, rates: MeterRates | None) -> None:
        self.state.meter_write(meter, index, rates)

    def meter_counts(self, meter: str, index: int) -> MeterCounts:
        return self.state.meter_counts(meter, index)

    def meter_counts_clear(self, meter: str, index: int) -> None:
        self.state.meter_counts_clear(meter, index)

    def table_meter_write(self, table: str, handle: int, rates: MeterRates | None) -> None:
        self.state.table_meter_write(table, handle, rates)

    def table_meter_counts(self, table: str, handle: int) -> MeterCounts:
        return self.state.table_meter_counts(table, handle)

    def table_meter_counts_clear(self, table: str, handle: int) -> None:
        self.state.table_meter_counts_clear(table, handle)

    def value_set_write(self, value_set: str, members: Sequence[tuple[int, int]]) -> None:
        self.state.value_set_write(value_set, members)

    # Packet replication engine

    def multicast_group_set(self, group_id: int, replicas: Sequence[Replica]) -> None:
        """Create or replace. Group ids are 1..65535, instances 0..65535; several copies may go to one port."""
        if not 0 < group_id < 2**16:
            raise ValueError(f"multicast group {group_id} is not in 1..65535")
        array = _replica_array(replicas)
        if self._engine.call("multicast_group_set", self._device_id, group_id, array, len(replicas)) < 0:
            raise MemoryError

    def multicast_group_delete(self, group_id: int) -> None:
        if self._engine.call("multicast_group_delete", self._device_id, group_id & _UINT32) < 0:
            raise KeyError(f"switch {self._name} has no multicast group {group_id}")

    def clone_session_set(
        self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int = 0, class_of_service: int = 0
    ) -> None:
        """Create or replace: where clones of that session go.

        Session ids are 0..65535. truncate_bytes: longest frame of a clone when it leaves; 0 is no limit.
        class_of_service: standard_metadata.priority of the clones, 0..7.
        """
        if not 0 <= class_of_service <= _GREATEST_PRIORITY:
            raise ValueError(f"class of service {class_of_service} is not in 0..{_GREATEST_PRIORITY}")
        if not 0 <= session_id < 2**16:
            raise ValueError(f"clone session {session_id} is not in 0..65535")
        array = _replica_array(replicas)
        arguments = (self._device_id, session_id, array, len(replicas), truncate_bytes, class_of_service)
        if self._engine.call("clone_session_set", *arguments) < 0:
            raise MemoryError

    def clone_session_delete(self, session_id: int) -> None:
        if self._engine.call("clone_session_delete", self._device_id, session_id & _UINT32) < 0:
            raise KeyError(f"switch {self._name} has no clone session {session_id}")

    # Packets and messages between the switch and its controller

    def packet_out(self, frame: bytes) -> None:
        """Hand a frame to the ingress pipeline on the CPU port."""
        if len(frame) > abi.MAX_FRAME_BYTES:
            raise ValueError(f"a frame has at most {abi.MAX_FRAME_BYTES} bytes, this one {len(frame)}")
        if self._engine.call("packet_out", self._device_id, frame, len(frame)) == -errno.EINVAL:
            raise ValueError(f"switch {self._name} has no CPU port")

    def on_packet_in(self, callback: PacketInCallback | None) -> None:
        """Call back, from the engine's upcall thread, with each frame sent to the CPU port. None: drop them."""
        self._packet_in = callback
        self._listen()

    def on_digest(self, callback: DigestCallback | None) -> None:
        """Call back, from the engine's upcall thread, with learn list id and 64-bit words of each digest."""
        self._digest = callback
        self._listen()

    # Private

    def _listen(self) -> None:
        kinds = 0
        if self._packet_in is not None:
            kinds |= 1 << abi.UPCALL_PACKET_IN
        if self._digest is not None:
            kinds |= 1 << abi.UPCALL_DIGEST
        if _logger.isEnabledFor(logging.INFO):
            kinds |= 1 << abi.UPCALL_LOG
        self._engine.call("listen", self._device_id, kinds)

    def _upcall(self, kind: int, list_id: int, data: bytes) -> None:
        packet_in, digest = self._packet_in, self._digest
        if kind == abi.UPCALL_PACKET_IN and packet_in is not None:
            packet_in(data)
        elif kind == abi.UPCALL_DIGEST and digest is not None:
            digest(list_id, tuple(memoryview(data).cast("Q")))
        elif kind == abi.UPCALL_LOG:
            _logger.info("%s: %s", self._name, data.decode(errors="replace"))

    def _close(self) -> None:
        if self._state is not None:
            self._engine.call("load", self._device_id, None)
            self._state.close()
            self._state = None


def _replica_array(replicas: Sequence[Replica]) -> object:
    for replica in replicas:
        if not 0 <= replica.egress_port < abi.MAX_PORTS:
            raise ValueError(f"egress port {replica.egress_port} is not in 0..{abi.MAX_PORTS - 1}")
        if not 0 <= replica.instance < 2**16:
            raise ValueError(f"instance {replica.instance} is not in 0..65535")
    return (abi.ReplicaStruct * len(replicas))(*(abi.ReplicaStruct(r.egress_port, r.instance) for r in replicas))
