"""Random tables: keys, actions, properties, entries of the program's own and of the control plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.fuzz.programs.choices import Choices
from tests.fuzz.programs.statements import Lines, Statements
from tests.fuzz.programs.values import (
    Bits,
    Callee,
    TableUse,
    mark,
)


@dataclass(frozen=True)
class Matched:
    """One key of an entry. kind: exact, lpm, ternary, optional, range."""

    key: str
    kind: str
    width: int
    value: int
    mask: int = 0
    prefix_bits: int = 0
    high: int = 0

    @property
    def text(self) -> str:
        """As in the program's own entries."""
        full = (1 << self.width) - 1
        match self.kind:
            case "lpm":
                mask = full >> self.width - self.prefix_bits << self.width - self.prefix_bits
                return f"{self.value} &&& {mask:#x}" if self.prefix_bits else "_"
            case "ternary":
                return f"{self.value:#x} &&& {self.mask:#x}" if self.mask else "_"
            case "optional":
                return str(self.value) if self.mask else "_"
            case "range":
                return f"{self.value} .. {self.high}"
        return str(self.value)


@dataclass(frozen=True)
class Entry:
    """That the control plane adds. priority: the larger wins; None: of no meaning here.

    others: further members of the entry's group, with their arguments. name: for the rates of its meter.
    """

    table: str
    match: tuple[Matched, ...]
    action: str
    arguments: tuple[tuple[str, int], ...]
    priority: int | None = None
    others: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    name: str = ""


@dataclass(frozen=True)
class Default:
    table: str
    action: str
    arguments: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class OpenTable:
    """A table to which the control plane may add entries."""

    name: str
    keys: tuple[tuple[str, str, int], ...]
    """Name, kind and width in bits of each."""
    actions: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    """Name, and what the control plane gives it: name and width in bits of each parameter."""

    def entry(self, c: Choices, values: Sequence[int], number: int) -> Entry:
        """Draw an entry that these values of the key match.

        Args:
            c: Where choices come from.
            values: One for each key.
            number: The entry's priority, where the table has priorities.
        """
        match = tuple(
            _around(c, key, kind, width, value) for (key, kind, width), value in zip(self.keys, values, strict=True)
        )
        action, parameters = c.pick(self.actions)
        arguments = tuple((name, c.number(width)) for name, width in parameters)
        priorities = _has_priorities([kind for _, kind, _ in self.keys])
        return Entry(self.name, match, action, arguments, number if priorities else None)


def _around(c: Choices, key: str, kind: str, width: int, value: int) -> Matched:
    full = (1 << width) - 1
    match kind:
        case "lpm":
            bits = c.between(0, width)
            return Matched(key, kind, width, value >> width - bits << width - bits, prefix_bits=bits)
        case "ternary":
            mask = c.pick((full, 1, c.number(width)))
            return Matched(key, kind, width, value & mask, mask)
        case "optional":
            return Matched(key, kind, width, value, full)
        case "range":
            low, high = value - min(value, c.below(3)), value + min(full - value, c.below(3))
            return Matched(key, kind, width, low, high=high)
    return Matched(key, kind, width, value)


@dataclass
class MadeTable:
    use: TableUse
    lines: Lines
    entries: list[Entry] = field(default_factory=list)
    default: Default | None = None
    open: OpenTable | None = None


