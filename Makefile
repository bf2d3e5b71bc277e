# The two commands of the README, and the ones developers use. `make help` lists them.

PRESET ?= cpu
BUILD := build/$(PRESET)

.DEFAULT_GOAL := help
.PHONY: help deps build install run serve test e2e asan tsan tidy format fuzz cuda clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

deps:  ## install what the build needs (Debian packages by version, pinned sources)
	@bash tools/install.sh

build: deps  ## compile the gannet binary
	@cmake --preset $(PRESET) >/dev/null
	@cmake --build $(BUILD) --target gannet

PREFIX ?= /usr/local
install: build  ## put the binary, the systemd unit and the shipped models under PREFIX (and DESTDIR)
	@install -D -m 755 $(BUILD)/gannet $(DESTDIR)$(PREFIX)/bin/gannet
	@install -D -m 644 deploy/gannet.service $(DESTDIR)$(PREFIX)/lib/systemd/system/gannet.service
	@mkdir -p $(DESTDIR)$(PREFIX)/models && cp -r models/. $(DESTDIR)$(PREFIX)/models/

run: build  ## build, get the default model, chat in the terminal
	@bash tools/get_model.sh
	@$(BUILD)/gannet run

serve: build  ## build, get the default model, serve it on http://127.0.0.1:8000 with a chat page
	@bash tools/get_model.sh
	@$(BUILD)/gannet serve

test: deps  ## build and run the tests
	@bash tools/get_model.sh
	@cmake --preset $(PRESET) >/dev/null
	@cmake --build $(BUILD)
	@ctest --test-dir $(BUILD) --output-on-failure -LE 'device|slow'

e2e: build  ## the OpenAI and Anthropic SDKs against a server (needs python3-venv)
	@cmake --build $(BUILD) --target say_server_tool
	@test -d build/venv || python3 -m venv build/venv
	@build/venv/bin/pip install -q -r tests/e2e/requirements.txt
	@build/venv/bin/python tests/e2e/sdk_test.py $(BUILD)/tests/say_server_tool

asan:  ## the tests under address and undefined-behaviour sanitizers
	@cmake --preset asan >/dev/null && cmake --build build/asan && ctest --test-dir build/asan --output-on-failure -LE 'device|slow'

tsan:  ## the tests under the thread sanitizer
	@cmake --preset tsan >/dev/null && cmake --build build/tsan && ctest --test-dir build/tsan --output-on-failure -LE 'device|slow'

tidy:  ## clang-tidy over our sources
	@bash tools/install.sh dev && cmake --preset cpu >/dev/null && run-clang-tidy -quiet -p build/cpu '$(CURDIR)/(src|apps)/.*\.cc$$'

format:  ## clang-format our sources in place
	@git ls-files '*.cc' '*.h' '*.cu' '*.cuh' | grep -v '^third_party/' | xargs clang-format -i

fuzz:  ## build the fuzz targets (clang); run them with tools/fuzz.sh
	@bash tools/install.sh dev && cmake --preset fuzz >/dev/null && cmake --build build/fuzz

cuda:  ## compile the CUDA code for Hopper and Blackwell (needs nvcc, no device)
	@cmake --preset cuda >/dev/null && cmake --build build/cuda

clean:  ## remove the build folders
	@rm -rf build
