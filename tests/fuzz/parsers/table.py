"""All targets, by name."""

from __future__ import annotations

from tests.fuzz.parsers import of_files, of_packets, of_programs, of_requests, of_traces

TARGETS = {
    **of_programs.TARGETS,
    **of_files.TARGETS,
    **of_packets.TARGETS,
    **of_requests.TARGETS,
    **of_traces.TARGETS,
}
