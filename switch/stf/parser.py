"""STF text to statements. One statement is one line; commands are written in either case; `#` begins a comment."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal, cast

from gradbed.common.errors import UserError
from gradbed.switch.stf import statements as s
from gradbed.switch.stf.statements import Pattern, StfError

# ---- One line as words, numbers and symbols, taken from left to right ----


_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>0[xX][0-9a-fA-F*]+|0[bB][01*]+|[0-9]+(?:\.[0-9]+(?![.0-9]))?)(?![\w*])
    |"(?P<quoted>[^"]*)"
    |(?P<name>[A-Za-z_$][\w$]*(?:\[[0-9]+\])*(?:\.[A-Za-z_$][\w$]*(?:\[[0-9]+\])*)*)
    |(?P<symbol>&&&|\.\.|->|[=!<>]=|[-:,()/=<>|])
    )""",
    re.VERBOSE | re.ASCII,
)
# Python refuses to read longer ones (sys.set_int_max_str_digits), and no field of a packet needs them.
_MAX_DECIMAL_DIGITS = 1000


class Mistake(Exception):
    """A mistake in a line."""


def decimal_number(text: str) -> int:
    """Return the number of a text that is all digits."""
    if len(text) > _MAX_DECIMAL_DIGITS:
        raise Mistake(f"a decimal number has at most {_MAX_DECIMAL_DIGITS} digits")
    return int(text)


class StatementLine:
    """Raises Mistake where the line is not as asked."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise Mistake(f"cannot read '{text[at:].strip()[:40]}'")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._tokens)

    def kind(self, ahead: int = 0) -> str:
        """Return number, quoted, name, symbol; empty at the end."""
        at = self._at + ahead
        return self._tokens[at][0] if at < len(self._tokens) else ""

    def sees(self, symbol: str, ahead: int = 0) -> bool:
        return self.kind(ahead) == "symbol" and self._tokens[self._at + ahead][1] == symbol

    def take(self, *symbols: str) -> str | None:
        """Take the next token, if it is one of these symbols."""
        for symbol in symbols:
            if self.sees(symbol):
                self._at += 1
                return symbol
        return None

    def require(self, symbol: str) -> None:
        if not self.take(symbol):
            raise self._expected(f"'{symbol}'")

    def name(self, what: str) -> str:
        if self.kind() not in ("name", "quoted"):
            raise self._expected(what)
        return self._next()

    def natural(self, what: str) -> int:
        """Take a number without wildcards."""
        pattern = self.pattern(what)
        if pattern.has_wildcards:
            raise Mistake(f"{what} cannot have wildcards")
        return pattern.value

    def pattern(self, what: str) -> Pattern:
        if self.kind() != "number":
            raise self._expected(what)
        text = self._next()
        if "." in text:
            raise Mistake(f"{what} is a whole number, not {text}")
        if text[:2].lower() not in ("0x", "0b"):
            return Pattern(decimal_number(text))
        bits, base = (4, 16) if text[1] in "xX" else (1, 2)
        digits = text[2:]
        fixed = "".join("0" if c == "*" else format(base - 1, "x") for c in digits)
        written = (1 << bits * len(digits)) - 1
        return Pattern(int(digits.replace("*", "0"), base), int(fixed, base), written)

    def decimal(self, what: str) -> float:
        """Take a number that may have a fraction."""
        if self.kind() != "number" or not self._tokens[self._at][1].replace(".", "").isdigit():
            raise self._expected(what)
        value = float(self._next())
        if math.isinf(value):
            raise Mistake(f"{what} is too large")
        return value

    def end(self) -> None:
        if not self.at_end:
            raise Mistake(f"'{self._tokens[self._at][1][:40]}' is not expected here")

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _expected(self, what: str) -> Mistake:
        got = "the end of the line" if self.at_end else f"'{self._tokens[self._at][1][:40]}'"
        return Mistake(f"expected {what}, got {got}")


# ---- Statements ----


_HEX_DIGITS = frozenset("0123456789abcdef")
_OPERATORS = ("==", "!=", "<=", "<", ">=", ">")


def read_stf(path: Path) -> s.Script:
    """Read a file. StfError (a UserError) names the first line that is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a text file") from None
    return parse_stf(text, path)


