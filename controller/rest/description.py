"""How the REST interface describes itself: Swagger UI at /docs, from files of a package, so without the internet."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from fastapi_offline import FastAPIOffline


def documented_app(title: str, description: str) -> FastAPI:
    """An application without endpoints yet, whose / leads to its description."""
    app = FastAPIOffline(title=title, description=description)

    @app.get("/", include_in_schema=False)
    def show_description() -> RedirectResponse:
        return RedirectResponse("/docs")

    return app


def example(value: Any, media_type: str = "application/json", status: int = 200) -> dict[int | str, dict[str, Any]]:
    """What an endpoint may answer, for its parameter `responses`."""
    return {status: {"content": {media_type: {"example": value}}}}
