# Two commands on a fresh machine (Python 3.11 to 3.13, make, git, PyPI):
#   make demo    set everything up and make two private releases from embedded data
#   make test    set everything up and run the tests
# PYTHON chooses the interpreter of the environment in .venv.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test setup setup-dev clean

demo: setup
	$(BIN)/limbeck demo --force

test: setup-dev
	$(BIN)/python -m pytest -n 2 --dist worksteal

setup: .venv/.demo
setup-dev: .venv/.test

.venv/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/.test: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ .venv/.demo

$(BIN)/python:
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv demo-release .pytest_cache .mypy_cache .ruff_cache .hypothesis
