"""What the compiler says about programs that are wrong: place, wording, several errors in one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.switch.compiler import CompileError, compile_p4
from tests.unit.compiler.programs import BYTES, HEAD, PARSER, REST, compile_text, control


def errors(text: str) -> list[str]:
    with pytest.raises(CompileError) as caught:
        compile_text(text)
    return [item.message for item in caught.value.diagnostics if item.severity == "error"]


def test_a_block_shows_file_line_column_source_and_caret(tmp_path: Path) -> None:
    path = tmp_path / "wrong.p4"
    path.write_text("#include <core.p4>\nstruct s_t {\n\tbit<8> a\n}\n")
    with pytest.raises(CompileError) as caught:
        compile_p4(path)
    assert str(caught.value) == f"{path}:3:10: error: expected ';' after the field\n\tbit<8> a\n\t        ^"


def test_tabs_in_front_of_the_caret_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "wrong.p4"
    path.write_text("struct s_t {\n\tnowhere_t a;\n}\n")
    with pytest.raises(CompileError) as caught:
        compile_p4(path)
    assert str(caught.value).splitlines()[1:] == ["\tnowhere_t a;", "\t^~~~~~~~~"]


def test_errors_in_macros_show_use_and_definition() -> None:
    text = control("SET(q)").replace(HEAD, HEAD + "#define SET(f) hdr.h.f = 1;\n")
    with pytest.raises(CompileError) as caught:
        compile_text(text)
    (error,) = caught.value.diagnostics
    assert error.message == "header 'bytes_t' has no field 'q'"
    assert [note.message for note in error.notes] == ["in the expansion of macro 'SET'"]
    assert error.notes[0].line == 3


def test_several_syntax_errors_in_one_run() -> None:
    text = control("hdr.h.a = ; hdr.h.b = 1; hdr.h.c = = 2; if (x { } hdr.h.d = 3;")
    assert errors(text) == [
        "expected an expression, but found ';'",
        "expected an expression, but found '='",
        "expected ')' after the condition, but found '{'",
    ]


def test_a_call_that_could_be_of_two_functions() -> None:
    functions = "bit<8> f(in bit<8> x) { return x; } bit<8> f(in bit<8> y) { return y; }"
    assert errors(control("hdr.h.a = f(1);", before=functions)) == ["'f' could be each of 2 declarations"]
    again = functions.replace("in bit<8> y) { return y; }", "in bit<16> x) { return 1; }")
    assert errors(control("", before=again)) == ["'f' with 1 parameter(s) is declared twice"]


def test_several_type_errors_in_one_run() -> None:
    assert errors(control("hdr.h.a = true; hdr.h.q = 1; nowhere = 2; hdr.h.b = hdr.h.c + 16w1;")) == [
        "expected bit<8>, but this is bool",
        "header 'bytes_t' has no field 'q'",
        "'nowhere' is not declared",
        "'+' takes two numbers of the same type, these are bit<8> and bit<16>",
    ]


def test_there_is_an_end_to_errors() -> None:
    assert len(errors(control("nowhere = 1;\n" * 100))) == 20


@pytest.mark.parametrize(
    ("apply", "message"),
    [
        ("hdr.h.a = hdr.h.a ++ 8w1;", "expected bit<8>, but this is bit<16>"),
        ("if (hdr.h.a) { }", "expected bool, but this is bit<8>"),
        ("hdr.h.a[8:0] = 1;", "slice [8:0] is outside the bits of bit<8>"),
        ("hdr.h.a = (bit<8>)hdr.h;", "bytes_t cannot be cast to bit<8>"),
        (
            "std.ingres_port = 1;",
            "struct 'standard_metadata_t' has no field 'ingres_port'; did you mean 'ingress_port'?",
        ),
        ("hdx.h.a = 1;", "'hdx' is not declared; did you mean 'hdr'?"),
        ("truncate();", "'truncate' takes 1 argument(s), but 0 are given"),
        ("mark_to_drop(hdr);", "expected standard_metadata_t, but this is headers_t"),
        ("hdr.h.a = 8w1 / 0;", "division by zero"),
        ("hdr.h = { 1, 2 };", "bytes_t has 4 parts, but 2 values are given"),
        ("hdr.h = { a = 1, b = 2, c = 3, d = 4, e = 5 };", "header 'bytes_t' has no field 'e'"),
        ("hdr.h = { a = 1, b = 2, c = 3 };", "no value is given for field 'd'"),
        ("hdr.h.isValid = true;", "'isValid' is a method: expected '(' after it"),
        ("bit<8> x; bit<8> x;", "'x' is declared twice"),
        ("bit<0x10000> x;", "a width of 65536 is outside 1 to 2048"),
        ("break;", "this is only allowed in a loop"),
        ("return 1;", "a control cannot return a value here"),
        ("1 = hdr.h.a;", "this expression cannot be changed by an assignment"),
        ("verify(true, error.NoError);", "'verify' can only be called in a parser"),
        ("random(hdr.h.a, 8w0, 16w9);", "expected bit<8>, but this is bit<16>"),
        ("switch (hdr.h.a) { 1: { } 1: { } }", "this value has a case already"),
        ("hdr.h.a = error.Nothing;", "error 'Nothing' is not declared"),
        ("hdr.h.a = 8w1 << -1;", "a shift amount cannot be negative"),
        ("NoAction;", "expected '=' or a call, but found ';'"),
        (
            "clone_preserving_field_list(CloneType.I2E, 1, hdr.h.a);",
            "the index of a field list must be known at compile time",
        ),
    ],
)
def test_statements(apply: str, message: str) -> None:
    assert errors(control(apply)) == [message]


@pytest.mark.parametrize(
    ("locals_", "message"),
    [
        ("action a(bit<8> x) { x = 1; }", "'x' cannot be changed by an assignment"),
        (
            "table t { key = { hdr.h.a: exactly; } actions = { NoAction; } }",
            "'exactly' is no match kind; these are: exact, lpm, optional, range, selector, ternary",
        ),
        (
            "table t { key = { hdr.h: exact; } actions = { NoAction; } }",
            "a key must be a number, a bool, an enum or an error, not bytes_t",
        ),
        ("table t { actions = { nowhere; } }", "action 'nowhere' is not declared"),
        (
            "action a() { } table t { actions = { NoAction; } default_action = a(); }",
            "action 'a' is not among the actions of table 't'",
        ),
        (
            "table t { key = { hdr.h.a: exact; } actions = { NoAction; } const entries = { (1, 2): NoAction(); } }",
            "table 't' has 1 keys, but 2 are given",
        ),
        ("register r;", "a variable cannot have type register"),
        ("register<bit<8>>(4, 5) r;", "'register' takes 1 argument(s), but 2 are given"),
        ("counter(hdr.h.a, CounterType.packets) c;", "expected bit<32>, but this is bit<8>"),
        ("action a() { a(); }", "'a' cannot be used in itself: P4 has no recursion"),
        ("action a(in int x) { }", "a parameter of type int cannot have a direction"),
        (
            "action a() { } table t { key = { hdr.h.a: exact; } actions = { @defaultonly a; NoAction; }"
            " const entries = { 3: a(); } }",
            "action 'a' is marked @defaultonly: no entry can have it",
        ),
        (
            "action a() { } table t { actions = { @tableonly a; NoAction; } default_action = a; }",
            "action 'a' is marked @tableonly: it cannot be the default action",
        ),
    ],
)
def test_declarations(locals_: str, message: str) -> None:
    assert errors(control("", locals_)) == [message]


@pytest.mark.parametrize(
    ("keys", "first", "second"),
    [
        ("hdr.h.a: exact; hdr.h.b: exact;", "(1, 1)", "(2, 2)"),
        ("hdr.h.a: lpm;", "1", "2"),
        ("hdr.h.a: lpm; hdr.h.b: exact;", "(1, 1)", "(2, 2)"),
    ],
)
def test_priorities_where_no_two_entries_meet(keys: str, first: str, second: str) -> None:
    """The three tables of p4c's init-entries-error1-bmv2: one error for each."""
    entries = f"entries = {{ priority=10: {first}: NoAction(); priority=9: {second}: NoAction(); }}"
    table = f"table t {{ key = {{ {keys} }} actions = {{ NoAction; }} {entries} }}"
    message = "the entries of table 't' can have no priority: its keys are exact and lpm only"
    assert errors(control("t.apply();", table)) == [message]


