"""A system made up for tests: a job lights a lamp at a switch, and every switch knows the way there."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from gradbed.common.errors import UserError
from gradbed.controller.core.service import LoadedService, Service
from gradbed.controller.planning.entries import udp_route
from gradbed.controller.planning.plan import Plan, SwitchPlan, TableEntry
from gradbed.controller.southbound.interface import Digest, Message, PacketIn


class LampSettings(BaseModel, frozen=True, extra="forbid"):
    lamps: int = 4


class LampRequest(BaseModel, extra="forbid"):
    model_config = {"json_schema_extra": {"example": {"switch": "s1", "lamp": 2}}}

    switch: str
    lamp: int


class LampState(BaseModel, frozen=True, extra="forbid"):
    switch: str
    lamp: int


class LampAnswer(BaseModel):
    model_config = {"json_schema_extra": {"example": {"job": 1, "lamp": 2}}}

    job: int
    lamp: int


class LampService(Service[LampSettings, LampRequest, LampState, LampAnswer]):
    Settings = LampSettings
    Request = LampRequest
    State = LampState
    Answer = LampAnswer
    programs = ("lamps",)

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.seen: list[tuple[str, Message]] = []
        self.moths: set[tuple[str, int]] = set()

    def base(self) -> Plan:
        return Plan(
            switches={
                switch.name: SwitchPlan.of(
                    self.programs[0],
                    [
                        TableEntry(table="moths", match={"moth": moth}, action="count")
                        for at, moth in self.moths
                        if at == switch.name
                    ],
                )
                for switch in self.topology.switches
            }
        )

    def admit(self, number: int, request: LampRequest, others: Mapping[int, LampState]) -> LampState:
        self.topology.switch(request.switch)
        if not 0 <= request.lamp < self.settings.lamps:
            raise UserError(f"a switch has {self.settings.lamps} lamps, there is no lamp {request.lamp}")
        for other, state in others.items():
            if (state.switch, state.lamp) == (request.switch, request.lamp):
                raise UserError(f"job {other} has lit lamp {request.lamp} of {request.switch}")
        return LampState(switch=request.switch, lamp=request.lamp)

    def plan(self, number: int, state: LampState) -> Plan:
        def entry(switch: str) -> TableEntry:
            if switch == state.switch:
                return TableEntry(table="lamps", match={"job": number}, action="light", params={"lamp": state.lamp})
            port = self.topology.port(switch, self.routes.next_hop(switch, state.switch))
            return TableEntry(table="towards_lamp", match={"job": number}, action="send", params={"port": port})

        return Plan(
            switches={s.name: SwitchPlan.of(self.programs[0], [entry(s.name)]) for s in self.topology.switches}
        )

    def answer(self, number: int, state: LampState) -> LampAnswer:
        return LampAnswer(job=number, lamp=state.lamp)

    def plain(self, switch: str, entry: TableEntry) -> TableEntry | None:
        if entry.table == "towards_lamp":
            (job,) = entry.match.values()
            assert isinstance(job, int)
            return udp_route(7, job, entry.params["port"])
        if entry.table == "moths":
            return None
        raise UserError(f"{switch} has no lamps")

    def on_message(self, switch: str, message: Message) -> Plan | None:
        self.seen.append((switch, message))
        if isinstance(message, PacketIn):
            return None
        assert isinstance(message, Digest)
        self.moths |= {(switch, each["moth"]) for each in message.entries}
        return self.base()


class BellState(LampState):
    """So that the journal can tell the two systems' states apart."""

    loud: bool = True


class BellService(LampService):
    """The same in another program."""

    State = BellState
    programs = ("bells",)

    def admit(self, number: int, request: LampRequest, others: Mapping[int, LampState]) -> BellState:
        return BellState(**dict(super().admit(number, request, others)))


LAMPS = LoadedService("lamps", LampService, LampSettings())
BELLS = LoadedService("bells", BellService, LampSettings(lamps=1))
