// Cross-attention over words and nodes: a heat map, and the source tree of one word of the output.

function drawAttention({ data, sentence, settings, redraw }) {
  const layers = data.weights.shape[0];
  const chooserOfLayers = layerChooser(layers, settings, redraw);
  const weight = layerOf(data.weights, settings.layer);
  const words = data.columns.flatMap((column, index) => (column.kind === "word" || column.kind === "eos" ? [index] : []));
  const spans = data.columns.flatMap((column, index) => (column.kind === "node" || column.kind === "phrase" ? [index] : []));
  const order = [...words, ...spans];
  const named = order.map((index) => ({ ...data.columns[index], ...columnText(data.columns[index], sentence.tokens), index }));
  const phrases = spans.length && data.columns[spans[0]].kind === "phrase";
  const groups = [{ name: "Words", columns: named.slice(0, words.length) }];
  if (spans.length) groups.push({ name: phrases ? "Phrases" : "Constituents", columns: named.slice(words.length) });
  const under = html("div", { class: "under" });
  const map = heatMap({
    caption: `Attention of the output (rows) to the source (columns). ${layerName(layers, settings.layer)}.`,
    rows: data.rows,
    groups,
    value: (row, column) => weight(row, order[column]),
    read: (row, column, value) => `“${data.rows[row]}” attends to ${named[column].speech}: ${shown(value, 3)}`,
    onrow: spans.length && !phrases ? showTree : null,
  });
  return [html("div", { class: "tools" }, chooserOfLayers, share()), map, under];

  function share() {
    if (!spans.length) return null;
    let onSpans = 0;
    let all = 0;
    data.rows.forEach((name, row) =>
      order.forEach((column, place) => {
        const value = weight(row, column);
        all += value;
        if (place >= words.length) onSpans += value;
      }),
    );
    const kind = phrases ? "phrases" : "constituents";
    return html("p", { class: "quiet" }, html("strong", {}, percent(onSpans / all)), ` of the attention falls on ${kind}.`);
  }

  function showTree(row) {
    const { tree, origin } = treeOfSpans(spans.map((index) => data.columns[index]), sentence.tokens);
    const column = origin.map((from) => (from >= 0 ? spans[from] : data.columns.findIndex((other) => other.kind === "word" && other.start === -1 - from)));
    const greatest = greatestOf(column.map((index) => (index < 0 ? 0 : weight(row, index))));
    const picture = treePicture({
      tree,
      title: `Attention of “${data.rows[row]}” on the source tree`,
      aligned: true,
      note: (node) => (column[node] < 0 ? null : `weight ${shown(weight(row, column[node]), 3)}`),
    });
    picture.paint({ weight: (node) => (column[node] < 0 ? null : weight(row, column[node]) / greatest) });
    under.replaceChildren(
      html("h3", {}, "Where ", quoted(data.rows[row]), " looks"),
      html("div", { class: "tools" }, legend(greatest, "weight in this row")),
      picture.element,
    );
  }
}

/** The short label of a column and the words that read it out. */
function columnText(column, tokens) {
  if (column.kind === "eos") return { label: column.label || "end", speech: "the end of the sentence" };
  if (column.kind === "word") return { label: column.label, speech: `the word “${column.label}”` };
  const text = spanText(tokens, column.start, column.end);
  const ends = column.end - column.start > 2 ? `${tokens[column.start]} … ${tokens[column.end - 1]}` : text;
  if (column.kind === "phrase") return { label: ends, speech: `the phrase “${text}”` };
  return { label: `${column.label} ${ends}`, speech: `${column.label} “${text}”` };
}
