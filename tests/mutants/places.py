"""Where a mutant goes: a function of a file, and a pattern of tokens in it.

A pattern is source text. Spaces, line breaks and comments in it do not count, and `$name` stands for any one
identifier: the same one wherever it occurs in the pattern, and another one than `$other`. So neither a new name nor a
new line breaks a mutant.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

STRINGS_AND_WORDS = r"""|(?:\b[rbfRBF]{1,2})?(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|\$?\w+|\s+|."""
PYTHON_TOKEN = re.compile(r"\#[^\n]*" + STRINGS_AND_WORDS, re.DOTALL)
BRACES_TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/" + STRINGS_AND_WORDS, re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
"""What the preprocessor of C and P4 reads."""
WILD = re.compile(r"\$([A-Za-z_]\w*)")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
NO_HEADS = {"if", "for", "while", "switch", "else", "do", "return", "select", "actions", "key", "entries"}
"""What stands before a brace, and names nothing."""
NAMED = {"struct", "header", "enum", "union", "table", "state", "header_union"}
"""What stands before the name of a block without parentheses."""


class Token(NamedTuple):
    text: str
    start: int
    end: int


class NotOnce(ValueError):
    """A pattern that is not in its function exactly once."""


def replaced(text: str, suffix: str, function: str, pattern: str, by: str) -> str:
    """Return the text of a source file with the one match of the pattern in the function replaced.

    Args:
        text: The file's text.
        suffix: The file's, such as `.py`, which says what its functions look like.
        function: Its qualified name (`Class.method`, `Control.action`). Nothing: the whole file.
        pattern: What is replaced.
        by: What is put there; `$name` is what the pattern's `$name` stands for. Its further lines are indented as the
            line of the match is.

    Raises:
        NotOnce: There is no such function, or the pattern is in it never or more than once.
    """
    ranges = _functions(text, suffix).get(function, []) if function else [(0, len(text))]
    if not ranges:
        raise NotOnce(f"no function {function}")
    tokens = [token for token in _tokens(text, suffix) if any(start <= token.start < end for start, end in ranges)]
    found = list(_matches(tokens, [token.text for token in _tokens(pattern, suffix)]))
    if len(found) != 1:
        raise NotOnce(f"{pattern!r} is {len(found)} times in {function or 'it'}, not once")
    ((start, end), names) = found[0]
    line = text.rfind("\n", 0, start) + 1
    indentation = re.match(r"[ \t]*", text[line:])
    new = WILD.sub(lambda wild: names.get(wild[1], wild[0]), by)
    assert indentation is not None
    new = new.replace("\n", f"\n{indentation[0]}")
    if not new and not text[line:start].strip() and text[end : end + 1] == "\n":
        start, end = line, end + 1  # a whole line
    return text[:start] + new + text[end:]


def function_at(text: str, suffix: str, place: int) -> str:
    """Return the qualified name of the innermost function around a place in a file; nothing: there is none."""
    around = [
        (start - end, name)
        for name, ranges in _functions(text, suffix).items()
        for start, end in ranges
        if start <= place < end
    ]
    return max(around)[1] if around else ""


def _tokens(text: str, suffix: str) -> list[Token]:
    """Without spaces and comments."""
    pattern, comments = (PYTHON_TOKEN, "#") if suffix == ".py" else (BRACES_TOKEN, ("//", "/*"))
    found = (Token(each[0], each.start(), each.end()) for each in pattern.finditer(text))
    return [token for token in found if not token.text.isspace() and not _is_comment(token.text, comments)]


def _is_comment(token: str, beginnings: str | tuple[str, ...]) -> bool:
    return len(token) > 1 and token.startswith(beginnings)


def _matches(tokens: list[Token], pattern: list[str]) -> Iterator[tuple[tuple[int, int], dict[str, str]]]:
    """The place in the text of each match, and what each `$name` is there."""
    for first in range(len(tokens) - len(pattern) + 1 if pattern else 0):
        names: dict[str, str] = {}
        for token, wanted in zip(tokens[first:], pattern, strict=False):
            if wild := WILD.fullmatch(wanted):
                if not IDENTIFIER.fullmatch(token.text) or names.setdefault(wild[1], token.text) != token.text:
                    break
            elif token.text != wanted:
                break
        else:
            if len(set(names.values())) == len(names):
                yield (tokens[first].start, tokens[first + len(pattern) - 1].end), names


def _functions(text: str, suffix: str) -> dict[str, list[tuple[int, int]]]:
    """Qualified names of functions and classes, and where each is; two of one name are possible (in #if)."""
    found: dict[str, list[tuple[int, int]]] = {}
    for name, start, end in _python(text) if suffix == ".py" else _braces(text):
        found.setdefault(name, []).append((start, end))
    return found


def _python(text: str) -> Iterator[tuple[str, int, int]]:
    lines = [0, *(each.end() for each in re.finditer("\n", text)), len(text)]

    def inside(node: ast.AST, prefix: str) -> Iterator[tuple[str, int, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}"
                first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                yield name, lines[first - 1], lines[child.end_lineno or first]
                yield from inside(child, f"{name}.")
            else:
                yield from inside(child, prefix)

    yield from inside(ast.parse(text), "")


def _braces(text: str) -> Iterator[tuple[str, int, int]]:
    """Of C and P4: what stands before a brace names its block."""
    tokens = _tokens(DIRECTIVE.sub(lambda found: " " * len(found[0]), text), ".c")
    head: list[Token] = []
    open_blocks: list[tuple[str, int]] = []
    depth_of_parentheses = 0
    for token in tokens:
        if token.text == "{" and depth_of_parentheses == 0:
            outer = [name for name, _ in open_blocks if name]
            own = _name([each.text for each in head])
            open_blocks.append((".".join([*outer[-1:], own]) if own else "", head[0].start if head else token.start))
            head = []
        elif token.text == "}" and depth_of_parentheses == 0 and open_blocks:
            name, start = open_blocks.pop()
            if name:
                yield name, start, token.end
            head = []
        elif token.text == ";" and depth_of_parentheses == 0:
            head = []
        else:
            depth_of_parentheses += (token.text in "([") - (token.text in ")]")
            head.append(token)


def _name(head: list[str]) -> str:
    """What a block's head names; nothing: only a part of another block."""
    if not head or head[0] in NO_HEADS:
        return ""
    if head[0] == "apply":
        return "apply"
    if "(" in head:
        place = head.index("(")
        return head[place - 1] if place and head[place - 1] not in NO_HEADS else ""
    if "=" in head:
        names = [word for word in head[: head.index("=")] if IDENTIFIER.fullmatch(word)]
        return names[-1] if names else ""
    named = [place for place, word in enumerate(head[:-1]) if word in NAMED]
    return head[named[0] + 1] if named else ""