def parse_stf(text: str, path: Path) -> s.Script:
    """Parse a file's text; `path` is for messages."""
    statements = []
    for number, whole in enumerate(text.split("\n"), start=1):
        line = whole.split("#", 1)[0].strip()
        if not line:
            continue
        command, *rest = line.split(maxsplit=1)
        parse = _COMMANDS.get(command.lower())
        try:
            if parse is None:
                raise Mistake(f"there is no command '{command[:40]}'")
            statements.append(parse(number, rest[0] if rest else ""))
        except Mistake as mistake:
            raise StfError(path, number, str(mistake)) from None
    return s.Script(path, tuple(statements))


# ---- Packets: digits, in groups as one likes ----


def _packet(line: int, rest: str) -> s.Packet:
    port, digits = _port_and_digits(rest, "packet PORT HEX-DIGITS")
    if digits is None:
        raise Mistake("the packet has no bytes: packet PORT HEX-DIGITS")
    _check_digits(digits, _HEX_DIGITS)
    if len(digits) % 2:
        raise Mistake(f"the packet has an odd number of hex digits: {len(digits)}")
    return s.Packet(line, port, bytes.fromhex(digits))


def _expect(line: int, rest: str) -> s.Expect:
    port, digits = _port_and_digits(rest, "expect PORT [HEX-DIGITS-OR-* [$]]")
    if digits is None:
        return s.Expect(line, port)
    exact = digits.endswith("$")
    digits = digits.removesuffix("$")
    _check_digits(digits, _HEX_DIGITS | {"*"})
    return s.Expect(line, port, digits, exact)


def _port_and_digits(rest: str, usage: str) -> tuple[int, str | None]:
    port, *groups = rest.split() or [""]
    if not (port.isascii() and port.isdigit()):
        raise Mistake(f"a port number is missing: {usage}")
    return decimal_number(port), "".join(groups).lower() if groups else None


def _check_digits(digits: str, allowed: frozenset[str]) -> None:
    wrong = next((c for c in digits if c not in allowed), None)
    if wrong is not None:
        raise Mistake(f"'{wrong}' is not a hex digit")


# ---- Everything else: words, numbers, symbols ----


def _call(line: StatementLine) -> s.StfAction:
    action = line.name("an action")
    line.require("(")
    arguments: list[tuple[str, int]] = []
    while not line.take(")"):
        if arguments:
            line.require(",")
        name = line.name("the name of an argument")
        line.require(":")
        if name in (n for n, _ in arguments):
            raise Mistake(f"argument {name} is there twice")
        arguments.append((name, line.natural(f"argument {name}")))
    return s.StfAction(action, tuple(arguments))


def _match(line: StatementLine) -> s.Match:
    key = line.name("a key field")
    line.require(":")
    what = f"the value of {key}"
    pattern = line.pattern(what)
    symbol = line.take("/", "&&&", "..", "->")
    if symbol is None:
        return s.Match(key, pattern)
    if pattern.has_wildcards:
        raise Mistake(f"{what} cannot have wildcards and {symbol}")
    second = line.natural(what)
    if symbol == "/":
        return s.Match(key, s.Prefix(pattern.value, second))
    if symbol == "&&&":
        return s.Match(key, s.Masked(pattern.value, second))
    return s.Match(key, s.Range(pattern.value, second))


def _add(number: int, line: StatementLine) -> s.Add:
    table = line.name("a table")
    priority = line.natural("a priority") if line.kind() == "number" else None
    matches: list[s.Match] = []
    while line.sees(":", 1):
        match = _match(line)
        if match.key in (m.key for m in matches):
            raise Mistake(f"key field {match.key} is there twice")
        matches.append(match)
    call, *others = _calls(line)
    entry = line.name("a name for the entry") if line.take("=") else None
    return s.Add(number, table, tuple(matches), call, priority, entry, tuple(others))


def _calls(line: StatementLine) -> list[s.StfAction]:
    """Parse one action, or those of the members of a group."""
    calls = [_call(line)]
    while line.take("|"):
        calls.append(_call(line))
    return calls


def _remove(number: int, line: StatementLine) -> s.Remove:
    entry = line.name("ALL or the name of an entry")
    return s.Remove(number, None if entry.lower() == "all" else entry)


def _condition(line: StatementLine) -> s.StfCondition:
    operator = line.take(*_OPERATORS)
    if operator is None:
        raise Mistake(f"a comparison is missing: one of {' '.join(_OPERATORS)}")
    value = line.natural("a number")
    return s.StfCondition(cast(Literal["==", "!=", "<", "<=", ">", ">="], operator), value)


def _index_or_entry(line: StatementLine) -> int | str:
    return line.natural("an index") if line.kind() == "number" else line.name("an index or the name of an entry")


