"""Options that were given are recognised, incompatible ones are refused, and commands have names."""

from __future__ import annotations

import pkgutil
from argparse import Namespace

import pytest

from tree_fairseq import __main__ as commands
from tree_fairseq.errors import InputError, StructuralSearchError
from tree_fairseq.scoring import __main__ as scoring
from tree_fairseq.support.options import given_flags, refuse_flags


def test_options_that_are_off_or_missing_do_not_count_as_given():
    args = Namespace(print_alignment="hard", replace_unk=None, sampling=False, lm_path="", beam=5, thresholdtgt=0)
    names = ("print_alignment", "replace_unk", "sampling", "lm_path", "beam", "constraints", "thresholdtgt")
    given = {flag for flag, is_given in given_flags(args, *names).items() if is_given}
    assert given == {"--print-alignment", "--lm-path", "--beam"}


def test_the_first_flag_that_was_given_is_named():
    flags = {"--a": None, "--b": 0.5, "--c": True}
    with pytest.raises(InputError, match="^--b does not work with --task x; leave it out$"):
        refuse_flags(flags, "--task x")
    with pytest.raises(StructuralSearchError, match="--c does not work with --b; use --d$"):
        refuse_flags({"--c": True}, "--b", StructuralSearchError, advice="use --d")
    refuse_flags({"--a": 0, "--b": ""}, "--task x")


@pytest.mark.parametrize("target, _", [*commands.COMMANDS.values(), *scoring.SCORERS.values()])
def test_every_name_has_its_command(target, _):
    assert callable(pkgutil.resolve_name(f"tree_fairseq.{target}"))


def test_commands_run_by_name(capsys, tmp_path):
    assert commands.main(["path"]) == commands.main([]) == 0
    assert capsys.readouterr().out.splitlines() == [str(commands.Path(commands.__file__).resolve().parent)] * 2
    assert commands.main(["check", str(tmp_path)]) == 1
    assert "there is no tree.json" in capsys.readouterr().out
    assert commands.main(["score", "--help"]) == 0 and "structural" in capsys.readouterr().out


def test_an_unknown_name_is_answered_with_all_names(capsys):
    assert commands.main(["draw"]) == 2
    said = capsys.readouterr().err
    assert "tree-fairseq has no 'draw'" in said and all(name in said for name in commands.COMMANDS)
