"""Dependencies, CoNLL-U, and Stanza's own with a tiny model that the test trains."""

from __future__ import annotations

import logging
import shutil

import pytest

from tree_fairseq.commands.parse import main
from tree_fairseq.commands.tree_formats import write_conllu
from tree_fairseq.errors import ParserUnavailableError
from tree_fairseq.parsing import parsers
from tree_fairseq.parsing.interface import DependencyWord
from tree_fairseq.parsing.parsers import ParserOptions, build_parser

WORDS = [
    DependencyWord("the", 2, "det", "the", "DET", "DT"),
    DependencyWord("man", 3, "nsubj", "man", "NOUN", "NN", "Number=Sing"),
    DependencyWord("sleeps", 0, "root"),
]
CONLLU = """# sent_id = 7.1
# text = the man sleeps
1	the	the	DET	DT	_	2	det	_	_
2	man	man	NOUN	NN	Number=Sing	3	nsubj	_	_
3	sleeps	_	_	_	_	0	root	_	_

"""


def test_conllu():
    assert "".join(write_conllu("7", [WORDS])) == CONLLU
    assert "".join(write_conllu("8", [])) == ""
    assert "".join(write_conllu("7", [WORDS, WORDS])).count("# sent_id = 7.2\n") == 1


@pytest.mark.parametrize("answer", [[None], [WORDS[:2]], [[*WORDS[:2], DependencyWord("wakes", 0, "root")]], [WORDS]])
def test_failures_and_other_words_are_errors(answer, monkeypatch, capsys, caplog):
    class Oracle:
        def parse_dependencies(self, sentences):
            return answer

    monkeypatch.setattr(parsers, "_REGISTRY", dict(parsers._REGISTRY))
    parsers.register_parser("oracle")(lambda options: Oracle())
    status = main(["--text", "the man sleeps", "--format", "conllu", "--tree-parser", "oracle"])
    assert status == (answer != [WORDS])
    if status:
        assert "oracle found no dependencies of this sentence: the man sleeps" in caplog.text
    else:
        assert capsys.readouterr().out == CONLLU.replace("7.1", "1.1")


@pytest.fixture(scope="module")
def models(english_models, tmp_path_factory):
    """Stanza's models with a dependency parser that was trained for one step on one sentence."""
    folder = tmp_path_factory.mktemp("models")
    for path in english_models.glob("*.pt"):
        shutil.copy(path, folder)
    from stanza.models import parser

    corpus = folder / "train.conllu"
    rows = [
        "1\tthe\tthe\tDET\tDT\t_\t2\tdet",
        "2\tman\tman\tNOUN\tNN\t_\t3\tnsubj",
        "3\tsleeps\tsleep\tVERB\tVBZ\t_\t0\troot",
    ]
    corpus.write_text(("".join(f"{row}\t_\t_\n" for row in rows) + "\n") * 4)
    sizes = "hidden char_hidden deep_biaff_hidden deep_biaff_output word_emb char_emb tag_emb transformed".split()
    flags = f"--train_file {corpus} --eval_file {corpus} --lang en --shorthand en_tiny --max_steps 1 --eval_interval 1"
    flags += " --num_layers 1 --no_pretrain --no_bert_model --no_second_optim --no_checkpoint --no_upos --batch_size 20"
    flags += f" --save_dir {folder} --save_name depparse.pt {' '.join(f'--{size}_dim 8' for size in sizes)}"
    parser.main(flags.split())
    logging.getLogger("stanza").setLevel(logging.ERROR)
    return folder


def test_stanza(models):
    options = ParserOptions(parser_dir=str(models), device="cpu")
    parser = build_parser(options)
    sentences = [["the", "man", "sleeps"], ["A", "man", "that", "sleeps", "."]]
    found = parser.parse_dependencies(sentences)
    assert [[word.form for word in words] for words in found] == sentences
    for words in found:
        assert sum(word.head == 0 for word in words) == 1 and all(word.xpos != "_" for word in words)
        assert all(word.lemma == word.form and word.relation for word in words)


def test_without_stanzas_model_the_message_names_the_file_and_the_download(english_models):
    parser = build_parser(ParserOptions(parser_dir=str(english_models), device="cpu"))
    with pytest.raises(ParserUnavailableError, match=r"lacks depparse.pt.*stanza.download.*'depparse'"):
        parser.parse_dependencies([["a"]])
