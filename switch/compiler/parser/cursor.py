"""The cursor of the parser: the next token, what may follow it, and which names are types."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.lexer import END, LINE_START, NAME, PUNCTUATION, STRING, UNKNOWN, Token

_KEYWORDS = """
abstract action bit bool const control default else enum error exit extern false header header_union if in inout int
list match_kind out package parser return select string struct switch table this transition true tuple typedef
value_set varbit void
"""
KEYWORDS = frozenset(_KEYWORDS.split())

# Hints for tokens that are not allowed where they are.
_HINTS = {
    "==": "an assignment is written '='",
    "++": "'++' joins the bits of two numbers; to count, write x = x + 1",
    "and": "'and' is written '&&'",
    "or": "'or' is written '||'",
    "elif": "write 'else if'",
    "else": "no 'if' comes directly before this 'else': is a '}' missing?",
    "transition": "'transition' is the last statement of a parser state",
    "state": "states are declared in a parser, one after the other: is a '}' missing?",
    "table": "tables are declared in a control, before its 'apply': is a '}' missing?",
    "action": "actions are declared before 'apply' and not in one another: is a '}' missing?",
    "control": "is a '}' missing before it?",
    "parser": "is a '}' missing before it?",
}

_CLOSERS = frozenset((";", ")", "]"))

MAX_NESTING = 150


class SyntaxFailure(Exception):
    """An error has been reported; the nearest statement or declaration recovers."""


class Cursor:
    """A position in the tokens, with the names declared so far. `token` is the next token, `text` its text."""

    def __init__(self, tokens: Sequence[Token], reporter: Reporter) -> None:
        self.tokens = tokens
        self.reporter = reporter
        self.index = 0
        self.token = tokens[0]
        self.text = self.token.text
        self.last_end = self.token.loc
        self._scopes: list[dict[str, bool]] = [{}]
        self._nesting = 0

    # ---- Moving ----

    def advance(self) -> Token:
        token = self.token
        if token.kind != END:
            self.last_end = token.end
            self.index += 1
            self.token = self.tokens[self.index]
            self.text = self.token.text
        return token

    def reset(self, index: int) -> None:
        """Continue at the token with this index."""
        self.index = index
        self.token = self.tokens[index]
        self.text = self.token.text
        if index:
            self.last_end = self.tokens[index - 1].end

    def peek(self, distance: int = 1) -> Token:
        return self.tokens[min(self.index + distance, len(self.tokens) - 1)]

    def at(self, *texts: str) -> bool:
        return self.text in texts and self.token.kind != STRING

    def accept(self, text: str) -> bool:
        if self.text == text and self.token.kind != STRING:
            self.advance()
            return True
        return False

    def expect(self, text: str, context: str = "", hint: str = "") -> Token:
        if self.text == text:
            return self.advance()
        message = f"expected '{text}'{' ' + context if context else ''}"
        raise self.failure(message, text in _CLOSERS, hint)

    def expect_closing_angle(self) -> None:
        """Read one '>', even where the lexer saw '>>' or '>='."""
        if self.text == ">":
            self.advance()
            return
        if self.text in (">>", ">=", ">>="):
            rest = Token(PUNCTUATION, self.text[1:], self.token.loc + 1)
            self.last_end = self.token.loc + 1
            tokens = self.tokens
            assert isinstance(tokens, list)
            tokens[self.index : self.index + 1] = [
                Token(PUNCTUATION, ">", self.token.loc, self.token.flags),
                rest,
            ]
            self.index += 1
            self.token = rest
            self.text = rest.text
            return
        raise self.failure("expected '>'")

    def name(self, what: str = "a name") -> Token:
        """Read an identifier. Names that are keywords only in some places count, and so does `list`, as in p4c."""
        if self.token.kind == NAME and (self.text not in KEYWORDS or self.text == "list"):
            return self.advance()
        raise self.failure(f"expected {what}")

    def at_name(self) -> bool:
        return self.token.kind == NAME and self.text not in KEYWORDS

    def failure(self, message: str, closes: bool = False, hint: str = "") -> SyntaxFailure:
        """Report "expected ..., but found ...", and return the exception to raise.

        If `closes`, what is missing ends something, and an error at the start of a line is reported at the end of the
        one before.
        """
        loc = self.token.loc
        if closes and self.token.flags & LINE_START and self.index:
            self.reporter.error(self.last_end, message, hint=hint)
            return SyntaxFailure()
        if self.token.kind == UNKNOWN:
            self.reporter.error(
                loc,
                "unterminated string"
                if self.text.startswith('"')
                else f"character {self.text!r} has no meaning in P4",
            )
            return SyntaxFailure()
        found = "the end of the file" if self.token.kind == END else f"'{self.text}'"
        if any(token.kind == STRING and "\n" in token.text for token in (self.token, self.peek(-1))):
            hint = "a string here runs over several lines: is a '\"' missing?"
        hint = hint or (_HINTS.get(self.text, "") if self.token.kind != STRING else "")
        self.reporter.error(loc, f"{message}, but found {found}", self.token.end, hint=hint)
        return SyntaxFailure()

    # ---- Nesting, limited so that no input exhausts the stack ----

    def enter(self) -> None:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise self.reporter.fatal(self.token.loc, f"the program is nested more than {MAX_NESTING} deep")

    def leave(self) -> None:
        self._nesting -= 1

    @property
    def nesting(self) -> int:
        return self._nesting

    @nesting.setter
    def nesting(self, value: int) -> None:
        self._nesting = value

    # ---- Names ----

    def open_scope(self) -> int:
        """Open a scope; return what close_scope needs."""
        self._scopes.append({})
        return len(self._scopes) - 1

    def close_scope(self, mark: int) -> None:
        del self._scopes[mark:]

    def declare(self, name: str, is_type: bool) -> None:
        self._scopes[-1][name] = is_type

    def declare_global_type(self, name: str) -> None:
        self._scopes[0][name] = True

    def is_type_name(self, name: str) -> bool:
        for scope in reversed(self._scopes):
            known = scope.get(name)
            if known is not None:
                return known
        return False

    # ---- Recovery ----

    def skip_to(self, stops: Collection[str]) -> None:
        """Skip tokens up to '}' or one of `stops`, or after the next ';', on this level of braces."""
        depth = 0
        while self.token.kind != END:
            text = self.text
            if depth == 0 and text in stops:
                return
            if text in ("{", "("):
                depth += 1
            elif text in ("}", ")"):
                if depth == 0 and text == "}":
                    return
                depth = max(0, depth - 1)
                if depth == 0 and text == "}":
                    self.advance()
                    return
            elif text == ";" and depth == 0:
                self.advance()
                return
            self.advance()
