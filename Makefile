# `make demo` and `make test` do all the set-up; needed are Python >= 3.11 with venv, git, make.
PYTHON ?= python3
UV := $(or $(shell command -v uv 2>/dev/null),.uv/bin/uv)
RUN = $(UV) run --no-sync
# The programs in tests/support, and commands that need Java.
SUPPORT = PYTHONPATH=tests $(RUN) python -m support
JAVA = $(SUPPORT).java -- python
# Images of containers often forbid it: each process of Spark and of the tests would compile anew.
export PYTHONDONTWRITEBYTECODE =
# Else the kernel's build fetches a whole Rust toolchain, without a word, where there is none.
export MATURIN_NO_INSTALL_RUST = 1

RUST = cargo --version > /dev/null 2>&1 && rustc --version > /dev/null 2>&1
# On a terminal, uv shows what it fetches.
SYNC = $(UV) sync --all-packages $(shell [ -t 2 ] || echo --quiet)
FIRST = cdcfmt: the first set-up fetches about 700 MB, two thirds of it Spark, into the cache of uv, \
	and writes .venv here, 1.3 GB; nothing else
NO_RUST = cdcfmt: there is no Rust here, so the compiled kernel is left out and decoding takes ten \
	times as long. Install Rust 1.85 or newer, and run make setup again.
NO_KERNEL = cdcfmt: the compiled kernel was not built (the reason is above), so decoding takes ten \
	times as long. Mend it, and run make setup again.
NO_DENY = cdcfmt: the crates of the kernel were not checked: cargo install --locked cargo-deny
NO_ADVISORIES = cdcfmt: no advisories were looked up: their database cannot be reached

.PHONY: help demo test check setup lint kernel crates site archive unit-spark unit-sync
.PHONY: unit-brokers unit-connect
.PHONY: unit-quick unit-slow oldest newest lowest smoke every before wheels wheelhouse release-check workflows thorough soak tables docs
.PHONY: clean
.PHONY: bench bench-kafka bench-write

demo: setup  ## the main job on embedded data
	$(RUN) python -m pyspark_cdcfmt.demo

help:  ## this list
	@awk -F ':.*## ' '/^[a-z -]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' Makefile

# On two cores: the tests of sync beside all others, one lane after the other.  A third one would
# share the same cores, and brokers and processes that starve miss their time limits.  The
# longest first.  Make starts what waits for nothing, so the archive, which takes minutes, is no
# prerequisite.
test: setup  ## linters, types, docs, and all tests
	$(MAKE) --jobs 2 lint archive newest oldest
	$(MAKE) --jobs 2 unit-sync unit-spark unit-brokers unit-quick unit-slow smoke lowest

setup: $(if $(findstring .uv/,$(UV)),.uv/bin/uv)  ## the environment in .venv, with the kernel where Rust is
	@[ -d .venv ] || echo "$(FIRST)"
	@if $(RUST); then PYTHONPATH=tests $(PYTHON) -m support.crates; $(SYNC) || \
	{ $(SYNC) --no-install-package cdcfmt-kernel && echo "$(NO_KERNEL)"; }; else \
	$(SYNC) --no-install-package cdcfmt-kernel && \
	{ [ $(MAKELEVEL) -gt 0 ] || echo "$(NO_RUST)"; }; fi

.uv/bin/uv:
	$(PYTHON) -m venv .uv
	.uv/bin/pip install --quiet --disable-pip-version-check uv

lint: setup crates  ## ruff, mypy, and which room imports which
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(SUPPORT).imports

# The licences, versions and sources of the kernel's crates; advisories where they can be fetched.
crates:
	@cd spark_bridge/kernel && if ! cargo deny --version > /dev/null 2>&1; then echo "$(NO_DENY)"; \
	else cargo deny check bans licenses sources && if cargo deny fetch db > /dev/null 2>&1; \
	then cargo deny check advisories; else echo "$(NO_ADVISORIES)"; fi; fi

# The linters and tests of the kernel, which need Rust.
kernel:  ## the kernel's own linters and tests; needs Rust
	PYTHONPATH=tests $(PYTHON) -m support.crates
	cd spark_bridge/kernel && cargo fmt --check && cargo clippy --all-targets -- -D warnings && cargo test

# The site of docs/, in docs/_build; a link that leads nowhere is an error.
site: setup  ## the site of docs/, in docs/_build
	$(RUN) python -m sphinx -q -W --keep-going docs docs/_build

# What the JVMs of tests start from, in two thirds of the time, and Spark's Python processes.
archive: setup
	@$(SUPPORT).spark_bytecode
	@$(JAVA) -m support.spark_archive

PYTEST = $(JAVA) -m pytest --durations 20 $(PROFILE)
# `make thorough` sets both: the tests marked thorough, too, and many examples of each property.
FEWER = and not thorough
PROFILE =

