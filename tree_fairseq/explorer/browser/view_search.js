// The views of decoding, step by step: the structural beam and insertion-based decoding.

/**
 * The label of a production of a program as pictures show it: types, fields and the text of a leaf, as in "Column name" and
 * "Where EQ expression"; source_code/productions.py has the form of labels.
 */
function shortProduction(label) {
  const quote = label.indexOf('"');
  const types = (quote < 0 ? label : label.slice(0, quote)).split(" ");
  if (quote >= 0) return `${types[0]} ${label.slice(quote + 1) || "…"}`.trim();
  const words = types.map((word) => word.replace(/^['+]|\[\]$|_$/g, ""));
  return words.filter((word) => word && word !== "this" && word !== "|").join(" ");
}

/** A symbol is an escaped label and its number of children, such as Where\sthis^1. */
function shortSymbol(symbol) {
  const unescaped = (whole, code, letter) => (code ? String.fromCharCode(parseInt(code, 16)) : { s: " ", e: "" }[letter] ?? letter);
  return shortProduction(symbol.replace(/\^\d+$/, "").replace(/\\u([0-9a-f]{4})|\\(.)/g, unescaped));
}

function withShortLabels(data) {
  if (!data.is_program) return data;
  const tree = (record) => record && { ...record, labels: record.labels.map(shortProduction) };
  const candidates = (found) => found.map((each) => ({ ...each, symbol: shortSymbol(each.symbol) }));
  const hypotheses = (found) => found.map((each) => ({ ...each, tree: tree(each.tree), candidates: candidates(each.candidates) }));
  return { ...data, result: tree(data.result), steps: data.steps.map((step) => ({ hypotheses: hypotheses(step.hypotheses) })) };
}

function drawBeam({ data: full, settings }) {
  const data = withShortLabels(full);
  const { steps } = data;
  settings.step = Math.min(settings.step, steps.length - 1);
  settings.hypothesis ??= 0;
  const place = html("div", {});
  const slider = stepper({
    label: "Step of the search",
    count: steps.length,
    value: settings.step,
    name: (step) => `Step ${step + 1} of ${steps.length}`,
    play: true,
    onstep: (step) => {
      settings.step = step;
      settings.hypothesis = 0;
      show();
    },
  });
  show();
  return [slider, place];

  function show() {
    const { hypotheses } = steps[settings.step];
    if (!hypotheses.length) return place.replaceChildren(html("p", {}, "No hypothesis is left in this step."));
    settings.hypothesis = Math.min(settings.hypothesis, hypotheses.length - 1);
    const options = hypotheses.map((hypothesis, index) => [index, hypothesisRow(hypothesis, index)]);
    const list = choice("Hypothesis", options, settings.hypothesis, (index) => {
      settings.hypothesis = index;
      chosen.replaceChildren(...hypothesisView(hypotheses[index]));
      showNext();
    }, { class: "choice rows" });
    const chosen = html("div", { class: `split even${data.is_program ? " wider" : ""}` }, ...hypothesisView(hypotheses[settings.hypothesis]));
    place.replaceChildren(html("p", { class: "label" }, `Hypotheses, the best of ${data.beam} first`), list, chosen);
    return showNext();
  }

  /** Scrolls a wide tree to the node that is filled next. */
  function showNext() {
    const next = place.querySelector(".picture .next");
    const box = next?.closest(".picture");
    if (box) box.scrollLeft += next.getBoundingClientRect().left - box.getBoundingClientRect().left - box.clientWidth / 2;
  }

  function withSquares({ labels, children }, open) {
    return { labels: labels.map((label, node) => (open.has(node) ? "□" : label)), children };
  }

  function hypothesisRow(hypothesis, index) {
    const open = new Set(hypothesis.open);
    const fits = data.result && agrees(hypothesis.tree, open, data.result);
    const from = settings.step > 0 && hypothesis.parent >= 0 ? `from ${hypothesis.parent + 1}` : "";
    return html(
      "span",
      { class: "row" },
      html("span", { class: "rank" }, index + 1),
      html("span", { class: "score" }, shown(hypothesis.score, 2)),
      html("code", {}, brackets(withSquares(hypothesis.tree, open))),
      html("span", { class: "quiet" }, from),
      fits ? html("span", { class: "tag" }, "leads to the result") : null,
    );
  }

  function hypothesisView(hypothesis) {
    const open = new Set(hypothesis.open);
    const next = hypothesis.next ?? hypothesis.open[0] ?? null;
    const picture = treePicture({
      tree: withSquares(hypothesis.tree, open),
      title: open.size ? "Partial tree; a square is an open node" : "Complete tree",
      kind: (node) => `${open.has(node) ? "open" : ""} ${node === next ? "next" : ""}`,
      note: (node) => (node === next ? "the next open node" : open.has(node) ? "open" : null),
    });
    return [html("div", {}, picture.element), html("div", {}, candidateTable(hypothesis.candidates))];
  }
}

function candidateTable(candidates) {
  if (!candidates.length) return html("p", { class: "quiet" }, "The tree is complete: no symbol follows.");
  return html(
    "table",
    { class: "bars candidates" },
    html("caption", {}, "Most probable symbols for the next open node"),
    html("thead", {}, html("tr", {}, ["Symbol", "Probability", "In the search"].map((head) => html("th", { scope: "col" }, head)))),
    html(
      "tbody",
      {},
      candidates.map((candidate) =>
        html(
          "tr",
          { class: candidate.legal ? (candidate.chosen ? "best" : "") : "illegal" },
          html("th", { scope: "row" }, quoted(candidate.symbol)),
          html("td", {}, bar(candidate.probability), html("span", { class: "number" }, candidate.probability.toFixed(3))),
          html("td", { class: "quiet" }, candidate.legal ? (candidate.chosen ? "kept" : "legal") : `illegal: ${candidate.why}`),
        ),
      ),
    ),
  );
}

function drawInsertion({ data, settings }) {
  const { steps } = data;
  settings.insertionStep = Math.min(settings.insertionStep ?? steps.length - 1, steps.length - 1);
  const place = html("div", { class: "split even" });
  const slider = stepper({
    label: "Step of decoding",
    count: steps.length,
    value: settings.insertionStep,
    name: (step) => {
      const added = steps[step].inserted.length;
      const begins = step === 0 && steps[0].tree.labels.length === 1 ? "the root alone" : "every slot is closed";
      return `Step ${step + 1} of ${steps.length}: ${added ? `${counted(added, "node")} inserted` : begins}`;
    },
    play: true,
    onstep: (step) => {
      settings.insertionStep = step;
      show();
    },
  });
  show();
  return [slider, place];

  function show() {
    const { tree, inserted, slots } = steps[settings.insertionStep];
    const fresh = new Set(inserted);
    const picture = treePicture({
      tree,
      title: `Tree after step ${settings.insertionStep + 1}; new nodes are coloured`,
      kind: (node) => (fresh.has(node) ? "fresh" : ""),
      note: (node) => (fresh.has(node) ? "inserted in this step" : null),
    });
    place.replaceChildren(html("div", {}, picture.element), html("div", {}, slotTable(tree, slots)));
  }
}

function slotTable(tree, slots) {
  if (!slots || !slots.length) return html("p", { class: "quiet" }, "No slot is open.");
  return html(
    "div",
    { class: "scroll tall", tabindex: "0", role: "group", "aria-label": "Predictions for the slots" },
    html(
      "table",
      { class: "bars slots" },
      html("caption", {}, "Predictions for each slot of this tree"),
      html("thead", {}, html("tr", {}, ["Slot", "Best predictions"].map((head) => html("th", { scope: "col" }, head)))),
      html(
        "tbody",
        {},
        slots.map((slot) =>
          html(
            "tr",
            {},
            html("th", { scope: "row" }, html("span", { class: "quiet" }, `${slot.kind} `), quoted(tree.labels[slot.node] ?? "")),
            html(
              "td",
              {},
              slot.predictions.map((prediction, index) =>
                html(
                  "span",
                  { class: `prediction${index ? "" : " first"}` },
                  bar(prediction.probability),
                  html("span", { class: "symbol" }, quoted(prediction.symbol)),
                  html("span", { class: "number" }, prediction.probability.toFixed(2)),
                ),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}
