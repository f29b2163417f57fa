#!/bin/bash
# quern-rank RESULT HOST:PORT RANKS PROGRAM COMMAND ARGUMENTS...
#
# What a pod with an index runs: rank JOB_COMPLETION_INDEX of RANKS, which meet at HOST:PORT, the pod
# with index 0. QUERN_KEY is their key. RESULT is the file that the run writes last. Ends with 0 when it
# has been replaced, and with another code otherwise: a rank that the others left alone ends with 0 too,
# and its pod must not count as a success.
set -u

if [ $# -lt 5 ] || [ -z "${JOB_COMPLETION_INDEX:-}" ] || [ -z "${QUERN_KEY:-}" ]; then
    echo "usage: quern-rank RESULT HOST:PORT RANKS PROGRAM COMMAND ARGUMENTS...," >&2
    echo "  with JOB_COMPLETION_INDEX and QUERN_KEY in the environment" >&2
    exit 2
fi
result=$1 place=$2 ranks=$3 program=$4 command=$5
shift 5
key=$QUERN_KEY
unset QUERN_KEY
# A pod knows its own name before the service does.
[ "$JOB_COMPLETION_INDEX" != 0 ] || place=$(hostname):${place##*:}

# The result is replaced, never written into: its number and its time tell whether it is new.
result_version() { stat -c '%i %y' -- "$result" 2>/dev/null; }

# Kubernetes sends TERM before it ends a pod; the ranks then stop with a checkpoint.
running=
trap '[ -z "$running" ] || kill -s TERM "$running" 2>/dev/null' TERM INT

before=$(result_version)
# Pods are started again at different times, so ranks wait long for one another.
"$program" "$command" --meet "$place" --ranks "$ranks" --rank "$JOB_COMPLETION_INDEX" --key-file - \
    --meet-timeout 900 "$@" < <(printf '%s\n' "$key") &
running=$!
while :; do
    wait "$running"
    code=$?
    kill -0 "$running" 2>/dev/null || break
done
[ "$(result_version)" = "$before" ] || exit 0
[ "$code" != 0 ] || code=1
echo "quern-rank: the ranks ended ($code) before $result was written" >&2
exit "$code"
