"""A headless Chromium that cannot reach any network, for the tests and the screenshots of the explorer's page."""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


def why_not() -> str | None:
    """The reason why no browser can be started here, or None."""
    if not CHROMIUM or not DRIVER:
        return "Chromium and chromedriver are not installed (apt-get install chromium chromium-driver)"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed"
    return None


@contextlib.contextmanager
def _profile() -> Iterator[str]:
    """A new folder; the browser may still write to it while it is deleted."""
    folder = tempfile.mkdtemp()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def chromium(width: int = 1280, height: int = 900) -> Iterator:
    """A driver of a browser with a profile of its own, which is deleted afterwards."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    # Every request to the browser would fill the report of a failed test.
    for name in ("selenium", "urllib3"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with _profile() as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            f"--window-size={width},{height}",
            f"--user-data-dir={profile}",
        ):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        try:
            yield driver
        finally:
            driver.quit()


def problems(driver) -> list[str]:
    """What the browser has written to its console since the last call."""
    return [entry["message"] for entry in driver.get_log("browser")]


def address(path: Path, **choice) -> str:
    """The address of a page, with the sentence and the view that it opens."""
    return path.resolve().as_uri() + "#" + "&".join(f"{key}={value}" for key, value in choice.items())
