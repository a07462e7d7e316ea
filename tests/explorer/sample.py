"""A small explorer document with every view: English into German, logical forms, and a classified sentence.

The trees and outputs are written by hand. The weights are random with a fixed seed, but have the form of real ones:
rows of attention sum to one, and weights outside a subtree are 0.
"""

from __future__ import annotations

import numpy as np

from tree_fairseq.drawing.views import matrix_record, tree_record
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

LAYERS, HEADS = 3, 4

PAIRS = [
    # source parse, reference, two outputs, their metric
    (
        "(S (NP the old man) (VP sees (NP (NP a dog) (PP in (NP the garden)))) .)",
        "der alte Mann sieht einen Hund im Garten .",
        ["der alte Mann sieht einen Hund im Garten .", "der alte Mann sieht im Garten einen Hund ."],
        [100.0, 58.1],
    ),
    (
        "(S (NP (NP the girl) (SBAR who (S (VP sang yesterday)))) sleeps .)",
        "das Mädchen , das gestern sang , schläft .",
        ["das Mädchen , das gestern sang , schläft .", "das Mädchen schläft , das gestern sang ."],
        [100.0, 47.4],
    ),
    (
        "(S (PP in (NP the evening)) Felix (VP is (VP chased (PP by (NP a sick cat)))) .)",
        "am Abend wird Felix von einer kranken Katze gejagt .",
        ["am Abend wird Felix von einer kranken Katze .", "am Abend wird Felix von einer kranken Katze gejagt ."],
        [81.5, 100.0],
    ),
]
LOGICAL = [
    ("which rivers run through Texas ?", "(answer (intersection river (traverse stateid:texas)))"),
    ("list meetings after noon in Berlin", "(filter (filter meeting (after noon)) (in berlin))"),
]
REVIEW = "(S (NP the film) (VP is (ADJP never dull) but (ADJP often silly)) .)"
CLASSES = ["very negative", "negative", "neutral", "positive", "very positive"]


def sample_document(sentences: int = 6, seed: int = 1) -> dict:
    """The document; with more than six sentences, the same six again and again."""
    random = np.random.default_rng(seed)
    makers = [*[lambda pair=pair: _translated(random, *pair) for pair in PAIRS]]
    makers += [
        lambda: _searched(random, *LOGICAL[0]),
        lambda: _inserted(random, *LOGICAL[1]),
        lambda: _classified(random),
    ]
    made = [makers[index % len(makers)]() for index in range(sentences)]
    return {
        "format": 1,
        "title": "Sample of all views",
        "package": "tree-fairseq 0.1.0",
        "systems": [
            _system("Tree-Transformer", "tree_transformer_tiny", "tree_transformer", 1_250_000),
            _system("Treeformer", "treeformer_tiny", "treeformer", 1_310_000),
        ],
        "sentences": [{"id": index, **sentence} for index, sentence in enumerate(made)],
    }


def read(line: str) -> Tree:
    return notation_named("bracket").read(line)


def tree_of(line: str) -> dict:
    return tree_record((read(line),))


def constituents(tree: Tree) -> list[dict]:
    """The nodes of a tree that cover two leaves or more, with spans and parents, in preorder."""
    found, stack = [], [(tree, 0, -1)]
    while stack:
        node, start, parent = stack.pop()
        width = len(node.leaves())
        if width > 1:
            found.append({"label": node.label, "start": start, "end": start + width, "parent": parent})
            parent = len(found) - 1
        ends = np.cumsum([start, *(len(child.leaves()) for child in node.children)]).tolist()
        stack += reversed([(child, first, parent) for child, first in zip(node.children, ends)])
    return found


def _system(name: str, architecture: str, method: str, parameters: int) -> dict:
    known = {"name": name, "architecture": architecture, "method": method, "parameters": parameters}
    return {**known, "task": "tree_translation", "metric": "sentence BLEU"}


