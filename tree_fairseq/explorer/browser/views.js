// The views of a sentence: their names, their explanations with sources, and when they exist.

const PAPERS = {
  tree_transformer: ["Nguyen et al. 2020", "https://openreview.net/forum?id=HJxK5pEYvr"],
  tree_positional: ["Shiv and Quirk 2019", "https://papers.nips.cc/paper/2019/hash/6e0917469214d8fbd8c517dcdc6b8dcf-Abstract.html"],
  treeformer: ["Patel and Flanigan 2023", "https://aclanthology.org/2023.ranlp-1.90/"],
  tree_insertion: ["Lukovnikov and Fischer 2021", "https://openreview.net/forum?id=u8ZxSnOX07X"],
  sequence: ["Vaswani et al. 2017", "https://arxiv.org/abs/1706.03762"],
};

// In the order of the tabs. ``explain`` and ``source`` may depend on the method of the system.
const VIEWS = [
  {
    key: "parse",
    name: "Parse",
    explain: () => "The tree of the sentence: words stand at the bottom, constituents above the words that they cover.",
    source: () => null,
    draw: drawParse,
  },
  {
    key: "accumulation",
    name: "Accumulation",
    explain: () =>
      "A Tree-Transformer computes each constituent from the words and constituents of its own subtree. " +
      "Choose a constituent to see how much each of them counts.",
    source: () => ["tree_transformer", "sections 4.1 to 4.3"],
    draw: drawAccumulation,
  },
  {
    key: "attention",
    field: "cross_attention",
    name: "Cross-attention",
    explain: (method) =>
      ({
        tree_transformer: "Each row is a word of the output. Its cells show how much the decoder attends to each word and each constituent of the source.",
        treeformer: "Each row is a word of the output. Its cells show how much the decoder attends to each word and each phrase of the source.",
      })[method] ?? "Each row is a symbol of the output. Its cells show how much the decoder attends to each word of the source.",
    source: (method) =>
      ({ tree_transformer: ["tree_transformer", "section 4.4"], treeformer: ["treeformer", "section 6.6"] })[method] ?? [
        "sequence",
        "section 3.2.3",
      ],
    draw: drawAttention,
  },
  {
    key: "chart",
    name: "Chart",
    explain: () =>
      "A Treeformer composes a vector for every phrase from all ways to split it in two. " +
      "The lines follow the splits of greatest weight, from the whole sentence down.",
    source: () => ["treeformer", "section 3.2"],
    draw: drawChart,
  },
  {
    key: "beam",
    name: "Beam",
    explain: () =>
      "The search builds a tree symbol by symbol and keeps the best few. " +
      "Symbols that could not lead to a complete tree are grey: they are never chosen.",
    source: () => ["tree_positional", "section 4"],
    draw: drawBeam,
  },
  {
    key: "insertion",
    name: "Insertion",
    explain: () =>
      "The decoder begins with a root, @R@, which is no part of the output, and inserts nodes into all slots of the tree at once, step after step, until it closes every slot.",
    source: () => ["tree_insertion", "section 3.1"],
    draw: drawInsertion,
  },
  {
    key: "classification",
    name: "Classes",
    explain: (method, view) =>
      view.nodes
        ? "The model gives a probability to each class, and a class to each constituent."
        : "The model gives a probability to each class of the sentence.",
    source: (method) => (method === "classification" ? ["tree_transformer", "section 5.2"] : null),
    draw: drawClasses,
  },
];

/** What a view draws from: a system's part of the sentence, or the parse. Null if it has none. */
function viewData(view, sentence, system) {
  if (view.key === "parse") return sentence.parse && sentence.parse.labels.length ? sentence.parse : null;
  return sentence.systems[system].views?.[view.field ?? view.key] ?? null;
}

function isOmitted(view, sentence, system) {
  return (sentence.systems[system].omitted ?? []).includes(view.field ?? view.key);
}

/** The views that a sentence has in any system, or had before they were left out. */
function viewsOf(sentence) {
  return VIEWS.filter((view) =>
    sentence.systems.some((unused, system) => viewData(view, sentence, system) || isOmitted(view, sentence, system)),
  );
}

/** The explanation of a view in plain words, with the paper. */
function explanation(view, method, data) {
  const source = view.source(method);
  const paper = source && PAPERS[source[0]];
  return html(
    "p",
    { class: "explain" },
    view.explain(method, data),
    paper ? [" ", html("cite", {}, html("a", { href: paper[1], rel: "noreferrer noopener" }, paper[0]), `, ${source[1]}`)] : null,
  );
}
