"""Random frames and table entries for any program.

Frames are random walks over the parse states of its BMv2 JSON, so that its parser takes them apart. Entries are made
of its P4Info, of small numbers, as random frames have them.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Set
from typing import Any

from finsy.proto import p4i, p4r

# ---- Frames ----


Json = dict[str, Any]
Place = tuple[str, str]
"""A header and one of its fields."""

MAX_STATES = 40
MAX_BITS = 8 * 2000


def parser_frames(program: Json, rng: random.Random, count: int) -> list[bytes]:
    """Return random frames that take different ways through the parser."""
    compared: dict[Place, set[int]] = {}
    for place, number in _comparisons(program):
        compared.setdefault(place, set()).update((number, number + 1))
    return [_InputWalk(program, compared, rng).frame() for _ in range(count)]


def _comparisons(value: Any) -> Iterator[tuple[Place, int]]:
    """Yield fields and the numbers with which the program compares them."""
    if isinstance(value, dict):
        if value.get("op") in ("==", "!=", "<", "<=", ">", ">="):
            sides = {side["type"]: side["value"] for side in (value["left"], value["right"])}
            if sides.keys() == {"field", "hexstr"}:
                header, field = sides["field"]
                yield (header, field), abs(int(sides["hexstr"], 16))
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _comparisons(inner)


class _InputWalk:
    """One walk through the parser from its first state.

    Bits are appended as headers are extracted. What a transition compares is written into the fields, or the
    lookahead, that it selects on.
    """

    def __init__(self, program: Json, compared: dict[Place, set[int]], rng: random.Random) -> None:
        self._rng = rng
        self._compared = compared
        parser = program["parsers"][0]
        self._states = {state["name"]: state for state in parser["parse_states"]}
        self._first = parser["init_state"]
        types = {kind["name"]: kind["fields"] for kind in program["header_types"]}
        self._fields = {header["name"]: types[header["header_type"]] for header in program["headers"]}
        self._ids = {header["id"]: header["name"] for header in program["headers"]}
        self._stacks = {stack["name"]: stack["header_ids"] for stack in program["header_stacks"]}
        self._extracted: dict[str, int] = {}
        self._bits: list[int] = []
        self._ahead: dict[int, int] = {}
        self._places: dict[Place, tuple[int, int]] = {}

    def frame(self) -> bytes:
        name = self._first
        for _ in range(MAX_STATES):
            if name not in self._states or len(self._bits) > MAX_BITS:
                break
            name = self._pass(self._states[name])
        self._append(8 * self._rng.choice([0, 0, 1, 7, 26, 200]))
        while self._ahead and max(self._ahead) >= len(self._bits):
            self._append(8)
        padded = self._bits + [0] * (-len(self._bits) % 8)
        return int("".join(map(str, padded)) or "0", 2).to_bytes(len(padded) // 8, "big")

    def _pass(self, state: Json) -> str | None:
        for operation in state["parser_ops"]:
            if operation["op"] in ("extract", "extract_VL"):
                self._extract(operation["parameters"][0])
        transitions = state["transitions"]
        # Rather on than out.
        weights = [1 if transition["type"] == "default" else 4 for transition in transitions]
        [transition] = self._rng.choices(transitions, weights)
        if transition["type"] == "hexstr":
            self._satisfy(state["transition_key"], transition)
        next_state: str | None = transition["next_state"]
        return next_state

    def _extract(self, what: Json) -> None:
        name = what["value"]
        if what["type"] == "stack":
            index = self._extracted.get(name, 0)
            self._extracted[name] = index + 1
            elements = self._stacks[name]
            place, name = name, self._ids[elements[min(index, len(elements) - 1)]]
        elif isinstance(name, str) and name in self._fields:
            place = name
        else:
            return
        for field in self._fields[name]:
            width = field[1] if isinstance(field[1], int) else 0
            self._places[place, field[0]] = len(self._bits), width
            self._append(width, self._compared.get((name, field[0]), set()))

    def _append(self, width: int, known: Set[int] = frozenset()) -> None:
        """Random bits; often a small number, as the tables' entries have them, or one that makes a difference."""
        value = 0
        if width:
            candidates = [self._rng.getrandbits(width), self._rng.randrange(4)]
            candidates += self._rng.sample(sorted(known), min(len(known), 4))
            value = self._rng.choice(candidates) % (1 << width)
        for i in range(width):
            given = self._ahead.pop(len(self._bits), None)
            self._bits.append(value >> width - 1 - i & 1 if given is None else given)

    def _satisfy(self, keys: list[Json], transition: Json) -> None:
        value = int(transition["value"], 16)
        mask = -1 if transition["mask"] is None else int(transition["mask"], 16)
        # Each part of the key takes whole bytes of the value.
        shift = 0
        for key in reversed(keys):
            start, width = self._place(key)
            for i in range(width):
                if mask >> shift + i & 1:
                    self._set(start + width - 1 - i, value >> shift + i & 1)
            shift += width + -width % 8

    def _place(self, key: Json) -> tuple[int, int]:
        if key["type"] == "lookahead":
            offset, width = key["value"]
            return len(self._bits) + offset, width
        if key["type"] in ("field", "stack_field"):
            header, field = key["value"]
            return self._places.get((header, field), (-1, self._width(header, field)))
        return -1, 0

    def _width(self, header: str, field: str) -> int:
        """Of a field that was not extracted: metadata, out of our reach."""
        name = self._ids[self._stacks[header][0]] if header in self._stacks else header
        width = next((f[1] for f in self._fields.get(name, []) if f[0] == field), 0)
        return width if isinstance(width, int) else 0

    def _set(self, position: int, bit: int) -> None:
        if 0 <= position < len(self._bits):
            self._bits[position] = bit
        elif position >= len(self._bits):
            self._ahead[position] = bit


