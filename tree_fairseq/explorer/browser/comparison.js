// The comparison of two systems: who wins how often, and a table of all sentences.

/** The page about two systems. ``onchoose(entry)`` opens a sentence. */
function comparison({ systems, entries, onchoose }) {
  const compared = entries.filter((entry) => winner(entry) !== null);
  const metric = systems[0].metric ?? "metric";
  if (!compared.length) {
    return [html("h2", {}, "Comparison"), html("p", {}, "The sentences have no references, so there is nothing to compare.")];
  }
  const wanted = { query: "", order: "difference", descending: true, filter: "all" };
  const columns = [
    ["id", "Sentence"],
    ["length", "Words"],
    ["depth", "Depth"],
    ["value0", systems[0].name],
    ["value1", systems[1].name],
    ["difference", "Difference"],
  ];
  const greatest = greatestOf(compared.map((entry) => Math.abs(difference(entry))));
  const heads = columns.map(([key, name]) =>
    html("th", { scope: "col", class: key }, html("button", { type: "button", onclick: () => sort(key) }, name)),
  );
  const body = html("tbody", {});
  const table = html(
    "table",
    { class: "comparison" },
    html("caption", {}, `${metric} of each sentence. Choose a heading to sort, and a sentence to open it.`),
    html("thead", {}, html("tr", {}, heads)),
    body,
  );
  fill();
  const filter = choice("Which sentences", filtersOf(systems, compared), "all", (value) => {
    wanted.filter = value;
    fill();
  });
  return [
    html("h2", {}, "Comparison"),
    html("p", { class: "explain" }, `Each sentence counts for the system with the better ${metric}.`),
    summary(),
    html("div", { class: "tools" }, filter),
    html("div", { class: "scroll tall", tabindex: "0", role: "group", "aria-label": "Table of all sentences" }, table),
  ];

  function sort(key) {
    wanted.descending = wanted.order === key ? !wanted.descending : key !== "id";
    wanted.order = key;
    fill();
    announce(`Sorted by ${columns.find(([name]) => name === key)[1]}, ${wanted.descending ? "greatest first" : "smallest first"}`);
  }

  function fill() {
    heads.forEach((head, index) => {
      const sorted = columns[index][0] === wanted.order;
      head.setAttribute("aria-sort", sorted ? (wanted.descending ? "descending" : "ascending") : "none");
    });
    body.replaceChildren(...selected(compared, wanted, ordersOf(systems, compared)).map(row));
  }

  function row(entry) {
    const gap = difference(entry);
    const won = winner(entry);
    return html(
      "tr",
      {},
      html("th", { scope: "row" }, html("button", { type: "button", class: "link", onclick: () => onchoose(entry) }, quoted(entry.source))),
      html("td", {}, entry.length),
      html("td", {}, entry.depth || "–"),
      entry.systems.map((system, index) =>
        html("td", { class: won === ["first", "second"][index] ? "won" : "" }, shown(system.metric, 1)),
      ),
      html(
        "td",
        { class: "gap-cell" },
        html("span", { class: `gap-bar ${won}`, "--share": (Math.abs(gap) / greatest).toFixed(3), "aria-hidden": "true" }),
        html("span", { class: "number" }, gap > 0 ? `+${shown(gap, 1)}` : shown(gap, 1)),
      ),
    );
  }

  function summary() {
    const kinds = ["first", "equal", "second"];
    const counts = kinds.map((kind) => compared.filter((entry) => winner(entry) === kind).length);
    const means = systems.map((system, index) => compared.reduce((sum, entry) => sum + entry.systems[index].metric, 0) / compared.length);
    const names = [`${systems[0].name} wins`, "equal", `${systems[1].name} wins`];
    return html(
      "div",
      { class: "summary" },
      html(
        "div",
        { class: "wins", role: "img", "aria-label": names.map((name, index) => `${name}: ${counts[index]}`).join(", ") },
        kinds.map((kind, index) => (counts[index] ? html("span", { class: kind, "--count": counts[index] }) : null)),
      ),
      html(
        "ul",
        { class: "wins-legend" },
        names.map((name, index) => html("li", { class: kinds[index] }, html("strong", {}, counts[index]), ` ${name}`)),
      ),
      html(
        "table",
        { class: "means" },
        html("caption", {}, `Mean over ${counted(compared.length, "sentence")}`),
        html("tbody", {}, systems.map((system, index) => html("tr", {}, html("th", { scope: "row" }, system.name), html("td", {}, `${shown(means[index], 1)} ${metric}`)))),
      ),
    );
  }
}
