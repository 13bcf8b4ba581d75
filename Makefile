# Two commands: `make demo` and `make test`. Each makes its own environment in .venv first.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN     = $(VENV)/bin

# The package itself knows only CONFED_DATA; a checkout that lies beside the shared data uses it.
ifeq ($(origin CONFED_DATA),undefined)
ifneq ($(wildcard ../shared/data),)
export CONFED_DATA := $(abspath ../shared/data)
endif
endif

.PHONY: demo test lint format package faults bench env lock clean

demo: $(VENV)/.ready  ## train on MovieLens-100K, print the results, draw CoFedRec's pictures
	$(BIN)/confed compare cofedrec pfedrec fedmf ease popularity --dataset ml-100k --rounds 40 --out runs/demo
	$(BIN)/confed report --latest runs/demo --method cofedrec --open

test: $(VENV)/.ready  ## the whole suite
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not apart"
	$(BIN)/python -m pytest -m apart

lint: $(VENV)/.ready  ## formatting, lint and types; changes nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.ready  ## format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

package: $(VENV)/.ready  ## the wheel, in an empty environment and far from the checkout
	$(BIN)/python -m tests.package

faults: $(VENV)/.ready  ## malformed files, absurd options, corruptions, kills and losses of power: all of them
	$(BIN)/python -m tests.faults $(FAULTS)

bench: $(VENV)/.ready  ## speed and memory against the one-client-after-another oracle
	$(BIN)/python -m benchmarks $(BENCH)

env: $(VENV)/.ready  ## only the environment

$(VENV)/.ready: pyproject.toml dev.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint dev.lock --editable '.[dev]'
	touch $@

lock:  ## dev.lock anew: the newest versions that pyproject.toml admits, in an environment of their own
	$(PYTHON) -m venv --clear build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check '.[dev]'
	{ head -1 dev.lock; build/lock/bin/python -m pip freeze --exclude confed | sed 's/+cpu$$//'; } > dev.lock.new
	mv dev.lock.new dev.lock

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
