"""The explorer's page in headless Chromium: texts, clicks, keys, sliders, colours, and an empty console."""

from __future__ import annotations

import base64
import threading
import time
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from tests.explorer.browser import address, chromium, problems, why_not
from tests.explorer.sample import sample_document, tree_of
from tree_fairseq import hub
from tree_fairseq.commands.explore import demo_document
from tree_fairseq.errors import InputError
from tree_fairseq.explorer.document import OutputRecord, SentenceRecord
from tree_fairseq.explorer.page import page_html, write_page
from tree_fairseq.explorer.server import ExplorerServer

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

HOSTILE = '</script><img src=x onerror="window.broken = true"><b>\u202eevil'


@pytest.fixture(scope="module")
def driver():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def sample_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_page(sample_document(), path)
    return path


@pytest.fixture
def show(driver, sample_page):
    """Opens a view of the sample; afterwards the console must be empty."""

    def opened(path=sample_page, wait=".views, .comparison", **choice):
        driver.get("about:blank")
        problems(driver)
        driver.get(address(path, **choice))
        return one(driver, wait)

    yield opened
    assert problems(driver) == []


def one(driver, selector):
    return until(lambda: next(iter(all_of(driver, selector)), None), selector)


def until(condition, what="the condition"):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"the page never showed {what}")


def all_of(driver, selector):
    return driver.find_elements("css selector", selector)


def text_of(driver, selector):
    return driver.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)


def press(driver, key, times=1):
    from selenium.webdriver.common.keys import Keys

    for _ in range(times):
        driver.switch_to.active_element.send_keys(getattr(Keys, key))


def sources(driver):
    return [element.text for element in all_of(driver, ".sentences .line")]


def test_the_demo_shows_queries_in_red_illegal_symbols_in_grey_and_another_tab(driver, show, tmp_path):
    document = demo_document(hub.DEMO)
    write_page(document, tmp_path / "demo.html")
    is_red = lambda sentence: not all(output["views"]["query"]["parses"] for output in sentence["systems"])
    show(tmp_path / "demo.html", ".answers", sentence=next(filter(is_red, document["sentences"]))["id"])
    assert one(driver, ".answer.broken .problem").text.startswith("Does not parse. ")
    assert one(driver, ".answer.broken .query").value_of_css_property("color") == "rgba(161, 38, 13, 1)"
    assert "row" in text_of(driver, ".answer:not(.broken) .runs") and all_of(driver, ".answer .found th")
    grey = until(lambda: all_of(driver, ".candidates .illegal") or all_of(driver, ".stepper .icon")[1].click())
    assert "illegal: " in grey[0].text and not any(mark in grey[0].text for mark in ("\\s", "^", '"'))
    driver.find_element("xpath", "//button[text()='English to German']").click()
    until(lambda: sources(driver)[0] == document["more"][0]["sentences"][0]["source"])
    assert "tab=1" in driver.current_url and one(driver, "#tab-accumulation")


def test_trees_of_outputs_stand_first_with_what_differs(driver, show):
    """The reference and the outputs are cards with trees and named numbers; the view of the search stands below."""
    show(sentence=3)
    names = [card.text for card in all_of(driver, ".answer h3")]
    assert names == ["Reference", "Tree-Transformer", "Treeformer"] and not all_of(driver, ".texts mark")
    facts = [card.text for card in all_of(driver, ".answer > .facts")]
    assert facts == ["sentence BLEU 100 · model score −0.31 · wins", "sentence BLEU 0 · model score −1.2"]
    cards = all_of(driver, ".answer")
    assert not cards[0].find_elements("css selector", ".wrong") and "The same tree as the reference." in cards[1].text
    wrong = [node.text for node in cards[2].find_elements("css selector", ".wrong")]
    assert wrong == ["river"] and "1 of 2 nodes differ from the reference (dashed)." in cards[2].text
    assert driver.execute_script(
        "return document.querySelector('.answers').getBoundingClientRect().bottom < innerHeight"
    )
    one(driver, ".key summary").click()
    assert "arguments stand below" in one(driver, ".key").text


