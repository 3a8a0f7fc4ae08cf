"""Meters of either kind: configuration, counts by colour, types."""

from __future__ import annotations

import pytest
from finsy.proto import p4r

from gradbed.switch.device import MeterCounts, MeterRates
from gradbed.switch.p4runtime.status import StatusCode
from tests.unit.p4runtime.client import INSERT, MODIFY, Client, action, entry, exact
from tests.unit.p4runtime.entities.test_state import failures
from tests.unit.p4runtime.fake_device import NO_METER_COUNTS, FakeDevice
from tests.unit.p4runtime.sample_program import (
    HOSTS,
    MARK,
    METERED,
    PORT_METER,
    SINGLE_RATE_METER,
    TWO_COLOUR_METER,
    config,
)

NAME = "Ingress.port_meter"
TWO_RATES = p4r.MeterConfig(cir=1, cburst=2, pir=3, pburst=4)
RATES = MeterRates(1, 2, 3, 4)
COUNTS = MeterCounts((1, 64), (2, 128), (3, 192))
ZERO = p4r.MeterCounterData()
COUNTED = p4r.MeterCounterData(
    green=p4r.CounterData(packet_count=1, byte_count=64),
    yellow=p4r.CounterData(packet_count=2, byte_count=128),
    red=p4r.CounterData(packet_count=3, byte_count=192),
)


def meter(index: int | None = None, meter_id: int = PORT_METER, **more: object) -> p4r.MeterEntry:
    where = None if index is None else p4r.Index(index=index)
    return p4r.MeterEntry(meter_id=meter_id, index=where, **more)


def metered(**more: object) -> p4r.TableEntry:
    return entry(METERED, exact(1, b"\x02"), **more)


class TestMeters:
    def test_configuration(self, client: Client, device: FakeDevice) -> None:
        assert client.modify(meter(1, config=TWO_RATES)) == StatusCode.OK
        assert device.state.meters == {(NAME, 1): RATES}
        assert client.read(meter(1)) == [meter(1, config=TWO_RATES)]
        assert client.read(meter()) == [meter(i, config=TWO_RATES if i == 1 else None) for i in range(4)]
        assert client.modify(meter(1)) == StatusCode.OK
        assert device.state.meters == {} and client.read(meter(1)) == [meter(1)]

    def test_whole_array(self, client: Client, device: FakeDevice) -> None:
        assert client.modify(meter(config=TWO_RATES)) == StatusCode.OK
        assert device.state.meters == {(NAME, i): RATES for i in range(4)}
        assert client.modify(meter()) == StatusCode.OK
        assert device.state.meters == {}

    def test_zero_rates_are_a_configuration(self, client: Client) -> None:
        assert client.modify(meter(0, config=p4r.MeterConfig())) == StatusCode.OK
        assert client.read(meter(0))[0].HasField("config")

    def test_wildcard(self, client: Client) -> None:
        found = [(m.meter_id, m.index.index) for m in client.read(p4r.MeterEntry())]
        assert found == [*((PORT_METER, i) for i in range(4)), (SINGLE_RATE_METER, 0), (TWO_COLOUR_METER, 0)]

    def test_counts(self, client: Client, device: FakeDevice) -> None:
        device.state.meters.marks[NAME, 2] = COUNTS
        assert client.read(meter(2)) == [meter(2)]
        assert client.read(meter(2, counter_data=ZERO)) == [meter(2, counter_data=COUNTED)]
        assert client.modify(meter(2, config=TWO_RATES)) == StatusCode.OK
        assert device.state.meters.marks == {(NAME, 2): COUNTS}
        assert client.modify(meter(2, config=TWO_RATES, counter_data=COUNTED)) == StatusCode.INVALID_ARGUMENT
        assert client.modify(meter(2, counter_data=ZERO)) == StatusCode.OK
        assert device.state.meters.marks == {}

    def test_errors(self, client: Client) -> None:
        assert client.insert(meter(0, config=TWO_RATES)) == StatusCode.INVALID_ARGUMENT
        assert client.delete(meter(0)) == StatusCode.INVALID_ARGUMENT
        assert client.modify(meter(-1)) == StatusCode.INVALID_ARGUMENT
        assert client.modify(meter(4)) == StatusCode.OUT_OF_RANGE
        assert client.modify(meter(0, 0)) == StatusCode.INVALID_ARGUMENT
        assert client.modify(meter(0, 1)) == StatusCode.NOT_FOUND
        assert failures(client, meter(4), meter(0, 1)) == [StatusCode.OUT_OF_RANGE, StatusCode.NOT_FOUND]

    def test_survive_reconciliation(self, client: Client, device: FakeDevice) -> None:
        client.write((MODIFY, meter(1, config=TWO_RATES)))
        client.push("RECONCILE_AND_COMMIT", config(cookie=8, routes="Ingress.renamed"))
        assert device.state.meters == {(NAME, 1): RATES}
        assert client.read(meter(1)) == [meter(1, config=TWO_RATES)]


