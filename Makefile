# Every target sets up .venv by itself, again whenever pyproject.toml or requirements.lock has changed.
# Nothing is installed outside .venv; uv is used where it is found, else venv and pip.

# The system's Python if it is new enough: distributions build it with profile-guided optimisation, pyenv does not, and tests
# take a quarter less processor time with it.
ifndef PYTHON
PYTHON := $(shell command -p python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& command -pv python3 || echo python3)
endif
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN)
# More than three times as many as there are processors: most tests wait for the processes that they start, or for a lease to end.
WORKERS ?= $(shell echo $$(($(PROCESSORS) * 7 / 2 )))
MINUTES ?= 10
FIRST ?= 1

VENV := .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/.installed
COMPILED := $(VENV)/.compiled
CLIENTS := .clients
CLIENTS_FROM := tests/generated_clients
CLIENTS_STAMP := $(CLIENTS)/.installed
UV := $(shell command -v uv 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help demo test test-quick check soak lock clients openapi release clean

help:
	@echo "make demo        three replicas under load, two killed in turn: nothing is lost"
	@echo "make test        the whole suite (Spark tests need Java 17 or later)"
	@echo "make test-quick  pure rooms, schedules by hand and 500 seeds: while you work"
	@echo "make check       formatting, lint, types and import contracts"
	@echo "make soak        simulate on all cores (MINUTES=$(MINUTES), FIRST=$(FIRST), the first seed)"
	@echo "make lock        write the lock files (needs uv; UPGRADE=--upgrade)"
	@echo "make clients     install what generates API clients into $(CLIENTS), for tests"
	@echo "make openapi     write the OpenAPI documents after a change of the API"
	@echo "make release     all of a release but its upload, into dist"
	@echo "make clean       remove .venv, caches and build output"

demo: $(STAMP)
	@$(RUN) -m quorate.cli.main demo

test: $(COMPILED)
	@$(RUN) -m pytest -n $(WORKERS) --dist loadscope --durations 30

# No process, no file, no socket: what a change of the protocol breaks first.
QUICK := $(addprefix tests/unit/,adts api_specs gc quorums timestamps client_sdk/protocol client_sdk/inspection replica/protocol) \
	tests/paper tests/unit/simulation tests/sim/schedules tests/sim/test_sim.py::test_every_promise_is_kept

test-quick: WORKERS = $(PROCESSORS)
test-quick: $(STAMP)
	@$(RUN) -m pytest -q -n $(WORKERS) --dist loadscope -m "not slow" $(QUICK)

check: $(STAMP)
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

clients: $(CLIENTS_STAMP)

soak: $(STAMP)
	@$(RUN) -m tests.sim.soak --minutes $(MINUTES) --first $(FIRST)

# uv.lock would name the registry it was made with; this form names packages, versions and hashes only.
COMPILE = uv pip compile --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --quiet

lock:
	$(COMPILE) pyproject.toml $(UPGRADE) --all-extras --output-file requirements.lock
	$(COMPILE) $(CLIENTS_FROM)/requirements.txt $(UPGRADE) --output-file $(CLIENTS_FROM)/requirements.lock
	$(COMPILE) pyproject.toml --extra cli --extra replica --constraints requirements.lock --output-file requirements-server.lock

openapi: $(STAMP)
	@$(RUN) -m quorate.replica.server.write_openapi api_specs

release: $(STAMP)
	@$(RUN) -m tests.project.release dist

clean:
	rm -rf $(VENV) $(CLIENTS) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment of its own: the generator holds typer back, and Node comes from the same registry as all else. Nothing of
# a package is run at its installation.
$(CLIENTS_STAMP): $(STAMP) $(CLIENTS_FROM)/requirements.lock $(CLIENTS_FROM)/package-lock.json
	@echo "Installing what generates and runs API clients into $(CLIENTS) ..."
	@test -x $(CLIENTS)/venv/bin/python || $(RUN) -m venv --without-pip $(CLIENTS)/venv
	@$(INSTALL_CLIENTS) --quiet --require-hashes -r $(CLIENTS_FROM)/requirements.lock
	@cp $(CLIENTS_FROM)/package.json $(CLIENTS_FROM)/package-lock.json $(CLIENTS_FROM)/.npmrc $(CLIENTS)
	@cd $(CLIENTS) && PATH="$$PWD/venv/bin:$$PATH" npm ci --ignore-scripts --no-audit --no-fund --loglevel error
	@touch $@

# Of all that is installed a command imports a small part, which Python compiles then. The suite imports nearly all, in each worker.
$(COMPILED): $(STAMP)
	@$(RUN) -m compileall -qq -j 0 $(VENV)/lib || true
	@touch $@

# Under the package's name, for what reads types (see pyproject.toml).
LINK_FOR_TYPES = mkdir -p $(VENV)/typing && ln -sfn ../.. $(VENV)/typing/quorate

ifneq ($(UV),)

INSTALL_CLIENTS = $(UV) pip install --python $(CLIENTS)/venv/bin/python

$(STAMP): pyproject.toml requirements.lock
	@test -x $(RUN) || $(UV) venv --quiet --clear --python '>=3.11' $(VENV)
	@echo "Installing into $(VENV) with uv ..."
	@$(UV) pip install --quiet --python $(RUN) --require-hashes -r requirements.lock
	@$(UV) pip install --quiet --python $(RUN) --no-deps --editable .
	@$(LINK_FOR_TYPES)
	@touch $@

else

# Of an index's files an old pip looks at each a thousand times over: half of what an installation computes. Where this one cannot be
# had, it is to be the old one.
NEWER_PIP := pip==26.0 --hash=sha256:98436feffb9e31bc9339cf369fd55d3331b1580b6a6f1173bacacddcf9c34754
IS_OLD_PIP = $(RUN) -c 'import pip, sys; sys.exit(int(pip.__version__.partition(".")[0]) >= 25)'

INSTALL_CLIENTS = $(VENV)/bin/pip --python $(CLIENTS)/venv/bin/python --disable-pip-version-check install

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Quorate needs Python 3.11 or later; name one with: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { \
		echo "$(PYTHON) has no venv module; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@test -x $(VENV)/bin/pip || $(PYTHON) -m venv --clear $(VENV)
	@echo "Installing into $(VENV) with pip (a minute or two the first time) ..."
	@! $(IS_OLD_PIP) || echo '$(NEWER_PIP)' | \
		$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r /dev/stdin 2>/dev/null || true
	@$(VENV)/bin/pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r requirements.lock
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@$(LINK_FOR_TYPES)
	@touch $@

endif
