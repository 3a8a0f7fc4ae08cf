"""Structs, constants and functions of C headers as ctypes has them, so that a field stands in its header alone.

This reads what the headers of this project consist of, not all of C: integer `#define`s and enumerators, structs of
numbers, arrays, pointers and other structs, and prototypes. ctypes lays structs out as the compiler does;
tests/unit/common/test_c_headers.py holds sizes and offsets of all of them against it.
"""

from __future__ import annotations

import ctypes
import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from gradbed.common.errors import UserError

_StructClass = TypeVar("_StructClass", bound=type[ctypes.Structure])

_SCALARS: Mapping[str, Any] = {
    "bool": ctypes.c_bool,
    "char": ctypes.c_char,
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "int": ctypes.c_int,
    "size_t": ctypes.c_size_t,
    **{f"{kind}{bits}_t": getattr(ctypes, f"c_{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}
_STANDARD_CONSTANTS = {f"UINT{bits}_MAX": 2**bits - 1 for bits in (8, 16, 32, 64)}

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\S[^\n]*)$", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*$", re.MULTILINE)
_STRUCT = re.compile(r"\bstruct\s+(\w+)\s*\{")
_ENUM = re.compile(r"\benum\b(?:\s+\w+)?\s*\{([^}]*)\}")
_PROTOTYPE = re.compile(r"^([a-z][\w \t]*[ \t*])(\w+)\s*\(([^()]*)\)\s*;", re.MULTILINE)
_TOKEN = re.compile(r"\w+|[^\w\s]")
_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b")


class CHeaders:
    """The declarations of C headers, as ctypes.

    A pointer to a struct that has been declared in Python is typed, `const char *` is c_char_p, a pointer to pointers
    is POINTER(c_void_p), and any other pointer is an address (c_void_p), which takes bytes, arrays and `byref`, too.
    """

    def __init__(self, *paths: Path, uses: Iterable[CHeaders] = ()) -> None:
        """Name the headers; they are read when something of them is asked for.

        Args:
            paths: The files.
            uses: Others whose structs and constants these use.
        """
        self.paths = paths
        self._uses: tuple[CHeaders, ...] = tuple(each for used in uses for each in (used, *used._uses))
        self.structures: dict[str, type[ctypes.Structure]] = {}
        """Classes that were made so far, by the names of their structs."""
        self._declared: set[str] = set()
        self._constants = _Constants(self)

    def constant(self, name: str) -> int:
        """Return the value of an integer `#define` or an enumerator. KeyError if there is none."""
        return self._constants[name]

    def structure(self, name: str) -> type[ctypes.Structure]:
        """Return the class of a struct: the one that was declared, else one without methods. KeyError if there is
        none."""
        for each in (self, *self._uses):
            if name in each.structures:
                return each.structures[name]
        owner = self._owner_of(name)
        made: Any = type(name, (ctypes.Structure,), {"__doc__": f"struct {name}."})
        owner.structures[name] = made
        made._fields_ = owner._fields_of(name)
        return owner.structures[name]

    def members(self, name: str) -> dict[str, Any]:
        """Return the types of a struct's members by name, in order."""
        return dict(self.structure(name)._fields_)  # type: ignore[arg-type]

    def declare(self, name: str) -> Callable[[_StructClass], _StructClass]:
        """Give the decorated class the fields of a struct; from then on pointers to that struct are typed."""

        def give_fields(cls: _StructClass) -> _StructClass:
            if name in self.structures:
                raise ValueError(f"struct {name} is declared after another one that contains it")
            self.structures[name] = cls
            self._declared.add(name)
            cls._fields_ = self._fields_of(name)
            return cls

        return give_fields

    def bind(self, library: ctypes.CDLL, prefix: str = "") -> None:
        """Give the library's functions that these headers declare, those that begin with `prefix`, their types.

        Raises UserError if the library does not have one of them.
        """
        for result, name, arguments in _PROTOTYPE.findall(self._text):
            if not name.startswith(prefix) or result.split()[0] in ("static", "typedef"):
                continue
            try:
                function = library[name]
            except AttributeError:
                declared_in = next(path.name for path in self.paths if name in path.read_text())
                raise UserError(f"no C file defines {name}, which {declared_in} declares") from None
            setattr(library, name, function)
            function.restype = self._type(_Declaration.of(result))
            taken = [each for each in arguments.split(",") if each.strip() not in ("", "void")]
            function.argtypes = tuple(self._type(_Declaration.of(each), in_argument=True) for each in taken)

    # Private

    @cached_property
    def _source(self) -> str:
        """Text of all headers without comments, with continued lines joined."""
        return _COMMENT.sub(" ", "\n".join(path.read_text() for path in self.paths)).replace("\\\n", " ")

    @cached_property
    def _text(self) -> str:
        """Source without preprocessor directives."""
        return _DIRECTIVE.sub("", self._source)

    @cached_property
    def _bodies(self) -> dict[str, str]:
        """Text between the braces of each struct, by name."""
        return {found[1]: _braced(self._text, found.end()) for found in _STRUCT.finditer(self._text)}

    @cached_property
    def _expressions(self) -> dict[str, str]:
        """Expressions of constants by name."""
        found = dict(_DEFINE.findall(self._source))
        for body in _ENUM.findall(self._text):
            last = "-1"
            for each in filter(None, map(str.strip, body.split(","))):
                name, _, value = map(str.strip, each.partition("="))
                found[name] = value or f"{last} + 1"
                last = name
        return found

    def _owner_of(self, name: str) -> CHeaders:
        for each in (self, *self._uses):
            if name in each._bodies:
                return each
        raise KeyError(f"no struct {name} in {', '.join(path.name for path in self.paths)}")

    def _fields_of(self, name: str) -> list[tuple[str, Any]]:
        return [
            (f"{each.name}_" if keyword.iskeyword(each.name) else each.name, self._type(each))
            for each in _members(self._bodies[name])
        ]

    def _type(self, declaration: _Declaration, *, in_argument: bool = False) -> Any:
        """The type that ctypes has for it; None for void."""
        pointers = declaration.pointers + (in_argument and bool(declaration.lengths))
        if declaration.is_function:
            kind: Any = ctypes.c_void_p
        elif pointers > 1:
            kind = ctypes.POINTER(ctypes.c_void_p)
        elif pointers:
            kind = self._pointer(declaration)
        elif declaration.keyword == "struct":
            kind = self.structure(declaration.type)
        elif declaration.keyword == "enum":
            kind = ctypes.c_int
        else:
            kind = None if declaration.type == "void" else _SCALARS[declaration.type]
        if not in_argument:
            for length in reversed(declaration.lengths):
                kind *= self._constants.value_of(length) if length else 0
        return kind

    def _pointer(self, declaration: _Declaration) -> Any:
        if declaration.keyword == "struct":
            for each in (self, *self._uses):
                if declaration.type in each._declared:
                    return ctypes.POINTER(each.structures[declaration.type])
        return ctypes.c_char_p if declaration.type == "char" else ctypes.c_void_p


class _DeclaredOnly:
    """A mixin for ctypes libraries: only functions of bound headers can be called.

    ctypes takes the result of any other function for an int, and silently truncates it to 32 bits.
    """

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no header that is bound to the library declares {name}")


class DeclaredCDLL(_DeclaredOnly, ctypes.CDLL):
    """A library whose functions are those that CHeaders.bind gave types."""


class DeclaredPyDLL(_DeclaredOnly, ctypes.PyDLL):
    """The same, called with the interpreter's lock held."""


class _Constants(dict[str, int]):
    """Values of constants by name, found when they are asked for."""

    def __init__(self, headers: CHeaders) -> None:
        super().__init__(_STANDARD_CONSTANTS)
        self._headers = headers

    def __missing__(self, name: str) -> int:
        for each in self._headers._uses:
            if name in each._expressions:
                return each.constant(name)
        self[name] = value = self.value_of(self._headers._expressions[name])
        return value

    def value_of(self, expression: str) -> int:
        """Evaluate an expression of integers, names, UINT64_C, and operators that C and Python share."""
        text = re.sub(r"\bU?INT\d+_C\b", "", _SUFFIX.sub(r"\1", expression))
        return int(eval(text, {"__builtins__": {}}, self))


class _Declaration:
    """A member of a struct, an argument or a result."""

    def __init__(self, keyword_: str, type_: str) -> None:
        self.keyword = keyword_
        """struct, enum, or nothing."""
        self.type = type_
        self.name = ""
        """Arguments may have none."""
        self.pointers = 0
        self.lengths: list[str] = []
        """Of an array's dimensions, as expressions."""
        self.is_function = False
        """A pointer to a function."""

    @classmethod
    def of(cls, text: str) -> _Declaration:
        """Read an argument, or a result."""
        return next(_members(f"{text};"))


def _members(body: str) -> Iterator[_Declaration]:
    """The members of a struct, in order."""
    tokens = iter(_TOKEN.findall(body))
    for token in tokens:
        while token in ("const", "volatile"):
            token = next(tokens)
        word = token if token in ("struct", "enum") else ""
        declaration = _Declaration(word, next(tokens) if word else token)
        for token in tokens:
            if token == "{":
                _skip(tokens, "{", "}")
            elif token == "*":
                declaration.pointers += 1
            elif token == "[":
                declaration.lengths.append(" ".join(iter(lambda: next(tokens), "]")))
            elif token == "(":
                inner = _skip(tokens, "(", ")")
                if not declaration.is_function:
                    declaration.is_function, declaration.name = True, inner[-1]
            elif token in (",", ";"):
                yield declaration
                if token == ";":
                    break
                declaration = _Declaration(declaration.keyword, declaration.type)
            elif token != "const":
                declaration.name = token


def _skip(tokens: Iterator[str], opening: str, closing: str) -> list[str]:
    """Return the tokens up to the closing one that matches."""
    depth, inner = 1, []
    for token in tokens:
        depth += (token == opening) - (token == closing)
        if not depth:
            break
        inner.append(token)
    return inner


def _braced(text: str, start: int) -> str:
    depth = 1
    for found in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if found[0] == "{" else -1
        if not depth:
            return text[start : found.start()]
    raise ValueError("a struct has no end")
