# Two commands do everything on a machine that has Python 3.11 or later, make and pip:  make demo  and  make test
PYTHON ?= python3
BIN := .venv/bin

.PHONY: env demo reproduce calibrate calibration-page documents docs pictures test checks lint types contract tests test-thorough test-faults \
  test-fast fuzz foreign test-gpu test-gpu-simulated bench bench-scale bench-gpu lock release clean

env: .venv/installed

.venv/installed: requirements/lock.txt pyproject.toml
	@echo "Installing the packages into .venv: a few minutes, once."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/lock.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

demo: env
	$(BIN)/unbandit demo

# Every picture of the paper with the verdict on what it says, on one page: reproduction/index.html
reproduce: env
	$(BIN)/unbandit reproduce

# How far the answers can be trusted, beside what is to be reached; may be stopped, and goes on where it was.
calibrate: env
	$(BIN)/unbandit calibrate

# What was measured so far, now and before (docs/calibration.jsonl), as docs/calibration.md and as the table that reports quote.
calibration-page: env
	mkdir -p calibration
	cp docs/calibration.jsonl calibration/measured.jsonl
	$(BIN)/unbandit calibrate page
	cp calibration/measured.jsonl docs/calibration.jsonl
	cp calibration/calibration.md calibration/calibration.png docs/
	cp calibration/coverage.csv src/unbandit/estimators/

# The pictures and the list of claims that the documents show, at full size: many times the rounds of `reproduce`.
documents: env calibrate calibration-page
	$(BIN)/unbandit reproduce --full -o reproduction-full
	cp reproduction-full/ucb.png reproduction-full/battery-landscape.png docs/
	cp reproduction-full/claims.md docs/claims.md
	$(BIN)/unbandit reproduce --beyond -o reproduction-beyond
	cp reproduction-beyond/linear-learners.png docs/

# The documentation site, with nothing to be warned of: docs/_build/html/index.html
docs: env
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs docs/_build/html

# The pictures of the README, one of which moves; they need an installed browser.
pictures: env
	$(BIN)/python tools/report_picture.py
	$(BIN)/python tools/demo_picture.py

# The tests, and beside them everything else, one after the other.
test: env
	@$(MAKE) --no-print-directory --jobs=2 tests checks

# The GPU's tests come last: by then the other tests have compiled the kernels that both need.
checks: env
	@$(MAKE) --no-print-directory lint && $(MAKE) --no-print-directory types && \
	  $(MAKE) --no-print-directory contract && $(MAKE) --no-print-directory test-gpu-simulated

lint: env
	$(BIN)/ruff check src tests bench tools docs/*.py docs/_extensions
	$(BIN)/ruff format --check src tests bench tools docs/*.py docs/_extensions

types: env
	$(BIN)/mypy

contract: env
	$(BIN)/lint-imports

# One worker more than there are cores, as many tests wait for servers, browsers and clusters; and one cache of compiled
# kernels for all of them. tests/conftest.py says who runs what, and what comes first. Bytecode is kept: without it every
# process that a test starts would compile our sources again.
PYTEST := $(BIN)/python -m pytest -p no:cacheprovider
CORES := $(shell $(PYTHON) -c "import os; print(min(7, os.cpu_count() or 1))")
WORKERS := -n $$(($(CORES) + 1)) --dist loadscope --no-loadscope-reorder

tests test-thorough test-fast test-gpu-simulated: export PYTHONDONTWRITEBYTECODE =

tests: env
	$(PYTEST) $(WORKERS) --durations=40 --durations-min=3 -m "not (faults or thorough)" tests src --ignore=tests/gpu

# The same for every rule: `make test` takes some of each kind, as each rule compiles kernels of its own.
test-thorough: env
	$(PYTEST) $(WORKERS) --durations=40 --durations-min=3 -m thorough tests --ignore=tests/gpu
	NUMBA_ENABLE_CUDASIM=1 $(PYTEST) -m thorough tests/gpu

# Workers and heads of clusters that die; slow, and apart from `make test`.
test-faults: env
	$(PYTEST) -m faults tests/cluster

# For the inner loop: without what simulates much, starts clusters, browsers or servers, or builds the documentation.
test-fast: env
	$(PYTEST) $(WORKERS) -m "not (statistical or faults or thorough or cluster or browser or docs or processes)" tests src --ignore=tests/gpu

# Damaged files in large numbers, of text twice as many; `make test` reads a few of them. FUZZ_SEED=2 makes others.
fuzz: env
	FUZZ_FILES=30000 $(PYTEST) -s tests/fuzz

# Policies of other libraries (the extra "foreign"), on many logs; prints how often intervals held.
foreign: env
	$(BIN)/python -m pip install --quiet --disable-pip-version-check ".[foreign]"
	FOREIGN_LOGS=400 $(PYTEST) -s tests/foreign

# The GPU's tests on numba's simulation of one, which needs no GPU and is slow; printed when they have ended.
test-gpu-simulated: env
	@NUMBA_ENABLE_CUDASIM=1 $(PYTEST) -m "not thorough" tests/gpu > .gpu-tests.log 2>&1; ended=$$?; \
	cat .gpu-tests.log; rm -f .gpu-tests.log; exit $$ended

# The same tests on a real GPU, with much more of each.
test-gpu: env
	$(BIN)/python -m pytest -p no:cacheprovider -rs tests/gpu

# Large work: clusters, logs larger than memory, a million logs, 10^8 rounds, how time grows (docs/growth.png).
bench-scale: env
	$(BIN)/python -m bench.scale

# What a GPU does; needs one.
bench-gpu: env
	$(BIN)/python -m bench.gpu

# Against a plain loop and other packages, as ratios; takes minutes, and an environment of its own.
bench: .venv-bench/installed
	.venv-bench/bin/python -m bench

.venv-bench/installed: requirements/lock.txt pyproject.toml
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	touch $@

# Pin every dependency anew, with hashes for every platform and no address of any index.
lock: env
	$(BIN)/pip-compile --quiet --extra dev --all-build-deps --generate-hashes --strip-extras --allow-unsafe \
	  --no-emit-options --no-header --no-annotate \
	  --output-file requirements/lock.txt pyproject.toml

# Check that all files name one version, tag it and push the tag: .github/workflows/release.yml builds, tests and publishes it.
release:
	$(PYTHON) tools/release.py

clean:
	rm -rf .venv .venv-bench demo calibration reproduction reproduction-full docs/_build build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