@pytest.mark.parametrize("operator", ["/", "%"])
def test_division_in_a_packet(operator: str) -> None:
    """As p4c: what is left when constants are folded and powers of two are shifts and masks."""
    refused = f"'{operator}' cannot be computed in a packet: "
    assert errors(control(f"hdr.h.a = hdr.h.b {operator} hdr.h.c;")) == [f"{refused}the divisor is not known before"]
    assert errors(control(f"hdr.h.a = 9 {operator} hdr.h.c;")) == [f"{refused}the divisor is not known before"]
    assert errors(control(f"hdr.h.a = hdr.h.b {operator} 3;")) == [f"{refused}the divisor is no power of two"]


@pytest.mark.parametrize(
    ("locals_", "apply", "message"),
    [
        (
            "table t { key = { hdr.h.a: lpm; hdr.h.b: lpm; } actions = { NoAction; } }",
            "t.apply();",
            "table 't' has more than one lpm key",
        ),
        (
            "table t { key = { hdr.h.a: exact; } actions = { NoAction; } const entries = { _: NoAction(); } }",
            "t.apply();",
            "an exact key takes a single value",
        ),
        (
            "table t { key = { hdr.h.a: lpm; } actions = { NoAction; } const entries = { 1 &&& 5: NoAction(); } }",
            "t.apply();",
            "the mask of an lpm key must be a prefix",
        ),
        (
            "table t { key = { hdr.h.a: exact; } actions = { NoAction; }"
            " const entries = { 1: NoAction(); 1: NoAction(); } }",
            "t.apply();",
            "an entry with this key is there already",
        ),
        (
            "table t { key = { hdr.h.a + 1: exact; } actions = { NoAction; } }",
            "t.apply();",
            'this key needs a name for the control plane: write @name("...") after it',
        ),
        *(
            (
                f"table t {{ key = {{ hdr.h.a: {kind}; }} actions = {{ NoAction; }}"
                " const entries = { 1 &&& 3: NoAction(); } }",
                "t.apply();",
                f"an {kind} key takes a single value",
            )
            for kind in ("exact", "optional")
        ),
        *(
            (
                f"@name({first}) action a() {{ }} @name({second}) action b() {{ }}"
                " table t { actions = { a; b; } default_action = a; }",
                "t.apply();",
                f"the controller knows another action as '{name}', too: give one of them another @name",
            )
            for first, second, name in (
                ('".foo"', '".foo"', "foo"),
                ('"foo"', '".I.foo"', "I.foo"),
                ('"b"', '".I.b"', "I.b"),
            )
        ),
        ("register<bool>(4) r;", "", "registers hold bit<N> or int<N> on this target, not bool"),
        ("counter(0, CounterType.packets) c;", "", "a size of 0 is outside 1 to 268435456"),
    ],
)
def test_what_the_target_cannot_do(locals_: str, apply: str, message: str) -> None:
    assert errors(control(apply, locals_)) == [message]


