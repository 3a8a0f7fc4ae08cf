"""State of lowering: the program, the code that is being written, and the values of symbols.

Expressions and statements are lowered by `value_of` and `lower`, which choose a rule by the type of the node; the
rules are in expressions.py, calls.py and statements.py. Each takes the code to which it writes last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import singledispatch

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.checker import CheckedProgram
from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.ir import LoweredCalculation, LoweredDigest, LoweredValueSet
from gradbed.switch.compiler.ir import operations as op
from gradbed.switch.compiler.ir.storage import NameSet, Storage
from gradbed.switch.compiler.ir.values import ExternObject, Instance, LValue, NoValue, StructValue, TextValue, Value
from gradbed.switch.compiler.symbols import Scope, Symbol

MAX_STATEMENTS = 500_000
MAX_INLINING = 100


class Frame:
    """Values of the symbols of one inlined body.

    `prefix` is the name of its instance in the control plane. `owns`, in the frame of a parser or control, is the
    scope
    that its actions are declared in.
    """

    __slots__ = ("owns", "parent", "prefix", "values")

    def __init__(self, parent: Frame | None, prefix: str, owns: Scope | None = None) -> None:
        self.parent = parent
        self.prefix = prefix
        self.owns = owns
        self.values: dict[Symbol, Value] = {}

    def outwards(self) -> Iterator[Frame]:
        """Yield this frame and those around it."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.parent

    def find(self, symbol: Symbol) -> Value | None:
        """Return the value of a symbol in the innermost frame that has one."""
        frame: Frame | None = self
        while frame is not None:
            value = frame.values.get(symbol)
            if value is not None:
                return value
            frame = frame.parent
        return None


@dataclass(eq=False)
class InstanceState:
    """The state of an instance that all its applications share."""

    instance: Instance
    frame: Frame
    applied_often: bool
    owned: dict[Symbol, LValue] = field(default_factory=dict)
    """Variables of its parameters, if it is applied in several places."""


class ProgramState:
    """The state of a program that all its code shares.

    `actions` are in the order of their numbers in BMv2 JSON. `called_actions` are by name, with the body of the first
    call.
    """

    def __init__(self, checked: CheckedProgram, reporter: Reporter) -> None:
        self.checked = checked
        self.reporter = reporter
        self.storage = Storage()
        self.globals = Frame(None, "", checked.globals)
        self.instances: dict[Instance, InstanceState] = {}
        self.anonymous_instances: dict[tuple[Frame, s.Node], Instance] = {}
        self.instance_names = NameSet()
        self.often_applied: set[int] = set()
        self.tables: dict[tuple[Frame, s.TableDeclaration], ir.LoweredTable] = {}
        self.actions: dict[tuple[Frame, s.Node, ir.FieldRef | None], ir.LoweredAction] = {}
        self.called_actions: dict[str, ir.LoweredAction] = {}
        self.objects: list[ExternObject] = []
        self.calculations: list[LoweredCalculation] = []
        self.digests: list[LoweredDigest] = []
        self.value_sets: dict[tuple[Symbol, str], LoweredValueSet] = {}
        self.direct_tables: dict[str, ir.LoweredTable] = {}
        self.direct_meter_results: dict[str, ir.FieldRef] = {}
        self.field_lists = FieldLists()
        self.state_names = NameSet()
        self.metadata: StructValue | None = None
        self._statement_count = 0

    def count_statement(self, loc: int) -> None:
        self._statement_count += 1
        if self._statement_count > MAX_STATEMENTS:
            raise self.reporter.fatal(loc, f"the program has more than {MAX_STATEMENTS} statements when inlined")

    def control_name(self, annotations: list[s.Annotation], prefix: str, name: str) -> str:
        """Return the name in the control plane: the path, or the text of @name (P4_16 1.2.5, section 18.3)."""
        annotation = s.find_annotation(annotations, "name")
        given = annotation.string() if annotation is not None else None
        if given is not None:
            if given.startswith("."):
                return given[1:]
            name = given
        return f"{prefix}.{name}" if prefix else name

    def add_calculation(self, algorithm: str, inputs: list[ir.Expr], with_payload: bool, loc: int, end: int) -> str:
        name = f"calc_{len(self.calculations)}" if self.calculations else "calc"
        self.calculations.append(LoweredCalculation(name, algorithm, inputs, with_payload, loc, end))
        return name

    def add_digest(self, type_: t.Type, fields: list[ir.FieldRef], node: s.Node) -> int:
        number = len(self.digests) + 1
        name = type_.name if isinstance(type_, t.Struct) else f"digest_{number - 1}"
        self.digests.append(LoweredDigest(number, name, type_, fields, node.loc, node.end))
        return number


@dataclass
class CopyOut:
    """Values that are copied out when an inlined call ends, however it ends."""

    pairs: list[tuple[LValue, Value]] = field(default_factory=list)


@dataclass
class Loop:
    """The labels of a loop."""

    leave: ir.Label
    """Left by break."""
    repeat: ir.Label
    """Left by continue, to go on with the next iteration."""


