#include "predict_parts.h"
#include "format.h"
#include "message.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char RANK[] = "%r"; /* stands for the number of the rank */

/* For free(); NULL without memory. */
static char *name_of_rank(const char *name) {
    const size_t size = strlen(name) + 1;
    size_t places = 0;
    for (const char *at = name; (at = strstr(at, RANK)); at += 2)
        places++;
    char number[16], *made = malloc(size + places * sizeof number), *to = made;
    snprintf(number, sizeof number, "%u", (unsigned)qn_cluster_rank(ranks_cluster()));
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
        f->named = f->out;
        f->out = name_of_rank(f->out);
        f->labels_of_rank = f->output_labels ? name_of_rank(f->output_labels) : NULL;
        if (!f->out || (f->output_labels && !f->labels_of_rank))
            code = message_fail(QN_MEMORY, "out of memory", "", "");
        f->output_labels = f->labels_of_rank;
    }
    return code;
}

void predict_parts_release(predict_flags *f) {
    if (f->named)
        free((char *)(uintptr_t)f->out);
    free(f->labels_of_rank);
}

int predict_parts_join(qn_predictions *predictions, const qn_parts *parts, int evaluated,
                       qn_status status, const qn_error *err) {
    qn_error why;
    ranks_hold();
    const int code = ranks_agree(status == QN_OK ? -1 : message_error(err), NULL, 0, 0);
    if (code >= 0)
        return code;
    return qn_predictions_join(predictions, parts, evaluated, &why) == QN_OK ? -1
                                                                             : ranks_failed(&why);
}

/* A rank that has ended may have written nothing. */
static int check_alive(const predict_flags *f) {
    qn_cluster *cluster = ranks_cluster();
    if (qn_cluster_alive(cluster) == qn_cluster_ranks(cluster))
        return -1;
    return message_fail(QN_IO, "a rank has ended, and its predictions are missing", f->named,
                        "start all ranks again");
}

int predict_parts_write(const predict_flags *f, qn_status (*write)(void *user, qn_error *err),
                        void *user) {
    qn_error err;
    ranks_hold();
    int code = write(user, &err) == QN_OK ? -1 : message_error(&err);
    code = ranks_agree(code, NULL, 0, 1);
    return code < 0 ? ranks_agree(check_alive(f), NULL, 0, 0) : code;
}
