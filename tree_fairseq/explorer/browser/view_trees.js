// The views that are one tree: the parse, the accumulation, and the classes of constituents.

/** "the old man", or "the old … barn" where it is long. */
function spanText(tokens, start, end) {
  const words = tokens.slice(start, end);
  const whole = (pieces) => pieces.join(" ").replace(/\u2010 /g, "");
  return words.length > 8 ? `${whole(words.slice(0, 4))} … ${whole(words.slice(-3))}` : whole(words);
}

function coverNote(tree, nodes) {
  const leaves = leavesOf(tree);
  return (node) =>
    tree.children[node] ? `covers “${spanText(leaves, nodes[node].firstLeaf, nodes[node].lastLeaf)}”` : "word";
}

function drawParse({ data, sentence }) {
  const nodes = relations(data);
  let picture = null;
  const chosen = html("p", { class: "reading" }, "Choose a constituent to see the words that it covers.");
  const leaves = leavesOf(data);
  const onselect = (node) => {
    const { firstLeaf, lastLeaf, end } = nodes[node];
    picture.paint({ selected: node, weight: (other) => (other >= node && other < end ? 0.16 : null) });
    chosen.replaceChildren(html("strong", {}, data.labels[node]), " covers ", quoted(spanText(leaves, firstLeaf, lastLeaf)));
  };
  picture = treePicture({ tree: data, title: `Parse of: ${sentence.source}`, aligned: true, labelled: true, note: coverNote(data, nodes), onselect });
  return [picture.element, chosen];
}

function drawAccumulation({ data, sentence, settings, redraw }) {
  const { tokens } = sentence;
  const { tree, origin } = treeOfSpans(data.nodes, tokens);
  const nodes = relations(tree);
  const heads = data.heads > 1 ? `, mean of ${data.heads} heads` : "";
  const layers = layerChooser(data.layers, settings, redraw);
  const weight = layerOf(data.weights, settings.layer);
  // Items are the tokens, then the nodes.
  const item = origin.map((from) => (from < 0 ? -1 - from : tokens.length + from));
  const inner = origin.flatMap((from, index) => (from >= 0 ? [index] : []));
  const legendPlace = html("div", { class: "tools" });
  const values = html("div", { class: "beside" });
  const picture = treePicture({
    tree,
    title: `Weights of the accumulation, for: ${sentence.source}`,
    aligned: true,
    labelled: true,
    note: coverNote(tree, nodes),
    onselect: select,
  });
  if (!inner.length) return [html("p", {}, "The model read no constituents in this sentence.")];
  select(inner.includes(settings.node) ? settings.node : inner[0], false);
  return [html("div", { class: "tools" }, layers, legendPlace), html("div", { class: "split" }, picture.element, values)];

  function select(node, speak = true) {
    let chosen = node;
    // A word has no weights of its own: its parent has.
    if (origin[chosen] < 0) chosen = nodes[chosen].parent;
    if (chosen < 0) return;
    settings.node = chosen;
    const { end } = nodes[chosen];
    const rows = [];
    for (let index = chosen; index < end; index += 1) {
      const word = origin[index] < 0;
      rows.push({ index, value: weight(origin[chosen], item[index]), name: tree.labels[index], word });
    }
    const greatest = greatestOf(rows.map((row) => row.value));
    picture.paint({
      selected: node === chosen ? chosen : node,
      weight: (index) => (index >= chosen && index < end ? rows[index - chosen].value / greatest : null),
    });
    legendPlace.replaceChildren(legend(greatest, `weight in ${tree.labels[chosen]}${heads}`));
    const ordered = rows.filter((row) => row.value > 0).sort((a, b) => b.value - a.value);
    const listed = ordered.slice(0, 12).map((row) => ({
      name: row.index === chosen ? `${row.name} (itself)` : quoted(row.name),
      value: row.value,
      note: row.word ? "word" : spanText(leavesOf(tree), nodes[row.index].firstLeaf, nodes[row.index].lastLeaf),
    }));
    const caption = `${tree.labels[chosen]} “${spanText(tokens, nodes[chosen].firstLeaf, nodes[chosen].lastLeaf)}”`;
    const more = ordered.length > listed.length ? html("p", { class: "quiet small" }, `and ${counted(ordered.length - listed.length, "smaller weight")}`) : null;
    values.replaceChildren(bars(caption, ["Item", "Weight", "Covers"], listed, greatest), more ?? "");
    if (speak && ordered.length) {
      announce(`${caption}: greatest weight ${shown(ordered[0].value, 3)} on ${tree.labels[ordered[0].index]}`);
    }
  }
}

function drawClasses({ data, sentence }) {
  const best = data.probabilities.indexOf(Math.max(...data.probabilities));
  const rows = data.classes.map((name, index) => ({
    name,
    value: data.probabilities[index],
    note: index === best ? "predicted" : "",
    kind: index === best ? "best" : "",
  }));
  const table = bars("Probabilities of the classes", ["Class", "Probability", ""], rows, 1);
  if (!data.nodes || !sentence.parse) return [table];
  const tree = sentence.parse;
  const nodes = relations(tree);
  const classes = new Map(data.nodes.map((node) => [node.index, node]));
  const wrong = data.nodes.filter((node) => node.gold !== null && node.gold !== node.predicted);
  const golden = data.nodes.filter((node) => node.gold !== null);
  const picture = treePicture({
    tree,
    title: `Classes of the constituents of: ${sentence.source}`,
    aligned: true,
    second: (node) => classes.get(node)?.predicted ?? null,
    note: (node) => {
      const found = classes.get(node);
      if (!found || found.gold === null) return null;
      return found.gold === found.predicted ? "as in the data" : `the data says ${found.gold}`;
    },
    kind: (node) => {
      const found = classes.get(node);
      return found && found.gold !== null && found.gold !== found.predicted ? "wrong" : "";
    },
  });
  const last = Math.max(1, data.classes.length - 1);
  picture.paint({ weight: (node) => (classes.has(node) ? data.classes.indexOf(classes.get(node).predicted) / last : null) });
  const scale = html(
    "div",
    { class: "legend" },
    html("span", {}, data.classes[0]),
    html("span", { class: "strip", "aria-hidden": "true" }),
    html("span", {}, data.classes[data.classes.length - 1]),
    golden.length
      ? html("span", { class: "quiet" }, `dashed: another class than in the data (${wrong.length} of ${golden.length})`)
      : null,
  );
  return [html("div", { class: "tools" }, scale), html("div", { class: "split" }, picture.element, table)];
}
