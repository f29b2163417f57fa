/* A network as a picture: boxes from top to bottom, one a layer, with parameters and cost beside
 * them. A block has its shortcut on the right; blocks in blocks need more columns. */
#include <quern/network.h>

#include "base/argument.h"
#include "base/markup.h"
#include "base/system/float_state.h"
#include "model/network/network.h"
#include <stdio.h>
#include <string.h>

/* Pixels. CELL: the width of a character of a box, in hundredths. */
enum {
    CELL = 843,
    BOX = 30,
    GAP = 22,
    ROW = BOX + GAP,
    TOP = 20,
    EDGE = 24,
    PARAMETERS = 116, /* right edges of the two columns of numbers */
    FLOPS = 200,
    LEFT = 224,   /* of the first column of boxes */
    ASIDE = 64,   /* between the first two columns of boxes */
    BESIDE = 208, /* between the next ones, which have numbers there */
    LANE = 8      /* between the lines around a block and around the one that contains it */
};

/* Where each layer stands, and the size of it all. */
typedef struct picture {
    const qn_network *network;
    uint32_t layers, rows;
    uint32_t row[QN__MAX_LAYERS];    /* from 1; the input has row 0 */
    uint32_t column[QN__MAX_LAYERS]; /* from 0 */
    uint32_t lane[QN__MAX_LAYERS];   /* of the line around a block without boxes beside it */
    uint32_t columns;
    int shortcuts;  /* 1: there are some */
    uint32_t width; /* of a box */
    qn__text text;
} picture;