unit-spark:  ## the tests that need Spark, but for sync
	$(PYTEST) -m "spark $(FEWER)" --ignore tests/sync --ignore tests/traps

unit-sync:  ## the tests of sync, and of what it prevents
	$(PYTEST) -m "spark $(FEWER)" tests/sync tests/traps

# The server and its clients are processes of their own; Spark waits 10 s for one of them.
unit-connect:  ## sync over a server of Spark Connect, and in a session that refuses what serverless ones do
	CDCFMT_TESTS_SPARK=connect $(PYTEST) tests/sync/test_golden.py
	CDCFMT_TESTS_SPARK=serverless $(PYTEST) tests/sync/test_golden.py

unit-brokers:  ## the tests that need Kafka, RabbitMQ or RocketMQ, and no Spark session
	$(PYTEST) -m "broker $(FEWER)"

unit-quick:  ## the quick tests: no Spark, no broker
	$(PYTEST) -m quick

unit-slow:  ## the other tests, for their sizes or processes
	$(PYTEST) -m "not quick and not spark and not broker $(FEWER)"

# What a change most likely breaks, in two minutes: property tests with few examples, one Python.
# Each file in one process: the last test of some holds that all listed losses were met.
check: lint  ## linters, types, and the quick tests: no Spark, no broker
	$(RUN) python -m pytest --numprocesses 2 --dist loadfile -q -m quick \
		--hypothesis-profile few --durations 20

# Each in an environment of its own; tests/support/pythons.py says which tests.
oldest newest lowest smoke every before:  ## tests on the oldest, newest or every Python, oldest libraries, other Sparks
	$(SUPPORT).pythons $@

# All wheels, in dist/, and a look at them as users have them; the kernel's need Rust.
TARGETS ?= x86_64 aarch64
wheels: setup  ## all wheels, in dist/
	$(SUPPORT).wheels $(TARGETS)
	$(RUN) python -m pytest tests/support/check_wheels.py

# For machines without Rust or an index: pip install --no-index --find-links dist ...
wheelhouse: setup  ## all wheels and those of all dependencies, for this platform, in dist/
	$(SUPPORT).wheels --wheelhouse $(shell uname -m)

# RELEASE=v1.2.3 and REPOSITORY=https://… compare these with version, changelog and URLs.
export RELEASE REPOSITORY
release-check: setup  ## source archives and wheels of all packages, installed and tried as by users
	$(SUPPORT).wheels --release $(TARGETS)
	$(RUN) python -m pytest tests/support/check_release.py

# The workflows of the forge only call targets of this file.
ACTIONLINT = github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
workflows:  ## the linter of .github/workflows; needs Go
	@if command -v go > /dev/null; then go run $(ACTIONLINT); \
	else echo "cdcfmt: .github/workflows was not checked: install Go"; fi

# What `make test` has samples of, each test once; the longest first.
thorough: setup  ## what `make test` has samples of: examples, combinations, Pythons
	$(MAKE) --jobs 2 lint archive
	CDCFMT_EXAMPLES=250 $(MAKE) --jobs 2 FEWER= PROFILE="--hypothesis-profile many --timeout 5400" \
		unit-sync before unit-spark unit-slow unit-brokers unit-quick every smoke lowest
	$(MAKE) unit-connect

# The campaign of faults, MINUTES long; WRITE=1 puts its table into docs/reliability.md.
MINUTES ?= 10
soak: setup  ## the campaign of faults, MINUTES long
	PYTHONPATH=$(TESTS):tests/soak:tests/benchmarks $(RUN) python -m support.java -- python tests/soak/soak.py --minutes $(MINUTES) $(if $(WRITE),--write)

TESTS = tests:spark_bridge/tests:plugins/formats/cloudcanal-json/tests

# Writes docs/bench.md and docs/bench.svg; BENCH="--megabytes 50 --rounds 2" makes it short.
bench: setup  ## the benchmarks, into docs/bench.md
	$(RUN) python tests/benchmarks/bench.py $(BENCH)
	$(RUN) python tests/benchmarks/encode.py
	$(RUN) python tests/benchmarks/avro.py
	$(RUN) python tests/benchmarks/write.py
	$(RUN) python tests/benchmarks/rewrite.py

# Needs Maven Central for Spark's own Kafka source.
bench-kafka: setup
	$(JAVA) tests/benchmarks/kafka.py

# Needs Maven Central for a broker and Spark's own Kafka sink.
bench-write: setup
	$(JAVA) tests/benchmarks/spark_write.py

# Writes the tables and pictures in docs/ that come from the code.
tables: setup  ## the tables in docs/ that come from the code
	PYTHONPATH=$(TESTS) $(RUN) python -m support.doc_tables

docs: tables  ## these tables, and the site
	$(MAKE) site

clean:  ## remove what the others have made
	rm -rf .uv .venv .venv-pythons dist docs/_build uv.lock
