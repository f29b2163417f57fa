#!/usr/bin/env bash
# Runs the tests of the engines (docs/engines.md): each starts a real cluster of this machine.
#
#   scripts/engines.sh             all of tests/engines, one engine after another
#   scripts/engines.sh dask        one of them: dask, ray or spark
#
# Installs tests/engines/*_requirements.txt into .venv-engines, Java for Spark by apt-get, and builds
# the Python package in build-engines. QUERN_PACKAGE names a folder that holds a built package.
set -eu -o pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- dask ray spark
for engine; do
    if [ ! -f "tests/engines/${engine}_engine.py" ]; then
        echo "scripts/engines.sh: unknown engine $engine: give dask, ray or spark" >&2
        exit 2
    fi
done
if [[ " $* " == *" spark "* ]] && ! command -v java >/dev/null; then
    as_root=(env)
    [ "$(id -u)" = 0 ] || as_root=(sudo -n env)
    if ! { "${as_root[@]}" apt-get update -q && "${as_root[@]}" DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends openjdk-17-jre-headless; } >/dev/null </dev/null; then
        echo "scripts/engines.sh: Spark needs Java. Install it, or name the engines: scripts/engines.sh dask ray" >&2
        exit 1
    fi
fi
if [ ! -x .venv-engines/bin/python ]; then
    "${PYTHON:-python3}" -m venv .venv-engines
fi
wanted=()
for engine; do wanted+=(-r "tests/engines/${engine}_requirements.txt"); done
.venv-engines/bin/python -m pip install -q --disable-pip-version-check "${wanted[@]}"
package=${QUERN_PACKAGE:-}
if [ -z "$package" ]; then
    generator=()
    [ -f build-engines/CMakeCache.txt ] || ! command -v ninja >/dev/null || generator=(-G Ninja)
    cmake -S . -B build-engines "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
        -DBUILD_TESTING=OFF -DQUERN_PYTHON=ON --log-level=WARNING >/dev/null
    cmake --build build-engines --target python --parallel >/dev/null
    package=$PWD/build-engines/python
fi
said=$(mktemp)
trap 'rm -f "$said"' EXIT
sums="" failed=0
for engine; do
    PYTHONPATH=$package .venv-engines/bin/python -m pytest -p no:cacheprovider -p no:logging --noconftest -q \
        "tests/engines/${engine}_engine.py" | tee "$said" || failed=1
    sums="$sums; $engine: $(tail -n 1 "$said")"
done
echo "engines: ${sums#; }"
exit "$failed"
