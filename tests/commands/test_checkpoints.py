"""Commands over trained models: their help begins with their own flags."""

import pytest

from tree_fairseq.__main__ import main


@pytest.mark.parametrize("name, flag", [("explore", "--baseline"), ("induce", "--gold"), ("translate", "--sorted")])
def test_the_help_begins_with_the_flags_of_the_command(name, flag, capsys):
    assert main([name, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    places = [next(place for place, line in enumerate(lines) if text in line) for text in (flag, "--max-tokens")]
    assert places[0] < 40 < places[1]