class Code:
    """The statements that are being written for one parser, control or action.

    `kind` is parser, control, action, checksum, deparser, or constructor (values only, no statements). `copy_outs`
    has
    those of the enclosing calls, outermost first. `exit_flag`, in an action, is the variable that `exit` sets instead
    of
    ending the pipeline.
    """

    def __init__(self, program: ProgramState, kind: str) -> None:
        self.program = program
        self.kind = kind
        self.statements: list[ir.LoweredStatement] = []
        self.copy_outs: list[CopyOut] = []
        self.returns: list[tuple[ir.Label, LValue | None]] = []
        self.loops: list[Loop] = []
        self.exit_flag: ir.FieldRef | None = None
        # The end of an action, after the copying out that a return still does and an exit has done itself.
        self.finished: ir.Label | None = None
        self.depth = 0
        self.in_action = kind == "action"

    @property
    def reporter(self) -> Reporter:
        return self.program.reporter

    @property
    def storage(self) -> Storage:
        return self.program.storage

    def emit(self, statement: ir.LoweredStatement) -> None:
        self.program.count_statement(statement.loc)
        self.statements.append(statement)

    def assign(self, target: ir.FieldRef, value: ir.Expr, node: s.Node) -> None:
        self.emit(ir.LoweredAssign(node.loc, node.end, target, value))

    def primitive(self, node: s.Node, name: str, *parameters: ir.Parameter) -> None:
        self.emit(ir.LoweredPrimitive(node.loc, node.end, name, parameters))

    def leave(self, label: ir.Label, node: s.Node) -> None:
        label.used = True
        self.emit(ir.Leave(node.loc, node.end, label))

    @contextmanager
    def branch(self) -> Iterator[list[ir.LoweredStatement]]:
        """Collect the statements that are written inside the `with`."""
        outer = self.statements
        inner: list[ir.LoweredStatement] = []
        self.statements = inner
        try:
            yield inner
        finally:
            self.statements = outer

    @contextmanager
    def inlined(self, node: s.Node) -> Iterator[None]:
        """Count the depth of nested calls, which is limited."""
        if self.depth >= MAX_INLINING:
            raise self.reporter.fatal(node.loc, f"calls are nested more than {MAX_INLINING} deep")
        self.depth += 1
        yield
        self.depth -= 1

    def error(self, node: s.Node, message: str) -> None:
        self.reporter.error(node.loc, message, node.end)


# ---- Rules by kind of node ----


def value_of(node: s.Expression, frame: Frame, code: Code) -> Value:
    """Return the value of an expression, or an l-value that is read only when the value is used."""
    known = node.value
    if known is None:
        return value_by_type(node, frame, code)
    if isinstance(known, str):
        return TextValue(known)
    assert node.type is not None
    return op.constant(known, node.type)


@singledispatch
def value_by_type(node: s.Expression, frame: Frame, code: Code) -> Value:
    """Return the value of an expression that is not known at compile time."""
    return NoValue()


@singledispatch
def lower(node: s.Statement, frame: Frame, code: Code) -> None:
    """Write the code of a statement; a kind without a rule has none."""


def lower_block(block: s.Block, frame: Frame, code: Code) -> None:
    for statement in block.statements:
        lower(statement, frame, code)


# ---- Field lists ----


_LITERAL = re.compile(r"(?:\d+w)?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|\d[\d_]*)")


class FieldLists:
    """The field lists of a program: the fields that a copy of a packet keeps, by their numbers in BMv2 JSON.

    A list has the fields and structs annotated @field_list(N, ...), or fields that are given one by one.
    """

    def __init__(self) -> None:
        self._annotated: dict[int, int] = {}
        self._others: dict[int, list[ir.FieldRef]] = {}

    def annotated(self, index: int) -> int:
        """Return the number of the list of fields annotated @field_list(index)."""
        return self._annotated.setdefault(index, self._next())

    def add(self, fields: list[ir.FieldRef]) -> int:
        """Add a list of these fields and return its number."""
        number = self._next()
        self._others[number] = fields
        return number

    def empty(self) -> int:
        """Return the number of a list without fields, since BMv2 looks up every list that an action names."""
        known = next((number for number, fields in self._others.items() if not fields), None)
        return self.add([]) if known is None else known

    def _next(self) -> int:
        return len(self._annotated) + len(self._others) + 1

    def all(self, metadata: StructValue | None, scope: Scope) -> list[tuple[int, str, list[ir.FieldRef]]]:
        """Return number, name and fields of all lists.

        Annotated fields are in `metadata`, and names in annotations in `scope`.
        """
        annotated = [
            (number, f"field_list{index}", list(_fields(metadata, index, scope, False)) if metadata else [])
            for index, number in self._annotated.items()
        ]
        others = [(number, f"kept_fields{number}", fields) for number, fields in self._others.items()]
        return sorted([*annotated, *others], key=lambda item: item[0])


def _fields(value: StructValue, index: int, scope: Scope, listed: bool) -> Iterator[ir.FieldRef]:
    type_ = value.type
    for name, part in value.parts.items():
        annotations = type_.annotations.get(name, []) if isinstance(type_, t.Struct) else []
        here = listed or any(index in _indices(annotation, scope) for annotation in annotations)
        if isinstance(part, StructValue):
            yield from _fields(part, index, scope, here)
        elif here and isinstance(part, ir.FieldRef):
            yield part


def _indices(annotation: s.Annotation, scope: Scope) -> set[int]:
    """Return the numbers in @field_list: literals, constants and members of serializable enums."""
    if annotation.name != "field_list" or not annotation.body:
        return set()
    parts = "".join(annotation.body).split(",")
    return {number for part in parts if (number := _number(part, scope)) is not None}


def _number(text: str, scope: Scope) -> int | None:
    literal = _LITERAL.fullmatch(text)
    if literal:
        digits = literal[1].replace("_", "")
        return int(digits, 10 if digits.isdecimal() else 0)
    name, _, member = text.partition(".")
    symbol = scope.lookup(name)
    if symbol is None:
        return None
    if member and isinstance(symbol.type, t.Enum):
        return symbol.type.values.get(member)
    return symbol.value if isinstance(symbol.value, int) else None
