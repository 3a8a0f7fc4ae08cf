"""The preprocessor: #include, #define, #if and the other directives (P4_16 1.2.5, section 6.2)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.switch.compiler.conditions import ConditionError, evaluate_condition
from gradbed.switch.compiler.diagnostics import FatalError, Reporter, suggestion
from gradbed.switch.compiler.lexer import (
    END,
    LINE_START,
    NAME,
    NUMBER,
    SPACE_BEFORE,
    STRING,
    UNKNOWN,
    Token,
    tokenize,
    tokenize_fragment,
)
from gradbed.switch.compiler.macros import Macro, MacroExpander
from gradbed.switch.compiler.source import P4INCLUDE, SourceFile, SourceManager

MAX_INCLUDE_DEPTH = 100
_OTHER_ARCHITECTURES = (
    "dpdk/pna.p4",
    "ebpf_model.p4",
    "pna.p4",
    "psa.p4",
    "t2na.p4",
    "tna.p4",
    "ubpf_model.p4",
    "xdp_model.p4",
)
# What a line begins with that is not part of the program: #### is two of the second kind.
_HASHES = ("#", "##")
_DIRECTIVES = ("define", "elif", "else", "endif", "error", "if", "ifdef", "ifndef", "include", "line", "undef")


_CLOSING_QUOTE = re.compile(r'(?:[^"\\]|\\.)*"')


@dataclass
class _Conditional:
    """An open #if."""

    loc: int
    outer_active: bool
    active: bool
    """Whether the present part counts."""
    taken: bool
    """Whether any part has counted so far."""
    in_else: bool = False


