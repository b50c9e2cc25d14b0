"""A real browser, and pages opened in it that may neither fail nor speak to anyone."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Opens a file. At the end the test fails if a page reported an error, opened a dialog or asked for anything."""
    trouble: list[str] = []
    contexts: list[Any] = []

    def open_page(path: Path, fragment: str = "", **options: Any) -> Any:
        context = chromium.new_context(viewport={"width": 1280, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: trouble.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: (trouble.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        own = ("file:", "data:", "blob:")
        page.on("request", lambda request: None if request.url.startswith(own) else trouble.append(request.url))
        page.goto(path.as_uri() + (f"#{fragment}" if fragment else ""))
        page.wait_for_selector("[data-ready=true]", timeout=20_000)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not trouble
