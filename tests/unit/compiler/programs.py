"""Short ways to write whole v1model programs in tests."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gradbed.switch.compiler import Compiled, compile_p4
from tests.unit.compiler.bmv2_model import Bmv2Model

HEAD = "#include <core.p4>\n#include <v1model.p4>\n"
BYTES = """
header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct headers_t { bytes_t h; bytes_t g; }
struct meta_t { bit<8> x; bit<16> y; }
"""
PARSER = """
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.h); transition accept; }
}
"""
REST = """
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); packet.emit(hdr.g); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def control(apply: str, locals_: str = "", types: str = BYTES, parser: str = PARSER, before: str = "") -> str:
    """A program with this ingress. Its packet's first four bytes are hdr.h; hdr.g comes behind if it is valid."""
    ingress = (
        "control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {\n"
        f"{locals_}\napply {{\n{apply}\n}}\n}}\n"
    )
    return HEAD + types + before + parser + ingress + REST


def compile_text(text: str, **options: object) -> Compiled:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "test.p4"
        path.write_text(text)
        return compile_p4(path, **options)  # type: ignore[arg-type]


def model(text: str) -> Bmv2Model:
    return Bmv2Model(compile_text(text).json)


def run(apply: str, data: bytes = bytes(4), locals_: str = "", **options: str) -> bytes:
    """What comes out for one packet."""
    return model(control(apply, locals_, **options)).run(data)[0]
