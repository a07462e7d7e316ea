"""A small explorer document with every view: English into German, logical forms, and a classified sentence.

The trees and outputs are written by hand. The weights are random with a fixed seed, but have the form of real ones:
rows of attention sum to one, and weights outside a subtree are 0.
"""

from __future__ import annotations

import base64
import re

import numpy as np

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


def tree_of(line: str) -> dict:
    """The tree of a line of brackets, in preorder."""
    labels, children, open_ = [], [], []
    for bracket, name in re.findall(r"(\()?([^()\s]+)|\)", line):
        if not name:
            open_.pop()
            continue
        if open_:
            children[open_[-1]] += 1
        labels.append(name)
        children.append(0)
        if bracket:
            open_.append(len(labels) - 1)
    return {"labels": labels, "children": children}


def matrix(values: np.ndarray) -> dict:
    """Weights as explorer documents have them: bytes from 0 to the greatest weight."""
    greatest = float(values.max()) or 1.0
    data = np.round(values / greatest * 255).astype(np.uint8)
    return {"shape": list(values.shape), "max": greatest, "data": base64.b64encode(data.tobytes()).decode("ascii")}


def constituents(tree: dict) -> list[dict]:
    """The nodes of a tree that cover two leaves or more, with spans and parents."""
    nodes, open_, leaf = [], [], 0
    for label, children in zip(tree["labels"], tree["children"]):
        if children:
            node = {"label": label, "start": leaf, "end": leaf, "parent": open_[-1][0] if open_ else -1}
            nodes.append(node)
            open_.append([len(nodes) - 1, children])
            continue
        leaf += 1
        while open_:
            open_[-1][1] -= 1
            if open_[-1][1]:
                break
            nodes[open_.pop()[0]]["end"] = leaf
    kept = [index for index, node in enumerate(nodes) if node["end"] - node["start"] > 1]
    for node in nodes:
        while node["parent"] >= 0 and node["parent"] not in kept:
            node["parent"] = nodes[node["parent"]]["parent"]
    place = {index: number for number, index in enumerate(kept)}
    return [{**nodes[index], "parent": place.get(nodes[index]["parent"], -1)} for index in kept]


def _system(name: str, architecture: str, method: str, parameters: int) -> dict:
    return {
        "name": name,
        "architecture": architecture,
        "task": "tree_translation",
        "method": method,
        "parameters": parameters,
        "metric": "sentence BLEU",
    }


def _sentence(parse: dict | None, tokens: list[str], reference: str | None, outputs: list[dict]) -> dict:
    depth, missing = 0, []
    for children in parse["children"] if parse else ():
        while missing and not missing[-1]:
            missing.pop()
        if missing:
            missing[-1] -= 1
        depth = max(depth, len(missing))
        missing.append(children)
    return {
        "source": " ".join(tokens),
        "tokens": tokens,
        "reference": reference,
        "length": len(tokens),
        "depth": depth,
        "parse": parse,
        "systems": outputs,
    }


def _leaves(tree: dict) -> list[str]:
    return [label for label, children in zip(tree["labels"], tree["children"]) if not children]


def _attention(random: np.random.Generator, layers: int, rows: int, columns: int) -> np.ndarray:
    """Rows that sum to one and are high near the diagonal, as in translation."""
    place = np.arange(rows)[:, None] / max(1, rows - 1) - np.arange(columns)[None, :] / max(1, columns - 1)
    logits = -30 * place**2 + random.normal(0, 1.2, (layers, rows, columns))
    weights = np.exp(logits)
    return weights / weights.sum(axis=-1, keepdims=True)


def _translated(
    random: np.random.Generator, line: str, reference: str, outputs: list[str], metrics: list[float]
) -> dict:
    parse = tree_of(line)
    tokens, nodes = _leaves(parse), constituents(parse)
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
    end = [{"kind": "eos", "label": "</s>", "start": len(tokens), "end": len(tokens)}]
    spans = [{"kind": "node", **{key: node[key] for key in ("label", "start", "end")}} for node in nodes]
    views = []
    for number, output in enumerate(outputs):
        rows = [*output.split(), "</s>"]
        columns = [*words, *end, *(spans if number == 0 else [])]
        attention = np.concatenate(
            [_attention(random, LAYERS, len(rows), len(words) + 1)]
            + ([0.45 * _attention(random, LAYERS, len(rows), len(spans))] if number == 0 else []),
            axis=-1,
        )
        attention /= attention.sum(axis=-1, keepdims=True)
        views.append({"cross_attention": {"rows": rows, "columns": columns, "weights": matrix(attention)}})
    views[0]["accumulation"] = {"nodes": nodes, "layers": LAYERS, "heads": HEADS, "weights": matrix(weights)}
    views[1]["chart"] = _chart(random, tokens, [*outputs[1].split(), "</s>"])
    scores = [round(-0.2 - 0.01 * (100 - metric), 3) for metric in metrics]
    outputs = [
        {"hypothesis": output, "score": score, "metric": metric, "views": view}
        for output, score, metric, view in zip(outputs, scores, metrics, views)
    ]
    return _sentence(parse, tokens, reference, outputs)


