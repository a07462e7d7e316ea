// The chosen sentence: its texts, and the tabs of its views.

/** Words with a flag: whether the other list lacks the word there (longest common subsequence). */
function marked(words, others) {
  if (words.length * others.length > 250000) return words.map((word) => [word, false]);
  const length = Array.from({ length: words.length + 1 }, () => new Uint16Array(others.length + 1));
  for (let row = words.length - 1; row >= 0; row -= 1) {
    for (let column = others.length - 1; column >= 0; column -= 1) {
      length[row][column] =
        words[row] === others[column] ? length[row + 1][column + 1] + 1 : Math.max(length[row + 1][column], length[row][column + 1]);
    }
  }
  const flagged = [];
  let [row, column] = [0, 0];
  while (row < words.length) {
    if (column < others.length && words[row] === others[column]) {
      flagged.push([words[row], false]);
      row += 1;
      column += 1;
    } else if (column < others.length && length[row][column + 1] >= length[row + 1][column]) {
      column += 1;
    } else {
      flagged.push([words[row], true]);
      row += 1;
    }
  }
  return flagged;
}

function withDifferences(text, reference) {
  if (reference === null || reference === undefined) return quoted(text);
  const [words, others] = [text, reference].map((line) => line.split(/\s+/).filter(Boolean));
  return html("bdi", { dir: "auto" }, marked(words, others).flatMap(([word, differs], index) => [index ? " " : "", differs ? html("mark", {}, word) : word]));
}

/** The numbers of an output with their names. */
function namedNumbers(output, metric) {
  const numbers = [[metric ?? "metric", output.metric, 1], ["model score", output.score, 2]];
  return numbers.filter(([, value]) => value !== null && value !== undefined).map(([name, value, digits]) => `${name} ${shown(value, digits)}`);
}

/** The texts of a sentence: source, reference, and each system's output. */
function texts(sentence, systems) {
  const rows = [];
  if (sentence.reference) rows.push(["Reference", quoted(sentence.reference), null]);
  sentence.systems.forEach((output, index) => {
    const facts = namedNumbers(output, systems[index].metric);
    const won = winner(sentence) === ["first", "second"][index];
    if (output.error) {
      rows.push([systems[index].name, html("span", { class: "problem" }, output.error), null, false]);
      return;
    }
    rows.push([systems[index].name, withDifferences(output.hypothesis, sentence.reference), facts.join(" · "), won]);
  });
  const differs = rows.some(([name, text]) => text.querySelector("mark"));
  return html(
    "section",
    { class: "texts", "aria-label": "Texts" },
    html("h2", { id: "source" }, quoted(sentence.source)),
    html(
      "dl",
      {},
      rows.map(([name, text, facts, won]) =>
        html("div", { class: won ? "won" : "" }, html("dt", {}, name), html("dd", {}, text, facts ? html("span", { class: "facts" }, facts, won ? " · wins" : "") : null)),
      ),
    ),
    differs ? html("p", { class: "quiet small" }, html("mark", {}, "Underlined"), " words differ from the reference.") : null,
  );
}

/**
 * The tabs of the views. ``chosen`` has ``view`` and ``system`` and is changed by the reader; ``onchange()`` follows.
 */
function viewTabs({ sentence, systems, chosen, settings, onchange }) {
  const views = viewsOf(sentence);
  if (!views.length) return html("p", { class: "quiet" }, "There is no view of this sentence.");
  if (!views.some((view) => view.key === chosen.view)) chosen.view = (views.find((view) => ["accumulation", "beam"].includes(view.key)) ?? views[0]).key;
  const panel = html("section", { id: "panel", role: "tabpanel", "aria-labelledby": `tab-${chosen.view}` });
  const tabs = views.map((view) =>
    html("button", { type: "button", role: "tab", id: `tab-${view.key}`, "aria-controls": "panel", onclick: () => open(view.key) }, view.name),
  );
  const bar = html("div", { role: "tablist", "aria-label": "Views of the sentence", class: "tabs", onkeydown: key }, tabs);
  draw();
  return html("div", { class: "views" }, bar, panel);

  function key(event) {
    const index = moved(event, views.findIndex((view) => view.key === chosen.view), views.length);
    if (index === null) return;
    event.preventDefault();
    open(views[index].key);
    tabs[index].focus();
  }

  function open(name) {
    chosen.view = name;
    draw();
    onchange();
  }

  function draw() {
    const view = views.find((other) => other.key === chosen.view);
    tabs.forEach((tab, index) => {
      const here = views[index] === view;
      tab.setAttribute("aria-selected", String(here));
      tab.setAttribute("tabindex", here ? "0" : "-1");
    });
    panel.setAttribute("aria-labelledby", `tab-${view.key}`);
    const able = systems.flatMap((system, index) => (viewData(view, sentence, index) ? [index] : []));
    if (!able.length) {
      const reason = `The page would be too large with the view “${view.name}” of this sentence, so it was left out. Explore fewer sentences to see it.`;
      panel.replaceChildren(html("p", { class: "explain" }, reason));
      return;
    }
    const system = able.includes(chosen.system) ? chosen.system : able[0];
    const data = viewData(view, sentence, system);
    const names = able.map((index) => [index, systems[index].name]);
    const redraw = ({ focus } = {}) => {
      const place = document.activeElement?.closest("label")?.textContent;
      draw();
      if (focus) panel.querySelector(focus)?.focus();
      else if (place) [...panel.querySelectorAll("label")].find((label) => label.textContent === place)?.querySelector("select, input")?.focus();
    };
    let systemChoice = null;
    if (view.key !== "parse" && systems.length > 1) {
      systemChoice =
        able.length > 1
          ? choice("System", names, system, (index) => {
              chosen.system = index;
              redraw({ focus: ".system [aria-checked=true]" });
              onchange();
            }, { class: "choice system" })
          : html("p", { class: "quiet system" }, systems[system].name);
    }
    panel.replaceChildren(
      html("div", { class: "view-head" }, explanation(view, systems[system].method, data), systemChoice),
      ...view.draw({ data, sentence, system: systems[system], settings, redraw }).filter(Boolean),
    );
  }
}
