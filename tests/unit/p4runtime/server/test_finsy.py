"""finsy, unchanged, as the controller."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import finsy
import pytest
from google.protobuf import text_format

from tests.unit.p4runtime.fake_device import FakeDevice
from tests.unit.p4runtime.sample_program import config

TIMEOUT_S = 20


@pytest.fixture
def options(tmp_path: Path) -> finsy.SwitchOptions:
    pipeline = config()
    (tmp_path / "sample.p4info.txt").write_text(text_format.MessageToString(pipeline.p4info))
    (tmp_path / "sample.json").write_bytes(pipeline.p4_device_config)
    return finsy.SwitchOptions(p4info=tmp_path / "sample.p4info.txt", p4blob=tmp_path / "sample.json")


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), TIMEOUT_S))


async def read(switch: finsy.Switch, *entities: object) -> list:
    return [entity async for entity in switch.read(entities)]


def route() -> finsy.P4TableEntry:
    return finsy.P4TableEntry(
        "routes",
        match=finsy.Match(f1="10.0.0.0/8"),
        action=finsy.Action("forward", port=3, dst="00:00:00:00:00:01"),
    )


def test_entities(address: str, device: FakeDevice, options: finsy.SwitchOptions) -> None:
    rule = finsy.P4TableEntry(
        "acl",
        match=finsy.Match(f1="10.0.0.0/&255.0.0.0", f2="80...443", f3=4, f4=17),
        action=finsy.Action("drop"),
        priority=10,
    )
    group = finsy.P4MulticastGroupEntry(5, replicas=[1, 2, 3])

    async def work() -> None:
        async with finsy.Switch("s1", address, options) as switch:
            assert switch.is_primary
            await switch.insert([route(), rule, group])
            found = await read(
                switch, finsy.P4TableEntry("routes"), finsy.P4TableEntry("acl"), finsy.P4MulticastGroupEntry()
            )
            written = [route(), rule, group]
            assert [e.encode(switch.p4info) for e in found] == [e.encode(switch.p4info) for e in written]
            with pytest.raises(finsy.P4ClientError) as caught:
                await switch.insert([rule, route()])
            assert [e.canonical_code for e in caught.value.details.values()] == [
                finsy.GRPCStatusCode.ALREADY_EXISTS
            ] * 2
            await switch.modify([finsy.P4RegisterEntry("totals", index=1, data=99)])
            [register] = await read(switch, finsy.P4RegisterEntry("totals", index=1))
            assert register.data == 99
            assert [c.index for c in await read(switch, finsy.P4CounterEntry("port_counter"))] == list(range(8))
            await switch.delete([rule])
            await switch.delete([rule], strict=False)

    run(work)
    assert len(device.state.tables["Ingress.routes"].entries) == 1
    assert device.state.tables["Ingress.acl"].entries == {}
    assert {r.egress_port for r in device.replication.groups[5]} == {1, 2, 3}
    assert device.state.registers["Ingress.totals"] == [0, 99, 0, 0]


def test_same_pipeline_is_not_pushed_again(address: str, device: FakeDevice, options: finsy.SwitchOptions) -> None:
    async def work() -> None:
        async with finsy.Switch("s1", address, options) as switch:
            await switch.insert([route()])
        async with finsy.Switch("s1", address, options) as switch:
            assert len(await read(switch, finsy.P4TableEntry("routes"))) == 1

    run(work)
    assert device.loads == 1


def test_second_controller_takes_over(address: str, options: finsy.SwitchOptions) -> None:
    """Both start with the same election id: the second steps back, and asks for the place when the first is gone."""

    async def work() -> None:
        first, second = finsy.Switch("first", address, options), finsy.Switch("second", address, options)
        took_over = asyncio.Event()
        second.ee.add_listener(finsy.SwitchEvent.BECOME_PRIMARY, lambda _: took_over.set())
        await first.__aenter__()
        async with second:
            assert first.is_primary and not second.is_primary
            await first.__aexit__(None, None, None)
            await took_over.wait()
            assert second.is_primary
            await second.insert([route()])

    run(work)


def test_emptying_a_switch(address: str, device: FakeDevice, options: finsy.SwitchOptions) -> None:
    """What finsy's delete_all asks, but for the action profiles. (With const tables it leaves groups alone.)"""

    async def work() -> None:
        async with finsy.Switch("s1", address, options) as switch:
            await switch.insert([route(), finsy.P4MulticastGroupEntry(1, replicas=[1])])
            await switch.delete_many(
                [finsy.P4TableEntry(), finsy.P4MulticastGroupEntry(), finsy.P4CloneSessionEntry()]
            )
            [group, *const] = await read(switch, finsy.P4MulticastGroupEntry(), finsy.P4TableEntry())
            assert [entry.table_id for entry in const] == ["kinds", "kinds"]
            await switch.delete([group])

    run(work)
    assert device.replication.groups == {}
    assert device.state.tables["Ingress.routes"].entries == {}
    assert len(device.state.tables["Ingress.kinds"].entries) == 2
