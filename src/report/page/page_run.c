/* What a run is: its result, its recipe, how it was started. Of several: what differs. */
#include "base/markup.h"
#include "report/page/page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const sets[] = {"train", "valid", "test"};
static const char *const set_names[] = {"training", "validation", "test"};
/* Keys of a recipe that are compared: more than any has. */
enum { SETS = 3, KEYS = 200 };

static const struct {
    const char *key, *title;
} scores[] = {{"loss", "loss"}, {"mae", "MAE"}, {"rmse", "RMSE"}, {"r2", "R2"}};
enum { SCORES = sizeof scores / sizeof *scores };

static void add_text(qn__page *page, const char *text) { qn__markup_add(&page->html, text, 0); }

static const qn__json_node *score_of(const qn__past_run *run, int set) {
    const qn__json_node *score = qn__json_get(run->facts, sets[set]);
    return qn__json_is_object(score) ? score : NULL;
}

static double number_of(const qn__json_node *object, const char *key) {
    float value;
    return qn__json_float(qn__json_get(object, key), &value) ? (double)value : (double)NAN;
}

static double accuracy_of(const qn__json_node *score) {
    uint64_t items, correct;
    if (!qn__json_u64(qn__json_get(score, "items"), &items) || items == 0 ||
        !qn__json_u64(qn__json_get(score, "correct"), &correct))
        return NAN;
    return (double)correct / (double)items;
}

/* Whether any run has the number, so that its column is there. */
static int has_score(const qn__page *page, const char *key) {
    for (uint32_t r = 0; r < page->runs; ++r)
        for (int s = 0; s < SETS; ++s) {
            const qn__json_node *score = score_of(&page->run[r], s);
            if (key ? !isnan(number_of(score, key)) : !isnan(accuracy_of(score)))
                return 1;
        }
    return 0;
}

/* The cells of a score, and their headings. */
static void add_cells(qn__page *page, const qn__json_node *score) {
    if (has_score(page, NULL)) {
        qn__text_add(&page->html, "<td class=\"n\">");
        if (!isnan(accuracy_of(score)))
            qn__text_add(&page->html, "%.2f %%", 100 * accuracy_of(score));
        qn__text_add(&page->html, "</td>");
    }
    for (int i = 0; i < SCORES; ++i) {
        if (!has_score(page, scores[i].key))
            continue;
        qn__text_add(&page->html, "<td class=\"n\">");
        qn__page_number(page, number_of(score, scores[i].key));
        qn__text_add(&page->html, "</td>");
    }
}

static void add_headings(qn__page *page) {
    if (has_score(page, NULL))
        qn__text_add(&page->html, "<th scope=\"col\" class=\"n\">accuracy</th>");
    for (int i = 0; i < SCORES; ++i)
        if (has_score(page, scores[i].key))
            qn__text_add(&page->html, "<th scope=\"col\" class=\"n\">%s</th>", scores[i].title);
}

static void open_table(qn__page *page, const char *label, const char *caption) {
    qn__text_add(&page->html,
                 "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n<table>\n",
                 label);
    if (*caption)
        qn__text_add(&page->html, "<caption>%s</caption>\n", caption);
}

static void close_table(qn__page *page) {
    qn__text_add(&page->html, "</tbody>\n</table>\n</div>\n");
}

/* A row of a name and a text; nothing where there is no text. */
static void add_fact(qn__page *page, const char *name, const char *text) {
    if (!*text)
        return;
    qn__text_add(&page->html, "<tr><th scope=\"row\">%s</th><td class=\"o\">", name);
    add_text(page, text);
    qn__text_add(&page->html, "</td></tr>\n");
}

/* ------------------------------------------------------------------------------------------ result
 */

static void add_scores(qn__page *page) {
    const qn__past_run *run = page->run;
    int known = 0;
    for (int s = 0; s < SETS; ++s)
        known |= score_of(run, s) != NULL;
    if (!known)
        return;
    open_table(page, "Scores", "");
    qn__text_add(&page->html, "<thead><tr><th scope=\"col\">set</th><th scope=\"col\" "
                              "class=\"n\">items</th>");
    add_headings(page);
    qn__text_add(&page->html, "</tr></thead>\n<tbody>\n");
    for (int s = 0; s < SETS; ++s) {
        const qn__json_node *score = score_of(run, s);
        uint64_t items = 0;
        if (!score)
            continue;
        qn__text_add(&page->html, "<tr><th scope=\"row\">%s</th><td class=\"n\">", set_names[s]);
        if (qn__json_u64(qn__json_get(score, "items"), &items))
            qn__markup_add_count(&page->html, items);
        qn__text_add(&page->html, "</td>");
        add_cells(page, score);
        qn__text_add(&page->html, "</tr>\n");
    }
    close_table(page);
}