def test_pieces_and_the_end_of_a_sentence_have_no_marks(driver, show, tmp_path):
    document = sample_document()
    sentence = document["sentences"][0]
    sentence["tokens"] = ["the", "old@@", "er", *sentence["tokens"][3:]]
    for columns in (output["views"]["cross_attention"]["columns"] for output in sentence["systems"]):
        columns[1]["label"] = "old@@"
    write_page(document, tmp_path / "pieces.html")
    for view in ("attention", "accumulation"):
        show(tmp_path / "pieces.html", sentence=0, view=view)
        said = driver.execute_script("return document.getElementById('panel').textContent")
        assert "old\u2010" in said and "@@" not in said and "</s>" not in said
    assert driver.execute_script("return document.querySelector('.beside').textContent").count("older") > 0
    assert "sentence BLEU +" in one(driver, ".sentences .facts").text


def test_a_tree_is_saved_as_it_is_drawn(driver, show):
    show(sentence=0, view="parse")
    driver.execute_script(
        "window.saved = {};HTMLAnchorElement.prototype.click = function () { window.saved[this.download] = this.href; }"
    )
    for button in all_of(driver, ".save .link"):
        button.click()
    saved = until(lambda: len(found := driver.execute_script("return window.saved")) == 2 and found, "two files")
    picture, image = (saved[f"parse-of-the-old-man-sees-a-dog-in-the-garden.{ending}"] for ending in ("svg", "png"))
    root = ElementTree.fromstring(unquote(picture.partition(",")[2]))
    texts = list(root.iter("{http://www.w3.org/2000/svg}text"))
    assert texts[0].text == "S" and texts[0].get("fill").startswith("rgb(") and texts[0].get("font-size") == "13px"
    assert base64.b64decode(image.partition(",")[2]).startswith(b"\x89PNG")


def test_a_wide_tree_says_that_it_can_be_scrolled_and_begins_at_its_root(driver, show):
    show(sentence=0, view="parse")
    driver.execute_script("arguments[0].style.width = '90px'", box := one(driver, ".picture"))
    until(lambda: one(driver, ".hint").is_displayed())
    frame, root = box.rect, one(driver, ".picture .node").rect
    assert frame["x"] <= root["x"] and root["x"] + root["width"] <= frame["x"] + frame["width"]
    driver.set_window_size(400, 800)
    try:
        show(sentence=0, view="parse")
        assert until(lambda: one(driver, ".hint").is_displayed()) and "Scroll sideways" in one(driver, ".hint").text
        box = one(driver, ".picture")
        driver.execute_script("arguments[0].scrollLeft = 9999", box)
        assert driver.execute_script("return arguments[0].scrollLeft", box) > 0
        # The page itself is not wider than the telephone.
        assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        driver.set_window_size(1280, 900)


def test_list_searches_sorts_and_filters(driver, show):
    show()
    assert len(sources(driver)) == 6
    one(driver, "input[type=search]").send_keys("Felix")
    until(lambda: len(sources(driver)) == 1)
    assert text_of(driver, ".count") == "1 of 6 sentences"
    one(driver, "input[type=search]").clear()
    one(driver, "input[type=search]").send_keys(" ")
    order, filter_ = all_of(driver, ".list-tools select")
    order.send_keys("Length")
    lengths = [len(source.split()) for source in sources(driver)]
    assert lengths == sorted(lengths)
    one(driver, ".list-tools .icon").click()
    lengths = [len(source.split()) for source in sources(driver)]
    assert lengths == sorted(lengths, reverse=True)
    filter_.send_keys("Treeformer wins")
    assert sources(driver) == ["in the evening Felix is chased by a sick cat ."]


