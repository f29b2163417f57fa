/* The measures of the record's evaluation: of the test set, else of the validation set. */
#include "report/page/page.h"

#include <math.h>

static const struct {
    const char *key, *title;
} measures[] = {{"accuracy", "accuracy"},
                {"mean_iou", "IoU, mean of the classes"},
                {"exact_match", "items all of whose labels are right"},
                {"micro_precision", "precision of all labels together"},
                {"micro_recall", "recall of all labels together"},
                {"micro_f1", "F1 of all labels together"},
                {"top5_accuracy", "label among the five likeliest classes"},
                {"precision", "precision, mean of the classes"},
                {"recall", "recall, mean of the classes"},
                {"f1", "F1, mean of the classes"},
                {"weighted_precision", "precision, weighted by items"},
                {"weighted_recall", "recall, weighted by items"},
                {"weighted_f1", "F1, weighted by items"},
                {"auc", "ROC AUC"},
                {"log_loss", "log loss"},
                {"calibration_error", "calibration error"},
                {"mae", "MAE"},
                {"rmse", "RMSE"},
                {"r2", "R2"}};
enum { MEASURES = sizeof measures / sizeof *measures, BINS = 64 };

/* How often predictions of a score are right: on the diagonal where scores are probabilities. */
static void draw_calibration(qn__page *page, const qn__json_node *bins) {
    float x[BINS], y[BINS];
    static const float whole[] = {0, 1};
    size_t points = 0;
    for (size_t i = 0; i < qn__json_count(bins) && points < BINS; ++i) {
        const qn__json_node *bin = qn__json_at(bins, i);
        const double confidence = qn__fact_number(bin, "confidence"),
                     right = qn__fact_number(bin, "accuracy");
        if (isnan(confidence) || isnan(right))
            continue;
        x[points] = (float)confidence;
        y[points++] = (float)right;
    }
    const qn__chart_line line[] = {{"predictions", x, y, 1, points},
                                   {"perfect calibration", whole, whole, 1, 2}};
    if (points == 0)
        return;
    qn__text_add(&page->html, "<div class=\"charts\">\n");
    qn__page_lines(page, "calibration", "Calibration: accuracy by score", "score", line, 2);
    qn__text_add(&page->html, "</div>\n");
}

void qn__page_evaluation(qn__page *page) {
    const qn__json_node *all = qn__json_get(page->run->facts, "evaluation");
    const qn__json_node *test = qn__json_get(all, "test");
    const qn__json_node *one = qn__json_is_object(test) ? test : qn__json_get(all, "valid");
    if (!qn__json_is_object(one))
        return;
    qn__page_section(page, "evaluation", "Evaluation");
    qn__text_add(&page->html, "<p>Of the %s set, when the training had ended.</p>\n",
                 one == test ? "test" : "validation");
    qn__page_table(&page->html, "Evaluation", NULL, NULL);
    for (int i = 0; i < MEASURES; ++i) {
        const double value = qn__fact_number(one, measures[i].key);
        if (!isnan(value))
            qn__text_add(&page->html,
                         "<tr><th scope=\"row\">%s</th><td class=\"n\">%.6g</td></tr>\n",
                         measures[i].title, value);
    }
    qn__page_end_table(&page->html);
    qn__page_answers(page, one);
    draw_calibration(page, qn__json_get(one, "calibration"));
    qn__page_end_section(page);
}