def test_parsers_and_controls_are_instantiated_inside_others() -> None:
    text = control("c.apply();").replace("control I(", "control Inner() { apply { } }\nInner() c;\ncontrol I(")
    assert errors(text) == ["a control cannot be instantiated here, only inside a control or parser"]


def test_the_value_of_a_select_case_cannot_be_called_for() -> None:
    parser = PARSER.replace("transition accept;", "transition select(hdr.h.a) { one(): accept; default: reject; }")
    function = "bit<8> one() { return 1; }\n"
    assert errors(control("", parser=function + parser)) == ["a value to match cannot be a call"]


def test_a_program_without_main() -> None:
    assert errors(HEAD) == ["the program has no package instance 'main'"]


def test_a_parser_of_the_wrong_form() -> None:
    assert errors(control("").replace("P(), V()", "V(), V()")) == ["expected Parser, but this is V"]


def test_warnings_do_not_stop_the_compiler() -> None:
    compiled = compile_text(control("hdr.h.a = 300;"))
    assert [item.message for item in compiled.warnings] == ["300 does not fit into bit<8>, it becomes 44"]


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(UserError, match=r"cannot read nowhere\.p4: No such file"):
        compile_p4(Path("nowhere.p4"))


def test_deep_nesting_is_an_error() -> None:
    assert errors(control("hdr.h.a = " + "(" * 500 + "1" + ")" * 500 + ";")) == [
        "the program is nested more than 150 deep"
    ]


def test_long_chains_are_no_problem() -> None:
    compile_text(control("hdr.h.a = " + "+".join(["hdr.h.b"] * 300) + ";"))
    compile_text(control("".join(f"if (hdr.h.a == {n}) {{ hdr.h.b = 1; }} else " for n in range(100)) + "{ }"))


