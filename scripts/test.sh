#!/usr/bin/env bash
# Every check of the project, in one pytest run, whose summary is the last line printed.
#
# Tests build what they need: release, AddressSanitizer + UndefinedBehaviorSanitizer, clang, and 64-bit
# Arm under emulation. QUERN_LONG_TESTS=yes adds ThreadSanitizer, RISC-V, IBM Z and more builds. A test
# that the machine cannot run is skipped, with the reason. Arguments are passed to pytest:
#
#   scripts/test.sh                       everything
#   scripts/test.sh tests/test_matrix.py  one file
#   scripts/test.sh -k csv                tests with csv in their name
set -eu
cd "$(dirname "$0")/.."

echo "test: setting up"
unset QUERN_TEST_INSTALLED
installed=yes
scripts/setup.sh packages || installed=
# All tests wait for the release build, so it is made while pip waits for the network and the disk; with
# it, what the first of them need. tests/builds.py asks for the same; if this fails, it says why.
if [ $# -eq 0 ] && [ -n "$installed" ]; then
    { cmake --preset release -DQUERN_WERROR=ON && cmake --build build --target quern-program &&
        cmake --build build --target fakes test.device.conformance; } >/dev/null 2>&1 &
fi
scripts/setup.sh python || installed=
# Each worker reads all tests. What pytest makes of their text is kept for the next one to read.
unset PYTHONDONTWRITEBYTECODE
if [ $# -eq 0 ] && [ -n "$installed" ]; then
    .venv/bin/python -m pytest -p no:cacheprovider --collect-only -qq tests >/dev/null 2>&1 || true
fi
wait
if [ -n "$installed" ]; then
    export QUERN_TEST_INSTALLED=yes # tests/conftest.py: a missing package fails
else
    echo "test: going on with what is here"
fi
if ! .venv/bin/python -c 'import pytest, xdist, pytest_timeout' 2>/dev/null; then
    echo "test: pytest and its plugins are not in .venv, so nothing can be tested; see above." >&2
    exit 1
fi

# Tests that compute run one a core and one more, which fills their pauses. Other workers run what mostly
# waits (tests/conftest.py).
cores=$(nproc)
[ "$cores" -le 4 ] || cores=4
echo "test: C tests (release and sanitizer builds), the command's tests, lint, and the matrix of"
echo "test: compilers, processors and threads; $cores at a time, logs of builds in .cache/tests"
export QUERN_TEST_TURNS="$((cores + 1))"
unset QUERN
exec .venv/bin/python -m pytest -p no:cacheprovider --verbose --color=no -rsw --tb=short \
    --durations=8 --timeout=900 -o tmp_path_retention_policy=failed --numprocesses="$((cores + 4))" --dist=worksteal "${@:-tests}"
