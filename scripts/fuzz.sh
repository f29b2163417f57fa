#!/usr/bin/env bash
# A campaign of the targets in tests/fuzz with libFuzzer: FUZZ_SECONDS of each (60), TARGET for one.
#
#   scripts/fuzz.sh                               every target
#   FUZZ_SECONDS=600 TARGET=table scripts/fuzz.sh  one, for longer
#
# Findings are written to .cache/fuzz/NAME-*, with the corpus, which grows with each campaign.
# `build-fuzz/fuzz/NAME FILE` repeats a finding. Its fix adds the file to tests/fuzz/corpus.
set -eu
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}

if ! command -v clang >/dev/null; then
    echo "fuzz: clang is not here; scripts/setup.sh installs it" >&2
    exit 1
fi
cmake --preset fuzz --log-level=WARNING >/dev/null
cmake --build build-fuzz --target "fuzz${TARGET:+.$TARGET}"

found=0
for folder in tests/fuzz/corpus/${TARGET:-*}; do
    name=${folder##*/}
    mkdir -p ".cache/fuzz/$name"
    echo "fuzz: $name for $seconds s"
    log=.cache/fuzz/$name.log
    if ! ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
        "build-fuzz/fuzz/$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
        -max_len=4096 -print_final_stats=1 -artifact_prefix=".cache/fuzz/$name-" \
        ".cache/fuzz/$name" "$folder" >"$log" 2>&1; then
        found=1
        grep -aE 'ERROR|not so:|runtime error|Test unit written' "$log" >&2 || tail -n 5 "$log" >&2
    fi
    grep -aE 'number_of_executed_units' "$log" || true
done
exit $found
