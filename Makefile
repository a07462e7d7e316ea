# make quickstart              environment, a small corpus, Stanza's parses, two models trained, translations, BLEU, a picture
# make quickstart DATA=DIR     the same on your own parallel text; also SOURCE=, TARGET=, PARSER_DIR=, SUBSET=, UPDATES=, OUT=
# make test                    environment, the whole test suite; TESTS=PATH runs a part of it
# make lint                    environment, format and lint by ruff, types by mypy
# make docs                    environment, the documentation as a site in out/site; warnings are errors
# make benchmark [NAME=...]    environment, one benchmark or all of them
# make docker                  a container image; BASE=cuda for one that uses GPUs. Without docker, its recipe is linted
# make dist                    environment, a wheel and a source distribution in dist/
# make                         environment alone: requirements.lock and this package installed into .venv
# make clean                   .venv, dist/ and out/ removed

SHELL := /bin/sh
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check
# Written last, so an install that was interrupted, or one of another lock, is done again.
STAMP := $(VENV)/.installed
WORKERS ?= 2
SOURCES := tree_fairseq preprocess examples tests docs setup.py
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: ready environment install help quickstart test lint docs benchmark docker dist clean
.DEFAULT_GOAL := ready

# The commands of the README then run as they are printed.
ready: environment
	@echo 'Ready. Put its programs on your PATH:'
	@echo '  export PATH="$(CURDIR)/$(VENV)/bin:$$PATH"'

help:
	@sed -n '/^# make/s/^# //p' $(firstword $(MAKEFILE_LIST))

# $(PYTHON) where it is given, otherwise python3.11, otherwise python3. Each is tried by running it: a version manager
# leaves names on the path that start nothing.
environment:
	@sum=$$(cksum < requirements.lock); \
	if [ "$$(cat $(STAMP) 2>/dev/null)" = "$$sum" ] && $(VENV)/bin/python -c '' 2>/dev/null; then exit 0; fi; \
	for python in $(PYTHON) python3.11 python3 none; do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then break; fi; \
	done; \
	if [ $$python = none ]; then \
	  echo "Python 3.11 or later is needed; python3 is: $$(python3 --version 2>&1)." >&2; \
	  echo "Install it, or name one: make PYTHON=/path/to/python3.11" >&2; exit 1; \
	fi; \
	echo "environment: $$($$python --version) into $(VENV); fairseq is compiled, which takes about three minutes"; \
	$(MAKE) --no-print-directory install PYTHON=$$python && echo "$$sum" > $(STAMP)

# fairseq's build needs these five at hand and finds them only without build isolation. The second step takes the lock
# literally: it names every package, so nothing is left to resolve. The third makes the command tree-fairseq.
install:
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --quiet --constraint requirements.lock setuptools wheel cython numpy torch
	@$(PIP) install --quiet --no-build-isolation --no-deps --requirement requirements.lock
	@$(PIP) install --quiet --no-build-isolation --no-deps --editable .

lint: environment
	@$(VENV)/bin/ruff format --check --quiet $(SOURCES) || { echo "not formatted; run: $(VENV)/bin/ruff format $(SOURCES)" >&2; exit 1; }
	@$(VENV)/bin/ruff check --quiet $(SOURCES)
	@$(VENV)/bin/mypy

test: environment
	@$(ONE_THREAD) $(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)

quickstart: environment
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" examples/quickstart/run.sh \
	  $(if $(DATA),--data "$(DATA)") $(if $(SOURCE),--source "$(SOURCE)") $(if $(TARGET),--target "$(TARGET)") \
	  $(if $(PARSER_DIR),--parser-dir "$(PARSER_DIR)") $(if $(SUBSET),--subset "$(SUBSET)") \
	  $(if $(UPDATES),--updates "$(UPDATES)") $(if $(OUT),--out "$(OUT)")

docs: environment
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs build --strict --quiet && echo "out/site/index.html"

benchmark: environment
	@$(VENV)/bin/python -m tests.benchmarks $(NAME)

docker:
	@docker/build.sh $(or $(BASE),cpu)

dist: environment
	@$(VENV)/bin/python -m build --no-isolation

clean:
	rm -rf $(VENV) dist out
