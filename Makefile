# What a developer runs. Every target makes its own environment in .venv on first use: `make demo` on a fresh clone works.
#   make demo [FRESH=1]   two image filters on a photograph: tune, remember, run (FRESH=1 forgets and tunes anew)
#   make test             the quick tests, doctests and every code block of the docs
#   make test-all         also the slow and the stress tests
#   make check            ruff, mypy --strict, import-linter
#   make bench            the benchmarks, as ratios against peers measured in the same run
#   make clean            remove the environment and everything made here

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
PYTEST_ARGS ?=

.PHONY: demo test test-all check bench clean venv
.DEFAULT_GOAL := help

.PHONY: help
help:
	@sed -n 's/^#   //p' Makefile

# --- environments: one folder, one stamp per set of packages --------------------------------------------------------------

$(VENV)/.made:
	@sh .ci/make-venv.sh "$(PYTHON)" "$(VENV)"
	@touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml
	@echo "installing jlkern and what the demo needs into $(VENV) (once, about a minute)"
	@$(PIP) -e '.[demo]'
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml
	@echo "installing jlkern and the development tools into $(VENV) (once, about a minute)"
	@$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.demo

venv: $(VENV)/.dev

# --- targets ----------------------------------------------------------------------------------------------------------------

demo: $(VENV)/.demo
	@$(BIN)/python examples/demo.py $(if $(FRESH),--fresh)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not slow and not stress" $(PYTEST_ARGS)

test-all: $(VENV)/.dev
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/imports.py
	$(BIN)/python benchmarks/coldstart.py
	$(BIN)/python benchmarks/dispatch.py
	$(BIN)/python benchmarks/throughput.py

clean:
	rm -rf $(VENV) demo-output dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find jlkern tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
