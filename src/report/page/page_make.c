/* The whole page: its title, and all of its sections in their order. */
#include "report/page/page.h"
#include "base/markup.h"
#include <inttypes.h>
#include <stdio.h>

static void add_title(qn__page *page) {
    char title[512];
    if (page->runs == 1 && !*page->name[0])
        snprintf(title, sizeof title, "Training run");
    else if (page->runs == 1)
        snprintf(title, sizeof title, "Run %.480s", page->name[0]);
    else
        snprintf(title, sizeof title, "%" PRIu32 " runs", page->runs);
    qn__page_open(page, title);
}

qn_status qn__page_make(qn__page *page) {
    add_title(page);
    qn__page_result(page);
    if (page->runs > 1)
        qn__page_recipe(page);
    qn__page_curves(page);
    if (page->runs == 1) {
        qn__page_evaluation(page);
        qn__page_confusion(page);
        qn__page_mistakes(page);
        qn__page_weights(page);
        qn__page_columns(page);
        qn__page_recipe(page);
        qn__page_workers(page);
    }
    qn__page_close(page);
    if (page->status == QN_OK && page->html.failed)
        page->status = qn__fail_memory(page->err, page->html.size, 1);
    return page->status;
}
