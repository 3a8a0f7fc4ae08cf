"""Random table entries for any program, from its P4Info: small numbers, as random frames have them."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator

from finsy.proto import p4i, p4r

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
    """None does not care: the field is left out."""
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
    """Arguments are mostly ports that there are."""
    values = [
        canonical(rng.choice([*range(1, PORTS + 1), small(rng, parameter.bitwidth)]) % (1 << parameter.bitwidth))
        for parameter in described.params
    ]
    params = [p4r.Action.Param(param_id=number, value=value) for number, value in enumerate(values, 1)]
    return p4r.TableAction(action=p4r.Action(action_id=described.preamble.id, params=params))


def small(rng: random.Random, width: int) -> int:
    return rng.choice([rng.randrange(4), rng.randrange(4), rng.getrandbits(width)]) & (1 << width) - 1