def test_arrow_keys_walk_through_the_list(driver, show):
    show(sentence=0, view="parse")
    driver.execute_script("document.querySelector('.sentences').focus()")
    press(driver, "ARROW_DOWN", 2)
    until(lambda: text_of(driver, "#source").startswith("in the evening Felix"))
    chosen = one(driver, ".sentences")
    assert chosen.get_attribute("aria-activedescendant") == "sentence-2"
    assert text_of(driver, "#announcement") == "Sentence 2: in the evening Felix is chased by a sick cat ."
    press(driver, "END")
    until(lambda: text_of(driver, "#source").startswith("the film"))


def test_texts_mark_differences_and_the_winner(driver, show):
    show(sentence=2, view="parse")
    assert "am Abend wird Felix von einer kranken Katze gejagt ." in text_of(driver, ".texts")
    won = one(driver, ".texts .won")
    assert "Treeformer" in won.text and "wins" in won.text
    show(sentence=0, view="parse")
    assert [mark.text for mark in all_of(driver, ".texts dd mark")] == ["einen", "Hund"]


def test_parse_reads_by_keys_and_has_brackets(driver, show):
    show(sentence=0, view="parse")
    assert "(S (NP the old man)" in text_of(driver, ".as-text pre")
    assert len(all_of(driver, ".tree .node")) == len(sample_document()["sentences"][0]["parse"]["labels"])
    one(driver, ".tree .inner").click()
    press(driver, "ARROW_DOWN")
    assert text_of(driver, ".reading") == "NP covers the old man"
    assert driver.switch_to.active_element.get_attribute("aria-label") == "NP, covers “the old man”"


def test_accumulation_shades_the_subtree_of_the_chosen_node(driver, show):
    show(sentence=0, view="accumulation")
    nodes = all_of(driver, ".tree .node")
    assert all("shaded" in node.get_attribute("class") for node in nodes)
    nodes[1].click()
    shaded = all_of(driver, ".tree .shaded")
    assert [node.find_element("css selector", "text").text for node in shaded] == ["NP", "the", "old", "man"]
    before = text_of(driver, ".beside")
    one(driver, "#panel .choose select").send_keys("Layer 1")
    until(lambda: text_of(driver, ".beside") != before)
    assert "NP “the old man”" in text_of(driver, ".beside caption")


def test_heat_map_is_read_by_pointer_and_by_keys(driver, show):
    show(sentence=0, view="attention", system=0)
    assert "of the attention falls on constituents" in text_of(driver, "#panel")
    assert text_of(driver, ".groups") == "WordsConstituents"
    one(driver, ".heat tbody td").click()
    assert text_of(driver, ".reading").startswith("“der” attends to the word “the”: 0.")
    press(driver, "ARROW_DOWN", 2)
    press(driver, "END")
    assert text_of(driver, ".reading").startswith("“Mann” attends to NP “the garden”: 0")
    assert text_of(driver, ".under h3") == "Where Mann looks"
    values = driver.execute_script(
        "return [...document.querySelectorAll('.heat tbody tr')].map((row) => [...row.cells].slice(1)"
        ".reduce((sum, cell) => sum + Number(cell.textContent), 0))"
    )
    assert all(abs(value - 100) < 10 for value in values)  # percentages, each rounded
    all_of(driver, ".system button")[1].click()
    until(lambda: text_of(driver, ".groups") == "")
    assert "Vaswani" not in text_of(driver, ".explain") and "Patel" in text_of(driver, ".explain")


def test_chart_shows_splits_and_the_attention_of_a_word(driver, show):
    show(sentence=0, view="chart")
    assert len(all_of(driver, ".chart .cell")) == 10 * 11 // 2
    assert len(all_of(driver, ".chart circle")) == 2 * 10 - 1
    assert "the old man sees … the garden ." in text_of(driver, ".beside h3")
    driver.execute_script("document.querySelector('.chart .cell[tabindex=\"0\"]').focus()")
    press(driver, "ARROW_DOWN")
    assert len(all_of(driver, ".beside tbody tr")) == 7 and "and 1 smaller weight" in text_of(driver, ".beside")
    before = [cell.get_attribute("style") for cell in all_of(driver, ".chart .cell")]
    all_of(driver, ".words button")[3].click()
    until(lambda: [cell.get_attribute("style") for cell in all_of(driver, ".chart .cell")] != before)
    assert driver.switch_to.active_element.text == "sieht"


