// Compiles CoffeeScript programs to JavaScript and writes the trees and the tokens of the results.
//
//     node compile.js FOLDER_WITH_NODE_MODULES
//
// Every line of the input is a JSON list of programs, every line of the output a JSON list of as many results, each
// {"tree": "( BlockStatement ... )", "tokens": "var x ; ..."} or {"error": "..."}.

"use strict";

const readline = require("readline");

const [folder] = process.argv.slice(2);
const load = (name) => require(require.resolve(name, { paths: [folder] }));
const coffee = load("coffeescript");
const acorn = load("acorn");
const ECMA_SCRIPT = { ecmaVersion: 5 };

// Fields of acorn's nodes that are no children, and children that the published trees do not have.
const ATTRIBUTES = new Set(["type", "start", "end", "kind", "operator"]);
const UNPUBLISHED = { CallExpression: "arguments", MemberExpression: "property" };

function children(node) {
  const found = [];
  for (const field of Object.keys(node)) {
    if (ATTRIBUTES.has(field) || UNPUBLISHED[node.type] === field) continue;
    for (const value of [].concat(node[field])) {
      if (value && value.type) found.push(value);
    }
  }
  return found;
}

function bracketed(node) {
  if (node.type === "Identifier") return `( Identifier ${node.name} )`;
  if (node.type === "Literal") return `( Literal ${node.raw} )`;
  const label = node.operator || node.type;
  const parts = children(node).map(bracketed);
  return parts.length ? `( ${label} ${parts.join(" ")} )` : label;
}

function translated(program) {
  try {
    const script = coffee.compile(program, { bare: true });
    const body = acorn.parse(script, ECMA_SCRIPT).body;
    const tokens = [...acorn.tokenizer(script, ECMA_SCRIPT)].map((token) => script.slice(token.start, token.end));
    return { tree: bracketed({ type: "BlockStatement", body }), tokens: tokens.join(" ") };
  } catch (error) {
    return { error: String(error.message || error) };
  }
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  process.stdout.write(JSON.stringify(JSON.parse(line).map(translated)) + "\n");
});
