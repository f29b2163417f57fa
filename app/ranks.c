#include "ranks.h"
#include "command.h"
#include "interrupt.h"
#include "jsonline.h"
#include "launched.h"
#include "message.h"
#include "progress.h"
#include "secret.h"
#include "shared_rows.h"
#include <quern/device.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) .place = offsetof(ranks_flags, member)

static const option_word transports[] = {{"auto", "mpi where it is faster"},
                                         {"sockets", "TCP"},
                                         {"mpi", "MPI, under mpirun or srun"},
                                         {NULL, NULL}};

const option ranks_options[] = {
    {ROW_FLAG("data-from-rank0", data_from_rank0,
              "only rank 0 reads the files; it sends them to the others"),
     .fallback = "each machine reads its own"},
    {ROW_TEXT("meet", rendezvous, "HOST:PORT",
              "address of rank 0, at which the ranks find each other; rank 0 listens there"),
     .fallback = "from the launcher; without one, a single process"},
    {ROW_COUNT("ranks", ranks, 1, 1024, "with --meet: number of ranks")},
    {.name = "rank",
     .kind = OPTION_COUNT,
     AT(rank),
     .value = "I",
     .high = 1023,
     .help = "with --meet: number of this rank, from 0"},
    {ROW_COUNT("min-ranks", min_ranks, 1, 1024,
               "with --meet: train begins when so many ranks are there, the others join later"),
     .fallback = "all"},
    {ROW_TEXT("key-file", key_file, "FILE",
              "with --meet or torchrun: file with a secret of all ranks; only its owner may have "
              "access. -: the first line of the standard input")},
    {ROW_TEXT("interface", interface, "NAME",
              "network interface, or address of this machine, for connections between ranks"),
     .fallback = "all"},
    {ROW_CHOICE("transport", transport, "NAME", "what carries sums between machines"),
     .words = transports, .fallback = "auto"},
    {ROW_TEXT("meet-timeout", rendezvous_timeout, "SECONDS",
              "how long to wait for the other ranks at the start"),
     .field = "cluster.rendezvous_timeout"},
    {ROW_TEXT(
         "rank-timeout", rank_timeout, "SECONDS",
         "a rank that is silent for this long counts as failed; the others continue without it"),
     .field = "cluster.rank_timeout"},
    {ROW_FLAG("alone", alone, "run as a single process, even under a launcher such as mpirun")},
    {.name = NULL}};

/* The state of this rank. */
static struct {
    qn_cluster *cluster;
    int data_from_first;
    int json;
    qn_error held; /* this rank's own error, until all have agreed on one */
    qn_error left; /* why it had to leave while it wrote */
} us;

const char *ranks_key_path(const ranks_flags *f) {
    return f->key_file && strcmp(f->key_file, "-") != 0 ? f->key_file : NULL;
}

qn_cluster *ranks_cluster(void) { return us.cluster; }

const char *ranks_name(void) {
    return us.cluster ? qn_cluster_name(us.cluster, qn_cluster_rank(us.cluster)) : NULL;
}

void ranks_notes(void) {
    const char *name = ranks_name();
    char text[512];
    while (qn_device_note(text, sizeof text))
        message_note("note: %s%s%s", name ? name : "", name ? ": " : "", text);
}

int ranks_data_from_first(void) { return us.data_from_first; }

int ranks_is_writer(void) { return qn_cluster_is_writer(us.cluster); }

/* ----------------------------------------------------------------------------------------- join */

/* Seconds in the library's form; 0: its default. Returns -1 or an exit code. */
static int read_seconds(const char *text, const char *name, double *out) {
    float seconds;
    *out = 0;
    if (!text)
        return -1;
    if (!read_float(text, &seconds) || !(seconds >= 0.001f && seconds <= 2592000))
        return message_usage("it is a number of seconds from 0.001 to 2592000 (30 days)",
                             "--%s cannot be \"%s\"", name, text);
    *out = (double)seconds;
    return -1;
}

/* A launcher has started this process, possibly as the only rank: a script with the same options
 * for any number of ranks must work. */
