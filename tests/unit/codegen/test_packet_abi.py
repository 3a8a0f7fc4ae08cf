"""What trace.c says of packets, and what Python reads in its records."""

from __future__ import annotations

import re

from gradbed.switch.codegen import layout
from gradbed.switch.runtime.library import RUNTIME_DIR


def test_requests_as_traced() -> None:
    """trace.c puts requests into records one by one."""
    source = (RUNTIME_DIR / "trace.c").read_text()
    function = re.search(r"static void request_words\(.*?\n}", source, re.DOTALL)
    assert function is not None
    assert tuple(re.findall(r"r->(\w+)", function[0])) == layout.REQUEST_FIELDS
