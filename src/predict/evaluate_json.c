#include "predict/evaluate.h"

#include "base/text/text.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The shorter of two texts that are read as the same double. */
static void add(qn__text *t, const char *key, double value) {
    char text[32];
    snprintf(text, sizeof text, "%.15g", value);
    qn__text_add_number(t, key, strtod(text, NULL) == value ? 15 : 17, value);
}

static void add_class(qn__text *t, const qn_class_evaluation *c) {
    qn__text_add(t, "{\"name\": ");
    qn__text_add_json(t, c->name);
    qn__text_add(t, ", \"items\": %" PRIu64 ", \"predicted\": %" PRIu64 ", \"correct\": %" PRIu64,
                 c->items, c->predicted, c->correct);
    add(t, "precision", c->precision);
    add(t, "recall", c->recall);
    add(t, "f1", c->f1);
    add(t, "auc", c->auc);
    qn__text_add(t, "}");
}

static void add_bin(qn__text *t, const qn_calibration_bin *b) {
    qn__text_add(t, "{\"items\": %" PRIu64, b->items);
    add(t, "low", b->low);
    add(t, "high", b->high);
    add(t, "confidence", b->confidence);
    add(t, "accuracy", b->accuracy);
    qn__text_add(t, "}");
}

/* Several answers to an item. */
static void add_answer(qn__text *t, const qn_class_evaluation *c, int mask) {
    qn__text_add(t, "{\"name\": ");
    qn__text_add_json(t, c->name);
    qn__text_add(t, ", \"targets\": %" PRIu64 ", \"predicted\": %" PRIu64 ", \"correct\": %" PRIu64,
                 c->items, c->predicted, c->correct);
    add(t, "precision", c->precision);
    add(t, "recall", c->recall);
    add(t, "f1", c->f1);
    if (mask)
        add(t, "iou", c->iou);
    qn__text_add(t, "}");
}

static void add_answers(qn__text *t, const qn_evaluation *e) {
    qn__text_add(t, ", \"targets\": %" PRIu64 ", \"correct\": %" PRIu64, e->targets, e->correct);
    add(t, "accuracy", e->accuracy);
    if (e->mask) {
        add(t, "mean_iou", e->mean_iou);
    } else {
        add(t, "exact_match", e->exact_match);
        add(t, "micro_precision", e->micro_precision);
        add(t, "micro_recall", e->micro_recall);
        add(t, "micro_f1", e->micro_f1);
    }
    add(t, "precision", e->precision);
    add(t, "recall", e->recall);
    add(t, "f1", e->f1);
    qn__text_add(t, ", \"%s\": [", e->mask ? "classes" : "labels");
    for (uint32_t c = 0; c < e->classes; ++c) {
        qn__text_add(t, "%s", c > 0 ? ", " : "");
        add_answer(t, e->by_class[c], e->mask);
    }
    qn__text_add(t, "]");
}

/* Tokens that come next. */
static void add_next(qn__text *t, const qn_evaluation *e) {
    qn__text_add(t, ", \"tokens\": %" PRIu64 ", \"correct\": %" PRIu64, e->targets, e->correct);
    add(t, "accuracy", e->accuracy);
    add(t, "loss", e->loss);
    add(t, "perplexity", e->perplexity);
    qn__text_add(t, ", \"bytes\": %" PRIu64, e->bytes);
    add(t, "bits_per_byte", e->bits_per_byte);
}

static void add_all(qn__text *t, const qn_evaluation *e) {
    qn__text_add(t, ", \"correct\": %" PRIu64, e->correct);
    add(t, "accuracy", e->accuracy);
    add(t, "top5_accuracy", e->top5_accuracy);
    add(t, "precision", e->precision);
    add(t, "recall", e->recall);
    add(t, "f1", e->f1);
    add(t, "weighted_precision", e->weighted_precision);
    add(t, "weighted_recall", e->weighted_recall);
    add(t, "weighted_f1", e->weighted_f1);
    add(t, "auc", e->auc);
    add(t, "log_loss", e->log_loss);
    add(t, "calibration_error", e->calibration_error);
    qn__text_add(t, ", \"classes\": [");
    for (uint32_t c = 0; c < e->classes; ++c) {
        qn__text_add(t, "%s", c > 0 ? ", " : "");
        add_class(t, e->by_class[c]);
    }
    qn__text_add(t, "], \"calibration\": [");
    for (uint32_t b = 0; b < e->bins; ++b) {
        qn__text_add(t, "%s", b > 0 ? ", " : "");
        add_bin(t, e->bin[b]);
    }
    qn__text_add(t, "]");
}

char *qn__evaluation_json(const qn_evaluation *e, qn_error *err) {
    qn__text t = {0};
    qn__text_add(&t, "{\"items\": %" PRIu64 ", \"weighted\": %s", e->items,
                 e->weighted ? "true" : "false");
    if (e->clusters) {
        qn__text_add(&t, ", \"clusters\": %" PRIu32, e->clusters);
        add(&t, "inertia", e->inertia);
    } else if (e->next) {
        add_next(&t, e);
    } else if (e->answers) {
        add_answers(&t, e);
    } else if (e->real) {
        add(&t, "mae", e->mae);
        add(&t, "rmse", e->rmse);
        add(&t, "r2", e->r2);
    } else {
        add_all(&t, e);
    }
    qn__text_add(&t, "}");
    return qn__text_take(&t, err);
}
