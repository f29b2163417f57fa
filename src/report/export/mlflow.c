/* The record of a run in the layout of MLflow's file store:
 * FOLDER/EXPERIMENT/RUN/{meta.yaml,metrics/NAME,params/NAME,tags/NAME,artifacts/NAME}. */
#include <quern/runs.h>

#include "base/argument.h"
#include "base/digest/sha256.h"
#include "base/files/file.h"
#include "base/files/folder_make.h"
#include "base/files/remote.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/text/text.h"
#include "report/record/run_open.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct store {
    const qn__past_run *run;
    const char *experiment, *name;
    char id[24], run_id[33]; /* of the experiment: decimal digits; of the run: hexadecimal ones */
    char *root;              /* the folder, absolute */
    char *experiment_folder, *folder; /* of the run */
} store;

/* MLflow's numbers of states. */
enum { RUNNING = 1, FINISHED = 3, FAILED = 4, KILLED = 5 };

static int state_of(const qn__past_run *run) {
    const char *state = qn__past_run_text(run, "state");
    return strcmp(state, "finished") == 0      ? FINISHED
           : strcmp(state, "running") == 0     ? RUNNING
           : strcmp(state, "interrupted") == 0 ? KILLED
                                               : FAILED;
}

static qn_status write_bytes(const char *path, const void *bytes, size_t size, qn_error *err) {
    qn__writer *writer;
    const qn_status status = qn__writer_create(path, &writer, err);
    if (status != QN_OK)
        return status;
    (void)qn__writer_add(writer, bytes, size, err);
    return qn__writer_commit(writer, err);
}

/* Writes FOLDER/PART/NAME and releases the text. */
static qn_status write_part(const store *s, const char *part, const char *name, qn__text *text,
                            qn_error *err) {
    char *folder = NULL, *path = NULL;
    qn_status status = text->failed ? qn__fail_memory(err, text->size + 1, 1)
                                    : qn__folder_path(s->folder, part, &folder, err);
    if (status == QN_OK)
        status = qn__folder_path(folder, name, &path, err);
    if (status == QN_OK)
        status = write_bytes(path, text->data ? text->data : "", text->size, err);
    qn__free(folder);
    qn__free(path);
    qn__text_release(text);
    return status;
}

/* ----------------------------------------------------------------------------------------- names
 */

/* The same name gives the same number, so two exports meet in one experiment. */
static void identify(store *s) {
    uint8_t digest[32];
    uint64_t number = 0;
    char text[65];
    qn__sha256 hash;
    static const char *const facts[] = {"started", "host", "isa"};
    qn__sha256_of(s->experiment, strlen(s->experiment), digest);
    for (int i = 0; i < 8; ++i)
        number = number << 8 | digest[i];
    snprintf(s->id, sizeof s->id, "%018" PRIu64,
             number % UINT64_C(900000000000000000) + UINT64_C(100000000000000000));
    qn__sha256_begin(&hash);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; ++i) {
        const char *fact = qn__past_run_text(s->run, facts[i]);
        qn__sha256_add(&hash, fact, strlen(fact) + 1);
    }
    const qn__json_node *command = qn__json_get(s->run->facts, "command");
    for (size_t i = 0; i < qn__json_count(command); ++i) {
        const char *word = qn__json_string(qn__json_at(command, i));
        qn__sha256_add(&hash, word ? word : "", word ? strlen(word) + 1 : 1);
    }
    qn__sha256_end(&hash, digest);
    qn__hex(digest, text);
    snprintf(s->run_id, sizeof s->run_id, "%.32s", text);
}

/* A URI of a path: bytes other than letters, digits and -._~/ as %XX. */
static void add_uri(qn__text *text, const char *path) {
    static const char plain[] = "-._~/";
    qn__text_add(text, "file://");
    for (; *path; path++) {
        const int letter = (*path >= 'a' && *path <= 'z') || (*path >= 'A' && *path <= 'Z') ||
                           (*path >= '0' && *path <= '9') || strchr(plain, *path);
        qn__text_add(text, letter ? "%c" : "%%%02X", (unsigned char)*path);
    }
}

