# Every target sets up all it needs, with the newest Python that works; PYTHON names another one:
#   make test PYTHON=python3.11
# The first interpreter used gets .venv, any other version .venv-X.Y: switching rebuilds nothing.

# Modules are compiled once, when first imported, not by every process that a test starts, whatever
# the caller's shell says.
unexport PYTHONDONTWRITEBYTECODE

ifndef PYTHON
PYTHON := $(firstword $(foreach name,python3.13 python3.12,$(shell $(name) -c 'import ensurepip; print("$(name)")' 2>/dev/null)) python3)
endif
OUT ?= demo-output
ARGS ?=

version_of = $(shell $(1) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
VERSION := $(call version_of,$(PYTHON))
VENV := $(if $(wildcard .venv),$(if $(filter $(VERSION),$(call version_of,.venv/bin/python)),.venv,.venv-$(VERSION)),.venv)
BIN := $(VENV)/bin
CREATED := $(VENV)/.created
INSTALLED := $(VENV)/.installed
DEVELOPING := $(VENV)/.installed-dev
COMPLETE := $(VENV)/.installed-extras
WRITING := $(VENV)/.installed-docs

SUPPORTED := $(filter-out 2.% 3.0 3.1 3.2 3.3 3.4 3.5 3.6 3.7 3.8 3.9 3.10,$(VERSION))
UNSUPPORTED = bayesrep needs Python 3.11 or newer, but "$(PYTHON)" is $(or $(VERSION),not found); name another one: make $(or $(firstword $(MAKECMDGOALS)),demo) PYTHON=python3.12

# By tests/conftest.py, files that compile the same programs go to one process, in its order. One
# process more than two cores: some tests wait for a browser, or for processes that they started.
PARALLEL := --numprocesses 3 --dist loadscope --no-loadscope-reorder

# What differs from the last commit (outside git: everything); the types of vision/ need torch.
DIFFERENT = $(shell { git diff --name-only --diff-filter=d HEAD -- bayesrep && \
	git ls-files --others --exclude-standard -- bayesrep; } 2>/dev/null || echo bayesrep)
CHANGED = $(filter-out $(if $(wildcard $(COMPLETE)),,bayesrep/vision/%),$(filter bayesrep %.py,$(DIFFERENT)))

.NOTPARALLEL: # two pips at once would break one environment
.DEFAULT_GOAL := help
.PHONY: help developing complete demo check test statistics core lint types bench docs

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

developing: $(DEVELOPING)
complete: $(COMPLETE)

demo: $(INSTALLED) ## simulate a study, fit it and compare with the truth (OUT=folder, ARGS=--quick)
	$(BIN)/bayesrep demo --out $(OUT) $(ARGS)

check: lint ## what every edit must pass, in a minute: lint, types of what changed, tests without JAX
	$(if $(CHANGED),$(BIN)/pyright --pythonpath $(BIN)/python $(CHANGED))
	$(BIN)/python -m pytest $(PARALLEL) --no-compilation --jaxtyping-packages= $(ARGS)

test: $(COMPLETE) ## run the tests of what is promised (ARGS=tests/test_package.py)
	$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

statistics: $(COMPLETE) ## run the tests of spreads, recoveries and samplers that agree (long)
	$(BIN)/python -m pytest $(PARALLEL) tests/statistics $(ARGS)

core: $(DEVELOPING) ## run those of the tests that meet JAX, ArviZ and files most
	$(BIN)/python -m pytest @.ci/core $(ARGS)

lint: $(DEVELOPING) ## check style, formatting and the import order of the rooms, and make their page
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/python docs/rooms.py

types: $(COMPLETE) ## check types
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(COMPLETE) ## run every benchmark, one after the other
	@set -e; for name in "device all --out docs/results" $(notdir $(basename $(wildcard benchmarks/[a-z]*.py))); do \
	    echo "== benchmarks.$$name"; $(BIN)/python -m benchmarks.$$name $(ARGS); \
	done

docs: $(WRITING) ## build the documentation site into site/, strictly (open site/index.html)
	$(BIN)/mkdocs build --strict $(ARGS)

# One pip fills an environment: what an earlier target of the same run wants is in the later's extras.
# Most that pip installs is never imported, so it compiles nothing.
COMMA := ,
define install # EXTRAS, MARKERS
	@echo "Installing bayesrep$(1) into $(VENV)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile -c constraints-cpu.txt -e '.$(1)'
	@touch $(2)
endef

$(CREATED): pyproject.toml constraints-cpu.txt
	$(if $(SUPPORTED),,$(error $(UNSUPPORTED)))
	@echo "Creating $(VENV) with Python $(VERSION); what it needs is about 1.1 GB, several minutes on a slow line"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(INSTALLED): $(CREATED)
	$(call install,,$@)

$(DEVELOPING): $(CREATED)
	$(call install,[dev],$(INSTALLED) $@)

# torch, timm, Ray and MkDocs are for tests and type checks: nothing that they test is ever skipped.
$(COMPLETE): $(CREATED)
	@echo "With torch, timm, Ray and MkDocs (another 1 GB with a torch for CPUs)"
	$(call install,[dev$(COMMA)docs$(COMMA)timm$(COMMA)ray],$(INSTALLED) $(DEVELOPING) $@)

$(WRITING): $(DEVELOPING)
	$(call install,[dev$(COMMA)docs],$@)
