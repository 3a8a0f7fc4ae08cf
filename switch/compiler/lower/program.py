"""The whole program: instances, what the parts share, and the six blocks of v1model in turn."""

from __future__ import annotations

from dataclasses import dataclass, field

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.checker import CheckedProgram
from switch.compiler.diagnostics import Reporter
from switch.compiler.lower import ir
from switch.compiler.lower import operations as op
from switch.compiler.lower.assignments import Assignments
from switch.compiler.lower.calls import Calls
from switch.compiler.lower.expressions import Expressions
from switch.compiler.lower.externs import Externs
from switch.compiler.lower.parsers import Parsers
from switch.compiler.lower.places import (
    ExternObject,
    Instance,
    Nothing,
    PacketValue,
    Place,
    StructValue,
    Value,
)
from switch.compiler.lower.scope import MAX_STATEMENTS, Code, Frame
from switch.compiler.lower.statements import Statements
from switch.compiler.lower.storage import Storage, StorageExhausted, standard_metadata
from switch.compiler.lower.tables import ActionParameter, LoweredAction, LoweredTable, Tables
from switch.compiler.names import NameSet
from switch.compiler.symbols import Scope, Signature, Symbol

V1SWITCH_PARAMETERS = ("p", "vr", "ig", "eg", "ck", "dep")


@dataclass(eq=False)
class InstanceState:
    """What an instance keeps between the places where it is applied.

    `owned`: the variables of its parameters if it is applied in several places.
    """

    instance: Instance
    frame: Frame
    applied_often: bool
    owned: dict[Symbol, Place] = field(default_factory=dict)


@dataclass(frozen=True)
class Calculation:
    name: str
    algorithm: str
    inputs: list[ir.Expr]
    with_payload: bool
    loc: int
    end: int


@dataclass(frozen=True)
class Checksum:
    target: ir.FieldRef
    calculation: str
    verify: bool
    condition: ir.Expr
    loc: int
    end: int


@dataclass(frozen=True)
class Digest:
    number: int
    name: str
    type: t.Type
    fields: list[ir.FieldRef]
    loc: int
    end: int


@dataclass(frozen=True)
class ValueSet:
    name: str
    type: t.Type
    size: int
    node: s.ValueSetDeclaration


@dataclass(frozen=True)
class Pipeline:
    """ingress or egress"""

    name: str
    body: list[ir.Stmt]
    node: s.ControlDeclaration


@dataclass
class LoweredProgram:
    """Everything that the emitters need."""

    checked: CheckedProgram
    storage: Storage
    headers: t.Type
    metadata: t.Type
    parser_start: ir.State
    parser_node: s.ParserDeclaration
    pipelines: list[Pipeline]
    deparser_order: list[str]
    deparser_primitives: list[ir.Stmt]
    deparser_node: s.ControlDeclaration
    checksums: list[Checksum]
    tables: list[LoweredTable]
    actions: list[LoweredAction]
    called_actions: list[LoweredAction]
    objects: list[ExternObject]
    calculations: list[Calculation]
    digests: list[Digest]
    value_sets: list[ValueSet]
    field_lists: list[tuple[int, int, list[ir.FieldRef]]]
    direct_tables: dict[str, LoweredTable]
    direct_meter_results: dict[str, ir.FieldRef]