@pytest.mark.parametrize("name", ["Ingress", "Egress", "ComputeChecksum", "V1Switch", "register"])
def test_names_of_v1model_are_taken(name: str) -> None:
    text = control("").replace(
        REST, f"control {name}(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}{REST}"
    )
    with pytest.raises(CompileError) as caught:
        compile_text(text)
    error = caught.value.diagnostics[0]
    assert error.message == f"'{name}' is declared twice"
    assert [(note.message, Path(note.file).name) for note in error.notes] == [
        ("the first declaration is here", "v1model.p4")
    ]
    assert error.hint == "the name is taken by v1model.p4: choose another one"


def test_a_prototype_does_not_announce_a_control() -> None:
    prototype = "control Twice(inout headers_t hdr, inout meta_t meta)"
    text = control("").replace(REST, f"{prototype};\n{prototype} {{ apply {{ }} }}{REST}")
    assert errors(text) == ["'Twice' is declared twice"]


def test_a_header_of_bits_that_are_no_bytes() -> None:
    types = BYTES.replace("bit<8> d;", "bit<3> d;")
    with pytest.raises(CompileError) as caught:
        compile_text(control("", types=types))
    (error,) = caught.value.diagnostics
    assert error.message == "header 'bytes_t' is 27 bits long: this target takes headers of whole bytes"
    assert error.hint == "add 5 bits, for instance a field bit<5> padding"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("key = { hdr.h.a: exact; }", "table 't' has no actions"),
        ("actions = { NoAction; } actions = { }", "property 'actions' is given twice"),
        ("key = { } key = { hdr.h.a: exact; } actions = { NoAction; }", "property 'key' is given twice"),
        ("actions = { NoAction; } size = -4;", "a size of -4 is outside 1 to 268435456"),
        ("actions = { NoAction; } size = 99999999999999;", "a size of 99999999999999 is outside 1 to 268435456"),
    ],
)
def test_properties_of_tables(table: str, message: str) -> None:
    assert errors(control("t.apply();", f"table t {{ {table} }}")) == [message]


@pytest.mark.parametrize(
    ("states", "ends"),
    [
        ("state start { transition start; }", False),
        ("state start { transition a; } state a { transition start; } state b { transition accept; }", False),
        ("state start { transition select(hdr.h.a) { 1: a; default: start; } } state a { transition start; }", False),
        ("state start { transition select(hdr.h.a) { 1: start; } }", True),
        ("state start { transition a; } state a { }", True),
    ],
)
def test_a_parser_that_never_ends(states: str, ends: bool) -> None:
    text = control("", parser=PARSER.replace("state start { packet.extract(hdr.h); transition accept; }", states))
    if ends:
        compile_text(text)
    else:
        assert errors(text) == ["parser 'P' never reaches accept or reject"]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "header_type ethernet_t { fields { dst : 48; } }\n",
            "this program is P4_14: translate it to P4_16, for instance with p4test --std p4-14 --pp NEW.p4 OLD.p4",
            "",
        ),
        (
            "#include <psa.p4>\n",
            "cannot find 'psa.p4' here or in the include directories (option -I); this compiler is for v1model.p4",
            "",
        ),
        (
            control("hdr.h.a[3:0] = hdr.h.b[1:4];"),
            "slice [1:4] is outside the bits of bit<8>",
            "the higher bit comes first",
        ),
        (
            control("").replace("V(), I()", "V(), I"),
            "expected a value, but 'I' is a type",
            "to make one, write I()",
        ),
        (
            control("", before="control Q() { Q() again; apply { again.apply(); } }\n"),
            "'Q' cannot be used in itself: P4 has no recursion",
            "",
        ),
        (
            control("", before="bit<8> f(bit<8> x) { return f(x); }\n"),
            "'f' cannot be used in itself: P4 has no recursion",
            "",
        ),
    ],
)
def test_what_people_mean(text: str, message: str, hint: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_text(text)
    (error,) = [item for item in caught.value.diagnostics if item.severity == "error"]
    assert (error.message, error.hint) == (message, hint)


def test_a_terminal_is_not_told_what_the_source_says() -> None:
    with pytest.raises(CompileError) as caught:
        compile_text("const bit<8> x = \x1b[2J\x07 1;\n")
    assert [char for char in str(caught.value) if char in "\x1b\x07"] == []
    assert "const bit<8> x = \ufffd[2J\ufffd 1;" in str(caught.value)
