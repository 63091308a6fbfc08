# `make` or `make help` lists the targets. Each does its own set-up (scripts/setup) and skips what
# is done. Variables: CONFIG, ARGS, PYTHON, WORKERS.

CONFIG ?= config/server.properties
NODE ?= config/node.properties
ARGS ?=
SEEDS ?= 0-100
SEED ?= 1
FRAMES ?= 1000000
WORKERS ?= 4
UNIT := $(addprefix tests/,broker compiled config controller coordinator protocol spark_jobs storage)
COMPILED := $(addprefix tests/,compiled protocol storage broker/network broker/requests broker/handlers/records broker/maintenance interop/clients/test_produce_and_read.py)
PY := .venv/bin/python
# Tests start hundreds of processes, each of which would compile all that it imports.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help run node secure cluster compile unit test test-compiled test-slow surroundings test-all coverage sim hostile check pipeline bench bench-pipeline wheel reference docs lock clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 23

run: ## Start a broker on localhost:9092 (CONFIG=file, ARGS="--override key=value")
	@scripts/setup broker
	@exec $(PY) -m broker --config $(CONFIG) $(ARGS)

node: ## Start two brokers and their supervisor, with ZooKeeper on localhost:2181 (NODE=file)
	@scripts/setup broker
	@exec $(PY) -m broker.node --config $(NODE) $(ARGS)

secure: ## Write the files of a secured broker to build/secure (ARGS="--host kafka.example")
	@scripts/setup broker
	@$(PY) scripts/secure.py build/secure $(ARGS)

cluster: ## Start ZooKeeper and three brokers on localhost:9092 to 9094, until Ctrl-C (ARGS=--secure)
	@scripts/setup cluster
	@exec $(PY) scripts/cluster.py $(ARGS)

compile: ## Compile the hot modules with mypyc and gcc, for brokers started from now on: minutes
	@scripts/setup python
	@$(PY) -m compiled build $(ARGS)

unit: ## Run the unit tests, which start no process: in about two minutes
	@scripts/setup test
	@$(PY) -m pytest -n $(WORKERS) -m unit $(UNIT) $(ARGS)

test: ## Run all but the slow tests (ARGS="tests/storage -k recovery" for some)
	@scripts/setup test
	@$(PY) -m pytest -n $(WORKERS) -m 'not slow' $(ARGS)

test-compiled: ## Run, on the compiled build, the tests of what it is made of, and some with clients
	@scripts/setup test
	@BROKER_COMPILED=yes $(PY) -m pytest -n $(WORKERS) -m 'not slow' $(COMPILED) $(ARGS)

test-slow: ## Run the slow tests that CI runs, with one seed each: kills, live moves, Spark
	@scripts/setup test
	@$(PY) -m pytest -n $(WORKERS) -m 'slow and not manual' --one-seed $(ARGS)

surroundings: ## Run `make test` as on other machines, with a table (ARGS="umask busy")
	@scripts/setup test
	@$(PY) scripts/surroundings.py $(ARGS)

test-all: ## Run every test, with all seeds and what CI leaves out: over an hour
	@scripts/setup test
	@$(PY) -m pytest -n $(WORKERS) $(ARGS)

coverage: ## Run every test and show which lines and branches none of them takes (slower)
	@scripts/setup test
	@$(PY) -m pytest --cov --cov-report=term:skip-covered $(ARGS)

sim: ## Simulate clusters under faults (SEEDS=0-2000, ARGS="--trace")
	@scripts/setup python
	@$(PY) -m tests.simulation --seeds $(SEEDS) $(ARGS)

hostile: ## Mistreat a broker with a million frames (FRAMES=50000 SEED=2, ARGS="--help")
	@scripts/setup test
	@$(PY) -m tests.hostile --frames $(FRAMES) --seed $(SEED) $(ARGS)

check: ## Lint, format, types and layer contracts
	@scripts/setup python
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy .
	@.venv/bin/lint-imports

pipeline: ## Run all Spark jobs on real data, counted (ARGS="--only route report", ARGS=--fresh)
	@scripts/setup java
	@$(PY) -m spark_jobs.pipeline.__main__ $(ARGS)

bench: ## Measure against Apache Kafka on this machine (ARGS="--help" for options)
	@scripts/setup test
	@$(PY) -m tests.benchmarks.end_to_end $(ARGS)

bench-pipeline: ## Measure the Spark jobs on this broker and on Apache Kafka (ARGS="--help")
	@scripts/setup test
	@$(PY) -m tests.benchmarks.pipeline $(ARGS)

wheel: ## Build wheel and sdist into build/dist, install the wheel elsewhere, and run it
	@scripts/setup python
	@scripts/try_wheel

reference: ## Write docs/configuration.md, docs/clients.md and docs/definitions.md from the code
	@scripts/setup python
	@$(PY) -m config.documentation.reference docs/configuration.md
	@$(PY) -m tests.support.documents.clients_page docs/clients.md
	@$(PY) -m spark_jobs.definition_tools.definition_page docs/definitions.md

docs: ## Build the site of docs/ into build/site; a broken link, or a page in no menu, fails
	@scripts/setup docs
	@rm -rf build/site
	@.venv/bin/sphinx-build -q -W --keep-going -c docs/site -d build/docs/doctrees . build/site $(ARGS)
	@echo "build/site/index.html"

lock: ## Pin the versions installed now into requirements/
	@scripts/setup python
	@$(PY) scripts/lock.py

# By name, since earlier versions kept data in build/ too: build/pipeline and build/spark_jobs.
BUILT := build/apache build/compiled build/.compiled-* build/benchmarks build/dist build/docs build/site build/wheel build/lib build/bdist.*
CACHES := .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage htmlcov

clean: ## Remove what was built or fetched, not data and not .venv
	@rm -rf $(BUILT) $(CACHES)
	@[ ! -d build ] || find build -maxdepth 0 -empty -delete
	@find . \( -path ./.venv -o -path ./data -o -path ./build \) -prune -o \
		-name __pycache__ -prune -exec rm -rf {} +
