// The list of sentences: search, order, and which of two systems wins.

/** The metric of a sentence for a system, or its model score where there is no metric. */
function valueOf(entry, system) {
  const { metric, score } = entry.systems[system];
  return metric ?? score;
}

/** How much better the first system's metric is than the second's; null without two metrics. */
function difference(entry) {
  const [first, second] = entry.systems;
  if (!second || first.metric === null || second.metric === null) return null;
  return first.metric - second.metric;
}

function winner(entry) {
  const gap = difference(entry);
  return gap === null ? null : Math.abs(gap) < 1e-9 ? "equal" : gap > 0 ? "first" : "second";
}

/** The orders of sentences: [key, name, value of a sentence]. */
function ordersOf(systems, entries) {
  const orders = [
    ["id", "Order of the file", (entry) => entry.place],
    ["length", "Length", (entry) => entry.length],
    ["depth", "Depth of the parse", (entry) => entry.depth],
  ];
  systems.forEach((system, index) => {
    const name = system.metric ?? "Score of the model";
    orders.push([`value${index}`, systems.length > 1 ? `${name}, ${system.name}` : name, (entry) => valueOf(entry, index)]);
  });
  if (entries.some((entry) => difference(entry) !== null)) orders.push(["difference", `Difference of ${systems[0].metric ?? "the scores"}`, difference]);
  return orders;
}

/** The filters by the winner: [key, name]; none with one system. */
function filtersOf(systems, entries) {
  if (!entries.some((entry) => winner(entry) !== null)) return [];
  const named = [["all", "All"], ["first", `${systems[0].name} wins`], ["second", `${systems[1].name} wins`], ["equal", "Equal"]];
  return named.map(([key, name]) => {
    const count = key === "all" ? entries.length : entries.filter((entry) => winner(entry) === key).length;
    return [key, `${name} (${count})`];
  });
}

/** The sentences that contain the query, in the chosen order; sentences without a value come last. */
function selected(entries, { query, order, descending, filter }, orders) {
  const needle = query.trim().toLowerCase();
  const value = orders.find(([key]) => key === order)[2];
  const found = entries.filter((entry) => {
    if (filter !== "all" && winner(entry) !== filter) return false;
    if (!needle) return true;
    const texts = [entry.source, entry.reference ?? "", ...entry.systems.map((system) => system.hypothesis)];
    return texts.some((text) => text.toLowerCase().includes(needle));
  });
  const sign = descending ? -1 : 1;
  return found.sort((a, b) => {
    const [first, second] = [value(a), value(b)];
    if (first === null || second === null) return (first === null) - (second === null) || a.place - b.place;
    return sign * (first - second) || a.place - b.place;
  });
}

/**
 * The list with its controls. ``onchoose(entry)`` is called when a reader chooses a sentence.
 * Returns ``element``, ``refresh()`` for new sentences, and ``mark(entry)``.
 */
function sentenceList({ systems, entries, onchoose }) {
  const wanted = { query: "", order: "id", descending: false, filter: "all" };
  let orders = ordersOf(systems, entries);
  let visibleEntries = [];
  let current = null;
  const search = html("input", {
    type: "search",
    placeholder: "Search",
    "aria-label": "Search in sentences",
    oninput: () => change("query", search.value),
    onkeydown: (event) => {
      if (event.key !== "ArrowDown") return;
      event.preventDefault();
      list.focus();
    },
  });
  const order = chooser("Sort by", orders.map(([key, name]) => [key, name]), wanted.order, (value) => change("order", value));
  const direction = html("button", { type: "button", class: "icon", onclick: () => change("descending", !wanted.descending) }, "↑");
  const filters = filtersOf(systems, entries);
  const filter = filters.length ? chooser("Show", filters, "all", (value) => change("filter", value)) : null;
  const count = html("p", { class: "quiet count", role: "status" });
  const list = html("ul", { class: "sentences", role: "listbox", "aria-label": "Sentences", tabindex: "0", onkeydown: key });
  const element = html(
    "div",
    { class: "list" },
    html("div", { class: "list-tools" }, search, html("div", { class: "sort" }, order, direction), filter, count),
    list,
  );
  refresh();
  return { element, refresh, mark, first: () => visibleEntries[0] ?? null };

  function change(key, value) {
    wanted[key] = value;
    refresh();
  }

  function refresh() {
    orders = ordersOf(systems, entries);
    visibleEntries = selected(entries, wanted, orders);
    direction.textContent = wanted.descending ? "↓" : "↑";
    direction.setAttribute("aria-label", wanted.descending ? "Greatest first; change to smallest first" : "Smallest first; change to greatest first");
    count.textContent = visibleEntries.length === entries.length ? counted(entries.length, "sentence") : `${visibleEntries.length} of ${counted(entries.length, "sentence")}`;
    list.replaceChildren(...visibleEntries.map(option));
    if (current) mark(current);
  }

  function option(entry) {
    return html(
      "li",
      { role: "option", id: `sentence-${entry.place}`, "aria-selected": "false", onclick: () => onchoose(entry) },
      quoted(entry.source, { class: "line" }),
      html("span", { class: "facts" }, facts(entry)),
    );
  }

  function facts(entry) {
    const parts = [counted(entry.length, "word")];
    if (entry.depth) parts.push(`depth ${entry.depth}`);
    const gap = difference(entry);
    if (entry.typed) parts.push("typed");
    const value = valueOf(entry, 0);
    if (gap === null) {
      if (value !== null) parts.push(...namedNumbers(entry.systems[0], systems[0].metric).slice(0, 1));
      return parts.join(" · ");
    }
    const won = winner(entry);
    const badge = html("span", { class: `gap ${won}` }, `${systems[0].metric ?? "metric"} ${gap > 0 ? "+" : ""}${shown(gap, 1)}`);
    return [`${parts.join(" · ")} · `, badge];
  }

  function mark(entry) {
    current = entry;
    const before = list.querySelector("[aria-selected=true]");
    if (before) before.setAttribute("aria-selected", "false");
    const chosen = list.querySelector(`#sentence-${entry.place}`);
    list.removeAttribute("aria-activedescendant");
    if (!chosen) return;
    chosen.setAttribute("aria-selected", "true");
    list.setAttribute("aria-activedescendant", chosen.id);
    // Scrolls the list alone, not the page.
    const [top, bottom] = [chosen.offsetTop - list.offsetTop, chosen.offsetTop - list.offsetTop + chosen.offsetHeight];
    if (top < list.scrollTop) list.scrollTop = top;
    else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
  }

  function key(event) {
    const index = moved(event, visibleEntries.indexOf(current), visibleEntries.length);
    if (index === null) return;
    event.preventDefault();
    onchoose(visibleEntries[index]);
  }
}
