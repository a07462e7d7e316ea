# make quickstart              environment, a small corpus, Stanza's parses, two models trained, translations, BLEU, a picture
# make quickstart DATA=DIR     the same on your own parallel text; also SOURCE=, TARGET=, PARSER_DIR=, SUBSET=, UPDATES=, DISTANCE_BIAS=, OUT=
# make test                    environment, the whole test suite; TESTS=PATH runs a part of it
# make lint                    environment, format and lint by ruff, types by mypy
# make docs                    environment, the documentation as a site in out/site; warnings are errors
# make model NAME=geo DATA=DIR  a small model of examples/released, trained by its recipe and packed with a model card
# make results NAME=overnight_publications DATA=DIR  a result of examples/results once more: all systems and seeds, paired tests
# make benchmark [NAME=...]    environment, one benchmark or all of them, in one table and in out/benchmarks; OPTIONS=--page
#                              puts the figures into the documentation
# make gpu [OPTIONS="--data DIR"]  environment, checks and measurements on a GPU in eight minutes; a table and out/gpu
# make gpu -- --device cpu --quick  the same code without a GPU; python -m tests.gpu --help lists the options
# make fuzz SECONDS=60          every target of tests/fuzz that long, guided by coverage; TARGETS="brackets manifest" some
# make soak MINUTES=120         a training that is killed again and again, beside one that is not; they must agree
# make docker                  a container image; BASE=cuda for one that uses GPUs. Without docker, its recipe is linted
# make dist                    environment, a wheel and a source distribution in dist/
# make test-portable           environment, a part of the suite that shows whether a Python works, about ten minutes
# make portability PYTHONS="python3.9 python3.11 ..."
#                              an environment for each Python; folders and checkpoints of each are read by all others
# make                         environment alone: requirements.lock and this package installed into .venv
# make ... PYTHON=python3.10   the same with another Python, from 3.9 to 3.13, in an environment of its own: .venv-3.10
# make clean                   .venv*, dist/ and out/ removed

SHELL := /bin/sh
# $(PYTHON) where it is given, otherwise python3.11, otherwise python3. Each is tried by running it: a version manager
# leaves names on the path that start nothing.
INTERPRETER := $(shell for python in $(or $(PYTHON),python3.11 python3); do \
  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then echo $$python; break; fi; done)
VERSION := $(if $(INTERPRETER),$(shell $(INTERPRETER) -c 'import sys; print("%d.%d" % sys.version_info[:2])'))
# An environment for each Python that is asked for; without PYTHON, or with 3.11, it is .venv.
VENV := .venv$(if $(PYTHON),$(addprefix -,$(filter-out 3.11,$(VERSION))))
# Every package of requirements.lock is there for 3.11 and later. fairseq of its authors runs on 3.9 and 3.10, and is built
# in isolation, under constraints that hold there too; fairseq-fixed needs what it is built with at hand.
ifneq ($(filter 3.9 3.10,$(VERSION)),)
LOCK := requirements/python$(VERSION).txt
FIRST := 'pip<24.1' setuptools wheel numpy torch
BUILD := PIP_CONSTRAINT="$(CURDIR)/$(LOCK)"
else
LOCK := requirements.lock
FIRST := setuptools wheel cython numpy torch
ISOLATION := --no-build-isolation
endif
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check
# Written last, so an install that was interrupted, or one of another lock, is done again.
STAMP := $(VENV)/.installed
WORKERS ?= 2
SOURCES := tree_fairseq preprocess examples tests docs setup.py
PORTABLE := tests/portability tests/trees tests/parsing tests/data_bin tests/preprocessing tests/repairs/test_checkpoint_loading.py \
  tests/repairs/test_fairseq_versions.py tests/support/test_python_versions.py
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: ready environment install help quickstart test test-portable portability which lint docs model results benchmark gpu fuzz soak docker dist \
  clean
.DEFAULT_GOAL := ready

# The commands of the README then run as they are printed.
ready: environment
	@echo 'Ready. Put its programs on your PATH:'
	@echo '  export PATH="$(CURDIR)/$(VENV)/bin:$$PATH"'

help:
	@sed -n '/^# make/s/^# //p' $(firstword $(MAKEFILE_LIST))

