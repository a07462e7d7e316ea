"""Notations of symbol trees: the meaning of lines, round trips of any tree, and errors with their places."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tree_fairseq.commands.tree_formats import TreeFormat
from tree_fairseq.errors import EmptySymbolTreeError, InputError, MultipleRootsError, NotationError
from tree_fairseq.trees.notations import NOTATIONS, notation_named
from tree_fairseq.trees.tree import Tree, forest_leaves

BRACKET, FUNQL, JSON, PROLOG, VARIABLE_FREE = (
    notation_named(name) for name in ("bracket", "funql", "json", "prolog", "variable-free")
)
AWKWARD = (
    *r"""
    () [] [|] {} {root} ( ) \e \u0028 \u005cu0028 \ \\ " "a" "a "" "()" "\" ' 'a' 'it''s' 'a'b' '' '\' , ; | . .. .a
    a. a.b = == \= \+ -> :- a->b a=b < <unk> <unk>a <null> * ** AND ANDY AND.a LAMBDA LAMBDA.a LAMBDA.a= a= a.b=
    a\u0041= 0 -1.5e3 01 true null tag contents root children f next_to:t $0 c++ is mod - ^ X^ @< //
    label name type value text leaves trees {label} {type} [type] [type]0 {parse} =1 =[] =x [a ] IN: IN:x SL:
    """.split(),
    *("( )", "", " ", "\n", "\u2028", '"a b"', "'a b'", "* a", "LAMBDA a", "LAMBDA a.", "LAMBDA a.b", "日本", "😀"),
)


def labels() -> st.SearchStrategy[str]:
    return st.sampled_from(AWKWARD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


def trees() -> st.SearchStrategy[Tree]:
    return st.recursive(
        labels().map(Tree),
        lambda below: st.builds(Tree, labels(), st.lists(below, min_size=1, max_size=3)),
        max_leaves=10,
    )


def without_blanks(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("name", NOTATIONS)
@settings(max_examples=50, deadline=None)
@given(tree=trees())
def test_any_tree_is_written_and_read(name, tree):
    notation = notation_named(name)
    line = notation.write(tree)
    assert len(line.splitlines()) == 1
    assert notation.read(line) == tree


@pytest.mark.parametrize("name", NOTATIONS)
@settings(max_examples=50, deadline=None)
@given(line=st.text(st.sampled_from("()[]{}\"'\\,;:=.*|fgX10 \t") | st.characters(), max_size=25))
def test_any_line_is_a_tree_or_refused(name, line):
    notation = notation_named(name)
    try:
        tree = notation.read(line, "corpus.txt", 7)
    except InputError as error:
        assert isinstance(error, (NotationError, MultipleRootsError, EmptySymbolTreeError))
        assert (error.path, error.line) == ("corpus.txt", 7) and error.hint
        assert error.column is None or 1 <= error.column <= len(line) + 1
    else:
        if not re.search("[\ud800-\udfff]", line):
            assert notation.read(notation.write(tree)) == tree


def t(label: str, *children: Tree | str) -> Tree:
    """A tree, whose children may be given as words."""
    return Tree(label, [Tree(child) if isinstance(child, str) else child for child in children])


SAME_TEXT = {
    "bracket": [
        ("( lambda $0 e ( loc:t c0 $0 ) )", t("lambda", "$0", "e", t("loc:t", "c0", "$0"))),
        ("x", t("x")),
        ("( x )", t("()", "x")),
        ("( ( x ) )", t("()", t("()", "x"))),
        ("( f ( ) )", t("f", "()")),
        ("( ( f a ) b )", t("()", t("f", "a"), "b")),
        ('( said "what (a" b )', t("said", '"what (a"', "b")),
        ('( string "" "a \\" b" )', t("string", '""', '"a \\" b"')),
        ('( S ( `` " ) ( X a"b ) )', t("S", t("``", '"'), t("X", 'a"b'))),
        ("( \\+ 1\\/2 -LRB- )", t("\\+", "1\\/2", "-LRB-")),
    ],
    "prolog": [
        ("job ( ANS ) , language ( ANS , l0 ) , x", t(",", t("job", "ANS"), t("language", "ANS", "l0"), "x")),
        ("f ( A , ( s ( A ) , t ) )", t("f", "A", t(",", t("s", "A"), "t"))),
        ("a , ( b , c )", t(",", "a", t(",", "b", "c"))),
        ("( a , b )", t("()", t(",", "a", "b"))),
        ("f ( ( a ) )", t("f", t("()", "a"))),
        ("f ( ( ( a , b ) ) )", t("f", t("()", t(",", "a", "b")))),
        ("\\+ ( a , b )", t("\\+", t(",", "a", "b"))),
        ("\\+ ( a ) , b", t(",", t("\\+", t("()", "a")), "b")),
        ("\\+ \\+ a", t("\\+", t("\\+", "a"))),
        ("\\+ A = B", t("\\+", t("=", "A", "B"))),
        ("a , b ; c -> d -> e ; f", t(";", t(",", "a", "b"), t("->", "c", t("->", "d", "e")), "f")),
        ("h ( X ) :- b , A >= 3", t(":-", t("h", "X"), t(",", "b", t(">=", "A", "3")))),
        ("[ a , ( b , c ) | T ]", t("[|]", "a", t(",", "b", "c"), "T")),
        ("f ( [ ] , ' new york ' , \"x (\" , 'it''s' , _ )", t("f", "[]", "' new york '", '"x ("', "'it''s'", "_")),
        ("'=' ( a , <unk> )", t("'='", "a", "<unk>")),
        (
            "C is B * 2 - 1 - c++ , X =.. L",
            t(",", t("is", "C", t("-", t("-", t("*", "B", "2"), "1"), "c++")), t("=..", "X", "L")),
        ),
        ("f ( is , - )", t("f", "is", "-")),
        ("setof ( X , Z ^ Y ^ ( p ( X ) , q ) )", t("setof", "X", t("^", "Z", t("^", "Y", t(",", t("p", "X"), "q"))))),
        ("( 1 + 2 ) * -3", t("*", t("+", "1", "2"), "-3")),
    ],
    "top": [
        (
            "[IN:GET_DIRECTIONS Directions to [SL:DESTINATION [IN:GET_EVENT the [SL:NAME Eagles ] ( ' ] ] ]",
            t(
                "IN:GET_DIRECTIONS",
                "Directions",
                "to",
                t("SL:DESTINATION", t("IN:GET_EVENT", "the", t("SL:NAME", "Eagles"), "(", "'")),
            ),
        ),
        ("[IN:GET_WEATHER ]", t("IN:GET_WEATHER")),
        ("[x a ]", t("x", "a")),
    ],
    "funql": [
        ("answer(city(loc_2(stateid('new york'))))", t("answer", t("city", t("loc_2", t("stateid", "'new york'"))))),
        ("f(cityid('austin', _), all)", t("f", t("cityid", "'austin'", "_"), "all")),
        ("f((a), [b, c])", t("f", t("()", "a"), t("[]", "b", "c"))),
    ],
    "variable-free": [
        (
            "paint ( agent = Paula , theme = cake ( nmod . in = * closet ) )",
            t("paint", t("agent=", "Paula"), t("theme=", t("cake", t("nmod.in=", t("*", "closet"))))),
        ),
        ("* donkey ( nmod . on = bed )", t("*", t("donkey", t("nmod.on=", "bed")))),
        (
            "LAMBDA a . LAMBDA e . help . agent ( e , a ) AND b",
            t("LAMBDA a.", t("LAMBDA e.", t("AND", t("help.agent", "e", "a"), "b"))),
        ),
        ("Paula", t("Paula")),
    ],
    "json": [
        ('{"tag":"Const","contents":2}', t("Const", "2")),
        ('{"tag":"Const","contents":"2"}', t("Const", '"2"')),
        ('{"tag":"If","contents":[{"tag":"Var","contents":"a1"},true]}', t("If", t("Var", "a1"), "true")),
        ('{"tag":"f","contents":["x"]}', t("f", t("[]", "x"))),
        ('{"tag":"f","contents":[]}', t("f", "[]")),
        (
            '{"root":"f","children":[{"root":"2","children":[]},{"root":"{}","children":[]}]}',
            t("{root}", t("f", "2", "{}")),
        ),
        ('{"root":"f","children":[2]}', t("{}", t("root", "f"), t("children", t("[]", "2")))),
        ('{"tag":"x"}', t("{}", t("tag", "x"))),
        (
            '{"a":[1.0,"1.0",null,"null","[]",[],{}],"a":""}',
            t("{}", t("a", t("[]", "1.0", '"1.0"', "null", '"null"', '"[]"', "[]", "{}")), t("a", "")),
        ),
        ('{"label":"S","children":[{"label":"N","children":[{"label":"="}]}]}', t("S", t("{label}", t("N", "==")))),
        (
            '[{"type":"Call","value":"f","children":[1,2]},{"type":"arg","children":[]},{"type":"Load","value":null}]',
            t("Call", t("[type]", '="f"', t("arg", "=[]"), t("Load", "=null"))),
        ),
        ('[{"type":"a","children":[1]},{"type":"b"},0]', t("a", t("[type]0", "b"))),
        ('{"name":"a","children":[1]}', t("{}", t("name", "a"), t("children", t("[]", "1")))),
        ('{"":["f",1]}', t("{}", t("", t("[]", "f", "1")))),
        ('{"":["{}",["1"]]}', t("{}", "1")),
    ],
}


@pytest.mark.parametrize(
    ("name", "text", "tree"), [(name, *pair) for name, pairs in SAME_TEXT.items() for pair in pairs]
)
def test_a_line_means_its_tree_and_is_written_for_it(name, text, tree):
    notation = notation_named(name)
    assert notation.read(text) == tree
    assert notation.write(tree) == text
    assert notation.read(f" \t{text} \n") == tree


@pytest.mark.parametrize(
    ("name", "text", "written"),
    [
        ("bracket", "(S (NP (DT the)))", "( S ( NP ( DT the ) ) )"),
        (
            "prolog",
            "answer(A,(state(A),\\+const(B,'x y')));A\\=B",
            "answer ( A , ( state ( A ) , \\+ const ( B , 'x y' ) ) ) ; A \\= B",
        ),
        ("prolog", "[]", "[ ]"),
        ("prolog", "answer(C,Z^(p(Z),q(Z))).", "answer ( C , Z ^ ( p ( Z ) , q ( Z ) ) )"),
        ("funql", "f( 'a b' ,_)", "f('a b', _)"),
        ("variable-free", "x(nmod.in=*a)", "x ( nmod . in = * a )"),
        ("json", '{"contents": [ 1, 2 ], "tag": "f"}', '{"tag":"f","contents":[1,2]}'),
        ("json", '"\\u00e9\\u2028"', '"é\\u2028"'),
    ],
)
def test_blanks_do_not_matter(name, text, written):
    notation = notation_named(name)
    assert notation.write(notation.read(text)) == written


def read_brackets(text: str) -> Tree:
    """S-expressions by recursion, without strings."""
    tokens = text.replace("(", " ( ").replace(")", " ) ").split()

    def node() -> tuple[Tree, bool]:
        token = tokens.pop(0)
        if token != "(":
            return Tree(token), True
        content = []
        while tokens[0] != ")":
            content.append(node())
        tokens.pop(0)
        inner = [tree for tree, _ in content]
        is_headed = len(content) > 1 and content[0][1]
        return (Tree(inner[0].label, inner[1:]) if is_headed else Tree("()", inner)), False

    return node()[0]


S_EXPRESSIONS = st.recursive(
    st.sampled_from(("f", "x", "$0")),
    lambda below: st.lists(below, max_size=3).map(lambda inner: f"({' '.join(inner)})"),
    max_leaves=10,
)


@settings(max_examples=50, deadline=None)
@given(S_EXPRESSIONS)
def test_brackets_agree_with_a_simple_reader(text):
    if not without_blanks(text).strip("()"):
        return
    tree = BRACKET.read(text)
    assert tree == read_brackets(text)
    assert without_blanks(BRACKET.write(tree)) == without_blanks(text)


def read_prolog(text: str) -> Tree:
    """Clauses of ``;``, ``,``, ``\\+``, ``=`` and calls, by recursive descent; needless brackets become nodes."""
    tokens = re.findall(r"\\\+|[(),;=]|\w+", text)

    def chain(operator: str, operand) -> tuple[Tree, int]:
        parts = [operand()]
        while tokens and tokens[0] == operator:
            tokens.pop(0)
            parts.append(operand())
        limit = {";": 1099, ",": 999, "=": 699}[operator]
        if len(parts) == 1:
            return parts[0]
        return Tree(operator, [place(part, limit) for part in parts]), {";": 1100, ",": 1000, "=": 700}[operator], 0

    def place(part, limit: int) -> Tree:
        tree, priority, brackets = part
        for _ in range(brackets - (priority > limit)):
            tree = Tree("()", [tree])
        return tree

    def negated():
        if tokens[0] == "\\+":
            tokens.pop(0)
            return Tree("\\+", [place(negated(), 900)]), 900, 0
        return chain("=", primary)

    def primary():
        token = tokens.pop(0)
        if token == "(":
            tree, priority, brackets = clause()
            tokens.pop(0)
            return tree, priority, brackets + 1
        if tokens and tokens[0] == "(":
            arguments = []
            while tokens.pop(0) != ")":
                arguments.append(place(negated(), 999))
            return Tree(token, arguments), 0, 0
        return Tree(token), 0, 0

    def clause():
        return chain(";", lambda: chain(",", negated))

    return place(clause(), 1200)


def clauses() -> st.SearchStrategy[str]:
    """Clauses whose operands are in as many brackets as they need or more."""
    word = st.sampled_from(("a", "B"))

    def extend(below: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        bracketed = below.map(lambda text: f"({text})")
        simple = (
            word
            | bracketed
            | st.lists(word | bracketed, min_size=1, max_size=3).map(lambda inner: f"f({','.join(inner)})")
        )
        compared = simple | st.tuples(simple, simple).map("=".join)
        negated = compared | compared.map(lambda text: f"\\+{text}")
        joined = st.lists(negated, min_size=1, max_size=3).map(" , ".join)
        return st.lists(joined, min_size=1, max_size=3).map(";".join)

    return st.recursive(word, extend, max_leaves=12)


@settings(max_examples=50, deadline=None)
@given(clauses())
def test_clauses_agree_with_a_simple_reader(text):
    tree = PROLOG.read(text)
    assert tree == read_prolog(text)
    assert without_blanks(PROLOG.write(tree)) == without_blanks(text)


def nodes(key: str) -> st.SearchStrategy[dict]:
    """Trees whose nodes are objects with a label under a key."""
    label, value = st.sampled_from(AWKWARD), st.sampled_from(("x", "=", 1, None, True))
    leaf = st.fixed_dictionaries({key: label}, optional={"value": value, "children": st.just([])})
    whole = st.recursive(
        leaf,
        lambda below: st.fixed_dictionaries(
            {key: label, "children": st.lists(below, min_size=1, max_size=3)}, optional={"value": value}
        ),
        max_leaves=5,
    )
    return whole


def numbered(tree: dict) -> list[dict]:
    """A tree as a list of nodes that name their children by numbers."""
    found = [{**tree}]
    if "children" in tree:
        below = [numbered(child) for child in tree["children"]]
        found[0]["children"] = []
        for nodes_below in below:
            first = len(found)
            found[0]["children"].append(first)
            for node in nodes_below:
                more = {"children": [first + child for child in node["children"]]} if "children" in node else {}
                found.append({**node, **more})
    return found


@settings(max_examples=50, deadline=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=3)
        | st.sampled_from(AWKWARD),
        lambda below: (
            st.lists(below, max_size=3)
            | st.dictionaries(
                st.sampled_from(("tag", "contents", "root", "children", "", "a")) | st.text(max_size=2),
                below,
                max_size=3,
            )
            | st.builds(
                lambda tag, contents: {"tag": tag, "contents": contents},
                st.sampled_from(AWKWARD),
                below | st.lists(below, max_size=3),
            )
            | st.builds(
                lambda root, children: {"root": root, "children": children},
                st.sampled_from(AWKWARD),
                st.lists(below, max_size=3),
            )
            | st.lists(below, max_size=3).map(lambda inner: {"": inner})
            | st.sampled_from(("label", "name", "type")).flatmap(nodes)
            | nodes("type").map(numbered)
            | nodes("type").map(lambda node: [*numbered(node), 0])
        ),
        max_leaves=8,
    )
)
def test_any_json_value_is_read_and_written(value):
    text = json.dumps(value)
    if "\\ud" in text:
        return
    written = JSON.write(JSON.read(text))
    assert json.loads(written) == value
    assert [type(part) for part in _parts(json.loads(written))] == [type(part) for part in _parts(value)]


def _parts(value) -> list:
    """All values within a value, in an order that does not depend on the order of keys."""
    if isinstance(value, dict):
        return [value, *(part for key in sorted(value) for part in _parts(value[key]))]
    return [value, *(part for item in value for part in _parts(item))] if isinstance(value, list) else [value]


@pytest.mark.parametrize(
    ("name", "text", "error", "column", "words"),
    [
        ("bracket", "", EmptySymbolTreeError, None, "an empty line"),
        ("bracket", " \t", EmptySymbolTreeError, None, "an empty line"),
        ("bracket", "( )", EmptySymbolTreeError, None, "nothing between the brackets"),
        ("bracket", "( f ( g x )", NotationError, 1, "a bracket is never closed"),
        ("bracket", "( f ( g ( x )", NotationError, 1, "2 brackets are never closed"),
        ("bracket", "( f x ) )", NotationError, 9, "closing bracket without"),
        ("bracket", ") f", NotationError, 1, "closing bracket without"),
        ("bracket", "( f x ) ( g y )", MultipleRootsError, 9, "follows a complete tree"),
        ("bracket", "which rivers", MultipleRootsError, 7, "'rivers' follows"),
        ("bracket", '( f "a b )', NotationError, 5, "does not end"),
        ("bracket", '( f "a"b )', NotationError, 5, "does not end"),
        ("bracket", "\ufeff( f x )", NotationError, 1, "byte order mark"),
        ("prolog", "f ( a , b", NotationError, 3, "never closed"),
        ("prolog", "g , f ( a , ( b", NotationError, 7, "2 brackets are never closed"),
        ("prolog", "f ( a ) )", NotationError, 9, "closes nothing"),
        ("prolog", "f ( a ]", NotationError, 7, "where '\\)' should be"),
        ("prolog", "f ( )", NotationError, 5, "a term is missing before '\\)'"),
        ("prolog", "f ( a , )", NotationError, 9, "a term is missing"),
        ("prolog", ", a", NotationError, 1, "a term is missing before ','"),
        ("prolog", "a ,", NotationError, 4, "before the end of the line"),
        ("prolog", "f ( a b )", NotationError, 7, "no comma or operator before 'b'"),
        ("prolog", "f ( a ) g ( b )", MultipleRootsError, 9, "follows a complete tree"),
        ("prolog", "f ( a ) . b", MultipleRootsError, 9, "follows a complete tree"),
        ("top", "[IN:A a", NotationError, 1, "never closed"),
        ("top", "[IN:A a ] b", MultipleRootsError, 11, "follows a complete tree"),
        ("top", "a ]", NotationError, 3, "closing bracket without"),
        ("top", "[IN:A [x ] ]", EmptySymbolTreeError, 7, r"nothing in \[x \]"),
        ("top", "[ a ]", NotationError, 1, "without a label"),
        ("top", "IN:A", NotationError, 1, "outside of brackets"),
        ("prolog", "f ( 'a b )", NotationError, 5, "no meaning in prolog"),
        ("prolog", "A = B = C", NotationError, 5, "binds too loosely"),
        ("prolog", "f ( a ; b )", NotationError, 5, "binds too loosely"),
        ("prolog", "[ a | b , c ]", NotationError, 7, "binds too loosely"),
        ("prolog", "[ a | b | c ]", NotationError, 9, "does not belong"),
        ("prolog", "[ a | ]", NotationError, 7, "a term is missing"),
        ("funql", "f(a), g(b)", NotationError, 5, "',' does not belong"),
        ("funql", "f(a", NotationError, 2, "never closed"),
        ("variable-free", "x ( agent = )", NotationError, 13, "a term is missing"),
        ("variable-free", "x ( = a )", NotationError, 5, "no meaning"),
        ("variable-free", "x ( a ) y", MultipleRootsError, 9, "follows"),
        ("json", "{", NotationError, 2, "a key in quotation marks"),
        ("json", "[1, 2", NotationError, 6, "',' or ']', found the end of the line"),
        ("json", '{"a":[{"b":1}', NotationError, 14, "the end of the line"),
        ("json", '{"a" 1}', NotationError, 6, "expected ':', found '1'"),
        ("json", "[1 2]", NotationError, 4, "',' or ']'"),
        ("json", "[1,]", NotationError, 4, "a value"),
        ("json", "[01]", NotationError, 2, "a value"),
        ("json", "NaN", NotationError, 1, "a value"),
        ("json", '"a', NotationError, 1, "in a string"),
        ("json", '"\\ud800"', NotationError, 1, "half of a character"),
        ("json", "1 2", MultipleRootsError, 3, "follows"),
        ("json", '[{"type":"a","children":[2,1]},{"type":"b"},{"type":"c"}]', NotationError, None, "node 0 of a list"),
    ],
)
def test_errors_name_the_fault_and_its_place(name, text, error, column, words):
    with pytest.raises(error, match=words) as caught:
        notation_named(name).read(text, "train.lf", 12)
    assert (caught.value.path, caught.value.line, caught.value.column) == ("train.lf", 12, column)
    assert caught.value.hint.endswith(".")


DEEP = {
    "bracket": ("X", "()"),
    "prolog": ("X", ",", "\\+", "[]"),
    "funql": ("X",),
    "variable-free": ("a=",),
    "json": ("X", "{root}", "{}", "{label}"),
    "top": ("X",),
}


@pytest.mark.parametrize(("name", "label"), [(name, label) for name, labels in DEEP.items() for label in labels])
def test_trees_of_depth_20000_are_read_and_written(name, label):
    tree = Tree("end")
    for _ in range(20_000):
        tree = Tree(label, (tree,))
    notation = notation_named(name)
    assert notation.read(notation.write(tree)) == tree


def test_what_the_command_parse_writes_is_read_as_its_trees():
    tree = t("S", t("NP", t("DT", "the"), t("NN", "a")), t("VP", "2"))
    for forest, root in (((tree,), "S"), ((tree, tree), "{parse}")):
        line = next(TreeFormat("json").write([(" ".join(forest_leaves(forest)), forest)]))
        assert JSON.read(line).label == root
        assert json.loads(JSON.write(JSON.read(line))) == json.loads(line)
    assert JSON.read(json.dumps(tree.to_dict())) == t("S", t("{label}", *tree.children))
