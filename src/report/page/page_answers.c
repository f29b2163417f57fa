/* Several answers to an item: the numbers of each class of pixels, or of each label. */
#include "base/markup.h"
#include "report/page/page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { LISTED = 200 };

static void add_count(qn__text *text, const qn__json_node *of, const char *key) {
    uint64_t count = 0;
    if (!qn__json_u64(qn__json_get(of, key), &count))
        count = 0;
    qn__text_add(text, "<td class=\"n\">%" PRIu64 "</td>", count);
}

static void add_row(qn__text *text, const qn__json_node *of, size_t number, int mask) {
    static const char *const parts[] = {"precision", "recall", "f1", "iou"};
    const char *name = qn__json_string(qn__json_get(of, "name"));
    char digits[24];
    snprintf(digits, sizeof digits, "%zu", number);
    qn__markup_put(text, "<tr><th scope=\"row\">", name ? name : digits, 40, "</th>");
    add_count(text, of, "targets");
    add_count(text, of, "predicted");
    for (int i = 0; i < 3 + mask; ++i)
        qn__page_cell(text, 100 * qn__fact_number(of, parts[i]), 2, 1);
    qn__text_add(text, "</tr>\n");
}

void qn__page_answers(qn__page *page, const qn__json_node *evaluation) {
    const qn__json_node *labels = qn__json_get(evaluation, "labels");
    const qn__json_node *each = labels ? labels : qn__json_get(evaluation, "classes");
    if (isnan(qn__fact_number(evaluation, "targets")))
        return;
    qn__text_add(&page->html, labels ? "<h3>Labels</h3>\n" : "<h3>Classes of pixels</h3>\n");
    qn__page_table(&page->html, labels ? "Labels" : "Classes of pixels", NULL,
                   labels ? "label|#items|#predicted|#precision|#recall|#F1"
                          : "class|#pixels|#predicted|#precision|#recall|#F1|#IoU");
    qn__page_rows(&page->html);
    for (size_t i = 0; i < qn__json_count(each) && i < LISTED; ++i)
        add_row(&page->html, qn__json_at(each, i), i, !labels);
    qn__page_end_table(&page->html);
    if (qn__json_count(each) > LISTED)
        qn__text_add(&page->html, "<p class=\"dim\">The first %d of %zu.</p>\n", LISTED,
                     qn__json_count(each));
}