# ---- Entries ----


PORTS = 3


def canonical(value: int) -> bytes:
    """Return a number as P4Runtime's canonical (shortest) byte string."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def random_entries(
    info: p4i.P4Info, rng: random.Random, count: int, but: Collection[str] = ()
) -> Iterator[p4r.TableEntry]:
    """Yield `count` entries for each table that takes any, with actions of its own and different keys.

    Args:
        info: The program's P4Info.
        rng: Draws keys, actions and arguments.
        count: Entries of a table, or fewer where keys repeat.
        but: Tables that are left empty, by alias.
    """
    actions = {described.preamble.id: described for described in info.actions}
    # By name: in which order compilers list things is theirs to say.
    for table in sorted(info.tables, key=lambda table: table.preamble.name):
        if table.is_const_table or table.implementation_id or not table.match_fields or table.preamble.alias in but:
            continue
        offered = [
            actions[reference.id] for reference in table.action_refs if reference.scope != p4i.ActionRef.DEFAULT_ONLY
        ]
        offered.sort(key=lambda each: each.preamble.name)
        seen = set()
        for number in range(1, count + 1):
            match = [part for field in table.match_fields if (part := _match(field, rng)) is not None]
            key = tuple(part.SerializeToString() for part in match)
            if key not in seen:
                seen.add(key)
                yield p4r.TableEntry(
                    table_id=table.preamble.id,
                    match=match,
                    action=_call(rng.choice(offered), rng),
                    priority=number if _has_priorities(table) else 0,
                )


def _has_priorities(table: p4i.Table) -> bool:
    kinds = p4i.MatchField
    return any(field.match_type in (kinds.TERNARY, kinds.RANGE, kinds.OPTIONAL) for field in table.match_fields)


def _match(field: p4i.MatchField, rng: random.Random) -> p4r.FieldMatch | None:
    """Draw a match; None matches any value, and the field is left out."""
    width, kinds, part = field.bitwidth, p4i.MatchField, p4r.FieldMatch
    value, full = small(rng, width), (1 << width) - 1
    if field.match_type == kinds.EXACT:
        return part(field_id=field.id, exact=part.Exact(value=canonical(value)))
    if field.match_type == kinds.LPM:
        bits = rng.randrange(width + 1)
        masked = canonical(value >> width - bits << width - bits)
        return part(field_id=field.id, lpm=part.LPM(value=masked, prefix_len=bits)) if bits else None
    if field.match_type == kinds.TERNARY:
        mask = rng.choice([0, 0, full, rng.getrandbits(width), 1, 2]) & full
        ternary = part.Ternary(value=canonical(value & mask), mask=canonical(mask))
        return part(field_id=field.id, ternary=ternary) if mask else None
    if field.match_type == kinds.RANGE:
        low, high = sorted((value, small(rng, width))) if rng.random() < 0.5 else (0, full)
        range_ = part.Range(low=canonical(low), high=canonical(high))
        return part(field_id=field.id, range=range_) if (low, high) != (0, full) else None
    optional = part.Optional(value=canonical(value))
    return part(field_id=field.id, optional=optional) if rng.random() < 0.5 else None


def _call(described: p4i.Action, rng: random.Random) -> p4r.TableAction:
    """Draw arguments, most of them existing ports."""
    values = [
        canonical(rng.choice([*range(1, PORTS + 1), small(rng, parameter.bitwidth)]) % (1 << parameter.bitwidth))
        for parameter in described.params
    ]
    params = [p4r.Action.Param(param_id=number, value=value) for number, value in enumerate(values, 1)]
    return p4r.TableAction(action=p4r.Action(action_id=described.preamble.id, params=params))


def small(rng: random.Random, width: int) -> int:
    """Draw a number of this width, often a very small one."""
    return rng.choice([rng.randrange(4), rng.randrange(4), rng.getrandbits(width)]) & (1 << width) - 1
