# Everything here sets itself up: `make test` in a fresh clone is enough.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: help setup demo docs test test-slow lint lab lab-down test-hosts fuzz bench lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: $(READY)  ## make .venv with the locked development set

$(READY): requirements-dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "fleetctl needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo "this Python has no venv module: install python3-venv (Debian, Ubuntu)" >&2; exit 1; }
	@echo "setting up .venv" >&2
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY)  ## the real commands on a small simulated fleet, on this machine
	@$(BIN)/fleetctl demo --folder .cache/fleetctl-demo

test: $(READY)  ## the tests that need no root, but for the slow ones
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow" --ignore tests/hosts tests

test-slow: $(READY)  ## the slow ones that need no root
	$(BIN)/pytest -n 2 --dist worksteal -m slow --ignore tests/hosts tests

docs: $(READY)  ## renew the recording of the demo and the reference of the inventory
	$(BIN)/python -m tests.recording
	$(BIN)/python -m tests.inventory_page

lint: $(READY)  ## ruff, mypy, shellcheck
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/shellcheck .ci/run $(shell git ls-files "src/*.sh")

# Real hosts need Linux and root. What is made once is kept outside the checkout.
LAB_READY := .venv/ready-lab
LAB := $(BIN)/python -m tests.lab
NODES ?= 3
KIND ?= installer

lab: $(LAB_READY)  ## boot real nodes and print their inventory (NODES=3 KIND=installer)
	@$(LAB) up --nodes $(NODES) --kind $(KIND)

lab-down: $(LAB_READY)  ## stop and remove them
	@$(LAB) down

test-hosts: $(LAB_READY)  ## the tests that need real hosts
	@$(LAB) prepare --wheels requirements-dev.txt
	$(BIN)/pytest -n 2 tests/hosts
	FLEETCTL_REAL_OLLAMA=$$($(LAB) ollama) FLEETCTL_ALL_SHELLS=1 \
	  $(BIN)/pytest -n 2 tests/contract tests/test_codecs.py tests/test_shell.py tests/test_demo.py

$(LAB_READY): $(READY) requirements-lab.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-lab.txt
	@touch $@

fuzz: $(READY)  ## 100,000 mutated inventories and command lines; SEED=n replays
	$(BIN)/python tests/fuzz.py --rounds 100000 $(if $(SEED),--seed $(SEED))

bench: $(READY)  ## how long everything takes, side by side with others
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/loading.py
	$(BIN)/python benchmarks/noop.py
	$(BIN)/python benchmarks/change.py

lock: $(READY)  ## renew requirements-dev.txt from requirements-dev.in and pyproject.toml
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet \
	  --upgrade --output-file requirements-dev.txt pyproject.toml requirements-dev.in
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet \
	  --upgrade --constraint requirements-dev.txt --output-file requirements-lab.txt requirements-lab.in

clean:  ## remove what make has made
	rm -rf .venv .cache dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
