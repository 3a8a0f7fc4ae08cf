"""What `gradbed new` gives people, compiled by each compiler, is taken by each switch."""

from __future__ import annotations

from pathlib import Path

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from gradbed.switch.p4lang.p4c import find_p4c
from gradbed.switch.program_cache import compiled_files
from tests.emulation.sandboxed import in_sandbox
from tests.p4.differential import make_interfaces
from tests.p4.switch_under_test import on_every_pair, serve_bmv2, serve_gradbed
from tests.unit.p4runtime.client import Client

pytestmark = pytest.mark.root

TEMPLATES = sorted((Path(__file__).resolve().parents[2] / "cli" / "templates" / "program").glob("*.p4"))
PORTS = 3


@on_every_pair
@in_sandbox
def test_switches_take_all_templates(kind: str, compiler: str, tmp_path: Path) -> None:
    make_interfaces()
    with (serve_gradbed if kind == "gradbed" else serve_bmv2)(PORTS, tmp_path) as address:
        client = Client(address)
        stream = client.become_primary()
        for program in TEMPLATES:
            files = compiled_files(program, {}, find_p4c() if compiler == "p4c" else None)
            info = text_format.Parse(files.p4info.read_text(), p4i.P4Info())
            pipeline = p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=files.json.read_bytes())
            client.push(pipeline=pipeline)
            assert client.get_pipeline().config.p4info == info, program
        stream.close()
        client.close()
    assert TEMPLATES
