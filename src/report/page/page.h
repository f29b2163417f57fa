/* The page about a run, or about several: HTML that needs no script, no network and no other file.
 */
#ifndef QN_REPORT_PAGE_PAGE_H
#define QN_REPORT_PAGE_PAGE_H

#include "base/files/folder_lock.h"
#include "predict/class_maps.h"
#include "predict/judge.h"
#include "report/page/chart.h"
#include "report/record/past_run.h"

enum { QN__PAGE_RUNS = 32 };

typedef struct qn__page {
    const qn__past_run *run; /* `runs` of them */
    const char *const *name; /* of each, by its user */
    uint32_t runs;
    const qn_model *model;         /* of the only run; NULL: unknown */
    const qn__judged *judged;      /* predictions of that model; NULL: none */
    const qn__class_maps *maps;    /* of its mistakes, where they are images; NULL: they are not */
    const char *judged_name;       /* what was predicted: "the test set" */
    const qn__importance *columns; /* of all features of its data; NULL: unknown */
    uint64_t column_items;
    uint32_t column_repeats;
    const char *trace;      /* of the only run; NULL: none */
    const char *plots;      /* folder for charts, which exists; NULL: none */
    const qn__owner *owner; /* as for qn__markup_write */
    qn__text html;
    qn_status status; /* of the charts written so far, with the error in *err */
    qn_error *err;
} qn__page;

/* Makes the page in page->html, which the caller releases, and writes the charts. Returns
 * page->status, or QN_MEMORY. */
qn_status qn__page_make(qn__page *page);

/* Parts of pages. */
void qn__page_open(qn__page *page, const char *title);
void qn__page_close(qn__page *page);
/* `id` and `title` are plain ASCII. */
void qn__page_section(qn__page *page, const char *id, const char *title);
void qn__page_end_section(qn__page *page);
/* Begins a table. `caption` may be NULL. `heads` are plain ASCII, separated by "|", with "#" before
 * those of numbers; the caller can add more, and then begins the rows. NULL: without
 * heads; the rows have begun. */
void qn__page_table(qn__text *html, const char *label, const char *caption, const char *heads);
void qn__page_heads(qn__text *html, const char *heads);
void qn__page_rows(qn__text *html);
void qn__page_end_table(qn__text *html);
/* A cell with a number, which is empty where the number is not finite; `percent` 1: `digits` after
 * the point and a percent sign, else `digits` in all. */
void qn__page_cell(qn__text *html, double value, int digits, int percent);
/* Charts, in the page and in a file NAME.svg. */
void qn__page_lines(qn__page *page, const char *file, const char *title, const char *below,
                    const qn__chart_line *line, size_t lines);
void qn__page_bars(qn__page *page, const char *file, const char *title, const qn__chart_bar *bar,
                   size_t bars);
void qn__page_strips(qn__page *page, const char *file, const char *title,
                     const qn__chart_strip *strip, size_t strips, double seconds);
void qn__page_matrix(qn__page *page, const char *file, const qn__chart_matrix *matrix, int shown);

/* Sections. */
void qn__page_curves(qn__page *page);     /* page_curves.c */
void qn__page_result(qn__page *page);     /* page_run.c: of one run */
void qn__page_recipe(qn__page *page);     /* page_run.c */
void qn__page_evaluation(qn__page *page); /* page_evaluation.c */
/* Of several answers to an item, the numbers of each class or label: page_answers.c. */
void qn__page_answers(qn__page *page, const qn__json_node *evaluation);
void qn__page_confusion(qn__page *page); /* page_classes.c */
void qn__page_mistakes(qn__page *page);  /* page_items.c */
void qn__page_weights(qn__page *page);   /* page_weights.c */
void qn__page_columns(qn__page *page);
void qn__page_workers(qn__page *page); /* page_workers.c, with that of page_timeline.c */
void qn__page_timeline(qn__page *page);

/* Fills `text` with the name of input `k` of a network for these columns: "age", "city = Bern". */
void qn__page_input_name(const qn__schema *schema, uint32_t features, uint32_t k, char text[160]);

#endif