def _sentence(parse: Tree | None, tokens: list[str], reference: str | None, outputs: list[dict]) -> dict:
    return {
        "source": " ".join(tokens),
        "tokens": tokens,
        "reference": reference,
        "length": len(tokens),
        "depth": parse.height() if parse else 0,
        "parse": tree_record((parse,)) if parse else None,
        "systems": [{"views": {}, "error": None, **output} for output in outputs],
    }


def _with_trees(sentence: dict) -> dict:
    """Adds the trees of outputs and of the reference, which are lines of brackets."""
    for output in sentence["systems"]:
        output["views"]["output_tree"] = {**tree_of(output["hypothesis"]), "is_program": False}
    return {**sentence, "reference_tree": {**tree_of(sentence["reference"]), "is_program": False}}


def _output(hypothesis: str, score: float, metric: float, **views: dict) -> dict:
    return {"hypothesis": hypothesis, "score": score, "metric": metric, "views": views}


def _attention(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.dirichlet(np.full(shape[-1], 0.25), shape[:-1])


def _translated(
    random: np.random.Generator, line: str, reference: str, outputs: list[str], metrics: list[float]
) -> dict:
    parse = read(line)
    tokens, nodes = list(parse.leaves()), constituents(parse)
    weights = np.zeros((LAYERS, len(nodes), len(tokens) + len(nodes)))
    for index, node in enumerate(nodes):
        inside = [*range(node["start"], node["end"])]
        inside += [
            len(tokens) + other
            for other, below in enumerate(nodes)
            if other >= index and node["start"] <= below["start"] and below["end"] <= node["end"]
        ]
        weights[:, index, inside] = random.dirichlet(np.full(len(inside), 0.7), LAYERS)
    words = [{"kind": "word", "label": token, "start": i, "end": i + 1} for i, token in enumerate(tokens)]
    words.append({"kind": "eos", "label": "</s>", "start": len(tokens), "end": len(tokens)})
    spans = [{"kind": "node", **{key: node[key] for key in ("label", "start", "end")}} for node in nodes]
    views = []
    for output, columns in zip(outputs, ([*words, *spans], words)):
        rows = [*output.split(), "</s>"]
        attention = _attention(random, LAYERS, len(rows), len(words))
        if len(columns) > len(words):
            attention = np.append(attention, 0.45 * _attention(random, LAYERS, len(rows), len(spans)), axis=-1)
        attention /= attention.sum(axis=-1, keepdims=True)
        views.append({"cross_attention": {"rows": rows, "columns": columns, "weights": matrix_record(attention)}})
    views[0]["accumulation"] = {"nodes": nodes, "layers": LAYERS, "heads": HEADS, "weights": matrix_record(weights)}
    views[1]["chart"] = _chart(random, tokens, [*outputs[1].split(), "</s>"])
    made = [
        _output(output, round(-0.2 - 0.01 * (100 - metric), 3), metric, **view)
        for output, metric, view in zip(outputs, metrics, views)
    ]
    return _sentence(parse, tokens, reference, made)


def _chart(random: np.random.Generator, tokens: list[str], rows: list[str]) -> dict:
    count = len(tokens)
    cells = [[start, start + width] for width in range(1, count + 1) for start in range(count - width + 1)]
    splits = {(s, e): random.dirichlet(np.full(e - s - 1, 0.35)) for s, e in cells if e - s > 1}

    def induced(start: int, end: int) -> Tree:
        if end - start == 1:
            return Tree(tokens[start])
        middle = start + 1 + int(splits[start, end].argmax())
        return Tree("X", [induced(start, middle), induced(middle, end)])

    return {
        "tokens": tokens,
        "height": count,
        "cells": cells,
        "splits": None,
        "split_weights": [[round(float(weight), 4) for weight in splits[s, e]] for s, e in cells if e - s > 1],
        "tree": tree_record((induced(0, count),)),
        "phrase_attention": matrix_record(random.dirichlet(np.full(len(cells), 0.15), len(rows))),
        "rows": rows,
    }


def _searched(random: np.random.Generator, source: str, line: str) -> dict:
    result = tree_of(line)
    symbols, steps = result["labels"], []
    others = ["count", "state", "loc", "largest", "capital:all"]
    reasons = ["", "the grammar has no such child", "", "needs 3 more symbols, 2 are left", ""]
    for size in range(len(symbols) + 1):
        partial = _partial(result, size)
        hypotheses = []
        for rank in range(3 if size > 1 else 1):
            tree = {key: list(partial[key]) for key in ("labels", "children")}
            if rank:
                tree["labels"][size - 1 if not tree["children"][size - 1] else 1] = others[rank]
            candidates = []
            if partial["open"]:
                names = [symbols[size], *others[:4]]
                probabilities = np.sort(random.dirichlet(np.full(len(names), 0.5)))[::-1].tolist()
                candidates = [
                    {"symbol": name, "probability": probability, "legal": not why, "why": why, "chosen": not place}
                    for place, (name, probability, why) in enumerate(zip(names, probabilities, reasons))
                ]
            found = {"tree": tree, "open": partial["open"], "score": -0.1 * size - 0.8 * rank, "parent": 0}
            hypotheses.append({**found, "candidates": candidates})
        steps.append({"hypotheses": hypotheses})
    beam = {"beam": 3, "steps": steps, "result": result}
    outputs = [_output(line, -0.31, 100.0, beam=beam), _output("(answer river)", -1.2, 0.0)]
    return _with_trees(_sentence(None, source.split(), line, outputs))


def _partial(tree: dict, size: int) -> dict:
    """The first nodes of a tree in preorder; the next ones, as far as their parents exist, are open."""
    labels, children, opened = [], [], []
    node, ends = 0, _ends(tree)
    while node < len(tree["labels"]):
        is_known = node < size
        if not is_known:
            opened.append(len(labels))
        labels.append(tree["labels"][node] if is_known else "")
        children.append(tree["children"][node] if is_known else 0)
        node = node + 1 if is_known else ends[node]
    return {"labels": labels, "children": children, "open": opened}


def _ends(tree: dict) -> list[int]:
    ends = [0] * len(tree["labels"])
    for node in reversed(range(len(ends))):
        end = node + 1
        for _ in range(tree["children"][node]):
            end = ends[end]
        ends[node] = end
    return ends


def _inserted(random: np.random.Generator, source: str, line: str) -> dict:
    steps = []
    for number, text in enumerate(
        ["filter", "(filter filter in)", "(filter (filter meeting after) (in berlin))", line, line]
    ):
        tree = tree_of(text)
        before = steps[-1]["tree"]["labels"] if steps else []
        new = [node for node, label in enumerate(tree["labels"]) if label not in before]
        slots = []
        for node in range(len(tree["labels"])):
            first = "</s>" if number >= 3 else ["filter", "meeting", "berlin", "noon"][node % 4]
            names = [first, "after" if number >= 3 else "</s>", "in"]
            probabilities = np.sort(random.dirichlet(np.full(3, 0.4)))[::-1].tolist()
            predictions = [{"symbol": name, "probability": p} for name, p in zip(names, probabilities)]
            slots.append({"node": node, "kind": "child of", "predictions": predictions})
        steps.append({"tree": tree, "inserted": [1, 2] if number == 1 else new if number < 4 else [], "slots": slots})
    outputs = [_output(line, -0.05, 100.0, insertion={"steps": steps}), _output(line, -0.4, 100.0)]
    return _with_trees(_sentence(None, source.split(), line, outputs))


def _classified(random: np.random.Generator) -> dict:
    parse = read(REVIEW)
    inner = [place for place, node in enumerate(parse.preorder()) if node.children]
    predicted = ["neutral", "neutral", "neutral", "positive", "negative"]
    gold = ["neutral", "neutral", "negative", "positive", "negative"]
    view = {
        "classes": CLASSES,
        "probabilities": [0.04, 0.23, 0.49, 0.21, 0.03],
        "nodes": [{"index": i, "predicted": p, "gold": g} for i, p, g in zip(inner, predicted, gold)],
    }
    outputs = [_output("neutral", -0.71, 100.0, classification=view), _output("negative", -0.9, 0.0)]
    return _sentence(parse, list(parse.leaves()), "neutral", outputs)
