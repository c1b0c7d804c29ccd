PYTHON ?= python

.PHONY: check format lint types house test docs long

check: lint types house test docs  ## everything that CI runs

format:  ## rewrite the code in the house style
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

lint:
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .

types:
	$(PYTHON) -m mypy

house:  ## who may import whom, and the other rules of the house
	$(PYTHON) -m checks.house

test:
	$(PYTHON) -m pytest -q -n 2 --dist loadgroup

docs:
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict --quiet

long:  ## the statistical, scale and fault suites at full size; needs about an hour
	$(PYTHON) -m benchmarks.ledger_faults --trials 200 --json
	$(PYTHON) -m benchmarks.coverage --estimator difference_in_means --runs 2000 --json