class ProgramState:
    """Shared by all code that is being lowered."""

    def __init__(self, checked: CheckedProgram, reporter: Reporter) -> None:
        self.checked = checked
        self.reporter = reporter
        self.storage = Storage()
        self.globals = Frame(None, "", checked.globals)
        self.tables: dict[tuple[Frame, s.TableDeclaration], LoweredTable] = {}
        self.actions: list[LoweredAction] = []
        self.called_actions: dict[str, LoweredAction] = {}
        self.objects: list[ExternObject] = []
        self.calculations: list[Calculation] = []
        self.digests: list[Digest] = []
        self.value_sets: dict[tuple[Symbol, str], ValueSet] = {}
        self.direct_tables: dict[str, LoweredTable] = {}
        self.direct_meter_results: dict[str, ir.FieldRef] = {}
        self.state_names = NameSet()
        self.metadata: StructValue | None = None
        self._states: dict[Instance, InstanceState] = {}
        self._anonymous: dict[tuple[Frame, s.Node], Instance] = {}
        self._actions: dict[tuple[Frame, s.Node, ir.FieldRef | None], LoweredAction] = {}
        self._field_lists: dict[int, int] = {}
        self._statement_count = 0
        self._often_applied: set[int] = set()
        self._instance_names = NameSet()

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

    # --- instances ---

    def instantiate(self, node: s.Instantiation, frame: Frame) -> Value:
        """The object that `Type(arguments) name;` declares."""
        assert node.call is not None
        name = self.control_name(node.annotations, frame.prefix, node.name)
        value = self.construct(node.call, frame, "", name)
        if isinstance(value, ExternObject):
            value.node = node
        return value

    def construct(self, call: s.Call, frame: Frame, prefix: str, name: str) -> Value:
        """The object that a constructor call makes, under the control plane's name `name`."""
        target = call.target
        if target is None or not isinstance(target.declaration, Signature):
            return Nothing()
        expressions = self.code("constructor").expressions
        arguments: dict[str, Value] = {}
        for parameter, bound in zip(target.parameters, target.bound, strict=True):
            arguments[parameter.name] = Nothing() if bound is None else expressions.value(bound, frame)
        if isinstance(call.type, t.Extern):
            node = s.Instantiation(
                call.loc, call.end, [], name, call.loc, s.TypeSyntax(call.loc, call.end), call.arguments
            )
            kind = call.type.klass.name
            if any((other.kind, other.name) == (kind, name) for other in self.objects):
                self.reporter.error(
                    call.loc, f"the control plane knows another {kind} by the name '{name}'", call.end
                )
            value = ExternObject(call.type, name, arguments, node, kind)
            self.objects.append(value)
            return value
        return Instance(target.declaration, name or target.declaration.name, arguments, call.loc)

    def anonymous_instance(self, receiver: s.Expression, node: s.Node, frame: Frame) -> Instance:
        """The instance behind Type.apply(...): one for each such call in each instance around it."""
        key = (frame, node)
        known = self._anonymous.get(key)
        if known is None:
            assert isinstance(receiver, s.Call) and receiver.target is not None
            name = self._instance_names.unique(self.control_name([], frame.prefix, receiver.target.name))
            value = self.construct(receiver, frame, "", name)
            assert isinstance(value, Instance)
            known = self._anonymous[key] = value
        return known

    def state_of(self, instance: Instance) -> InstanceState:
        """The frame of an instance, with its constants, objects and variables, made when first needed."""
        known = self._states.get(instance)
        if known is not None:
            return known
        signature = instance.signature
        declaration = signature.node
        assert isinstance(declaration, (s.ParserDeclaration, s.ControlDeclaration))
        scope = _body_scope(declaration, signature)
        frame = Frame(self.globals, instance.name, scope)
        often = instance.loc in self._often_applied and _has_fixed_places(declaration)
        state = InstanceState(instance, frame, often)
        self._states[instance] = state
        for parameter in signature.constructor:
            frame.values[parameter.symbol] = instance.arguments[parameter.name]
        for local in declaration.locals:
            if isinstance(local, s.Instantiation) and local.symbol is not None:
                frame.values[local.symbol] = self.instantiate(local, frame)
            elif isinstance(local, s.VariableDeclaration) and local.symbol is not None:
                frame.values[local.symbol] = self.storage.variable(local.symbol.type, local.name)
        return state

    def find_often_applied(self) -> None:
        """Positions of the instances that are applied in more than one place of the source.

        Instances that are passed to constructors count as such.
        """
        seen: dict[Symbol, int] = {}
        for node in s.walk(self.checked.program.declarations):
            if isinstance(node, s.Call) and node.target is not None and node.target.kind == "apply":
                receiver = node.target.receiver
                if isinstance(receiver, s.Name) and receiver.symbol is not None:
                    seen[receiver.symbol] = seen.get(receiver.symbol, 0) + 1
            elif isinstance(node, s.Argument) and isinstance(node.expression, s.Name):
                symbol = node.expression.symbol
                if symbol is not None and symbol.kind == "instance":
                    seen[symbol] = 2
        self._often_applied = {
            symbol.node.call.loc
            for symbol, count in seen.items()
            if count > 1 and isinstance(symbol.node, s.Instantiation) and symbol.node.call is not None
        }

    # --- actions ---

    def action(self, ref: s.ActionRef, owner: Frame, exit_flag: ir.FieldRef | None) -> LoweredAction:
        """The action of a table, its body lowered once: for all tables, or for one where it has bound arguments."""
        node = ref.action
        assert node is not None
        is_global = self._is_global(node)
        key = (self.globals if is_global else owner, ref if ref.bound else node, exit_flag)
        known = self._actions.get(key)
        if known is None:
            name = self.control_name(node.annotations, "" if is_global else owner.prefix, node.name)
            known = self._actions[key] = self._lower_action(ref, node, name, owner, exit_flag)
            self.actions.append(known)
        return known

    def record_call(self, node: s.FunctionDeclaration, prefix: str) -> None:
        """An action is called from a control: P4Info lists it, though the control plane cannot use it."""
        name = self.control_name(node.annotations, "" if self._is_global(node) else prefix, node.name)
        self.called_actions.setdefault(name, LoweredAction(name, [], [], node))

    def _is_global(self, node: s.FunctionDeclaration) -> bool:
        symbol = self.checked.globals.names.get(node.name)
        return symbol is not None and symbol.node is node

    def _lower_action(
        self,
        ref: s.ActionRef,
        node: s.FunctionDeclaration,
        name: str,
        owner: Frame,
        exit_flag: ir.FieldRef | None,
    ) -> LoweredAction:
        assert node.body is not None
        code = self.code("action")
        code.exit_flag = exit_flag
        frame = Frame(owner, owner.prefix)
        parameters: list[ActionParameter] = []
        directed = [parameter for parameter in node.signature if parameter.direction]
        label, finished = ir.Label("return"), ir.Label("finished")
        code.finished = finished
        with code.branch() as body:
            arguments = code.calls.arguments(directed, ref.bound, owner) if ref.bound else []
            copy_out = code.calls.bind(directed[: len(arguments)], arguments, frame, ref, closed=False)
            for parameter in node.signature:
                if not parameter.direction:
                    data = ir.RuntimeData(t.representation(parameter.type), len(parameters))
                    frame.values[parameter.symbol] = data
                    parameters.append(ActionParameter(parameter.name, parameter.type, parameter.node.annotations))
            code.returns.append((label, None))
            code.copy_outs.append(copy_out)
            with code.branch() as inner:
                code.statements_lowering.block(node.body, frame)
            code.copy_outs.pop()
            code.emit(ir.Block(node.loc, node.end, label, inner))
            code.calls.copy_back(copy_out, ref)
        return LoweredAction(name, parameters, [ir.Block(node.loc, node.end, finished, body)], node)

    # --- things with numbers ---

    def add_calculation(self, algorithm: str, inputs: list[ir.Expr], with_payload: bool, loc: int, end: int) -> str:
        name = f"calc_{len(self.calculations)}" if self.calculations else "calc"
        self.calculations.append(Calculation(name, algorithm, inputs, with_payload, loc, end))
        return name

    def add_digest(self, type_: t.Type, fields: list[ir.FieldRef], node: s.Node) -> int:
        number = len(self.digests) + 1
        name = type_.name if isinstance(type_, t.Struct) else f"digest_{number}"
        self.digests.append(Digest(number, name, type_, fields, node.loc, node.end))
        return number

    def field_list(self, index: int) -> int:
        """The number in BMv2 JSON of the fields annotated @field_list(index)."""
        return self._field_lists.setdefault(index, len(self._field_lists) + 1)

    def field_lists(self) -> list[tuple[int, int, list[ir.FieldRef]]]:
        """(number, index, fields)"""
        return [
            (number, index, _listed_fields(self.metadata, index, False) if self.metadata else [])
            for index, number in self._field_lists.items()
        ]

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
            self.value_sets[key] = ValueSet(name, symbol.type.element, size.value, node)
        return self.value_sets[key].name


