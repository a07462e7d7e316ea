"""Generated programs and their translations: FOR to LAMBDA, CoffeeScript to JavaScript.

``python -m preprocess.programs for2lam --setting SYN-S --output DIR`` and
``python -m preprocess.programs coffeescript --setting A-short --output DIR`` write them.
"""
