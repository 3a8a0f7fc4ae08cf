"""Types that P4Info names: what a user-defined type means for the values that a controller sends.

P4Runtime specification 1.4, sections "User-defined types" and "P4 Type Specifications in p4info.proto".
"""

from __future__ import annotations

from typing import Any


def controller_width_bits(described: Any, type_info: Any) -> int:
    """Width of a match field, action parameter or packet metadata as the controller sees it.

    `described` has bitwidth and type_name. Raises ValueError for values that are strings to the controller: what
    they stand for in the data plane does not come with a program.
    """
    type_name = described.type_name.name
    width_bits: int = described.bitwidth
    if type_name and type_name in type_info.new_types:
        translated = type_info.new_types[type_name].translated_type
        if translated.HasField("sdn_string"):
            raise ValueError(
                f"{described.name!r} has type {type_name!r}, which controllers name by strings; "
                "this switch translates to sdn_bitwidth only"
            )
        width_bits = translated.sdn_bitwidth or width_bits
    if width_bits <= 0:
        raise ValueError(f"{described.name!r} has no bit width in the P4Info")
    return width_bits


def is_translated(described: Any, type_info: Any) -> bool:
    type_name = described.type_name.name
    return bool(
        type_name and type_name in type_info.new_types and type_info.new_types[type_name].HasField("translated_type")
    )
