"""Multicast groups and clone sessions of one switch, through the data plane, which keeps them beside the program."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from gradbed.switch.device import Replica

MAX_PORTS = 512
_GREATEST_PRIORITY = 7
_UINT32 = 2**32 - 1


class ReplicaStruct(ctypes.Structure):
    """struct gb_replica."""

    _fields_ = (("egress_port", ctypes.c_uint32), ("instance", ctypes.c_uint32))


class Replication:
    def __init__(self, call: Callable[..., int], device_id: int, name: str) -> None:
        """call: calls a function of the engine by its name. name: of the switch, for errors."""
        self._call = call
        self._device_id = device_id
        self._name = name

    def set_group(self, group_id: int, replicas: Sequence[Replica]) -> None:
        """Create or replace. Group ids are 1..65535, instances 0..65535; several copies may go to one port."""
        if not 0 < group_id < 2**16:
            raise ValueError(f"multicast group {group_id} is not in 1..65535")
        array = _replica_array(replicas)
        if self._call("multicast_group_set", self._device_id, group_id, array, len(replicas)) < 0:
            raise MemoryError

    def delete_group(self, group_id: int) -> None:
        if self._call("multicast_group_delete", self._device_id, group_id & _UINT32) < 0:
            raise KeyError(f"{self._name} has no multicast group {group_id}")

    def set_session(
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
        if self._call("clone_session_set", *arguments) < 0:
            raise MemoryError

    def delete_session(self, session_id: int) -> None:
        if self._call("clone_session_delete", self._device_id, session_id & _UINT32) < 0:
            raise KeyError(f"{self._name} has no clone session {session_id}")


def _replica_array(replicas: Sequence[Replica]) -> object:
    for replica in replicas:
        if not 0 <= replica.egress_port < MAX_PORTS:
            raise ValueError(f"egress port {replica.egress_port} is not in 0..{MAX_PORTS - 1}")
        if not 0 <= replica.instance < 2**16:
            raise ValueError(f"instance {replica.instance} is not in 0..65535")
    return (ReplicaStruct * len(replicas))(*(ReplicaStruct(r.egress_port, r.instance) for r in replicas))
