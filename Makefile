# Everything a contributor types. `make up` and `make test` set up what they need: git, make and Python 3.11 are enough.

PYTHON ?= python3
SECONDS ?= 600
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SERVERS := $(VENV)/servers/.ready
# The one pin of uv stands in pyproject.toml.
UV := $(shell sed -n 's/^ *"\(uv==[0-9.]*\)",$$/\1/p' pyproject.toml)

# Half as many test workers again as there are cores: many tests wait for a program or a server.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 2) * 3 // 2)')

# Work in this folder's environment, with the Python chosen above, whatever the caller's shell says.
export UV_PROJECT_ENVIRONMENT := $(CURDIR)/$(VENV)
export UV_PYTHON := $(CURDIR)/$(BIN)/python
export UV_PYTHON_DOWNLOADS := never
# pyright and its node come from the lock file: no node of the machine, no question to the network about newer versions.
export PYRIGHT_PYTHON_GLOBAL_NODE := 0
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
unexport VIRTUAL_ENV

.DEFAULT_GOAL := help
.PHONY: help setup servers browser up test check bench soak corpus conformance fmt clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)$$/  make \1\t\2/p' Makefile | expand -t 20

setup: $(READY) ## make .venv with everything in it

up: $(READY) ## write the demo catalog and explain what each demo agent gets
	@$(BIN)/outfitter demo

servers: $(SERVERS) ## install the real MCP servers that the tests talk to

test: $(SERVERS) browser ## run every test
	@$(BIN)/pytest -n $(WORKERS)

browser: ## install the browser that the tests of the dashboard use, where it is missing and can be had
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		{ apt-get install -qq -y --no-install-recommends chromium || { apt-get -qq update && apt-get install -qq -y --no-install-recommends chromium; }; } >/dev/null 2>&1; } || \
		echo "There is no chromium here: the tests of the dashboard in a browser are skipped." >&2

check: $(READY) ## run every gate that is not a test: lint, format, types, import contracts
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/pyright
	@$(BIN)/lint-imports --no-logo

bench: $(READY) ## measure, as ratios against something real
	@$(BIN)/uv sync --locked --quiet --group bench
	@$(BIN)/python -m benchmarks

soak: $(READY) ## the gateway under load while its servers are killed: make soak SECONDS=600
	@$(BIN)/python -m benchmarks.soak $(SECONDS)

corpus: $(READY) ## score the reading of schemas and tool search: make corpus CORPUS=a folder of real tool definitions
	@$(BIN)/python -m benchmarks.corpus $(CORPUS)
	@$(BIN)/python -m benchmarks.corpus_search $(CORPUS)

conformance: $(SERVERS) ## run the official suite through the gateway and against our client, and other clients against the gateway (minutes; fetches npm packages)
	@$(BIN)/python -m conformance.setup
	@failed=0; $(BIN)/python -m conformance.run_gateway || failed=1; \
		$(BIN)/python -m conformance.run_others || failed=1; \
		for revision in 2025-11-25 2026-07-28; do \
		$(BIN)/python -m conformance.run_client $$revision || failed=1; done; exit $$failed

fmt: $(READY) ## put the code in shape
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

clean: ## remove .venv and every cache
	@rm -rf $(VENV) dist .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	@find src tests benchmarks conformance -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# pip of the chosen Python puts uv into the new environment; uv does the rest from the lock file.
$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Outfitter needs Python 3.11 or newer; '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)." >&2; \
		echo "Name a newer one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv --clear --without-pip $(VENV)
	@$(PYTHON) -m pip --python $(BIN)/python --disable-pip-version-check install --quiet "$(UV)"

$(READY): pyproject.toml uv.lock | $(BIN)/uv
	@$(BIN)/uv sync --locked --quiet
	@touch $@

# Everything that names a version of a server; the Python ones that share our environment are in uv.lock.
$(SERVERS): $(addprefix tests/servers/,install.py sqlite.txt package.json package-lock.json) $(READY)
	@$(BIN)/python tests/servers/install.py
	@touch $@
