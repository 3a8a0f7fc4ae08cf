"""Layout of a packet's values: standard metadata, requests, and the packet header vector (PHV).

Standard metadata and requests have structs of their own. The PHV has, in this order: bookkeeping; validity, one word
for each header; counters of stacks; user metadata; header fields. The elements of a stack are adjacent, in validity
as in fields, so that an index computed while a packet is processed is an addition. Each stack has a spare element,
which takes the accesses that are out of range.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json.model import HeaderType, ProgramModel
from gradbed.switch.bmv2_json.reader import MalformedProgram
from gradbed.switch.runtime.library import STATE_HEADERS

# ---- Structs of switch/runtime/program.h ----


STANDARD_FIELDS = tuple(STATE_HEADERS.members("gb_standard_metadata"))
"""Members of struct gb_standard_metadata: one uint64_t each, named as in v1model.p4."""
_REQUESTS = STATE_HEADERS.members("gb_requests")
REQUEST_FLAGS = tuple(name for name, kind in _REQUESTS.items() if kind is ctypes.c_uint8)
REQUEST_NUMBERS = tuple(name for name in _REQUESTS if name not in REQUEST_FLAGS)
REQUEST_FIELDS = REQUEST_FLAGS + REQUEST_NUMBERS
"""Flags are uint8_t, numbers uint32_t."""


# ---- The packet header vector ----


FRAME_LENGTH = 0  # bytes of the frame as it came to the parser: what counters and meters count
GROWTH = 1  # bytes that add_header and remove_header added to it since, modulo 2^64
DIGEST = 2  # the digest list that ingress asked for, or 0
_BOOKKEEPING_WORDS = 3
_MAX_PHV_WORDS = 1 << 20


@dataclass(frozen=True)
class HeaderLayout:
    """The place of a header in the PHV."""

    type: HeaderType
    validity: str
    """Index of its validity, as a C expression; a plain number for a fixed header."""
    first: str
    """Index of its first field, as a C expression; a plain number for a fixed header."""


@dataclass(frozen=True)
class StackLayout:
    """The place of a stack in the PHV."""

    counter: int
    """Index of the number of its elements."""
    elements: int
    """Number of elements as declared, without the spare one."""
    validity: int
    """Index of the validity of its first element."""
    validity_stride: int
    """Words from the validity of one element to the next."""
    first: int
    """Index of the first field of its first element."""
    stride: int
    """Words from the fields of one element to the next."""


class Layout:
    """PHV indices of the headers and fields of a program."""

    def __init__(self, model: ProgramModel) -> None:
        self.model = model
        self.validity: dict[str, int] = {}
        self.first: dict[str, int] = {}
        self.stacks: dict[str, StackLayout] = {}
        self.member_of: dict[str, tuple[str, ...]] = {h: u.members for u in model.unions.values() for h in u.members}
        self._standard = _standard_members(model)
        self._allocate()
        if self.words > _MAX_PHV_WORDS:
            raise MalformedProgram(
                f"BMv2 JSON: headers and metadata need {self.words} words, more than {_MAX_PHV_WORDS}"
            )

    def _allocate(self) -> None:
        model = self.model
        stacks: list[tuple[str, list[tuple[str, ...]]]] = [
            (s.name, [(e,) for e in s.elements]) for s in model.stacks.values()
        ]
        stacks += [(s.name, [model.unions[u].members for u in s.elements]) for s in model.union_stacks.values()]
        in_stacks = {h for _, elements in stacks for element in elements for h in element}
        singles = [h for h in model.headers.values() if not h.metadata and h.name not in in_stacks]
        at = _BOOKKEEPING_WORDS
        for header in singles:
            self.validity[header.name] = at
            at += 1
        stack_validity = {}
        for name, elements in stacks:
            stack_validity[name] = at
            for element in elements:
                for header_name in element:
                    self.validity[header_name] = at
                    at += 1
            at += len(elements[0])
        counters = {name: at + i for i, (name, _) in enumerate(stacks)}
        at += len(stacks)
        self.metadata_first = at
        for header in model.headers.values():
            if header.metadata:
                self.first[header.name] = at
                at += header.type.words
        self.metadata_words = at - self.metadata_first
        for header in singles:
            self.first[header.name] = at
            at += header.type.words
        for name, elements in stacks:
            first = at
            for element in elements:
                for header_name in element:
                    self.first[header_name] = at
                    at += model.headers[header_name].type.words
            stride = (at - first) // len(elements)
            at += stride
            self.stacks[name] = StackLayout(
                counters[name], len(elements), stack_validity[name], len(elements[0]), first, stride
            )
        self.words = at

    def header(self, name: str) -> HeaderLayout:
        kind = self.model.headers[name].type
        return HeaderLayout(kind, str(self.validity.get(name, -1)), str(self.first[name]))

    def is_metadata(self, name: str) -> bool:
        return self.model.headers[name].metadata

    def standard(self, field: ex.FieldReference) -> str | None:
        """Return the member of struct gb_standard_metadata that a field stands for."""
        if isinstance(field.header, ex.NamedHeader):
            return self._standard.get((field.header.name, field.index))
        return None


def _standard_members(model: ProgramModel) -> dict[tuple[str, int], str]:
    members: dict[tuple[str, int], str] = {}
    standard = model.headers.get("standard_metadata")
    if standard is not None:
        for index, field in enumerate(standard.type.fields):
            if field.name in STANDARD_FIELDS:
                members[standard.name, index] = field.name
    for alias, target in model.aliases.items():
        member = alias.rsplit(".", 1)[-1]
        if member in STANDARD_FIELDS and isinstance(target.header, ex.NamedHeader):
            members[target.header.name, target.index] = member
    return members