/* A line "KEY: VALUE" of YAML; a text as JSON writes it is a text of YAML, too. */
static void add_line(qn__text *text, const char *key, const char *value) {
    qn__text_add(text, "%s: ", key);
    qn__text_add_json(text, value);
    qn__text_add(text, "\n");
}

static void add_place(qn__text *text, const char *key, const char *folder, const char *below) {
    qn__text_add(text, "%s: \"", key);
    add_uri(text, folder);
    qn__text_add(text, "%s\"\n", below);
}

static qn_status describe_experiment(const store *s, qn_error *err) {
    qn__text text = {0};
    char *path = NULL;
    qn_status status = qn__folder_path(s->experiment_folder, "meta.yaml", &path, err);
    /* Another run may have made it. */
    if (status == QN_OK && access(path, F_OK) != 0) {
        add_place(&text, "artifact_location", s->experiment_folder, "");
        qn__text_add(&text, "creation_time: %" PRId64 "\n", 1000 * s->run->started);
        add_line(&text, "experiment_id", s->id);
        qn__text_add(&text, "last_update_time: %" PRId64 "\n", 1000 * s->run->started);
        add_line(&text, "lifecycle_stage", "active");
        add_line(&text, "name", s->experiment);
        status = text.failed ? qn__fail_memory(err, text.size + 1, 1)
                             : write_bytes(path, text.data, text.size, err);
    }
    qn__text_release(&text);
    qn__free(path);
    return status;
}

static qn_status describe_run(const store *s, qn_error *err) {
    qn__text text = {0};
    const int state = state_of(s->run);
    add_place(&text, "artifact_uri", s->folder, "/artifacts");
    if (state == RUNNING)
        qn__text_add(&text, "end_time: null\n");
    else
        qn__text_add(&text, "end_time: %" PRId64 "\n", 1000 * s->run->ended);
    add_line(&text, "entry_point_name", "");
    add_line(&text, "experiment_id", s->id);
    add_line(&text, "lifecycle_stage", "active");
    add_line(&text, "run_id", s->run_id);
    add_line(&text, "run_name", s->name);
    add_line(&text, "run_uuid", s->run_id);
    add_line(&text, "source_name", "");
    qn__text_add(&text, "source_type: 4\n"); /* local */
    add_line(&text, "source_version", "");
    qn__text_add(&text, "start_time: %" PRId64 "\n", 1000 * s->run->started);
    qn__text_add(&text, "status: %d\ntags: []\n", state);
    add_line(&text, "user_id", "");
    return write_part(s, ".", "meta.yaml", &text, err);
}

/* ---------------------------------------------------------------------------------------- values
 */

/* A line for each epoch: milliseconds, value, step. */
static qn_status write_metric(const store *s, uint32_t column, qn_error *err) {
    const qn__past_run *run = s->run;
    qn__text text = {0};
    char number[40];
    for (uint64_t row = 0; row < run->epochs; ++row) {
        const float value = run->value[row * run->columns + column];
        if (isnan(value))
            continue;
        qn__float_text(value, number);
        qn__text_add(&text, "%" PRId64 " %s %" PRIu64 "\n", (int64_t)(1000 * run->when[row]),
                     number, qn__past_run_epoch(run, row));
    }
    if (text.size == 0 && !text.failed)
        return QN_OK;
    const char *name = run->name[column];
    return write_part(s, "metrics", strcmp(name, "rate") == 0 ? "learning_rate" : name, &text, err);
}

/* Whether a name of an untrusted file can be that of a file here. */
static int is_plain(const char *name) {
    return *name && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")];
}

static qn_status write_parameters(const store *s, qn_error *err) {
    const qn__json_node *recipe = qn__json_get(s->run->facts, "recipe");
    qn_status status = QN_OK;
    for (size_t i = 0; i < qn__json_count(recipe) && status == QN_OK; ++i) {
        const qn__json_node *node = qn__json_at(recipe, i);
        const char *key = qn__json_key(node), *word = qn__json_string(node);
        qn__text text = {0};
        char number[64];
        if (!key || !is_plain(key))
            continue;
        if (!word && !qn__past_run_number(node, number))
            continue; /* names of columns, null */
        qn__text_add(&text, "%s", word ? word : number);
        status = write_part(s, "params", key, &text, err);
    }
    return status;
}