def test_beam_greys_out_illegal_symbols_with_the_reason(driver, show):
    show(sentence=3, view="beam")
    illegal = all_of(driver, ".illegal")
    assert illegal and all("illegal: " in row.text for row in illegal)
    slider = one(driver, ".stepper input")
    slider.click()
    press(driver, "HOME")
    press(driver, "ARROW_RIGHT", 2)
    until(lambda: text_of(driver, ".stepper output") == "Step 3 of 6")
    rows = all_of(driver, ".rows button")
    assert len(rows) == 3 and "leads to the result" in rows[0].text and "leads to the result" not in rows[1].text
    rows[1].click()
    assert rows[1].get_attribute("aria-checked") == "true" and "(answer (state □ □))" in text_of(driver, "#panel .tree")
    assert len(all_of(driver, ".tree .next")) == 1


def test_insertion_plays_step_by_step(driver, show):
    show(sentence=4, view="insertion")
    slider = one(driver, ".stepper input")
    slider.click()
    press(driver, "HOME")
    assert len(all_of(driver, "#panel .tree .node")) == 1
    one(driver, ".play").click()
    until(lambda: text_of(driver, ".stepper output").startswith("Step 2"), "the second step")
    assert len(all_of(driver, ".tree .fresh")) == 2
    one(driver, ".play").click()
    assert text_of(driver, ".play") == "Play"
    assert "child of" in text_of(driver, ".slots")


def test_classes_of_constituents_stand_in_the_tree(driver, show):
    show(sentence=5, view="classification")
    assert "neutral" in one(driver, ".bars .best").text
    assert len(all_of(driver, ".tree .second")) == 5 and len(all_of(driver, ".tree .wrong")) == 1
    assert "(1 of 5)" in text_of(driver, ".legend")


def test_comparison_counts_wins_sorts_and_opens_sentences(driver, show):
    show(page="comparison", wait=".comparison")
    assert [item.text for item in all_of(driver, ".wins-legend li")] == [
        "4 Tree-Transformer wins",
        "1 equal",
        "1 Treeformer wins",
    ]
    one(driver, "th.length button").click()
    lengths = [int(row.find_elements("css selector", "td")[0].text) for row in all_of(driver, ".comparison tbody tr")]
    assert lengths == sorted(lengths, reverse=True)
    assert one(driver, "th.length").get_attribute("aria-sort") == "descending"
    all_of(driver, ".tools [role=radio]")[2].click()
    rows = all_of(driver, ".comparison tbody tr")
    assert len(rows) == 1 and "−18.5" in rows[0].text
    rows[0].find_element("css selector", "button").click()
    until(lambda: text_of(driver, "#source").startswith("in the evening Felix"))


def test_tabs_open_by_arrow_keys_and_the_address_follows(driver, show):
    show(sentence=0, view="parse")
    one(driver, "#tab-parse").click()
    press(driver, "ARROW_RIGHT")
    assert driver.switch_to.active_element.get_attribute("id") == "tab-accumulation"
    assert "view=accumulation" in driver.current_url and one(driver, "#panel").get_attribute("aria-labelledby") == (
        "tab-accumulation"
    )


def test_colours_follow_the_system_and_the_switch(driver, show):
    def ground():
        return driver.execute_script("return getComputedStyle(document.body).backgroundColor")

    show(sentence=0, view="parse")
    light = ground()
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    until(lambda: ground() != light)
    dark = ground()
    all_of(driver, "[aria-label=Colours] button")[1].click()
    until(lambda: ground() == light)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    all_of(driver, "[aria-label=Colours] button")[2].click()
    until(lambda: ground() == dark)
    all_of(driver, "[aria-label=Colours] button")[0].click()