class TableWriter(Statements):
    def table(
        self,
        outermost: bool,
        actions: list[Callee],
        extras: Lines,
        profile: str | None,
        hits: tuple[Callee, ...] = (),
        named: bool = False,
    ) -> MadeTable:
        """outermost: the control plane may add entries; a control with instances has its own.

        extras: further properties, such as counters. profile: "action_profile" or "action_selector" in place of
        actions of its own. hits: further actions, which run only when an entry is hit. named: entries have names.
        """
        c = self.c
        name = self.names.new("t")
        offered = [each for each in actions if self._can_bind(each)]
        used = [*([each for each in offered if c.below(3)] or offered[:1]), *hits]
        kinds = ["exact"] if profile else self._kinds()
        # Few values, so that most frames hit an entry: a member of a group is chosen on a hit alone.
        widths = (1, 2) if profile or hits else (3, 8, 2, 1, 16, 33, 70)
        keys = [(f"k{number}", kind, Bits(c.pick(widths))) for number, kind in enumerate(kinds)]
        lines = [f"table {name} {{"]
        if keys:
            lines.append("key = {")
            for key, kind, of in keys:
                lines.append(f'{mark(f"{kind} key")}{self.value(of, 2)} : {kind} @name("{key}");')
            if profile == "action_selector":
                for number in range(c.between(1, 3)):
                    of = Bits(c.pick((16, 8, 32)))
                    lines.append(f'{mark("selector key")}{self.value(of, 1)} : selector @name("s{number}");')
            lines.append("}")
        lines.append("actions = {" if keys else f"{mark('table without a key')}actions = {{")
        for each in used:
            bound = [self._argument(p.direction, p.type, 1) for p in each.parameters if p.direction]
            found = mark("action with bound arguments") if bound else ""
            lines.append(f"{found}{each.name}{'(' + ', '.join(bound) + ')' if bound else ''};")
        lines += ["NoAction;", "}", *extras]
        plain = [each for each in used if all(p.direction == "" for p in each.parameters)]
        defaults = [each for each in plain if each not in hits]
        constant = False
        if defaults and c.below(2):
            constant = bool(c.below(2))
            word = "const default_action" if constant else "default_action"
            lines.append(f"{mark(word)}{word} = {self._call_text(c.pick(defaults))};")
        else:
            lines.append("default_action = NoAction();")
        if profile:
            given = "32"
            if profile == "action_selector":
                algorithm = c.pick(("crc16", "crc32", "csum16", "xor16"))
                given = f"HashAlgorithm.{algorithm}, 32, {32 if algorithm == 'crc32' else 16}"
            lines.append(f"{mark(profile)}implementation = {profile}({given});")
        made = MadeTable(TableUse(name, (*(each.name for each in used), "NoAction")), lines)
        drawn = self._entries(keys) if keys else []
        if drawn and plain and not profile and (not outermost or c.below(2)):
            lines += self._own_entries(keys, drawn, plain)
        elif keys and used and outermost:
            lines.append("size = 64;")
            priorities = _has_priorities(kinds)
            made.open = OpenTable(name, tuple((key, kind, of.width) for key, kind, of in keys), _given(used))
            for number, match in enumerate(drawn, 1):
                action = c.pick(used)
                more = c.below(4) if profile == "action_selector" else 0
                made.entries.append(
                    Entry(
                        name,
                        match,
                        action.name,
                        self._drawn_arguments(action),
                        number if priorities else None,
                        tuple(
                            (each.name, self._drawn_arguments(each)) for each in (c.pick(used) for _ in range(more))
                        ),
                        f"{name}_{number}" if named else "",
                    )
                )
            if any(each.others for each in made.entries):
                lines.append(mark("group of several members") + "/* groups */")
        defaults = [each for each in used if each not in hits]
        if outermost and defaults and not profile and not constant and c.below(3) == 0:
            action = c.pick(defaults)
            made.default = Default(name, action.name, self._drawn_arguments(action))
        lines.append("}")
        return made

    def _can_bind(self, action: Callee) -> bool:
        return all(p.direction in ("", "in") or self._targets(p.direction, p.type) for p in action.parameters)

    def _kinds(self) -> list[str]:
        c = self.c
        match c.below(5):
            case 0:
                return ["exact"] * c.between(1, 3)
            case 1:
                return [*["exact"] * c.below(2), "lpm"]
            case 2:
                return ["exact"] * c.below(2)
        return [c.pick(("ternary", "range", "optional", "exact")) for _ in range(c.between(1, 3))]

    def _call_text(self, action: Callee) -> str:
        values = ", ".join(str(value) for _, value in self._drawn_arguments(action))
        return f"{action.name}({values})"

    def _drawn_arguments(self, action: Callee) -> tuple[tuple[str, int], ...]:
        """Those that the control plane gives are of type bit."""
        drawn = []
        for parameter in action.parameters:
            if parameter.direction == "":
                assert isinstance(parameter.type, Bits)
                drawn.append((parameter.name, self.c.number(parameter.type.width)))
        return tuple(drawn)

    def _entries(self, keys: list[tuple[str, str, Bits]]) -> list[tuple[Matched, ...]]:
        found: dict[tuple[str, ...], tuple[Matched, ...]] = {}
        for _ in range(self.c.below(7)):
            with self.c.span():
                match = tuple(self._matched(key, kind, of.width) for key, kind, of in keys)
                found.setdefault(tuple(part.text for part in match), match)
        return list(found.values())

    def _matched(self, key: str, kind: str, width: int) -> Matched:
        c = self.c
        value, full = c.number(width), (1 << width) - 1
        match kind:
            case "lpm":
                bits = c.between(0, width)
                return Matched(key, kind, width, value >> width - bits << width - bits, prefix_bits=bits)
            case "ternary":
                mask = c.pick((0, full, 1, 2 & full, c.number(width)))
                return Matched(key, kind, width, value & mask, mask)
            case "optional":
                given = c.below(2)
                return Matched(key, kind, width, value * given, full * given)
            case "range":
                low, high = sorted((value, c.number(width)))
                return Matched(key, kind, width, low, high=high)
        return Matched(key, kind, width, value)

    def _own_entries(
        self, keys: list[tuple[str, str, Bits]], drawn: list[tuple[Matched, ...]], actions: list[Callee]
    ) -> Lines:
        c = self.c
        constant = c.below(2)
        priorities = _has_priorities([kind for _, kind, _ in keys]) and c.below(2)
        smaller_wins = bool(priorities) and not c.below(3)
        lines = []
        if smaller_wins:
            lines.append(mark("smaller priority wins") + "largest_priority_wins = false;")
        lines.append(f"{mark('const entries' if constant else 'entries')}{'const ' if constant else ''}entries = {{")
        numbers = list(range(10, 10 + 7 * len(drawn), 7))
        for match in drawn:
            key = ", ".join(part.text for part in match)
            label = f"({key})" if len(match) > 1 else key
            given = ""
            if priorities:
                given = f"{mark('entry with a priority')}priority = {numbers.pop(c.below(len(numbers)))} : "
            lines.append(f"{given}{label} : {self._call_text(c.pick(actions))};")
        return [*lines, "}"]


def _given(actions: Sequence[Callee]) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
    """Return the actions with the parameters that the control plane gives, which are of type bit."""
    return tuple(
        (
            each.name,
            tuple((p.name, p.type.width) for p in each.parameters if not p.direction and isinstance(p.type, Bits)),
        )
        for each in actions
    )


def _has_priorities(kinds: list[str]) -> bool:
    return any(kind in ("ternary", "range", "optional") for kind in kinds)
