#include "report/page/page.h"

#include "base/files/folder_make.h"
#include "base/markup.h"
#include "base/memory.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char style[] =
    ":root{color-scheme:light dark;--INK:#1f2328;--DIM:#57606a;--LINE:#d0d7de;--BACK:#fff;"
    "--SOFT:#f6f8fa;--LINK:#0969da}"
    "@media(prefers-color-scheme:dark){:root{--INK:#e6edf3;--DIM:#b1bac4;--LINE:#3d444d;"
    "--BACK:#0d1117;--SOFT:#161b22;--LINK:#4493f8}}"
    "*{box-sizing:border-box}"
    "body{margin:0;font:16px/1.5 system-ui,sans-serif;color:var(--INK);background:var(--BACK)}"
    "main{max-width:72rem;margin:0 auto;padding:1rem}"
    "h1{font-size:1.5rem;overflow-wrap:anywhere;margin:.5rem 0}"
    "h2{font-size:1.15rem;border-bottom:1px solid var(--LINE);margin:2rem 0 .75rem;"
    "padding-bottom:.25rem}"
    "p{margin:.5rem 0}.dim{color:var(--DIM)}"
    "code,pre{font:13px/1.5 ui-monospace,monospace;overflow-wrap:anywhere}"
    "pre{background:var(--SOFT);border:1px solid var(--LINE);border-radius:6px;padding:.75rem;"
    "white-space:pre-wrap;margin:.5rem 0}"
    ".wide{overflow-x:auto;max-width:100%}"
    ".wide:focus-visible{outline:2px solid var(--LINK)}"
    "table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}"
    "caption{text-align:left;color:var(--DIM);padding:.25rem 0;white-space:nowrap}"
    "th,td{border:1px solid var(--LINE);padding:.25rem .5rem;text-align:left;vertical-align:top}"
    "thead th,tbody th{background:var(--SOFT);font-weight:600}"
    "td.n,th.n{text-align:right;white-space:nowrap}td.o{overflow-wrap:anywhere;min-width:8rem}"
    "th{white-space:nowrap}.cards th{white-space:normal;overflow-wrap:anywhere}"
    ".charts,.cards{display:grid;gap:1rem;margin-top:.5rem;grid-template-columns:repeat(auto-fill,"
    "minmax(min(100%,"
    "20rem),1fr))}"
    ".cards{grid-template-columns:repeat(auto-fill,minmax(min(100%,9rem),1fr))}"
    ".cards.tables{grid-template-columns:repeat(auto-fill,minmax(min(100%,17rem),1fr))}"
    "figure{margin:0;border:1px solid var(--LINE);border-radius:6px;padding:.5rem;min-width:0}"
    "figure svg{display:block;width:100%;height:auto;max-width:30rem}"
    "figure.matrix svg{max-width:40rem}"
    "figure img{display:block;width:100%;max-width:8rem;image-rendering:pixelated;"
    "border:1px solid var(--LINE)}"
    "figcaption{font-size:13px;overflow-wrap:anywhere;margin-top:.35rem}"
    "summary{cursor:pointer;color:var(--LINK);margin:.5rem 0}";

void qn__page_open(qn__page *page, const char *title) {
    qn__text_add(&page->html,
                 "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
                 "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                 "img-src data:; style-src 'unsafe-inline'\"/>\n"
                 "<link rel=\"icon\" href=\"data:,\"/>\n");
    qn__markup_put(&page->html, "<title>", title, 0, "</title>\n");
    qn__text_add(&page->html, "<style>%s%s</style>\n</head>\n<body>\n<main>\n", style,
                 qn__chart_style);
    qn__markup_put(&page->html, "<h1>", title, 0, "</h1>\n");
}

void qn__page_close(qn__page *page) { qn__text_add(&page->html, "</main>\n</body>\n</html>\n"); }

void qn__page_section(qn__page *page, const char *id, const char *title) {
    qn__text_add(&page->html, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n", id, id,
                 title);
}