static const char head[] =
    "<style>\n"
    "text { font-family: DejaVu Sans Mono, Menlo, Consolas, monospace; font-size: 14px; fill: "
    "#1f2328; }\n"
    ".n, .l { font-size: 12px; fill: #656d76; } .n { text-anchor: end; }\n"
    "rect { stroke: #8c959f; } .a { stroke: #8c959f; stroke-width: 1.5; fill: none; }\n"
    ".t { fill: #8c959f; } .page, .input { fill: #ffffff; } .conv { fill: #ddf4ff; }\n"
    ".dense { fill: #dafbe1; } .pool { fill: #fff8c5; } .norm { fill: #fbefff; }\n"
    ".sum { fill: #ffebe9; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "text { fill: #e6edf3; } .n, .l { fill: #b1bac4; } .page, .input { fill: #0d1117; }\n"
    ".conv { fill: #0c2d6b; } .dense { fill: #0f3d1e; } .pool { fill: #4b3900; }\n"
    ".norm { fill: #3c1e70; } .sum { fill: #67060c; }\n"
    "}\n"
    "</style>\n"
    "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" "
    "markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"t\" "
    "d=\"M0 0L8 4L0 8z\"/></marker></defs>\n";

static qn_layer_info info_of(const picture *p, uint32_t layer) {
    qn_layer_info info = {.size = sizeof info};
    (void)qn_network_layer(p->network, layer, &info, NULL);
    return info;
}

static char *shape_text(const uint32_t shape[3], char text[40]) {
    if (shape[1] == 1 && shape[2] == 1)
        snprintf(text, 40, "%u", shape[0]);
    else
        snprintf(text, 40, "%ux%ux%u", shape[0], shape[1], shape[2]);
    return text;
}

/* The class of a box's colour, by the first word of its layer. */
static const char *colour_of(const char *text) {
    static const struct {
        const char *begin, *class;
    } colours[] = {{"conv", "conv"},   {"dense", "dense"},  {"max", "pool"},    {"avg", "pool"},
                   {"global", "pool"}, {"residual", "sum"}, {"product", "sum"}, {"concat", "sum"}};
    for (size_t i = 0; i < sizeof colours / sizeof *colours; ++i)
        if (strncmp(text, colours[i].begin, strlen(colours[i].begin)) == 0)
            return colours[i].class;
    return "norm";
}

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

static uint32_t row_of(const picture *p, int32_t layer) { return layer < 0 ? 0 : p->row[layer]; }
static uint32_t column_of(const picture *p, int32_t layer) {
    return layer < 0 ? 0 : p->column[layer];
}

/* What a block is made of; -1 is the network's input. */
typedef struct block_ends {
    int32_t main, shortcut; /* the last layers of the paths; shortcut -2: it has none */
    int32_t input;          /* what both paths read */
} block_ends;

/* Of the end of a block. The first layer of a shortcut stands after the main path. */
static block_ends ends_of(const picture *p, const qn_layer_info *end, uint32_t layer) {
    if (end->source == (int32_t)layer - 1)
        return (block_ends){end->source, -2, end->second};
    return (block_ends){end->source, end->second, info_of(p, (uint32_t)end->source + 1).source};
}

/* What a layer or a whole block reads. */
static int32_t before(const picture *p, int32_t layer) {
    const qn_layer_info info = info_of(p, (uint32_t)layer);
    return info.second > -2 ? ends_of(p, &info, (uint32_t)layer).input : info.source;
}

/* The most columns of a path's layers, or lanes; `wide`: of each layer. */
static uint32_t widest(const picture *p, const uint32_t *wide, int32_t last, int32_t input) {
    uint32_t most = 0;
    for (; last > input; last = before(p, last))
        most = larger(most, wide[last]);
    return most;
}

/* Rows. `wide` becomes the columns that each layer or block takes. */
static void place_rows(picture *p, uint32_t *wide) {
    for (uint32_t l = 0; l < p->layers; ++l) {
        const qn_layer_info info = info_of(p, l);
        char shape[40];
        const size_t length = strlen(info.text) + strlen(shape_text(info.output, shape)) + 3;
        p->width = larger(p->width, (uint32_t)(length * CELL / 100) + EDGE);
        p->row[l] = row_of(p, info.source) + 1;
        wide[l] = 1;
        if (info.second > -2) {
            const block_ends ends = ends_of(p, &info, l);
            p->row[l] = larger(p->row[l], row_of(p, info.second) + 1);
            p->shortcuts = 1;
            wide[l] = widest(p, wide, ends.main, ends.input);
            if (ends.shortcut > -2)
                wide[l] += widest(p, wide, ends.shortcut, ends.input);
            else
                p->lane[l] = 1 + widest(p, p->lane, ends.main, ends.input);
        }
        p->rows = larger(p->rows, p->row[l]);
    }
}

/* A shortcut stands on the right of all that the main path has; its first box stands beside the
 * block's first one. */
static void place(picture *p) {
    uint32_t wide[QN__MAX_LAYERS] = {0};
    place_rows(p, wide);
    for (uint32_t l = p->layers; l-- > 0;) {
        const qn_layer_info info = info_of(p, l);
        p->columns = larger(p->columns, p->column[l] + 1);
        if (info.second < -1)
            continue;
        const block_ends ends = ends_of(p, &info, l);
        const uint32_t aside = p->column[l] + widest(p, wide, ends.main, ends.input);
        for (int32_t k = ends.main; k > ends.input; k = before(p, k))
            p->column[k] = p->column[l];
        for (int32_t k = ends.shortcut; k > ends.input; k = before(p, k))
            p->column[k] = aside;
    }
}

static uint32_t left_of(const picture *p, uint32_t column) {
    const uint32_t beside = column ? ASIDE + (column - 1) * BESIDE : 0;
    return LEFT + column * p->width + beside;
}

static uint32_t top_of(uint32_t row) { return TOP + row * ROW; }

/* The text of a model has no character that XML reserves. */
static void draw_box(picture *p, uint32_t column, uint32_t row, const char *class, const char *text,
                     const uint32_t shape[3]) {
    char size[40];
    const uint32_t left = left_of(p, column), top = top_of(row);
    qn__text_add(&p->text,
                 "<rect class=\"%s\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" rx=\"6\"/>"
                 "<text x=\"%u\" y=\"%u\">%s</text><text class=\"n\" x=\"%u\" y=\"%u\">%s</text>\n",
                 class, left, top, p->width, BOX, left + 12, top + 20, text, left + p->width - 12,
                 top + 20, shape_text(shape, size));
}

static void draw_numbers(picture *p, uint32_t row, uint64_t parameters, uint64_t flops) {
    const uint32_t y = top_of(row) + 20;
    qn__text_add(&p->text, "<text class=\"n\" x=\"%u\" y=\"%u\">", PARAMETERS, y);
    qn__markup_add_count(&p->text, parameters);
    qn__text_add(&p->text, "</text><text class=\"n\" x=\"%u\" y=\"%u\">%.3f</text>\n", FLOPS, y,
                 1e-6 * (double)flops);
}

/* The same beside a box of a shortcut. */
static void draw_numbers_aside(picture *p, const qn_layer_info *l, uint32_t column, uint32_t row) {
    qn__text_add(&p->text, "<text class=\"l\" x=\"%u\" y=\"%u\">",
                 left_of(p, column) + p->width + 12, top_of(row) + 20);
    qn__markup_add_count(&p->text, l->parameters);
    qn__text_add(&p->text, ", %.3f</text>\n", 1e-6 * (double)l->flops);
}

/* From the box above to this one, in the same column. */
static void draw_arrow(picture *p, uint32_t column, uint32_t from, uint32_t to) {
    const uint32_t x = left_of(p, column) + p->width / 2;
    qn__text_add(&p->text, "<path class=\"a\" d=\"M%u %uV%u\" marker-end=\"url(#tip)\"/>\n", x,
                 top_of(from) + BOX, top_of(to));
}

/* From below the box of layer `from` to the first box of a shortcut. */
static void draw_branch(picture *p, int32_t from, uint32_t column, uint32_t to) {
    const uint32_t x = left_of(p, column_of(p, from)) + p->width / 2;
    const uint32_t end = left_of(p, column) + p->width / 2;
    const uint32_t y = top_of(row_of(p, from)) + BOX + GAP / 2;
    qn__text_add(&p->text,
                 "<path class=\"a\" d=\"M%u %uH%uQ%u %u %u %uV%u\" marker-end=\"url(#tip)\"/>\n", x,
                 y - 2, end - 8, end, y - 2, end, y + 6, top_of(to));
}

/* To the right side of the end of a block: from the shortcut's last box, or around the block. */
static void draw_sum(picture *p, uint32_t l, const block_ends *ends) {
    const uint32_t end = left_of(p, p->column[l]) + p->width, y = top_of(p->row[l]) + BOX / 2;
    const uint32_t lane = (p->lane[l] - 1) * LANE, most = ASIDE / 2 - LANE;
    uint32_t x = end + ASIDE / 2 + (lane < most ? lane : most);
    if (ends->shortcut > -2) {
        x = left_of(p, p->column[ends->shortcut]) + p->width / 2;
        qn__text_add(&p->text, "<path class=\"a\" d=\"M%u %u", x,
                     top_of(p->row[ends->shortcut]) + BOX);
    } else {
        const uint32_t from = top_of(row_of(p, ends->input)) + BOX + GAP / 2;
        qn__text_add(&p->text, "<path class=\"a\" d=\"M%u %uH%uQ%u %u %u %u",
                     left_of(p, column_of(p, ends->input)) + p->width / 2, from - 2, x - 8, x,
                     from - 2, x, from + 6);
    }
    qn__text_add(&p->text, "V%uQ%u %u %u %uH%u\" marker-end=\"url(#tip)\"/>\n", y - 8, x, y, x - 8,
                 y, end);
}

static void draw_layer(picture *p, uint32_t l) {
    const qn_layer_info info = info_of(p, l);
    const uint32_t row = p->row[l], column = p->column[l];
    if (info.second > -2) {
        const block_ends ends = ends_of(p, &info, l);
        draw_sum(p, l, &ends);
    }
    if (column == column_of(p, info.source))
        draw_arrow(p, column, row_of(p, info.source), row);
    else
        draw_branch(p, info.source, column, row);
    draw_box(p, column, row, colour_of(info.text), info.text, info.output);
    if (column > 0)
        draw_numbers_aside(p, &info, column, row);
    else
        draw_numbers(p, row, info.parameters, info.flops);
}

static void draw_all(picture *p) {
    const qn_layer_info first = info_of(p, 0);
    const uint32_t beside = p->columns > 1 ? 7 * EDGE : p->shortcuts ? ASIDE / 2 : 0;
    const uint32_t width = left_of(p, p->columns - 1) + p->width + EDGE + beside;
    const uint32_t height = top_of(p->rows + 1) + BOX + EDGE / 2;
    uint64_t flops = 0;
    qn__markup_begin_svg(&p->text, width, height, "The layers of a network");
    qn__text_add(&p->text, "%s", head);
    qn__markup_add_page(&p->text, width, height);
    qn__text_add(&p->text,
                 "<text class=\"n\" x=\"%u\" y=\"%u\">parameters</text><text class=\"n\" x=\"%u\" "
                 "y=\"%u\">MFLOP</text>\n",
                 PARAMETERS, top_of(0) + 20, FLOPS, top_of(0) + 20);
    draw_box(p, 0, 0, "input", "input", first.input);
    for (uint32_t l = 0; l < p->layers; ++l) {
        draw_layer(p, l);
        flops += info_of(p, l).flops;
    }
    draw_numbers(p, p->rows + 1, qn_network_parameters(p->network), flops);
    qn__text_add(&p->text,
                 "<text class=\"l\" x=\"%u\" y=\"%u\">all, of one item forward</text>\n</svg>\n",
                 LEFT + 12u, top_of(p->rows + 1) + 20);
}

qn_status qn_network_write_svg(const qn_network *network, const char *path, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(network, err);
    QN__NEED(path, err);
    picture p = {.network = network, .layers = qn_network_layers(network)};
    if (info_of(&p, 0).output[0] == 0) {
        qn__fail(err, QN_USAGE,
                 "the input of the network is not known, so it has no shapes to draw");
        return qn__remedy(err, QN_USAGE, "open it with `train.shape` or a number of features");
    }
    place(&p);
    draw_all(&p);
    const qn_status status = qn__markup_write(&p.text, path, NULL, err);
    qn__text_release(&p.text);
    return status;
}
