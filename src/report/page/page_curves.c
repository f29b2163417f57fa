/* Curves over the epochs, and their numbers. */
#include "base/markup.h"
#include "report/page/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Rows of the table of numbers. */
enum { ROWS = 200 };

static const char *const kinds[] = {"loss", "accuracy", "perplexity", "mae", "rmse", "r2"};
static const char *const titles[] = {"Loss", "Accuracy", "Perplexity", "MAE", "RMSE", "R2"};
static const char *const sets[] = {"train", "valid", "test"};
static const char *const set_names[] = {"training", "validation", "test"};
enum { KINDS = sizeof kinds / sizeof *kinds, SETS = 3 };

static int column_of(const qn__past_run *run, const char *name) {
    for (uint32_t c = 0; c < run->columns; ++c)
        if (strcmp(run->name[c], name) == 0)
            return (int)c;
    return -1;
}

/* Whether the column has a number; *line is then its line. */
static int line_of(const qn__past_run *run, const char *column, const char *name,
                   qn__chart_line *line) {
    const int c = column_of(run, column);
    *line = (qn__chart_line){name, run->value, c >= 0 ? run->value + c : NULL, run->columns,
                             (size_t)run->epochs};
    for (size_t i = 0; c >= 0 && i < line->points; ++i)
        if (!isnan(line->y[i * line->stride]))
            return 1;
    return 0;
}

/* The three sets of one run. */
static void draw_sets(qn__page *page, int kind) {
    qn__chart_line line[SETS];
    size_t lines = 0;
    for (int s = 0; s < SETS; ++s) {
        char column[32];
        snprintf(column, sizeof column, "%s_%s", sets[s], kinds[kind]);
        lines += (size_t)line_of(page->run, column, set_names[s], &line[lines]);
    }
    if (lines > 0)
        qn__page_lines(page, kinds[kind], titles[kind], "epoch", line, lines);
}

/* One column of all runs. */
static void draw_runs(qn__page *page, const char *column, const char *title, const char *file) {
    qn__chart_line line[QN__PAGE_RUNS];
    size_t lines = 0;
    for (uint32_t r = 0; r < page->runs; ++r)
        lines += (size_t)line_of(&page->run[r], column,
                                 page->runs > 1 ? page->name[r] : "learning rate", &line[lines]);
    if (lines > 0)
        qn__page_lines(page, file, title, "epoch", line, lines);
}

static void draw_kind(qn__page *page, int kind) {
    if (page->runs == 1) {
        draw_sets(page, kind);
        return;
    }
    for (int s = SETS - 1; s >= 0; --s) {
        char column[32], title[48], file[48];
        snprintf(column, sizeof column, "%s_%s", sets[s], kinds[kind]);
        snprintf(title, sizeof title, "%s, %s", titles[kind], set_names[s]);
        snprintf(file, sizeof file, "%s-%s", kinds[kind], set_names[s]);
        draw_runs(page, column, title, file);
    }
}

static void add_numbers(qn__page *page) {
    const qn__past_run *run = page->run;
    const uint64_t every = (run->epochs + ROWS - 1) / ROWS;
    qn__text *html = &page->html;
    char caption[64];
    snprintf(caption, sizeof caption, "Every %d epochs, and the last.", (int)every);
    qn__text_add(html, "<details>\n<summary>Numbers of the curves</summary>\n");
    qn__page_table(html, "Numbers of the curves", every > 1 ? caption : NULL, "");
    for (uint32_t c = 0; c < run->columns; ++c)
        qn__markup_put(html, "<th scope=\"col\">",
                       strcmp(run->name[c], "rate") ? run->name[c] : "learning_rate", 40, "</th>");
    qn__page_rows(html);
    for (uint64_t row = 0; row < run->epochs; ++row) {
        if (row % every && row + 1 < run->epochs)
            continue;
        qn__text_add(html, "<tr>");
        for (uint32_t c = 0; c < run->columns; ++c)
            qn__page_cell(html, (double)run->value[row * run->columns + c], 6, 0);
        qn__text_add(html, "</tr>\n");
    }
    qn__page_end_table(html);
    qn__text_add(html, "</details>\n");
}

void qn__page_curves(qn__page *page) {
    uint64_t epochs = 0;
    for (uint32_t r = 0; r < page->runs; ++r)
        epochs += page->run[r].epochs;
    qn__page_section(page, "curves", "Curves");
    if (epochs == 0)
        qn__text_add(&page->html, "<p>No epoch has ended yet.</p>\n");
    qn__text_add(&page->html, "<div class=\"charts\">\n");
    for (int k = 0; k < KINDS; ++k)
        draw_kind(page, k);
    draw_runs(page, "rate", "Learning rate", "learning-rate");
    qn__text_add(&page->html, "</div>\n");
    if (page->runs == 1 && epochs > 0)
        add_numbers(page);
    qn__page_end_section(page);
}