def _check_counter(number: int, line: StatementLine) -> s.CheckCounter:
    counter = line.name("a counter")
    line.require("(")
    index = _index_or_entry(line)
    line.require(")")
    if line.at_end:
        return s.CheckCounter(number, counter, index, "packets", s.StfCondition("==", 0))
    unit = line.name("packets or bytes").lower()
    if unit not in ("packets", "bytes"):
        raise Mistake(f"counters count packets or bytes, not {unit}")
    return s.CheckCounter(number, counter, index, cast(Literal["packets", "bytes"], unit), _condition(line))


def _register_read(number: int, line: StatementLine) -> s.RegisterRead:
    register, index = line.name("a register"), line.natural("an index")
    return s.RegisterRead(number, register, index, None if line.at_end else _condition(line))


def _rates(line: StatementLine) -> tuple[s.Rate, s.Rate]:
    rates = []
    for what in ("the committed rate", "the peak rate"):
        rate = line.decimal(f"{what} per microsecond")
        line.require(":")
        rates.append(s.Rate(rate, line.natural(f"the burst of {what}")))
    return rates[0], rates[1]


def _ports(line: StatementLine) -> tuple[int, ...]:
    ports = [line.natural("a port")]
    while not line.at_end:
        ports.append(line.natural("a port"))
    return tuple(ports)


def _numbers(make: Callable[..., s.StfStatement], *what: str) -> Callable[[int, StatementLine], s.StfStatement]:
    return lambda number, line: make(number, *(line.natural(w) for w in what))


def _name_and_numbers(
    make: Callable[..., s.StfStatement], name: str, *what: str
) -> Callable[[int, StatementLine], s.StfStatement]:
    return lambda number, line: make(number, line.name(name), *(line.natural(w) for w in what))


def _tokens(parse: Callable[[int, StatementLine], s.StfStatement]) -> Callable[[int, str], s.StfStatement]:
    def whole(number: int, rest: str) -> s.StfStatement:
        line = StatementLine(rest)
        statement = parse(number, line)
        line.end()
        return statement

    return whole


_COMMANDS: dict[str, Callable[[int, str], s.StfStatement]] = {
    "packet": _packet,
    "expect": _expect,
    "no_packet": _tokens(lambda number, _: s.NoPacket(number)),
    "wait": _tokens(lambda number, _: s.Wait(number)),
    "add": _tokens(_add),
    "setdefault": _tokens(lambda number, line: s.SetDefault(number, line.name("a table"), _call(line))),
    "remove": _tokens(_remove),
    "check_counter": _tokens(_check_counter),
    "counter_read": _tokens(_name_and_numbers(s.CounterRead, "a counter", "an index")),
    "counter_write": _tokens(_name_and_numbers(s.CounterWrite, "a counter", "an index", "packets", "bytes")),
    "register_read": _tokens(_register_read),
    "register_write": _tokens(_name_and_numbers(s.RegisterWrite, "a register", "an index", "a value")),
    "register_reset": _tokens(_name_and_numbers(s.RegisterReset, "a register")),
    "meter_get_rates": _tokens(_name_and_numbers(s.MeterGetRates, "a meter", "an index")),
    "meter_set_rates": _tokens(
        lambda number, line: s.MeterSetRates(number, line.name("a meter"), _index_or_entry(line), _rates(line))
    ),
    "meter_array_set_rates": _tokens(
        lambda number, line: s.MeterSetRates(number, line.name("a meter"), None, _rates(line))
    ),
    "mirroring_add": _tokens(_numbers(s.MirroringAdd, "a session", "a port")),
    "mirroring_add_mc": _tokens(_numbers(s.MirroringAddMulticast, "a session", "a multicast group")),
    "mirroring_delete": _tokens(_numbers(s.MirroringDelete, "a session")),
    "mirroring_get": _tokens(_numbers(s.MirroringGet, "a session")),
    "mc_mgrp_create": _tokens(_numbers(s.GroupCreate, "a multicast group")),
    "mc_node_create": _tokens(
        lambda number, line: s.NodeCreate(number, line.natural("an instance (rid)"), _ports(line))
    ),
    "mc_node_update": _tokens(lambda number, line: s.NodeUpdate(number, line.natural("a node"), _ports(line))),
    "mc_node_associate": _tokens(_numbers(s.NodeAssociate, "a multicast group", "a node")),
    "pvs_add": _tokens(_name_and_numbers(s.ValueSetAdd, "a value set", "a value")),
    "pvs_clear": _tokens(_name_and_numbers(s.ValueSetClear, "a value set")),
}
