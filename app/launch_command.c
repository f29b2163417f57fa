/* quern launch: starts a command as one rank on each of several hosts. */

#include "command.h"
#include "format.h"
#include "launch_run.h"
#include "message.h"
#include "ranks.h"
#include "shared_rows.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct launch_flags {
    const char *hosts, *hostfile, *directory, *meet, *ssh, *program;
    uint64_t restarts;
    int quiet;
} launch_flags;

#define AT(member) .place = offsetof(launch_flags, member)

static const option launch_options[] = {
    {.heading = "Hosts (one of these is required)",
     ROW_TEXT("hosts", hosts, "LIST",
              "names for ssh, with a number of ranks each: a,user@b:2,localhost")},
    {ROW_TEXT("hostfile", hostfile, "FILE",
              "the same, a host on each line: \"b:2\" or \"b slots=2\"")},

    {.heading = "Options",
     ROW_TEXT("directory", directory, "DIR",
              "folder on each host in which its ranks work; paths are relative to it"),
     .fallback = "the current folder"},
    {ROW_COUNT("max-restarts", restarts, 0, 1000,
               "how often all ranks are started again after all of them fell"),
     .fallback = "3"},
    {ROW_QUIET(quiet)},

    {.heading = "Advanced",
     ROW_TEXT("meet", meet, "HOST[:PORT]",
              "address of rank 0 for the other ranks, if they reach it by another name"),
     .fallback = "its name; a free port"},
    {ROW_TEXT("ssh", ssh, "COMMAND", "program that runs a command on a host, and its options"),
     .fallback = "ssh", .dashes = 1},
    {ROW_TEXT("program", program, "FILE", "path of quern on the hosts"),
     .fallback = "that of this program, else quern on the PATH"},
    {.name = NULL}};

/* ---------------------------------------------------------------- the command of the ranks */

/* What the launcher gives to the ranks. */
typedef struct given_words {
    const char *meet, *key_file;
    const char *ranks, *rank;
    const char *checkpoint;
    int alone, resume;
} given_words;

#undef AT
#define AT(member) .place = offsetof(given_words, member)

static const option watched_options[] = {
    {ROW_TEXT("meet", meet, "X", "")},   {ROW_TEXT("key-file", key_file, "X", "")},
    {ROW_TEXT("ranks", ranks, "X", "")}, {ROW_TEXT("rank", rank, "X", "")},
    {ROW_FLAG("alone", alone, "")},      {ROW_TEXT("checkpoint", checkpoint, "X", "")},
    {ROW_FLAG("resume", resume, "")},    {.name = NULL}};

/* The standard input of a rank brings the key. */
static int reads_input(int count, char **words) {
    for (int i = 1; i < count; i++) {
        const char *before = words[i - 1], *equals = strchr(words[i], '=');
        const int is_output = strcmp(before, "-o") == 0 || strcmp(before, "--output") == 0 ||
                              strncmp(words[i], "--output=", 9) == 0;
        if (!is_output && (strcmp(words[i], "-") == 0 ||
                           (words[i][0] == '-' && equals && strcmp(equals, "=-") == 0)))
            return 1;
    }
    return 0;
}

