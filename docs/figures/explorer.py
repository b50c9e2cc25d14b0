"""Takes a picture of a page: python docs/figures/explorer.py page.html picture.png [--fragment "view=ribbons"].

That of the README is of the demo: `make demo`, then
python docs/figures/explorer.py runs/demo/attention.html docs/images/explorer.png
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def screenshot(
    page: Path,
    picture: Path,
    *,
    fragment: str = "",
    width: int = 1180,
    height: int = 720,
    dark: bool = False,
    scale: int = 2,
) -> None:
    """Opens a page that `write_page` wrote in Chromium, and saves what is seen."""
    from playwright.sync_api import sync_playwright  # from the `dev` extra

    browser_path = next(filter(None, map(shutil.which, NAMES)), None)
    if browser_path is None:
        raise SystemExit(f"No Chromium was found; looked for {', '.join(NAMES)}.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=list(ARGUMENTS))
        tab = browser.new_page(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            device_scale_factor=scale,
        )
        tab.goto(page.resolve().as_uri() + (f"#{fragment}" if fragment else ""))
        tab.wait_for_selector("[data-ready=true]")
        tab.wait_for_timeout(500)  # small pictures are drawn one after another
        picture.parent.mkdir(parents=True, exist_ok=True)
        tab.screenshot(path=picture)
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--fragment", default="", help="what to show, as it stands after # in the address")
    parser.add_argument("--width", type=int, default=1180)
    parser.add_argument("--height", type=int, default=720)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--scale", type=int, default=2, help="pixels of the picture for each pixel of the page")
    given = parser.parse_args()
    screenshot(**vars(given))


if __name__ == "__main__":
    main()
