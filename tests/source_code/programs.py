"""Small programs of every language, and the real ones beside the repository."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tree_fairseq.trees.notations import notation_named
from tree_fairseq.trees.tree import Tree

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"

PROGRAMS = {
    "sql": """
        SELECT a FROM t
        SELECT DISTINCT t1.a, COUNT(*), MAX(DISTINCT t1.b) FROM t AS t1, u AS t2 WHERE t1.a = t2.b AND NOT t1.c IS NULL
        SELECT a FROM t WHERE b IN (SELECT c FROM u WHERE d LIKE '%x y%') GROUP BY a HAVING SUM(b) > 2.5 ORDER BY a DESC
        SELECT a AS "the a" FROM t LEFT OUTER JOIN u ON t.x = u.x UNION ALL SELECT b FROM v LIMIT 3 OFFSET 2
        SELECT CASE WHEN a < 1 THEN 'it''s' ELSE CAST(b AS INT) END FROM (SELECT * FROM t) AS s ORDER BY a ASC
        WITH c AS (SELECT 1 AS x) SELECT x, ROW_NUMBER() OVER (PARTITION BY y ORDER BY z) FROM c WHERE x BETWEEN 1 AND 2
    """,
    "python": """
        x = [i ** 2 for i in range(10) if not i % 2 or i in (1, 2)]
        def f(a, b=2, *args, c, d=None, **kwargs) -> int:§    return a if b else lambda x: x[1:, ..., ::2]
        class A(B, metaclass=C):§    'doc'§    @property§    async def f(self):§        await g(*x, **y)
        print(f'{x!r:>{width}} {{}}', b'\\x00', '\\xa7', 1e10, 0x1f, 1j, -1, {'a': 1, **b}, {1, 2}, u'u')
        try:§    import a.b as c, d§except (X, Y) as error:§    raise Z from error§finally:§    del x[0], y.z
        from . import e§x.y = a.b.c
        with open(a) as f, g:§    global h§    x: int = 3§    x @= y§    assert x is not None, 'no'
        while True:§    if a < b <= c:§        break§    elif d:§        continue§    else:§        pass
        if x :
        elif not (a and b) :
        else :
        try :
        except (A , B) as e :
        finally :
        @ property
        for i , x in enumerate ( y ) :
        pattern = re . compile ( '\\s*' )
    """,
    "java": """
        public int size() {return this.items.size();}
        public void addAll(List<? extends T> src) throws IOException {if (src.size == 0)return;add(src[i], 'x', "a b");}
        public String toString(){Builder b = new Builder();b.append("[").append(x > 0 ? -x : ~y);return b.toString();}
        for (String s : names) {try {f(s);} catch (IOException | X e) {throw new Y(e);} finally {g();}}
        import java.util.List; class A<T> implements B {private static final int[] X = {1, 2}; A() {super();}}
        @Override public boolean equals(Object o) {return o instanceof A && !(a == null);}
    """,
    "csharp": """
        public override string ToString(){return "a b" + x?.Name ?? "c";}
        public virtual void Add<T>(IList<T> src) where T : class{foreach (var x in src){items[i++] += (int)x;}}
        public int Size{get{return size;}set{size = value;}}
        public A(int x):base(x){this.x = x as object;}
        using (var f = File.Open(path)){lock (f){f.Read(ref b, out n);}}
        switch (x){case 1:break;default:return;}
    """,
    "javascript": """
        function f(a, b = 2, ...c) { return a === b ? [1, 'x', `t ${a}`] : { a, b: /x+/g }; }
        const g = async (x) => await h(x); for (const y of z) { if (!y) continue; else delete y.a; }
        var c = a.b["d"](new E()) || typeof f; do { i++; } while (i < 3)
    """,
}


def lines_of(name: str) -> list[str]:
    """The programs of a language; the test is skipped where its library cannot be installed."""
    if name not in ("sql", "python") and sys.version_info < (3, 10):
        pytest.skip("tree-sitter needs Python 3.10")
    return [line.strip() for line in PROGRAMS[name].strip().split("\n")]


def trees_of(name: str) -> list[Tree]:
    lines = lines_of(name)
    return [notation_named(name).read(line) for line in lines]


def real_lines(name: str) -> list[str]:
    """All lines of a corpus beside the repository; the test is skipped without it."""
    if not SHARED.exists():
        pytest.skip(f"no data in {SHARED}")
    if name == "text2sql":
        files = [SHARED / "text2sql" / f"{which}.json" for which in ("geography", "atis", "advising")]
        return [entry["sql"][0] for file in files for entry in json.loads(file.read_text(encoding="utf-8"))]
    if name == "django":
        return (SHARED / "django" / "all.code").read_text(encoding="utf-8").split("\n")[:-1]
    pattern = "hearthstone/*_hs.out" if name == "hearthstone" else f"codexglue_java_cs/*.java-cs.txt.{name}"
    files = sorted(SHARED.glob(pattern))
    return [line for file in files for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
