"""Compiler, code generator, data plane and P4Runtime server together, with finsy as the controller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import finsy

from gradbed.switch.compiler import compile_p4
from gradbed.switch.engine import Engine, EngineDevice
from gradbed.switch.server import P4RuntimeServer

TIMEOUT_S = 60
CPU_PORT = 510
H1, H2, H3 = (f"02:00:00:00:00:0{i}" for i in (1, 2, 3))


def mac(address: str | int) -> bytes:
    return address.to_bytes(6, "big") if isinstance(address, int) else bytes.fromhex(address.replace(":", ""))


def frame(
    destination: str | int, source: str | int = H1, ether_type: int = 0x88B5, payload: bytes = b"payload"
) -> bytes:
    return mac(destination) + mac(source) + ether_type.to_bytes(2, "big") + payload


def write_program(program: Path, directory: Path) -> tuple[Path, Path]:
    """Files with a P4 program's JSON and P4Info."""
    result = compile_p4(program)
    json, p4info = directory / "program.json", directory / "program.p4info.txt"
    json.write_text(result.json_text)
    p4info.write_text(result.p4info_text)
    return json, p4info


def compiled(program: str, directory: Path) -> finsy.SwitchOptions:
    """Options of a controller that pushes one of the programs beside this file."""
    json, p4info = write_program(Path(__file__).with_name(program), directory)
    return finsy.SwitchOptions(p4info=p4info, p4blob=json, p4force=True, fail_fast=True)


@dataclass
class Network:
    """One switch with open ports 1 to 3."""

    engine: Engine
    device: EngineDevice
    address: str
    options: finsy.SwitchOptions | None
    manual_clock: bool

    def exchange(self, port: int, sent: bytes) -> dict[int, bytes]:
        """Send a frame in; what came out, by port."""
        self.engine.inject(1, port, sent)
        if self.manual_clock:
            self.engine.advance(0)
        assert self.engine.quiesce(10)
        return {port: received for _, port, received in self.engine.drain()}

    def run(self, work: Callable[[finsy.Switch], Coroutine[None, None, None]]) -> None:
        async def connected() -> None:
            async with finsy.Switch("s1", self.address, self.options) as switch:
                await work(switch)

        asyncio.run(asyncio.wait_for(connected(), TIMEOUT_S))


@contextmanager
def running(options: finsy.SwitchOptions | None = None, *, manual_clock: bool = False) -> Iterator[Network]:
    """options: of finsy, if that is the controller. manual_clock: the data plane waits to be told of time."""
    with Engine(manual_clock=manual_clock) as engine:
        device = engine.add_switch(1, "s1", CPU_PORT)
        for port in (1, 2, 3):
            engine.add_open_port(1, port)
        if not manual_clock:
            engine.start()
        server = P4RuntimeServer({1: device}, ["127.0.0.1:0"])
        server.start()
        try:
            yield Network(engine, device, f"127.0.0.1:{server.ports[0]}", options, manual_clock)
        finally:
            server.stop()


def controlled(test: Callable[[Network, finsy.Switch], Coroutine[None, None, None]]) -> Callable[[Network], None]:
    """A test that is given, beside the network, finsy's connection to its switch."""

    def run(network: Network) -> None:
        network.run(lambda switch: test(network, switch))

    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    return run


async def read(switch: finsy.Switch, *entities: object) -> list:
    return [entity async for entity in switch.read(entities)]
