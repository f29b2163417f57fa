/* Records of runs, and the page about one: run.json, a line "#metrics", metrics.csv, and perhaps a
 * line
 * "#trace" and a trace. */
#include "fuzz/fuzz.h"

#include "report/page/page.h"
#include "report/record/past_run.h"

static const char mark[] = "\n#metrics\n", last[] = "#trace\n";

static size_t count(const char *text, char what) {
    size_t found = 0;
    for (; (text = strchr(text, what)) != NULL; ++text)
        ++found;
    return found;
}

/* A text of the record never becomes an element, and no number of a chart is infinite. */
static void fuzz_page(const qn__past_run *run, const char *trace) {
    const char *name = "<script>";
    qn_error err = {0};
    qn__page page = {.run = run, .name = &name, .runs = 1, .err = &err};
    page.trace = trace ? fuzz_file(0, trace, strlen(trace)) : NULL;
    const qn_status status = qn__page_make(&page);
    if (status != QN_OK) {
        FUZZ_MUST(trace != NULL);
        fuzz_check_refusal(status, NULL, &err);
    }
    FUZZ_MUST(strstr(page.html.data, "<script") == NULL);
    FUZZ_MUST(count(page.html.data, '<') == count(page.html.data, '>'));
    for (const char *path = page.html.data; (path = strstr(path, " d=\"")) != NULL; ++path)
        FUZZ_MUST(strcspn(path + 4, "\"") == strspn(path + 4, "MLHhV0123456789.- "));
    qn__text_release(&page.html);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    qn__text all = {0}, about = {0}, metrics = {0};
    qn__past_run run;
    qn_error err = {0};
    qn__text_add(&all, "%.*s", (int)size, (const char *)bytes);
    const char *cut = all.data ? strstr(all.data, mark) : NULL;
    if (cut) {
        qn__text_add(&about, "%.*s", (int)(cut - all.data), all.data);
        cut += sizeof mark - 1;
        const char *trace = strstr(cut, last);
        qn__text_add(&metrics, "%.*s", trace ? (int)(trace - cut) : -1, cut);
        const qn_status status = qn__past_run_parse("run", &about, &metrics, &run, &err);
        if (status == QN_OK)
            fuzz_page(&run, trace ? trace + sizeof last - 1 : NULL);
        else
            fuzz_check_refusal(status, run.json, &err); /* it is empty */
        qn__past_run_release(&run);
    }
    qn__text_release(&all);
    qn__text_release(&about);
    qn__text_release(&metrics);
    return 0;
}
