// The answers to a question: each system's query and its rows. What does not parse is red.

function hasQueries(sentence) {
  return sentence.systems.some((output) => output.views?.query);
}

function answers(sentence, systems) {
  const cards = sentence.systems.map((output, index) => {
    const { query } = output.views ?? {};
    const name = html("h3", {}, systems[index].name);
    if (!query) return html("article", { class: "answer" }, name, html("p", { class: "problem" }, output.error ?? ""));
    return html(
      "article",
      { class: `answer${query.parses ? "" : " broken"}` },
      name,
      html("pre", { class: "query" }, output.hypothesis),
      verdict(query),
      query.columns.length ? rowsOf(query) : null,
    );
  });
  return html("section", { class: "texts", "aria-label": "Answers" }, html("h2", { id: "source" }, quoted(sentence.source)), html("div", { class: "answers" }, cards));
}

function verdict(query) {
  if (!query.parses) return html("p", { class: "problem" }, html("strong", {}, "Does not parse. "), query.problem);
  if (query.problem) return html("p", { class: "problem" }, html("strong", {}, "Parses, does not run. "), query.problem);
  return html("p", { class: "quiet small" }, `Parses and runs: ${counted(query.count, "row")}`);
}

function rowsOf(query) {
  const cells = (row, name, attributes) => html("tr", {}, row.map((text) => html(name, attributes, quoted(text))));
  const left = query.count - query.rows.length;
  return html(
    "div",
    { class: "scroll" },
    html(
      "table",
      { class: "found" },
      html("thead", {}, cells(query.columns, "th", { scope: "col" })),
      html("tbody", {}, query.rows.map((row) => cells(row, "td", {}))),
    ),
    left > 0 ? html("p", { class: "quiet small" }, `and ${counted(left, "more row")}`) : null,
  );
}
