// Draws trees. Layout and drawing go through the nodes in order, so that no depth of a tree is a problem.

const NODE_HEIGHT = 26;
const SECOND_LINE = 15;
const LEVEL_GAP = 28;
const NODE_GAP = 10;
const LONGEST_LABEL = 30;

let measuring = null;

/** The width of a text in pixels, in the font of the page. */
function textWidth(text, size = 13) {
  measuring ??= document.createElement("canvas").getContext("2d");
  measuring.font = `600 ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return measuring.measureText(text).width;
}

function shortened(text, longest = LONGEST_LABEL) {
  const characters = [...visible(text)];
  return characters.length > longest ? `${characters.slice(0, longest - 1).join("")}…` : characters.join("");
}

/**
 * A picture of a tree, with its brackets as a text.
 *
 * Options: ``tree``; ``title``; ``aligned``: leaves stand on one line, as the words of a parse; ``second(node)``: a line
 * below the label; ``note(node)``: what a pointer or a screen reader gets beside the label; ``kind(node)``: classes of
 * the node, such as "open"; ``labelled``: the key of its labels stands below; ``onselect(node)``: makes nodes focusable.
 *
 * Returns ``element`` and ``paint({weight, selected})``, where ``weight(node)`` is a shade from 0 to 1, or null.
 */
function treePicture(options) {
  const { tree, title, aligned = false, second = () => null, note = () => null, kind = () => "", labelled = false, onselect } = options;
  const nodes = relations(tree);
  const labels = tree.labels.map((label) => shortened(label));
  const seconds = labels.map((label, node) => second(node));
  const height = NODE_HEIGHT + (seconds.some((line) => line !== null) ? SECOND_LINE : 0);
  const widths = labels.map((label, node) => {
    const below = seconds[node] === null ? 0 : textWidth(seconds[node], 11);
    return Math.max(24, textWidth(label) + 16, below + 12);
  });
  const { x, y, width, depth } = placed(nodes, widths, height + LEVEL_GAP, aligned);
  const total = { width: width + 16, height: depth * (height + LEVEL_GAP) + height + 16 };

  const names = labels.map((label, node) => [tree.labels[node], seconds[node], note(node)].filter(Boolean).join(", "));
  const edges = nodes.map((node, index) => (node.parent < 0 ? null : edge(node, index)));
  const groups = nodes.map((node, index) => group(index));
  const describedAs = identifier("tree");
  const picture = svg(
    "svg",
    {
      class: "tree",
      width: total.width,
      height: total.height,
      "--natural": `${Math.ceil(total.width)}px`,
      viewBox: `-8 -8 ${total.width} ${total.height}`,
      role: onselect ? "tree" : "img",
      "aria-labelledby": `${describedAs}-title`,
      "aria-describedby": `${describedAs}-text`,
      onkeydown: onselect ? key : null,
    },
    svg("title", { id: `${describedAs}-title` }, title),
    svg("desc", {}, brackets(tree)),
    svg("g", { class: "edges", "aria-hidden": "true" }, edges),
    groups,
  );
  const text = html(
    "details",
    { class: "as-text" },
    html("summary", {}, "As brackets"),
    html("pre", { id: `${describedAs}-text`, tabindex: "0", dir: "auto" }, brackets(tree)),
  );
  let current = 0;
  paint({ selected: null });
  const scroll = html("div", { class: "scroll picture", tabindex: onselect ? null : "0", role: "group" }, picture);
  scroll.setAttribute("aria-label", visible(title));
  const under = html("div", { class: "under-tree" }, text, saveButtons(picture, title), labelled ? labelKey([tree]) : null);
  return { element: html("div", { class: "tree-with-text" }, withScrollHint(scroll), under), paint };

  function edge(node, index) {
    const [fromX, fromY] = [x[node.parent], y[node.parent] + height];
    const bend = y[node.parent] + height + LEVEL_GAP;
    const middle = (fromY + bend) / 2;
    const path = `M${fromX} ${fromY}C${fromX} ${middle} ${x[index]} ${middle} ${x[index]} ${bend}V${y[index]}`;
    return svg("path", { d: path });
  }

  function group(index) {
    const leaf = tree.children[index] === 0;
    return svg(
      "g",
      {
        class: `node ${leaf ? "leaf" : "inner"} ${kind(index)}`,
        transform: `translate(${x[index]} ${y[index]})`,
        role: onselect ? "treeitem" : null,
        "aria-level": onselect ? nodes[index].depth + 1 : null,
        "aria-label": onselect ? names[index] : null,
        tabindex: onselect ? "-1" : null,
        "data-node": index,
        onclick: onselect ? () => choose(index) : null,
      },
      svg("title", {}, names[index]),
      svg("rect", { x: -widths[index] / 2, width: widths[index], height, rx: 6 }),
      svg("text", { y: 17.5 }, labels[index]),
      seconds[index] === null ? null : svg("text", { class: "second", y: 32 }, seconds[index]),
    );
  }

  function choose(index) {
    onselect(index);
    groups[index].focus({ preventScroll: false });
  }

  function key(event) {
    const node = nodes[current];
    const level = node.parent < 0 ? nodes.flatMap((other, index) => (other.parent < 0 ? [index] : [])) : nodes[node.parent].children;
    const place = level.indexOf(current);
    const targets = {
      ArrowUp: node.parent,
      ArrowDown: node.children[0],
      ArrowLeft: level[place - 1] ?? current - 1,
      ArrowRight: level[place + 1] ?? node.end,
      Home: 0,
      End: nodes.length - 1,
    };
    const target = targets[event.key];
    if (target === undefined || target < 0 || target >= nodes.length) return;
    event.preventDefault();
    choose(target);
  }

  function paint({ weight = () => null, selected = null }) {
    groups.forEach((element, index) => {
      const value = weight(index);
      element.classList.toggle("shaded", value !== null);
      element.classList.toggle("strong", value !== null && value > STRONG);
      element.classList.toggle("selected", index === selected);
      if (value !== null) element.style.setProperty("--weight", value.toFixed(3));
      if (onselect) {
        element.setAttribute("tabindex", index === (selected ?? 0) ? "0" : "-1");
        element.setAttribute("aria-selected", String(index === selected));
      }
    });
    current = selected ?? 0;
  }
}

/** The middle (x) and the top (y) of each node, the width of all, and the greatest depth. */
function placed(nodes, widths, level, aligned) {
  const total = [...widths];
  const below = widths.map(() => 0);
  let depth = 0;
  for (let index = nodes.length - 1; index >= 0; index -= 1) {
    const { children } = nodes[index];
    if (children.length) {
      below[index] = children.reduce((sum, child) => sum + total[child], NODE_GAP * (children.length - 1));
      total[index] = Math.max(widths[index], below[index]);
    }
    depth = Math.max(depth, nodes[index].depth);
  }
  const left = [];
  let cursor = 0;
  nodes.forEach((node, index) => {
    if (node.parent < 0) {
      left[index] = cursor;
      cursor += total[index] + 3 * NODE_GAP;
    }
    let start = left[index] + (total[index] - below[index]) / 2;
    node.children.forEach((child) => {
      left[child] = start;
      start += total[child] + NODE_GAP;
    });
  });
  const x = [];
  for (let index = nodes.length - 1; index >= 0; index -= 1) {
    const { children } = nodes[index];
    const middle = children.length ? (x[children[0]] + x[children[children.length - 1]]) / 2 : left[index] + total[index] / 2;
    const half = widths[index] / 2;
    x[index] = Math.max(left[index] + half, Math.min(left[index] + total[index] - half, middle));
  }
  const y = nodes.map((node) => level * (aligned && !node.children.length ? depth : node.depth));
  return { x, y, width: Math.max(24, cursor - 3 * NODE_GAP), depth };
}
