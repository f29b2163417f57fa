/* The scripts that run a job: they start the ranks in different ways and supervise them in the same
 * way.
 *
 * A job is done when its result, a model or a recipe, has been replaced. Exit codes cannot show
 * that. Launchers that let ranks survive a death hide failures (Open MPI 4.1 always ends with 0) or
 * report false ones (MPICH ends with 9 after a success). */

#include "format.h"
#include "job.h"
#include <inttypes.h>
#include <stdlib.h>

char *job_text(const job *j, void (*write)(const job *j, FILE *to)) {
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    write(j, to);
    int failed = ferror(to);
    if (fclose(to) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

/* name='value', with quotes as a shell needs them. */
static void put_variable(FILE *to, const char *name, const char *value) {
    char *quoted = format_shell(1, (char *[]){(char *)value}, NULL, 0);
    fprintf(to, "%s=%s\n", name, quoted ? quoted : "''");
    free(quoted);
}

static void put_command(const job *j, FILE *to) {
    put_variable(to, "program", j->program);
    fprintf(to, "arguments=(");
    for (int i = 0; i < j->count; i++) {
        char *quoted = format_shell(1, &j->words[i], NULL, 0);
        int option = j->words[i][0] == '-' && j->words[i][1] != '\0';
        fprintf(to, "%s%s", i == 0 ? "" : option ? "\n    " : " ", quoted ? quoted : "''");
        free(quoted);
    }
    fprintf(to, ")\n");
    if (j->tasks == 0) {
        put_variable(to, "result", j->result);
        put_variable(to, "checkpoint", j->checkpoint);
    }
}

/* A search whose runs are divided among the tasks of an array. */
static void put_part(const job *j, FILE *to) {
    put_variable(to, "folder", j->folder);
    fprintf(to,
            "\n"
            "# Task 0 follows after the others, and merges their results. It alone says how the\n"
            "# search has ended.\n"
            "checkpoint=$folder/search.csv\n"
            "if [ \"$SLURM_ARRAY_TASK_ID\" = 0 ]; then\n"
            "    arguments+=(--merge)\n"
            "else\n"
            "    arguments+=(--part \"$SLURM_ARRAY_TASK_ID/%" PRIu64 "\")\n"
            "    checkpoint=$folder/part-$SLURM_ARRAY_TASK_ID-of-%" PRIu64 "/search.csv\n"
            "    unset QUERN_JOBS\n"
            "fi\n"
            "\n",
            j->tasks, j->tasks);
}

static const char watching[] =
    "\n"
    "# A new result has another inode number or time, because it replaces the old file. The exit\n"
    "# code of a launcher that keeps running after a failed rank does not show success.\n"
    "result_version() { stat -c '%i %y' -- \"$result\" 2>/dev/null; }\n";

/* How far the run is. The checkpoint of a kernel is a file, which is replaced or written to. */
static const char train_progress[] =
    "# The names of the checkpoints hold their steps.\n"
    "progress() { printf '%s\\n' \"$checkpoint\"/checkpoint-*; }\n";
static const char kernel_progress[] =
    "# The same tells whether there is a new checkpoint.\n"
    "progress() { stat -c '%i %y' -- \"$checkpoint\" 2>/dev/null; }\n";
static const char search_progress[] =
    "# Each run that is done has a line after the first two.\n"
    "progress() { tail -n +3 -- \"$checkpoint\" 2>/dev/null | wc -l; }\n";

static const char stopping[] =
    "\n"
    "running=() stopping=\n"
    "notice=USR2\n"
    "# shellcheck disable=SC2317  # a trap calls it\n"
    "stop_ranks() {\n"
    "    stopping=yes\n"
    "    [ ${#running[@]} = 0 ] || kill -s \"$notice\" \"${running[@]}\" 2>/dev/null\n"
    "}\n"
    "# A signal ends a wait early, so each process is waited for until it is gone.\n"
    "await_ranks() {\n"
    "    code=0\n"
    "    for process in \"${running[@]}\"; do\n"
    "        while :; do\n"
    "            wait \"$process\"\n"
    "            status=$?\n"
    "            kill -0 \"$process\" 2>/dev/null || break\n"
    "        done\n"
    "        [ \"$status\" = 0 ] || code=$status\n"
    "    done\n"
    "    running=()\n"
    "}\n";

static void put_watching(const job *j, FILE *to) {
    if (j->tasks == 0)
        fputs(watching, to);
    fputs(j->kernel ? kernel_progress : j->tasks > 0 ? search_progress : train_progress, to);
    fputs(stopping, to);
}

/* Ranks without MPI connect to an address; only those with the key can join. */
static const char making_key[] = "    # Only processes that can read this file can join.\n"
                                 "    key=$result.key.${SLURM_JOB_ID:-$$}\n"
                                 "    rm -f -- \"$key\"\n"
                                 "    (umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr "
                                 "-d ' \\n' >\"$key\") || exit 1\n"
                                 "    trap 'rm -f -- \"$key\"' EXIT\n";

static const char choosing_mpirun[] =
    "    # Each launcher has its own option to keep the other ranks when one fails, and forwards "
    "another\n"
    "    # signal. A rank uses all cores that it gets, so ranks are not bound to a core.\n"
    "    local version launch\n"
    "    version=$(mpirun --version 2>&1)\n"
    "    case $version in\n"
    "    *\"Open MPI) 4\"*) launch=(mpirun --bind-to none --map-by node --enable-recovery) ;;\n"
    "    *\"Open MPI) \"*) launch=(mpirun --bind-to none --map-by node --with-ft ulfm) ;;\n"
    "    *HYDRA*) launch=(mpirun -bind-to none -ppn 1 -disable-auto-cleanup) notice=USR1 ;;\n"
    "    *)\n"
    "        echo \"quern job: unknown mpirun: ${version%%$'\\n'*}\" >&2\n"
    "        exit 2\n"
    "        ;;\n"
    "    esac\n"
    "    # Open MPI refuses to start for root, as in a container, unless this confirms it.\n"
    "    [ \"$(id -u)\" != 0 ] ||\n"
    "        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n";

static void put_mpirun(FILE *to, const char *count, const char *hostfile) {
    fprintf(to, "\nstart_ranks() {\n%s", choosing_mpirun);
    if (hostfile) {
        char *quoted = format_shell(1, (char *[]){(char *)hostfile}, NULL, 0);
        fprintf(to, "    launch+=(-hostfile %s)\n", quoted ? quoted : "''");
        free(quoted);
    }
    fprintf(to, "    \"${launch[@]}\" -n %s \"$program\" \"${arguments[@]}\" &\n", count);
    fprintf(to, "    running=($!)\n}\n");
}

/* ---------------------------------------------------------------- Slurm */

static void put_directives(const job *j, FILE *to) {
    fprintf(to, "#SBATCH --job-name=%s\n", j->name);
    fprintf(to, "#SBATCH --output=%s-%s.log\n", j->name, j->tasks > 0 ? "%A_%a" : "%j");
    if (j->tasks > 0)
        fprintf(to, "#SBATCH --array=1-%" PRIu64 "\n", j->tasks);
    if (j->ranks == 1)
        fprintf(to, "#SBATCH --nodes=1\n");
    else { /* with --ntasks-per-node Slurm always takes the smaller number of nodes */
        fprintf(to, "# One rank a node. The job also starts with one node fewer, in case that a "
                    "node failed.\n");
        fprintf(to, "#SBATCH --nodes=%" PRIu64 "-%" PRIu64 "\n", j->ranks - 1, j->ranks);
    }
    if (j->cpus)
        fprintf(to, "#SBATCH --cpus-per-task=%" PRIu64 "\n", j->cpus);
    else
        fprintf(to, "#SBATCH --exclusive            # whole nodes\n");
    if (j->gpus)
        fprintf(to, "#SBATCH --gpus-per-node=%" PRIu64 "\n", j->gpus);
    if (j->memory)
        fprintf(to, "#SBATCH --mem=%s\n", j->memory);
    if (j->partition)
        fprintf(to, "#SBATCH --partition=%s\n", j->partition);
    if (j->account)
        fprintf(to, "#SBATCH --account=%s\n", j->account);
    if (j->time)
        fprintf(to, "#SBATCH --time=%s\n", j->time);
    fprintf(to, "#SBATCH --signal=B:USR1@120    # stop this many seconds before the time limit\n"
                "#SBATCH --requeue              # when a node fails, start again on other nodes\n");
    if (j->ranks > 1)
        fprintf(to, "#SBATCH --no-kill              # ... unless the remaining ranks can "
                    "continue\n");
    fprintf(to, "#SBATCH --open-mode=append     # one log for all starts\n");
    if (j->more)
        fprintf(to, "#SBATCH %s\n", j->more);
}

/* A job of several nodes must also survive the loss of its first node. If the list of nodes no
 * longer has the first one, Slurm has removed it from the job. The script's own output may be lost
 * by then, so it appends to its log by name. */
static const char guarding[] =
    "\n"
    "# The job continues without a node that fails: --no-kill. If the first node fails, this "
    "script\n"
    "# ends, and Slurm does not requeue the job. Three other nodes check for that."
    "\n"
    "# shellcheck disable=SC2317  # the tasks of start_guards call it\n"
    "guard() {\n"
    "    local first=$1 log=$2 job nodes ending='' checked=''\n"
    "    case $SLURM_PROCID in [123]) ;; *) return ;; esac\n"
    "    trap 'ending=yes' TERM # the job ends, perhaps because the first node was drained\n"
    "    while [ -z \"$checked\" ]; do\n"
    "        [ -n \"$ending\" ] || sleep 60\n"
    "        checked=$ending\n"
    "        job=$(scontrol -o show job \"$SLURM_JOB_ID\" 2>/dev/null)\n"
    "        # JobLaunchFailure: the script was killed. Other ends of a job are intended.\n"
    "        case $job in\n"
    "        *JobState=RUNNING* | *\"JobState=COMPLETING Reason=JobLaunchFailure\"*) ;;\n"
    "        *) continue ;;\n"
    "        esac\n"
    "        nodes=$(grep -o ' NodeList=[^ ]*' <<<\"$job\" | cut -d= -f2 | paste -sd, -)\n"
    "        nodes=$(scontrol show hostnames \"$nodes\") || continue\n"
    "        grep -qxF -- \"$first\" <<<\"$nodes\" && continue\n"
    "        # First the line: requeuing kills this guard.\n"
    "        echo \"quern job: node $first has failed; requeuing\" >>\"$log\"\n"
    "        scontrol requeue \"$SLURM_JOB_ID\" 2>/dev/null\n"
    "    done\n"
    "}\n"
    "start_guards() {\n"
    "    srun --overlap --no-kill --kill-on-bad-exit=0 --wait=0 --mem=0 --mpi=none "
    "--ntasks-per-node=1 \\\n"
    "        bash -c \"$(declare -f guard); guard \\\"\\$@\\\"\" guard \"$SLURMD_NODENAME\" \\\n"
    "        \"$(readlink \"/proc/$$/fd/1\")\" 2>/dev/null &\n"
    "}\n";

static void put_srun(FILE *to) {
    fprintf(
        to,
        "\n"
        "# srun starts the ranks. They connect to the first node, without MPI.\n"
        "start_ranks() {\n"
        "    if [ \"$SLURM_JOB_NUM_NODES\" = 1 ]; then\n"
        "        \"$program\" \"${arguments[@]}\" &\n"
        "        running=($!)\n"
        "        return\n"
        "    fi\n"
        "%s"
        "    local meet=$SLURMD_NODENAME:$((20000 + SLURM_JOB_ID %% 20000))\n"
        "    # A step does not inherit the cores of the job unless it asks for them.\n"
        "    [ -z \"${SLURM_CPUS_PER_TASK:-}\" ] || export "
        "SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK\n"
        "    # The step continues when a task or a node fails. Each rank reads its own number.\n"
        "    # shellcheck disable=SC2016\n"
        "    srun --no-kill --kill-on-bad-exit=0 --wait=0 --ntasks-per-node=1 \\\n"
        "        bash -c 'exec \"$@\" --rank \"$SLURM_PROCID\" --ranks \"$SLURM_NTASKS\"' rank \\\n"
        "        \"$program\" \"${arguments[@]}\" --meet \"$meet\" --key-file \"$key\" &\n"
        "    running=($!)\n"
        "}\n",
        making_key);
}

static const char slurm_ends[] =
    "\n"
    "finish() {\n"
    "    # For \"quern jobs\", after Slurm has forgotten the job.\n"
    "    [ ! -d \"${QUERN_JOBS:-}\" ] || echo \"$1\" >\"$QUERN_JOBS/slurm-$SLURM_JOB_ID.ended\"\n"
    "    exit \"$1\"\n"
    "}\n"
    "continue_later() {\n"
    "    echo \"quern job: $1; requeued, to continue from $checkpoint\"\n"
    "    scontrol requeue \"$SLURM_JOB_ID\" || finish 1\n"
    "    sleep 3600 # Slurm ends this process in the meantime\n"
    "}\n"
    "\n"
    "trap stop_ranks USR1\n";

static const char slurm_rest[] =
    "starts=$((${SLURM_RESTART_COUNT:-0} + 1))\n"
    "if [ \"$(progress)\" != \"$had\" ]; then\n"
    "    [ -z \"$stopping\" ] || continue_later \"time limit reached\"\n"
    "    [ \"$code\" = 130 ] || continue_later \"the ranks exited with $code before the end of the "
    "run\"\n"
    "elif [ \"$starts\" -lt 4 ] && [ \"$code\" -gt 128 ] && [ \"$code\" != 130 ]; then\n"
    "    continue_later \"the ranks were killed ($code)\"\n"
    "fi\n"
    "# Stopped on purpose, or by an error that a new start would meet again. The log has it.\n"
    "echo \"quern job: ended with $code\"\n"
    "finish \"$code\"\n";

static const char training[] = "before=$(result_version) had=$(progress)\n";
static const char searching[] = "had=$(progress)\n";
static const char to_the_end[] = "start_ranks\n"
                                 "await_ranks\n"
                                 "\n";

static const char one_process[] = "\nstart_ranks() {\n"
                                  "    \"$program\" \"${arguments[@]}\" &\n"
                                  "    running=($!)\n"
                                  "}\n";

static void write_array(const job *j, FILE *to) {
    fprintf(to, "#!/bin/bash\n"
                "# Searches with Quern: each task of the array makes a part of the runs. The last "
                "step, task 0,\n"
                "# merges them. For this, submit the file once more after the number that sbatch "
                "has printed:\n"
                "#     sbatch --array=0 --dependency=afterany:NUMBER FILE\n"
                "#\n");
    put_directives(j, to);
    fprintf(to, "set -u\n\n");
    put_command(j, to);
    put_part(j, to);
    put_watching(j, to);
    fputs(one_process, to);
    fputs(slurm_ends, to);
    fputs(searching, to);
    fputs(to_the_end, to);
    fputs("[ \"$code\" != 0 ] || finish 0\n", to);
    fputs(slurm_rest, to);
}

void job_write_slurm(const job *j, FILE *to) {
    if (j->tasks > 0) {
        write_array(j, to);
        return;
    }
    fprintf(to,
            "#!/bin/bash\n"
            "# %s with Quern on the nodes of this job. After the time limit, a failed node or a "
            "preemption,\n"
            "# the next start continues from the last checkpoint.\n"
            "#\n",
            j->kernel ? "Runs a kernel" : "Trains");
    put_directives(j, to);
    fprintf(to, "set -u\n\n");
    put_command(j, to);
    put_watching(j, to);
    if (j->launcher[0] == 'm')
        put_mpirun(to, "\"$SLURM_JOB_NUM_NODES\"", NULL);
    else
        put_srun(to);
    if (j->ranks > 1)
        fputs(guarding, to);
    fputs(slurm_ends, to);
    fputs(training, to);
    if (j->ranks > 1)
        fputs("start_guards\n", to);
    fputs(to_the_end, to);
    fputs("[ \"$(result_version)\" = \"$before\" ] || finish 0\n"
          "[ \"$code\" != 0 ] || code=1\n",
          to);
    fputs(slurm_rest, to);
}

/* --------------------------------------------------------------------------------- this machine */

static void put_processes(const job *j, FILE *to) {
    if (j->ranks == 1) {
        fputs(one_process, to);
        return;
    }
    fprintf(to,
            "\n"
            "start_ranks() {\n"
            "%s"
            "    for ((rank = 0; rank < %" PRIu64 "; rank++)); do\n"
            "        \"$program\" \"${arguments[@]}\" --meet 127.0.0.1:%u --ranks %" PRIu64
            " --rank \"$rank\" \\\n"
            "            --key-file \"$key\" &\n"
            "        running+=($!)\n"
            "    done\n"
            "}\n",
            making_key, j->ranks, j->port, j->ranks);
}

static const char local_rest[] =
    "\n"
    "finish() {\n"
    "    [ -z \"${QUERN_ENDED:-}\" ] || echo \"$1\" >\"$QUERN_ENDED\"\n"
    "    exit \"$1\"\n"
    "}\n"
    "\n"
    "trap stop_ranks TERM INT USR1\n"
    "# Give up after three starts in a row without a new checkpoint.\n"
    "for ((idle = 0; idle < 3; )); do\n"
    "    before=$(result_version) had=$(progress)\n"
    "    start_ranks\n"
    "    await_ranks\n"
    "    [ \"$(result_version)\" = \"$before\" ] || finish 0\n"
    "    [ -z \"$stopping\" ] || finish 130\n"
    "    [ \"$code\" != 0 ] || code=1\n"
    "    [ \"$code\" != 2 ] || break\n"
    "    if [ \"$(progress)\" = \"$had\" ]; then idle=$((idle + 1)); else idle=0; fi\n"
    "    echo \"quern job: the ranks exited with $code before the end of the run\"\n"
    "    sleep 1\n"
    "done\n"
    "echo \"quern job: given up\"\n"
    "finish \"$code\"\n";

void job_write_local(const job *j, FILE *to) {
    fprintf(to,
            "#!/bin/bash\n"
            "# %s with Quern in the background. After a failure it starts again from the last "
            "checkpoint.\n"
            "set -u\n\n",
            j->kernel ? "Runs a kernel" : "Trains");
    char *quoted = format_shell(1, (char *[]){(char *)j->directory}, NULL, 0);
    fprintf(to, "cd -- %s || exit 1\n", quoted ? quoted : ".");
    free(quoted);
    put_command(j, to);
    put_watching(j, to);
    if (j->launcher[0] == 'm') {
        char count[24];
        snprintf(count, sizeof count, "%" PRIu64, j->ranks);
        put_mpirun(to, count, j->hostfile);
    } else {
        put_processes(j, to);
    }
    fputs(local_rest, to);
}
