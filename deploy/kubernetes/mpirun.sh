#!/bin/bash
# quern-mpirun RESULT PROGRAM ARGUMENTS...
#
# What the launcher's pod of an MPIJob runs: PROGRAM on every host that the operator lists, by
# mpirun. RESULT is the file that the run writes last: a model, or the recipe of a kernel. Ends with 0
# when it has been replaced, and with another code otherwise, so that the pod is started again and the
# run goes on from its checkpoint: launchers that let ranks outlive one another do not tell by their
# exit codes.
set -u

if [ $# -lt 2 ]; then
    echo "usage: quern-mpirun RESULT PROGRAM ARGUMENTS..." >&2
    exit 2
fi
result=$1
shift
# The operator names the file with its hosts to mpirun of Open MPI 4; version 5 has another name for it.
hosts=${OMPI_MCA_orte_default_hostfile:-/etc/mpi/hostfile}

# Each has its own word for letting the others live on when a rank dies. A rank takes all cores of
# its pod, so none is bound to one.
version=$(mpirun --version 2>&1)
case $version in
*"Open MPI) 4"*) launch=(mpirun --bind-to none --enable-recovery --hostfile "$hosts") ;;
*"Open MPI) "*) launch=(mpirun --bind-to none --with-ft ulfm --hostfile "$hosts") ;;
*)
    echo "quern-mpirun: there is no mpirun of Open MPI here: ${version%%$'\n'*}" >&2
    exit 2
    ;;
esac

# The result is replaced, never written into: its number and its time tell whether it is new.
result_version() { stat -c '%i %y' -- "$result" 2>/dev/null; }

# Once the result is there, all that is left is for mpirun to end. One that hangs behind a pod that was
# lost would keep the job running for ever, so after some seconds it is ended by force.
linger=${QUERN_MPIRUN_LINGER:-30}
end_hanging() {
    local seconds=0
    while [ "$seconds" -lt "$linger" ]; do
        sleep 1
        kill -0 "$running" 2>/dev/null || return
        [ "$(result_version)" = "$before" ] || seconds=$((seconds + 1))
    done
    echo "quern-mpirun: $result is written, and mpirun has not ended within $linger s; it is killed" >&2
    kill -s KILL "$running"
}

# Kubernetes sends TERM before it ends a pod; the ranks then stop with a checkpoint.
running=
trap '[ -z "$running" ] || kill -s USR2 "$running" 2>/dev/null' TERM INT

before=$(result_version)
"${launch[@]}" "$@" &
running=$!
end_hanging &
watcher=$!
while :; do
    wait "$running"
    code=$?
    kill -0 "$running" 2>/dev/null || break
done
kill "$watcher" 2>/dev/null
[ "$(result_version)" = "$before" ] || exit 0
[ "$code" != 0 ] || code=1
echo "quern-mpirun: the ranks ended ($code) before $result was written" >&2
exit "$code"
