"""The description of the REST interface, as a browser without the internet shows it."""

from __future__ import annotations

import pytest

from gradbed.controller.core.controller import Controller
from gradbed.controller.rest.interface import create_app
from gradbed.controller.rest.server import RestServer, listening_socket
from gradbed.topo.generators import star
from tests.browser.browser import BROWSER, WHY_NOT, dom
from tests.unit.controller.fake_southbound import FakeSouthbound
from tests.unit.controller.lamps import LAMPS

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(BROWSER is None, reason=WHY_NOT)]


def test_every_endpoint_is_on_the_page() -> None:
    app = create_app(Controller(star(2), FakeSouthbound(["s1"]), [LAMPS], {"s1": "lamps"}))
    listener = listening_socket("127.0.0.1:0")
    server = RestServer(app, [listener])
    server.start()
    try:
        page = dom(f"http://127.0.0.1:{listener.getsockname()[1]}/", "[data-path]")
    finally:
        server.stop()
    paths = app.openapi()["paths"]
    assert len(paths) >= 6
    for path, methods in paths.items():
        assert page.count(f'data-path="{path}"') == len(methods), path
