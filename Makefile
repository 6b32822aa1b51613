# The targets create the Python environment that they require. Python 3.11 to 3.13 and make are
# required; Java 17 or newer is required for Spark.
SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The tested versions; empty for the newest versions that pyproject.toml allows.
PINNED ?= --constraint constraints.txt
# Additional folders of labeled logs, if present.
SHARED ?= ../shared
EVAL_TREES ?= tests/logs $(wildcard $(SHARED)/logs) $(wildcard $(SHARED)/cases) \
  $(wildcard $(SHARED)/failing)
# The cases of benchmarks/bench.py or all, the size of a corpus in MiB, the factor of the larger size
# in marginal cases, and the number of pairs.
BENCH_CASES ?= sparse,sparse-whole,dense,small
BENCH_MB ?= 256
BENCH_SCALE ?= 5
BENCH_PAIRS ?= 3
# The number of runs of bench-incremental, and of runs between two runs of maintain (0: never).
HOURS ?= 30
MAINTAIN_EVERY ?= 0
FUZZ_RUNS ?= 10000
FUZZ_BATCHES ?= 20
FUZZ_SEED ?= $(shell date +%s)
# Storage of the tables of `make crash`: local, s3 or catalog.
CRASH_BACKEND ?= local
# A class data sharing (CDS) archive, with which the JVMs of the tests start faster.
CLASSES := $(VENV)/classes.jsa
WITH_CLASSES := FLINK_TRIAGE_JAVA_OPTIONS="-Xlog:disable -XX:SharedArchiveFile=$(abspath $(CLASSES))"

.PHONY: help demo test crash unit integration check lint timing calibrate eval ablate left-out closest fuzz bench bench-incremental profile catalogue wheel release matrix newest clean java

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	  || { echo "Python 3.11 to 3.13 is needed, found $$($(PYTHON) -V 2>&1)"; exit 4; }
	$(PYTHON) -m venv $(VENV) || { echo "python3-venv is missing: apt-get install python3-venv"; exit 4; }
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/pip install --quiet --disable-pip-version-check $(PINNED) -e '.[spark,compression,dev]'
	@touch $(STAMP)

java:
	@command -v java >/dev/null || [ -x "$$JAVA_HOME/bin/java" ] \
	  || { echo "Java 17 is missing: apt-get install openjdk-17-jre-headless"; exit 4; }

demo: java $(STAMP) ## diagnose the real logs in the package, write report.html
	$(BIN)/flink-triage demo --report report.html

# Files with few tests take longest. Without --no-loadscope-reorder, pytest-xdist schedules them last,
# and one worker is idle.
test: java unit integration $(CLASSES) ## all tests except those of timing, with Spark and Delta
	$(WITH_CLASSES) $(BIN)/python -m pytest tests/crash tests/e2e tests/spark -n 2 --dist loadfile \
	  --no-loadscope-reorder

# The JVM writes the archive when it exits, shortly after the command; `cat` waits for that.
$(CLASSES): $(STAMP)
	@rm -rf $@ $@.tables
	FLINK_TRIAGE_JAVA_OPTIONS="-Xlog:disable -XX:ArchiveClassesAtExit=$(abspath $@)" \
	  $(BIN)/flink-triage run --input tests/logs/operator/user-code-exception/npe-1.16.0/logs \
	  --warehouse $@.tables --fail-on none --quiet | cat >/dev/null
	@rm -rf $@.tables

crash: java $(CLASSES) ## kill runs on CRASH_BACKEND (local, s3, catalog); local also rotates logs, runs six processes at once, and fills disks (two hours)
	$(WITH_CLASSES) CRASH=all CRASH_BACKEND=$(CRASH_BACKEND) FILES_OVER_TIME_EXAMPLES=500 \
	  $(BIN)/python -m pytest -vv -s tests/crash \
	  $(if $(filter local,$(CRASH_BACKEND)),tests/spark/test_files_over_time.py tests/spark/test_faults.py)

unit: $(STAMP) ## the tests of the modules and the signatures
	$(BIN)/python -m pytest tests/unit tests/signatures -n 2 --dist worksteal

integration: $(STAMP) ## the tests of processes and whole logs, without a JVM
	$(BIN)/python -m pytest tests/integration -n 2 --dist worksteal

check: lint unit ## format, lint, types, the signature pack, unit tests

lint: $(STAMP) ## format, lint, types, imports, dead code, dependencies, the signature pack
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/vulture
	$(BIN)/deptry pipeline
	$(BIN)/flink-triage signatures lint
	$(BIN)/flink-triage signatures test

timing: $(STAMP) ## test that the time is linear in the length of hostile input, on an idle machine
	$(BIN)/python -m pytest tests/unit tests/integration -m timing

calibrate: $(STAMP) ## fit the confidence to labeled answers
	$(BIN)/python -m benchmarks.calibrate $(filter-out %/shared/logs %/shared/failing,$(EVAL_TREES))

