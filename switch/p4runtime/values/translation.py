"""Types that controllers name by strings: @p4runtime_translation(uri, string).

P4Runtime specification 1.4, section "User-defined types", leaves to the server what the data plane sees. Here a
decimal number stands for itself, so that ports can be named by their numbers, and any other string is given the first
free value from 1 on when it is first used. The strings of a pipeline mean the same in all devices that run it, so
that their values can travel between switches in packets.
"""

from __future__ import annotations

import threading

from gradbed.switch.p4runtime.values.status import exhausted, invalid, out_of_range


class Names:
    """The strings of one type, as a value codec. Used from several threads."""

    def __init__(self, type_name: str, width_bits: int) -> None:
        self._type_name = type_name
        self._limit = 1 << width_bits
        self._values: dict[bytes, int] = {}
        self._names: dict[int, bytes] = {}
        self._next = 1
        self._lock = threading.Lock()

    def decode(self, data: bytes) -> int:
        """The value that a string stands for, from now on. Raises RequestError."""
        value = self._values.get(data)
        if value is not None:
            return value
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise invalid(f"a name of type {self._type_name} is not UTF-8") from None
        if not text:
            raise invalid(f"an empty name of type {self._type_name}")
        with self._lock:
            if data not in self._values:
                self._give(data, self._number(text))
            return self._values[data]

    def encode(self, value: int) -> bytes:
        return self._names.get(value) or str(value).encode()

    def _number(self, text: str) -> int:
        """What a name is to stand for."""
        if text.isascii() and text.isdecimal() and (text == "0" or text[0] != "0") and len(text) < 80:
            number = int(text)
            if number >= self._limit:
                raise out_of_range(f"{text} is too large for type {self._type_name}")
            if number in self._names:
                raise invalid(f"{text} stands for {self._names[number].decode()!r} in type {self._type_name} already")
            return number
        while self._next in self._names:
            self._next += 1
        if self._next >= self._limit:
            raise exhausted(f"type {self._type_name} has room for {self._limit - 1} names, all are in use")
        return self._next

    def _give(self, name: bytes, value: int) -> None:
        self._names[value] = name
        self._values[name] = value


class Translations:
    """The types of one program that controllers name by strings. Types with one URI share their names."""

    def __init__(self) -> None:
        self._types: dict[tuple[str, int], Names] = {}

    def names(self, type_name: str, uri: str, width_bits: int) -> Names:
        return self._types.setdefault((uri or type_name, width_bits), Names(type_name, width_bits))
