"""Makes the pictures of the explorer in the documentation.

    tree-fairseq explore --demo --json demo.json
    python -m docs.plugins.screenshots docs/images
    python -m docs.plugins.screenshots docs/images --document demo.json --pictures sql --sentence 9
    python -m docs.plugins.screenshots docs/images --document demo.json --pictures parse accumulation attention --tab 1

Without a document, all pictures but ``sql`` are made from the sample of the tests.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import time
from pathlib import Path

from PIL import Image

from tests.explorer.browser import address, chromium, problems, why_not
from tests.explorer.sample import sample_document
from tree_fairseq.explorer.page import write_page

# A picture: the colours, what the address opens, and what is clicked then.
PICTURES = {
    "parse": ("Light", {"sentence": 1, "view": "parse"}, ".tree .inner:nth-of-type(3)"),
    "accumulation": ("Light", {"sentence": 0, "view": "accumulation"}, None),
    "attention": ("Light", {"sentence": 0, "view": "attention"}, ".heat tbody tr:nth-child(5) td:nth-child(6)"),
    "chart": ("Light", {"sentence": 2, "view": "chart"}, ".words button:nth-child(4)"),
    "beam": ("Light", {"sentence": 3, "view": "beam"}, ".stepper .icon:last-of-type, .stepper input"),
    "sql": ("Light", {"sentence": 0, "view": "beam"}, ".stepper input"),
    "insertion": ("Dark", {"sentence": 4, "view": "insertion"}, ".stepper .icon"),
    "classes": ("Light", {"sentence": 5, "view": "classification"}, None),
    "comparison": ("Light", {"page": "comparison"}, None),
}
WIDTH = 1280


def take(folder: Path, document: dict, pictures: list[str], sentence: int | None = None, tab: int = 0) -> None:
    """Writes one PNG file a picture; each is as high as its page. ``sentence`` is that of all pictures of sentences."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, chromium(WIDTH, 900) as driver:
        page = Path(temporary) / "page.html"
        write_page(document, page)
        for name in pictures:
            colours, choice, clicked = PICTURES[name]
            if sentence is not None and "sentence" in choice:
                choice = {**choice, "sentence": sentence}
            driver.get("about:blank")
            driver.get(address(page, **choice, **({"tab": tab} if tab else {})))
            driver.find_element("xpath", f"//button[text()='{colours}']").click()
            _resize(driver, 900)
            time.sleep(0.4)
            if clicked:
                element = driver.find_element("css selector", clicked)
                driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
                element.click()
            height = driver.execute_script(
                "const last = document.querySelector(arguments[0]).lastElementChild;"
                "return Math.ceil(last.getBoundingClientRect().bottom + window.scrollY + 28)",
                "#comparison-page > main" if "page" in choice else "#main",
            )
            _resize(driver, max(560, min(1500, height)))
            driver.execute_script("window.scrollTo(0, 0)")
            time.sleep(0.6)
            picture = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
            # A palette of colours that occur halves the file; k-means keeps the few that carry meaning.
            picture = picture.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=4, dither=Image.Dither.NONE)
            path = folder / f"explorer-{name}.png"
            picture.save(path, optimize=True)
            print(f"{path}: {picture.width} x {picture.height}, {path.stat().st_size} bytes", *problems(driver))


def _resize(driver, height: int) -> None:
    size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder of the pictures")
    parser.add_argument("--document", type=Path, help="an explorer document as JSON")
    parser.add_argument("--pictures", nargs="+", choices=PICTURES, metavar="NAME")
    parser.add_argument("--sentence", type=int, help="the number of the sentence, from 0 on, in all pictures")
    parser.add_argument("--tab", type=int, default=0, help="the number of the page's tab, from 0 on")
    arguments = parser.parse_args()
    if why_not():
        parser.error(why_not())
    document = sample_document()
    if arguments.document:
        document = json.loads(arguments.document.read_text(encoding="utf-8"))
    pictures = arguments.pictures or [name for name in PICTURES if name != "sql"]
    take(arguments.folder, document, pictures, arguments.sentence, arguments.tab)


if __name__ == "__main__":
    main()