class Preprocessor:
    """Turns a file into the tokens of the whole program."""

    def __init__(
        self,
        sources: SourceManager,
        reporter: Reporter,
        include_dirs: Sequence[Path] = (),
        defines: Mapping[str, str] | None = None,
    ) -> None:
        self._sources = sources
        self._reporter = reporter
        self._include_dirs = [*include_dirs, P4INCLUDE]
        self._expander = MacroExpander(sources, reporter)
        self._output: list[Token] = []
        self._pending: list[Token] = []
        self._once: set[str] = set()
        self._root = Path()
        self._last_unknown = (0, 0)
        # p4c's compiler for BMv2 defines the second one.
        self._define_from_outside("__p4c__", "1")
        self._define_from_outside("__TARGET_BMV2__", "1")
        for name, value in (defines or {}).items():
            self._define_from_outside(name, value)

    def run(self, path: Path) -> list[Token]:
        """Return the tokens of the program, macros expanded, with one END token.

        Raises:
            OSError: `path` itself cannot be read.
        """
        self._root = path.parent
        source = self._sources.read(path)
        self._sources.main_loc = source.base
        self._file(source, depth=0)
        self._flush()
        self._output.append(Token(END, "", source.base + len(source.text), LINE_START))
        return self._output

    def _define_from_outside(self, name: str, value: str) -> None:
        source = self._sources.add(f"#define {name} {value}", "<command line>", "<command line>", Path())
        parts = tokenize_fragment(name, source.base + 8)
        if len(parts) != 1 or parts[0].kind != NAME:
            self._reporter.error(source.base + 8, f"'{name}' is not a name that can be defined")
            return
        body = tokenize_fragment(value, source.base + 9 + len(name))
        self._expander.macros[name] = Macro(name, None, tuple(body), source.base)

    def _file(self, source: SourceFile, depth: int) -> None:
        tokens = tokenize(source, self._reporter)
        conditionals: list[_Conditional] = []
        index = 0
        count = len(tokens)
        while index < count:
            token = tokens[index]
            if token.text in _HASHES and token.flags & LINE_START:
                end = index + 1
                while end < count and not tokens[end].flags & LINE_START:
                    end += 1
                self._directive(source, token, tokens[index + 1 : end], conditionals, depth)
                index = end
                continue
            if conditionals and not conditionals[-1].active:
                index += 1
                while index < count and not (tokens[index].text in _HASHES and tokens[index].flags & LINE_START):
                    index += 1
                continue
            if token.kind == UNKNOWN and token.text.startswith('"'):
                tokens = self._long_string(source, tokens, index, conditionals, depth)
                index, count = 0, len(tokens)
                continue
            self._pending.append(token)
            index += 1
        for conditional in conditionals:
            self._reporter.error(conditional.loc, "this condition has no #endif")

    def _long_string(
        self, source: SourceFile, tokens: list[Token], index: int, conditionals: list[_Conditional], depth: int
    ) -> list[Token]:
        """Read a string that spans several lines; return the tokens after it.

        The result is that of cpp and p4c together: directives and macros count in all lines but the first, and each
        line that is left out leaves an empty line.
        """
        opening = tokens[index]
        text, index = opening.text, index + 1
        line = source.line_index(opening.loc - source.base)
        for number in range(line + 1, len(source.line_starts)):
            start = source.line_starts[number]
            here = index
            while index < len(tokens) and tokens[index].loc < source.base + start + len(source.line_text(number)):
                index += 1
            words = tokens[here:index]
            if words and words[0].text == "#" and words[0].flags & LINE_START:
                self._directive(source, words[0], words[1:], conditionals, depth)
                text += "\n"
            elif conditionals and not conditionals[-1].active:
                text += "\n"
            else:
                quote = _CLOSING_QUOTE.match(source.line_text(number))
                if quote is not None:
                    self._pending.append(Token(STRING, f"{text}\n{quote[0]}", opening.loc, opening.flags))
                    behind, end = start + quote.end(), start + len(source.line_text(number))
                    if "/*" in source.text[behind:end]:
                        return tokenize(source, self._reporter, behind)
                    return [*tokenize(source, self._reporter, behind, end), *tokens[index:]]
                text += f"\n{self._expanded_line(source.line_text(number), words)}"
        raise self._reporter.fatal(opening.loc, "unterminated string")

    def _expanded_line(self, text: str, words: list[Token]) -> str:
        if not any(word.kind == NAME and word.text in self._expander.macros for word in words):
            return text
        return text[: len(text) - len(text.lstrip())] + _spell(self._expander.expand(words))

    def _flush(self) -> None:
        """Expand what has been read since the last change of the macros."""
        if self._pending:
            self._output.extend(self._expander.expand(self._pending))
            self._pending.clear()

    def _directive(
        self,
        source: SourceFile,
        hash_: Token,
        line: list[Token],
        conditionals: list[_Conditional],
        depth: int,
    ) -> None:
        active = not conditionals or conditionals[-1].active
        if hash_.text == "##" and active:
            self._unknown(source, hash_, "#")
        if not line or hash_.text == "##":
            return
        name, rest = line[0].text, line[1:]
        if name in ("if", "ifdef", "ifndef"):
            value = active and self._condition(name, line[0], rest)
            conditionals.append(_Conditional(hash_.loc, active, value, value))
            return
        if name in ("elif", "else", "endif"):
            self._continue_conditional(name, line[0], rest, conditionals)
            return
        if not active:
            return
        if name == "include":
            self._include(source, line[0], rest, depth)
        elif name == "define":
            self._flush()
            self._define(line[0], rest)
        elif name == "undef":
            self._flush()
            if self._single_name(line[0], rest):
                self._expander.macros.pop(rest[0].text, None)
        elif name == "error":
            raise self._reporter.fatal(hash_.loc, f"#error {_spell(rest)}")
        elif name == "warning":
            self._reporter.warning(hash_.loc, f"#warning {_spell(rest)}", category="user")
        elif name == "pragma":
            if [token.text for token in rest] == ["once"]:
                self._once.add(source.name)
        elif name == "line" or (line[0].kind == NUMBER and (not rest or rest[0].kind == STRING)):
            self._line(source, line[0], rest if name == "line" else line)
        else:
            self._unknown(source, hash_, name)

    def _unknown(self, source: SourceFile, hash_: Token, name: str) -> None:
        """Warn of unknown directives, which p4c skips: once for a block, and for each that may be misspelt."""
        line = source.line_index(hash_.loc - source.base)
        likely = suggestion(name, _DIRECTIVES)
        if likely or self._last_unknown != (source.base, line - 1):
            message = f"there is no directive '#{name}': the line is left out{likely}"
            self._reporter.warning(hash_.loc, message, category="directive")
        self._last_unknown = (source.base, line)

    def _condition(self, name: str, at: Token, rest: Sequence[Token]) -> bool:
        if name != "if":
            if not self._single_name(at, rest):
                return False
            return (rest[0].text in self._expander.macros) == (name == "ifdef")
        try:
            tokens = self._expander.expand(self._replace_defined(rest))
            return evaluate_condition(tokens, at.loc) != 0
        except ConditionError as error:
            self._reporter.error(error.loc, str(error))
            return False

    def _replace_defined(self, tokens: Sequence[Token]) -> list[Token]:
        result: list[Token] = []
        index = 0
        while index < len(tokens):
            token = tokens[index]
            index += 1
            if token.text != "defined":
                result.append(token)
                continue
            bracketed = index < len(tokens) and tokens[index].text == "("
            index += bracketed
            if index >= len(tokens) or tokens[index].kind != NAME:
                raise ConditionError(token.loc, "'defined' needs the name of a macro")
            known = tokens[index].text in self._expander.macros
            index += 1
            if bracketed:
                if index >= len(tokens) or tokens[index].text != ")":
                    raise ConditionError(token.loc, "expected ')' after 'defined(name'")
                index += 1
            result.append(Token(NUMBER, "1" if known else "0", token.loc, token.flags))
        return result

    def _continue_conditional(
        self, name: str, at: Token, rest: Sequence[Token], conditionals: list[_Conditional]
    ) -> None:
        if not conditionals:
            self._reporter.error(at.loc, f"#{name} without #if")
            return
        current = conditionals[-1]
        if name == "endif":
            conditionals.pop()
            return
        if current.in_else:
            self._reporter.error(at.loc, f"#{name} after #else")
            return
        if name == "else":
            current.in_else = True
            current.active = current.outer_active and not current.taken
        else:
            wanted = current.outer_active and not current.taken
            current.active = wanted and self._condition("if", at, rest)
        current.taken = current.taken or current.active

    def _single_name(self, at: Token, rest: Sequence[Token]) -> bool:
        if len(rest) != 1 or rest[0].kind != NAME:
            self._reporter.error(rest[0].loc if rest else at.loc, f"#{at.text} needs one name")
            return False
        return True

    def _define(self, at: Token, rest: Sequence[Token]) -> None:
        if not rest or rest[0].kind != NAME or rest[0].text == "defined":
            self._reporter.error(rest[0].loc if rest else at.loc, "#define needs the name of a macro")
            return
        name = rest[0]
        parameters: tuple[str, ...] | None = None
        body = rest[1:]
        if body and body[0].text == "(" and not body[0].flags & SPACE_BEFORE:
            closing = next((i for i, token in enumerate(body) if token.text == ")"), None)
            if closing is None:
                self._reporter.error(body[0].loc, "expected ')' after the parameters of the macro")
                return
            names = [token.text for token in body[1:closing]]
            if names and names[-1] == "...":
                names[-1] = "__VA_ARGS__"
            parameters = tuple(names[::2])
            separators_right = all(text == "," for text in names[1::2]) and len(names) % 2 == bool(names)
            if not separators_right or len(set(parameters)) != len(parameters):
                self._reporter.error(body[0].loc, "the parameters of a macro are different names with commas")
                return
            body = body[closing + 1 :]
        if body and (body[0].text == "##" or body[-1].text == "##"):
            self._reporter.error(name.loc, "'##' is not allowed at either end of a macro")
            return
        macro = Macro(name.text, parameters, tuple(body), name.loc)
        previous = self._expander.macros.get(name.text)
        if previous is not None and not previous.same_as(macro):
            message = f"macro '{name.text}' is defined differently a second time"
            self._reporter.warning(name.loc, message, category="redefined")
        self._expander.macros[name.text] = macro

    def _include(self, source: SourceFile, at: Token, rest: list[Token], depth: int) -> None:
        if rest and rest[0].kind == NAME:
            rest = self._expander.expand(rest)
        if len(rest) == 1 and rest[0].kind == STRING:
            name, quoted = rest[0].text[1:-1], True
        elif len(rest) > 2 and rest[0].text == "<" and rest[-1].text == ">":
            name, quoted = _spell(rest[1:-1]), False
        else:
            self._reporter.error(at.loc, '#include needs "file" or <file>')
            return
        if depth >= MAX_INCLUDE_DEPTH:
            raise self._reporter.fatal(rest[0].loc, f"files include each other more than {depth} deep")
        directories = [source.directory, *self._include_dirs] if quoted else self._include_dirs
        for directory in directories:
            path = directory / name
            try:
                if not path.is_file():
                    continue
                shown = str(path) if directory is not P4INCLUDE else name
                if shown in self._once:
                    return
                included = self._sources.read(path, shown, self._short_name(path, directory, name))
            except (OSError, ValueError) as error:
                raise self._reporter.fatal(rest[0].loc, f"cannot read '{name}': {error}") from None
            self._file(included, depth + 1)
            return
        raise self._reporter.fatal(
            rest[0].loc,
            f"cannot find '{name}' here or in the include directories (option -I)"
            + (
                "; this compiler is for v1model.p4"
                if name in _OTHER_ARCHITECTURES
                else suggestion(Path(name).stem, ("core", "v1model"))
            ),
        )

    def _short_name(self, path: Path, directory: Path, name: str) -> str:
        """Return the name of a file in generated files, which does not depend on where the program is."""
        if directory in self._include_dirs:
            return name
        return os.path.relpath(path, self._root)

    def _line(self, source: SourceFile, at: Token, rest: list[Token]) -> None:
        rest = self._expander.expand(rest)
        good = rest and rest[0].text.isdecimal() and len(rest[0].text) < 10
        if not good or (len(rest) > 1 and rest[1].kind != STRING):
            self._reporter.error(at.loc, '#line needs a line number and perhaps "file"')
            return
        self._flush()
        offset = self._sources.written_at(at.loc) - source.base
        index = source.line_index(offset)
        start = source.line_starts[index + 1] if index + 1 < len(source.line_starts) else len(source.text)
        name = rest[1].text[1:-1] if len(rest) > 1 else None
        if name is None and source.presumed:
            name = source.presumed[-1][2]
        source.presumed.append((start, int(rest[0].text) - (index + 2), name))


def _spell(tokens: Sequence[Token]) -> str:
    return "".join(
        (" " if index and token.flags & SPACE_BEFORE else "") + token.text for index, token in enumerate(tokens)
    )


# ---- Files of a program ----


def input_files(
    path: Path, *, include_dirs: Sequence[Path] = (), defines: Mapping[str, str] | None = None
) -> Sequence[SourceFile]:
    """Return the macros, the file of the program and every file that it includes with them.

    Only the preprocessor runs; its errors are left to a compilation.

    Raises:
        UserError: `path` cannot be read.
    """
    sources = SourceManager()
    try:
        Preprocessor(sources, Reporter(sources), include_dirs, defines).run(path)
    except FatalError:
        pass
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    return sources.files
