"""The externs of gradbed's own switch: their declarations in P4 are compared with their descriptions in Python."""

from __future__ import annotations

from collections.abc import Sequence

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.checker.program import CheckedProgram
from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.symbols import ExternClass, ExternInstanceType, ParameterType, Signature
from gradbed.switch.state.externs import EXTERNS, ExternKind

_DECLARATIONS = "gradbed.p4"
_DESCRIPTION = "switch/state/externs.py"
_DIRECTION = {"key": "in", "in": "in", "out": "out"}
"""The direction that P4 declares for a parameter of each role."""


def check_extern_kinds(checked: CheckedProgram, reporter: Reporter) -> None:
    """Report each extern of gradbed.p4 that no ExternKind describes, and each declaration that one differs from."""
    sources = reporter.sources
    for node in checked.program.declarations:
        if isinstance(node, s.ExternDeclaration) and node.name not in EXTERNS and sources.is_standard(node.loc):
            file = sources.file_at(node.loc)[0].path.name
            if file == _DECLARATIONS:
                message = f"'{node.name}' is declared in {file}, and not listed in EXTERNS ({_DESCRIPTION})"
                reporter.error(node.name_loc, message)
    for kind in EXTERNS.values():
        symbol = checked.globals.names.get(kind.name)
        if symbol is not None and isinstance(symbol.type, ExternInstanceType):
            _compare(symbol.type.klass, kind, reporter)


def _compare(declared: ExternClass, kind: ExternKind, reporter: Reporter) -> None:
    file = reporter.sources.file_at(declared.node.loc)[0].path.name

    def differ(signature: Signature | None, name: str, described: str) -> None:
        loc, shown = declared.node.name_loc, f"no {name}"
        if signature is not None:
            loc, shown = signature.loc, f"{name}({', '.join(map(_written, signature.parameters))})"
        reporter.error(loc, f"{file} declares {shown}, {_DESCRIPTION} has {described}: make them agree")

    for constructor in declared.constructors:
        if [each.name for each in constructor.parameters] != list(kind.attributes):
            differ(constructor, kind.name, _listed(list(kind.attributes)))
    for name, signatures in declared.methods.items():
        for signature in signatures:
            method = f"{kind.name}.{name}"
            roles = kind.methods.get(name)
            if roles is None:
                differ(signature, method, "no such method")
            elif [each.direction for each in signature.parameters] != [_DIRECTION[role] for role in roles]:
                differ(signature, method, _listed(roles))
            elif signature.return_type is not t.VOID:
                message = f"{method} returns {signature.return_type}: a method of {file} returns void, and gives its"
                reporter.error(signature.loc, f"{message} result by an out parameter")
    for name in kind.methods.keys() - declared.methods.keys():
        differ(None, f"{kind.name}.{name}", "one")


def _written(parameter: ParameterType) -> str:
    return f"{parameter.direction} {parameter.name}".strip()


def _listed(names: Sequence[str]) -> str:
    return f"({', '.join(names)})"
