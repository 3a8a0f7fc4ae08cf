"""Standard metadata and requests of a packet, in the order of their structs in switch/runtime/program.h."""

from __future__ import annotations

STANDARD_FIELDS = (
    "ingress_port",
    "egress_spec",
    "egress_port",
    "instance_type",
    "packet_length",
    "enq_timestamp",
    "enq_qdepth",
    "deq_timedelta",
    "deq_qdepth",
    "ingress_global_timestamp",
    "egress_global_timestamp",
    "mcast_grp",
    "egress_rid",
    "checksum_error",
    "parser_error",
    "priority",
)
"""struct gb_standard_metadata: one uint64_t each, named as in v1model.p4."""

REQUEST_FLAGS = ("clone", "resubmit", "recirculate", "truncate")
REQUEST_NUMBERS = (
    "clone_session",
    "clone_field_list",
    "resubmit_field_list",
    "recirculate_field_list",
    "truncate_length_bytes",
)
REQUEST_FIELDS = REQUEST_FLAGS + REQUEST_NUMBERS
"""struct gb_requests: flags are uint8_t, numbers uint32_t."""
