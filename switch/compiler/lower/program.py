"""The six blocks of v1model in turn."""

from __future__ import annotations

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.checker import CheckedProgram
from switch.compiler.diagnostics import Reporter
from switch.compiler.lower import ir
from switch.compiler.lower import operations as op
from switch.compiler.lower.deparser import lower_deparser
from switch.compiler.lower.instances import InstanceState
from switch.compiler.lower.places import Instance, PacketValue, StructValue, Value
from switch.compiler.lower.result import Checksum, LoweredProgram, Pipeline
from switch.compiler.lower.state import ProgramState
from switch.compiler.lower.storage import StorageExhausted, standard_metadata

V1SWITCH_PARAMETERS = ("p", "vr", "ig", "eg", "ck", "dep")


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
            hint = "end the program with V1Switch(parser(), ..., deparser()) main;"
            reporter.error(checked.program.end, "the program has no package instance 'main'", hint=hint)
        return None
    if main.call.target.name != "V1Switch":
        reporter.error(main.loc, f"the package of 'main' must be V1Switch, not {main.call.target.name}", main.end)
        return None
    program = ProgramState(checked, reporter)
    program.instances.find_often_applied()
    for declaration in checked.program.declarations:
        if isinstance(declaration, s.Instantiation) and declaration.symbol is not None and declaration is not main:
            program.globals.values[declaration.symbol] = program.instances.instantiate(declaration, program.globals)
    blocks: dict[str, Instance] = {}
    for parameter, bound in zip(main.call.target.parameters, main.call.target.bound, strict=True):
        assert bound is not None
        value = program.code("constructor").expressions.value(bound, program.globals)
        if isinstance(value, Instance):
            value.name = value.signature.node.name
            blocks[parameter.name] = value
    if set(blocks) != set(V1SWITCH_PARAMETERS):
        reporter.error(main.loc, "V1Switch needs a parser and five controls", main.end)
        return None
    return _lower_blocks(program, blocks)


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
        state = program.instances.state_of(instance)
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
    order, primitives = lower_deparser(program, run(blocks["dep"], "deparser"))
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
        program.actions.lowered,
        list(program.actions.called.values()),
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
