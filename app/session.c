#include "session.h"
#include "stage_predictions.h"
#include "compute.h"
#include "evaluation.h"
#include "format.h"
#include "interrupt.h"
#include "jsonline.h"
#include "launched.h"
#include "message.h"
#include "model_text.h"
#include "ranks.h"
#include "report.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED_CLASSES = 5 };

/* What confirms an interruption while the run trains, and after its last step. */
static const char stopping[] =
    "\nstopping at the end of this step; press Ctrl-C again to stop at once\n";
static const char finishing[] =
    "\nthe last step is done, the result is being written; press Ctrl-C again to stop at once\n";

static void on_step(void *user, const qn_step_event *event) {
    launched_step(event);
    if (ranks_is_writer())
        progress_step(&((session *)user)->bar, event);
}

/* The stream of events belongs to one rank. */
static void add_note_event(const session *s, const char *text) {
    const char *name = ranks_name();
    if (!s->json || !ranks_is_writer())
        return;
    json_begin("note");
    json_message("text", text);
    if (name)
        json_text("rank", name);
    json_end();
}

static void on_warning(void *user, const char *text) {
    session *s = user;
    const char *name = ranks_name();
    progress_clear(&s->bar);
    add_note_event(s, text);
    message_warning("note: %s%s%s", name ? name : "", name ? ": " : "", text);
}

static void on_note(void *user, const char *text) {
    session *s = user;
    const char *name = ranks_name();
    progress_clear(&s->bar);
    if (s->json && !ranks_is_writer()) {
        message_aside(text, "");
        return;
    }
    add_note_event(s, text);
    message_note("note: %s%s%s", name ? name : "", name ? ": " : "", text);
}

static void score_field(const char *set, const char *name, const qn_score *score, double value) {
    char key[32];
    snprintf(key, sizeof key, "%s_%s", set, name);
    json_number(key, score->items > 0 ? value : (double)NAN);
}

static void score_fields(const char *set, const qn_epoch_event *e, const qn_score *score) {
    score_field(set, "loss", score, score->loss);
    if (!e->real) {
        score_field(set, "accuracy", score, evaluation_accuracy(score));
        if (e->next)
            score_field(set, "perplexity", score, exp(score->loss));
        return;
    }
    score_field(set, "mae", score, score->mae);
    score_field(set, "rmse", score, score->rmse);
    score_field(set, "r2", score, score->r2);
}

/* Says once that the network does no better than guessing, whose loss is log(classes), and that
 * this does not change. The first epoch begins with weights that know nothing. */
static void note_guessing(session *s, const qn_epoch_event *e) {
    const int last = e->epoch == e->epochs, falls = !(e->train.loss >= s->loss_before);
    s->loss_before = e->train.loss;
    if (s->guessing <= 0 || !(e->train.loss > s->guessing) || e->epoch == 1 || (falls && !last))
        return;
    message_note("note: the loss is above %.3f, that of guessing: %s", s->guessing,
                 last ? "a lower --lr, another --scale or more epochs may help"
                      : "if it does not fall, take a lower --lr");
    s->guessing = 0;
}

/* Returns 0 when the first file cannot be written; others are not tried then. */
static int write_predictions(session *s, uint32_t stage) {
    return !s->predictions || s->unwritten.status != QN_OK ||
           stage_predictions_write(s->predictions, s->train, s->from, stage, &s->unwritten) ==
               QN_OK;
}

static void on_epoch(void *user, const qn_epoch_event *e) {
    session *s = user;
    if (!e->reports)
        return;
    s->stage = e->stage_ends ? 0 : e->stage;
    if (e->stage_ends && !write_predictions(s, e->stage))
        on_note(s, "some predictions cannot be written; the training continues");
    if (!s->json) {
        progress_epoch(&s->bar, e);
        note_guessing(s, e);
        return;
    }
    json_begin("epoch");
    json_count("epoch", e->epoch);
    json_count("epochs", e->epochs);
    json_count("items", e->train.items);
    json_number("seconds", e->seconds);
    json_number("items_per_s", e->items_per_second);
    json_number("rate", (double)(float)e->learning_rate);
    if (e->stages > 1)
        json_count("stage", e->stage);
    score_fields("train", e, &e->train);
    score_fields("valid", e, &e->valid);
    score_fields("test", e, &e->test);
    json_end();
}

