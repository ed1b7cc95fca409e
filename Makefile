# `make` alone shows a leg hop. Everything runs inside the environment that scripts/run sets up on first use.

DURATION ?= 10
CONTROLLER ?=
CLOCK_MODE ?= realtime
SOLVER ?= range_space
VIEW ?=
JOBS ?= 4

.DEFAULT_GOAL := leg
.PHONY: leg quadruped four_bar cassie test test-processors test-versions lint docs build bench bench-node bench-campaign lock clean help

leg: ## simulate a hopping leg and its controller (DURATION, CONTROLLER, CLOCK_MODE, SOLVER, ARGS; VIEW=1: in the browser)
quadruped: ## the same of a trotting quadruped
four_bar: ## the same of a four-bar linkage
cassie: ## the same of the biped Cassie

leg quadruped four_bar cassie:
	@scripts/run python -m constrained_sim.ros.demo $@ --duration $(DURATION) --controller "$(CONTROLLER)" \
		--clock-mode $(CLOCK_MODE) --solver $(SOLVER) $(if $(VIEW),--view) $(ARGS)

test: lint ## all checks, then all tests in JOBS processes, which often wait for nodes (ARGS go to pytest)
	@scripts/run pytest -n $(JOBS) --dist loadgroup $(ARGS)

test-processors: ## the tests without ROS, as on other processors (generic, Prescott, Haswell, SkylakeX)
	@JOBS=$(JOBS) scripts/test_processors $(ARGS)

test-versions: ## the wheel by itself, with the oldest and the newest libraries, on each Python (ARGS: oldest-3.12 newest-3.13 ...)
	@scripts/test_versions $(ARGS)

lint: ## the pre-commit checks, on all files
	@scripts/run pre-commit run --all-files

docs: ## the documentation, in docs/_build/html; a warning is an error, and so is a slip in the spelling
	@scripts/run pip install --quiet --no-deps --disable-pip-version-check -r requirements/docs.lock
	@scripts/run codespell $$(git ls-files '*.md' '*.msg' '*.srv' '*.yaml' constrained_sim docs examples launch)
	@scripts/run sphinx-build --fail-on-warning --keep-going --quiet $(ARGS) docs docs/_build/html
	@echo "docs/_build/html/index.html"

build: ## set up the environment and build the messages
	@scripts/setup

bench: ## measure speed and accuracy
	@scripts/run python benchmarks/run.py $(ARGS)

bench-node: ## measure the node: lock-step, real time, start, kills, memory
	@scripts/run python benchmarks/node.py $(ARGS)

bench-campaign: ## measure studies: throughput, overhead, memory, kills, ROS, beside the rollout of MuJoCo
	@scripts/run python benchmarks/campaign.py $(ARGS)

lock: ## renew the locked versions in requirements/
	@scripts/lock

clean: ## remove the environment and all that was built
	rm -rf .ros2 build install log constrained_sim/__pycache__

help: ## show this list
	@sed -n 's/^\([a-z_-]*\):[^#]*## /  make \1	/p' $(MAKEFILE_LIST) | expand -t 24
