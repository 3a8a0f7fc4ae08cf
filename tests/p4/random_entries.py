"""Random table entries for any program, from its P4Info: small numbers, as frames for tests have them."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from typing import Any

from finsy.proto import p4i, p4r

from tests.unit.p4runtime.client import action, entry, exact, lpm, optional, range_, ternary

PORTS = 3


def canonical(value: int) -> bytes:
    """P4Runtime's shortest byte string of a number."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def random_entries(
    info: p4i.P4Info, rng: random.Random, count: int, but: Collection[str] = ()
) -> Iterator[p4r.TableEntry]:
    """`count` entries for each table that takes any, with actions of its own; no two have a key in common. but:
    tables that are left empty, by alias."""
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
                yield entry(
                    table.preamble.id,
                    *match,
                    action=_call(rng.choice(offered), rng),
                    priority=number if _has_priorities(table) else 0,
                )


def _has_priorities(table: p4i.Table) -> bool:
    kinds = p4i.MatchField
    return any(field.match_type in (kinds.TERNARY, kinds.RANGE, kinds.OPTIONAL) for field in table.match_fields)


def _match(field: p4i.MatchField, rng: random.Random) -> p4r.FieldMatch | None:
    """None does not care: the field is left out."""
    width, kinds = field.bitwidth, p4i.MatchField
    value, full = small(rng, width), (1 << width) - 1
    if field.match_type == kinds.EXACT:
        return exact(field.id, canonical(value))
    if field.match_type == kinds.LPM:
        bits = rng.randrange(width + 1)
        masked = value >> width - bits << width - bits
        return lpm(field.id, canonical(masked), bits) if bits else None
    if field.match_type == kinds.TERNARY:
        mask = rng.choice([0, 0, full, rng.getrandbits(width), 1, 2]) & full
        return ternary(field.id, canonical(value & mask), canonical(mask)) if mask else None
    if field.match_type == kinds.RANGE:
        low, high = sorted((value, small(rng, width))) if rng.random() < 0.5 else (0, full)
        return range_(field.id, canonical(low), canonical(high)) if (low, high) != (0, full) else None
    return optional(field.id, canonical(value)) if rng.random() < 0.5 else None


def _call(described: p4i.Action, rng: random.Random) -> p4r.TableAction:
    """Arguments are mostly ports that there are."""
    return action(
        described.preamble.id,
        *(
            canonical(rng.choice([*range(1, PORTS + 1), small(rng, parameter.bitwidth)]) % (1 << parameter.bitwidth))
            for parameter in described.params
        ),
    )


def small(rng: random.Random, width: int) -> int:
    return rng.choice([rng.randrange(4), rng.randrange(4), rng.getrandbits(width)]) & (1 << width) - 1


def balanced_ports(profile: int, call: int, *arguments: bytes) -> list[Any]:
    """A profile's member for each port, with its number, and group 1 of them all. call: of an action that takes the
    port and the arguments."""
    members = [
        p4r.ActionProfileMember(
            action_profile_id=profile, member_id=port, action=action(call, canonical(port), *arguments).action
        )
        for port in range(1, PORTS + 1)
    ]
    shares = [p4r.ActionProfileGroup.Member(member_id=port, weight=1) for port in range(1, PORTS + 1)]
    group = p4r.ActionProfileGroup(action_profile_id=profile, group_id=1, max_size=PORTS, members=shares)
    return [*members, group]
