// Outputs that are trees, and answers to questions: a card for the reference and for each system, with its tree. Nodes
// that differ from the reference are dashed; a query that does not parse is red.

function hasAnswers(sentence) {
  return Boolean(sentence.reference_tree) || sentence.systems.some((output) => output.views?.query || output.views?.output_tree);
}

function answers(sentence, systems) {
  const trees = sentence.systems.map((output) => output.views?.output_tree ?? null);
  const against = sentence.reference_tree ? "the reference" : systems[0].name;
  const model = sentence.reference_tree ?? trees[0];
  const cards = sentence.systems.map((output, index) => {
    const differing = model && trees[index] ? differingNodes(trees[index], model) : new Set();
    return answer(sentence, systems, index, trees[index], differing, sentence.reference_tree || index > 0 ? against : null);
  });
  if (sentence.reference) {
    const missed = sentence.reference_tree && trees[0] ? differingNodes(sentence.reference_tree, trees[0]) : new Set();
    const note = missed.size ? html("p", { class: "small quiet same" }, `Dashed: not so in the tree of ${systems[0].name}.`) : null;
    const picture = sentence.reference_tree ? answerTree(sentence.reference_tree, `Tree of the reference for: ${sentence.source}`, missed) : null;
    cards.unshift(html("article", { class: "answer reference" }, html("h3", {}, "Reference"), picture, note, asText(sentence.reference, !picture)));
  }
  const widths = cards.flatMap((card) => [...card.querySelectorAll("svg.tree")].map((picture) => picture.viewBox.baseVal.width));
  const card = Math.min(420, Math.max(270, ...widths.map((width) => width + 66)));
  const shownTrees = [sentence.reference_tree, ...trees].filter(Boolean);
  return html(
    "section",
    { class: "texts", "aria-label": "Answers" },
    html("h2", { id: "source" }, quoted(sentence.source)),
    html("div", { class: "answers", "--card": `${card}px` }, cards),
    shownTrees.length ? labelKey(shownTrees) : null,
  );
}

function answer(sentence, systems, index, tree, differing, against) {
  const output = sentence.systems[index];
  const { query } = output.views ?? {};
  const { name, metric } = systems[index];
  const won = winner(sentence) === ["first", "second"][index];
  const facts = [...namedNumbers(output, metric), won ? "wins" : null].filter(Boolean).join(" · ");
  const head = [html("h3", {}, name), facts ? html("p", { class: `facts${won ? " won" : ""}` }, facts) : null];
  if (output.error) return html("article", { class: "answer" }, head, html("p", { class: "problem" }, output.error));
  const nodes = tree?.labels.length;
  const same = differing.size ? `${differing.size} of ${counted(nodes, "node")} differ from ${against} (dashed).` : `The same tree as ${against}.`;
  return html(
    "article",
    { class: `answer${query && !query.parses ? " broken" : ""}` },
    head,
    query ? verdict(query) : null,
    tree ? [answerTree(tree, `Tree of ${name} for: ${sentence.source}`, differing), against ? html("p", { class: "small quiet same" }, same) : null] : null,
    !tree && !query ? html("p", { class: "problem" }, "The output is not a tree.") : null,
    asText(output.hypothesis, Boolean(query) || !tree),
    query?.columns.length ? rowsOf(query) : null,
  );
}

function answerTree(tree, title, differing) {
  const labels = tree.is_program ? tree.labels.map(shortProduction) : tree.labels;
  const kind = (node) => (differing.has(node) ? "wrong" : "");
  return treePicture({ tree: { ...tree, labels }, title, kind, note: (node) => (differing.has(node) ? "differs" : null) }).element;
}

function asText(text, open) {
  const written = html("pre", { class: "query", dir: "auto" }, text);
  return open ? written : html("details", { class: "as-text written" }, html("summary", {}, "As text"), written);
}

/**
 * The nodes of a tree that differ from another: from the root down, a node with another label, and children that the
 * other has not at that place. Where the numbers of children differ, equal subtrees are paired in their order.
 */
function differingNodes(tree, other) {
  const [ours, theirs] = [relations(tree), relations(other)];
  const written = (record, nodes, node) => record.labels.slice(node, nodes[node].end).map((label, place) => `${label}\n${record.children[node + place]}`).join("\n");
  const found = new Set();
  const mark = (node) => {
    for (let place = node; place < ours[node].end; place += 1) found.add(place);
  };
  const pairs = [[0, 0]];
  while (pairs.length) {
    const [node, twin] = pairs.pop();
    const [below, belowTwin] = [ours[node].children, theirs[twin].children];
    if (tree.labels[node] !== other.labels[twin]) found.add(node);
    if (below.length === belowTwin.length) {
      below.forEach((child, place) => pairs.push([child, belowTwin[place]]));
    } else {
      const names = (record, nodes, children) => children.map((child) => written(record, nodes, child));
      marked(names(tree, ours, below), names(other, theirs, belowTwin)).forEach(([, differs], place) => differs && mark(below[place]));
    }
  }
  return found;
}

function verdict(query) {
  if (!query.parses) return html("p", { class: "problem" }, html("strong", {}, "Does not parse. "), query.problem);
  if (query.problem) return html("p", { class: "problem" }, html("strong", {}, "Parses, does not run. "), query.problem);
  return html("p", { class: "quiet small runs" }, `Parses and runs: ${counted(query.count, "row")}`);
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