/* The facts of the announcement and the "start" event. */
typedef struct facts {
    const qn_model *model;
    const char *given;                     /* the text that named it; NULL: none did */
    uint64_t items, steps, steps_of_epoch; /* training items, after the split */
    uint64_t complete;                     /* before the split, without those that are dropped */
    const qn_worker_report *const *worker;
    uint32_t workers;
    int threads; /* of the CPU's worker; 0: it takes no part */
    char isa[16], device[128];
    qn_memory memory;
} facts;

/* Items without a missing value. */
static uint64_t complete_items(const qn_data *data) {
    const uint64_t items = qn_data_items(data);
    const uint32_t features = qn_data_features(data);
    const float *value = qn_data_type_of(data) == QN_F32 ? qn_data_values(data) : NULL;
    uint64_t complete = items;
    for (uint64_t i = 0; value && i < items; i++, value += features) {
        uint32_t k = 0;
        while (k < features && !isnan(value[k]))
            k++;
        complete -= k < features;
    }
    return complete;
}

/* Of a corpus, the item between both parts is in none. */
static int leaves_one_out(const session *s) {
    return s->from->valid_fraction > 0 && qn_data_context(s->from->train) > 0;
}

/* The split of docs/exactness.md 2.3; a float times a count below 2^29 is exact as a double. */
static uint64_t items_left(const session *s, uint64_t n) {
    const uint64_t valid = (uint64_t)floor((double)s->from->valid_fraction * (double)n + 0.5);
    return n - valid - (uint64_t)leaves_one_out(s);
}

static void gather(const session *s, const qn_train_options *o, facts *f) {
    qn_device_info cpu = {.size = sizeof(qn_device_info)};
    qn_error err;
    f->complete = strcmp(o->missing, "drop") == 0 ? complete_items(s->from->train)
                                                  : qn_data_items(s->from->train);
    f->items = items_left(s, f->complete);
    const uint64_t batch = o->batch ? o->batch : f->items; /* 0: all items */
    f->steps_of_epoch = (f->items + batch - 1) / batch;
    f->steps = f->steps_of_epoch * o->epochs;
    f->worker = qn_train_workers(s->train, &f->workers);
    f->memory = (qn_memory){.size = sizeof f->memory};
    (void)qn_train_memory(s->train, &f->memory, NULL);
    f->threads = 0;
    f->isa[0] = f->device[0] = '\0';
    for (uint32_t i = 0; i < f->workers; i++)
        if (strcmp(f->worker[i]->name, "cpu") == 0)
            f->threads = f->worker[i]->cores;
    if (f->threads == 0 || qn_device_get(0, &cpu, &err) != QN_OK)
        return;
    int automatic = !o->compute.isa || strcmp(o->compute.isa, "auto") == 0;
    snprintf(f->isa, sizeof f->isa, "%s", automatic ? cpu.isa : o->compute.isa);
    snprintf(f->device, sizeof f->device, "%s", cpu.name);
}

/* Before the first step only a device that could not be opened has a note. */
static int is_there(const qn_worker_report *w) { return !w->lost && !*w->note; }

static void start_event(const session *s, const qn_train_options *o, const facts *f) {
    char text[128];
    json_begin("start");
    json_count("items", f->items);
    json_count("features", qn_data_features(s->from->train));
    json_count("classes", qn_data_classes(s->from->train));
    json_count("parameters", qn_model_parameters(f->model));
    json_open("layers", '[');
    for (uint32_t i = 0; i < qn_model_layers(f->model); i++) {
        qn_model_layer_text(f->model, i, text, sizeof text);
        json_text(NULL, text);
    }
    json_close(']');
    json_text("arith", o->arith);
    if (qn_data_weights(s->from->train))
        json_text("weight", qn_data_weight_name(s->from->train));
    if (o->class_weight)
        json_text("class_weight", o->class_weight);
    if (o->augment)
        json_text("augment", o->augment);
    if (o->stages)
        json_text("stages", o->stages);
    json_count("epochs", o->epochs);
    json_count("steps", f->steps);
    json_count("memory_bytes", f->memory.all);
    json_count("memory_batch_bytes", f->memory.batch);
    json_count("memory_parameters_bytes", f->memory.parameters);
    if (f->memory.kept)
        json_count("memory_kept_bytes", f->memory.kept);
    json_open("workers", '[');
    for (uint32_t i = 0; i < f->workers; i++)
        if (is_there(f->worker[i]))
            json_text(NULL, f->worker[i]->name);
    json_close(']');
    json_open("ranks", '[');
    for (uint32_t i = 0; i < qn_cluster_ranks(o->compute.cluster); i++)
        json_text(NULL, qn_cluster_name(o->compute.cluster, i));
    json_close(']');
    json_count("threads", (uint64_t)f->threads);
    json_text("isa", f->isa);
    json_text("device", f->device);
    json_text("data", qn_data_digest(s->from->train));
    json_end();
}

