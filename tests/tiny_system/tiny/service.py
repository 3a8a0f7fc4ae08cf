"""The controller's part: every flow is counted in the switch before its receiver."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address

from pydantic import BaseModel

from gradbed.plugin import NoSettings, Plan, Service, SwitchPlan, TableEntry, UserError
from tiny.ports import UDP_PORT

PROGRAM = "tiny"


class Flow(BaseModel, frozen=True, extra="forbid"):
    """From one host to another."""

    sender: str
    receiver: str


class AdmittedFlow(BaseModel, frozen=True):
    """switch: which counts it, in the cell `job`."""

    job: int
    switch: str


class TinyService(Service[NoSettings, Flow, Flow, AdmittedFlow]):
    Settings, Request, State, Answer = NoSettings, Flow, Flow, AdmittedFlow
    programs = (PROGRAM,)

    def admit(self, number: int, request: Flow, others: Mapping[int, Flow]) -> Flow:
        if self.topology.host(request.sender) == self.topology.host(request.receiver):
            raise UserError(f"{request.sender} cannot send to itself")
        return request

    def plan(self, number: int, state: Flow) -> Plan:
        entry = TableEntry(
            table="flows",
            match={
                "hdr.ipv4.dst_addr": int(IPv4Address(self.topology.host(state.receiver).ip)),
                "hdr.udp.dst_port": UDP_PORT,
            },
            action="count_flow",
            params={"index": number},
        )
        return Plan(switches={self.topology.attachment(state.receiver).name: SwitchPlan.of(PROGRAM, [entry])})

    def answer(self, number: int, state: Flow) -> AdmittedFlow:
        return AdmittedFlow(job=number, switch=self.topology.attachment(state.receiver).name)

    def plain(self, switch: str, entry: TableEntry) -> TableEntry | None:
        return None  # what only forwards counts nothing
