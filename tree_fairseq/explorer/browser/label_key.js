// The key to the labels of trees: what the labels of treebanks, and those of programs, stand for.

const PHRASES =
  "S sentence|SINV inverted sentence|SQ question|SBAR subordinate clause|SBARQ question with a question word|NP noun phrase|VP verb phrase|PP prepositional phrase|" +
  "ADJP adjective phrase|ADVP adverb phrase|QP quantity|PRT particle|WHNP noun phrase with a question word|WHADVP adverb phrase with a question word|CONJP conjunction phrase|" +
  "FRAG fragment|INTJ interjection|NML part of a noun phrase|PRN parenthesis|UCP unlike phrases, coordinated|ROOT the whole tree|TOP the whole tree|" +
  "DT determiner|NN noun|NNS nouns|NNP name|NNPS names|PRP pronoun|PRP$ possessive pronoun|VB verb|VBD verb, past|VBZ verb, third person|VBP verb, present|VBG verb with -ing|" +
  "VBN past participle|MD modal verb|IN preposition|JJ adjective|JJR comparative|JJS superlative|RB adverb|RP particle|CC conjunction|CD number|TO to|WP question pronoun|" +
  "WDT question determiner|WRB question adverb|EX there|POS ’s|CNP coordinated noun phrase|CS coordinated sentence|MPN name of several words";
const PROGRAMS =
  "Select SELECT|From FROM|Where WHERE|Group GROUP BY|Having HAVING|Order ORDER BY|Ordered order of a column|Limit LIMIT|Join JOIN|Table table|Column column|Identifier name|" +
  "Literal constant|Star *|EQ =|NEQ <>|GT >|GTE >=|LT <|LTE <=|Not NOT|And AND|Or OR|In IN|Like LIKE|Between BETWEEN|Subquery query in a query|Distinct DISTINCT|Alias AS|" +
  "Count COUNT|Max MAX|Min MIN|Avg AVG|Sum SUM|Call call|Name name|Attribute attribute|Constant constant|Assign =|Return return|If if|For for|Paren brackets";
const MEANINGS = [PHRASES, PROGRAMS].map((list) => new Map(list.split("|").map((each) => [each.split(" ", 1)[0], each.slice(each.indexOf(" ") + 1)])));

/** The labels of trees that have a known meaning, and how labels are formed. */
function labelKey(trees) {
  const isProgram = trees.some((tree) => tree.is_program);
  const meanings = MEANINGS[isProgram ? 1 : 0];
  const inner = trees.flatMap((tree) => (isProgram ? tree.labels.map(shortProduction) : tree.labels.filter((label, node) => tree.children[node])));
  const names = [...new Set(inner.flatMap((label) => label.split(isProgram ? " " : "-", isProgram ? undefined : 1)))].filter((name) => meanings.has(name));
  const form = isProgram
    ? "A node is a part of the program: its kind, then the names of its parts that follow below it. A leaf ends in its text."
    : names.length
      ? "Words stand at the bottom. Pieces of a word stand under a label that ends in _sub; a piece that goes on ends in a hyphen."
      : "A node is a function or a relation, and its arguments stand below it in their order.";
  return html(
    "details",
    { class: "as-text key" },
    html("summary", {}, "Key to the labels"),
    html("p", { class: "small" }, form),
    html("dl", {}, names.map((name) => html("div", {}, html("dt", {}, name), html("dd", {}, meanings.get(name))))),
  );
}
