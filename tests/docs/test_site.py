"""The site is built without a warning, its links lead somewhere, and it asks no other server for anything."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from tests.docs.pages import ROOT, blocks_of, name_of, pages
from tests.explorer.browser import chromium, why_not

pytest.importorskip("mkdocs", reason="the site is built by mkdocs-material: pip install tree-fairseq[dev]")
pytest.importorskip("material", reason="the site is built by mkdocs-material: pip install tree-fairseq[dev]")
html = pytest.importorskip("lxml.html", reason="reads the pages that were built")

# Elements that a browser fetches when it opens a page, and the attribute that names the file.
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
NOT_FETCHED = {"canonical", "prev", "next", "alternate", "edit"}
REPOSITORY = "https://git.example/people/tree-fairseq"
CLONED_FROM = {
    "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "remote.origin.url",
    "GIT_CONFIG_VALUE_0": "git@git.example:people/tree-fairseq.git",
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)],
        cwd=ROOT, env={**os.environ, **CLONED_FROM, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return place


@pytest.fixture(scope="module")
def documents(site):
    return {path: html.parse(str(path)).getroot() for path in sorted(site.rglob("*.html"))}


def test_every_page_is_in_the_site_and_in_its_navigation(site, documents):
    navigation = str(yaml.safe_load(re.sub(r"!!python/name:\S+", "x", (ROOT / "mkdocs.yml").read_text()))["nav"])
    for page in pages():
        uri = name_of(page)
        uri = uri[len("docs/") :] if uri.startswith("docs/") else uri
        assert f"'{uri}'" in navigation, f"add {uri} to nav in mkdocs.yml"
    recipes = {path.parent.name for path in ROOT.glob("examples/*/README.md")}
    assert recipes <= {path.parent.name for path in documents if "examples" in path.parts}


def targets(document: object) -> Iterator[str]:
    for element in document.iter("a"):
        if element.get("href"):
            yield element.get("href")


def test_links_and_anchors_lead_somewhere(site, documents):
    anchors = {
        path: {element.get("id") for element in document.iter() if element.get("id")}
        for path, document in documents.items()
    }
    broken, seen = [], 0
    for path, document in documents.items():
        if path.name == "404.html":  # its links start at the root of a server
            continue
        for target in targets(document):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            seen += 1
            place = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = place / "index.html" if place.is_dir() else place
            if not place.exists() or (parts.fragment and unquote(parts.fragment) not in anchors.get(place, {""})):
                broken.append(f"{path.relative_to(site)}: {target}")
    assert seen > 500 and not broken, broken


def test_no_page_asks_another_server(site, documents):
    asked = []
    for path, document in documents.items():
        for element in document.iter(*FETCHED):
            target = element.get(FETCHED[element.tag]) or ""
            if element.tag == "link" and element.get("rel") in NOT_FETCHED:
                continue
            if urlsplit(target).netloc or (element.get("srcset") or "").startswith("http"):
                asked.append(f"{path.relative_to(site)}: {target}")
        styles = " ".join([element.text or "" for element in document.iter("style")])
        asked += re.findall(r"(?:url\(|@import\s+)[\"']?(?:https?:)?//[^)\s]+", styles)
    for sheet in site.rglob("*.css"):
        asked += re.findall(r"(?:url\(|@import\s+)[\"']?(?:https?:)?//[^)\s]+", sheet.read_text(encoding="utf-8"))
    assert not asked, asked


def test_equations_are_pictures_with_their_text(site, documents):
    for page in pages():
        written = [" ".join(block.text.split()) for block in blocks_of(page) if block.language == "math"]
        if written:
            shown = documents[site / page.relative_to(ROOT / "docs").with_suffix(".html")].find_class("equation")
            assert [equation.get("aria-label") for equation in shown] == written
            assert all(equation.find("svg") is not None for equation in shown)


def test_docstrings_are_shown_as_text(site, documents):
    for path in (site / "api").glob("*.html"):
        text = documents[path].find_class("md-content")[0].text_content()
        assert not re.search(r":(class|func|meth|data):|={9}|>>>", text), path


def test_pictures_exist_and_have_a_text(documents):
    for path, document in documents.items():
        for element in document.iter("img"):
            source = element.get("src")
            if source.startswith("data:"):
                continue
            assert path.name == "404.html" or (path.parent / unquote(source)).exists(), (path, source)
            assert element.get("alt") is not None, (path, source)


@pytest.fixture(scope="module")
def browser():
    if why_not():
        pytest.skip(why_not())
    with chromium() as driver:
        yield driver


def test_a_browser_fetches_nothing_from_elsewhere(site, browser):
    """Scripts of the theme fetch what a page asks for; none of ours may make them ask another server."""
    with serving(site) as root:
        for name in ("index.html", "methods/tree_transformer.html", "api/nn.html"):
            browser.get(root + name)
            latest, fetched = time.monotonic() + 20, []
            while len(fetched) < 3 and time.monotonic() < latest:  # scripts come after the styles
                fetched = browser.execute_script(
                    "return performance.getEntriesByType('resource').map(entry => entry.name)"
                )
            assert len(fetched) >= 3 and all(address.startswith((root, "data:", "blob:")) for address in fetched)


FOUND = {
    "my own data": "getting_started.html", "SQL": "source_code.html", "source code": "source_code.html",
    "GPU": "scale.html", "BLEU": "scoring.html", "error message": "troubleshooting.html",
}  # fmt: skip
"""What people look for, and the page that should be found first."""


def test_the_search_works_without_a_server_and_finds_the_page_that_explains(site, browser):
    for words, page in FOUND.items():
        browser.get((site / "index.html").as_uri())
        browser.execute_script("document.querySelector('#__search').click()")
        browser.find_element("css selector", "input.md-search__input").send_keys(words)
        for _ in range(100):
            if found := browser.find_elements("css selector", ".md-search-result__item > a"):
                break
            time.sleep(0.1)
        assert found and urlsplit(found[0].get_attribute("href")).path.endswith(f"/{page}"), words


def test_every_page_links_to_the_repository(documents):
    assert all(REPOSITORY in targets(document) for path, document in documents.items() if path.name != "404.html")


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serves a folder on this machine, because browsers do not list what they fetch from files; yields the address."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
