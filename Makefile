PYTHON ?= python

# Hundreds of processes import the same libraries: the first one compiles them, whatever the machine's default is.
unexport PYTHONDONTWRITEBYTECODE

TEST = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(PYTHON) -m pytest -q -n 3 --dist loadgroup --no-loadscope-reorder

.PHONY: check format lint types architecture test docs figures pages packaging release licences tutorials commands proofs formal quick slow statistical engines audit long

check:  ## everything that CI runs: the tests, and beside them types, docs, packaging, architecture and lint
	$(PYTHON) -m checks.gate

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

test:  ## three at a time, since some wait for servers, and one thread each for linear algebra
	$(TEST)

quick:  ## the tests that a change may break, for three minutes: of what differs from main, or make quick CHANGED="path path"
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(PYTHON) -m checks.quick $(CHANGED)

slow:  ## what the gate leaves out: further cases, larger sizes, other examples of properties, costly tests that passed
	$(TEST) -m "slow or costly or hypothesis" --hypothesis-profile=search

statistical:  ## ten times the tests that draw noise as it is in production and compare it with a law
	for run in 1 2 3 4 5 6 7 8 9 10; do \
		OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(PYTHON) -m pytest -q -m statistical tests/audit tests/privacy tests/vault || exit 1; \
	done

docs:  ## fails on a warning; with --quiet mkdocs would not count any
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict

figures:  ## redraw the figures of the documentation from stored results and check them
	$(PYTHON) -m benchmarks.figures
	$(PYTHON) -m checks.figures

pages:  ## documentation, reports and scorecards in a browser: make pages AXE=path/to/axe.min.js OUT=folder
	$(PYTHON) -m checks.docs_pages $(AXE) $(OUT)/documentation
	$(PYTHON) -m checks.report_pages $(AXE) $(OUT)/reports

packaging:  ## the release check, where packaging changed since it last passed
	$(PYTHON) -m checks.release --if-changed

release:  ## wheel and sdist, in an empty environment with the oldest versions; by hand also --all
	$(PYTHON) -m checks.release

licences:  ## write the table of licences of dependencies afresh
	$(PYTHON) -m checks.supply_chain

tutorials:  ## run the notebooks afresh and write them back
	$(PYTHON) -m checks.tutorials

commands:  ## write the reference of the command line afresh
	$(PYTHON) -m checks.commands

proofs:  ## write the tables of proofs afresh
	$(PYTHON) -m checks.proofs

formal:  ## export constants, build the machine-checked proofs and print their axioms, then build wrong ones; needs coqc
	$(PYTHON) -m checks.formal
	DPCAUSAL_FORMAL=1 $(PYTHON) -m pytest -q tests/checks/test_formal.py

engines:  ## every engine that is found here against Python, on 300 random schemas; PostgreSQL by DPCAUSAL_POSTGRES
	$(PYTHON) -m checks.engines

audit:  ## the quick audit and every mutant; the gate has the smoke effort, `make long` the full one
	$(PYTHON) -m dpcausal audit --quick
	$(PYTHON) -m tests.audit.mutants

long:  ## the statistical, scale and fault suites at full size; needs several hours
	$(PYTHON) -m dpcausal audit --json
	$(PYTHON) -m tests.audit.mutants --json
	$(PYTHON) -m benchmarks.ledger_faults --trials 200 --json
	$(PYTHON) -m benchmarks.population_races --buckets 250 --json
	$(PYTHON) -m benchmarks.coverage --estimator difference_in_means --runs 2000 --json
	$(PYTHON) -m benchmarks.coverage --estimator stratification --runs 1000 --n 1000 5000 --protects record outcome --json
	$(PYTHON) -m benchmarks.coverage --estimator propensity_matching --runs 1000 --n 1000 5000 --protects outcome --json
	$(PYTHON) -m benchmarks.coverage --estimator inverse_weighting --runs 1000 --n 5000 20000 --epsilon 1 4 --protects record --json
	$(PYTHON) -m benchmarks.coverage --estimator overlap_weighting --runs 1000 --n 5000 20000 --epsilon 1 4 --protects record --json
	$(PYTHON) -m benchmarks.curve_coverage --runs 1000 --json
	$(PYTHON) -m benchmarks.exposure --json
	$(PYTHON) -m benchmarks.scale --publish --json
	$(PYTHON) -m benchmarks.planning --runs 500 --json
	$(PYTHON) -m benchmarks.pooling --json
	$(PYTHON) -m benchmarks.federation --publish --json
	$(PYTHON) -m benchmarks.realistic --publish
	$(PYTHON) -m benchmarks.bakeoff --runs 100 --publish
	$(PYTHON) -m benchmarks.papers pp-ipw
	$(PYTHON) -m benchmarks.secure_sums --json
	$(PYTHON) -m benchmarks.secure_queries --runs 1000 --json
	$(PYTHON) -m benchmarks.site_checks --json
	$(PYTHON) -m benchmarks.secure_masks --runs 20000 --publish
	$(PYTHON) -m benchmarks.secure_sites --publish
	$(PYTHON) -m benchmarks.papers multi-site
