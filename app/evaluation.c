#include "evaluation.h"
#include "jsonline.h"
#include "plain.h"
#include <inttypes.h>
#include <math.h>

enum { LONGEST_NAME = 20 };

static void add(FILE *to, const char *name, double value, int *printed) {
    if (isfinite(value))
        fprintf(to, "%s%s %.4f", (*printed)++ ? ", " : "", name, value);
}

double evaluation_accuracy(const qn_score *score) {
    return score->items > 0 ? (double)score->correct / (double)score->items : (double)NAN;
}

void evaluation_line(FILE *to, const qn_evaluation *e, int loss) {
    int printed = 0;
    if (e && e->clusters)
        fprintf(to, "inertia %.17g of %" PRIu64 " items in %" PRIu32 " clusters\n", e->inertia,
                e->items, e->clusters);
    if (!e || e->real || e->clusters)
        return;
    add(to, "loss", e->loss, &printed);
    add(to, "perplexity", e->perplexity, &printed);
    add(to, "bits per byte", e->bits_per_byte, &printed);
    add(to, "mean IoU", e->mean_iou, &printed);
    add(to, "exact match", e->exact_match, &printed);
    add(to, "micro F1", e->micro_f1, &printed);
    add(to, "macro F1", e->f1, &printed);
    add(to, "AUC", e->auc, &printed);
    if (loss)
        add(to, "log loss", e->log_loss, &printed);
    add(to, "calibration error", e->calibration_error, &printed);
    add(to, "top-5 accuracy", e->top5_accuracy, &printed);
    if (printed)
        fputc('\n', to);
}

/* The name of a class on its left side, cut to whole characters and without what a terminal would
 * obey; or its number. */
static void print_name(FILE *to, const qn_class_evaluation *c, uint32_t number) {
    char digits[16];
    snprintf(digits, sizeof digits, "%" PRIu32, number);
    const int width = plain_print(to, c->name ? c->name : digits, SIZE_MAX, LONGEST_NAME);
    fprintf(to, "%*s", LONGEST_NAME - width, "");
}

static void print_cell(FILE *to, double value) {
    if (isfinite(value))
        fprintf(to, "  %9.4f", value);
    else
        fprintf(to, "  %9s", "-");
}

static void print_mean(FILE *to, const char *name, double precision, double recall, double f1,
                       double iou) {
    fprintf(to, "%-*s  %9s", LONGEST_NAME, name, "");
    print_cell(to, precision);
    print_cell(to, recall);
    print_cell(to, f1);
    if (isfinite(iou))
        print_cell(to, iou);
    fputc('\n', to);
}

void evaluation_table(FILE *to, const qn_evaluation *e) {
    if (!e || e->real || e->clusters || e->next)
        return;
    const char *what = e->answers && !e->mask ? "label" : "class";
    fprintf(to, "\n%-*s  %9s  %9s  %9s  %9s%s\n", LONGEST_NAME, what,
            e->tags   ? "tokens"
            : e->mask ? "pixels"
                      : "items",
            "precision", "recall", "F1",
            e->mask      ? "        IoU"
            : e->answers ? ""
                         : "        AUC");
    for (uint32_t c = 0; c < e->classes; c++) {
        const qn_class_evaluation *of = e->by_class[c];
        print_name(to, of, c);
        fprintf(to, "  %9" PRIu64, of->items);
        print_cell(to, of->precision);
        print_cell(to, of->recall);
        print_cell(to, of->f1);
        if (e->mask || !e->answers)
            print_cell(to, e->mask ? of->iou : of->auc);
        fputc('\n', to);
    }
    print_mean(to, "mean (macro)", e->precision, e->recall, e->f1, e->mean_iou);
    if (!e->answers)
        print_mean(to, "weighted by items", e->weighted_precision, e->weighted_recall,
                   e->weighted_f1, (double)NAN);
}

void evaluation_bins(FILE *to, const qn_evaluation *e) {
    if (!e || e->bins == 0)
        return;
    fprintf(to, "\n%-*s  %9s  %9s  %9s\n", LONGEST_NAME, "confidence", "items", "mean", "accuracy");
    for (uint32_t b = 0; b < e->bins; b++) {
        const qn_calibration_bin *bin = e->bin[b];
        if (bin->items == 0)
            continue;
        fprintf(to, "%.3f to %-*.3f  %9" PRIu64, bin->low, LONGEST_NAME - 9, bin->high, bin->items);
        print_cell(to, bin->confidence);
        print_cell(to, bin->accuracy);
        fputc('\n', to);
    }
}

void evaluation_field(const char *key, const qn_evaluation *e) {
    json_value(key, e ? e->json : "");
}
