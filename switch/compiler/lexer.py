"""The lexer of the preprocessor and the parser (P4_16 1.2.5, section 6.4)."""

from __future__ import annotations

import re

from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.source import EXPANSION_BASE, SourceFile

NAME, NUMBER, STRING, PUNCTUATION, UNKNOWN, END = range(6)

# Token flags.
LINE_START = 1  # first token of its line: a '#' there starts a directive
SPACE_BEFORE = 2  # white space or a comment precedes it
NO_EXPAND = 4  # met inside its own expansion: never expanded again (C11 6.10.3.4)

# The longest come first.
_OPERATORS = """
|+|= |-|= &&& ... <<= >>= |+| |-| ## ++ && || == != <= >= << >> .. += +: -= *= /= %= &= |= ^=
( ) [ ] { } < > ; : , . = + - * / % & | ^ ~ ! ? @ #
"""

# A line that ends in a backslash goes on, in the middle of a word, too; as in GCC's cpp, blanks may follow it.
_SPLICE = r"\\[ \t\r\f\v]*\n"
_TOKEN = re.compile(
    rf"(?P<space>(?:[ \t\r\f\v]|{_SPLICE})+)"
    r"|(?P<newline>\n)"
    rf"|(?P<comment>//(?:[^\n\\]|{_SPLICE}|\\)*|/\*(?:[^*]|\*(?!/))*\*/)"
    rf"|(?P<name>[A-Za-z_](?:[A-Za-z0-9_]|(?:{_SPLICE})+(?=[A-Za-z0-9_]))*)"
    rf"|(?P<number>[0-9](?:[A-Za-z0-9_]|(?:{_SPLICE})+(?=[A-Za-z0-9_]))*)"
    rf'|(?P<string>"(?:[^"\\\n]|{_SPLICE}|\\.)*")'
    r"|(?P<unclosed>/\*)"
    r'|(?P<open>"[^\n]*)'
    r"|(?P<punctuation>" + "|".join(map(re.escape, _OPERATORS.split())) + r")"
    r"|(?P<unknown>.)",
    re.ASCII,
)

_SPLICES = re.compile(_SPLICE, re.ASCII)
_KINDS = {
    "name": NAME,
    "number": NUMBER,
    "string": STRING,
    "punctuation": PUNCTUATION,
    "unknown": UNKNOWN,
    "open": UNKNOWN,  # a string that does not end in its line: the preprocessor looks for its end
}


class Token:
    """A token: its kind (NAME, NUMBER, STRING, PUNCTUATION, UNKNOWN or END), its text as written and its position."""

    __slots__ = ("flags", "kind", "loc", "text")

    def __init__(self, kind: int, text: str, loc: int, flags: int = 0) -> None:
        self.kind = kind
        self.text = text
        self.loc = loc
        self.flags = flags

    def __repr__(self) -> str:
        return f"Token({self.text!r})"

    @property
    def end(self) -> int:
        """Position after the token; for a token of a macro, its own position (see SourceManager.end_of)."""
        return self.loc + len(self.text) if self.loc < EXPANSION_BASE else self.loc


def tokenize(source: SourceFile, reporter: Reporter, start: int = 0, stop: int | None = None) -> list[Token]:
    """Return the tokens of a file, without an END token. Comments and white space leave only flags.

    Args:
        source: The file.
        reporter: Receives errors.
        start: Offset of the first character, after the first token of its line if it is not 0.
        stop: Offset after the last character; None for the end of the file.
    """
    tokens: list[Token] = []
    append = tokens.append
    base = source.base
    flags = 0 if start else LINE_START
    kinds = _KINDS
    for match in _TOKEN.finditer(source.text, start, len(source.text) if stop is None else stop):
        group = match.lastgroup
        assert group is not None
        kind = kinds.get(group)
        if kind is not None:
            text = match.group()
            if "\n" in text:
                _warn_of_blanks(match, base, reporter)
                text = _SPLICES.sub("", text)
            append(Token(kind, text, base + match.start(), flags))
            flags = 0
        elif group == "newline":
            flags = LINE_START
        elif group == "unclosed":
            reporter.error(base + match.start(), "unterminated comment")
            break
        else:
            if group == "space" and "\n" in match.group():
                _warn_of_blanks(match, base, reporter)
            flags |= SPACE_BEFORE
    return tokens


def _warn_of_blanks(match: re.Match[str], base: int, reporter: Reporter) -> None:
    """Warn of invisible blanks after a backslash, since most compilers do not join such lines."""
    for splice in _SPLICES.finditer(match.group()):
        if len(splice.group()) > len("\\\n"):
            loc = base + match.start() + splice.start()
            message = "blanks follow this backslash: the next line is joined all the same"
            reporter.warning(loc, message, category="backslash")


def tokenize_fragment(text: str, loc: int) -> list[Token]:
    """Return the tokens of a text that has a single position, such as a result of ## or a command-line macro."""
    tokens: list[Token] = []
    flags = 0
    for match in _TOKEN.finditer(text):
        kind = _KINDS.get(match.lastgroup or "")
        if kind is not None:
            tokens.append(Token(kind, match.group(), loc, flags))
            flags = 0
        elif match.lastgroup == "unclosed":
            tokens.append(Token(UNKNOWN, match.group(), loc, flags))
            flags = 0
        else:
            flags = SPACE_BEFORE
    return tokens
