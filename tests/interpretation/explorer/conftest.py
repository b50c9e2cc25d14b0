"""A real browser, in which pages may neither fail nor fetch anything."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def tab(chromium: Any) -> tuple[Any, list[str]]:
    """One tab for all tests, and what went wrong in it: errors, dialogs, requests."""
    trouble: list[str] = []
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    page.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: (trouble.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    own = ("file:", "data:", "blob:", "about:")
    page.on("request", lambda request: None if request.url.startswith(own) else trouble.append(request.url))
    return page, trouble


@pytest.fixture
def visit(tab: tuple[Any, list[str]]) -> Iterator[Callable[..., Any]]:
    """Opens a file. The test fails at its end if anything went wrong."""
    page, trouble = tab

    def open_page(path: Path, fragment: str = "", *, color_scheme: str = "light") -> Any:
        page.emulate_media(color_scheme=color_scheme)
        page.goto("about:blank")
        page.mouse.move(0, 0)
        page.goto(path.as_uri() + (f"#{fragment}" if fragment else ""))
        page.wait_for_selector("[data-ready=true]", timeout=20_000)
        return page

    trouble.clear()
    yield open_page
    assert not trouble
