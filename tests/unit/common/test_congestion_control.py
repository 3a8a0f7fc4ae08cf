"""Congestion controls of other packages, as senders in C call them."""

from __future__ import annotations

import pytest

from gradbed.common import congestion_control as module
from gradbed.common.congestion_control import WindowCallbacks
from gradbed.common.errors import UserError
from gradbed.hosts.systems.aggregation.worker.sender import Sender


class HalfPackets:
    """A control whose window is no whole number, from the first on."""

    window = 2.5

    def acknowledged(self, number: int, next_number: int, *, marked: bool, limiting: bool) -> None:
        self.window += 0.5

    def lost(self, number: int, next_number: int) -> None:
        self.window /= 2


@pytest.fixture
def _controls(monkeypatch: pytest.MonkeyPatch) -> None:
    controls = {"half": HalfPackets, "none": type("NoWindow", (), {})}
    monkeypatch.setattr(module, "load_control", lambda name, maximum: controls[name]())


@pytest.mark.usefixtures("_controls")
def test_a_window_that_begins_with_a_fraction_is_rounded_down() -> None:
    callbacks = WindowCallbacks("half", 10)
    assert callbacks.window == 2 and isinstance(callbacks.window, int)
    sender = Sender(window_fragments=10, min_timeout_us=1000, congestion_control="half")
    sender.begin(1, 10, 0)
    assert len(sender.transmissions(0)) == 2


@pytest.mark.usefixtures("_controls")
def test_a_control_whose_first_window_fails_is_one_line() -> None:
    with pytest.raises(UserError, match="the congestion control 'none' failed: "):
        WindowCallbacks("none", 10)
