/* Who did how much: workers and ranks. */
#include "base/markup.h"
#include "report/page/page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Bars of a chart at most. */
enum { BARS = 64 };

static void name_worker(const qn__json_node *worker, int ranks, char name[96]) {
    if (ranks)
        snprintf(name, 96, "%" PRIu64 "/%.80s", qn__fact_count(worker, "rank"),
                 qn__fact_text(worker, "name"));
    else
        snprintf(name, 96, "%.80s", qn__fact_text(worker, "name"));
}

static void draw(qn__page *page, const qn__json_node *workers, int ranks) {
    qn__chart_bar part[BARS], busy[BARS];
    char name[BARS][96];
    size_t bars = 0;
    double items = 0;
    const size_t all = qn__json_count(workers);
    for (size_t i = 0; i < all && i < BARS; ++i)
        items += (double)qn__fact_count(qn__json_at(workers, i), "items");
    for (; bars < all && bars < BARS; ++bars) {
        const qn__json_node *w = qn__json_at(workers, bars);
        const double share = items > 0 ? (double)qn__fact_count(w, "items") / items : 0;
        const double time = qn__fact_number(w, "busy");
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

static void add_workers(qn__page *page, const qn__json_node *workers, int ranks) {
    qn__text *html = &page->html;
    qn__page_table(html, "Workers", NULL, "worker|device|#items|#steps|#items/s|#computing|note");
    qn__page_rows(html);
    for (size_t i = 0; i < qn__json_count(workers) && i < BARS; ++i) {
        const qn__json_node *w = qn__json_at(workers, i);
        char name[96];
        name_worker(w, ranks, name);
        qn__markup_put(html, "<tr><th scope=\"row\">", name, 0, "</th><td>");
        qn__markup_put(html, "", qn__fact_text(w, "device"), 80, "</td><td class=\"n\">");
        qn__markup_add_count(html, qn__fact_count(w, "items"));
        qn__text_add(html, "</td><td class=\"n\">");
        qn__markup_add_count(html, qn__fact_count(w, "steps"));
        qn__text_add(html, "</td>");
        qn__page_cell(html, qn__fact_number(w, "rate"), 4, 0);
        qn__page_cell(html, 100 * qn__fact_number(w, "busy"), 1, 1);
        qn__markup_put(html, "<td>", qn__fact_text(w, "note"), 200, "</td></tr>\n");
    }
    qn__page_end_table(html);
}

static void add_ranks(qn__page *page, const qn__json_node *ranks) {
    qn__text *html = &page->html;
    qn__text_add(html, "<h3>Ranks</h3>\n");
    qn__page_table(html, "Ranks", NULL, "rank|host|#items|#items/s|#computing|#waiting");
    qn__page_rows(html);
    for (size_t i = 0; i < qn__json_count(ranks) && i < BARS; ++i) {
        const qn__json_node *r = qn__json_at(ranks, i);
        qn__text_add(html, "<tr><th scope=\"row\">%" PRIu64 "</th>", qn__fact_count(r, "rank"));
        qn__markup_put(html, "<td>", qn__fact_text(r, "host"), 80, "</td><td class=\"n\">");
        qn__markup_add_count(html, qn__fact_count(r, "items"));
        qn__text_add(html, "</td>");
        qn__page_cell(html, qn__fact_number(r, "rate"), 4, 0);
        qn__page_cell(html, 100 * qn__fact_number(r, "busy"), 1, 1);
        qn__page_cell(html, 100 * qn__fact_number(r, "waiting"), 1, 1);
        qn__text_add(html, "</tr>\n");
    }
    qn__page_end_table(html);
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
