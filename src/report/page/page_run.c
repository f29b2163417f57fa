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
    const char *key, *head;
} scores[] = {{"loss", "#loss"},
              {"perplexity", "#perplexity"},
              {"mae", "#MAE"},
              {"rmse", "#RMSE"},
              {"r2", "#R2"}};
enum { SCORES = sizeof scores / sizeof *scores };

static void put(qn__page *page, const char *before, const char *text, const char *after) {
    qn__markup_put(&page->html, before, text, 0, after);
}

static const qn__json_node *score_of(const qn__past_run *run, int set) {
    const qn__json_node *score = qn__json_get(run->facts, sets[set]);
    return qn__json_is_object(score) ? score : NULL;
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
            if (key ? !isnan(qn__fact_number(score, key)) : !isnan(accuracy_of(score)))
                return 1;
        }
    return 0;
}

/* The cells of a score, and their headings. */
static void add_cells(qn__page *page, const qn__json_node *score) {
    if (has_score(page, NULL))
        qn__page_cell(&page->html, 100 * accuracy_of(score), 2, 1);
    for (int i = 0; i < SCORES; ++i)
        if (has_score(page, scores[i].key))
            qn__page_cell(&page->html, qn__fact_number(score, scores[i].key), 6, 0);
}

static void add_headings(qn__page *page) {
    if (has_score(page, NULL))
        qn__page_heads(&page->html, "#accuracy");
    for (int i = 0; i < SCORES; ++i)
        if (has_score(page, scores[i].key))
            qn__page_heads(&page->html, scores[i].head);
}

/* A row of a name and a text; nothing where there is no text. */
static void add_fact(qn__page *page, const char *name, const char *text) {
    if (!*text)
        return;
    put(page, "<tr><th scope=\"row\">", name, "</th>");
    put(page, "<td class=\"o\">", text, "</td></tr>\n");
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
    qn__page_table(&page->html, "Scores", NULL, "set|#items");
    add_headings(page);
    qn__page_rows(&page->html);
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
    qn__page_end_table(&page->html);
}

static void add_result(qn__page *page) {
    const qn__past_run *run = page->run;
    const double seconds = qn__fact_number(run->facts, "seconds");
    qn__page_section(page, "result", "Result");
    put(page, "<p>", qn__past_run_text(run, "state"), ", started ");
    put(page, "", qn__past_run_text(run, "started"), "");
    if (*qn__past_run_text(run, "host"))
        put(page, " on ", qn__past_run_text(run, "host"), "");
    if (!isnan(seconds))
        qn__text_add(&page->html, ", %.3f s", seconds);
    qn__text_add(&page->html, "; %" PRIu64 " epochs</p>\n", run->epochs);
    if (*qn__past_run_text(run, "model"))
        put(page, "<p>Digest of the model file (SHA-256): <code>", qn__past_run_text(run, "model"),
            "</code></p>\n");
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
        put(page, i ? " " : "", word ? word : "", "");
    }
    qn__text_add(&page->html, "</code></pre>\n");
}

static void add_recipe(qn__page *page) {
    const qn__json_node *recipe = qn__json_get(page->run->facts, "recipe");
    qn__page_section(page, "recipe", "Recipe");
    add_command(page, page->run);
    qn__text_add(&page->html,
                 "<details open=\"open\">\n<summary>All that decides the result</summary>\n");
    qn__page_table(&page->html, "Recipe", NULL, NULL);
    for (size_t i = 0; i < qn__json_count(recipe); ++i) {
        const qn__json_node *node = qn__json_at(recipe, i);
        const char *word = qn__json_string(node);
        char text[256];
        if (!qn__json_key(node) || !value_text(node, text) || !*text)
            continue;
        /* What the recipe does not use is 0 in it (docs/exactness.md 11.3). */
        if (strcmp(text, "0") == 0 && strcmp(qn__json_key(node), "seed") != 0)
            continue;
        add_fact(page, qn__json_key(node), word ? word : text);
    }
    qn__page_end_table(&page->html);
    qn__text_add(&page->html, "</details>\n<details>\n<summary>Program</summary>\n");
    qn__page_table(&page->html, "Program", NULL, NULL);
    add_fact(page, "version", qn__past_run_text(page->run, "version"));
    add_fact(page, "build", qn__past_run_text(page->run, "build"));
    add_fact(page, "instruction set", qn__past_run_text(page->run, "isa"));
    add_fact(page, "ended", qn__past_run_text(page->run, "ended"));
    qn__page_end_table(&page->html);
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
    put(page, "<tr><th scope=\"row\">", page->name[r], "</th><td>");
    put(page, "", qn__past_run_text(run, "state"), "</td>");
    qn__text_add(&page->html, "<td class=\"n\">%" PRIu64 "</td><td>%s</td>", run->epochs,
                 score ? set_names[set] : "");
    add_cells(page, score);
    qn__page_cell(&page->html, qn__fact_number(run->facts, "seconds"), 6, 0);
    put(page, "<td>", qn__past_run_text(run, "host"), "</td>");
    put(page, "<td>", qn__past_run_text(run, "started"), "</td><td><code>");
    qn__markup_put(&page->html, "", qn__past_run_text(run, "model"), 12, "</code></td></tr>\n");
}

static void add_runs(qn__page *page) {
    qn__page_section(page, "result", "Results");
    qn__page_table(&page->html, "Results", NULL, "run|state|epochs|set");
    add_headings(page);
    qn__page_heads(&page->html, "seconds|host|started|digest of the model");
    qn__page_rows(&page->html);
    for (uint32_t r = 0; r < page->runs; ++r)
        add_run_row(page, r);
    qn__page_end_table(&page->html);
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
    put(page, "<tr><th scope=\"row\">", key, "</th>");
    for (uint32_t r = 0; r < page->runs; ++r)
        put(page, "<td class=\"o\">", recipe_value(&page->run[r], key, text), "</td>");
    qn__text_add(&page->html, "</tr>\n");
}

static void add_differences(qn__page *page) {
    int count = 0;
    qn__page_section(page, "recipe", "What differs in the recipes");
    qn__page_table(&page->html, "What differs", NULL, "key");
    for (uint32_t r = 0; r < page->runs; ++r)
        put(page, "<th scope=\"col\">", page->name[r], "</th>");
    qn__page_rows(&page->html);
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
    qn__page_end_table(&page->html);
    if (count == 0)
        qn__text_add(&page->html,
                     "<p>Nothing: all numbers and texts of the recipes are equal.</p>\n");
    for (uint32_t r = 0; r < page->runs; ++r) {
        put(page, "<details><summary>", page->name[r], ": command</summary>\n");
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
