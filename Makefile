PYTHON ?= python

.PHONY: audit check format lint types architecture test docs release tutorials commands long

check: lint types architecture test docs release  ## everything that CI runs

format:  ## rewrite the code in the project's style
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

lint:
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .

types:
	$(PYTHON) -m mypy

architecture:  ## who may import whom, and the other rules of the architecture
	$(PYTHON) -m checks.architecture

test:
	$(PYTHON) -m pytest -q -n 2 --dist loadgroup

docs:  ## fails on a warning; with --quiet mkdocs would not count any
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict

release:  ## wheel and sdist, in an empty environment with the oldest versions; by hand also --all
	$(PYTHON) -m checks.release

tutorials:  ## run the notebooks afresh and write them back
	$(PYTHON) -m checks.tutorials

commands:  ## write the reference of the command line afresh
	$(PYTHON) -m checks.commands

audit:  ## the quick audit, in some minutes; the gate has the smoke effort, `make long` the full one
	$(PYTHON) -m dpcausal audit --quick

long:  ## the statistical, scale and fault suites at full size; needs several hours
	$(PYTHON) -m dpcausal audit --json
	$(PYTHON) -m tests.audit.mutants --json
	$(PYTHON) -m benchmarks.ledger_faults --trials 200 --json
	$(PYTHON) -m benchmarks.coverage --estimator difference_in_means --runs 2000 --json
	$(PYTHON) -m benchmarks.coverage --estimator stratification --runs 1000 --n 1000 5000 --protects record outcome --json
	$(PYTHON) -m benchmarks.coverage --estimator propensity_matching --runs 1000 --n 1000 5000 --protects outcome --json
	$(PYTHON) -m benchmarks.coverage --estimator inverse_weighting --runs 1000 --n 5000 20000 --epsilon 1 4 --protects record --json
	$(PYTHON) -m benchmarks.coverage --estimator overlap_weighting --runs 1000 --n 5000 20000 --epsilon 1 4 --protects record --json
	$(PYTHON) -m benchmarks.curve_coverage --runs 1000 --json
	$(PYTHON) -m benchmarks.exposure --json
	$(PYTHON) -m benchmarks.matching --json
	$(PYTHON) -m benchmarks.scale --publish --json
	$(PYTHON) -m benchmarks.planning --runs 500 --json
	$(PYTHON) -m benchmarks.pooling --json
	$(PYTHON) -m benchmarks.federation --publish --json
	$(PYTHON) -m benchmarks.studies exact_matching --json
	$(PYTHON) -m benchmarks.studies weighting --json
