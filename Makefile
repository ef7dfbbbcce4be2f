# A thin front over the CMake presets and scripts/. `make help` lists the targets.
SHELL := /bin/bash

.PHONY: help bootstrap testtools build demo test lint asan tidy parity format clean

help:            ## List the targets.
	@grep -hE '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18

bootstrap:       ## Install what is missing: packages, LibTorch, the test model.
	@scripts/bootstrap.sh

testtools:
	@scripts/bootstrap.sh --tests

build: bootstrap ## Put traind, traind-worker and trainctl into build/release/bin.
	@scripts/build.sh release

demo: build      ## Train a real adapter on real data through the daemon, in a few minutes.
	@scripts/demo.sh

test: testtools  ## Build and run every test.
	@scripts/build.sh dev
	@scripts/run_tests.sh dev

lint: testtools  ## Check layers, formats, lists and function sizes.
	@scripts/run_lints.sh

asan: testtools  ## The tests of everything but the worker, with address and undefined sanitizers.
	@scripts/build.sh asan
	@scripts/run_tests.sh asan

tidy: testtools  ## Build everything but the worker with clang and -Wthread-safety.
	@scripts/build.sh tidy

parity: testtools ## Compare with PEFT in a Python environment outside the tree (5 GB).
	@scripts/parity.sh

format:          ## Format every C++ file.
	@git ls-files '*.h' '*.cc' | xargs clang-format-16 -i

clean:           ## Remove what was built; downloads stay in the cache.
	@rm -rf build
