"""What symbols stand for while code is inlined, and the code being written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from switch.compiler import syntax as s
from switch.compiler.diagnostics import Reporter
from switch.compiler.lower import ir
from switch.compiler.lower.places import Place, Value
from switch.compiler.symbols import Scope, Symbol

if TYPE_CHECKING:
    from switch.compiler.lower.calls import Calls
    from switch.compiler.lower.expressions import Expressions
    from switch.compiler.lower.parsers import Parsers
    from switch.compiler.lower.state import ProgramState
    from switch.compiler.lower.statements import Statements

MAX_STATEMENTS = 500_000
MAX_INLINING = 100


class Frame:
    """Values of the symbols of one inlined body.

    `prefix`: the control plane's name of the instance that it belongs to. `owns`: for the frame of a parser or
    control, the scope that its actions are declared in.
    """

    __slots__ = ("owns", "parent", "prefix", "values")

    def __init__(self, parent: Frame | None, prefix: str, owns: Scope | None = None) -> None:
        self.parent = parent
        self.prefix = prefix
        self.owns = owns
        self.values: dict[Symbol, Value] = {}

    def find(self, symbol: Symbol) -> Value | None:
        frame: Frame | None = self
        while frame is not None:
            value = frame.values.get(symbol)
            if value is not None:
                return value
            frame = frame.parent
        return None


@dataclass
class CopyOut:
    """What is copied back when an inlined call ends, in whatever way."""

    pairs: list[tuple[Place, Value]] = field(default_factory=list)


@dataclass
class Loop:
    leave: ir.Label
    repeat: ir.Label


class Code:
    """Statements being written for one parser, control or action.

    `kind`: parser, control, action, checksum or deparser. `copy_outs`: of the calls that enclose the present
    place, outermost first. `exit_flag`: in an action, what `exit` sets instead of ending the pipeline.
    """

    calls: Calls
    expressions: Expressions
    parsers: Parsers
    statements_lowering: Statements

    def __init__(self, program: ProgramState, kind: str) -> None:
        self.program = program
        self.kind = kind
        self.statements: list[ir.Stmt] = []
        self.copy_outs: list[CopyOut] = []
        self.returns: list[tuple[ir.Label, Place | None]] = []
        self.loops: list[Loop] = []
        self.exit_flag: ir.FieldRef | None = None
        # The end of an action, behind the copying out that a return still does and an exit has done itself.
        self.finished: ir.Label | None = None
        self.depth = 0
        self.in_action = kind == "action"

    @property
    def reporter(self) -> Reporter:
        return self.program.reporter

    def emit(self, statement: ir.Stmt) -> None:
        self.program.count_statement(statement.loc)
        self.statements.append(statement)

    @contextmanager
    def branch(self) -> Iterator[list[ir.Stmt]]:
        """Collect the statements that are written inside the `with`."""
        outer = self.statements
        inner: list[ir.Stmt] = []
        self.statements = inner
        try:
            yield inner
        finally:
            self.statements = outer

    def error(self, node: s.Node, message: str) -> None:
        self.reporter.error(node.loc, message, node.end)