/* What an item has: "784 features", or "64 tokens and the next one". */
static void describe_values(const qn_data *data, char *text, size_t size) {
    const uint32_t features = qn_data_features(data), context = qn_data_context(data);
    const uint32_t shown = context ? context : features;
    snprintf(text, size, "%" PRIu32 " %s%s%s", shown, qn_data_tokens(data) ? "token" : "feature",
             shown == 1 ? "" : "s", context ? " and the next one" : "");
}

static void announce_data(const session *s, const facts *f) {
    const qn_data *data = s->from->train;
    char items[32], more[192] = "";
    const uint64_t dropped = qn_data_items(data) - f->complete;
    if (dropped > 0)
        snprintf(more, sizeof more, "; %s more left out", format_count(dropped, items));
    if (s->from->test)
        snprintf(more + strlen(more), sizeof more - strlen(more), "; test set of %s",
                 format_count(qn_data_items(s->from->test), items));
    if (s->from->valid_fraction > 0)
        snprintf(more + strlen(more), sizeof more - strlen(more), "; validation set of %s",
                 format_count(f->complete - f->items - (uint64_t)leaves_one_out(s), items));
    if (leaves_one_out(s))
        snprintf(more + strlen(more), sizeof more - strlen(more),
                 " at the end; one item between is left out");
    format_count(f->items, items);
    if (s->from->embedded)
        message_note("data    no --data: the built-in digits, drawn in memory (seed %d)",
                     EMBEDDED_SEED);
    else
        message_note("data    %s (%s)", s->data_path, qn_data_format(data));
    const uint32_t classes = qn_data_classes(data);
    const char *label = qn_data_label_name(data);
    const char *weight = qn_data_weight_name(data);
    char labels[40] = ", real labels", named[192] = "", values[64];
    describe_values(data, values, sizeof values);
    qn_several several = {.size = sizeof several};
    qn_error none;
    if (qn_data_several(data, &several, &none) == QN_OK && several.each > 0 && several.rows == 0)
        snprintf(labels, sizeof labels, ", %u labels each", several.each);
    else if (several.each > 0)
        snprintf(labels, sizeof labels, ", %s %u class%s",
                 qn_data_tokens(data) ? "tags of" : "masks with", classes,
                 classes == 1 ? "" : "es");
    else if (qn_data_target(data) == QN_TARGET_NONE)
        *labels = '\0';
    else if (!qn_data_targets(data))
        snprintf(labels, sizeof labels, ", %u class%s", classes, classes == 1 ? "" : "es");
    if (label && strcmp(label, "label") != 0)
        snprintf(named, sizeof named, " of column \"%.60s\"", label);
    if (qn_data_weights(data))
        snprintf(named + strlen(named), sizeof named - strlen(named),
                 weight ? ", weights of column \"%.60s\"" : ", with weights", weight);
    message_note("        %s item%s of %s%s%s%s", items, f->items == 1 ? "" : "s", values, labels,
                 named, more);
}

/* Classes that no item has: probably another column was meant, or labels count from 1. The text is
 * empty if there are none. */
