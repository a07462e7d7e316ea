"""Orders what the site's search finds: pages that explain come before those that list, as ``mkdocs.yml`` says.

``search_boost`` there has the weight of pages by the beginning of their path; the longest beginning counts.
"""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    """Gives a page its weight; its text stays as it is."""
    weights: dict[str, float] = config.extra["search_boost"]
    begins = [begin for begin in weights if page.file.src_uri.startswith(begin)]
    if begins:
        page.meta["search"] = {"boost": weights[max(begins, key=len)]}
