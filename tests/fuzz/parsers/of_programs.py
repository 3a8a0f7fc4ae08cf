"""P4 programs, what compilers make of them, and packet tests."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from finsy.proto import p4r

from gradbed.controller.southbound.p4runtime.schema import ProgramSchema, read_p4info
from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.bmv2_json.reader import MalformedProgram
from gradbed.switch.codegen.program import generate
from gradbed.switch.compiler import CompileError, compile_p4
from gradbed.switch.p4runtime.device_config import bmv2_json
from gradbed.switch.p4runtime.status import RequestError, StatusCode
from gradbed.switch.state.pipeline import build_pipeline
from gradbed.switch.stf.parser import read_stf
from tests.fuzz.parsers.target import ROOT, Target, files, of_file
from tests.unit.p4runtime.fake_device import FakeProgram

_SMALL_BYTES = 6000
_P4 = ("tests/p4/*.p4", "tests/unit/controller/*.p4", "cli/templates/program/*.p4", "tests/unit/codegen/p4c/*.p4")


@functools.cache
def _compiled() -> tuple[Any, ...]:
    sources = [path for pattern in _P4 for path in sorted(ROOT.glob(pattern)) if path.stat().st_size < _SMALL_BYTES]
    return tuple(compile_p4(path) for path in sources)


def _compile(path: Path) -> object:
    """What the compiler takes, the switch takes."""
    compiled = compile_p4(path)
    return generate(load_program(compiled.json))


def _load(data: bytes) -> object:
    try:
        document = bmv2_json(data)
    except ValueError as error:
        raise MalformedProgram(str(error)) from None
    return generate(load_program(document))


def _push(data: bytes) -> object:
    """As a controller does, on a device that has the program without building it."""
    config = p4r.ForwardingPipelineConfig.FromString(data)
    try:
        return build_pipeline(config.p4info, config.p4_device_config, FakeProgram)
    except RequestError as error:
        assert error.code != StatusCode.INTERNAL, error
        raise


def _pushed() -> list[bytes]:
    return [
        p4r.ForwardingPipelineConfig(p4info=each.p4info, p4_device_config=each.json_text.encode()).SerializeToString()
        for each in _compiled()
    ]


def _decode_errors() -> tuple[type[Exception], ...]:
    from google.protobuf.message import DecodeError

    return (RequestError, DecodeError)


TARGETS = {
    "p4": Target(
        of_file(_compile, "program.p4"),
        lambda: files(*_P4, most_bytes=_SMALL_BYTES),
        (CompileError,),
        lines=True,
        mutants=15,
    ),
    "bmv2-json": Target(
        _load,
        lambda: [json.dumps(each.json).encode() for each in _compiled()],
        (MalformedProgram,),
        mutants=40,
    ),
    "p4info": Target(
        of_file(lambda path: ProgramSchema(read_p4info(path)), "program.p4info.txt"),
        lambda: [each.p4info_text.encode() for each in _compiled()],
    ),
    "pipeline": Target(_push, _pushed, _decode_errors(), mutants=60),
    "stf": Target(of_file(read_stf, "test.stf"), lambda: files("tests/p4/stf/**/*.stf", "cli/templates/**/*.stf")),
}
