"""Macros and their expansion on tokens (C11 6.10.3: arguments, #, ##, rescanning)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.lexer import (
    NAME,
    NO_EXPAND,
    NUMBER,
    PUNCTUATION,
    SPACE_BEFORE,
    STRING,
    Token,
    tokenize_fragment,
)
from gradbed.switch.compiler.source import SourceManager

MAX_TOKENS = 500_000
"""Ten times what the largest program here has; of so many, working them out takes a second or two."""
MAX_DEPTH = 200
PLACE_MACROS = ("__LINE__", "__FILE__")


@dataclass(frozen=True)
class Macro:
    """A macro definition."""

    name: str
    parameters: tuple[str, ...] | None
    """None for an object-like macro. The last one is __VA_ARGS__ for a variadic macro."""
    body: tuple[Token, ...]
    loc: int

    @property
    def variadic(self) -> bool:
        return bool(self.parameters) and self.parameters is not None and self.parameters[-1] == "__VA_ARGS__"

    def same_as(self, other: Macro) -> bool:
        return self.parameters == other.parameters and [t.text for t in self.body] == [t.text for t in other.body]


class _Frame:
    """Tokens that are rescanned, and the macro that is disabled until they are used up."""

    __slots__ = ("index", "macro", "tokens")

    def __init__(self, tokens: Sequence[Token], macro: str | None) -> None:
        self.tokens = tokens
        self.index = 0
        self.macro = macro


class MacroExpander:
    """Expands macros."""

    def __init__(self, sources: SourceManager, reporter: Reporter) -> None:
        self.macros: dict[str, Macro] = {}
        self._sources = sources
        self._reporter = reporter
        self._produced = 0
        self._failed_pastes: set[int] = set()

    def expand(self, tokens: Sequence[Token], depth: int = 0) -> list[Token]:
        """Return the tokens with all macros replaced."""
        macros = self.macros
        if not any(token.kind == NAME and (token.text in macros or token.text in PLACE_MACROS) for token in tokens):
            self._count(len(tokens), tokens)
            return list(tokens)
        if depth > MAX_DEPTH:
            raise self._reporter.fatal(tokens[0].loc, "macro arguments are nested too deeply")
        output: list[Token] = []
        disabled: set[str] = set()
        frames = [_Frame(tokens, None)]
        while frames:
            frame = frames[-1]
            if frame.index >= len(frame.tokens):
                frames.pop()
                if frame.macro is not None:
                    disabled.discard(frame.macro)
                continue
            token = frame.tokens[frame.index]
            frame.index += 1
            if token.kind != NAME or token.text not in macros or token.flags & NO_EXPAND:
                output.append(self._place(token) if token.text in PLACE_MACROS else token)
                continue
            if token.text in disabled:
                output.append(Token(NAME, token.text, token.loc, token.flags | NO_EXPAND))
                continue
            macro = macros[token.text]
            if macro.parameters is None:
                replacement = self._substitute(macro, token, (), depth)
            else:
                arguments = self._arguments(macro, token, frames, disabled)
                if arguments is None:
                    output.append(token)
                    continue
                replacement = self._substitute(macro, token, arguments, depth)
            self._count(len(replacement), [token])
            disabled.add(macro.name)
            frames.append(_Frame(replacement, macro.name))
        self._count(len(output), tokens)
        return output

    def _place(self, token: Token) -> Token:
        """Return the value of __LINE__ or __FILE__ at the outermost use of a macro."""
        place = self._sources.locate(token.loc)
        if token.text == "__LINE__":
            return Token(NUMBER, str(place.line), token.loc, token.flags)
        name = place.file.replace("\\", "\\\\").replace('"', '\\"')
        return Token(STRING, f'"{name}"', token.loc, token.flags)

    def _count(self, produced: int, tokens: Sequence[Token]) -> None:
        self._produced += produced
        if self._produced > MAX_TOKENS:
            raise self._reporter.fatal(
                tokens[0].loc if tokens else 1, f"the program expands to more than {MAX_TOKENS} tokens"
            )

    def _arguments(
        self, macro: Macro, use: Token, frames: list[_Frame], disabled: set[str]
    ) -> list[list[Token]] | None:
        """Read the arguments after the name of a macro; None without a parenthesis, for a plain name."""
        for frame in reversed(frames):
            if frame.index < len(frame.tokens):
                if frame.tokens[frame.index].text != "(":
                    return None
                break
        else:
            return None
        arguments: list[list[Token]] = [[]]
        depth = 0
        assert macro.parameters is not None
        expected = len(macro.parameters)
        while True:
            while frames and frames[-1].index >= len(frames[-1].tokens):
                if len(frames) == 1:
                    raise self._reporter.fatal(use.loc, f"unterminated argument list of macro '{macro.name}'")
                finished = frames.pop()
                if finished.macro is not None:
                    disabled.discard(finished.macro)
            frame = frames[-1]
            token = frame.tokens[frame.index]
            frame.index += 1
            text = token.text
            if token.kind == PUNCTUATION:
                if text == "(":
                    depth += 1
                    if depth == 1:
                        continue
                elif text == ")":
                    depth -= 1
                    if depth == 0:
                        break
                elif text == "," and depth == 1 and not (macro.variadic and len(arguments) == expected):
                    arguments.append([])
                    continue
            elif token.kind == NAME and text in disabled:
                token = Token(NAME, text, token.loc, token.flags | NO_EXPAND)
            arguments[-1].append(token)
        if expected == 0 and arguments == [[]]:
            return []
        if macro.variadic and len(arguments) == expected - 1:
            arguments.append([])
        if len(arguments) != expected:
            raise self._reporter.fatal(
                use.loc, f"macro '{macro.name}' takes {expected} argument(s), but {len(arguments)} were given"
            )
        return arguments

    def _substitute(self, macro: Macro, use: Token, arguments: Sequence[list[Token]], depth: int) -> list[Token]:
        body = macro.body
        base = self._sources.add_expansion(macro.name, use.loc, [token.loc for token in body])
        raw = dict(zip(macro.parameters or (), arguments, strict=True))
        expanded: dict[str, list[Token]] = {}
        result: list[Token] = []
        index = 0
        count = len(body)
        paste_next = False
        while index < count:
            token = body[index]
            text = token.text
            if text == "#" and index + 1 < count and body[index + 1].text in raw:
                piece = [Token(STRING, _stringize(raw[body[index + 1].text]), base + index, token.flags)]
                index += 1
            elif text == "##" and 0 < index < count - 1:
                paste_next = True
                index += 1
                continue
            elif token.kind == NAME and text in raw:
                if paste_next or (index + 1 < count and body[index + 1].text == "##"):
                    piece = raw[text]
                else:
                    if text not in expanded:
                        expanded[text] = self.expand(raw[text], depth + 1)
                    piece = expanded[text]
                if piece and (piece[0].flags ^ token.flags) & SPACE_BEFORE:
                    first = piece[0]
                    flags = (first.flags & ~SPACE_BEFORE) | (token.flags & SPACE_BEFORE)
                    piece = [Token(first.kind, first.text, first.loc, flags), *piece[1:]]
            else:
                piece = [Token(token.kind, text, base + index, token.flags)]
            if paste_next:
                paste_next = False
                self._paste(result, piece, base + index, token.loc)
            else:
                result.extend(piece)
            index += 1
        return result

    def _paste(self, left: list[Token], right: Sequence[Token], loc: int, written: int) -> None:
        """Join the last token of `left` with the first of `right`; an empty side leaves the other as it is.

        Two tokens that do not make one stay two, as with the preprocessor that p4c calls (cpp for assembler), after a
        warning for each position `written` in a macro.
        """
        if not right:
            return
        if not left:
            left.extend(right)
            return
        joined = left[-1].text + right[0].text
        tokens = tokenize_fragment(joined, loc)
        if len(tokens) != 1:
            if written not in self._failed_pastes:
                self._failed_pastes.add(written)
                message = (
                    f"pasting '{left[-1].text}' and '{right[0].text}' does not give a valid token: they stay two"
                )
                self._reporter.warning(loc, message, category="paste")
            left.extend(right)
            return
        tokens[0].flags = left[-1].flags
        left[-1:] = tokens
        left.extend(right[1:])


def _stringize(tokens: Sequence[Token]) -> str:
    pieces: list[str] = []
    for index, token in enumerate(tokens):
        if index and token.flags & SPACE_BEFORE:
            pieces.append(" ")
        text = token.text
        if token.kind == STRING:
            text = text.replace("\\", "\\\\").replace('"', '\\"')
        pieces.append(text)
    return '"' + "".join(pieces) + '"'
