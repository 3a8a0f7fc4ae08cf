"""Header fields between packet bytes and PHV: one C statement for a field or group of fields."""

from __future__ import annotations

from gradbed.switch.bmv2_json.model import FieldType, HeaderType

_WHOLE = (8, 16, 24, 32, 40, 48, 56, 64)


def _container(bit: int, width: int) -> tuple[int, int, int]:
    """Return the bytes that hold the field, their total bits, and the bits of them below the field."""
    first = bit // 8
    total = (bit + width + 7) // 8 * 8 - first * 8
    return first, total, total - (bit % 8) - width


def _plus(base: str, offset: int) -> str:
    return f"{base} + {offset}"


def load_number(at: str, bit: int, width: int) -> str:
    """Return C for the number of 1 to 64 bits at bit offset `bit` from the byte pointer `at`."""
    first, total, below = _container(bit, width)
    if total > 64:
        return f"gb_load_bits({at}, {bit}, {width})"
    load = f"gb_load{total}({_plus(at, first)})"
    if below:
        load = f"{load} >> {below}"
    if total - below > width:
        load = f"({load}) & {(1 << width) - 1:#x}ULL" if below else f"{load} & {(1 << width) - 1:#x}ULL"
    return load


def load_field(at: str, bit: int, width: int, slot: str) -> str:
    """Read the field at bit offset `bit` from the byte pointer `at` into the PHV words from index `slot` on."""
    if width == 0:
        return ""
    if width > 64:
        return f"gb_load_field(&phv[{slot}], {at}, {bit}, {width});"
    return f"phv[{slot}] = {load_number(at, bit, width)};"


def split_at_variable(header: HeaderType) -> tuple[list[int], int | None, list[int]]:
    """Return the indices of fields before the variable-length field, that field, and those after it."""
    at = header.variable_field
    indices = list(range(len(header.fields)))
    return (indices, None, []) if at is None else (indices[:at], at, indices[at + 1 :])


def bits_before(header: HeaderType, index: int) -> int:
    return sum(f.width for f in header.fields[:index] if not f.variable)


def load_variable(header: HeaderType, index: int, at: str, slot: str) -> str:
    """Read the variable-length field, `variable_bits` bits after `at`, into the bytes from a PHV word on."""
    before = bits_before(header, index)
    if before % 8 == 0:
        return f"memcpy(&phv[{slot}], {_plus(at, before // 8)}, variable_bits / 8);"
    return f"gb_copy_bits((uint8_t *)&phv[{slot}], 0, {at}, {before}, (uint32_t)variable_bits);"


def store_variable(header: HeaderType, index: int, at: str, slot: str) -> str:
    """Write the variable-length field that load_variable reads."""
    before = bits_before(header, index)
    if before % 8 == 0:
        return f"memcpy({_plus(at, before // 8)}, &phv[{slot}], variable_bits / 8);"
    return f"gb_copy_bits({at}, {before}, (uint8_t *)&phv[{slot}], 0, variable_bits);"


def load_fields(header: HeaderType, indices: list[int], at: str, first: str) -> list[str]:
    """Read fixed fields; offsets count from `at` as if the variable-length field were empty."""
    offsets = header.offsets
    lines = []
    for index in indices:
        slot = _sum(first, offsets[index])
        lines.append(load_field(at, bits_before(header, index), header.fields[index].width, slot))
    return [line for line in lines if line]


def store_fields(header: HeaderType, indices: list[int], at: str, first: str) -> list[str]:
    """Write fixed fields, with those that share bytes together. Bytes in between fields of one group are whole."""
    offsets = header.offsets
    lines: list[str] = []
    group: list[int] = []
    for index in indices:
        group.append(index)
        if (bits_before(header, index) + header.fields[index].width) % 8 == 0:
            lines.extend(_store_group(header, group, at, first, offsets))
            group = []
    return lines + _store_group(header, group, at, first, offsets)


def _store_group(header: HeaderType, group: list[int], at: str, first: str, offsets: tuple[int, ...]) -> list[str]:
    group = [i for i in group if header.fields[i].width]
    if not group:
        return []
    start = bits_before(header, group[0])
    total = sum(header.fields[i].width for i in group)
    if start % 8 == 0 and total in _WHOLE:
        parts = []
        below = total
        for index in group:
            below -= header.fields[index].width
            slot = f"phv[{_sum(first, offsets[index])}]"
            parts.append(f"{slot} << {below}" if below else slot)
        return [f"gb_store{total}({_plus(at, start // 8)}, {' | '.join(parts)});"]
    return [_store_any(header.fields[i], at, bits_before(header, i), _sum(first, offsets[i])) for i in group]


def _store_any(field: FieldType, at: str, bit: int, slot: str) -> str:
    return f"gb_store_field({at}, {bit}, {field.width}, &phv[{slot}]);"


def _sum(first: str, offset: int) -> str:
    return str(int(first) + offset) if first.isdigit() else f"{first} + {offset}"