static int is_launched(void) {
    static const char *const signs[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK",
                                        "SLURM_STEP_NUM_TASKS", "TORCHELASTIC_RUN_ID"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (getenv(signs[i]))
            return 1;
    return 0;
}

/* Refuses options that need several ranks. */
static int check_use(const ranks_flags *f, const options_set *given) {
    static const char *const theirs[] = {"interface", "transport", "meet-timeout", "rank-timeout",
                                         "data-from-rank0"};
    if (f->rendezvous || (is_launched() && !f->alone))
        return -1;
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
        if (options_picked(ranks_options, given, theirs[i]))
            return message_usage("leave it out; several ranks are started by mpirun or srun, or "
                                 "with --meet, --ranks and --rank",
                                 "--%s does nothing in a single process", theirs[i]);
    return -1;
}

/* Checks the options that belong to --meet. `ranks` is 0 without --ranks. */
static int check_meet(const ranks_flags *f, int has_rank) {
    if (f->rendezvous && f->alone)
        return message_usage("leave one of them out", "--alone contradicts --meet");
    if (f->rendezvous && (f->ranks == 0 || !has_rank))
        return message_usage("say how many ranks there are and which of them this is, such as "
                             "--ranks 4 --rank 0",
                             "--meet needs --%s", f->ranks == 0 ? "ranks" : "rank");
    const int key_only = f->key_file && (f->alone || !getenv("TORCHELASTIC_RUN_ID"));
    if (!f->rendezvous && (f->ranks > 0 || f->min_ranks > 0 || has_rank || key_only))
        return message_usage(
            "add --meet HOST:PORT; under mpirun, srun and torchrun leave the option out",
            "--%s needs --meet",
            f->ranks > 0       ? "ranks"
            : f->min_ranks > 0 ? "min-ranks"
            : has_rank         ? "rank"
                               : "key-file");
    if (f->rendezvous && f->min_ranks > f->ranks)
        return message_usage("it is at most the number of ranks",
                             "--min-ranks cannot be %u where --ranks is %u", (unsigned)f->min_ranks,
                             (unsigned)f->ranks);
    if (f->rendezvous && f->rank >= f->ranks) {
        char remedy[96];
        snprintf(remedy, sizeof remedy, "ranks are numbered from 0: here 0 to %u",
                 (unsigned)f->ranks - 1);
        return message_usage(remedy, "there is no rank %u of %u", (unsigned)f->rank,
                             (unsigned)f->ranks);
    }
    return -1;
}

/* Notes of the cluster, which all ranks receive: one prints them. While the ranks connect, each
 * prints its own on stderr. */
static void on_note(void *user, const char *text) {
    (void)user;
    if (!us.cluster)
        message_aside(text, "");
    if (!us.cluster || !ranks_is_writer())
        return;
    progress_make_way();
    if (us.json) {
        json_begin("ranks");
        json_message("text", text);
        json_count("alive", qn_cluster_alive(us.cluster));
        json_text("speaks", ranks_name());
        json_end();
    }
    message_note("note: %s", text);
}

static int join(const ranks_flags *f, const char *key) {
    qn_cluster_options options;
    qn_error err;
    qn_cluster_options_init(&options);
    options.rendezvous = f->alone ? "none" : f->rendezvous;
    options.ranks = (uint32_t)f->ranks;
    options.rank = (uint32_t)f->rank;
    options.key = key;
    options.min_ranks = (uint32_t)f->min_ranks;
    options.interface = f->interface;
    options.transport = f->transport;
    options.on_note = on_note;
    int code = read_seconds(f->rendezvous_timeout, "meet-timeout", &options.rendezvous_timeout);
    if (code < 0)
        code = read_seconds(f->rank_timeout, "rank-timeout", &options.rank_timeout);
    if (code >= 0)
        return code;
    if (qn_cluster_join(&options, &us.cluster, &err) != QN_OK)
        return message_error(&err);
    if (!us.cluster)
        return -1;
    message_rank(ranks_name());
    ranks_hold();
    return -1;
}

/* A rank that has come to a run that had begun is alone, and not its writer. */
static int refuse_late(const ranks_flags *f) {
    char what[400];
    if (!us.cluster || qn_cluster_is_writer(us.cluster) || qn_cluster_alive(us.cluster) > 1)
        return -1;
    snprintf(what, sizeof what, "the training at %.255s has begun, and this command cannot join it",
             f->rendezvous);
    message_hold(NULL);
    return ranks_leave(
        message_fail(QN_CLUSTER, what, "", "start all ranks of this command at another port"));
}

int ranks_join(int argc, char **argv, int late) {
    ranks_flags f = {0};
    options_set given = {.word = {0}};
    char key[SECRET_CAPACITY];
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return -1;
        us.json |= strcmp(argv[i], "--json") == 0;
    }
    int code = options_pick(ranks_options, argc, argv, &f, &given);
    if (code < 0)
        code = check_meet(&f, options_picked(ranks_options, &given, "rank"));
    if (code < 0)
        code = check_use(&f, &given);
    if (code < 0 && f.key_file)
        code = secret_read(f.key_file, key);
    if (code < 0 && f.key_file && strcmp(f.key_file, "-") == 0)
        launched_listen();
    if (code < 0)
        code = join(&f, f.key_file ? key : NULL);
    if (code < 0 && !late)
        code = refuse_late(&f);
    if (code < 0)
        launched_joined();
    us.data_from_first = f.data_from_rank0;
    explicit_bzero(key, sizeof key);
    return code;
}

/* ------------------------------------------------------------------------------------------ end */

void ranks_hold(void) {
    us.held = (qn_error){0};
    message_hold(us.cluster ? &us.held : NULL);
}

