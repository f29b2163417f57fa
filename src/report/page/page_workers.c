/* Who did how much: workers and ranks. */
#include "base/markup.h"
#include "report/page/page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Bars of a chart at most. */
enum { BARS = 64 };

static double number_of(const qn__json_node *object, const char *key) {
    float value;
    return qn__json_float(qn__json_get(object, key), &value) ? (double)value : (double)NAN;
}

static uint64_t count_of(const qn__json_node *object, const char *key) {
    uint64_t value = 0;
    (void)qn__json_u64(qn__json_get(object, key), &value);
    return value;
}

static const char *text_of(const qn__json_node *object, const char *key) {
    const char *text = qn__json_string(qn__json_get(object, key));
    return text ? text : "";
}

static void name_worker(const qn__json_node *worker, int ranks, char name[96]) {
    if (ranks)
        snprintf(name, 96, "%" PRIu64 "/%.80s", count_of(worker, "rank"), text_of(worker, "name"));
    else
        snprintf(name, 96, "%.80s", text_of(worker, "name"));
}

static void draw(qn__page *page, const qn__json_node *workers, int ranks) {
    qn__chart_bar part[BARS], busy[BARS];
    char name[BARS][96];
    size_t bars = 0;
    double items = 0;
    const size_t all = qn__json_count(workers);
    for (size_t i = 0; i < all && i < BARS; ++i)
        items += (double)count_of(qn__json_at(workers, i), "items");
    for (; bars < all && bars < BARS; ++bars) {
        const qn__json_node *w = qn__json_at(workers, bars);
        const double share = items > 0 ? (double)count_of(w, "items") / items : 0;
        const double time = number_of(w, "busy");
        name_worker(w, ranks, name[bars]);
        part[bars] = (qn__chart_bar){.name = name[bars], .part = share};
        busy[bars] = (qn__chart_bar){.name = name[bars], .part = isnan(time) ? 0 : time};
        snprintf(part[bars].value, sizeof part[bars].value, "%.1f %%", 100 * share);
        snprintf(busy[bars].value, sizeof busy[bars].value, "%.1f %%", 100 * busy[bars].part);
    }
    qn__text_add(&page->html, "<div class=\"charts\">\n");
    qn__page_bars(page, "workers-items", "Share of the items", part, bars);
    qn__page_bars(page, "workers-time", "Share of the time spent computing", busy, bars);
    qn__text_add(&page->html, "</div>\n");
}

static void add_cell(qn__page *page, double value, const char *format) {
    qn__text_add(&page->html, "<td class=\"n\">");
    if (isfinite(value))
        qn__text_add(&page->html, *format == '%' ? "%.1f %%" : "%.4g", value);
    qn__text_add(&page->html, "</td>");
}

static void add_workers(qn__page *page, const qn__json_node *workers, int ranks) {
    qn__text_add(&page->html,
                 "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Workers\">\n"
                 "<table>\n<thead><tr><th scope=\"col\">worker</th><th scope=\"col\">device</th>"
                 "<th scope=\"col\" class=\"n\">items</th><th scope=\"col\" class=\"n\">steps</th>"
                 "<th scope=\"col\" class=\"n\">items/s</th><th scope=\"col\" class=\"n\">computing"
                 "</th><th scope=\"col\">note</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < qn__json_count(workers) && i < BARS; ++i) {
        const qn__json_node *w = qn__json_at(workers, i);
        char name[96];
        name_worker(w, ranks, name);
        qn__text_add(&page->html, "<tr><th scope=\"row\">");
        qn__markup_add(&page->html, name, 0);
        qn__text_add(&page->html, "</th><td>");
        qn__markup_add(&page->html, text_of(w, "device"), 80);
        qn__text_add(&page->html, "</td><td class=\"n\">");
        qn__markup_add_count(&page->html, count_of(w, "items"));
        qn__text_add(&page->html, "</td><td class=\"n\">");
        qn__markup_add_count(&page->html, count_of(w, "steps"));
        qn__text_add(&page->html, "</td>");
        add_cell(page, number_of(w, "rate"), "");
        add_cell(page, 100 * number_of(w, "busy"), "%");
        qn__text_add(&page->html, "<td>");
        qn__markup_add(&page->html, text_of(w, "note"), 200);
        qn__text_add(&page->html, "</td></tr>\n");
    }
    qn__text_add(&page->html, "</tbody>\n</table>\n</div>\n");
}

static void add_ranks(qn__page *page, const qn__json_node *ranks) {
    qn__text_add(&page->html,
                 "<h3>Ranks</h3>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" "
                 "aria-label=\"Ranks\">\n<table>\n<thead><tr><th scope=\"col\">rank</th><th "
                 "scope=\"col\">host</th><th scope=\"col\" class=\"n\">items</th><th scope=\"col\" "
                 "class=\"n\">items/s</th><th scope=\"col\" class=\"n\">computing</th><th "
                 "scope=\"col\" class=\"n\">waiting</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < qn__json_count(ranks) && i < BARS; ++i) {
        const qn__json_node *r = qn__json_at(ranks, i);
        qn__text_add(&page->html, "<tr><th scope=\"row\">%" PRIu64 "</th><td>",
                     count_of(r, "rank"));
        qn__markup_add(&page->html, text_of(r, "host"), 80);
        qn__text_add(&page->html, "</td><td class=\"n\">");
        qn__markup_add_count(&page->html, count_of(r, "items"));
        qn__text_add(&page->html, "</td>");
        add_cell(page, number_of(r, "rate"), "");
        add_cell(page, 100 * number_of(r, "busy"), "%");
        add_cell(page, 100 * number_of(r, "waiting"), "%");
        qn__text_add(&page->html, "</tr>\n");
    }
    qn__text_add(&page->html, "</tbody>\n</table>\n</div>\n");
}

void qn__page_workers(qn__page *page) {
    const qn__json_node *workers = qn__json_get(page->run->facts, "workers");
    const qn__json_node *ranks = qn__json_get(page->run->facts, "ranks");
    const int several = qn__json_count(ranks) > 1;
    if (qn__json_count(workers) == 0 && !page->trace)
        return;
    qn__page_section(page, "workers", "Workers");
    if (qn__json_count(workers) > 0) {
        draw(page, workers, several);
        add_workers(page, workers, several);
    }
    if (several)
        add_ranks(page, ranks);
    qn__page_timeline(page);
    qn__page_end_section(page);
}