environment:
	@if [ -z "$(INTERPRETER)" ]; then \
	  echo "Python 3.9 or later is needed; $(or $(PYTHON),python3) is: $$($(or $(PYTHON),python3) --version 2>&1)." >&2; \
	  echo "Install it, or name one: make PYTHON=/path/to/python3.11" >&2; exit 1; \
	fi; \
	sum=$$(cksum < $(LOCK)); \
	if [ "$$(cat $(STAMP) 2>/dev/null)" = "$$sum" ] && $(VENV)/bin/python -c '' 2>/dev/null; then exit 0; fi; \
	echo "environment: $$($(INTERPRETER) --version) into $(VENV); fairseq is compiled, which takes about three minutes"; \
	$(MAKE) --no-print-directory install && echo "$$sum" > $(STAMP)

# The second step takes the lock literally: it names every package, so nothing is left to resolve. The third makes the
# command tree-fairseq.
install:
	@$(INTERPRETER) -m venv --clear $(VENV)
	@$(PIP) install --quiet --constraint $(LOCK) $(FIRST)
	@$(BUILD) $(PIP) install --quiet $(ISOLATION) --no-deps --requirement $(LOCK)
	@$(PIP) install --quiet --no-build-isolation --no-deps --editable .

lint: environment
	@$(VENV)/bin/ruff format --check --quiet $(SOURCES) || { echo "not formatted; run: $(VENV)/bin/ruff format $(SOURCES)" >&2; exit 1; }
	@$(VENV)/bin/ruff check --quiet $(SOURCES)
	@$(VENV)/bin/mypy

test: environment
	@$(ONE_THREAD) $(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)

test-portable: environment
	@$(ONE_THREAD) $(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal $(PORTABLE)

portability: environment
	@for python in $(PYTHONS); do $(MAKE) --no-print-directory environment PYTHON=$$python || exit 1; done
	@TREE_FAIRSEQ_PYTHONS="$(foreach python,$(PYTHONS),$(shell $(MAKE) --silent which PYTHON=$(python)))" \
	  $(ONE_THREAD) $(VENV)/bin/python -m pytest -rA -o faulthandler_timeout=0 tests/portability/test_portability.py

which:
	@echo "$(CURDIR)/$(VENV)/bin/python"

quickstart: environment
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" examples/quickstart/run.sh \
	  $(if $(DATA),--data "$(DATA)") $(if $(SOURCE),--source "$(SOURCE)") $(if $(TARGET),--target "$(TARGET)") \
	  $(if $(PARSER_DIR),--parser-dir "$(PARSER_DIR)") $(if $(SUBSET),--subset "$(SUBSET)") \
	  $(if $(UPDATES),--updates "$(UPDATES)") $(if $(DISTANCE_BIAS),--distance-bias "$(DISTANCE_BIAS)") \
	  $(if $(OUT),--out "$(OUT)")

docs: environment
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs build --strict --quiet && echo "out/site/index.html"

model: environment
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(ONE_THREAD) python examples/released/make_model.py $(NAME) \
	  $(if $(DATA),--data "$(DATA)") $(if $(OUT),--out "$(OUT)") $(OPTIONS)

results: environment
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(ONE_THREAD) python -m examples.lib.results $(NAME) \
	  $(if $(DATA),--data "$(DATA)") $(if $(OUT),--out "$(OUT)") $(OPTIONS)

benchmark: environment
	@$(ONE_THREAD) $(VENV)/bin/python -m tests.benchmarks $(or $(NAME),all) $(OPTIONS)

# `make gpu -- --device cpu` names options where make expects goals: they are passed on, and there is nothing to make.
ifneq ($(and $(filter gpu,$(firstword $(MAKECMDGOALS))),$(filter --%,$(MAKECMDGOALS))),)
GPU_OPTIONS := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
.PHONY: $(GPU_OPTIONS)
$(GPU_OPTIONS): gpu
	@:
endif

gpu: environment
	@$(VENV)/bin/python -m tests.gpu $(OPTIONS) $(GPU_OPTIONS)

fuzz: environment
	@$(ONE_THREAD) $(VENV)/bin/python -m tests.fuzz --seconds $(or $(SECONDS),60) $(TARGETS)

soak: environment
	@$(ONE_THREAD) $(VENV)/bin/python -m tests.soak --minutes $(or $(MINUTES),120) --directory $(or $(OUT),out/soak) $(OPTIONS)

docker:
	@docker/build.sh $(or $(BASE),cpu)

dist: environment
	@$(VENV)/bin/python -m build --no-isolation

clean:
	rm -rf .venv .venv-* dist out