int ranks_agree(int code, const qn_agreement *item, uint32_t count, int more) {
    qn_error verdict = {0};
    if (!us.cluster)
        return code;
    if (code < 0)
        us.held = (qn_error){0};
    else if (us.held.status == QN_OK) /* ended without an error, as help does */
        message_fill(&us.held, QN_USAGE, "", "start all ranks with the same command",
                     "this rank has nothing to do");
    qn_status status = qn_cluster_agree(us.cluster, &us.held, item, count, &verdict);
    us.held = (qn_error){0};
    if (!more || status != QN_OK)
        message_hold(NULL);
    return status == QN_OK ? -1 : ranks_failed(&verdict);
}

/* Why a rank ends that is well itself. */
static void say_end(const char *why) {
    char text[sizeof us.held.what + 32];
    snprintf(text, sizeof text, "ends too: %s", why);
    message_aside(text, "");
}

int ranks_conclude(const qn_error *err, int (*last)(void *user), void *user) {
    int code = EXIT_FAILED, spoke = 0, over = 0;
    if (!us.cluster) {
        code = interrupt_conclude(message_output(last(user)));
        launched_end(code);
        return code;
    }
    while (!(over = qn_cluster_over(us.cluster, &code))) {
        spoke = 1;
        us.left = (qn_error){0};
        /* output is flushed before the others may end the run */
        code = message_output(last(user));
        launched_end(code);
        qn_cluster_finish(us.cluster, code);
    }
    /* A rank that had to leave (2), or lost its devices, is the only one that knows why. If others
     * continue in its place (code 0) that is a note, otherwise an error. An error of all ranks is
     * printed by one. */
    const int stopped = over == 2 && err->status == QN_INTERRUPTED;
    const int left = !spoke && (stopped || err->status == QN_CLUSTER || err->status == QN_DEVICE);
    const qn_error *why = us.left.status != QN_OK ? &us.left : left ? err : NULL;
    const int own = why == &us.left || over == 2 || err->status == QN_DEVICE;
    if (why && code != EXIT_DONE && own)
        message_error(why);
    else if (why && code != EXIT_DONE && ranks_is_writer())
        message_common(why);
    else if (why)
        message_aside(why->what, why->remedy);
    else if (!spoke && over == 1 && code == EXIT_FAILED)
        say_end(err->status != QN_OK ? err->what
                                     : "the rank that writes the files failed, and says why");
    return interrupt_conclude(stopped ? EXIT_INTERRUPTED : code);
}

int ranks_unwritten(const qn_error *err) {
    if (!us.cluster || err->status != QN_CLUSTER)
        return message_error(err);
    us.left = *err;
    return message_exit_code(err->status);
}

/* What the verdict of all says of this rank, said at its own terminal: "rank 2 on host-b: there is
 * no such file (PATH)", "rank 2 on host-b (and 1 more rank) differs from ...". The writer says it
 * whole. Where a file of another rank failed, this one's output would say nothing of it. */
static void say_own_part(const qn_error *err) {
    const char *name = ranks_name();
    const size_t length = strlen(name);
    if (strncmp(err->what, name, length) != 0 || !strchr(": ", err->what[length])) {
        if (err->status == QN_IO && strncmp(err->what, "rank ", 5) == 0)
            say_end(err->what);
        return;
    }
    const char *part = err->what + length;
    if (strncmp(part, " (and ", 6) == 0 && strchr(part, ')'))
        part = strchr(part, ')') + 1;
    char text[sizeof err->what + sizeof err->where + 4];
    const int told = !err->where[0] || strstr(part, err->where);
    snprintf(text, sizeof text, told ? "%s" : "%s (%s)", part + strspn(part, ": "), err->where);
    message_aside(text, "");
}

static int print_common(void *user) { return message_common(user); }

int ranks_failed(const qn_error *err) {
    qn_error copy = *err;
    int code = EXIT_FAILED;
    if (!us.cluster)
        return message_error(err);
    message_hold(NULL);
    if (err->status == QN_CLUSTER || err->status == QN_DEVICE)
        return ranks_conclude(err, print_common, &copy);
    /* If a rank failed between two agreements, the run is over for all at once, and each knows why.
     * In all other cases the writer rank prints the error, and a rank in it its own part. */
    int over = qn_cluster_over(us.cluster, &code);
    if (over && !ranks_is_writer()) {
        say_own_part(err);
        return message_exit_code(err->status);
    }
    code = message_output(message_common(err));
    if (ranks_is_writer()) /* a rank that was not let in yet ends alone */
        launched_end(code);
    if (!over)
        qn_cluster_finish(us.cluster, code);
    return code;
}

int ranks_leave(int code) {
    message_hold(NULL);
    message_rank(NULL);
    qn_cluster_leave(us.cluster);
    us.cluster = NULL;
    return code;
}
