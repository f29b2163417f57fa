#include "search_grid.h"
#include "message.h"
#include "recipe_rows.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char REMEDY[] = "write names and values, as --grid \"lr 0.01,0.1 batch 64,128\"";

/* Whether it is an option of the recipe that takes a value. */
static int is_known(const char *name) {
    const qn_option *o = recipe_option(name);
    return o && o->type != QN_OPTION_FLAG;
}

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

static char *skip(char *at) {
    while (is_blank(*at))
        at++;
    return at;
}

/* A value up to a comma or a blank, or between quotes. Returns what follows; NULL: quotes are open.
 */
static char *take_value(char *at, const char **value) {
    const char quote = *at == '"' || *at == '\'' ? *at : '\0';
    if (!quote) {
        *value = at;
        return at + strcspn(at, ", \t\n");
    }
    char *end = strchr(at + 1, quote);
    *value = at + 1;
    if (!end)
        return NULL;
    *end = '\0';
    return end + 1;
}

/* "lr 0.1, batch 3": the name of an option after a comma is not a value that anybody means. */
static int refuse_name(const grid *g, const char *value) {
    const uint32_t n = g->names - 1;
    if (g->values[n] == 0 || !is_known(value))
        return 0;
    message_usage("write a blank, and no comma, before the next name",
                  "--grid: \"%s\" stands "
                  "after a comma, as if it were a value of \"%s\"",
                  value, g->name[n]);
    return 1;
}

/* The values of a name. Returns what follows, or NULL after a message. */
static char *take_values(char *at, grid *g) {
    const uint32_t n = g->names - 1;
    for (;;) {
        if (g->values[n] == GRID_VALUES) {
            message_usage("search a smaller grid", "--grid: %s has more than %d values", g->name[n],
                          GRID_VALUES);
            return NULL;
        }
        char *end = take_value(at, &g->value[n][g->values[n]]);
        if (!end || end == at) {
            message_usage(REMEDY,
                          end ? "--grid: \"%s\" lacks a value" : "--grid: %s has open quotes",
                          g->name[n]);
            return NULL;
        }
        const char behind = *end;
        *end = '\0';
        if (refuse_name(g, g->value[n][g->values[n]]))
            return NULL;
        g->values[n]++;
        if (behind != ',')
            return behind ? end + 1 : end;
        at = skip(end + 1);
    }
}

static int take_name(char **at, grid *g) {
    char *name = *at, *end = name + strcspn(name, " \t\n,");
    const char behind = *end;
    char remedy[256];
    *end = '\0';
    while (*name == '-')
        name++;
    for (char *c = name; *c; c++)
        *c = *c == '_' ? '-' : *c;
    if (!is_known(name)) {
        snprintf(remedy, sizeof remedy,
                 "%s: lr, batch, epochs, momentum, optimizer, model and so on",
                 "a grid has options of the recipe");
        return message_usage(remedy, "--grid: \"%.60s\" is not an option that a grid can have",
                             name);
    }
    for (uint32_t i = 0; i < g->names; i++)
        if (strcmp(g->name[i], name) == 0)
            return message_usage("write all its values after one name",
                                 "--grid: %s stands there twice", name);
    if (g->names == GRID_NAMES)
        return message_usage("search a smaller grid", "--grid: there are more than %d names",
                             GRID_NAMES);
    if (!behind)
        return message_usage(REMEDY, "--grid: \"%s\" lacks a value", name);
    g->name[g->names++] = name;
    *at = skip(end + 1);
    return -1;
}

int grid_read(const char *text, grid *out) {
    *out = (grid){.settings = 1};
    if (!text)
        return -1;
    out->text = strdup(text);
    if (!out->text)
        return message_fail(QN_MEMORY, "out of memory", "", "");
    for (char *at = skip(out->text); *at; at = skip(at)) {
        const int code = take_name(&at, out);
        if (code >= 0)
            return code;
        at = take_values(at, out);
        if (!at)
            return message_exit_code(QN_USAGE);
        out->settings *= out->values[out->names - 1];
        if (out->settings > GRID_SETTINGS)
            return message_usage("search a smaller grid", "--grid: there are more than %d settings",
                                 GRID_SETTINGS);
    }
    return out->names > 0 ? -1 : message_usage(REMEDY, "--grid is empty");
}

void grid_free(grid *g) {
    free(g->text);
    *g = (grid){.settings = 0};
}

const char *grid_value(const grid *g, uint32_t setting, uint32_t name) {
    for (uint32_t i = g->names; i-- > name + 1;)
        setting /= g->values[i];
    return g->value[name][setting % g->values[name]];
}

const char *grid_describe(const grid *g, uint32_t setting, char *text, size_t size) {
    size_t used = 0;
    snprintf(text, size, "-");
    for (uint32_t i = 0; i < g->names && used < size; i++) {
        const char *value = grid_value(g, setting, i);
        const char *quote = value[strcspn(value, " ,;")] ? "\"" : "";
        used += (size_t)snprintf(text + used, size - used, "%s%s %s%s%s", i > 0 ? " " : "",
                                 g->name[i], quote, value, quote);
    }
    return text;
}