static qn_status write_tag(const store *s, const char *name, const char *value, qn_error *err) {
    qn__text text = {0};
    if (!*value)
        return QN_OK;
    qn__text_add(&text, "%s", value);
    return write_part(s, "tags", name, &text, err);
}

static qn_status write_tags(const store *s, qn_error *err) {
    static const char *const tags[][2] = {{"quern.version", "version"},
                                          {"quern.model_digest", "model"},
                                          {"quern.host", "host"},
                                          {"quern.state", "state"}};
    qn_status status = write_tag(s, "mlflow.runName", s->name, err);
    for (size_t i = 0; i < sizeof tags / sizeof *tags && status == QN_OK; ++i)
        status = write_tag(s, tags[i][0], qn__past_run_text(s->run, tags[i][1]), err);
    return status;
}

static qn_status write_artifact(const store *s, const char *name, const qn__bytes *bytes,
                                qn_error *err) {
    char *folder = NULL, *path = NULL;
    qn_status status = qn__folder_path(s->folder, "artifacts", &folder, err);
    if (status == QN_OK)
        status = qn__folder_path(folder, name, &path, err);
    if (status == QN_OK)
        status = write_bytes(path, bytes->data, bytes->size, err);
    qn__free(folder);
    qn__free(path);
    return status;
}

/* ----------------------------------------------------------------------------------------- store
 */

static qn_status make_folders(store *s, const char *folder, qn_error *err) {
    static const char *const parts[] = {"metrics", "params", "tags", "artifacts"};
    if (qn__remote_is(folder)) {
        qn__fail(err, QN_UNSUPPORTED, "MLflow keeps its files in a folder of a machine");
        qn__at(err, "%s", folder);
        return qn__remedy(err, QN_UNSUPPORTED, "name such a folder");
    }
    qn_status status = qn__folder_make(folder, err);
    if (status != QN_OK)
        return status;
    s->root = realpath(folder, NULL);
    if (!s->root)
        return qn__fail_errno(err, "open the folder", folder);
    status = qn__folder_path(s->root, s->id, &s->experiment_folder, err);
    if (status == QN_OK)
        status = qn__folder_path(s->experiment_folder, s->run_id, &s->folder, err);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == QN_OK; ++i) {
        char *path = NULL;
        status = qn__folder_path(s->folder, parts[i], &path, err);
        if (status == QN_OK)
            status = qn__folder_make(path, err);
        qn__free(path);
    }
    return status;
}

static qn_status write_store(store *s, const char *folder, qn_error *err) {
    identify(s);
    qn_status status = make_folders(s, folder, err);
    if (status == QN_OK)
        status = write_parameters(s, err);
    for (uint32_t c = 1; c < s->run->columns && status == QN_OK; ++c)
        if (is_plain(s->run->name[c]))
            status = write_metric(s, c, err);
    if (status == QN_OK)
        status = write_tags(s, err);
    if (status == QN_OK)
        status = write_artifact(s, "run.json", &s->run->about, err);
    if (status == QN_OK)
        status = write_artifact(s, "metrics.csv", &s->run->metrics, err);
    if (status == QN_OK)
        status = describe_run(s, err);
    return status == QN_OK ? describe_experiment(s, err) : status;
}

qn_status qn_run_write_mlflow(const char *run_dir, const char *folder, const char *experiment,
                              const char *name, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(run_dir, err);
    QN__NEED(folder, err);
    qn__past_run run;
    qn_status status = qn__run_open(run_dir, &run, NULL, err);
    if (status != QN_OK)
        return status;
    char *own = name ? NULL : realpath(run_dir, NULL);
    const char *last = own ? strrchr(own, '/') : NULL;
    store s = {.run = &run,
               .experiment = experiment ? experiment : "quern",
               .name = name              ? name
                       : last && last[1] ? last + 1
                                         : "run"};
    status = write_store(&s, folder, err);
    free(own);
    free(s.root);
    qn__free(s.experiment_folder);
    qn__free(s.folder);
    qn__past_run_release(&run);
    return status;
}
