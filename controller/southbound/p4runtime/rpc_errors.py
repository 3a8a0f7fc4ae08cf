"""What a failed P4Runtime call says, in one line."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from finsy.proto import rpc_code

from gradbed.switch.p4runtime.values.status import update_errors

_AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)


def is_away(error: grpc.aio.AioRpcError) -> bool:
    """Whether the other side did not answer, as opposed to answering that it will not."""
    return error.code() in _AWAY


def describe(error: grpc.aio.AioRpcError, what: str, subjects: Sequence[str] = ()) -> str:
    """`what` failed and why. For a Write, subjects names each update; the first that failed is shown."""
    failed = [
        (index, item)
        for index, item in enumerate(update_errors(error.trailing_metadata()))
        if item.canonical_code != rpc_code.OK
    ]
    if failed:
        index, item = failed[0]
        subject = f" ({subjects[index]})" if index < len(subjects) else ""
        more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        return _one_line(f"{what}{subject}: {rpc_code.Code.Name(item.canonical_code)} {item.message}{more}")
    return _one_line(f"{what}: {error.code().name} {error.details() or ''}")


def _one_line(text: str) -> str:
    return " ".join(text.split())