static void describe_empty_classes(const qn_data *data, char *text, size_t size) {
    const uint32_t classes = qn_data_classes(data);
    const int32_t *labels = qn_data_labels(data);
    uint32_t empty = 0, named = 0;
    char list[128] = "";
    *text = '\0';
    char *seen = labels ? calloc(classes, 1) : NULL;
    for (uint64_t i = 0; seen && i < qn_data_items(data); i++)
        seen[labels[i]] = 1;
    for (uint32_t c = 0; seen && c < classes; c++) {
        if (!seen[c] && named < NAMED_CLASSES)
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%" PRIu32,
                     named++ ? ", " : "", c);
        empty += !seen[c];
    }
    free(seen);
    if (empty > named)
        snprintf(list + strlen(list), sizeof list - strlen(list), " and %" PRIu32 " more",
                 empty - named);
    if (empty > 0)
        snprintf(text, size, "%" PRIu32 " of %" PRIu32 " classes %s no item: %s%s", empty, classes,
                 empty == 1 ? "has" : "have", list,
                 strncmp(qn_data_format(data), "csv", 3) == 0
                     ? "; --label names the column of labels, if another was meant"
                     : "");
    else if (classes == 1)
        snprintf(text, size, "all items are of one class, so there is nothing to learn");
}

static void note_empty_classes(session *s) {
    char text[320];
    describe_empty_classes(s->from->train, text, sizeof text);
    if (*text)
        on_note(s, text);
}

static const char *optimiser(const qn_train_options *o, char *text, size_t size) {
    if (qn_choice_takes(QN_CHOICE_OPTIMIZER, o->optimizer, "momentum"))
        snprintf(text, size, "%s %g", o->optimizer, (double)o->momentum);
    else
        snprintf(text, size, "%s", o->optimizer);
    return text;
}

/* Whether a step takes all items: there is neither batch nor learning rate. */
static int is_full_batch(const qn_train_options *o) {
    return qn_choice_takes(QN_CHOICE_OPTIMIZER, o->optimizer, "tolerance");
}

static const char *stepping(const qn_train_options *o, char *text, size_t size) {
    char name[48];
    if (is_full_batch(o))
        snprintf(text, size, "%s, weight decay %g, l1 %g, tolerance %g", o->optimizer,
                 (double)o->weight_decay, (double)o->l1, (double)o->tolerance);
    else
        snprintf(text, size, "%s, learning rate %g, batch %" PRIu32,
                 optimiser(o, name, sizeof name), (double)o->learning_rate, o->batch);
    return text;
}

/* The ranks, if there are several; of very many, those that fit a line. */
static void announce_ranks(void) {
    char list[256] = "";
    uint32_t ranks = qn_cluster_ranks(ranks_cluster()), i = 0;
    if (!ranks_cluster())
        return;
    for (size_t used = 0; i < ranks && used < 160; i++, used = strlen(list))
        snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "",
                 qn_cluster_name(ranks_cluster(), i));
    message_note("ranks   %" PRIu32 ": %s%s", ranks, list, i < ranks ? ", ..." : "");
}

/* One line for the CPU alone, otherwise one more for each device. */
static void announce_run(const qn_train_options *o, const facts *f) {
    char steps[32], cpu[192], how_long[96];
    snprintf(cpu, sizeof cpu, "%d thread%s, %s on %s", f->threads, f->threads == 1 ? "" : "s",
             f->isa, f->device);
    uint32_t there = 0;
    for (uint32_t i = 0; i < f->workers; i++)
        there += (uint32_t)is_there(f->worker[i]); /* a note has named the others already */
    if (is_full_batch(o))
        snprintf(how_long, sizeof how_long, "%u iterations at most", o->epochs);
    else
        snprintf(how_long, sizeof how_long, "%u epoch%s of %s step%s", o->epochs,
                 o->epochs == 1 ? "" : "s", format_count(f->steps_of_epoch, steps),
                 f->steps_of_epoch == 1 ? "" : "s");
    if (there == 1 && f->threads > 0) {
        message_note("run     %s, %s\n", how_long, cpu);
        return;
    }
    message_note("run     %s", how_long);
    for (uint32_t i = 0; i < f->workers; i++) {
        const qn_worker_report *w = f->worker[i];
        if (is_there(w))
            message_note("        %-10s %s%s", w->name,
                         strcmp(w->name, "cpu") == 0 ? cpu : w->device, --there ? "" : "\n");
    }
}

