"""The six blocks of v1model in turn."""

from __future__ import annotations

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.checker import CheckedProgram
from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.ir import LoweredChecksum, LoweredPipeline, LoweredProgram
from gradbed.switch.compiler.ir import operations as op
from gradbed.switch.compiler.ir.storage import StorageExhausted, standard_metadata
from gradbed.switch.compiler.ir.values import Instance, PacketValue, StructValue, Value
from gradbed.switch.compiler.lower.calls import lower_body
from gradbed.switch.compiler.lower.context import Code, Frame, ProgramState, value_of
from gradbed.switch.compiler.lower.inlining import instantiate, lower_variables, often_applied, state_of
from gradbed.switch.compiler.lower.parsers import lower_deparser, parser_states
from gradbed.switch.compiler.symbols import ExternInstanceType

NO_MAIN = "the program has no package instance 'main'"
OTHER_PACKAGE = "the package of 'main' must be V1Switch"
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
            reporter.error(checked.program.end, NO_MAIN, hint=hint)
        return None
    if main.call.target.name != "V1Switch":
        reporter.error(main.loc, f"{OTHER_PACKAGE}, not {main.call.target.name}", main.end)
        return None
    program = ProgramState(checked, reporter)
    program.often_applied = often_applied(checked.program.declarations)
    for declaration in checked.program.declarations:
        if isinstance(declaration, s.Instantiation) and declaration.symbol is not None and declaration is not main:
            program.globals.values[declaration.symbol] = instantiate(declaration, program.globals, program)
    blocks: dict[str, Instance] = {}
    for parameter, bound in zip(main.call.target.parameters, main.call.target.bound, strict=True):
        assert bound is not None
        value = value_of(bound, program.globals, Code(program, "constructor"))
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
    if not isinstance(headers.type, t.Struct):
        raise program.reporter.fatal(headers.loc, f"the headers must be a struct, not {headers.type}")
    packet = _state_of_packet(program, headers.type, metadata.type, standard.type)
    parser_node = parser.signature.node
    assert isinstance(parser_node, s.ParserDeclaration)
    start = parser_states(parser_node, _bound(parser, packet, program), Code(program, "parser"))
    verify = _checksums(program, _body(blocks["vr"], "checksum", packet, program), op.TRUE)
    pipelines = [
        LoweredPipeline(name, _body(blocks[key], "control", packet, program), _control(blocks[key]))
        for key, name in (("ig", "ingress"), ("eg", "egress"))
    ]
    update = _checksums(program, _body(blocks["ck"], "checksum", packet, program), op.TRUE)
    order, primitives = lower_deparser(program, _body(blocks["dep"], "deparser", packet, program))
    return LoweredProgram(
        checked=program.checked,
        storage=program.storage,
        headers=headers.type,
        metadata=metadata.type,
        parser_start=start,
        parser_node=parser_node,
        pipelines=pipelines,
        deparser_order=order,
        deparser_primitives=primitives,
        deparser_node=_control(blocks["dep"]),
        checksums=[*update, *verify],
        tables=list(program.tables.values()),
        actions=list(program.actions.values()),
        called_actions=list(program.called_actions.values()),
        objects=program.objects,
        calculations=program.calculations,
        digests=program.digests,
        value_sets=list(program.value_sets.values()),
        field_lists=program.field_lists.all(program.metadata, program.checked.globals),
        direct_tables=program.direct_tables,
        direct_meter_results=program.direct_meter_results,
    )


def _state_of_packet(program: ProgramState, headers: t.Struct, metadata: t.Type, standard: t.Type) -> list[Value]:
    """Return the state that goes from block to block with a packet: headers, metadata, standard metadata."""
    assert isinstance(standard, t.Struct)
    header_variables = program.storage.packet_part(headers, "")
    prefix = metadata.name if isinstance(metadata, t.Struct) else "metadata"
    metadata_variables = program.storage.variable(metadata, prefix)
    if isinstance(metadata_variables, StructValue):
        program.metadata = metadata_variables
    return [header_variables, metadata_variables, standard_metadata(standard)]


def _bound(instance: Instance, packet: list[Value], program: ProgramState) -> Frame:
    """Return the frame of a block, with its parameters bound to the state of the packet."""
    frame = state_of(instance, program).frame
    rest = iter(packet)
    for parameter in instance.signature.parameters:
        is_packet = isinstance(parameter.type, ExternInstanceType)
        frame.values[parameter.symbol] = PacketValue() if is_packet else next(rest)
    return frame


def _control(instance: Instance) -> s.ControlDeclaration:
    declaration = instance.signature.node
    assert isinstance(declaration, s.ControlDeclaration)
    return declaration


def _body(instance: Instance, kind: str, packet: list[Value], program: ProgramState) -> list[ir.LoweredStatement]:
    """Return the statements of a control among the six blocks."""
    frame = _bound(instance, packet, program)
    declaration = _control(instance)
    assert declaration.body is not None
    code = Code(program, kind)
    lower_variables(declaration, frame, code)
    lower_body(declaration.body, t.VOID, frame, declaration, code)
    return code.statements


def _checksums(program: ProgramState, body: list[ir.LoweredStatement], condition: ir.Expr) -> list[LoweredChecksum]:
    """Return the checksum calls of a control, with the conditions around them joined to their own."""
    result: list[LoweredChecksum] = []
    for statement in body:
        if isinstance(statement, ir.LoweredIf):
            negated = op.negation(statement.condition)
            result += _checksums(program, statement.then, op.conjunction(condition, statement.condition))
            result += _checksums(program, statement.otherwise, op.conjunction(condition, negated))
        elif isinstance(statement, ir.LoweredPrimitive) and statement.op.endswith("_checksum"):
            own, target, calculation = statement.parameters
            assert isinstance(own, ir.Expr) and isinstance(target, ir.FieldRef)
            assert isinstance(calculation, ir.Ref)
            result.append(
                LoweredChecksum(
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
