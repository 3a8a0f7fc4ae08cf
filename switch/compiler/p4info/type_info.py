"""The section `type_info`, and types as P4Info describes them (P4Runtime specification, "P4Data")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from finsy.proto import p4t

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.p4info.preamble import add_annotations
from gradbed.switch.compiler.values import wrap


def translation(type_: t.Type) -> tuple[str, int | None] | None:
    """Return URI and bits (None for a string) of @p4runtime_translation("uri", width or string) of a newtype."""
    if not isinstance(type_, t.NewType):
        return None
    annotation = s.find_annotation(type_.node.annotations, "p4runtime_translation")
    if annotation is None or not annotation.body or len(annotation.body) < 3:
        return None
    uri, width = s.unquote(annotation.body[0]), annotation.body[2:]
    if width[:2] == ["bit", "<"]:
        width = width[2:]
    if not width[0].isdecimal() or len(width[0]) > 5:
        return uri, None
    return uri, int(width[0])


def control_width(type_: t.Type) -> int:
    """Return the width in bits of a value for the control plane; 0 for strings and errors."""
    translated = translation(type_)
    if translated is not None:
        return translated[1] or 0
    if type_ is t.ERROR:
        return 0
    return t.width_bits(type_) or 0


def padded_bytes(value: int, type_: t.Type) -> bytes:
    """Return a value in as many bytes as its type has, as p4c does (P4Runtime allows leading zeros)."""
    width = t.width_bits(type_) or 1
    return wrap(value, t.bit(width)).to_bytes((width + 7) // 8, "big")


class TypeInfo:
    """Fills a P4TypeInfo message with the types that other parts of P4Info mention."""

    def __init__(self, message: Any, errors: Iterable[str]) -> None:
        self._message = message
        self._errors = list(errors)

    def add(self, type_: t.Type) -> None:
        self._message.SetInParent()
        self.spec(type_)

    def spec(self, type_: t.Type) -> Any:
        """Return the P4DataTypeSpec of a type; named types are added to the section."""
        spec = p4t.P4DataTypeSpec()
        if isinstance(type_, t.Bit):
            spec.bitstring.bit.bitwidth = type_.width
        elif isinstance(type_, t.Int):
            spec.bitstring.int.bitwidth = type_.width
        elif isinstance(type_, t.Varbit):
            spec.bitstring.varbit.max_bitwidth = type_.width
        elif type_ is t.BOOL:
            spec.bool.SetInParent()
        elif type_ is t.ERROR:
            spec.error.SetInParent()
            del self._message.error.members[:]
            self._message.error.members.extend(self._errors)
        elif isinstance(type_, t.Tuple):
            spec.tuple.SetInParent()
            for element in type_.elements:
                spec.tuple.members.append(self.spec(element))
        elif isinstance(type_, t.NewType):
            spec.new_type.name = type_.name
            self._new_type(type_)
        elif isinstance(type_, t.Enum):
            self._enum(type_, spec)
        elif isinstance(type_, t.Struct):
            self._struct(type_, spec)
        elif isinstance(type_, t.Stack):
            self._stack(type_, spec)
        return spec

    def _new_type(self, type_: t.NewType) -> None:
        if type_.name in self._message.new_types:
            return
        entry = self._message.new_types[type_.name]
        underlying: t.Type = type_
        while isinstance(underlying, t.NewType):
            underlying = underlying.underlying
        translated = translation(type_)
        if translated is None:
            entry.original_type.CopyFrom(self.spec(underlying))
        else:
            entry.translated_type.uri = translated[0]
            if translated[1] is None:
                entry.translated_type.sdn_string.SetInParent()
            else:
                entry.translated_type.sdn_bitwidth = translated[1]
        add_annotations(entry, type_.node.annotations)

    def _enum(self, type_: t.Enum, spec: Any) -> None:
        if type_.underlying is None:
            spec.enum.name = type_.name
            if type_.name not in self._message.enums:
                entry = self._message.enums[type_.name]
                for name in type_.members:
                    entry.members.add(name=name)
            return
        spec.serializable_enum.name = type_.name
        if type_.name in self._message.serializable_enums:
            return
        entry = self._message.serializable_enums[type_.name]
        entry.underlying_type.bitwidth = t.width_bits(type_) or 1
        for name in type_.members:
            entry.members.add(name=name, value=padded_bytes(type_.values[name], type_))

    def _struct(self, type_: t.Struct, spec: Any) -> None:
        kind = {"struct": "struct", "header": "header", "header_union": "header_union"}[type_.kind]
        getattr(spec, kind).name = type_.name
        section = getattr(self._message, f"{kind}s")
        if type_.name in section:
            return
        entry = section[type_.name]
        entry.SetInParent()
        for name, inner in type_.fields.items():
            if kind == "struct":
                member = entry.members.add(name=name)
                member.type_spec.CopyFrom(self.spec(inner))
            elif kind == "header":
                inner_spec = self.spec(t.representation(inner) if inner is not t.BOOL else t.bit(1))
                member = entry.members.add(name=name)
                if inner_spec.HasField("bitstring"):
                    member.type_spec.CopyFrom(inner_spec.bitstring)
            else:
                member = entry.members.add(name=name)
                member.header.CopyFrom(self.spec(inner).header)

    def _stack(self, type_: t.Stack, spec: Any) -> None:
        inner = self.spec(type_.element)
        if inner.HasField("header"):
            spec.header_stack.header.CopyFrom(inner.header)
            spec.header_stack.size = type_.size
        else:
            spec.header_union_stack.header_union.CopyFrom(inner.header_union)
            spec.header_union_stack.size = type_.size
