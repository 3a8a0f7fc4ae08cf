"""Typical mistakes: the place that the caret shows, what is said, and the hint that helps."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gradbed.switch.compiler import CompileError, Diagnostic
from tests.unit.compiler.programs import HEAD, PARSER, compile_text, control

TABLE = "table t { key = { hdr.h.a: exact; } actions = { NoAction; } }"
DOES = "action forward(bit<9> port) { std.egress_spec = port; }"


def first(text: str) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        compile_text(text)
    return caught.value.diagnostics[0]


@dataclass(frozen=True)
class Mistake:
    """`at`: what the source line holds from the caret on. `hint` is compared if it is given."""

    name: str
    text: str
    at: str
    message: str
    hint: str = ""


def mistake(name: str, at: str, message: str, hint: str = "", *, apply: str = "", locals_: str = "") -> Mistake:
    return Mistake(name, control(apply, locals_), at, message, hint)


def states(name: str, at: str, message: str, hint: str = "", *, transition: str) -> Mistake:
    parser = PARSER.replace("transition accept;", transition)
    return Mistake(name, control("", parser=parser), at, message, hint)


def changed(name: str, at: str, message: str, hint: str = "", *, old: str, new: str) -> Mistake:
    text = control("")
    assert old in text
    return Mistake(name, text.replace(old, new), at, message, hint)


MISTAKES = [
    mistake(
        "assignment as condition",
        "= 1",
        "expected ')' after the condition, but found '='",
        "a comparison is written '=='",
        apply="if (hdr.h.a = 1) { }",
    ),
    mistake(
        "comparison as statement",
        "== 1",
        "expected '=' or a call, but found '=='",
        "an assignment is written '='",
        apply="hdr.h.a == 1;",
    ),
    mistake(
        "narrow to wide",
        "hdr.h.a;",
        "expected bit<16>, but this is bit<8>",
        "cast it: (bit<16>)hdr.h.a",
        apply="meta.y = hdr.h.a;",
    ),
    mistake(
        "wide to narrow, of a sum",
        "meta.y + 1",
        "expected bit<8>, but this is bit<16>",
        "cast it: (bit<8>)(meta.y + 1)",
        apply="hdr.h.a = meta.y + 1;",
    ),
    mistake(
        "sum of two widths",
        "meta.y + hdr.h.a",
        "'+' takes two numbers of the same type, these are bit<16> and bit<8>",
        "cast it: (bit<16>)hdr.h.a",
        apply="meta.y = meta.y + hdr.h.a;",
    ),
    mistake(
        "comparison of two widths",
        "hdr.h.a == meta.y",
        "cannot compare bit<8> with bit<16>",
        "cast it: (bit<16>)hdr.h.a",
        apply="if (hdr.h.a == meta.y) { }",
    ),
    mistake(
        "index of another width",
        "hdr.h.a, 3",
        "expected bit<32>, but this is bit<8>",
        "cast it: (bit<32>)hdr.h.a",
        apply="r.write(hdr.h.a, 3);",
        locals_="register<bit<8>>(4) r;",
    ),
    mistake(
        "number as condition",
        "hdr.h.a)",
        "expected bool, but this is bit<8>",
        "compare it, as in hdr.h.a != 0",
        apply="if (hdr.h.a) { }",
    ),
    mistake(
        "header as condition",
        "hdr.h)",
        "expected bool, but this is bytes_t",
        "to ask whether a header is valid, write hdr.h.isValid()",
        apply="if (hdr.h) { }",
    ),
    mistake(
        "single & between comparisons",
        "hdr.h.a == 1 &",
        "cannot compare bool with int",
        "'and' and 'or' are written '&&' and '||'; '&' binds tighter than a comparison",
        apply="if (hdr.h.a == 1 & hdr.h.b == 2) { }",
    ),
    mistake(
        "and",
        "and hdr",
        "expected ')' after the condition, but found 'and'",
        "'and' is written '&&'",
        apply="if (hdr.h.a == 1 and hdr.h.b == 2) { }",
    ),
    mistake(
        "misspelt field",
        "std.egress_sepc",
        "struct 'standard_metadata_t' has no field 'egress_sepc'; did you mean 'egress_spec'?",
        apply="std.egress_sepc = 1;",
    ),
    mistake("misspelt variable", "mta.x", "'mta' is not declared; did you mean 'meta'?", apply="mta.x = 1;"),
    mistake(
        "misspelt action",
        "foward;",
        "action 'foward' is not declared; did you mean 'forward'?",
        locals_=DOES + " table t { actions = { foward; } }",
    ),
    mistake(
        "misspelt method",
        "t.aply",
        "table t has no method 'aply'; did you mean 'apply'?",
        apply="t.aply();",
        locals_=TABLE,
    ),
    mistake(
        "misspelt isValid",
        "hdr.h.isvalid",
        "header 'bytes_t' has no method 'isvalid'; did you mean 'isValid'?",
        apply="if (hdr.h.isvalid()) { }",
    ),
    mistake(
        "misspelt method of a register",
        "r.wirte",
        "register has no method 'wirte'; did you mean 'write'?",
        apply="r.wirte(0, 1);",
        locals_="register<bit<8>>(4) r;",
    ),
    mistake(
        "misspelt bit",
        "8> x",
        "expected a type, but found '8'",
        "did you mean 'bit'?",
        locals_="bti<8> x;",
    ),
    mistake(
        "type of another language",
        "uint8 x",
        "type 'uint8' is not declared",
        "numbers have types like bit<32> (without sign) and int<32> (with sign)",
        apply="uint8 x = 3;",
    ),
    mistake(
        "int without a width",
        "int x",
        "a variable cannot have type int",
        "give it a width, for instance bit<32> or int<32>",
        apply="int x = 3;",
    ),
    mistake(
        "table as statement",
        ";",
        "expected '=' or a call, but found ';'",
        "a table is applied with '.apply();', a function is called with '();'",
        apply="t;",
        locals_=TABLE,
    ),
    mistake(
        "table called",
        "t();",
        "'t' is a table and cannot be called",
        "apply it: t.apply()",
        apply="t();",
        locals_=TABLE,
    ),
    mistake(
        "table applied in an action",
        "t.apply()",
        "apply() is not allowed in an action",
        "apply the table in the apply block, and act on its result there",
        locals_=TABLE + " action a() { t.apply(); }",
    ),
    mistake(
        "misspelt case of a switch",
        "foward:",
        "expected one of the actions of table 't'; did you mean 'forward'?",
        apply="switch (t.apply().action_run) { foward: { } }",
        locals_=DOES + " table t { actions = { forward; } }",
    ),
    mistake(
        "default action that is not listed",
        "forward(1)",
        "action 'forward' is not among the actions of table 't'",
        "add it to the table's actions = { ... forward; }",
        locals_=DOES + " table t { actions = { NoAction; } default_action = forward(1); }",
    ),
    mistake(
        "case",
        "1: { }",
        "expected ':' after the label, but found '1'",
        "a label is written without 'case'",
        apply="switch (hdr.h.a) { case 1: { } }",
    ),
    mistake(
        "result of read()",
        "r.read(0)",
        "'read' takes 2 argument(s), but 1 are given",
        "the result goes into the first argument: read(result, index)",
        apply="meta.x = r.read(0);",
        locals_="register<bit<8>>(4) r;",
    ),
    mistake(
        "constant for an out parameter",
        "3, 0",
        "expected bit<8>, but this is int",
        "'result' is written (out): its argument must be a variable or field of type bit<8>",
        apply="r.read(3, 0);",
        locals_="register<bit<8>>(4) r;",
    ),
    mistake(
        "in parameter changed",
        "x = 1",
        "'x' cannot be changed by an assignment",
        "give the parameter the direction inout",
        locals_="action a(in bit<8> x) { x = 1; }",
    ),
    mistake("missing semicolon", "", "expected ';' at the end of the statement", apply="hdr.h.a = 1\nhdr.h.b = 2;"),
    mistake(
        "missing semicolon after a key",
        "} actions",
        "expected ';' after the key, but found '}'",
        locals_="table t { key = { hdr.h.a: exact } actions = { NoAction; } }",
    ),
    mistake(
        "missing brace before else",
        "else",
        "expected an expression, but found 'else'",
        "no 'if' comes directly before this 'else': is a '}' missing?",
        apply="if (hdr.h.a == 1) { hdr.h.b = 1; else { hdr.h.b = 2; }",
    ),
    mistake(
        "while",
        "{ hdr",
        "expected ';' at the end of the statement, but found '{'",
        "P4 has no 'while': use 'for', or in a parser a state that goes back to itself",
        apply="while (hdr.h.a > 0) { hdr.h.a = hdr.h.a - 1; }",
    ),
    mistake(
        "++",
        "++;",
        "expected '=' or a call, but found '++'",
        "'++' joins the bits of two numbers; to count, write x = x + 1",
        apply="hdr.h.a++;",
    ),
    mistake(
        "address with dots",
        "0.0.1",
        "expected the name of a member, but found '0'",
        "numbers have no '.': the address 10.0.0.1 is written 0x0a000001",
        apply="meta.x = 10.0.0.1;",
    ),
    states(
        "select with too many keys",
        "(1, 2)",
        "select has 1 keys, but 2 are given",
        transition="transition select(hdr.h.a) { (1, 2): accept; }",
    ),
    states(
        "misspelt state",
        "transition acept",
        "state 'acept' is not declared; did you mean 'accept'?",
        transition="transition acept;",
    ),
    changed(
        "no include",
        "standard_metadata_t std)",
        "type 'standard_metadata_t' is not declared",
        "write #include <v1model.p4> at the top of the program",
        old="#include <v1model.p4>\n",
        new="",
    ),
    changed(
        "misspelt include",
        "<v1modle.p4>",
        "cannot find 'v1modle.p4' here or in the include directories (option -I); did you mean 'v1model'?",
        old="<v1model.p4>",
        new="<v1modle.p4>",
    ),
    changed(
        "missing apply",
        "}",
        "expected the apply block of the control, but found '}'",
        old="apply {\n\n}\n",
        new="",
    ),
    changed(
        "direction of a block's parameter",
        "I(), E()",
        "expected Ingress, but this is I",
        "parameter 'hdr' of I must be inout",
        old="control I(inout headers_t hdr",
        new="control I(in headers_t hdr",
    ),
    changed(
        "parameters of a block",
        "D())",
        "expected Deparser, but this is D",
        "Deparser has 2 parameters, but D has 1",
        old="control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); packet.emit(hdr.g); } }",
        new="control D(packet_out packet) { apply { } }",
    ),
    changed(
        "blocks in another order",
        "V(), P()",
        "expected Parser, but this is V",
        "V1Switch takes parser, verify checksum, ingress, egress, compute checksum, deparser, in this order",
        old="P(), V()",
        new="V(), P()",
    ),
    changed(
        "no main",
        "",
        "the program has no package instance 'main'",
        "end the program with V1Switch(parser(), ..., deparser()) main;",
        old=") main;",
        new=") sw;",
    ),
]


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.name)
def test_typical_mistakes(case: Mistake) -> None:
    error = first(case.text)
    assert error.message == case.message
    assert error.hint == case.hint
    assert error.source_line[error.column - 1 :].startswith(case.at)


def test_the_hint_stands_below_the_caret() -> None:
    with pytest.raises(CompileError) as caught:
        compile_text(control("meta.y = hdr.h.a;"))
    assert str(caught.value).splitlines()[1:] == [
        "meta.y = hdr.h.a;",
        "         ^~~~~~~",
        "hint: cast it: (bit<16>)hdr.h.a",
    ]


def test_what_a_macro_wrote_is_not_quoted() -> None:
    error = first(control("meta.y = A;").replace(HEAD, HEAD + "#define A hdr.h.a\n"))
    assert error.hint == "cast it: (bit<16>)..."