@pytest.mark.parametrize(
    ("meter_id", "rates", "wanted"),
    [
        (PORT_METER, (1, 2, 3, 4, 0), MeterRates(1, 2, 3, 4)),
        (PORT_METER, (1, 2, 1, 0, 0), MeterRates(1, 2, 1, 0)),
        (PORT_METER, (2, 2, 1, 2, 0), None),  # peak below committed
        (PORT_METER, (1, 2, 3, 4, 5), None),
        (PORT_METER, (-1, 2, 3, 4, 0), None),
        (SINGLE_RATE_METER, (1, 2, 1, 2, 5), MeterRates(1, 2, 1, 2, 5)),
        (SINGLE_RATE_METER, (1, 2, 1, 2, 0), MeterRates(1, 2, 1, 2, 0)),
        (SINGLE_RATE_METER, (1, 2, 3, 2, 5), None),
        (SINGLE_RATE_METER, (1, 2, 1, 3, 5), None),
        (TWO_COLOUR_METER, (1, 2, 1, 2, 0), MeterRates(1, 2, 1, 2)),
        (TWO_COLOUR_METER, (1, 2, 1, 2, 5), None),
        (TWO_COLOUR_METER, (1, 2, 2, 2, 0), None),
    ],
)
def test_types_of_meters(
    client: Client, device: FakeDevice, meter_id: int, rates: tuple[int, ...], wanted: MeterRates | None
) -> None:
    fields = dict(zip(("cir", "cburst", "pir", "pburst", "eburst"), rates, strict=True))
    code = client.modify(meter(0, meter_id, config=p4r.MeterConfig(**fields)))
    assert code == (StatusCode.OK if wanted else StatusCode.INVALID_ARGUMENT)
    assert list(device.state.meters.values()) == ([wanted] if wanted else [])


class TestDirectMeters:
    @pytest.fixture
    def handle(self, client: Client, device: FakeDevice) -> int:
        client.write((INSERT, metered(action=action(MARK, b"\x01"), meter_config=TWO_RATES)))
        [handle] = device.state.tables["Ingress.metered"].entries
        return handle

    def test_with_the_entry(self, client: Client, device: FakeDevice, handle: int) -> None:
        meters = device.state.tables["Ingress.metered"].meters
        assert meters == {handle: RATES}
        asked = entry(METERED, meter_config=p4r.MeterConfig())
        assert [e.meter_config for e in client.read(asked)] == [TWO_RATES]
        assert not client.read(entry(METERED))[0].HasField("meter_config")
        # Not mentioned, it is gone.
        assert client.modify(metered(action=action(MARK, b"\x02"))) == StatusCode.OK
        assert meters == {}
        assert not client.read(asked)[0].HasField("meter_config")

    def test_on_its_own(self, client: Client, device: FakeDevice, handle: int) -> None:
        other = p4r.MeterConfig(cir=5, cburst=5, pir=5, pburst=5)
        direct = p4r.DirectMeterEntry(table_entry=metered(), config=other)
        assert client.modify(direct) == StatusCode.OK
        assert device.state.tables["Ingress.metered"].meters == {handle: MeterRates(5, 5, 5, 5)}
        assert client.read(p4r.DirectMeterEntry(table_entry=metered())) == [direct]
        assert client.read(p4r.DirectMeterEntry(table_entry=entry(METERED))) == [direct]
        assert client.read(p4r.DirectMeterEntry()) == [direct]
        assert client.read(entry(METERED, meter_config=p4r.MeterConfig()))[0].meter_config == other
        assert client.modify(p4r.DirectMeterEntry(table_entry=metered())) == StatusCode.OK
        assert device.state.tables["Ingress.metered"].meters == {}

    def test_counts(self, client: Client, device: FakeDevice, handle: int) -> None:
        counts = device.state.tables["Ingress.metered"].meter_counts
        counts[handle] = COUNTS
        [found] = client.read(p4r.DirectMeterEntry(table_entry=metered(), counter_data=ZERO))
        assert found.counter_data == COUNTED
        [found] = client.read(entry(METERED, meter_counter_data=ZERO))
        assert found.meter_counter_data == COUNTED
        assert client.modify(metered(meter_counter_data=COUNTED)) == StatusCode.INVALID_ARGUMENT
        assert client.modify(metered(meter_config=TWO_RATES, meter_counter_data=ZERO)) == StatusCode.OK
        assert counts[handle] == NO_METER_COUNTS
        counts[handle] = COUNTS
        assert client.modify(p4r.DirectMeterEntry(table_entry=metered(), counter_data=ZERO)) == StatusCode.OK
        assert counts[handle] == NO_METER_COUNTS

    def test_errors(self, client: Client, handle: int) -> None:
        missing = p4r.DirectMeterEntry(table_entry=entry(METERED, exact(1, b"\x03")))
        default = p4r.DirectMeterEntry(table_entry=entry(METERED, is_default_action=True))
        unmetered = p4r.DirectMeterEntry(table_entry=entry(HOSTS, exact(1, b"\x03")))
        for wrong, code in (
            (missing, StatusCode.NOT_FOUND),
            (default, StatusCode.INVALID_ARGUMENT),
            (unmetered, StatusCode.INVALID_ARGUMENT),
            (p4r.DirectMeterEntry(), StatusCode.INVALID_ARGUMENT),
            (metered(meter_config=p4r.MeterConfig(cir=-1)), StatusCode.INVALID_ARGUMENT),
            (metered(meter_config=p4r.MeterConfig(eburst=1)), StatusCode.INVALID_ARGUMENT),
            (entry(HOSTS, exact(1, b"\x03"), meter_config=TWO_RATES), StatusCode.INVALID_ARGUMENT),
            (entry(METERED, is_default_action=True, meter_config=TWO_RATES), StatusCode.INVALID_ARGUMENT),
        ):
            assert client.modify(wrong) == code
        assert failures(client, missing, unmetered) == [StatusCode.NOT_FOUND, StatusCode.INVALID_ARGUMENT]
        assert client.insert(missing) == client.delete(missing) == StatusCode.INVALID_ARGUMENT

    def test_survive_reconciliation(self, client: Client, device: FakeDevice, handle: int) -> None:
        client.push("RECONCILE_AND_COMMIT", config(cookie=8, routes="Ingress.renamed"))
        assert list(device.state.tables["Ingress.metered"].meters.values()) == [RATES]
        assert client.read(entry(METERED, meter_config=p4r.MeterConfig()))[0].meter_config == TWO_RATES
