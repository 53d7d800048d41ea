# One word for what is done often. The checks themselves are listed in one place, .ci/run.
VENV ?= .venv
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.PHONY: help setup check test quick docs ci build clean

help:  ## say what there is
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 8

setup:  ## make .venv, with spaql editable, all extras and all tools
	.ci/setup $(VENV)

check:  ## lint, format, types and layers: half a minute
	.ci/check

quick:  ## the tests that take less than a quarter of a second each: under a minute
	pytest -q -n 2 -m "not slow and not long"

test:  ## all tests but those that take long, on two cores
	pytest -q -n 2 -m "not long"

docs:  ## the documentation, in docs/_build
	sphinx-build -q -W --keep-going docs docs/_build

ci:  ## everything, on the built wheel, in an environment of its own
	.ci/run

build:  ## the wheel and the source distribution, in dist
	python -m pip install --quiet build && python -m build

clean:  ## remove what the others made
	rm -rf $(VENV) .venv-ci dist docs/_build .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
