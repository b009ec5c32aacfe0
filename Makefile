# The two commands of the README are `make demo` and `make test`; the rest is for work on collabsim itself.
# Works with GNU make 3.81 (macOS). PYTHON=python3.12 picks an interpreter, ARGS="-k debate" goes to pytest.
BIN = .venv/bin
WORKERS = auto
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

.DEFAULT_GOAL = help
.PHONY: help setup demo test quick lint format bench docs lock clean distclean

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile | expand -t 12

setup: ## make .venv and install the pinned packages; does nothing when that is done
	@requirements/setup.sh

demo: setup ## small real models debate, then vote: progress, tables, saved runs; the vote reuses the debate's answers
	$(BIN)/collabsim sweep examples/demo.yaml
	$(BIN)/collabsim sweep examples/demo.yaml --set protocol='{name: majority_vote}'

test: setup ## the whole test suite
	$(PYTEST) $(ARGS)

quick: setup ## the tests that take less than ten seconds each
	$(PYTEST) -m "not slow" $(ARGS)

lint: setup ## ruff (rules and format) and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy collabsim graphs trainers

format: setup ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## the benchmarks, one at a time
	$(BIN)/python -m pytest benchmarks -s -rs --benchmark-enable $(ARGS)

docs: setup ## the site of the documentation, into site/; needs the extra docs, which the lock has
	$(BIN)/python docs/generate/configuration.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "docs: open site/index.html"

lock: setup ## resolve the pins anew, keeping those that fit (UPGRADE=1 renews all)
	requirements/lock.sh

clean: ## remove caches and build outputs; runs/ and .venv stay
	rm -rf build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
	find collabsim graphs trainers tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

distclean: clean ## clean, and remove .venv
	rm -rf .venv
