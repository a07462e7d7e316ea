"""Makes pages of the repository's other Markdown files, so that a link means the same in a checkout and in the site.

README.md is the site's first page. Links are written as a checkout needs them, such as ``../examples/geo/README.md`` in
a page of ``docs/``. Here they are turned into links between pages. In a clone, the navigation ends with a link to the
repository that it was cloned from.
"""

from __future__ import annotations

import posixpath
import re
import subprocess
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^([ \t]*)(```+|~~~+).*?^\1\2[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def other_pages() -> list[str]:
    """The paths of the Markdown files outside docs/ that the site shows, relative to the repository."""
    examples = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("examples/*/README.md"))
    return ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "examples/README.md", *examples]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lists the recipes in the navigation, in the place of ``examples/``, and the repository at its end."""
    recipes = [page for page in other_pages() if page.startswith("examples/")]
    entries = [{Path(page).parent.name: page} for page in recipes if page != "examples/README.md"]
    config.nav = _with_recipes([*config.nav], ["examples/README.md", *entries])
    if address := repository():
        config.nav.append({"Repository": address})
    return config


def repository() -> str | None:
    """The address of the repository for a browser; None for a folder that is no clone of one on a server."""
    command = ["git", "-C", str(ROOT), "config", "--get", "remote.origin.url"]
    try:
        origin = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:  # git is not installed
        return None
    server = re.fullmatch(r"(?:https://(?:[^@/]+@)?|ssh://git@|git@)([^:/]+)[:/](.+?)(?:\.git)?/?", origin)
    return f"https://{server[1]}/{server[2]}" if server else None


def _with_recipes(entries: list, recipes: list) -> list:
    return [{name: recipes if pages == "examples/" else pages for name, pages in entry.items()} for entry in entries]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages, and the pictures of the recipes."""
    for page in other_pages():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / page)))
    for picture in ROOT.glob("examples/**/*.svg"):
        files.append(File.generated(config, picture.relative_to(ROOT).as_posix(), abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links between files of the repository into links between pages; code stays as it is."""
    here = posixpath.dirname(_path_of(page.file.src_uri))
    parts, end = [], 0
    for fence in [*FENCE.finditer(markdown), None]:
        start = fence.start() if fence else len(markdown)
        parts.append(LINK.sub(lambda link: _link(link, here, page, files), markdown[end:start]))
        if fence:
            parts.append(fence[0])
            end = fence.end()
    return "".join(parts)


def _path_of(uri: str) -> str:
    """The path in the repository of a file of the site."""
    return uri if uri in other_pages() or uri.startswith("examples/") else f"docs/{uri}"


def _link(link: re.Match[str], here: str, page: Page, files: Files) -> str:
    mark, text, target, anchor = link.groups(default="")
    if re.match(r"[a-z]+:|/", target):
        return link[0]
    path = posixpath.normpath(posixpath.join(here, target))
    uri = path[len("docs/") :] if path.startswith("docs/") else path
    if files.get_file_from_path(uri):
        return f"{mark}[{text}]({posixpath.relpath(uri, posixpath.dirname(page.file.src_uri) or '.')}{anchor})"
    # Code has no page: its name stays. A link to nothing stays a link, and the strict build refuses it.
    return text if (ROOT / path).exists() and not path.startswith("docs/") else link[0]
