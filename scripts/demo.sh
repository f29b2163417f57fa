#!/usr/bin/env bash
# Shows the one thing that Quern promises: the same bytes, whichever machines did the work.
#
# Draws handwriting-like digits, trains the network 784-500-10 on them with every core, then with
# one, then asks `quern replay` to make the model once more from the recipe inside the file. Ends
# with status 1 when any byte differs or when the model is right on 97 % or less of digits that
# it never saw. Nothing is read from the network; what is written goes into build/demo.
set -eu -o pipefail
cd "$(dirname "$0")/.."
rm -rf build/demo
mkdir -p build/demo
cd build/demo
quern=../quern

say() { printf '\n== %s\n' "$*"; }
show() { # runs a command after printing it, as one would type it
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

# One recipe; what follows it in a command is the run's, and must leave no trace in the model.
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