/* The network as a line has it; its text is that of the recipe. */
static void model_line(const session *s, const facts *f, char line[MODEL_TITLE]) {
    char text[MODEL_TITLE];
    const char *begin = strstr(qn_model_recipe(f->model), "\"model\":\"");
    begin += strlen("\"model\":\"");
    snprintf(text, sizeof text, "%.*s", (int)strcspn(begin, "\""), begin);
    model_title(f->given, text, s->verbose, line);
}

static void announce(const session *s, const qn_train_options *o, const facts *f) {
    char model[MODEL_TITLE], number[32], how[160], all[24], batch[24], parameters[24], kept[24];
    model_line(s, f, model);
    announce_data(s, f);
    message_note("model   %s (%s parameters)", model,
                 format_count(qn_model_parameters(f->model), number));
    const int integers = strcmp(o->arith, "f32") != 0;
    message_note("recipe  loss %s, %s, scale %s, seed %" PRIu64 "%s%s%s%.200s%s%.100s", o->loss,
                 stepping(o, how, sizeof how), o->scale, o->seed, integers ? ", arith " : "",
                 integers ? o->arith : "", o->class_weight ? ", class weights " : "",
                 o->class_weight ? o->class_weight : "", o->augment ? ", augment " : "",
                 o->augment ? o->augment : "");
    message_note("memory  about %s beside the data: %s for a %s, %s for the parameters%s%s%s",
                 format_bytes(f->memory.all, all), format_bytes(f->memory.batch, batch),
                 f->memory.parts > 1 ? "part of a batch" : "batch",
                 format_bytes(f->memory.parameters, parameters), f->memory.kept ? ", " : "",
                 f->memory.kept ? format_bytes(f->memory.kept, kept) : "",
                 f->memory.kept ? " for the outputs that are kept" : "");
    if (o->stages)
        message_note("stages  %.400s", o->stages);
    announce_ranks();
    announce_run(o, f);
}

int session_open(session *s, qn_train_options *options) {
    qn_error err;
    facts f;
    qn_model *untrained = NULL;
    progress_init(&s->bar, s->quiet || s->json);
    options->user = s;
    options->on_step = on_step;
    options->on_epoch = on_epoch;
    options->on_note = on_note;
    options->on_warning = on_warning;
    if (qn_train_open(options, s->from->train, s->from->valid, s->from->test, &s->train, &err) !=
        QN_OK)
        return ranks_failed(&err);
    s->answers = !s->quiet && !s->json && ranks_is_writer();
    interrupt_watch(s->train, s->answers ? stopping : NULL);
    compute_note(&options->compute);
    if (ranks_is_writer())
        note_empty_classes(s);
    if ((s->quiet && !s->json) || !ranks_is_writer())
        return -1;
    if (qn_train_model(s->train, &untrained, &err) != QN_OK)
        return message_error(&err);
    /* The recipe that the options became: with names and numbers in place of defaults. */
    qn_train_options recipe = *options;
    qn_status status = qn_train_options_from_model(untrained, s->from->train, &recipe, &err);
    if (strcmp(recipe.loss, "cross-entropy") == 0)
        s->guessing = log(qn_data_classes(s->from->train));
    gather(s, &recipe, &f);
    f.model = untrained;
    f.given = options->model;
    if (status == QN_OK && s->json)
        start_event(s, &recipe, &f);
    else if (status == QN_OK)
        announce(s, &recipe, &f);
    qn_model_free(untrained);
    return status == QN_OK ? -1 : message_error(&err);
}

qn_status session_run(session *s, qn_error *err) {
    qn_status status = qn_train_run(s->train, err);
    if (status == QN_OK)
        interrupt_watch(s->train, s->answers ? finishing : NULL);
    progress_clear(&s->bar);
    return status;
}

qn_status session_report(session *s, qn_train_report *report, qn_error *err) {
    if (s->stage > 0) /* early stopping */
        (void)write_predictions(s, s->stage);
    return qn_train_report_get(s->train, report, err);
}

void session_print(const session *s, const qn_train_report *report) {
    if (!s->quiet && !s->json)
        report_print(report, s->verbose);
}

void session_close(session *s) {
    interrupt_watch(NULL, NULL);
    progress_clear(&s->bar);
    qn_train_close(s->train);
    s->train = NULL;
}
