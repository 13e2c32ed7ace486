# Two commands on a fresh machine (Python 3.11 to 3.13, make, git, PyPI):
#   make demo    set everything up and make two private releases from embedded data
#   make test    set everything up and run the tests
# For contributors:
#   make check   style, types, and the documentation's build, in under a minute
#   make docs    the documentation site, in site/
#   make mutants plant privacy bugs one at a time, and see which test notices each: 40 minutes
#   make audit   attack every method and write docs/audit.md; goes on where it was cut short (minutes)
# PYTHON chooses the interpreter of the environment in .venv.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check docs audit mutants setup setup-dev setup-docs clean

demo: setup
	$(BIN)/limbeck demo --force

test: setup-dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup

check: setup-dev docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

mutants: setup-dev
	$(BIN)/python benchmarks/mutants/run.py

# Not quiet: mkdocs counts only the warnings that it shows, and --strict fails on any.
docs: setup-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

audit: setup
	$(BIN)/python -m limbeck.audits.page docs/audit.md

setup: .venv/.demo
setup-dev: .venv/.test
setup-docs: .venv/.docs

.venv/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/.test: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ .venv/.demo

.venv/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@ .venv/.demo

$(BIN)/python:
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv .audit demo-release site .pytest_cache .mypy_cache .ruff_cache .hypothesis
