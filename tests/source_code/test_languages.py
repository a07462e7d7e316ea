"""Languages: programs come back from their trees, errors have places, and outputs that do not parse are refused."""

from __future__ import annotations

import ast
import importlib
import json
import pickle
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tree_fairseq
from tests.source_code.programs import PROGRAMS, lines_of, real_lines, trees_of
from tree_fairseq.errors import EmptySymbolTreeError, MissingLibraryError, NotationError
from tree_fairseq.source_code.language import LINE_BREAK
from tree_fairseq.source_code.python import Python
from tree_fairseq.source_code.registry import register_language, registered_languages
from tree_fairseq.source_code.tree_sitter import TreeSitter
from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

# Of each corpus: its language, and how many lines do not parse.
CORPORA = {
    "text2sql": ("sql", 0),
    "django": ("python", 0),
    "hearthstone": ("python", 1),
    "java": ("java", 0),
    "cs": ("csharp", 12),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_comes_back_from_its_tree(name):
    # Processes of fairseq-preprocess get their language so.
    language = pickle.loads(pickle.dumps(notation_named(name)))
    for line in lines_of(name):
        tree = language.read(line)
        text = language.write(tree)
        assert len(text.splitlines()) == 1
        assert language.read(text) == tree, line
        assert language.write(language.read(text)) == text
        assert language.accepts(tree)


@pytest.mark.parametrize("corpus", CORPORA)
def test_real_programs_come_back_from_their_trees(corpus):
    name, faulty = CORPORA[corpus]
    lines_of(name)  # skips without the library
    language, failed = notation_named(name), 0
    # Prime numbers: each line of the corpus is read in some ten runs of changed code, and the suite stays fast.
    lines = real_lines(corpus)
    for number, line in enumerate(lines if faulty else lines[:: 3 if len(lines) < 2000 else 13]):
        try:
            tree = language.read(line)
        except NotationError:
            failed += 1
            continue
        assert number % 3 and faulty or language.read(language.write(tree)) == tree
    assert failed == faulty


def test_python_is_written_as_the_same_program():
    for line, tree in zip(lines_of("python"), trees_of("python")):
        try:
            wanted = ast.parse(line.replace(LINE_BREAK, "\n"))
        except SyntaxError:
            continue  # the line opens a block
        assert ast.dump(ast.parse(Python().write(tree).replace(LINE_BREAK, "\n"))) == ast.dump(wanted)


TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=5)


@st.composite
def expressions(draw, depth: int = 3) -> str:
    if depth == 0:
        return draw(st.sampled_from(["x", "self.y", "0", "1.5", "''", "None", "b'x'"]) | TEXTS.map(repr))
    below = expressions(depth=depth - 1)
    one, two = draw(below), draw(below)
    forms = ["({} + {})", "({})[{}]", "f({}, k={})", "[{}, *{}]", "({} if {} else y)", "({} < {})", "({}, {})"]
    return draw(st.sampled_from(forms)).format(one, two)


@settings(max_examples=60, deadline=None)
@given(expression=expressions(), statement=st.sampled_from(["{}", "x = {}", "return {}", "if {}:", "for x in {}:"]))
def test_any_python_comes_back_from_its_tree(expression, statement):
    tree = Python().read(statement.format(expression))
    assert Python().read(Python().write(tree)) == tree


CALLS = [
    "x",
    "1",
    '"a b"',
    "f({0})",
    "({0} + {1})",
    "x.y({0})",
    "new A({0}, {1})",
    "x[{0}]",
    "!{0}",
    "-({0})",
    "({0} < {1} ? {1} : 2)",
]
STATEMENTS = [
    "x = {0};",
    "return {0};",
    "if ({0}) {{{1}}} else {{f();}}",
    "while ({0}) {1}",
    "try {{{1}}} finally {{{1}}}",
]