def _listed_fields(value: StructValue, index: int, listed: bool) -> list[ir.FieldRef]:
    """Metadata fields that are annotated @field_list with this index, or that are inside one."""
    result: list[ir.FieldRef] = []
    type_ = value.type
    for name, part in value.parts.items():
        annotations = type_.annotations.get(name, []) if isinstance(type_, t.Struct) else []
        here = listed or any(
            annotation.name == "field_list" and annotation.body and str(index) in annotation.body
            for annotation in annotations
        )
        if isinstance(part, StructValue):
            result.extend(_listed_fields(part, index, here))
        elif here and isinstance(part, ir.FieldRef):
            result.append(part)
    return result


def _has_fixed_places(declaration: s.ParserDeclaration | s.ControlDeclaration) -> bool:
    """Whether there are tables in a control, or perhaps in controls inside it: they refer to fixed variables."""
    return isinstance(declaration, s.ControlDeclaration) and (
        bool(declaration.constructor_parameters)
        or any(isinstance(local, (s.TableDeclaration, s.Instantiation)) for local in declaration.locals)
    )


def _body_scope(declaration: s.ParserDeclaration | s.ControlDeclaration, signature: Signature) -> Scope:
    return signature.body_scope if signature.body_scope is not None else signature.scope


def lower_program(checked: CheckedProgram, reporter: Reporter) -> LoweredProgram | None:
    """Lower everything that `main` needs; None after reporting that there is no fitting main."""
    try:
        return _lower(checked, reporter)
    except StorageExhausted:
        loc = checked.main.loc if checked.main else 1
        raise reporter.fatal(loc, "the program has too many variables") from None


