"""Options that were given are recognised, and incompatible ones are refused."""

from __future__ import annotations

from argparse import Namespace

import pytest

from tree_fairseq.errors import InputError, StructuralSearchError
from tree_fairseq.options import given_flags, refuse_flags


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