def forms(shapes: list[str], *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Texts of these shapes, whose gaps have these parts; each part has its own strategy."""
    return st.builds(lambda shape, texts: shape.format(*texts), st.sampled_from(shapes), st.tuples(*parts))


CALL = st.recursive(st.sampled_from(CALLS[:3]), lambda below: forms(CALLS, below, below), max_leaves=6)
STATEMENT = st.recursive(forms(STATEMENTS[:2], CALL), lambda below: forms(STATEMENTS, CALL, below), max_leaves=4)
VALUE = st.recursive(
    st.sampled_from(["a", "t.b", "3", "'it''s'", "NULL", "COUNT(*)"]),
    lambda below: forms(
        ["({0} + {1})", "MAX({0})", "CASE WHEN {0} = {1} THEN {0} END", "CAST({0} AS TEXT)"], below, below
    ),
    max_leaves=4,
)
QUERY = st.recursive(
    forms(["SELECT {0} FROM t", "SELECT DISTINCT {0} AS c, {1} FROM t ORDER BY {0} DESC LIMIT 2"], VALUE, VALUE),
    lambda below: forms(
        [
            "SELECT {0} FROM t WHERE a IN ({1}) AND NOT b LIKE '%x'",
            "SELECT {0} FROM ({1}) AS d LEFT JOIN u ON d.a = u.a GROUP BY {0} HAVING COUNT(*) > 1",
            "{1} UNION ALL SELECT {0} FROM u",
        ],
        VALUE,
        below,
    ),
    max_leaves=3,
)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - {"python"}))
def test_any_program_of_a_grammar_comes_back_from_its_tree(name, data):
    lines_of(name)
    language, text = notation_named(name), data.draw(QUERY if name == "sql" else STATEMENT)
    tree = language.read(text)
    written = language.write(tree)
    assert language.read(written) == tree
    assert language.write(language.read(written)) == written and language.accepts(tree)


@settings(max_examples=40, deadline=None)
@given(text=st.text(st.sampled_from("selctfrom *(),'\"=.;{}[]<>+-:x1 \\§"), min_size=1, max_size=30))
@pytest.mark.parametrize("name", PROGRAMS)
def test_any_text_is_a_program_or_refused(name, text):
    lines_of(name)
    language = notation_named(name)
    try:
        tree = language.read(text)
    except EmptySymbolTreeError:
        return
    except NotationError as error:
        assert error.column is None or 1 <= error.column <= len(text) + 1
        return
    assert language.read(language.write(tree)) == tree


@pytest.mark.parametrize(
    ("name", "line", "column"),
    [
        ("sql", "SELECT a FROM WHERE b = 1", 19),
        ("python", "x = = 2", 5),
        ("python", "  x = = 2", 7),
        ("python", "except* E:", 1),  # one line of it would be read back as `except E:`
        ("java", "int f() {return 1 +;}", 20),
        ("csharp", "int F(){return (1;}", 18),
    ],
)
def test_a_program_that_does_not_parse_is_named_with_its_place(name, line, column):
    lines_of(name)
    with pytest.raises(NotationError) as caught:
        notation_named(name).read(line, "a.txt", 7)
    assert (caught.value.path, caught.value.line) == ("a.txt", 7)
    assert abs(caught.value.column - column) <= 2
    assert "skip-pair" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("hello world", 1),
        ("  SELEC oops", 3),
        ("SHOW me the zoos in Oslo", 1),
        ("EXPLAIN garbage here ((", 1),
        ("a + 1", 1),
        ("(name)", 1),
        ("42", 1),
        ("drop it", 1),
        ("use the force", 1),
    ],
)
def test_expressions_and_words_that_sqlglot_does_not_read_are_no_statements(line, column, caplog):
    with pytest.raises(NotationError, match="neither a query nor") as caught:
        notation_named("sql").read(line, "a.txt", 7)
    assert (caught.value.line, caught.value.column) == (7, column) and "skip-pair" in str(caught.value)
    assert not caplog.records  # of sqlglot
    label = "Alias this alias", [Tree('Column this | Identifier "hello'), Tree('Identifier "world')]
    assert not notation_named("sql").accepts(Tree(*label))


@pytest.mark.parametrize(
    "line",
    [
        "(SELECT 1)",
        "VALUES (1)",
        "SELECT 1 UNION SELECT 2",
        "WITH c AS (SELECT 1) SELECT * FROM c",
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "DELETE FROM t WHERE a = 1",
        "CREATE TABLE t (a INT)",
        "DROP TABLE t",
        "ALTER TABLE t ADD COLUMN a INT",
    ],
)
def test_queries_and_changes_of_rows_and_tables_are_statements(line):
    sql = notation_named("sql")
    assert sql.accepts(sql.read(line))


def test_trees_that_are_no_programs_are_written_and_refused():
    trees = [Tree("Select", [Tree('Identifier "x')]), Tree("<unk>"), Tree("Nothing a b", [Tree("x"), Tree("y")])]
    for language in (notation_named("sql"), Python()):
        assert all(map(language.write, trees)) and not any(map(language.accepts, trees))
    unknown = notation_named("sql").read("SELECT a FROM t").map_leaves(['Identifier "<unk>', 'Identifier "t'])
    assert not notation_named("sql").accepts(unknown)


def test_a_deep_program_is_refused_with_a_message():
    with pytest.raises(NotationError, match="too deeply|not Python"):
        Python().read("(" * 5000 + "x" + ")" * 5000)


def test_languages_are_notations_with_dialects():
    postgres = notation_named("sql:postgres")
    assert postgres.read("SELECT a::INT FROM t") == postgres.read("SELECT CAST(a AS INT) FROM t")
    assert notation_named("python").identity()["version"] == ".".join(map(str, sys.version_info[:2]))
    assert notation_named("sql").identity()["library"] == "sqlglot"
    with pytest.raises(NotationError, match="nolanguage"):
        notation_named("nolanguage")
    with pytest.raises(NotationError, match="nodialect"):
        notation_named("sql:nodialect")
    for name in ("python", "java"):
        with pytest.raises(NotationError, match=f"no notation '{name}:3': {name} has no dialects. Give {name}"):
            notation_named(f"{name}:3")


@pytest.mark.parametrize(
    ("name", "line", "written"),
    [
        ("sql", "SELECT a -- it's§FROM t§WHERE b = '§ 1'", "SELECT a FROM t WHERE b = '§ 1'"),
        ("sql", "SELECT '\\'§FROM t;§-- it's", "SELECT '\\' FROM t"),
        ("sql:mysql", "SELECT a # it's§FROM t§WHERE b = '§ 1'", "SELECT a FROM t WHERE b = '§ 1'"),
        ("sql:snowflake", "SELECT a // it's§FROM t§WHERE b = '§ 1'", "SELECT a FROM t WHERE b = '§ 1'"),
        ("sql:mysql", "SELECT 'it\\'s'§FROM t§WHERE b = '§ 1'", "SELECT 'it''s' FROM t WHERE b = '§ 1'"),
        ("javascript", "a = 1§b = 2", "a = 1§b = 2"),  # the break ends a statement
        ("javascript", "a = 1;§b = 2;", "a = 1;b = 2;"),
        ("javascript", 'x = <a b="c">d {e}, f</a>;', 'x = <a b="c">d {e}, f</a>;'),  # blanks are a part of the text
        ("javascript", "return ! x;", "return !x;"),
        ("javascript", "x = a ?. b ? { c : 1 } : d ?. [ 0 ];", "x = a?.b ? {c: 1} : d?.[0];"),
        ("java", "int f(){return - x - - y;}", "int f() {return -x - -y;}"),
        ("java", "int f(){} // a method", "int f() {}"),
        ("java", "switch (x) { case 1 : f(); default : g(); }", "switch (x) {case 1:f();default:g();}"),
        ("tree-sitter:tree_sitter_python", "x = 1§y = ~ z", "x = 1§y = ~z"),
        ("tree-sitter:tree_sitter_python", "if x:§\ty() # ?§else:§\tz(§u)", "if x :§    y()§else :§    z(§    u)"),
        ("tree-sitter:tree_sitter_python", "if x:§ if y:§     z§ else: w", "if x :§    if y :§        z§    else : w"),
    ],
)
def test_breaks_are_kept_where_they_matter_and_signs_stand_before_their_operand(name, line, written):
    lines_of("java")
    language = notation_named(name)
    assert language.write(language.read(line)) == written
    assert language.read(written) == language.read(line)


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("tree_sitter_ruby", "def a§x§rescue§y§end"),  # a node may begin with a break
        ("tree_sitter_bash", "LINE=$(top -b -n 1|tail -n +8)"),  # blanks separate words
        ("tree_sitter_bash", "find . -name '*'.txt -exec rm \"$a\"$b {} \\;"),
        ("tree_sitter_ruby", "while a < b # ?§  x§end"),  # a comment before the break of a node
        ("tree_sitter_haskell", "f x = do y <- g x§         print y§  where§     g = h§     h = f"),  # lines are level
        ("tree_sitter_haskell", "f x =§  let y = x§      z = x§   in y z"),  # a node begins with a blank
        (
            "tree_sitter_haskell",
            "f x§  | x = do y <- g§           y§  | z = 2§    where z = x",
        ),  # lines of a node have several depths
        ("tree_sitter_julia", "x = [1 0; 2 2]"),  # the semicolon is no token
        ("tree_sitter_haskell", "f a{- # ? -}b = A.g a .b"),  # a comment stands between words
    ],
)
def test_breaks_and_blanks_are_kept_where_a_language_needs_them(module, line):
    pytest.importorskip(module, reason=f"no grammar: pip install {module.replace('_', '-')}")
    language = notation_named(f"tree-sitter:{module}")
    tree = language.read(line)
    written = language.write(tree)
    assert language.read(written) == tree
    assert language.accepts(tree)
    assert language.write(language.read(written)) == written
    assert "".join(written.split()) == "".join(re.sub("{- # .* -}| # .", "", line).split())


def test_a_method_needs_no_class_around_it():
    lines_of("java")
    for line in ("async add(a, b = 1) { return a + b; } // a sum", "static get size() { return 1; }"):
        language = notation_named("javascript")
        tree = language.read(line)
        assert language.write(tree).startswith(line.partition("{")[0])
        assert language.read(language.write(tree)) == tree
    with pytest.raises(NotationError):
        notation_named("javascript").read("a() {} } class B {")


@pytest.mark.parametrize(
    ("line", "first"),
    [("<?php§echo $x;", "<?php"), ("function f($x) { return $x; }", "function"), ("public function f() {}", "public")],
)
def test_php_needs_neither_a_tag_nor_a_class(line, first):
    pytest.importorskip("tree_sitter_php", reason="no grammar: pip install tree-sitter-php")
    language = notation_named("tree-sitter:tree_sitter_php")
    tree = language.read(line)
    assert language.write(tree).split()[0] == first
    assert language.read(language.write(tree)) == tree
    with pytest.raises(NotationError, match="column 12: not .* is missing"):
        language.read("function f( { return $x; }")  # the text of a page


@pytest.mark.parametrize(
    "line",
    [
        "diff <(sort a) <(sort b) | tee >(wc -l)",
        '[ -z "$a" ] && [ $(find b) = b ]',
        "{ time find / &>/dev/null; } 2>&1",
        "find ${DIR} \\( -ctime ${TIME} -o -atime 1 \\)",
        "cp {} {}.tmp$$ b",
        "groups | tr \\  \\\\n",  # the first name is a blank
        "seq 3|sort;x=`ls`",
        "if [ -e a ]; then§    ls \\§        -l§fi",
    ],
)
def test_blanks_of_bash_are_those_that_were_read(line):
    pytest.importorskip("tree_sitter_bash", reason="no grammar: pip install tree-sitter-bash")
    language = notation_named("tree-sitter:tree_sitter_bash")
    tree = language.read(line.replace(" b", "  b"))
    assert language.write(tree) == line
    assert language.accepts(tree)


@pytest.mark.parametrize("module", ["trees/tree.py", "source_code/tree_sitter.py", "support/files.py"])
def test_indented_programs_mean_the_same(module):
    lines_of("java")
    text = (Path(tree_fairseq.__file__).parent / module).read_text()
    language = notation_named("tree-sitter:tree_sitter_python")
    written = language.write(language.read(text.strip().replace("\n", LINE_BREAK)))
    assert ast.dump(ast.parse(written.replace(LINE_BREAK, "\n"))) == ast.dump(ast.parse(text))


def test_a_leaf_without_text_joins_no_others():
    lines_of("java")
    for name in ("javascript", "tree-sitter:tree_sitter_python"):
        language = notation_named(name)
        tree = language.read("a + b + c").map_leaves(['identifier "a', 'identifier "', 'identifier "c'])
        assert language.write(tree).split() == ["a", "+", "+", "c"]


def test_a_line_of_comments_alone_is_no_program():
    with pytest.raises(EmptySymbolTreeError, match="only comments"):
        notation_named("java").read("// nothing")


def test_a_program_whose_text_has_another_tree_is_refused_and_not_changed():
    pytest.importorskip("tree_sitter_ruby", reason="no grammar: pip install tree-sitter-ruby")
    with pytest.raises(NotationError, match="this parses, but cannot be written back as it was read. Write it in"):
        notation_named("tree-sitter:tree_sitter_ruby").read("x = <<TEXT§ y§TEXT§z")


# Tree-sitter's grammar does not read 1e+16, the form of floats above 1e15.
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e15, 1e15) | st.text(),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(), values, max_size=4),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_json_values_come_back(value):
    pytest.importorskip("tree_sitter_json", reason="no grammar: pip install tree-sitter-json")
    language = notation_named("tree-sitter:tree_sitter_json")
    written = language.write(language.read(json.dumps(value)))
    assert json.loads(written) == value
    assert language.write(language.read(written)) == written


def test_an_error_says_what_the_mark_of_a_break_means():
    with pytest.raises(NotationError, match="§ stands for a line break"):
        notation_named("python").read("x = '§ 5'")


def test_a_grammar_of_several_dialects_has_a_function_for_each(monkeypatch):
    lines_of("java")
    grammar = importlib.import_module("tree_sitter_python")
    monkeypatch.setattr(grammar, "language_python", grammar.language, raising=False)
    monkeypatch.delattr(grammar, "language")
    line = "x = f(y)"
    assert TreeSitter("tree_sitter_python").write(TreeSitter("tree_sitter_python").read(line)) == line
    monkeypatch.setattr(grammar, "language_python_only", grammar.language_python, raising=False)
    monkeypatch.delattr(grammar, "language_python")  # that of PHP reads HTML
    assert TreeSitter("tree_sitter_python").write(TreeSitter("tree_sitter_python").read(line)) == line
    monkeypatch.delattr(grammar, "language_python_only")
    with pytest.raises(MissingLibraryError, match="neither language"):
        TreeSitter("tree_sitter_python")


def test_any_installed_grammar_is_a_language_and_no_other_module_is_imported(tmp_path, monkeypatch):
    lines_of("java")
    language = notation_named("tree-sitter:tree_sitter_python")
    tree = language.read("if x : pass")
    assert language.read(language.write(tree)) == tree
    (tmp_path / "tree_sitter_evil.py").write_text("raise SystemExit('code of a stranger')")
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("tree_sitter_nothing", "tree_sitter_evil", "os"):
        with pytest.raises(MissingLibraryError, match=f"{module} is not installed"):
            notation_named(f"tree-sitter:{module}")
    for module in ("python", "tree-sitter-python"):
        with pytest.raises(
            MissingLibraryError, match="install tree-sitter-python, and give tree-sitter:tree_sitter_python"
        ):
            notation_named(f"tree-sitter:{module}")
    with pytest.raises(NotationError, match="needs the module of a grammar"):
        notation_named("tree-sitter")


def test_a_language_of_ones_own_is_a_notation():
    class Upper(Python):
        name = "upper"

    register_language("upper", Upper)
    assert "upper" in registered_languages()
    assert notation_named("upper").read("x").label.startswith("Module")
