"""Registers of BMv2 by its command line, for which a stand-in answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.controller.southbound.p4runtime.p4runtime import ThriftReader
from tests.unit.stf import fake_bmv2


def test_what_bmv2_cannot_tell_is_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its Thrift answers 2^63 - 1 for every number from there on."""
    fake_bmv2.install(tmp_path)
    monkeypatch.setenv("GRADBED_BMV2", str(tmp_path / "simple_switch_grpc"))
    reader = ThriftReader()
    try:
        assert reader.registers("s1", 9090, "I.cells") == [0, 9, None]
    finally:
        reader.close()