def _lower(checked: CheckedProgram, reporter: Reporter) -> LoweredProgram | None:
    main = checked.main
    if main is None or main.call is None or main.call.target is None:
        if not reporter.error_count:
            reporter.error(checked.program.end, "the program has no package instance 'main'")
        return None
    if main.call.target.name != "V1Switch":
        reporter.error(main.loc, f"the package of 'main' must be V1Switch, not {main.call.target.name}", main.end)
        return None
    program = ProgramState(checked, reporter)
    program.find_often_applied()
    for declaration in checked.program.declarations:
        if isinstance(declaration, s.Instantiation) and declaration.symbol is not None and declaration is not main:
            program.globals.values[declaration.symbol] = program.instantiate(declaration, program.globals)
    blocks: dict[str, Instance] = {}
    for parameter, bound in zip(main.call.target.parameters, main.call.target.bound, strict=True):
        assert bound is not None
        value = program.code("constructor").expressions.value(bound, program.globals)
        if isinstance(value, Instance):
            value.name = _block_name(value, bound)
            blocks[parameter.name] = value
    if set(blocks) != set(V1SWITCH_PARAMETERS):
        reporter.error(main.loc, "V1Switch needs a parser and five controls", main.end)
        return None
    return _lower_blocks(program, blocks)


def _block_name(instance: Instance, bound: s.Expression) -> str:
    """Blocks of main go by their type's name, or by what @name says there."""
    node = instance.signature.node
    annotation = s.find_annotation(node.annotations, "name")
    given = annotation.string() if annotation is not None else None
    return given.removeprefix(".") if given else node.name


