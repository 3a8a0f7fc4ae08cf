"""Structs, constants and functions that Python takes from C headers are what the compiler makes of them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from gradbed.common.c_headers import CHeaders, DeclaredCDLL, DeclaredPyDLL
from gradbed.common.c_library import shared_library
from gradbed.common.errors import UserError
from gradbed.hosts.agents.frames.counts import FRAMES_HEADERS, FRAMES_SOURCE
from gradbed.hosts.systems.aggregation.worker import library as worker_library
from gradbed.switch.codegen import layout
from gradbed.switch.engine import queue_pairs
from gradbed.switch.runtime.library import ENGINE_HEADERS, RUNTIME_DIR, STATE_HEADERS
from gradbed.switch.state.abi import state_library
from tools.bench.switch import packet_io

_WORKER = Path(worker_library.__file__).parent
_INCLUDES = (RUNTIME_DIR, _WORKER, _WORKER.parents[2] / "transport", FRAMES_SOURCE.parent)


def _compiled(headers: Sequence[Path], expressions: Sequence[str], includes: Sequence[Path] = _INCLUDES) -> list[int]:
    """What expressions are for the compiler."""
    lines = [f'#include "{path}"' for path in headers]
    values = ", ".join(f"(uint64_t)({each})" for each in expressions)
    text = "\n".join(
        [*lines, "#include <stddef.h>", "#include <stdint.h>", f"const uint64_t values[] = {{{values}}};"]
    )
    library = shared_library("test-c-headers", (), text, include_dirs=includes)
    return list((ctypes.c_uint64 * len(expressions)).in_dll(ctypes.CDLL(str(library)), "values"))


def _layout(name: str, struct: type[ctypes.Structure]) -> tuple[list[str], list[int]]:
    """C's expressions for the size of a struct and the places of its members, and ctypes's values of them."""
    members = [field[0] for field in struct._fields_]
    expressions = [f"sizeof(struct {name})", *(f"offsetof(struct {name}, {each.rstrip('_')})" for each in members)]
    return expressions, [ctypes.sizeof(struct), *(getattr(struct, each).offset for each in members)]


@pytest.mark.parametrize(
    ("headers", "declared"),
    [
        pytest.param(STATE_HEADERS, {"gb_switch", "gb_count", "gb_register", "gb_requests"}, id="state"),
        pytest.param(ENGINE_HEADERS, {"gb_link_model", "gb_stream_options", "gb_collective"}, id="engine"),
        pytest.param(FRAMES_HEADERS, {"gb_word"}, id="frames"),
        pytest.param(worker_library.HEADERS, {"gb_sender", "gb_worker"}, id="worker"),
        pytest.param(packet_io.DECLARATIONS, {"load", "outcome"}, id="bench"),
    ],
)
def test_layouts_are_those_of_the_compiler(headers: CHeaders, declared: set[str]) -> None:
    assert declared <= headers.structures.keys()
    expressions, offsets = [], []
    for name, struct in headers.structures.items():
        in_c, in_python = _layout(name, struct)
        expressions += in_c
        offsets += in_python
    assert dict(zip(expressions, _compiled(headers.paths, expressions), strict=True)) == dict(
        zip(expressions, offsets, strict=True)
    )


def test_modules_that_declare_structs_were_loaded() -> None:
    """So the layouts above are of all of them."""
    assert queue_pairs.CollectiveStruct is ENGINE_HEADERS.structure("gb_collective")
    assert tuple(STATE_HEADERS.members("gb_requests")) == layout.REQUEST_FIELDS


def test_a_field_that_a_header_gets_is_there_in_python(tmp_path: Path) -> None:
    original = (RUNTIME_DIR / "engine/engine.h").read_text()
    at = "    uint32_t queue_packets;"
    assert original.count(at) == 1
    changed = original.replace(at, f"    uint16_t colour[GB_PRIORITIES + 1], depth;\n{at}")
    header = tmp_path / "engine.h"
    header.write_text(changed.replace("#define GB_PRIORITIES 8 ", "#define GB_PRIORITIES 16 "))
    struct = CHeaders(header, uses=(STATE_HEADERS,)).structure("gb_link_model")
    new, old = (
        [field[0] for field in struct._fields_],
        [field[0] for field in ENGINE_HEADERS.structure("gb_link_model")._fields_],
    )
    before = old.index("queue_packets")
    assert new == [*old[:before], "colour", "depth", *old[before:]]
    assert struct.colour.size == 2 * 17
    expressions, offsets = _layout("gb_link_model", struct)
    assert _compiled([header], expressions) == offsets


_HEADER = """
/* struct comment { int no_struct; }; */
#define LENGTH (UINT64_C(1) << 3)   // eight
#define DOUBLE (2 * LENGTH + \\
                1u)