static int check_words(launch_job *job, int count, char **words) {
    given_words given = {.alone = 0};
    options_set set = {.word = {0}};
    option_row row;
    int named = 0;
    const char *of = count > 0 ? words[0] : "";
    /* command_find counts from the program's name. */
    char **line = calloc((size_t)count + 2, sizeof *line);
    if (!line)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    line[0] = (char *)"quern";
    memcpy(line + 1, words, (size_t)count * sizeof *words);
    const command *c = count > 0 ? command_find(count + 1, line, &named) : NULL;
    free(line);
    if (count == 0)
        return message_usage(
            "write a command after the options, such as: -- train --data t.csv -o m",
            "there is nothing to launch");
    if (!c || options_find(c->options, "meet", &row) < 0)
        return message_usage(
            "train, fit, predict, evaluate, generate, search, run, data stats and data info "
            "can",
            "\"%.40s\" does not run on several ranks", of);
    int code = options_pick(watched_options, count - named, words + named, &given, &set);
    if (code >= 0)
        return code;
    static const char *const ours[] = {"meet", "key-file", "ranks", "rank", "alone"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (options_picked(watched_options, &set, ours[i]))
            return message_usage("leave it out", "launch itself gives --%s to the ranks", ours[i]);
    if (reads_input(count, words))
        return message_usage("name a file that the ranks can open",
                             "- is the standard input, and ranks on other hosts have none");
    job->saves = given.checkpoint != NULL;
    job->setup.words = words;
    job->setup.count = count;
    job->setup.named = named;
    if (given.resume) /* it is given at each start */
        job->setup.resume = 0;
    return -1;
}

/* ---------------------------------------------------------------- the hosts */

static int read_hosts(const launch_flags *f, launch_hosts *hosts) {
    if (f->hosts && f->hostfile)
        return message_usage("keep one of them", "--hosts and --hostfile contradict each other");
    if (!f->hosts && !f->hostfile)
        return message_usage("such as --hosts node1,node2 or --hosts localhost:2",
                             "--hosts or --hostfile is required");
    const int code =
        f->hosts ? launch_hosts_list(f->hosts, hosts) : launch_hosts_file(f->hostfile, hosts);
    if (code >= 0 || hosts->count > 0)
        return code;
    return message_fail(QN_USAGE, "the file names no host", f->hostfile,
                        "write the name of a host on each line");
}

/* "quern launch --hosts a,b --", for the line that continues a run. */
static char *line_before(int own, char **argv) {
    const char *const end[] = {"--"};
    return format_shell(own + 2, argv, end, 1);
}

static int run(const command *self, int argc, char **argv) {
    launch_flags f = {.restarts = 3, .ssh = "ssh"};
    arguments given;
    char folder[4096];
    int begin;
    const int own = options_before(launch_options, argc - 2, argv + 2, &begin);
    int code = options_read(self, own, argv + 2, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, f.quiet, 0);
    launch_job *job = calloc(1, sizeof *job);
    if (!job)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    char *before = line_before(own, argv);
    job->meet = f.meet;
    job->restarts = f.restarts;
    job->quiet = f.quiet;
    job->setup.ssh = f.ssh;
    job->setup.program = f.program;
    job->setup.directory = f.directory ? f.directory : getcwd(folder, sizeof folder);
    job->setup.prefix = before ? before : "quern launch --";
    code = check_words(job, argc - 2 - begin, argv + 2 + begin);
    if (code < 0)
        code = read_hosts(&f, &job->hosts);
    if (code < 0 && !job->setup.directory)
        code = message_fail(QN_IO, "the current folder cannot be named", "",
                            "go to another one, or give --directory");
    if (code < 0)
        code = launch_run(job);
    free(before);
    free(job);
    return code;
}

const command launch_command = {
    .name = "launch",
    .summary = "run a command as ranks on several hosts, by ssh",
    .usage = "quern launch --hosts LIST|--hostfile FILE [options] -- COMMAND ARGUMENTS",
    .about =
        "Starts \"quern\tCOMMAND\tARGUMENTS\" on each host, by ssh, or without it on this machine "
        "(localhost). Each process is a rank, and all compute one result together. The ranks get a "
        "fresh key by the standard input of ssh; nothing else is copied. Each host needs Quern; "
        "paths and the version must be the same.\n\n"
        "When ranks fall, the others go on. Before all are connected, a rank that fell is started "
        "again. When all fell, all are started again: with --checkpoint DIR from the last "
        "checkpoint. Ctrl-C stops all ranks with a checkpoint. The exit code is 0 only if the "
        "result was written.\n\n"
        "docs/cluster.md has the details.",
    .options = launch_options,
    .examples = "quern launch --hosts node1,node2 -- train --data t.csv -o m.safetensors\n"
                "quern launch --hosts localhost,laptop-b -- \\\n"
                "      train --data t.csv --data-from-rank0 -o m.safetensors\n"
                "quern launch --hostfile hosts -- search --data t.csv --grid \"lr 0.1,0.01\"",
    .run = run};