static void add_result(qn__page *page) {
    const qn__past_run *run = page->run;
    const double seconds = number_of(run->facts, "seconds");
    qn__page_section(page, "result", "Result");
    qn__text_add(&page->html, "<p>");
    add_text(page, qn__past_run_text(run, "state"));
    qn__text_add(&page->html, ", started ");
    add_text(page, qn__past_run_text(run, "started"));
    if (*qn__past_run_text(run, "host")) {
        qn__text_add(&page->html, " on ");
        add_text(page, qn__past_run_text(run, "host"));
    }
    if (!isnan(seconds))
        qn__text_add(&page->html, ", %.3f s", seconds);
    qn__text_add(&page->html, "; %" PRIu64 " epochs</p>\n", run->epochs);
    if (*qn__past_run_text(run, "model")) {
        qn__text_add(&page->html, "<p>Digest of the model file (SHA-256): <code>");
        add_text(page, qn__past_run_text(run, "model"));
        qn__text_add(&page->html, "</code></p>\n");
    }
    add_scores(page);
    qn__page_end_section(page);
}

/* ------------------------------------------------------------------------------------------ recipe
 */

/* A value of the recipe as text; 0 where it is neither a text nor a number. */
static int value_text(const qn__json_node *node, char text[256]) {
    const char *word = qn__json_string(node);
    if (word)
        snprintf(text, 256, "%.255s", word);
    return word || qn__past_run_number(node, text);
}

/* The words of the command line as the record has them: mostly one text. */
static void add_command(qn__page *page, const qn__past_run *run) {
    const qn__json_node *command = qn__json_get(run->facts, "command");
    const size_t words = qn__json_count(command);
    if (words == 0)
        return;
    qn__text_add(&page->html, "<p>The command that trains this model again, byte for byte, from "
                              "the same data:</p>\n<pre><code>");
    for (size_t i = 0; i < words; ++i) {
        const char *word = qn__json_string(qn__json_at(command, i));
        qn__text_add(&page->html, "%s", i ? " " : "");
        add_text(page, word ? word : "");
    }
    qn__text_add(&page->html, "</code></pre>\n");
}

static void add_recipe(qn__page *page) {
    const qn__json_node *recipe = qn__json_get(page->run->facts, "recipe");
    qn__page_section(page, "recipe", "Recipe");
    add_command(page, page->run);
    qn__text_add(&page->html,
                 "<details open=\"open\">\n<summary>All that decides the result</summary>\n");
    open_table(page, "Recipe", "");
    qn__text_add(&page->html, "<tbody>\n");
    for (size_t i = 0; i < qn__json_count(recipe); ++i) {
        const qn__json_node *node = qn__json_at(recipe, i);
        const char *word = qn__json_string(node);
        char text[256];
        if (!qn__json_key(node) || !value_text(node, text) || !*text)
            continue;
        /* What the recipe does not use is 0 in it (docs/exactness.md 11.3). */
        if (strcmp(text, "0") == 0 && strcmp(qn__json_key(node), "seed") != 0)
            continue;
        qn__text_add(&page->html, "<tr><th scope=\"row\">");
        add_text(page, qn__json_key(node));
        qn__text_add(&page->html, "</th><td class=\"o\">");
        add_text(page, word ? word : text);
        qn__text_add(&page->html, "</td></tr>\n");
    }
    close_table(page);
    qn__text_add(&page->html, "</details>\n<details>\n<summary>Program</summary>\n");
    open_table(page, "Program", "");
    qn__text_add(&page->html, "<tbody>\n");
    add_fact(page, "version", qn__past_run_text(page->run, "version"));
    add_fact(page, "build", qn__past_run_text(page->run, "build"));
    add_fact(page, "instruction set", qn__past_run_text(page->run, "isa"));
    add_fact(page, "ended", qn__past_run_text(page->run, "ended"));
    close_table(page);
    qn__text_add(&page->html, "</details>\n");
    qn__page_end_section(page);
}

/* -------------------------------------------------------------------------------------- comparison
 */

/* The most telling score of a run: of the test set, else the validation set. */
static int main_set(const qn__past_run *run) {
    return score_of(run, 2) ? 2 : score_of(run, 1) ? 1 : 0;
}

