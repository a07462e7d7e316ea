// Reads what page.py packed: sentences, matrices of weights, and trees in preorder.

/** The document of the page, with the systems and the list of sentences. */
function readDocument() {
  return JSON.parse(document.getElementById("document").textContent);
}

/**
 * A piece of a word as a reader sees it: without the marks of subwords (the@@, ▁the), and with the end in words. A piece
 * that goes on ends in a hyphen of its own, U+2010.
 */
function readablePiece(key, value) {
  if (typeof value !== "string") return value;
  if (value === "</s>") return "end";
  return value.replace(/^(\S+)@@$/, "$1\u2010").replace(/^\u2581(?=\S)/, "");
}

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) bytes[index] = text.charCodeAt(index);
  return bytes;
}

/** A promise of the whole sentence. Sentences that were typed come unpacked. */
async function unpack(entry) {
  if (!entry.packed) return entry;
  const stream = new Blob([bytesOf(entry.packed)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  const start = 4 + length;
  const rest = JSON.parse(text, (key, value) => {
    if (value && value.shape && value.offset !== undefined) {
      const size = value.shape.reduce((product, side) => product * side, 1);
      value.bytes = new Uint8Array(buffer, start + value.offset, size);
    }
    return readablePiece(key, value);
  });
  const systems = rest.systems.map((system, index) => ({ ...system, ...entry.systems[index] }));
  return { ...entry, ...rest, systems };
}

/** A function of a matrix's indexes that gives the weight there. */
function weightsOf(matrix) {
  if (!matrix.bytes) matrix.bytes = bytesOf(matrix.data);
  const { shape, bytes, max } = matrix;
  return (...indexes) => {
    let place = 0;
    indexes.forEach((index, axis) => {
      place = place * shape[axis] + index;
    });
    return (bytes[place] / 255) * max;
  };
}

/** The weights of one layer, or the mean of all if ``layer`` is -1. */
function layerOf(matrix, layer) {
  const weight = weightsOf(matrix);
  if (layer >= 0) return (row, column) => weight(layer, row, column);
  const layers = matrix.shape[0];
  return (row, column) => {
    let sum = 0;
    for (let index = 0; index < layers; index += 1) sum += weight(index, row, column);
    return sum / layers;
  };
}

/**
 * Relations of the nodes of a tree, or of a forest, in preorder: parent (-1 for a root), children, depth, end (the node
 * after the subtree), and the span of leaves [firstLeaf, lastLeaf).
 */
function relations(tree) {
  const size = tree.labels.length;
  const nodes = Array.from({ length: size }, () => ({ parent: -1, children: [], depth: 0, end: 0 }));
  const open = [];
  let leaves = 0;
  for (let index = 0; index < size; index += 1) {
    while (open.length && open[open.length - 1].missing === 0) open.pop();
    const node = nodes[index];
    node.firstLeaf = leaves;
    if (open.length) {
      const above = open[open.length - 1];
      above.missing -= 1;
      node.parent = above.index;
      node.depth = nodes[above.index].depth + 1;
      nodes[above.index].children.push(index);
    }
    if (tree.children[index] === 0) leaves += 1;
    open.push({ index, missing: tree.children[index] });
  }
  for (let index = size - 1; index >= 0; index -= 1) {
    const node = nodes[index];
    const last = nodes[node.children[node.children.length - 1]];
    node.end = last ? last.end : index + 1;
    node.lastLeaf = last ? last.lastLeaf : node.firstLeaf + 1;
  }
  return nodes;
}

/** The labels of the leaves of a tree, from left to right. */
function leavesOf(tree) {
  return tree.labels.filter((label, index) => tree.children[index] === 0);
}

/** A tree in brackets, such as (S (NP the man) sleeps). */
function brackets(tree) {
  const parts = [];
  const open = [];
  tree.labels.forEach((label, index) => {
    const before = parts.length ? " " : "";
    if (tree.children[index] > 0) {
      parts.push(`${before}(${label}`);
      open.push(tree.children[index]);
      return;
    }
    parts.push(before + label);
    while (open.length) {
      open[open.length - 1] -= 1;
      if (open[open.length - 1] > 0) break;
      open.pop();
      parts.push(")");
    }
  });
  return parts.join("");
}

/**
 * The tree of spans over tokens, in preorder, with the tokens as its leaves. ``origin`` tells for each node of the tree
 * which span (its index) or token (-1 - its index) it is.
 */
function treeOfSpans(spans, tokens) {
  const order = spans.map((span, index) => index);
  order.sort((a, b) => spans[a].start - spans[b].start || spans[b].end - spans[a].end || a - b);
  const tree = { labels: [], children: [] };
  const origin = [];
  const open = [];
  const add = (label, from) => {
    while (open.length && open[open.length - 1].end <= from.start) open.pop();
    if (open.length) tree.children[open[open.length - 1].place] += 1;
    tree.labels.push(label);
    tree.children.push(0);
    origin.push(from.origin);
    return tree.labels.length - 1;
  };
  let next = 0;
  tokens.forEach((token, place) => {
    while (next < order.length && spans[order[next]].start <= place) {
      const span = spans[order[next]];
      if (span.end > span.start) {
        const node = add(span.label, { start: span.start, origin: order[next] });
        open.push({ end: span.end, place: node });
      }
      next += 1;
    }
    add(token, { start: place, origin: -1 - place });
  });
  return { tree, origin };
}

/** Whether a partial tree, whose open nodes stand for any subtree, agrees with a whole tree. */
function agrees(partial, open, whole) {
  // Where the search writes trees in another form (left child, right sibling), nothing can be compared.
  if (partial.labels.length > whole.labels.length) return false;
  const nodes = relations(whole);
  let place = 0;
  for (let index = 0; index < partial.labels.length; index += 1) {
    if (place >= nodes.length) return false;
    if (open.has(index)) {
      place = nodes[place].end;
    } else {
      if (partial.labels[index] !== whole.labels[place]) return false;
      if (partial.children[index] !== whole.children[place]) return false;
      place += 1;
    }
  }
  return place === nodes.length;
}