def test_narrow_windows_do_not_scroll_sideways(driver, show):
    show(sentence=0, view="accumulation")
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    )
    try:
        for view in ("accumulation", "attention", "chart"):
            one(driver, f"#tab-{view}").click()
            width = driver.execute_script("return document.documentElement.scrollWidth")
            assert width <= 400, f"{view} is {width} pixels wide"
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_hostile_texts_are_shown_and_never_run(driver, show, tmp_path):
    document = sample_document()
    first = document["sentences"][0]
    first["source"] = first["reference"] = HOSTILE
    first["tokens"][0] = first["parse"]["labels"][2] = HOSTILE
    first["systems"][0]["hypothesis"] = HOSTILE
    document["title"] = document["systems"][0]["name"] = HOSTILE
    write_page(document, tmp_path / "page.html")
    shown = HOSTILE.replace("\u202e", "⟨U+202E⟩")
    for view in ("parse", "accumulation", "attention", "chart"):
        show(tmp_path / "page.html", sentence=0, view=view)
        assert text_of(driver, "#source") == shown == text_of(driver, "h1") == driver.title
        assert driver.execute_script("return window.broken === undefined && document.images.length === 0")
        assert "\u202e" not in driver.execute_script("return document.body.textContent")


def test_views_that_were_left_out_are_named(driver, show, tmp_path):
    document = sample_document()
    whole = len(page_html(document).encode())
    write_page(document, tmp_path / "page.html", limit=whole - 500)
    show(tmp_path / "page.html", sentence=2, view="attention")
    left_out = [
        tab for tab in all_of(driver, "[role=tab]") if not tab.click() and "left out" in text_of(driver, "#panel")
    ]
    assert left_out


def test_a_tree_of_3000_levels_is_drawn(driver, show, tmp_path):
    document = sample_document(1)
    document["sentences"][0]["parse"] = tree_of("(S " + "(X " * 3000 + "end" + ")" * 3001)
    write_page(document, tmp_path / "page.html")
    show(tmp_path / "page.html", sentence=0, view="parse")
    assert driver.execute_script("return document.querySelectorAll('.tree .node').length") == 3002


def test_page_of_200_sentences_opens_at_once(driver, show, tmp_path):
    write_page(sample_document(200), tmp_path / "page.html")
    show(tmp_path / "page.html")
    took = driver.execute_script("return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert len(sources(driver)) == 200
    assert took < 5000, "a second is the goal; busy machines get five"


def test_typed_sentences_are_explained_by_the_server(driver, show):
    class Comparison:
        def explain_line(self, line, number):
            if line == "a bad one":
                raise InputError("too <b>long</b>")
            [record] = sample_document(1)["sentences"]
            outputs = [OutputRecord(**output) for output in record["systems"]]
            return SentenceRecord(**{**record, "id": number, "systems": outputs})

    document = {**sample_document(), "live": True, "sentences": [], "words": ["man", "dog"]}
    with ExplorerServer([Comparison], page_html(document), 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            driver.get(server.url)
            assert "man dog" in text_of(driver, ".typing .words")
            box = one(driver, ".typing textarea")
            box.send_keys("a bad one")
            one(driver, ".typing .primary").click()
            until(lambda: text_of(driver, ".problem") == "too <b>long</b>")
            assert all("422" in message for message in problems(driver))
            box.clear()
            box.send_keys("a good one")
            press(driver, "ENTER")
            until(lambda: text_of(driver, "#source") == "the old man sees a dog in the garden .")
            assert text_of(driver, ".problem") == "" and "typed" in text_of(driver, ".sentences")
        finally:
            server.shutdown()
            thread.join()
