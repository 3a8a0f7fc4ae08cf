"""Commands on counters, meters and registers."""

from __future__ import annotations

import sys
from typing import Any

from finsy.proto import p4r

from gradbed.switch.simple_switch.cli import arguments as values
from gradbed.switch.simple_switch.cli.arguments import CommandError, expect, integer
from gradbed.switch.simple_switch.cli.tables import TableCommands, key_of

_PER_SECOND = 1_000_000


class StateCommands(TableCommands):
    # Counters

    def do_counter_read(self, line: str) -> None:
        """counter_read COUNTER INDEX: INDEX is an entry's handle where the counter is a table's"""
        arguments = line.split()
        expect(arguments, 2, "counter_read COUNTER INDEX")
        counter = self.program.counters.find(arguments[0])
        if _is_direct(counter):
            print(f"this is the direct counter for table {self._table_of(counter).preamble.name}")
        data = self.client.read(self._counter_entity(counter, arguments[1]))[0].data
        print(f"{arguments[0]}[{arguments[1]}]= ({data.byte_count} bytes, {data.packet_count} packets)")

    def do_counter_write(self, line: str) -> None:
        """counter_write COUNTER INDEX PACKETS BYTES"""
        arguments = line.split()
        expect(arguments, 4, "counter_write COUNTER INDEX PACKETS BYTES")
        counter = self.program.counters.find(arguments[0])
        self._write_counter(counter, arguments[1], integer(arguments[2], "PACKETS"), integer(arguments[3], "BYTES"))
        print(f"{arguments[0]}[{arguments[1]}] has been updated")

    def do_counter_reset(self, line: str) -> None:
        """counter_reset COUNTER: all of it to zero"""
        arguments = line.split()
        expect(arguments, 1, "counter_reset COUNTER")
        counter = self.program.counters.find(arguments[0])
        if _is_direct(counter):
            wanted = p4r.DirectCounterEntry()
            wanted.table_entry.table_id = counter.direct_table_id
            found = self.client.read(p4r.Entity(direct_counter_entry=wanted))
            for entry in found:
                entry.data.Clear()
                self.client.modify(p4r.Entity(direct_counter_entry=entry))
            return
        for index in range(counter.size):
            self._write_counter(counter, str(index), 0, 0)

    def _write_counter(self, counter: Any, index: str, packets: int, bytes_: int) -> None:
        entity = self._counter_entity(counter, index)
        data = getattr(entity, entity.WhichOneof("entity")).data
        data.SetInParent()
        data.packet_count, data.byte_count = packets, bytes_
        self.client.modify(entity)

    def _counter_entity(self, counter: Any, index: str) -> Any:
        if _is_direct(counter):
            entry = p4r.DirectCounterEntry(table_entry=self._key_of(counter, index))
            return p4r.Entity(direct_counter_entry=entry)
        return p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter.preamble.id, index=_index(index)))

    # Meters

    def do_meter_get_rates(self, line: str) -> None:
        """meter_get_rates METER INDEX"""
        arguments = line.split()
        expect(arguments, 2, "meter_get_rates METER INDEX")
        entity = self._meter_entity(self.program.meters.find(arguments[0]), arguments[1])
        found = self.client.read(entity)[0]
        if not found.HasField("config"):
            print("no rates are set: everything is green")
            return
        rates = ((found.config.cir, found.config.cburst), (found.config.pir, found.config.pburst))
        for number, (rate, burst) in enumerate(rates):
            print(f"{number}: info rate = {rate / _PER_SECOND}, burst size = {burst}")

    def do_meter_set_rates(self, line: str) -> None:
        """meter_set_rates METER INDEX RATE:BURST RATE:BURST: committed and peak rate, in packets or bytes per
        microsecond, and bursts in packets or bytes"""
        arguments = line.split()
        expect(arguments, 4, "meter_set_rates METER INDEX RATE:BURST RATE:BURST")
        self._set_rates(self._meter_entity(self.program.meters.find(arguments[0]), arguments[1]), arguments[2:])

    def do_meter_array_set_rates(self, line: str) -> None:
        """meter_array_set_rates METER RATE:BURST RATE:BURST: of all cells, or of all entries, also of those that
        this shell adds later, where the meter is a table's"""
        arguments = line.split()
        expect(arguments, 3, "meter_array_set_rates METER RATE:BURST RATE:BURST")
        meter = self.program.meters.find(arguments[0])
        if _is_direct(meter):
            self.rates_of_new_entries[meter.direct_table_id] = _rates(arguments[1:])
            for entry in self.entries(self._table_of(meter)):
                message = p4r.DirectMeterEntry(table_entry=key_of(entry))
                self._set_rates(p4r.Entity(direct_meter_entry=message), arguments[1:])
            return
        for index in range(meter.size):
            self._set_rates(self._meter_entity(meter, str(index)), arguments[1:])

    def _set_rates(self, meter: Any, texts: list[str]) -> None:
        getattr(meter, meter.WhichOneof("entity")).config.CopyFrom(_rates(texts))
        self.client.modify(meter)

    def _meter_entity(self, meter: Any, index: str) -> Any:
        if _is_direct(meter):
            return p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry(table_entry=self._key_of(meter, index)))
        return p4r.Entity(meter_entry=p4r.MeterEntry(meter_id=meter.preamble.id, index=_index(index)))

    # Registers

    def do_register_read(self, line: str) -> None:
        """register_read REGISTER [INDEX]: one cell, or all"""
        arguments = line.split()
        expect(arguments, 1, "register_read REGISTER [INDEX]", 2)
        entry = p4r.RegisterEntry(register_id=self.program.registers.find(arguments[0]).preamble.id)
        if len(arguments) == 2:
            entry.index.CopyFrom(_index(arguments[1]))
            value = values.show_data(self.client.read(p4r.Entity(register_entry=entry))[0].data)
            print(f"{arguments[0]}[{arguments[1]}]= {value}")
            return
        sys.stderr.write("register index omitted, reading entire array\n")
        cells = sorted(self.client.read(p4r.Entity(register_entry=entry)), key=lambda cell: int(cell.index.index))
        print(f"{arguments[0]}= " + ", ".join(values.show_data(cell.data) for cell in cells))

    def do_register_write(self, line: str) -> None:
        """register_write REGISTER INDEX VALUE"""
        arguments = line.split()
        expect(arguments, 3, "register_write REGISTER INDEX VALUE")
        register = self.program.registers.find(arguments[0])
        self._write_register(register, arguments[1], integer(arguments[2], "VALUE"))

    def do_register_reset(self, line: str) -> None:
        """register_reset REGISTER: all cells to zero"""
        arguments = line.split()
        expect(arguments, 1, "register_reset REGISTER")
        register = self.program.registers.find(arguments[0])
        for index in range(register.size):
            self._write_register(register, str(index), 0)

    def _write_register(self, register: Any, index: str, value: int) -> None:
        entry = p4r.RegisterEntry(register_id=register.preamble.id, index=_index(index))
        entry.data.bitstring = values.encode(value)
        self.client.modify(p4r.Entity(register_entry=entry))

    # Of tables

    def _table_of(self, direct: Any) -> Any:
        return self.program.tables.get(direct.direct_table_id)

    def _key_of(self, direct: Any, handle: str) -> Any:
        """Return the key of an entry, which addresses direct counters and meters."""
        return key_of(self.entry(self._table_of(direct), handle))


def _is_direct(item: Any) -> bool:
    return hasattr(item, "direct_table_id")


def _index(text: str) -> Any:
    return p4r.Index(index=integer(text, "INDEX"))


def _rates(texts: list[str]) -> Any:
    (cir, cburst), (pir, pburst) = map(_rate, texts)
    return p4r.MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst)


def _rate(text: str) -> tuple[int, int]:
    rate, colon, burst = text.partition(":")
    try:
        if not colon or float(rate) < 0:
            raise ValueError
        return round(float(rate) * _PER_SECOND), integer(burst, "BURST")
    except ValueError:
        raise CommandError(f"write RATE:BURST, not {text!r}") from None
