#!/usr/bin/env bash
# Shows that the bytes of a model do not depend on the cores that trained it.
#
# Draws handwriting-like digits and trains the network 784-500-10 on them with every core, then with
# one. `quern replay` then trains it again from the recipe in the file. Exits with status 1 if any
# byte differs, or if the accuracy on unseen digits is 97 % or less. Nothing is read from the
# network; all files are written to build/demo.
set -eu -o pipefail
cd "$(dirname "$0")/.."
rm -rf build/demo
mkdir -p build/demo
cd build/demo
quern=../quern

say() { printf '\n== %s\n' "$*"; }
show() { # prints a command and runs it
    local word
    printf '$'
    for word in "$@"; do
        case $word in
        *[!A-Za-z0-9_./=,:+-]*) printf ' "%s"' "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    "$@"
}
digest() { sha256sum "$1" | cut -d ' ' -f 1; }

say "What is this build?"
show $quern version

say "Draw 20,000 digits to learn from and 4,000 others to be examined on"
show $quern data synth digits --items 20000 -o train.idx --labels train-labels.idx
show $quern data synth digits --items 4000 --first 20000 -o test.idx --labels test-labels.idx

# One recipe; further options of a command concern the run and must not change the model.
recipe=(--data train.idx --labels train-labels.idx
    --model "dense 500 tanh; dense 10 softmax" --loss mse --scale unit
    --batch 64 --lr 0.1 --momentum 0.9 --epochs 14 --seed 1)

say "Train with every core, looking at the 4,000 after each pass"
show $quern train "${recipe[@]}" --test test.idx --test-labels test-labels.idx \
    -o all-cores.safetensors | tee train.txt
accuracy=$(sed -nE 's/^test accuracy ([0-9.]+) %.*/\1/p' train.txt)

say "Train again with one core"
show $quern train "${recipe[@]}" --threads 1 --quiet -o one-core.safetensors

say "Replay: make the model once more from the recipe that its file names"
show $quern replay all-cores.safetensors --data train.idx --labels train-labels.idx \
    -o replay.safetensors

one=$(digest all-cores.safetensors)
two=$(digest one-core.safetensors)
three=$(digest replay.safetensors)
say "The model's SHA-256, three times over"
printf '%s  %s\n' "$one" "every core" "$two" "one core" "$three" "replay"

echo
if [ "$one" != "$two" ] || [ "$one" != "$three" ]; then
    echo "demo: FAILED: the models differ." >&2
    exit 1
fi
if ! awk -v a="${accuracy:-0}" 'BEGIN { exit !(a > 97) }'; then
    echo "demo: FAILED: right on ${accuracy:-unknown} %, which is not above 97 %." >&2
    exit 1
fi
echo "demo: three runs, one model, byte for byte; it is right on $accuracy % of unseen digits."