def _lower_blocks(program: ProgramState, blocks: dict[str, Instance]) -> LoweredProgram:
    parser = blocks["p"]
    _, headers, metadata, standard = parser.signature.parameters
    assert isinstance(standard.type, t.Struct)
    if not isinstance(headers.type, t.Struct):
        raise program.reporter.fatal(headers.loc, f"the headers must be a struct, not {headers.type}")
    header_place = program.storage.packet_part(headers.type, "")
    prefix = metadata.type.name if isinstance(metadata.type, t.Struct) else "metadata"
    metadata_place = program.storage.variable(metadata.type, prefix)
    if isinstance(metadata_place, StructValue):
        program.metadata = metadata_place
    state_of_packet: list[Value] = [header_place, metadata_place, standard_metadata(standard.type)]

    def bind(instance: Instance) -> InstanceState:
        state = program.state_of(instance)
        rest = iter(state_of_packet)
        for parameter in instance.signature.parameters:
            is_packet = isinstance(parameter.type, t.Extern)
            state.frame.values[parameter.symbol] = PacketValue() if is_packet else next(rest)
        return state

    def run(instance: Instance, kind: str) -> list[ir.Stmt]:
        state = bind(instance)
        declaration = instance.signature.node
        assert isinstance(declaration, s.ControlDeclaration) and declaration.body is not None
        code = program.code(kind)
        for local in declaration.locals:
            if isinstance(local, s.VariableDeclaration):
                code.statements_lowering.lower(local, state.frame)
        code.calls.body(declaration.body, t.VOID, state.frame, declaration)
        return code.statements

    parser_node = parser.signature.node
    assert isinstance(parser_node, s.ParserDeclaration)
    start = program.code("parser").parsers.states(parser_node, bind(parser))
    verify = _checksums(program, run(blocks["vr"], "checksum"), op.TRUE)
    pipelines = []
    for key, name in (("ig", "ingress"), ("eg", "egress")):
        node = blocks[key].signature.node
        assert isinstance(node, s.ControlDeclaration)
        pipelines.append(Pipeline(name, run(blocks[key], "control"), node))
    update = _checksums(program, run(blocks["ck"], "checksum"), op.TRUE)
    deparser_node = blocks["dep"].signature.node
    assert isinstance(deparser_node, s.ControlDeclaration)
    order, primitives = _deparser(program, run(blocks["dep"], "deparser"))
    return LoweredProgram(
        program.checked,
        program.storage,
        headers.type,
        metadata.type,
        start,
        parser_node,
        pipelines,
        order,
        primitives,
        deparser_node,
        [*update, *verify],
        list(program.tables.values()),
        program.actions,
        list(program.called_actions.values()),
        program.objects,
        program.calculations,
        program.digests,
        list(program.value_sets.values()),
        program.field_lists(),
        program.direct_tables,
        program.direct_meter_results,
    )


def _checksums(program: ProgramState, body: list[ir.Stmt], condition: ir.Expr) -> list[Checksum]:
    """The checksum calls of a control, conditions around them joined to their own."""
    result: list[Checksum] = []
    for statement in body:
        if isinstance(statement, ir.If):
            negated = op.negation(statement.condition)
            result += _checksums(program, statement.then, op.conjunction(condition, statement.condition))
            result += _checksums(program, statement.otherwise, op.conjunction(condition, negated))
        elif isinstance(statement, ir.Primitive) and statement.op.endswith("_checksum"):
            own, target, calculation = statement.parameters
            assert isinstance(own, ir.Expr) and isinstance(target, ir.FieldRef)
            assert isinstance(calculation, ir.Ref)
            result.append(
                Checksum(
                    target,
                    calculation.name,
                    statement.op == "verify_checksum",
                    op.conjunction(condition, own),
                    statement.loc,
                    statement.end,
                )
            )
        else:
            program.reporter.error(
                statement.loc or 1,
                "controls that verify or compute checksums contain only such calls on this target",
                statement.end,
            )
    return result


def _deparser(program: ProgramState, body: list[ir.Stmt]) -> tuple[list[str], list[ir.Stmt]]:
    """The headers in the order they are emitted, and what is done before that."""
    order: list[str] = []
    primitives: list[ir.Stmt] = []
    for statement in body:
        if isinstance(statement, ir.Primitive) and statement.op == "emit":
            (header,) = statement.parameters
            assert isinstance(header, ir.Ref)
            order.append(header.name)
        elif isinstance(statement, (ir.Assign, ir.Primitive)) and not order:
            primitives.append(statement)
        else:
            program.reporter.error(
                statement.loc or 1,
                "a deparser is a sequence of emit() calls, with assignments before them, on this target",
                statement.end,
            )
    return order, primitives
