/* The confusion matrix, and precision and recall of each class. */
#include "base/markup.h"
#include "base/memory.h"
#include "report/page/page.h"
#include "report/record/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Classes of a table with numbers, and of a list of each class. */
enum { TABLE = 20, LISTED = 200 };

typedef struct counts {
    const qn__page *page;
    const char *of; /* the set */
    uint32_t classes;
    const uint64_t *count; /* [label][class] */
    uint64_t *own;         /* that is `count`, or NULL */
} counts;

static const char *name_of(const void *user, uint32_t class, char buffer[16]) {
    const counts *c = user;
    const qn__json_node *recipe = qn__json_get(c->page->run->facts, "recipe");
    const qn__json_node *names = qn__json_get(qn__json_get(recipe, "table"), "classes");
    const char *name = c->page->model                  ? qn_model_class_name(c->page->model, class)
                       : class < qn__json_count(names) ? qn__json_string(qn__json_at(names, class))
                                                       : NULL;
    if (!name)
        snprintf(buffer, 16, "%" PRIu32, class);
    return name ? name : buffer;
}

/* The matrix of the record: an array of rows of one length. */
static int read_record(counts *c) {
    const qn__json_node *rows = qn__json_get(c->page->run->facts, "confusion");
    const size_t classes = qn__json_is_array(rows) ? qn__json_count(rows) : 0;
    if (classes == 0 || classes > QN__RECORDED_CLASSES)
        return 0;
    c->own = qn__alloc(classes * classes, sizeof *c->own, NULL);
    for (size_t i = 0; c->own && i < classes * classes; ++i) {
        const qn__json_node *row = qn__json_at(rows, i / classes);
        if (qn__json_count(row) != classes ||
            !qn__json_u64(qn__json_at(row, i % classes), &c->own[i]))
            return 0;
    }
    c->classes = (uint32_t)classes;
    c->count = c->own;
    c->of = "the test set";
    return c->own != NULL;
}

static uint64_t row_sum(const counts *c, uint32_t label) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->classes; ++i)
        sum += c->count[(size_t)label * c->classes + i];
    return sum;
}

static uint64_t column_sum(const counts *c, uint32_t class) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->classes; ++i)
        sum += c->count[(size_t)i * c->classes + class];
    return sum;
}

static void add_name(qn__text *text, const char *before, const counts *c, uint32_t class) {
    char buffer[16];
    qn__markup_put(text, before, name_of(c, class, buffer), 40, "</th>");
}

static void add_table(qn__text *text, const counts *c) {
    qn__page_table(text, "Confusion matrix", "Rows are labels, columns are predictions.", "label");
    for (uint32_t i = 0; i < c->classes; ++i)
        add_name(text, "<th scope=\"col\" class=\"n\">", c, i);
    qn__page_rows(text);
    for (uint32_t label = 0; label < c->classes; ++label) {
        const uint64_t sum = row_sum(c, label);
        add_name(text, "<tr><th scope=\"row\">", c, label);
        for (uint32_t i = 0; i < c->classes; ++i) {
            const uint64_t count = c->count[(size_t)label * c->classes + i];
            const double part = sum ? (double)count / (double)sum : 0;
            qn__text_add(
                text, "<td class=\"n\" style=\"background:rgba(%s,%.3f)\">%" PRIu64 "</td>",
                i == label ? "26,127,55" : "207,34,46", count ? 0.06 + 0.34 * part : 0.0, count);
        }
        qn__text_add(text, "</tr>\n");
    }
    qn__page_end_table(text);
}

static void add_part(qn__text *text, uint64_t part, uint64_t whole) {
    qn__page_cell(text, whole > 0 ? 100.0 * (double)part / (double)whole : (double)NAN, 2, 1);
}

/* Precision: right ones of those predicted. Recall: right ones of those that are. */
static void add_list(qn__text *text, const counts *c) {
    qn__page_table(text, "Precision and recall", NULL,
                   "class|#items|#predicted|#precision|#recall|#F1");
    qn__page_rows(text);
    for (uint32_t i = 0; i < c->classes && i < LISTED; ++i) {
        const uint64_t right = c->count[(size_t)i * c->classes + i];
        const uint64_t items = row_sum(c, i), predicted = column_sum(c, i);
        add_name(text, "<tr><th scope=\"row\">", c, i);
        qn__text_add(text, "<td class=\"n\">%" PRIu64 "</td><td class=\"n\">%" PRIu64 "</td>",
                     items, predicted);
        add_part(text, right, predicted);
        add_part(text, right, items);
        add_part(text, 2 * right, items + predicted);
        qn__text_add(text, "</tr>\n");
    }
    qn__page_end_table(text);
    if (c->classes > LISTED)
        qn__text_add(text, "<p class=\"dim\">The first %d of %" PRIu32 " classes.</p>\n", LISTED,
                     c->classes);
}

void qn__page_confusion(qn__page *page) {
    counts c = {.page = page, .of = page->judged_name};
    if (page->judged && page->judged->confusion) {
        c.classes = page->judged->classes;
        c.count = page->judged->confusion;
    } else if (page->judged || !read_record(&c)) {
        qn__free(c.own);
        return;
    }
    const qn__chart_matrix matrix = {"Confusion matrix", c.classes, c.count, name_of, &c};
    qn__page_section(page, "classes", "Classes");
    qn__markup_put(&page->html, "<p>Predictions of ", c.of, 0, ".</p>\n");
    if (c.classes <= TABLE)
        add_table(&page->html, &c);
    qn__page_matrix(page, "confusion", &matrix, c.classes > TABLE);
    qn__text_add(&page->html, "<h3>Precision and recall</h3>\n");
    add_list(&page->html, &c);
    qn__page_end_section(page);
    qn__free(c.own);
}
