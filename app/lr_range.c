#include "lr_range.h"
#include "command.h"
#include "jsonline.h"
#include "message.h"
#include "ranks.h"
#include <inttypes.h>
#include <math.h>
#include <quern/search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of the table that people read. */
enum { ROWS = 20 };

static const char *const ends[] = {[QN_LR_END_HIGH] = "it reached the highest rate",
                                   [QN_LR_END_DIVERGED] =
                                       "the loss was more than four times the lowest one",
                                   [QN_LR_END_NOT_FINITE] = "numbers left the range of float32"};
static const char *const end_names[] = {
    [QN_LR_END_HIGH] = "high", [QN_LR_END_DIVERGED] = "diverged", [QN_LR_END_NOT_FINITE] = "range"};

static int read_range(const char *text, qn_lr_range_options *o) {
    char low[40], high[40], steps[12] = "", rest;
    uint64_t count = o->steps;
    if (strcmp(text, "auto") == 0)
        return 1;
    const int parts = sscanf(text, "%39[^,],%39[^,],%11[0-9]%c", low, high, steps, &rest);
    if (parts < 2 || parts > 3 || !read_float(low, &o->low) || !read_float(high, &o->high))
        return 0;
    if (parts == 2 && strlen(low) + 1 + strlen(high) != strlen(text))
        return 0;
    if (parts == 3)
        count = strtoull(steps, NULL, 10);
    o->steps = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    return 1;
}

int lr_range_check(const char *range) {
    qn_lr_range_options o;
    qn_lr_range_options_init(&o);
    if (read_range(range, &o))
        return -1;
    return message_usage(
        "write auto, the lowest and the highest rate, such as 1e-6,10, or a number "
        "of steps too: 1e-6,10,200",
        "--lr-range cannot be \"%s\"", range);
}

/* ---------------------------------------------------------------------------------- the output */

typedef struct result {
    const lr_range_job *job;
    const qn_lr_range *found;
} result;

static void print_json(const result *r) {
    const qn_lr_range *f = r->found;
    json_begin("lr-range");
    json_text("end", end_names[f->end]);
    json_number("suggestion", f->suggestion > 0 ? (double)f->suggestion : NAN);
    json_number("cautious", (double)f->cautious);
    json_number("lowest", (double)f->rate[f->lowest]);
    json_flag("identical", f->identical);
    json_open("steps", '[');
    for (uint32_t i = 0; i < f->points; i++) {
        json_open(NULL, '{');
        json_number("learning_rate", (double)f->rate[i]);
        json_number("loss", f->loss[i]);
        json_number("smoothed", f->smoothed[i]);
        json_close('}');
    }
    json_close(']');
    json_end();
}

static void print_row(const qn_lr_range *f, uint32_t i) {
    printf("%6" PRIu32 "  %-13.3g  %-10.5g  %-10.5g%s%s\n", i + 1, (double)f->rate[i], f->loss[i],
           f->smoothed[i], i == f->lowest ? "  lowest" : "",
           i == f->steepest && i > 0 ? "  steepest descent" : "");
}

static void print_table(const qn_lr_range *f) {
    const uint32_t every = f->points / ROWS + 1;
    printf("%6s  %-13s  %-10s  %-10s\n", "step", "learning rate", "loss", "smoothed");
    for (uint32_t i = 0; i < f->points; i++)
        if (i % every == 0 || i + 1 == f->points || i == f->lowest || (i == f->steepest && i > 0))
            print_row(f, i);
}

static void print_files(const result *r) {
    const char *folder = r->job->folder;
    if (folder && r->found->identical)
        printf("%s/lr-range.csv: identical to the record that was there\n", folder);
    else if (folder)
        printf("%s/lr-range.csv has all steps, %s/lr-range.svg is their picture\n", folder, folder);
}

static int print(void *user) {
    const result *r = user;
    const qn_lr_range *f = r->found;
    if (r->job->json) {
        print_json(r);
        return EXIT_DONE;
    }
    print_table(f);
    printf("\nended after step %" PRIu32 ": %s\n", f->points, ends[f->end]);
    print_files(r);
    if (f->suggestion > 0)
        printf("suggested learning rate: %.3g, where the loss falls most; more cautious: %.3g, a "
               "tenth "
               "of that of the lowest loss\n\ntrain with it:\n%s --lr %.3g\n",
               (double)f->suggestion, (double)f->cautious, r->job->command, (double)f->suggestion);
    else if (f->lowest <= QN_LR_SETTLING)
        printf("none is suggested: the first ten steps are too noisy to tell, and the loss did not "
               "fall after them; try more steps, lower rates, or scale the inputs\n");
    else
        printf("none is suggested: the loss did not fall; try lower rates, or scale the inputs\n");
    return EXIT_DONE;
}

/* ---------------------------------------------------------------------------------- the search */

static void on_note(void *user, const char *text) {
    (void)user;
    message_note("note: %s", text);
}

static int find(const lr_range_job *job, const sources *from, const qn_model *start) {
    qn_train_options training;
    qn_lr_range_options o;
    qn_lr_range *found = NULL;
    qn_error err = {0};
    train_fill_recipe(job->train, from, &training);
    training.compute = compute_of(job->compute);
    training.compute.cluster = ranks_cluster();
    training.init_from = start;
    training.on_note = on_note;
    qn_lr_range_options_init(&o);
    read_range(job->range, &o);
    o.train = &training;
    o.folder = job->folder;
    if (qn_lr_range_find(&o, from->train, &found, &err) != QN_OK)
        return ranks_failed(&err);
    result r = {job, found};
    const int code = ranks_conclude(&err, print, &r);
    qn_lr_range_free(found);
    return code;
}

int lr_range_find(const lr_range_job *job) {
    qn_model *start = NULL;
    qn_error err;
    sources from;
    if (job->train->init_from && qn_model_share(ranks_cluster(), ranks_data_from_first(),
                                                job->train->init_from, &start, &err) != QN_OK)
        return ranks_failed(&err);
    int code = sources_open_to_start(&job->train->from, job->compute->threads, start, &from);
    if (code < 0) {
        ranks_hold();
        code = find(job, &from, start);
        sources_close(&from);
    }
    qn_model_free(start);
    return code;
}
