"""Captures of a trial: which links and hosts, and where the files are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

from gradbed.experiments.results.run_folder import CAPTURES
from gradbed.topo.selectors import Selection, select_all

if TYPE_CHECKING:
    from gradbed.emulation.backend import NetworkBackend

SUFFIX = ".pcapng"


def capture_words(value: Any) -> Any:
    """Split the words of a study file that are no list yet."""
    return tuple(word.strip() for word in value.split(",")) if isinstance(value, str) else value


CaptureOrder = Annotated[bool | tuple[str, ...], BeforeValidator(capture_words)]
"""Links (A-B), hosts, or all, which are all links; True: the hosts that the system names, such as its server."""


def ordered(order: CaptureOrder, backend: NetworkBackend, main_hosts: Sequence[str]) -> tuple[Selection, ...]:
    """Return what an order selects.

    Raises:
        UserError: The network does not have it.
    """
    if isinstance(order, bool):
        return select_all(backend.topology, main_hosts if order else ())
    return select_all(backend.topology, order)


@contextmanager
def capturing(backend: NetworkBackend, wanted: Sequence[Selection], folder: Path) -> Iterator[None]:
    """Capture each selection to NAME.pcapng in the subfolder pcap.

    Raises:
        UserError: A file could not be written.
    """
    files = [folder / CAPTURES / f"{each.name}{SUFFIX}" for each in wanted]
    if files:
        (folder / CAPTURES).mkdir(exist_ok=True)
    for file, each in zip(files, wanted, strict=True):
        backend.start_capture(file, each)
    yield
    for file in files:
        backend.stop_capture(file)