def _chart(random: np.random.Generator, tokens: list[str], rows: list[str]) -> dict:
    count = len(tokens)
    cells = [[start, start + width] for width in range(1, count + 1) for start in range(count - width + 1)]
    splits = {(s, e): random.dirichlet(np.full(e - s - 1, 0.35)) for s, e in cells if e - s > 1}
    labels, children, stack = [], [], [(0, count)]
    while stack:
        start, end = stack.pop()
        if end - start == 1:
            labels.append(tokens[start])
            children.append(0)
            continue
        middle = start + 1 + int(splits[start, end].argmax())
        labels.append("X")
        children.append(2)
        stack += [(middle, end), (start, middle)]
    attention = random.dirichlet(np.full(len(cells), 0.15), len(rows))
    return {
        "tokens": tokens,
        "height": count,
        "cells": cells,
        "splits": matrix(np.array([[splits[tuple(cell)].max() if tuple(cell) in splits else 0.0] for cell in cells])),
        "split_weights": [[round(float(weight), 4) for weight in splits[s, e]] for s, e in cells if e - s > 1],
        "tree": {"labels": labels, "children": children},
        "phrase_attention": matrix(attention),
        "rows": rows,
    }


def _searched(random: np.random.Generator, source: str, line: str) -> dict:
    result = tree_of(line)
    symbols, steps = result["labels"], []
    others = ["count", "state", "loc", "largest", "capital:all"]
    for size in range(len(symbols) + 1):
        partial = _partial(result, size)
        hypotheses = []
        for rank in range(3 if size > 1 else 1):
            tree = {"labels": list(partial["labels"]), "children": list(partial["children"])}
            if rank and size > 1:
                tree["labels"][size - 1 if not tree["children"][size - 1] else 1] = others[rank]
            opened = partial["open"]
            candidates = []
            if opened:
                names = [symbols[size], *others[:4]]
                probabilities = np.sort(random.dirichlet(np.full(len(names), 0.5)))[::-1]
                for place, (name, probability) in enumerate(zip(names, probabilities)):
                    legal = place not in (1, 3)
                    why = (
                        ""
                        if legal
                        else "the grammar has no such child"
                        if place == 1
                        else "needs 3 more symbols, 2 are left"
                    )
                    chosen = legal and place == 0
                    candidates.append(
                        {
                            "symbol": name,
                            "probability": float(probability),
                            "legal": legal,
                            "why": why,
                            "chosen": chosen,
                        }
                    )
            score = -0.1 * size - 0.8 * rank
            hypotheses.append({"tree": tree, "open": opened, "score": score, "parent": 0, "candidates": candidates})
        steps.append({"hypotheses": hypotheses})
    beam = {"beam": 3, "steps": steps, "result": result}
    outputs = [
        {"hypothesis": line, "score": -0.31, "metric": 100.0, "views": {"beam": beam}},
        {"hypothesis": "(answer river)", "score": -1.2, "metric": 0.0, "views": {}},
    ]
    return _sentence(None, source.split(), line, outputs)


def _partial(tree: dict, size: int) -> dict:
    """The first nodes of a tree in preorder; the next ones, as far as their parents exist, are open."""
    labels, children, opened = [], [], []
    node = 0
    ends = _ends(tree)
    while node < len(tree["labels"]):
        if node < size:
            labels.append(tree["labels"][node])
            children.append(tree["children"][node])
            node += 1
        else:
            opened.append(len(labels))
            labels.append("")
            children.append(0)
            node = ends[node]
    return {"labels": labels, "children": children, "open": opened}


def _ends(tree: dict) -> list[int]:
    """The node after the subtree of each node."""
    ends = [0] * len(tree["labels"])
    for node in reversed(range(len(ends))):
        end = node + 1
        for _ in range(tree["children"][node]):
            end = ends[end]
        ends[node] = end
    return ends


def _inserted(random: np.random.Generator, source: str, line: str) -> dict:
    trees = ["(filter)", "(filter filter in)", "(filter (filter meeting after) (in berlin))", line, line]
    steps = []
    for number, text in enumerate(trees):
        tree = tree_of(text)
        size = len(tree["labels"])
        closed = number == len(trees) - 1
        new = (
            []
            if closed
            else [node for node in range(size) if not steps or tree["labels"][node] not in steps[-1]["tree"]["labels"]]
        )
        if number == 1:
            new = [1, 2]
        slots = []
        for node in range(size):
            names = (
                ["</s>", "after", "in"]
                if closed or number == 3
                else [["filter", "meeting", "berlin", "noon"][node % 4], "</s>", "in"]
            )
            probabilities = np.sort(random.dirichlet(np.full(3, 0.4)))[::-1]
            slots.append(
                {
                    "node": node,
                    "kind": "child of",
                    "predictions": [{"symbol": name, "probability": float(p)} for name, p in zip(names, probabilities)],
                }
            )
        steps.append({"tree": tree, "inserted": new, "slots": slots})
    outputs = [
        {"hypothesis": line, "score": -0.05, "metric": 100.0, "views": {"insertion": {"steps": steps}}},
        {"hypothesis": line, "score": -0.4, "metric": 100.0, "views": {}},
    ]
    return _sentence(None, source.split(), line, outputs)


def _classified(random: np.random.Generator) -> dict:
    parse = tree_of(REVIEW)
    inner = [node for node, children in enumerate(parse["children"]) if children]
    predicted = ["neutral", "neutral", "neutral", "positive", "negative"]
    gold = ["neutral", "neutral", "negative", "positive", "negative"]
    view = {
        "classes": CLASSES,
        "probabilities": [0.04, 0.23, 0.49, 0.21, 0.03],
        "nodes": [{"index": i, "predicted": p, "gold": g} for i, p, g in zip(inner, predicted, gold)],
    }
    outputs = [
        {"hypothesis": "neutral", "score": -0.71, "metric": 100.0, "views": {"classification": view}},
        {"hypothesis": "negative", "score": -0.9, "metric": 0.0, "views": {}},
    ]
    return _sentence(parse, _leaves(parse), "neutral", outputs)
