"""Whether a compound is translated rightly: the automatic evaluation of CoGnition (Li et al. 2021, section 5), English to Chinese.

A compound is a noun phrase that may follow a preposition or a verb, ``saw the red car on the floor``. It is right in a sentence
where each of its words has one of its translations, and where those that stand before a noun in Chinese do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tree_fairseq.errors import ScoringError
from tree_fairseq.scoring.bleu import Side, corpus_bleu
from tree_fairseq.scoring.breakdowns import by_group, differences
from tree_fairseq.scoring.outcomes import as_digits
from tree_fairseq.scoring.outputs import read_hypotheses, read_text
from tree_fairseq.scoring.runs import add_run_arguments, pairs, score_and_publish
from tree_fairseq.scoring.structural import read_outcomes
from tree_fairseq.trees.text import read_lines

CONTEXTS = 5
"""Consecutive sentences that have the same compound, which in all of them together is right where it is right in each."""

PREPOSITIONS = frozenset(
    "about around before behind except for from inside like near on to toward towards under with without".split()
)
DETERMINERS = frozenset("the every any another each".split())
MODIFIERS = {"he liked": "mod0", "at the store": "mod1", "on the floor": "mod2"}
"""What follows a noun, and its name in the lexicon."""

KINDS = ("NP", "VP", "PP")

Lexicon = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Compound:
    """The parts of a compound, by what they are in the lexicon.

    Attributes:
        head: preposition or verb; "" for none
        before: what stands before the noun: determiner and adjectives
        noun: the noun
        modifier: what follows it; "" for none
    """

    head: str
    before: tuple[str, ...]
    noun: str
    modifier: str

    @property
    def kind(self) -> str:
        """``NP``, ``VP`` or ``PP``."""
        return "NP" if not self.head else "PP" if self.head in PREPOSITIONS else "VP"

    @property
    def parts(self) -> tuple[str, ...]:
        """All that has to be translated."""
        return tuple(part for part in (self.head, *self.before, self.noun, self.modifier) if part)


def read_compound(text: str) -> Compound:
    """The parts of ``[preposition | verb] [determiner] adjective* noun [modifier]``.

    Raises:
        ScoringError: there is no noun
    """
    words, modifier = f" {' '.join(text.split())}", ""
    for phrase, name in MODIFIERS.items():
        if words.endswith(f" {phrase}"):
            words, modifier = words.removesuffix(f" {phrase}"), name
            break
    first, *rest = words.split() or [""]
    if rest and first not in DETERMINERS:
        *before, noun = rest
        return Compound(first, tuple(before), noun, modifier)
    if not rest:
        raise ScoringError(
            f"{text!r} is no compound: it is [preposition or verb] determiner adjectives noun [modifier]"
        )
    *before, noun = first, *rest
    return Compound("", tuple(before), noun, modifier)


def read_lexicon(path: Path) -> dict[str, tuple[str, ...]]:
    """The translations of each word, from lines ``word<TAB>translation/translation``; an empty one says that none is needed.

    Raises:
        ScoringError: the file is missing, or a line is none of those
    """
    if not path.is_file():
        raise ScoringError(f"{path} is missing: it is eval/lexicon of the repository of CoGnition")
    lexicon = {}
    for number, line in enumerate(read_lines(path), 1):
        word, tab, translations = line.rstrip().partition("\t")
        if not tab:
            raise ScoringError(f"{path}:{number}: not word<TAB>translations")
        lexicon[word] = tuple(translations.split("/"))
    return lexicon


def is_right(compound: Compound, translation: str, lexicon: Lexicon) -> bool:
    """Whether a sentence's translation, written without blanks, has the compound.

    All parts need to be translated. Of what stands before the noun, and of the modifier where there is no verb that it could
    belong to, one translation at least has to stand before one of the noun.

    Raises:
        ScoringError: the lexicon has not every part
    """
    for part in compound.parts:
        if part not in lexicon:
            raise ScoringError(f"the lexicon has no translation of {part!r}")
        if not any(word in translation for word in lexicon[part]):
            return False
    last = max((translation.rfind(word) for word in lexicon[compound.noun] if word), default=-1)
    ordered = compound.before if compound.kind == "VP" else (*compound.before, compound.modifier)
    for part in filter(None, ordered):
        places = [translation.find(word) for word in lexicon[part] if word and word in translation]
        if places and last >= 0 and min(places) >= last:
            return False
    return True


def in_all_contexts(right: Sequence[bool]) -> list[bool]:
    """Whether a compound is right in every one of its sentences, which stand together.

    Raises:
        ScoringError: the last compound has too few sentences
    """
    if len(right) % CONTEXTS:
        raise ScoringError(f"{len(right)} sentences are no {CONTEXTS} for each compound")
    return [all(right[start : start + CONTEXTS]) for start in range(0, len(right), CONTEXTS)]


# FROM scoring/compound_runs: Score translations of CoGnition: compounds that are translated wrongly, BLEU of random sentences.
#
#     python -m tree_fairseq.scoring compounds --run runs/treeformer --references words --target-lang zh \
#         --sets test=random test1=cg --against runs/transformer --result result.json
#
# ``--references`` is the folder with ``{subset}.{language}``, the ``lexicon`` and, of a test set of compounds, ``{subset}.compound``.
# Of such a set ``instance_error_rate`` is the percentage of sentences whose compound is wrong, ``aggregate_error_rate`` that of
# compounds that are wrong in one of their five sentences or more; both by kind of compound too. ``sacrebleu`` is computed on Chinese
# text without blanks, with sacreBLEU's own tokeniser for it.

COMPOUND = "compound"
"""Name of the outcomes: whether the compound of a sentence is right."""


def unbroken(lines: Sequence[str]) -> list[str]:
    """Chinese words as text."""
    return ["".join(line.split()) for line in lines]


def error_rates(right: Sequence[bool]) -> dict[str, float]:
    """Error rates in percent, of sentences and of compounds in all their sentences."""
    return {
        f"{name}_error_rate": 100 * (1 - sum(outcomes) / len(outcomes))
        for name, outcomes in (("instance", right), ("aggregate", in_all_contexts(right)))
    }


def compound_outcomes(folder: Path, subset: str, translations: Sequence[str]) -> tuple[list[bool], list[str]]:
    """Whether the compound of each sentence is right, and of which kind it is.

    Raises:
        ScoringError: a file is missing, has another number of lines, or sentences of a compound do not stand together
    """
    path = folder / f"{subset}.compound"
    texts = read_text(path, len(translations))
    for start in range(0, len(texts), CONTEXTS):
        if len(set(texts[start : start + CONTEXTS])) > 1:
            raise ScoringError(f"{path}:{start + 1}: not {CONTEXTS} lines of one compound")
    lexicon = read_lexicon(folder / "lexicon")
    compounds = [read_compound(text) for text in texts]
    right = [is_right(compound, translation, lexicon) for compound, translation in zip(compounds, translations)]
    return right, [compound.kind for compound in compounds]


def score_run(
    run: Path, references: Path, language: str, sets: dict[str, str], against: Sequence[Path] = ()
) -> tuple[dict, dict[str, dict[str, str]]]:
    """Metrics of a run, by kind of compound too, its difference from other runs; its outcomes by set.

    Raises:
        ScoringError: files are missing or do not fit each other
    """
    scores: dict = {"metrics": {}, "signatures": {}, "groups": {}, "differences": []}
    kept = {}
    others = {other.name: read_outcomes(other) for other in against}
    for subset, label in sets.items():
        suffix = f"_{label}" if label else ""
        path = run / f"generate-{subset}.txt"
        if not path.is_file():
            raise ScoringError(f"{path} is missing: generate with that run first")
        translations = unbroken(read_hypotheses(path))
        wanted = unbroken(read_text(references / f"{subset}.{language}", len(translations)))
        bleu, signature = corpus_bleu(Side("sacrebleu", wanted, tokenize="zh"), translations)
        scores["metrics"][f"sacrebleu{suffix}"], scores["signatures"][f"sacrebleu{suffix}"] = bleu, signature
        kept[subset] = {}
        if (references / f"{subset}.compound").is_file():
            right, kinds = compound_outcomes(references, subset, translations)
            scores["metrics"] |= {name + suffix: value for name, value in error_rates(right).items()}
            scores["groups"][subset] = by_group(
                [[kind] for kind in kinds], lambda inside, right=right: error_rates([right[index] for index in inside])
            )
            kept[subset] = as_digits({COMPOUND: right})
            for name, outcomes in others.items():
                scores["differences"] += differences(name, outcomes.get(subset, {}), {COMPOUND: right}, suffix)
    return scores, kept


def report(scores: dict) -> str:
    """The scores as lines of text."""
    lines = [f"{name} = {value:.2f}" for name, value in scores["metrics"].items()]
    for row in scores["differences"]:
        lines.append(
            f"{row['metric']}: {row['difference']:+.2f} points right over {row['baseline']} "
            f"(p = {row['p_value']:.4f}, {row['only_system']} to {row['only_baseline']}, {row['signature']})"
        )
    for subset, rows in scores["groups"].items():
        for kind, row in rows.items():
            lines.append(
                f"{subset}, {kind}: {row['instance_error_rate']:.2f} / {row['aggregate_error_rate']:.2f} ({row['sentences']})"
            )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tree_fairseq.scoring compounds", description=__doc__.splitlines()[0]
    )
    add_run_arguments(parser, primary="instance_error_rate")
    parser.add_argument(
        "--references", type=Path, required=True, help="folder with target lines, compounds and lexicon"
    )
    parser.add_argument("--target-lang", default="zh", help="suffix of the target lines (default: %(default)s)")
    args = parser.parse_args(arguments)
    return score_and_publish(
        args, lambda: score_run(args.run, args.references, args.target_lang, pairs(args.sets), args.against), report
    )


if __name__ == "__main__":
    sys.exit(main())
