# Every target makes .venv and installs into it what the target needs; nothing else on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(max(2, len(getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count()))(0))))')

.PHONY: help notebooks demo test test-all costs check types oracle legibility mutations batches rules-oracle fuzz fuzz-memory fuzz-lowered fuzz-vmap fuzz-vjp fuzz-calls fuzz-layers corpus corpus-jit cuda latency memory bench bench-quick fusion scaling docs golden rules samples release clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo        print the gradient of a network as Python, then train it on handwritten digits'
	@echo 'make test        tests of everything, in six minutes: part of them (no JAX); SAMPLE=1 takes another part'
	@echo 'make test-all    every test, compiled: an hour; make costs: the same, and what each test takes'
	@echo 'make cuda        kernels: by twins, in the simulator, assembled for sm_90; on the GPU where there is one'
	@echo 'make check       lint, type hints and some of the fast tests, under a minute'
	@echo 'make types       type hints, by mypy; part of make check'
	@echo 'make oracle      compare with JAX'
	@echo 'make legibility  size of the emitted source against gradients written by hand'
	@echo 'make fuzz        random programs against numerical derivatives, and what is refused by cause: N=5000'
	@echo 'make fuzz-memory  short ones about shared memory, nested sequences and dtypes, 5% of them compiled: N=5000'
	@echo 'make fuzz-lowered  random programs, what is compiled of them run as plain Python: N=5000'
	@echo 'make fuzz-vmap   batches of random programs against loops: N=5000'
	@echo 'make fuzz-calls  single functions with random words, shapes and dtypes, 5% of them compiled: N=5000'
	@echo 'make fuzz-layers  random programs over lists of layers, 5% of them compiled: N=5000'
	@echo 'make fuzz-vjp    gs.vjp and gs.linearize of random programs, call after call: N=5000'
	@echo 'make corpus      small functions as people write them; corpus-jit: the same, compiled'
	@echo 'make latency     import, transformation and call times'
	@echo 'make memory      peak memory of a long loop, plain and checkpointed, against JAX'
	@echo 'make bench       times of gradients against JAX and autograd: a table, CSV files and plots in build/'
	@echo 'make bench-quick the same for ten problems, in two minutes'
	@echo 'make fusion      what joining loops is worth: arrays read and written, and times, with and without'
	@echo 'make scaling     time against size, and time of transformation against length: build/scaling.svg'
	@echo 'make mutations   rules altered on purpose, formulas and claims of memory, dtypes and effects: how many the tests notice'
	@echo 'make batches     whole-batch forms of every rule against loops; and vmap over the corpus'
	@echo 'make rules-oracle  every sample of every rule against JAX'
	@echo 'make golden      rewrite the golden files and show what changed'
	@echo 'make notebooks   run all notebooks and store their outputs, then again with their exercises solved; times'
	@echo 'make docs        the documentation as a site: build/site/index.html'
	@echo 'make samples     every sample of every rule compiled by Numba; make test compiles one of each, and reads the rest'
	@echo 'make release     wheel, source archive and list of components of a tagged commit: dist/'
	@echo 'make rules       the table of functions that have rules'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Gradscribe needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1)."; \
	  echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo 'making $(VENV)'
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { \
	  $(PYTHON) -m venv --without-pip $(VENV) && $(PYTHON) -m pip -q --python $(BIN)/python install pip; } || { \
	  echo "$(PYTHON) can make no virtual environment; on Debian and Ubuntu: apt install python3-venv"; \
	  rm -rf $(VENV); exit 1; }

# A stamp is renewed when setup.cfg changes.
$(VENV)/.core: setup.cfg pyproject.toml | $(BIN)/python
	@echo 'installing gradscribe'
	@$(PIP) install -e .
	@touch $@

$(VENV)/.test: setup.cfg pyproject.toml | $(BIN)/python
	@echo 'installing gradscribe and what its tests need'
	@$(PIP) install -e '.[test]'
	@touch $@ $(VENV)/.core

$(VENV)/.bench: setup.cfg pyproject.toml | $(BIN)/python
	@echo 'installing JAX and autograd, to compare with'
	@$(PIP) install -e '.[test,bench]'
	@touch $@ $(VENV)/.test $(VENV)/.core

$(VENV)/.cuda: setup.cfg pyproject.toml | $(BIN)/python
	@echo 'installing numba-cuda beside a second Python environment'
	@$(PYTHON) -m venv $(VENV)-cuda
	@$(VENV)-cuda/bin/python -m pip install -q -e '.[test,cuda]'
	@touch $@

$(VENV)/.docs: setup.cfg pyproject.toml | $(BIN)/python
	@echo 'installing Sphinx'
	@$(PIP) install -e '.[test,docs]'
	@touch $@ $(VENV)/.test $(VENV)/.core

$(VENV)/.release: setup.cfg pyproject.toml | $(BIN)/python
	@$(PIP) install -e '.[release]'
	@touch $@ $(VENV)/.core

release: $(VENV)/.release
	@$(BIN)/python release/build.py

demo: $(VENV)/.core
	@$(BIN)/python examples/digits.py

SAMPLE ?= 0
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist=worksteal
test: $(VENV)/.test
	$(PYTEST) --sample $(SAMPLE) --ignore=tests/oracle

