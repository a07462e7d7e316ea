"""Programming languages as notations: text to tree and back, their grammars, and names that no dictionary has.

A language is made when it is asked for by name: ``sql``, ``sql:postgres``, ``python``, ``java``, ``csharp``,
``javascript``, or ``tree-sitter:tree_sitter_go`` for any module with a grammar of tree-sitter.
"""