eval: $(STAMP) ## measure the accuracy on all labeled logs, and print each wrong answer
	$(BIN)/python -m benchmarks.evaluate $(EVAL_TREES) $(EVAL_FLAGS)

ablate: $(STAMP) ## measure the effect of each scoring and context rule on labeled logs
	$(BIN)/python -m benchmarks.ablate $(filter-out %/failing,$(EVAL_TREES))

left-out: $(STAMP) ## measure the share of examples that match without their own alternatives (LEFT_OUT)
	$(BIN)/python -m benchmarks.left_out $(LEFT_OUT)

closest: $(STAMP) ## measure how often the closest known failures include the correct one
	$(BIN)/python -m benchmarks.closest

fuzz: java $(STAMP) ## test with damaged, hostile, and heavy logs, archives, folders, and user files (FUZZ_RUNS, FUZZ_BATCHES, FUZZ_SEED)
	$(BIN)/python -m tests.fuzz.core $(FUZZ_RUNS) $(FUZZ_SEED)
	$(BIN)/python -m tests.fuzz.streams $(FUZZ_RUNS) $(FUZZ_SEED)
	$(BIN)/python -m tests.fuzz.archives $(FUZZ_RUNS) $(FUZZ_SEED)
	$(BIN)/python -m tests.fuzz.trees $(FUZZ_RUNS) $(FUZZ_SEED)
	$(BIN)/python -m tests.fuzz.user_files $(FUZZ_RUNS) $(FUZZ_SEED)
	$(BIN)/python -m tests.fuzz.growth
	$(BIN)/python -m tests.fuzz.heavy
	FUZZ_BATCHES=$(FUZZ_BATCHES) FUZZ_SEED=$(FUZZ_SEED) \
	  $(BIN)/python -m pytest tests/spark/test_fuzz.py

$(STAMP)-bench: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

bench: java $(STAMP)-bench ## compare the time of runs with that of other tools (BENCH_CASES, BENCH_MB, BENCH_PAIRS)
	$(BIN)/python -m benchmarks.bench --cases $(BENCH_CASES) --megabytes $(BENCH_MB) \
	  --scale $(BENCH_SCALE) --pairs $(BENCH_PAIRS)

bench-incremental: java $(STAMP) ## measure hourly runs while the history grows (HOURS, MAINTAIN_EVERY)
	$(BIN)/python -m benchmarks.incremental --runs $(HOURS) \
	  --maintain-every $(MAINTAIN_EVERY)

profile: java $(STAMP)-bench ## profile a run, in one process and on Spark (BENCH_MB)
	$(BIN)/python -m benchmarks.profile --megabytes $(BENCH_MB)

catalogue: $(STAMP) ## generate docs/signatures.md and docs/signature-quality.md
	$(BIN)/python -m flink_triage.signatures.catalogue --quality tests/logs/healthy \
	  > docs/signature-quality.md.new
	mv docs/signature-quality.md.new docs/signature-quality.md
	$(BIN)/python -m flink_triage.signatures.catalogue > docs/signatures.md.new
	mv docs/signatures.md.new docs/signatures.md

wheel: $(STAMP) ## build the wheel and the source distribution
	$(BIN)/python -m build

release: $(STAMP) ## build the wheel and the source distribution reproducibly, with checksums and a bill of materials
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --no-isolation
	$(PYTHON) -m venv build/released
	build/released/bin/pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt "$$(ls dist/*.whl)[spark,connect,compression]"
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/cyclonedx-py environment \
	  --pyproject pyproject.toml --output-reproducible --output-file dist/sbom.cdx.json \
	  build/released/bin/python
	cd dist && sha256sum * > SHA256SUMS

# All installed versions by default; to select versions: make matrix PYTHONS='python3.11 python3.13'.
PYTHONS ?= $(foreach v,3.11 3.12 3.13,$(shell command -v python$(v)))
matrix: ## the tests without a JVM on each Python in PYTHONS
	@for python in $(PYTHONS); do \
	  folder=build/matrix/$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  $$python -m venv $$folder && $$folder/bin/pip install --quiet --disable-pip-version-check \
	    '.[compression,completion]' detect-secrets hypothesis jsonschema pyarrow pytest pytest-xdist rstr types-PyYAML || exit 1; \
	  echo "== $$python"; $$folder/bin/python -m pytest tests/unit tests/integration tests/signatures -n 2 || exit 1; \
	done

# The environment is always created anew, because an existing one may contain older releases.
newest: ## run the target test with the newest versions that pyproject.toml allows
	rm -rf build/newest
	$(MAKE) test VENV=build/newest PINNED=

clean: ## remove the files that the targets created
	rm -rf $(VENV) build dist report.html .mypy_cache .ruff_cache .pytest_cache
