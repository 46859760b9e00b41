# make quickstart   set up, then watch an agent learn       make test    set up, then the test suite
# make test-thorough  kills and restarts, a minute or two   make test-slow  what takes long
# make check        lint, types, structure                  make docs    regenerate tables, check links and commands
# make test-harbor  Harbor (Python 3.12) in .venv-harbor as the judge of our formats, each side running the other's tasks
# make test-megatron  the trainer's layouts on megatron-core, CPU processes, in .venv-megatron
# make test-vllm    a real vLLM server in .venv-vllm (3.4 GB), the engines' contract and its traps on it
#
# PYTHON=...  which Python (3.11 or newer; found by itself)     ARGS=...   words for quickstart or pytest
# CUDA=1      do not hold torch to the CPU build

SHELL := /bin/sh
BIN := .venv/bin
RUN_READY := .venv/.ready-run
DEV_READY := .venv/.ready-dev
SOURCES_OF_SETUP := pyproject.toml constraints-cpu.txt
ARGS ?=
# A file at a time per worker; torch keeps to one thread in each, or the workers fight for the same cores. Bytecode is
# kept whatever the caller's environment says: workers and the commands they start would else compile all anew.
# Half as many workers again as there are cores: many tests wait for processes that they start or kill.
WORKERS := $(shell expr '(' $$(getconf _NPROCESSORS_ONLN) '*' 3 + 1 ')' / 2)
PYTEST := env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 6 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: quickstart setup test test-thorough test-slow test-podman vllm-venv test-vllm harbor-venv test-harbor megatron-venv test-megatron check docs format clean help check-lint check-format check-types check-docs check-house

help:
	@sed -n -e '/^#/!q' -e 's/^# //p' Makefile

quickstart: $(RUN_READY)
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/journeyman quickstart $(ARGS)

setup: $(DEV_READY)

test: $(DEV_READY)
	$(PYTEST) $(ARGS)

test-thorough: $(DEV_READY)
	$(PYTEST) -m 'thorough and not slow' $(ARGS)

test-slow: $(DEV_READY)
	$(PYTEST) -m slow $(ARGS)

test-podman: $(DEV_READY)
	$(PYTEST) -m podman $(ARGS)

# vLLM has an environment of its own and is started and ended by the tests; docs/vllm.md says what they look at.
vllm-venv:
	@sh scripts/vllm-venv.sh

test-vllm: $(DEV_READY) vllm-venv
	OMP_NUM_THREADS=1 JOURNEYMAN_VLLM_PYTHON=.venv-vllm/bin/python \
		$(BIN)/python -m pytest -v -rs tests/engines/test_engines_vllm_real.py tests/ladder/test_ladder_training_vllm.py $(ARGS)

# Harbor needs a newer Python than ours and has an environment of its own; docs/interchange.md says what is compared.
harbor-venv:
	@sh scripts/harbor-venv.sh

test-harbor: $(DEV_READY) harbor-venv
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -v -rs tests/tasks/test_tasks_conformance.py $(ARGS)

# megatron-core has an environment of its own; the tests run here and start the ranks there (docs/backends.md).
megatron-venv:
	@sh scripts/megatron-venv.sh

test-megatron: $(DEV_READY) megatron-venv
	OMP_NUM_THREADS=1 MEGATRON_PYTHON=.venv-megatron/bin/python \
		$(BIN)/python -m pytest -v -rs -m "slow or not slow" tests/train/test_train_megatron.py $(ARGS)

# Each part is a target of its own, so that `make -k check` runs them all and reports every failure.
check: check-lint check-format check-types check-docs check-house

check-lint: $(DEV_READY)
	$(BIN)/ruff check .

check-format: $(DEV_READY)
	$(BIN)/ruff format --check .

check-types: $(DEV_READY)
	$(BIN)/mypy

check-docs: $(DEV_READY)
	$(BIN)/python scripts/docs.py --check

check-house: $(DEV_READY)
	$(BIN)/python -m pytest -q tests/house

docs: $(DEV_READY)
	$(BIN)/python scripts/docs.py
	$(BIN)/python -m pytest -q tests/house/test_docs.py

format: $(DEV_READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# A stamp is written only after an installation that succeeded. The developers' set-up includes the users'.
$(RUN_READY): $(SOURCES_OF_SETUP)
	@sh scripts/install.sh train
	@touch $@

$(DEV_READY): $(SOURCES_OF_SETUP)
	@sh scripts/install.sh train,dev
	@touch $@ $(RUN_READY)

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
