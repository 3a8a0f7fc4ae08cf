"""What a request can fail with, and how that travels in a gRPC status."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import IntEnum
from functools import partial
from typing import Any

import grpc
from finsy.proto import p4r, rpc_status
from google.protobuf.message import DecodeError

from gradbed.switch.device import EntryExists, StateFull, StillReferenced

# A client refuses trailing metadata beyond a limit of its own and then loses every error of the batch. These are the
# limits of gRPC's default and of finsy; what an error takes without its text; and what else the metadata hold.
CLIENT_LIMITS_BYTES = (8 * 1024, 64 * 1024)
ERROR_BYTES = 44
OTHER_METADATA_BYTES = 1024

LOG = logging.getLogger(__name__)

DETAILS_KEY = "grpc-status-details-bin"


class StatusCode(IntEnum):
    """The canonical codes of google.rpc.Code that this server uses."""

    OK = 0
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


GRPC_CODES = {code: status for status in grpc.StatusCode for code in (status.value[0],)}


class RequestError(Exception):
    """A request, or one update or query of a batch, that fails with a canonical code and one line of text."""

    def __init__(self, code: StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class BatchError(Exception):
    """A batch of which some elements failed: one entry per element, None for those that succeeded."""

    def __init__(self, message: str, outcomes: Sequence[RequestError | None]) -> None:
        super().__init__(message)
        self.message = message
        self.outcomes = outcomes

    def details(self) -> bytes:
        """Return the google.rpc.Status with one p4.v1.Error per element, in the order of the batch.

        P4Runtime specification 1.4, "Error Reporting".
        """
        status = rpc_status.Status(code=StatusCode.UNKNOWN, message=self.message)
        texts_bytes = _room_for_texts(len(self.outcomes))
        for outcome in self.outcomes:
            error = p4r.Error()
            if outcome is not None:
                error.canonical_code = outcome.code
                texts_bytes -= len(outcome.message.encode())
                if texts_bytes >= 0:
                    error.message = outcome.message
            status.details.add().Pack(error)
        details: bytes = status.SerializeToString()
        return details


def update_errors(metadata: Iterable[tuple[str, Any]] | None) -> list[Any]:
    """Return the p4.v1.Error of every update of a failed Write, in their order, from its trailing metadata.

    Empty if none were sent.
    """
    sent = next((value for key, value in metadata or () if key == DETAILS_KEY), b"")
    errors = []
    for detail in rpc_status.Status.FromString(sent).details:
        error = p4r.Error()
        if detail.Unpack(error):
            errors.append(error)
    return errors


def raise_failures(outcomes: Sequence[RequestError | None], what: str) -> None:
    """Raise BatchError if some of a batch of updates or requests failed."""
    if any(outcomes):
        failed = sum(outcome is not None for outcome in outcomes)
        raise BatchError(f"{failed} of {len(outcomes)} {what} failed", outcomes)


def _room_for_texts(error_count: int) -> int:
    """Return how many bytes texts may take so that the codes still reach a client.

    Later texts are left out before codes are.
    """
    needed = error_count * ERROR_BYTES + OTHER_METADATA_BYTES
    return next((limit - needed for limit in CLIENT_LIMITS_BYTES if needed < limit), 0)


invalid = partial(RequestError, StatusCode.INVALID_ARGUMENT)
not_found = partial(RequestError, StatusCode.NOT_FOUND)
denied = partial(RequestError, StatusCode.PERMISSION_DENIED)
out_of_range = partial(RequestError, StatusCode.OUT_OF_RANGE)
exists_already = partial(RequestError, StatusCode.ALREADY_EXISTS)
exhausted = partial(RequestError, StatusCode.RESOURCE_EXHAUSTED)
failed_precondition = partial(RequestError, StatusCode.FAILED_PRECONDITION)
unimplemented = partial(RequestError, StatusCode.UNIMPLEMENTED)

_OF_A_DEVICE: tuple[tuple[type[Exception], Callable[[str], RequestError]], ...] = (
    (EntryExists, exists_already),
    (StateFull, exhausted),
    (StillReferenced, failed_precondition),
    (IndexError, out_of_range),
    (ValueError, invalid),
    (MemoryError, exhausted),
)


def from_exception(error: Exception) -> RequestError:
    """Return the error for what a device raised (see gradbed.switch.device), or for a fault of this server."""
    if isinstance(error, RequestError):
        return error
    text = " ".join(str(error).split()) or type(error).__name__
    for kind, failure in _OF_A_DEVICE:
        if isinstance(error, kind):
            return failure(text)
    LOG.error("unexpected %s", type(error).__name__, exc_info=error)
    return RequestError(StatusCode.INTERNAL, f"{type(error).__name__}: {text}")


# ---- Requests that are no protobuf messages of their kind ----


class MalformedRequests(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Passes the error on in place of the request. By itself gRPC for Python answers UNKNOWN and names a class."""

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        parse = handler and handler.request_deserializer
        if parse is None:
            return handler
        name = parse(b"").DESCRIPTOR.full_name

        def parse_or_say(body: bytes) -> Any:
            try:
                return parse(body)
            except DecodeError:
                return RequestError(StatusCode.INTERNAL, f"the request is no {name}")

        return handler._replace(request_deserializer=parse_or_say)
