#!/usr/bin/env bash
# Runs the tests of the engines (docs/engines.md): each starts a real cluster of this machine.
#
#   scripts/engines.sh             all of tests/engines
#   scripts/engines.sh dask        one of them
#
# Installs tests/engines/requirements.txt into .venv-engines, and builds the Python package in
# build-engines. QUERN_PACKAGE names a folder that holds a built package.
set -eu
cd "$(dirname "$0")/.."
if [ ! -x .venv-engines/bin/python ]; then
    "${PYTHON:-python3}" -m venv .venv-engines
fi
.venv-engines/bin/python -m pip install -q --disable-pip-version-check -r tests/engines/requirements.txt
package=${QUERN_PACKAGE:-}
if [ -z "$package" ]; then
    cmake -S . -B build-engines -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON -DBUILD_TESTING=OFF \
        -DQUERN_PYTHON=ON --log-level=WARNING >/dev/null
    cmake --build build-engines --target python --parallel
    package=$PWD/build-engines/python
fi
files=(tests/engines/*_engine.py)
if [ $# -gt 0 ]; then
    files=("${@/#/tests/engines/}")
    files=("${files[@]/%/_engine.py}")
fi
PYTHONPATH=$package exec .venv-engines/bin/python -m pytest -p no:cacheprovider -p no:logging --noconftest -q "${files[@]}"
