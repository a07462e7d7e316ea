// Treeformer's chart: a triangle with a cell for every phrase, wide phrases above the narrow ones that they contain.

const CELL = { least: 46, most: 60, half: 22 };
const MOST_SPLITS = 7;

function drawChart({ data, settings, redraw }) {
  const { tokens, cells } = data;
  const widest = cells.reduce((width, [start, end]) => Math.max(width, end - start), 1);
  const unit = Math.max(CELL.least, Math.min(CELL.most, Math.max(...tokens.map((token) => textWidth(token) + 14))));
  const middle = ([start, end]) => ({ x: ((start + end) / 2) * unit, y: (widest - (end - start) + 1) * CELL.half });
  const splits = splitsOf(data);
  const nodes = relations(data.tree);
  const place = new Map(cells.map(([start, end], index) => [`${start} ${end}`, index]));
  const inside = (node) => place.get(`${node.firstLeaf} ${node.lastLeaf}`);
  const chosen = new Set(nodes.map(inside).filter((index) => index !== undefined));
  const shades = [["nothing", "nothing"]];
  if (splits.some((weights) => weights.length > 1)) shades.push(["certainty", "weight of the best split"]);
  if (data.phrase_attention) shades.push(["attention", "attention of an output word"]);
  if (!shades.some(([key]) => key === settings.shade)) settings.shade = shades[shades.length - 1][0];
  if (!data.rows || settings.row >= data.rows.length) settings.row = 0;
  const values = shadesOf();
  const greatest = values && greatestOf(values.filter((value) => value !== null));
  // A chart of limited height lacks the widest phrases of the tree.
  let current = [...chosen].sort((a, b) => cells[b][1] - cells[b][0] - cells[a][1] + cells[a][0])[0] ?? 0;

  const polygons = cells.map((cell, index) => polygon(cell, index));
  const picture = svg(
    "svg",
    {
      class: "chart",
      width: tokens.length * unit + 24,
      height: (widest + 1) * CELL.half + 40,
      "--natural": `${Math.ceil(tokens.length * unit + 24)}px`,
      viewBox: `-12 -6 ${tokens.length * unit + 24} ${(widest + 1) * CELL.half + 40}`,
      role: "group",
      "aria-label": "Chart of phrases",
      onkeydown: key,
    },
    polygons,
    svg("g", { class: "chosen-edges", "aria-hidden": "true" }, nodes.map((node) => edge(node)), nodes.map((node) => dot(node))),
    svg(
      "g",
      { "aria-hidden": "true" },
      tokens.map((token, index) =>
        svg("text", { x: (index + 0.5) * unit, y: (widest + 1) * CELL.half + 18 }, shortened(token, Math.max(7, Math.floor(unit / 6.5)))),
      ),
    ),
  );
  const detail = html("div", { class: "beside", "aria-live": "polite" });
  const parts = [
    html(
      "div",
      { class: "tools" },
      chooser("Shade by", shades, settings.shade, (value) => {
        settings.shade = value;
        redraw();
      }),
      values ? legend(greatest, settings.shade === "certainty" ? "weight" : "attention") : null,
    ),
  ];
  if (settings.shade === "attention") {
    const words = data.rows.map((row, index) => [index, quoted(row)]);
    parts.push(
      html("p", { class: "label", id: "target-words" }, "Output word"),
      choice("Output word", words, settings.row, (row) => {
        settings.row = row;
        redraw({ focus: "[role=radio][aria-checked=true]" });
      }, { class: "choice words" }),
    );
  }
  select(current, false);
  const scroll = html("div", { class: "scroll picture" }, picture);
  const text = html(
    "details",
    { class: "as-text" },
    html("summary", {}, "The chosen splits as brackets"),
    html("pre", { tabindex: "0", dir: "auto" }, brackets(data.tree)),
  );
  return [...parts, html("div", { class: "split" }, html("div", {}, withScrollHint(scroll), html("div", { class: "under-tree" }, text, saveButtons(picture, "Chart of phrases"))), detail)];

  function shadesOf() {
    if (settings.shade === "certainty") return splits.map((weights) => (weights.length ? Math.max(...weights) : null));
    if (settings.shade !== "attention") return null;
    const weight = weightsOf(data.phrase_attention);
    return cells.map((cell, index) => weight(settings.row, index));
  }

  function polygon(cell, index) {
    const { x, y } = middle(cell);
    const [across, down] = [unit / 2 - 1.5, CELL.half - 1];
    const value = values ? values[index] : null;
    const phrase = spanText(tokens, ...cell);
    const name = `“${phrase}”${chosen.has(index) ? ", chosen" : ""}${value === null ? "" : `, ${shown(value, 3)}`}`;
    const classes = `cell${value === null ? "" : " shaded"}`;
    return svg(
      "polygon",
      {
        class: classes,
        points: `${x - across},${y} ${x},${y - down} ${x + across},${y} ${x},${y + down}`,
        "--weight": value === null ? null : (value / greatest).toFixed(3),
        role: "img",
        "aria-label": name,
        tabindex: "-1",
        onclick: () => select(index, true),
      },
      svg("title", {}, name),
    );
  }

  function edge(node) {
    if (node.parent < 0) return null;
    const above = nodes[node.parent];
    if (inside(above) === undefined) return null;
    const from = middle([above.firstLeaf, above.lastLeaf]);
    const to = middle([node.firstLeaf, node.lastLeaf]);
    return svg("path", { d: `M${from.x} ${from.y}L${to.x} ${to.y}` });
  }

  function dot(node) {
    const { x, y } = middle([node.firstLeaf, node.lastLeaf]);
    return inside(node) === undefined ? null : svg("circle", { cx: x, cy: y, r: 4 });
  }

  function select(index, focus) {
    polygons[current].setAttribute("tabindex", "-1");
    polygons[current].classList.remove("selected");
    current = index;
    polygons[index].setAttribute("tabindex", "0");
    polygons[index].classList.add("selected");
    if (focus) polygons[index].focus();
    const [start, end] = cells[index];
    const heading = html("h3", {}, quoted(spanText(tokens, start, end)));
    const weight = values && values[index] !== null && settings.shade === "attention";
    const attended = weight
      ? html("p", {}, quoted(data.rows[settings.row]), ` gives it ${shown(values[index], 3)} of its attention.`)
      : "";
    if (splits[index].length === 0) {
      const said = end - start === 1 ? "A single word: nothing to split." : "Its splits were not recorded.";
      detail.replaceChildren(heading, html("p", { class: "quiet" }, said), attended);
      return;
    }
    const best = splits[index].indexOf(Math.max(...splits[index]));
    const rows = splits[index].map((value, at) => ({
      name: [quoted(spanText(tokens, start, start + 1 + at)), html("span", { class: "divider" }, " | "), quoted(spanText(tokens, start + 1 + at, end))],
      value,
      kind: at === best ? "best" : "",
    }));
    rows.sort((a, b) => b.value - a.value);
    const more = rows.length - MOST_SPLITS;
    detail.replaceChildren(
      heading,
      attended,
      bars("Weights of its splits", ["Split", "Weight"], rows.slice(0, MOST_SPLITS), greatestOf(splits[index])),
      more > 0 ? html("p", { class: "quiet small" }, `and ${counted(more, "smaller weight")}`) : "",
    );
  }

  function key(event) {
    const [start, end] = cells[current];
    const steps = {
      ArrowLeft: [start - 1, end - 1],
      ArrowRight: [start + 1, end + 1],
      ArrowUp: [start, end + 1],
      ArrowDown: [start, end - 1],
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    let target = place.get(step.join(" "));
    // At the right edge of the triangle, wider phrases begin further left.
    if (target === undefined && event.key === "ArrowUp") target = place.get(`${start - 1} ${end}`);
    if (target !== undefined) select(target, true);
  }
}

/** The weights of the split points of each cell; none for words. */
function splitsOf(data) {
  const all = data.split_weights ?? [];
  if (all.length === data.cells.length) return all;
  let next = 0;
  return data.cells.map(([start, end]) => {
    if (end - start < 2) return [];
    next += 1;
    return all[next - 1] ?? [];
  });
}
