// Starts the page: its tabs, and in each the head, the list and the chosen sentence, the address, the colours, and typed sentences.

function start() {
  const first = readDocument();
  const tabs = [first, ...(first.more ?? [])];
  let shown = null;
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  window.addEventListener("hashchange", fromAddress);
  fromAddress();

  function fromAddress() {
    const number = Number(new URLSearchParams(location.hash.slice(1)).get("tab"));
    turnTo(tabs[number] ? number : 0);
  }

  function turnTo(number) {
    if (shown?.number === number) shown.fromAddress();
    else shown = { number, fromAddress: showTab(tabs, number, turnTo) };
  }
}

/** Shows a tab of the page; ``turnTo(number)`` shows another. Returns a function that opens what the address names. */
function showTab(tabs, number, turnTo) {
  const book = tabs[number];
  const { systems } = book;
  const entries = book.sentences;
  entries.forEach((entry, place) => {
    entry.place = place;
  });
  const chosen = { view: null, system: 0, entry: null, page: "sentence" };
  const settings = { layer: -1, step: 0 };
  document.title = visible(book.title || "Explorer");
  const list = sentenceList({ systems, entries, onchoose: (entry) => choose(entry) });
  const pages = systems.length === 2 ? pageChoice() : null;
  document.getElementById("top").replaceChildren(head(), html("div", { class: "switches" }, tabChoice(), pages, themeChoice()));
  document.getElementById("list").replaceChildren(...[book.live ? typing() : null, list.element].filter(Boolean));
  document.getElementById("foot").replaceChildren(foot());
  document.getElementById("main").replaceChildren();
  turnPage("sentence");
  if (!fromAddress()) {
    if (list.first()) choose(list.first(), false);
    else document.getElementById("main").append(html("p", {}, book.live ? "Type a sentence to begin." : "This page has no sentences."));
  }

  return fromAddress;

  function head() {
    const described = systems.map((system) =>
      html("span", { class: "system" }, html("strong", {}, system.name), ` ${system.architecture}, ${shown(system.parameters / 1e6, 1)} M parameters`),
    );
    const about = book.about ? html("p", { class: "quiet small about" }, book.about) : null;
    return html("div", {}, html("h1", {}, book.title || "Explorer"), html("p", { class: "quiet systems" }, described), about);
  }

  function foot() {
    return html("p", { class: "quiet" }, `Made by ${book.package}. This page needs no network.`);
  }

  function tabChoice() {
    if (tabs.length < 2) return null;
    return choice("Tab", tabs.map((tab, index) => [index, tab.title]), number, (index) => {
      history.replaceState(null, "", `#tab=${index}`);
      turnTo(index);
      document.querySelector("#top [aria-label=Tab] [aria-checked=true]").focus();
    });
  }

  function pageChoice() {
    return choice("Page", [["sentence", "Sentence"], ["comparison", "Comparison"]], "sentence", (page) => {
      turnPage(page);
      toAddress();
    });
  }

  function turnPage(page) {
    chosen.page = page;
    document.getElementById("sentence-page").hidden = page !== "sentence";
    const place = document.getElementById("comparison-page");
    place.hidden = page === "sentence";
    pages?.querySelectorAll("button").forEach((button, index) => {
      const here = (index === 0) === (page === "sentence");
      button.setAttribute("aria-checked", String(here));
      button.setAttribute("tabindex", here ? "0" : "-1");
    });
    if (page === "comparison") place.replaceChildren(html("main", {}, comparison({ systems, entries, onchoose: (entry) => choose(entry) })));
    else place.replaceChildren();
  }

  async function choose(entry, spoken = true) {
    chosen.entry = entry;
    if (chosen.page !== "sentence") turnPage("sentence");
    list.mark(entry);
    const sentence = await unpack(entry);
    // Another sentence may have been chosen in the meantime.
    if (chosen.entry !== entry) return;
    settings.step = 0;
    delete settings.node;
    delete settings.hypothesis;
    delete settings.insertionStep;
    settings.row = 0;
    document
      .getElementById("main")
      .replaceChildren(hasAnswers(sentence) ? answers(sentence, systems) : texts(sentence, systems), viewTabs({ sentence, systems, chosen, settings, onchange: toAddress }));
    toAddress();
    if (spoken) announce(`Sentence ${entry.id}: ${entry.source}`);
  }

  /** Writes the choice into the address, so that a link opens the same view. */
  function toAddress() {
    const parts = { tab: number || null, sentence: chosen.entry?.id, view: chosen.view, system: chosen.system };
    if (chosen.entry?.typed && chosen.page === "sentence") return;
    const address = chosen.page === "comparison" ? { page: "comparison" } : parts;
    const kept = Object.entries(address).filter(([key, value]) => value !== undefined && value !== null);
    history.replaceState(null, "", `#${new URLSearchParams(kept)}`);
  }

  /** Opens what the address names; false if it names nothing. */
  function fromAddress() {
    const address = new URLSearchParams(location.hash.slice(1));
    if (address.get("page") === "comparison" && pages) {
      turnPage("comparison");
      chosen.entry ??= entries[0] ?? null;
      return true;
    }
    const entry = entries.find((other) => String(other.id) === address.get("sentence"));
    if (!entry) return false;
    chosen.view = address.get("view") ?? chosen.view;
    chosen.system = Math.max(0, Math.min(systems.length - 1, Number(address.get("system")) || 0));
    choose(entry, false);
    return true;
  }

  function typing() {
    const input = html("textarea", { rows: 2, "aria-label": "A sentence to explain", placeholder: book.words?.length && entries.length ? `Such as: ${entries[0].source}` : "Type a sentence", onkeydown: enter });
    const words = book.words?.length
      ? html("details", { class: "as-text" }, html("summary", {}, "The models speak a toy language: its words"), html("p", { class: "quiet small words" }, book.words.join(" ")))
      : null;
    const button = html("button", { type: "submit", class: "primary" }, "Explain");
    const said = html("p", { class: "problem", role: "alert" });
    return html("form", { class: "typing", onsubmit: send }, input, button, said, words);

    function enter(event) {
      if (event.key === "Enter" && !event.shiftKey) send(event);
    }

    async function send(event) {
      event.preventDefault();
      const text = input.value.trim();
      if (!text || button.getAttribute("aria-busy") === "true") return;
      button.setAttribute("aria-busy", "true");
      said.textContent = "";
      announce("The model reads the sentence.");
      try {
        const response = await fetch("/explain", {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ text, tab: number }),
        });
        const answer = JSON.parse(await response.text(), readablePiece);
        if (answer.error) throw new Error(answer.error);
        const entry = { ...answer, typed: true, place: entries.length };
        entries.push(entry);
        list.refresh();
        choose(entry);
      } catch (error) {
        said.textContent = visible(error.message);
      }
      button.removeAttribute("aria-busy");
    }
  }

  function themeChoice() {
    let kept = null;
    try {
      kept = localStorage.getItem("tree-fairseq-theme");
    } catch {
      // Some browsers give files no storage.
    }
    const theme = ["light", "dark"].includes(kept) ? kept : "auto";
    apply(theme);
    return choice("Colours", [["auto", "Auto"], ["light", "Light"], ["dark", "Dark"]], theme, apply);

    function apply(name) {
      if (name === "auto") document.documentElement.removeAttribute("data-theme");
      else document.documentElement.setAttribute("data-theme", name);
      try {
        localStorage.setItem("tree-fairseq-theme", name);
      } catch {
        // The choice then lasts as long as the page.
      }
    }
  }
}