void qn__page_end_section(qn__page *page) { qn__text_add(&page->html, "</section>\n"); }

void qn__page_heads(qn__text *html, const char *heads) {
    for (const char *at = heads; *at;) {
        const int number = *at == '#', size = (int)strcspn(at, "|");
        qn__text_add(html, "<th scope=\"col\"%s>%.*s</th>", number ? " class=\"n\"" : "",
                     size - number, at + number);
        at += at[size] ? size + 1 : size;
    }
}

void qn__page_table(qn__text *html, const char *label, const char *caption, const char *heads) {
    qn__text_add(html,
                 "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n<table>\n",
                 label);
    if (caption)
        qn__text_add(html, "<caption>%s</caption>\n", caption);
    qn__text_add(html, heads ? "<thead><tr>" : "<tbody>\n");
    qn__page_heads(html, heads ? heads : "");
}

void qn__page_rows(qn__text *html) { qn__text_add(html, "</tr></thead>\n<tbody>\n"); }

void qn__page_end_table(qn__text *html) { qn__text_add(html, "</tbody>\n</table>\n</div>\n"); }

void qn__page_cell(qn__text *html, double value, int digits, int percent) {
    qn__text_add(html, "<td class=\"n\">");
    if (isfinite(value))
        qn__text_add(html, percent ? "%.*f %%" : "%.*g", digits, value);
    qn__text_add(html, "</td>");
}

/* --------------------------------------------------------------------------------------- charts */

/* Writes and releases the text of a file of its own. */
static void write_plot(qn__page *page, const char *file, qn__text *text) {
    char name[96], *path = NULL;
    snprintf(name, sizeof name, "%s.svg", file);
    page->status = qn__folder_path(page->plots, name, &path, page->err);
    if (page->status == QN_OK)
        page->status = qn__markup_write(text, path, page->owner, page->err);
    qn__free(path);
    qn__text_release(text);
}

static int plots(const qn__page *page) { return page->plots && page->status == QN_OK; }

void qn__page_lines(qn__page *page, const char *file, const char *title, const char *below,
                    const qn__chart_line *line, size_t lines) {
    qn__text alone = {0};
    qn__text_add(&page->html, "<figure>\n");
    qn__chart_lines(&page->html, title, below, line, lines, 0);
    qn__text_add(&page->html, "</figure>\n");
    if (!plots(page))
        return;
    qn__chart_lines(&alone, title, below, line, lines, 1);
    write_plot(page, file, &alone);
}

void qn__page_bars(qn__page *page, const char *file, const char *title, const qn__chart_bar *bar,
                   size_t bars) {
    qn__text alone = {0};
    qn__text_add(&page->html, "<figure>\n");
    qn__chart_bars(&page->html, title, bar, bars, 0);
    qn__text_add(&page->html, "</figure>\n");
    if (!plots(page))
        return;
    qn__chart_bars(&alone, title, bar, bars, 1);
    write_plot(page, file, &alone);
}

void qn__page_strips(qn__page *page, const char *file, const char *title,
                     const qn__chart_strip *strip, size_t strips, double seconds) {
    qn__text alone = {0};
    qn__text_add(&page->html, "<figure>\n");
    qn__chart_strips(&page->html, title, strip, strips, seconds, 0);
    qn__text_add(&page->html, "</figure>\n");
    if (!plots(page))
        return;
    qn__chart_strips(&alone, title, strip, strips, seconds, 1);
    write_plot(page, file, &alone);
}

void qn__page_matrix(qn__page *page, const char *file, const qn__chart_matrix *matrix, int shown) {
    qn__text alone = {0};
    if (shown) {
        qn__text_add(&page->html, "<figure class=\"matrix\">\n");
        qn__chart_matrix_add(&page->html, matrix, 0);
        qn__text_add(&page->html, "</figure>\n");
    }
    if (!plots(page))
        return;
    qn__chart_matrix_add(&alone, matrix, 1);
    write_plot(page, file, &alone);
}