test-all: $(VENV)/.test
	$(PYTEST) --ignore=tests/oracle

costs: $(VENV)/.test
	@rm -rf build/costs && mkdir -p build/costs
	$(PYTEST) --costs build/costs/compiled --ignore=tests/oracle
	$(PYTEST) --costs build/costs/plain --plain --ignore=tests/oracle
	$(BIN)/python tests/sampling.py build/costs/compiled build/costs/plain

check: types
	$(BIN)/ruff check .
	$(PYTEST) --sample $$(git rev-list --count HEAD 2>/dev/null || echo 0) --part 0.05 -m 'not slow' --ignore=tests/oracle

# The packages lie side by side at the top level; as one package, which a type checker wants, they are links.
types: $(VENV)/.test
	@rm -rf build/types && mkdir -p build/types/gradscribe
	@ln -s $(CURDIR)/gradscribe/* $(CURDIR)/ast_transform $(CURDIR)/codegen $(CURDIR)/runtime build/types/gradscribe/
	@cd build/types && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/setup.cfg --cache-dir $(CURDIR)/.mypy_cache -p gradscribe

oracle: $(VENV)/.bench
	$(PYTEST) --sample $(SAMPLE) tests/oracle

legibility: $(VENV)/.test
	@$(BIN)/python benchmarks/legibility.py && $(BIN)/python benchmarks/reading.py

mutations: $(VENV)/.test
	@$(BIN)/python benchmarks/mutations.py

batches: $(VENV)/.test
	@$(BIN)/python benchmarks/batches.py && $(BIN)/python benchmarks/corpus_vmap.py

rules-oracle: $(VENV)/.bench
	@$(BIN)/python benchmarks/oracle.py

N ?= 5000
fuzz: $(VENV)/.test
	@$(BIN)/python benchmarks/fuzz.py --mixed --count $(N)

fuzz-memory: $(VENV)/.test
	@$(BIN)/python benchmarks/fuzz.py --memory --jit 5 --count $(N)

fuzz-lowered: $(VENV)/.test
	@$(BIN)/python benchmarks/fuzz_lowered.py --count $(N)

fuzz-vmap: $(VENV)/.test
	@$(BIN)/python benchmarks/fuzz.py --mixed --vmap --count $(N)

fuzz-calls: $(VENV)/.test
	@$(BIN)/python benchmarks/fuzz_calls.py --jit 5 --count $(N)

fuzz-layers: $(VENV)/.test
	@$(BIN)/python benchmarks/fuzz_layers.py --jit 5 --count $(N)

fuzz-vjp: $(VENV)/.test
	@$(BIN)/python benchmarks/fuzz.py --mixed --vjp --count $(N)

cuda: $(VENV)/.cuda
	$(VENV)-cuda/bin/python -m pytest -n $(WORKERS) --dist=worksteal tests/device
	$(VENV)-cuda/bin/python benchmarks/simulated.py
	$(VENV)-cuda/bin/python benchmarks/on_device.py

corpus: $(VENV)/.test
	@$(BIN)/python tests/corpus/check.py benchmarks/corpus_tool.py || true

corpus-jit: $(VENV)/.test
	@$(BIN)/python tests/corpus/check.py benchmarks/corpus_tool_jit.py || true

latency: $(VENV)/.test
	@$(BIN)/python benchmarks/latency.py

memory: $(VENV)/.bench
	@$(BIN)/python benchmarks/memory.py

bench: $(VENV)/.bench
	@mkdir -p build
	@$(BIN)/python benchmarks/suite.py --others --out build/problems
	@$(BIN)/python benchmarks/suite.py --which workloads --out build/workloads
	@$(BIN)/python benchmarks/vmap.py

bench-quick: $(VENV)/.bench
	@$(BIN)/python benchmarks/suite.py --quick

notebooks: $(VENV)/.test
	$(BIN)/python notebooks/execute.py
	$(BIN)/python -m pytest tests/test_notebooks.py --durations=0

fusion: $(VENV)/.test
	@$(BIN)/python benchmarks/fusion.py

scaling: $(VENV)/.bench
	@mkdir -p build
	@$(BIN)/python benchmarks/scaling.py --out build/scaling

docs: $(VENV)/.docs
	@$(BIN)/python -m sphinx -b html -W --keep-going -q docs build/site
	@GRADSCRIBE_SITE=build/site $(BIN)/python -m pytest tests/test_site.py
	@echo build/site/index.html

golden: $(VENV)/.test
	@$(BIN)/python -m pytest -m golden --rewrite-golden --continue-on-collection-errors || true
	@git --no-pager diff -- 'tests/*/emitted' 'tests/*/golden' ARCHITECTURE.md && git status --short -- 'tests/*/emitted' 'tests/*/golden'

samples: $(VENV)/.test
	GRADSCRIBE_COMPILE_SAMPLES=1 $(PYTEST) tests/jit/test_rules.py

rules: $(VENV)/.core
	@$(BIN)/python benchmarks/covered.py
	@$(BIN)/python -c "from gradscribe import jax_names; jax_names.write()"

clean:
	rm -rf $(VENV) $(VENV)-cuda build generated *.egg-info .pytest_cache .ruff_cache
