"""Declarations that nothing uses.

A thing counts as used if its name stands anywhere where it can be seen, outside its own declaration: what shadows a
name hides a warning at worst.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler.diagnostics import Reporter


def warn_of_unused(declarations: Sequence[s.Declaration], reporter: Reporter) -> None:
    everywhere = sum(map(_mentions, declarations), Counter[str]())
    for declaration in declarations:
        if _is_library(declaration, reporter):
            continue
        _warn_unless_mentioned(declaration, everywhere, reporter)
        mentions = _mentions(declaration)
        if isinstance(declaration, (s.ControlDeclaration, s.ParserDeclaration)):
            for local in declaration.locals:
                _warn_unless_mentioned(local, mentions, reporter)
            _warn_of_direct_externs(declaration.locals, mentions, reporter)
        for node in s.walk(declaration):
            for statement in _statements(node):
                if isinstance(statement, s.VariableDeclaration):
                    _warn_unless_mentioned(statement, mentions, reporter)


def _warn_of_direct_externs(locals_: Sequence[s.Declaration], mentions: Counter[str], reporter: Reporter) -> None:
    """Direct counters and meters that are used, but that no table has."""
    tables = [local for local in locals_ if isinstance(local, s.TableDeclaration)]
    owned = {name for table in tables for item in table.properties for name in _mentions(item)}
    for node in locals_:
        if (
            isinstance(node, s.Instantiation)
            and isinstance(node.type, s.NamedType)
            and node.type.name in ("direct_counter", "direct_meter")
            and node.name not in owned
            and mentions[node.name]
        ):
            message = f"{node.type.name} '{node.name}' belongs to no table and does nothing"
            reporter.warning(node.name_loc, message, node.name_loc + len(node.name), category="unused")


def _is_library(declaration: s.Declaration, reporter: Reporter) -> bool:
    """What another file offers need not be used."""
    sources = reporter.sources
    return sources.file_at(declaration.loc)[0] is not sources.file_at(sources.main_loc)[0]


def _statements(node: s.Node) -> list[s.Statement]:
    return node.statements if isinstance(node, (s.Block, s.StateDeclaration)) else []


def _mentions(node: s.Node) -> Counter[str]:
    """Return how often each name is used below a node."""
    kinds = (s.Name, s.NamedType, s.ActionRef)
    return Counter(inner.name for inner in s.walk(node) if isinstance(inner, kinds))


def _warn_unless_mentioned(node: s.Declaration, mentions: Counter[str], reporter: Reporter) -> None:
    what = _what(node)
    if (
        what is None
        or mentions[node.name] > _mentions(node)[node.name]
        or reporter.sources.is_expanded(node.name_loc)
    ):
        return
    reporter.warning(node.name_loc, what, node.name_loc + len(node.name), category="unused")


def _what(node: s.Declaration) -> str | None:
    """The warning if this declaration is unused; None for what may well be unused."""
    if isinstance(node, s.TableDeclaration):
        return f"table '{node.name}' is never applied"
    if isinstance(node, s.FunctionDeclaration) and node.body is not None:
        if node.return_type is None:
            return f"action '{node.name}' is in no table and never called"
        return f"function '{node.name}' is never called"
    if isinstance(node, s.ControlDeclaration) and node.body is not None:
        return f"control '{node.name}' is never used"
    if isinstance(node, s.ParserDeclaration) and node.states is not None:
        return f"parser '{node.name}' is never used"
    if isinstance(node, s.Instantiation) and node.name != "main":
        return f"instance '{node.name}' is never used"
    if isinstance(node, s.VariableDeclaration):
        return f"variable '{node.name}' is never used"
    if isinstance(node, s.ValueSetDeclaration):
        return f"value set '{node.name}' is never used"
    return None