enum colour { RED = 4, GREEN, BLUE = GREEN * 2, };
struct inner { uint8_t low, high; };
struct outer {
    const char *name;
    struct inner pair, *others[2];
    struct inner **lists;
    enum colour colour;
    bool is_open;
    uint16_t cells[DOUBLE][2];
    struct named { int32_t x; } *of_it, copy;
    void (*call)(struct outer *, int);
    int pass;
    double tail[];
};
static inline int not_offered(int a) { return a; }
struct inner sum(const struct outer *, uint64_t words[2], const uint8_t *data, bool);
int count_of(void);
"""


@pytest.fixture
def headers(tmp_path: Path) -> CHeaders:
    path = tmp_path / "some.h"
    path.write_text("#include <stdbool.h>\n#include <stdint.h>\n" + _HEADER)
    return CHeaders(path)


def test_constants(headers: CHeaders) -> None:
    names = ("LENGTH", "DOUBLE", "RED", "GREEN", "BLUE")
    assert [headers.constant(name) for name in names] == [8, 17, 4, 5, 10]
    assert _compiled(headers.paths, names) == [8, 17, 4, 5, 10]
    with pytest.raises(KeyError, match="OTHER"):
        headers.constant("OTHER")


def test_members(headers: CHeaders) -> None:
    struct = headers.structure("outer")
    assert headers.members("outer")["lists"] is ctypes.POINTER(ctypes.c_void_p)
    expressions, offsets = _layout("outer", struct)
    assert _compiled(headers.paths, expressions) == offsets
    assert [field[0] for field in struct._fields_][-2:] == ["pass_", "tail"]
    with pytest.raises(KeyError, match=r"no struct comment in some\.h"):
        headers.structure("comment")


def test_pointers_to_declared_structs_are_typed(headers: CHeaders) -> None:
    @headers.declare("inner")
    class Inner(ctypes.Structure):
        pass

    members = headers.members("outer")
    assert members["pair"] is Inner
    assert members["others"] is ctypes.POINTER(Inner) * 2
    assert members["of_it"] is ctypes.c_void_p
    with pytest.raises(ValueError, match="struct named is declared after another one that contains it"):
        headers.declare("named")(type("Named", (ctypes.Structure,), {}))


def test_functions(headers: CHeaders, tmp_path: Path) -> None:
    class sum:
        restype: object
        argtypes: tuple[object, ...]

    class count_of(sum):
        pass

    class Library:
        sum: type[sum]
        count_of: type[sum]

        def __getitem__(self, name: str) -> object:
            return {"sum": sum, "count_of": count_of}[name]

    library = Library()
    headers.bind(library)  # type: ignore[arg-type]
    assert library.sum.restype is headers.structure("inner")
    pointer = ctypes.c_void_p
    assert library.sum.argtypes == (pointer, pointer, pointer, ctypes.c_bool)
    assert (library.count_of.restype, library.count_of.argtypes) == (ctypes.c_int, ())


_TWO_FUNCTIONS = """
#include <stdint.h>
uint64_t declared(void) { return (UINT64_C(1) << 40) + 7; }
uint64_t forgotten(void) { return (UINT64_C(1) << 40) + 7; }
"""


@pytest.mark.parametrize("loaded", [DeclaredCDLL, DeclaredPyDLL])
def test_only_functions_that_a_header_declares_are_called(loaded: type[ctypes.CDLL], tmp_path: Path) -> None:
    """ctypes would take the result of another one for an int: 7."""
    header = tmp_path / "some.h"
    header.write_text("uint64_t declared(void);\n")
    library = loaded(str(shared_library("test-c-headers", (), _TWO_FUNCTIONS)))
    CHeaders(header).bind(library)
    assert library.declared() == (1 << 40) + 7
    with pytest.raises(AttributeError, match=r"^no header that is bound to the library declares forgotten$"):
        library.forgotten()
    header.write_text("uint64_t missing(void);\n")
    with pytest.raises(UserError, match=r"^no C file defines missing, which some\.h declares$"):
        CHeaders(header).bind(library)


def test_the_headers_of_all_externs_are_bound() -> None:
    assert set((RUNTIME_DIR / "externs").glob("*.h")) <= set(STATE_HEADERS.paths)
    with pytest.raises(AttributeError, match=r"declares gb_count_min_sketch_estimate$"):
        _ = state_library().gb_count_min_sketch_estimate


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    CHeaders(tmp_path / "none.h")
    with pytest.raises(OSError, match=os.strerror(2)):
        CHeaders(tmp_path / "none.h").constant("A")
