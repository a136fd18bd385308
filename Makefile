# What can be done here: `make help`. Node (20 or newer), npm and make are all it needs: npm brings the rest, the exact
# Node that everything runs on included.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# The machine's own PATH: npm must not run on the Node that it is about to replace.
MACHINE_PATH := $(PATH)
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)

INSTALLED := node_modules/.package-lock.json

##@ Every day
.PHONY: help run test check build clean

help: ## List every target
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z][a-z0-9-]*:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## Count words with three workers, preempt one, kill the coordinator, and see nothing lost; under a minute
	@npm run --silent demo

test: install ## Pass every check: static, unit, end to end, and that each check can fail
	@node scripts/test.ts

check: install ## The static checks alone
	@node scripts/test.ts static
	@node scripts/house.ts | tail -1

build: install ## Compile to dist/
	@npm run --silent build

clean: ## Remove what was built and cached
	rm -rf dist .cache oclif.manifest.json

##@ Parts of the test
.PHONY: lint unit canaries e2e

lint: install ## Lint and layers
	@node scripts/test.ts lint lint-types layers

unit: install ## Unit, chart, contract and simulation tests
	@node scripts/test.ts unit unit-workers postgres

canaries: install ## Plant violations and see each check fail
	@node scripts/test.ts canaries

e2e: install ## Real processes, from a fresh build
	@node scripts/test.ts extras build e2e e2e-leaders e2e-deadlines e2e-runs

##@ Smokes (docs/testing.md)
.PHONY: smoke-3node-gcp smoke-3node-aws smoke-ssh smoke-ha smoke-ha-quorum

smoke-3node-gcp: build ## A coordinator and three workers, a steal, a preemption as GCP does it; half a minute
	@node scripts/smoke-3node.ts gcp $(ARGS)

smoke-3node-aws: build ## The same with AWS's protocol (ARGS=--simulate-preemption: by SIGTERM)
	@node scripts/smoke-3node.ts aws $(ARGS)

smoke-ha: build ## Three coordinators over one Postgres and three workers; the leader is killed in the middle
	@node scripts/smoke-ha.ts

smoke-ha-quorum: build ## The same over a Postgres on three hosts (Patroni, etcd): one of each kind is killed; five minutes
	@node scripts/smoke-ha-quorum.ts

smoke-ssh: build ## The same over ssh, to an sshd of its own on loopback
	@node scripts/smoke-over-sshd.ts

##@ Writing
.PHONY: install format gen golden proto-baseline machines-lock bench

install: $(INSTALLED) ## Install what package-lock.json names, if that has changed
	@node scripts/check-node.js

$(INSTALLED): package-lock.json
	@PATH='$(MACHINE_PATH)' node scripts/check-node.js --to-install
	PATH='$(MACHINE_PATH)' npm ci --no-audit --no-fund --loglevel=error
	@touch $@

format: install ## Format everything
	@npm run --silent format

gen: install ## Generate src/gen from proto/, and the tables in docs/ from the source
	@npm run --silent gen

golden: install ## Write anew the golden files of what programs and people rely on (test/e2e/golden)
	@npm run --silent golden

proto-baseline: install ## Take proto/ for the wire contract to hold changes against (WHY="…")
	@node scripts/proto-baseline.ts "$${WHY:-}"

machines-lock: install ## Lock the structure of new versions of charts
	@npm run --silent machines:lock

bench: install ## Measure (ARGS="--only heartbeat --json")
	@npm run --silent bench -- $(ARGS)
