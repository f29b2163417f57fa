/* From a command line of train, run, search, serve or watch to a job. Reports errors in it now, not
 * after the job has waited for a day. */

#include "command.h"
#include "format.h"
#include "message.h"
#include "search.h"
#include "submit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the job itself gives to the ranks. */
static int check_ours(const command *c, const arguments *given) {
    static const char *const ours[] = {"meet", "ranks", "rank", "key-file", "alone"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (options_given(c, given, ours[i])) {
            char remedy[100];
            snprintf(remedy, sizeof remedy, "leave it out; --ranks before \"%s\" says how many",
                     c->name);
            return message_usage(remedy, "the job itself gives --%s to %s", ours[i], c->name);
        }
    return -1;
}

static int check_train(char **words, int count, train_flags *t) {
    arguments given;
    int code = options_read(&train_command, count - 1, words + 1, t, &given);
    if (code >= 0)
        return code;
    if (!t->out)
        return message_usage("add -o model.safetensors", "-o FILE is required");
    code = check_ours(&train_command, &given);
    if (code < 0)
        code = train_options_check(t, &given);
    if (code < 0 && (source_is_stream(t->from.data) || source_is_stream(t->from.test) ||
                     source_is_stream(t->from.valid)))
        code = message_usage("name a file that the job can open",
                             "- is the standard input, and a job has none");
    return code < 0 ? sources_check(&t->from) : code;
}

/* The same for the files in them; on other machines they may be different. */
static int check_train_paths(const submit_flags *f, const train_flags *t) {
    return f->dry_run ? -1 : train_check_paths(t, f->hostfile, f->local && !f->hostfile);
}

/* The file that the job replaces at its end, and its checkpoint; the words that are missing for
 * each start to continue after the last one. */
typedef struct outcome {
    const char *result, *checkpoint;
    int resume;
} outcome;

static int complete_words(making *m, char **words, int count, const outcome *o) {
    m->words = calloc((size_t)count + 3, sizeof *m->words);
    if (!m->words)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    memcpy(m->words, words, (size_t)count * sizeof *words);
    if (!o->checkpoint) {
        const size_t size = strlen(o->result) -
                            (ends_with(o->result, ".recipe.json") ? sizeof ".recipe.json" - 1 : 0);
        int n =
            snprintf(m->checkpoint, sizeof m->checkpoint, "%.*s.checkpoint", (int)size, o->result);
        if (n < 0 || (size_t)n >= sizeof m->checkpoint)
            return message_usage("name a shorter one", "the name of the result's file is too long");
        m->words[count++] = (char *)"--checkpoint";
        m->words[count++] = m->checkpoint;
    }
    if (!o->resume)
        m->words[count++] = (char *)"--resume";
    m->j.words = m->words;
    m->j.count = count;
    m->j.result = o->result;
    m->j.checkpoint = o->checkpoint ? o->checkpoint : m->checkpoint;
    return -1;
}

static int make_train(const submit_flags *f, char **words, int count, making *m) {
    int code = check_train(words, count, &m->train);
    if (code < 0)
        code = check_train_paths(f, &m->train);
    if (code >= 0)
        return code;
    const outcome o = {m->train.out, m->train.checkpoint, m->train.resume};
    return complete_words(m, words, count, &o);
}

static int make_run(const submit_flags *f, char **words, int count, making *m) {
    const run_job *r = &m->run;
    int code = run_job_read(count - 1, words + 1, f->local && !f->hostfile && !f->dry_run, &m->run);
    if (code < 0)
        code = check_ours(&run_command, &r->given);
    if (code >= 0)
        return code;
    if (!r->result)
        return message_usage("add --out NAME=FILE or --recipe FILE", "the job would write no file");
    m->j.kernel = 1;
    const outcome o = {r->result, r->checkpoint, r->resume};
    return complete_words(m, words, count, &o);
}

/* Each task of the array runs these words, with its part. */
static int make_search(const submit_flags *f, char **words, int count, making *m) {
    arguments given;
    int code = search_read(count, words, &given, &m->j.folder);
    if (code < 0)
        code = check_ours(&search_command, &given);
    if (code >= 0)
        return code;
    if (!f->slurm || f->array < 1)
        return message_usage("add --slurm and --array N; the tasks of the array divide the search",
                             "a search is submitted to Slurm, as a job array");
    if (f->ranks > 1)
        return message_usage("leave --ranks out, and give more tasks by --array",
                             "a task of an array is one process");
    const int n = snprintf(m->checkpoint, sizeof m->checkpoint, "%s/search.csv", m->j.folder);
    if (n < 0 || (size_t)n >= sizeof m->checkpoint)
        return message_usage("name a shorter one", "the name of the search's folder is too long");
    m->j.words = words;
    m->j.count = count;
    m->j.result = m->checkpoint;
    m->j.tasks = f->array;
    return -1;
}

/* The value of an option among the words; "" for a flag, NULL: it is not there. */
static const char *value_among(char **words, int count, const char *name) {
    const size_t size = strlen(name);
    for (int i = 1; i < count; i++)
        if (strcmp(words[i], name) == 0)
            return i + 1 < count ? words[i + 1] : "";
        else if (strncmp(words[i], name, size) == 0 && words[i][size] == '=')
            return words[i] + size + 1;
    return NULL;
}

/* A server of the cluster listens on all addresses of its pod. */
static int make_server(char **words, int count, making *m) {
    const char *listen = value_among(words, count, "--listen");
    const char *port = listen ? strrchr(listen, ':') : NULL;
    m->j.serves = 1;
    m->j.serve_tls = value_among(words, count, "--tls-cert") != NULL;
    if (!m->j.serve_tls && !value_among(words, count, "--insecure"))
        return message_usage("add --tls-cert, --tls-key and --token-file, or --insecure where the "
                             "cluster protects the server",
                             "other pods would reach the server without TLS and a token");
    if (!listen) {
        m->words[m->j.count++] = (char *)"--listen";
        m->words[m->j.count++] = (char *)(m->j.serve_tls ? "0.0.0.0:8443" : "0.0.0.0:8080");
        port = strchr(m->words[m->j.count - 1], ':');
    }
    m->j.serve_port = port ? (unsigned)strtoul(port + 1, NULL, 10) : 0;
    if (m->j.serve_port > 0 && m->j.serve_port < 65536)
        return -1;
    return message_usage("such as --listen 0.0.0.0:8080",
                         "--listen \"%.60s\" names no port that the cluster could know", listen);
}

static int make_service(const submit_flags *f, char **words, int count, making *m) {
    const int serves = strcmp(words[0], "serve") == 0;
    if (!f->kubernetes)
        return message_usage("add --kubernetes; deploy/systemd has units for one machine",
                             "%s does not end, and is submitted to Kubernetes only", words[0]);
    if (f->ranks > 1)
        return message_usage("leave --ranks out; kubectl scale adds replicas of a server",
                             "%s runs in one pod", words[0]);
    m->words = calloc((size_t)count + 3, sizeof *m->words);
    if (!m->words)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    memcpy(m->words, words, (size_t)count * sizeof *words);
    m->j.words = m->words;
    m->j.count = count;
    m->j.result = serves ? "quern-serve" : "quern-watch"; /* its name */
    m->j.watches = !serves;
    if (serves)
        return make_server(words, count, m);
    if (!value_among(words, count, "-o") && !value_among(words, count, "--output"))
        return message_usage("add -o postgresql://USER@HOST/DATABASE, or -o answers.csv",
                             "watch needs -o for its answers");
    return -1;
}

int submit_words(const submit_flags *f, char **words, int count, making *m) {
    if (count > 0 && (strcmp(words[0], "serve") == 0 || strcmp(words[0], "watch") == 0))
        return make_service(f, words, count, m);
    if (count > 0 && strcmp(words[0], "search") == 0)
        return make_search(f, words, count, m);
    if (f->array > 0)
        return message_usage("leave it out", "--array divides a search, and nothing else");
    if (count > 0 && strcmp(words[0], "train") == 0)
        return make_train(f, words, count, m);
    if (count > 0 && strcmp(words[0], "run") == 0)
        return make_run(f, words, count, m);
    return message_usage(
        "write \"train\", \"run\" or \"search\" and its options after those of submit",
        count == 0 ? "there is nothing to submit"
                   : "only train, run, search, serve and watch can be submitted, not \"%.40s\"",
        count == 0 ? "" : words[0]);
}
