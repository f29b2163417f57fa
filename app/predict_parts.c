#include "predict_parts.h"
#include "format.h"
#include "message.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char RANK[] = "%r"; /* stands for the number of the rank */

/* For free(); NULL without memory. */
static char *name_of_rank(const char *name, uint32_t rank) {
    const size_t size = strlen(name) + 1;
    size_t places = 0;
    for (const char *at = name; (at = strstr(at, RANK)); at += 2)
        places++;
    char number[16], *made = malloc(size + places * sizeof number), *to = made;
    snprintf(number, sizeof number, "%u", (unsigned)rank);
    for (const char *at = name; made && *at;)
        if (strncmp(at, RANK, 2) == 0) {
            to += sprintf(to, "%s", number);
            at += 2;
        } else {
            *to++ = *at++;
        }
    if (made)
        *to = 0;
    return made;
}

static int check(const predict_flags *f) {
    if (!f->evaluate && qn_writes_to_database(f->out))
        return message_usage("name a file for each rank, such as -o predictions-%r.csv",
                             "predictions of parts go to files, not to a database");
    if (!f->evaluate && !strstr(f->out, RANK))
        return message_usage("name it such as -o predictions-%r.csv",
                             "with --data-parts each rank writes a file: -o needs %%r, the number "
                             "of the rank, in the name");
    if (f->output_labels && !strstr(f->output_labels, RANK))
        return message_usage("name it such as --output-labels labels-%r.npy",
                             "each rank writes a file of labels: --output-labels needs %%r");
    return -1;
}

int predict_parts_take(predict_flags *f) {
    if (!f->from.parts)
        return -1;
    int code = sources_take_parts(&f->from);
    if (code < 0)
        code = check(f);
    if (code < 0 && !f->evaluate) {
        const uint32_t rank = qn_cluster_rank(ranks_cluster());
        f->named = f->out;
        f->labels_named = f->output_labels;
        f->out = name_of_rank(f->named, rank);
        f->output_labels = f->labels_named ? name_of_rank(f->labels_named, rank) : NULL;
        if (!f->out || (f->labels_named && !f->output_labels))
            code = message_fail(QN_MEMORY, "out of memory", "", "");
    }
    return code;
}

void predict_parts_release(predict_flags *f) {
    if (f->named)
        free((char *)(uintptr_t)f->out);
    if (f->labels_named)
        free((char *)(uintptr_t)f->output_labels);
}

/* Where a rank has ended, *again is 1. */
static int mend(qn_parts *parts, int *again) {
    qn_error err;
    return qn_parts_mend(parts, again, &err) == QN_OK ? -1 : ranks_failed(&err);
}

int predict_parts_join(qn_predictions *predictions, qn_parts *parts, int evaluated,
                       qn_status status, const qn_error *err, int *again) {
    qn_error why;
    ranks_hold();
    int code = ranks_agree(status == QN_OK ? -1 : message_error(err), NULL, 0, 0);
    if (code >= 0)
        return code;
    const qn_status joined = qn_predictions_join(predictions, parts, evaluated, &why);
    if (joined == QN_IO)
        code = mend(parts, again);
    if (code >= 0 || *again)
        return code;
    return joined == QN_OK ? -1 : ranks_failed(&why);
}

/* The files of `rank`. */
static int write_files(const predict_flags *f, uint32_t rank, predict_parts_writer *write,
                       void *user) {
    qn_error err;
    char *out = name_of_rank(f->named, rank);
    char *labels = f->labels_named ? name_of_rank(f->labels_named, rank) : NULL;
    int code = -1;
    if (!out || (f->labels_named && !labels))
        code = message_fail(QN_MEMORY, "out of memory", "", "");
    else if (write(user, rank, out, labels, &err) != QN_OK)
        code = message_error(&err);
    free(out);
    free(labels);
    return code;
}

int predict_parts_write(const predict_flags *f, qn_parts *parts, predict_parts_writer *write,
                        void *user, int *again) {
    const qn_cluster *cluster = ranks_cluster();
    const uint32_t ranks = cluster ? qn_cluster_ranks(cluster) : 1;
    int code = -1;
    ranks_hold();
    for (uint32_t r = 0; r < ranks && code < 0; r++)
        if (qn_parts_range(parts, r, NULL, NULL))
            code = write_files(f, r, write, user);
    code = ranks_agree(code, NULL, 0, 0);
    return code < 0 ? mend(parts, again) : code;
}
