# A thin front for CMake and the scripts; `make help` lists what there is.

.DEFAULT_GOAL := build/quern
.PHONY: build/quern install deb wheel demo test check setup lint format matrix fuzz gpu-check elementary-full functions-full
.PHONY: bench clean help tags hook coverage peers engines

build/quern: ## the program and the library, release build (the default)
	@scripts/setup.sh build || echo "make: going on with what is here"
	@if [ -f build/CMakeCache.txt ]; then :; \
	elif command -v ninja >/dev/null; then cmake --preset release --log-level=WARNING >/dev/null; \
	else cmake -S . -B build --log-level=WARNING; fi
	@cmake --build build

PREFIX ?= /usr/local
install: build/quern ## program, library, headers, manual pages and completions into PREFIX (/usr/local)
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"

deb: ## a Debian package in dist/: command, shared library, headers, manual pages, completions
	@scripts/setup.sh build || echo "make: going on with what is here"
	@cmake -S . -B build-deb $$(command -v ninja >/dev/null && echo -G Ninja) --log-level=WARNING \
		-DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
		-DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_SKIP_INSTALL_RPATH=ON
	@cmake --build build-deb --parallel
	@cd build-deb && cpack -B ../dist >/dev/null && rm -rf ../dist/_CPack_Packages
	@ls dist/*.deb

wheel: build/quern ## a wheel of the Python package in dist/, tried in an empty environment
	@scripts/wheel.sh

demo: build/quern ## train on synthetic digits three times over and compare the bytes
	@scripts/demo.sh

test: ## the tests, about 15 minutes on two cores
	@scripts/test.sh

FILE ?=
check: build/quern ## build and run what concerns one file: make check FILE=src/base/text/json.c
	@$(if $(FILE),scripts/check.py $(FILE),echo "make: name the file: make check FILE=src/base/text/json.c" >&2; exit 2)

tags: build/quern ## an index of functions for editors (ctags), and compile_commands.json for clangd
	@ctags -f tags --languages=C,Python --langmap=C:+.inc.cl -R include src app tests bench python scripts
	@ln -sf build/compile_commands.json compile_commands.json

hook: ## git checks the layout and the rules of the house before each commit, in seconds
	@mkdir -p "$$(git rev-parse --git-path hooks)"
	@ln -sf "$(CURDIR)/scripts/pre-commit" "$$(git rev-parse --git-path hooks)/pre-commit"
	@echo "make: scripts/pre-commit runs before each commit; git commit --no-verify goes without"

coverage: ## lines and branches that the C tests reach, by folder (PYTEST='tests/test_csv.py': these too)
	@scripts/coverage.py $(if $(PYTEST),--pytest "$(PYTEST)")

peers: ## install the clients that tests/test_peers.py asks servers with, into .venv-peers
	@python3 -m venv .venv-peers
	@.venv-peers/bin/pip install -q -r tests/peers.txt

engines: ## tests with Dask, Ray and Spark on this machine; installs them into .venv-engines (ENGINE=dask: one)
	@scripts/engines.sh $(ENGINE)

setup: ## install what building and testing need
	@scripts/setup.sh

lint: ## layout, cppcheck, clang-tidy, shellcheck and the rules of the house
	@QUERN_LINT=deep scripts/test.sh tests/test_lint.py tests/test_house.py

format: ## lay the C sources out as lint wants them
	@find include src app bench examples tests \( -name '*.[ch]' -o -name '*.inc' -o -name '*.cl' \) \
		-exec clang-format -i {} +

matrix: ## the same bytes in every build, instruction set and number of threads
	@scripts/test.sh tests/test_matrix.py

fuzz: ## look for faults of the readers with libFuzzer: FUZZ_SECONDS=60 each, TARGET=NAME for one
	@scripts/fuzz.sh

PYTHON ?= python3
gpu-check: build/quern ## check a GPU in 10 minutes and write a report that can be sent, gpu-check.txt (DEVICE=cuda:1)
	@cmake --build build --target gpu-check-tools || echo "make: going on with what was built"
	@$(PYTHON) scripts/gpu_check.py $(if $(DEVICE),--device $(DEVICE)) $(if $(MINUTES),--minutes $(MINUTES))

elementary-full: build/quern ## the elementary functions over all 2^32 inputs, against MPFR
	@cmake --build build --target bench.elementary_full
	@build/bench/elementary_full

functions-full: build/quern ## the same for the functions of user kernels, and samples of doubles
	@cmake --build build --target bench.functions_full
	@build/bench/functions_full

bench: build/quern ## build the benchmarks into build/bench
	@cmake --build build --target bench

clean: ## remove every build tree (.venv stays)
	rm -rf build build-* dist .cache

help: ## this list
	@grep -E '^[a-z/-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18
