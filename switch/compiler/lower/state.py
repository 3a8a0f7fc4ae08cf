"""What all code of one program shares while it is lowered."""

from __future__ import annotations

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.checker import CheckedProgram
from switch.compiler.diagnostics import Reporter
from switch.compiler.lower import ir
from switch.compiler.lower.actions import Actions
from switch.compiler.lower.assignments import Assignments
from switch.compiler.lower.calls import Calls
from switch.compiler.lower.expressions import Expressions
from switch.compiler.lower.externs import Externs
from switch.compiler.lower.field_lists import listed_fields
from switch.compiler.lower.instances import Instances
from switch.compiler.lower.parsers import Parsers
from switch.compiler.lower.places import ExternObject, StructValue
from switch.compiler.lower.result import Calculation, Digest, ValueSet
from switch.compiler.lower.scope import MAX_STATEMENTS, Code, Frame
from switch.compiler.lower.statements import Statements
from switch.compiler.lower.storage import Storage
from switch.compiler.lower.tables import MAX_SIZE, LoweredTable, Tables
from switch.compiler.names import NameSet
from switch.compiler.symbols import Symbol


class ProgramState:
    """Shared by all code that is being lowered."""

    def __init__(self, checked: CheckedProgram, reporter: Reporter) -> None:
        self.checked = checked
        self.reporter = reporter
        self.storage = Storage()
        self.instances = Instances(self)
        self.actions = Actions(self)
        self.globals = Frame(None, "", checked.globals)
        self.tables: dict[tuple[Frame, s.TableDeclaration], LoweredTable] = {}
        self.objects: list[ExternObject] = []
        self.calculations: list[Calculation] = []
        self.digests: list[Digest] = []
        self.value_sets: dict[tuple[Symbol, str], ValueSet] = {}
        self.direct_tables: dict[str, LoweredTable] = {}
        self.direct_meter_results: dict[str, ir.FieldRef] = {}
        self.state_names = NameSet()
        self.metadata: StructValue | None = None
        self._field_lists: dict[int, int] = {}
        self._other_field_lists: dict[int, list[ir.FieldRef]] = {}
        self._statement_count = 0

    def count_statement(self, loc: int) -> None:
        self._statement_count += 1
        if self._statement_count > MAX_STATEMENTS:
            raise self.reporter.fatal(loc, f"the program has more than {MAX_STATEMENTS} statements when inlined")

    # --- names ---

    def control_name(self, annotations: list[s.Annotation], prefix: str, name: str) -> str:
        """The name that the control plane knows something by: its path, or what @name says."""
        annotation = s.find_annotation(annotations, "name")
        given = annotation.string() if annotation is not None else None
        if given is not None:
            if given.startswith("."):
                return given[1:]
            name = given
        return f"{prefix}.{name}" if prefix else name

    # --- code ---

    def code(self, kind: str) -> Code:
        """An empty body with its lowering parts connected: see `statements` and `calls` of the result."""
        code = Code(self, kind)
        assignments, calls, expressions = Assignments(code), Calls(code), Expressions(code)
        externs, parsers, statements, tables = Externs(code), Parsers(code), Statements(code), Tables(code)
        assignments.expressions = expressions
        expressions.assignments, expressions.calls = assignments, calls
        calls.assignments, calls.expressions, calls.externs = assignments, expressions, externs
        calls.parsers, calls.statements, calls.tables = parsers, statements, tables
        externs.assignments, externs.calls, externs.expressions = assignments, calls, expressions
        parsers.expressions, parsers.statements = expressions, statements
        statements.assignments, statements.calls = assignments, calls
        statements.expressions, statements.tables = expressions, tables
        tables.assignments, tables.expressions, tables.statements = assignments, expressions, statements
        code.calls, code.expressions, code.statements_lowering, code.parsers = (
            calls,
            expressions,
            statements,
            parsers,
        )
        return code

    # --- things with numbers ---

    def add_calculation(self, algorithm: str, inputs: list[ir.Expr], with_payload: bool, loc: int, end: int) -> str:
        name = f"calc_{len(self.calculations)}" if self.calculations else "calc"
        self.calculations.append(Calculation(name, algorithm, inputs, with_payload, loc, end))
        return name

    def add_digest(self, type_: t.Type, fields: list[ir.FieldRef], node: s.Node) -> int:
        number = len(self.digests) + 1
        name = type_.name if isinstance(type_, t.Struct) else f"digest_{number - 1}"
        self.digests.append(Digest(number, name, type_, fields, node.loc, node.end))
        return number

    def field_list(self, index: int) -> int:
        """The number in BMv2 JSON of the fields annotated @field_list(index)."""
        return self._field_lists.setdefault(index, self._next_field_list())

    def add_field_list(self, fields: list[ir.FieldRef]) -> int:
        """The number in BMv2 JSON of a list of just these fields."""
        number = self._next_field_list()
        self._other_field_lists[number] = fields
        return number

    def empty_field_list(self) -> int:
        """The number in BMv2 JSON of a list without fields: BMv2 looks every list up that an action names."""
        known = next((number for number, fields in self._other_field_lists.items() if not fields), None)
        return self.add_field_list([]) if known is None else known

    def _next_field_list(self) -> int:
        return len(self._field_lists) + len(self._other_field_lists) + 1

    def field_lists(self) -> list[tuple[int, str, list[ir.FieldRef]]]:
        """(number, name, fields)"""
        annotated = [
            (number, f"field_list{index}", listed_fields(self.metadata, index, self.checked.globals))
            for index, number in self._field_lists.items()
        ]
        others = [(number, f"kept_fields{number}", fields) for number, fields in self._other_field_lists.items()]
        return sorted([*annotated, *others], key=lambda item: item[0])

    def value_set(self, symbol: Symbol, frame: Frame) -> str:
        node = symbol.node
        assert isinstance(node, s.ValueSetDeclaration) and isinstance(symbol.type, t.SetOf)
        key = (symbol, frame.prefix)
        if key not in self.value_sets:
            name = self.control_name(node.annotations, frame.prefix, node.name)
            size = self.code("constructor").expressions.value(node.size, frame)
            if not isinstance(size, ir.Const):
                self.reporter.error(node.size.loc, "the size of a value set must be known at compile time")
                size = ir.Const(t.bit(32), 1)
            elif not 0 < size.value <= MAX_SIZE:
                self.reporter.error(node.size.loc, f"a size of {size.value} is outside 1 to {MAX_SIZE}")
                size = ir.Const(t.bit(32), 1)
            self.value_sets[key] = ValueSet(name, symbol.type.element, size.value, node)
        return self.value_sets[key].name