static void add_run_row(qn__page *page, uint32_t r) {
    const qn__past_run *run = &page->run[r];
    const int set = main_set(run);
    const qn__json_node *score = score_of(run, set);
    qn__text_add(&page->html, "<tr><th scope=\"row\">");
    add_text(page, page->name[r]);
    qn__text_add(&page->html, "</th><td>");
    add_text(page, qn__past_run_text(run, "state"));
    qn__text_add(&page->html, "</td><td class=\"n\">%" PRIu64 "</td><td>%s</td>", run->epochs,
                 score ? set_names[set] : "");
    add_cells(page, score);
    qn__text_add(&page->html, "<td class=\"n\">");
    qn__page_number(page, number_of(run->facts, "seconds"));
    qn__text_add(&page->html, "</td><td>");
    add_text(page, qn__past_run_text(run, "host"));
    qn__text_add(&page->html, "</td><td>");
    add_text(page, qn__past_run_text(run, "started"));
    qn__text_add(&page->html, "</td><td><code>");
    qn__markup_add(&page->html, qn__past_run_text(run, "model"), 12);
    qn__text_add(&page->html, "</code></td></tr>\n");
}

static void add_runs(qn__page *page) {
    static const char *const more[] = {"seconds", "host", "started", "digest of the model"};
    qn__page_section(page, "result", "Results");
    open_table(page, "Results", "");
    qn__text_add(&page->html,
                 "<thead><tr><th scope=\"col\">run</th><th scope=\"col\">state</th><th "
                 "scope=\"col\">epochs</th><th scope=\"col\">set</th>");
    add_headings(page);
    for (size_t i = 0; i < sizeof more / sizeof *more; ++i)
        qn__text_add(&page->html, "<th scope=\"col\">%s</th>", more[i]);
    qn__text_add(&page->html, "</tr></thead>\n<tbody>\n");
    for (uint32_t r = 0; r < page->runs; ++r)
        add_run_row(page, r);
    close_table(page);
    qn__page_end_section(page);
}

/* The value of a key in the recipe of a run; "" where it has none. */
static const char *recipe_value(const qn__past_run *run, const char *key, char text[256]) {
    const qn__json_node *recipe = qn__json_get(run->facts, "recipe");
    return value_text(qn__json_get(recipe, key), text) ? text : "";
}

static int differs(const qn__page *page, const char *key) {
    char first[256], other[256];
    const char *one = recipe_value(&page->run[0], key, first);
    for (uint32_t r = 1; r < page->runs; ++r)
        if (strcmp(one, recipe_value(&page->run[r], key, other)) != 0)
            return 1;
    return 0;
}

/* Whether an earlier run has the key, whose row is there already. */
static int was_there(const qn__page *page, uint32_t run, const char *key) {
    for (uint32_t r = 0; r < run; ++r)
        if (qn__json_get(qn__json_get(page->run[r].facts, "recipe"), key))
            return 1;
    return 0;
}

static void add_difference(qn__page *page, const char *key) {
    char text[256];
    qn__text_add(&page->html, "<tr><th scope=\"row\">");
    add_text(page, key);
    qn__text_add(&page->html, "</th>");
    for (uint32_t r = 0; r < page->runs; ++r) {
        qn__text_add(&page->html, "<td class=\"o\">");
        add_text(page, recipe_value(&page->run[r], key, text));
        qn__text_add(&page->html, "</td>");
    }
    qn__text_add(&page->html, "</tr>\n");
}

static void add_differences(qn__page *page) {
    int count = 0;
    qn__page_section(page, "recipe", "What differs in the recipes");
    open_table(page, "What differs", "");
    qn__text_add(&page->html, "<thead><tr><th scope=\"col\">key</th>");
    for (uint32_t r = 0; r < page->runs; ++r) {
        qn__text_add(&page->html, "<th scope=\"col\">");
        add_text(page, page->name[r]);
        qn__text_add(&page->html, "</th>");
    }
    qn__text_add(&page->html, "</tr></thead>\n<tbody>\n");
    for (uint32_t r = 0; r < page->runs; ++r) {
        const qn__json_node *recipe = qn__json_get(page->run[r].facts, "recipe");
        for (size_t i = 0; i < qn__json_count(recipe) && i < KEYS; ++i) {
            const char *key = qn__json_key(qn__json_at(recipe, i));
            if (!key || was_there(page, r, key) || !differs(page, key))
                continue;
            add_difference(page, key);
            ++count;
        }
    }
    close_table(page);
    if (count == 0)
        qn__text_add(&page->html,
                     "<p>Nothing: all numbers and texts of the recipes are equal.</p>\n");
    for (uint32_t r = 0; r < page->runs; ++r) {
        qn__text_add(&page->html, "<details><summary>");
        add_text(page, page->name[r]);
        qn__text_add(&page->html, ": command</summary>\n");
        add_command(page, &page->run[r]);
        qn__text_add(&page->html, "</details>\n");
    }
    qn__page_end_section(page);
}

void qn__page_result(qn__page *page) {
    if (page->runs == 1)
        add_result(page);
}

void qn__page_recipe(qn__page *page) {
    if (page->runs == 1) {
        add_recipe(page);
    } else {
        add_runs(page);
        add_differences(page);
    }
}
