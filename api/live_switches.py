"""A switch that is up: tables, registers, counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradbed.common.errors import UserError

if TYPE_CHECKING:
    from gradbed.experiments.sessions.session import NetworkSession


class Table:
    """A table of a switch.

    Fields, actions and parameters go by their names in the program, or the last parts of these. Values are numbers,
    addresses ("10.0.0.1", "00:00:00:00:00:01"), prefixes ("10.0.0.0/8"), masks ("0x10 &&& 0xf0"), ranges ("80..443"),
    and the variables of docs/entries.md ("$h1.mac").
    """

    def __init__(self, session: NetworkSession, switch: str, name: str) -> None:
        self._session, self._switch, self.name = session, switch, name

    def insert(
        self,
        match: Mapping[str, Any],
        action: str,
        params: Mapping[str, Any] | None = None,
        *,
        priority: int = 0,
        meter: Mapping[str, int] | None = None,
    ) -> None:
        """Add an entry.

        Args:
            match: Value by field; a field that is left out matches anything.
            action: What to do.
            params: Its arguments by name.
            priority: The highest wins; for tables with ternary, range or optional fields, and no others.
            meter: committed_rate, committed_burst, peak_rate and peak_burst of the entry's direct meter.

        Raises:
            UserError: The program has no such thing, a value does not fit, or the entry is there already.
        """
        self._session.insert(self._switch, self.name, _entry(match, action, params, priority, meter))

    def modify(
        self,
        match: Mapping[str, Any],
        action: str,
        params: Mapping[str, Any] | None = None,
        *,
        priority: int = 0,
        meter: Mapping[str, int] | None = None,
    ) -> None:
        """Give an entry another action, or other arguments. UserError if there is none with this match."""
        self._session.modify(self._switch, self.name, _entry(match, action, params, priority, meter))

    def delete(self, match: Mapping[str, Any], *, priority: int = 0) -> None:
        """Remove the entry with this match, and this priority if several have the match."""
        self._session.delete(self._switch, self.name, dict(match), priority)

    def clear(self) -> None:
        """Remove all entries."""
        self._session.clear(self._switch, self.name)

    def set_default(self, action: str, params: Mapping[str, Any] | None = None) -> None:
        """Set the action for packets that match no entry."""
        self._session.insert(self._switch, self.name, {"default_action": action, "params": dict(params or {})})

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Return all entries that were written, each with match, action, params and, if it has one, priority.

        `insert(**entry)` writes it again.
        """
        return self._session.entries(self._switch, self.name)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return f"<Table {self.name} of {self._switch}: {len(self)} entries>"


class Register:
    """A register array of a switch, as the packets left it: register[3], register[3] = 7, list(register)."""

    def __init__(self, session: NetworkSession, switch: str, name: str) -> None:
        self._session, self._switch, self.name = session, switch, name

    def read(self) -> list[int | None]:
        """Return all cells; None where BMv2 does not report one."""
        return self._session.registers(self._switch, self.name)

    def fill(self, value: int) -> None:
        """Write every cell."""
        self._session.write_register(self._switch, self.name, None, value)

    def __getitem__(self, index: int) -> int | None:
        cells = self.read()
        if not 0 <= index < len(cells):
            raise UserError(f"register {self.name} has {len(cells)} cells, and so no cell {index}")
        return cells[index]

    def __setitem__(self, index: int, value: int) -> None:
        self._session.write_register(self._switch, self.name, index, value)

    def __iter__(self) -> Iterator[int | None]:
        return iter(self.read())

    def __len__(self) -> int:
        return len(self.read())

    def __repr__(self) -> str:
        return f"<Register {self.name} of {self._switch}>"


class Counter:
    """A counter array of a switch: counter[3].packets, counter[3].bytes."""

    def __init__(self, session: NetworkSession, switch: str, name: str) -> None:
        self._session, self._switch, self.name = session, switch, name

    def read(self) -> dict[int, Count]:
        """Return the cells that are not zero, by index."""
        cells = self._session.counters(self._switch)[self.name]
        return {index: Count(packets, count_bytes) for index, (packets, count_bytes) in cells.items()}

    def __getitem__(self, index: int) -> Count:
        return self.read().get(index, Count(0, 0))

    @property
    def total(self) -> Count:
        """Return the sum of all cells."""
        cells = self.read().values()
        return Count(sum(cell.packets for cell in cells), sum(cell.bytes for cell in cells))

    def __repr__(self) -> str:
        return f"<Counter {self.name} of {self._switch}>"


class Count(tuple[int, int]):
    """Packets and bytes."""

    def __new__(cls, packets: int, bytes: int) -> Count:
        """Create a count of packets and bytes."""
        return super().__new__(cls, (packets, bytes))

    @property
    def packets(self) -> int:
        """The number of packets."""
        return self[0]

    @property
    def bytes(self) -> int:
        """The number of bytes."""
        return self[1]

    def __repr__(self) -> str:
        return f"Count(packets={self.packets}, bytes={self.bytes})"


class Parts:
    """Tables, registers or counters of a switch by name: in full, or by a last part that only one has."""

    def __init__(
        self, kind: type[Any], what: str, session: NetworkSession, switch: str, names: Sequence[str]
    ) -> None:
        self._kind, self._what, self._session, self._switch, self._names = kind, what, session, switch, names

    def __getitem__(self, name: str) -> Any:
        if name in self._names:
            return self._kind(self._session, self._switch, name)
        found = [each for each in self._names if each.endswith(f".{name}")]
        if len(found) == 1:
            return self._kind(self._session, self._switch, found[0])
        if found:
            raise UserError(f"{self._what} {name!r} may be {' or '.join(found)}")
        from gradbed.common.errors import suggestion

        short = [*self._names, *(each.rpartition(".")[2] for each in self._names)]
        raise UserError(f"the program of {self._switch} has no {self._what} {name!r}{suggestion(name, short)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{', '.join(self._names) or 'none'}>"


class Switch:
    """A switch that is up.

    Attributes:
        name: As in the topology.
        tables: By name: `Table`.
        registers: By name: `Register`.
        counters: By name: `Counter`.
    """

    def __init__(self, session: NetworkSession, name: str) -> None:
        self._session, self.name = session, name

    @property
    def tables(self) -> Parts:
        """The tables, by name."""
        return Parts(Table, "table", self._session, self.name, self._session.names(self.name)["tables"])

    @property
    def registers(self) -> Parts:
        """The register arrays, by name."""
        return Parts(Register, "register", self._session, self.name, self._session.names(self.name)["registers"])

    @property
    def counters(self) -> Parts:
        """The counter arrays, by name."""
        return Parts(Counter, "counter", self._session, self.name, self._session.names(self.name)["counters"])

    def write(self, sections: Mapping[str, Any]) -> None:
        """Write sections of an entries file (docs/entries.md) in addition to what the switch holds.

        They are tables, multicast ({1: [2, 3]}), clone, registers and meters.
        """
        self._session.merge(self.name, dict(sections))

    def __repr__(self) -> str:
        return f"<Switch {self.name}>"


def _entry(
    match: Mapping[str, Any],
    action: str,
    params: Mapping[str, Any] | None,
    priority: int,
    meter: Mapping[str, int] | None,
) -> dict[str, Any]:
    found: dict[str, Any] = {"match": dict(match), "action": action, "params": dict(params or {})}
    if priority:
        found["priority"] = priority
    if meter is not None:
        found["meter"] = dict(meter)
    return found
