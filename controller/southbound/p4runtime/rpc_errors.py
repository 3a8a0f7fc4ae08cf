"""What a failed P4Runtime call says, in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
from finsy.proto import p4r, rpc_code, rpc_status

_DETAILS_KEY = "grpc-status-details-bin"
_AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)


def is_away(error: grpc.aio.AioRpcError) -> bool:
    """Whether the other side did not answer, as opposed to answering that it will not."""
    return error.code() in _AWAY


def update_errors(error: grpc.aio.AioRpcError) -> list[Any]:
    """The p4.v1.Error of every update of a failed Write, in the order of the updates; empty if none were sent."""
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS_KEY:
            status = rpc_status.Status.FromString(value)
            errors = []
            for detail in status.details:
                item = p4r.Error()
                if detail.Unpack(item):
                    errors.append(item)
            return errors
    return []


def describe(error: grpc.aio.AioRpcError, what: str, subjects: Sequence[str] = ()) -> str:
    """`what` failed and why. For a Write, subjects names each update; the first that failed is shown."""
    failed = [(index, item) for index, item in enumerate(update_errors(error)) if item.canonical_code != rpc_code.OK]
    if failed:
        index, item = failed[0]
        subject = f" ({subjects[index]})" if index < len(subjects) else ""
        more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        return _one_line(f"{what}{subject}: {rpc_code.Code.Name(item.canonical_code)} {item.message}{more}")
    return _one_line(f"{what}: {error.code().name} {error.details() or ''}")


def _one_line(text: str) -> str:
    return " ".join(text.split())
