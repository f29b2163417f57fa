/* A network as a picture: boxes from top to bottom, one a layer, with parameters and cost beside
 * them. A residual block has its shortcut on the right. */
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
    LEFT = 224, /* of the first column of boxes */
    ASIDE = 64  /* between the two columns of boxes */
};

/* Where each layer stands, and the size of it all. */
typedef struct picture {
    const qn_network *network;
    uint32_t layers, rows;
    uint32_t row[QN__MAX_LAYERS]; /* from 1; the input has row 0 */
    int aside[QN__MAX_LAYERS];    /* 1: in the column of shortcuts */
    int shortcuts, boxes;         /* 1: there are shortcuts; and such with boxes */
    uint32_t width;               /* of a box */
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
    } colours[] = {{"conv", "conv"},   {"dense", "dense"}, {"max", "pool"},     {"avg", "pool"},
                   {"global", "pool"}, {"add", "sum"},     {"residual", "sum"}, {"}", "sum"}};
    for (size_t i = 0; i < sizeof colours / sizeof *colours; ++i)
        if (strncmp(text, colours[i].begin, strlen(colours[i].begin)) == 0)
            return colours[i].class;
    return "norm";
}

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* A layer that reads another one than that before it begins a shortcut, which ends before the sum.
 * Its first box stands beside the block's first one. */
static void place(picture *p) {
    uint32_t main = 0, aside = 0;
    int beside = 0;
    for (uint32_t l = 0; l < p->layers; ++l) {
        const qn_layer_info info = info_of(p, l);
        char shape[40];
        const size_t length = strlen(info.text) + strlen(shape_text(info.output, shape)) + 3;
        p->width = larger(p->width, (uint32_t)(length * CELL / 100) + EDGE);
        if (info.second > -2) {
            beside = 0;
            main = larger(main, aside);
        } else if (info.source != (int32_t)l - 1) {
            beside = 1;
            aside = info.source < 0 ? 0 : p->row[info.source];
        }
        p->aside[l] = beside;
        p->boxes |= beside;
        p->shortcuts |= info.second > -2;
        p->row[l] = beside ? ++aside : ++main;
        p->rows = larger(p->rows, p->row[l]);
    }
}

static uint32_t left_of(const picture *p, int aside) {
    return LEFT + (aside ? p->width + ASIDE : 0);
}

static uint32_t top_of(uint32_t row) { return TOP + row * ROW; }

/* The text of a model has no character that XML reserves. */
static void draw_box(picture *p, int aside, uint32_t row, const char *class, const char *text,
                     const uint32_t shape[3]) {
    char size[40];
    const uint32_t left = left_of(p, aside), top = top_of(row);
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
static void draw_numbers_aside(picture *p, const qn_layer_info *l, uint32_t row) {
    qn__text_add(&p->text, "<text class=\"l\" x=\"%u\" y=\"%u\">", left_of(p, 1) + p->width + 12,
                 top_of(row) + 20);
    qn__markup_add_count(&p->text, l->parameters);
    qn__text_add(&p->text, ", %.3f</text>\n", 1e-6 * (double)l->flops);
}

/* From the box above to this one, in the same column. */
static void draw_arrow(picture *p, int aside, uint32_t from, uint32_t to) {
    const uint32_t x = left_of(p, aside) + p->width / 2;
    qn__text_add(&p->text, "<path class=\"a\" d=\"M%u %uV%u\" marker-end=\"url(#tip)\"/>\n", x,
                 top_of(from) + BOX, top_of(to));
}

/* From below the box in row `from` to the first box of a shortcut. */
static void draw_branch(picture *p, uint32_t from, uint32_t to) {
    const uint32_t x = left_of(p, 0) + p->width / 2, y = top_of(from) + BOX + GAP / 2;
    qn__text_add(&p->text,
                 "<path class=\"a\" d=\"M%u %uH%uQ%u %u %u %uV%u\" marker-end=\"url(#tip)\"/>\n", x,
                 y - 2, left_of(p, 1) + p->width / 2 - 8, left_of(p, 1) + p->width / 2, y - 2,
                 left_of(p, 1) + p->width / 2, y + 6, top_of(to));
}

/* To the right side of a sum: from a shortcut's last box, or around the block. */
static void draw_sum(picture *p, uint32_t from, int aside, uint32_t to) {
    const uint32_t end = left_of(p, 0) + p->width, y = top_of(to) + BOX / 2;
    const uint32_t x = aside ? left_of(p, 1) + p->width / 2 : end + ASIDE / 2;
    if (aside)
        qn__text_add(&p->text, "<path class=\"a\" d=\"M%u %u", x, top_of(from) + BOX);
    else
        qn__text_add(&p->text, "<path class=\"a\" d=\"M%u %uH%uQ%u %u %u %u",
                     left_of(p, 0) + p->width / 2, top_of(from) + BOX + GAP / 2 - 2, x - 8, x,
                     top_of(from) + BOX + GAP / 2 - 2, x, top_of(from) + BOX + GAP / 2 + 6);
    qn__text_add(&p->text, "V%uQ%u %u %u %uH%u\" marker-end=\"url(#tip)\"/>\n", y - 8, x, y, x - 8,
                 y, end);
}

static uint32_t row_of(const picture *p, int32_t layer) { return layer < 0 ? 0 : p->row[layer]; }

static void draw_layer(picture *p, uint32_t l, uint32_t main) {
    const qn_layer_info info = info_of(p, l);
    const uint32_t row = p->row[l];
    if (info.second > -2) {
        /* Of its two sources one ends the main path; the other is the shortcut's end or its
         * begin. */
        const int aside = l > 0 && p->aside[l - 1];
        const int32_t least = info.source < info.second ? info.source : info.second;
        draw_sum(p, aside ? p->row[l - 1] : row_of(p, least), aside, row);
        draw_arrow(p, 0, main, row);
    } else if (p->aside[l] && !(l > 0 && p->aside[l - 1] && info.source == (int32_t)l - 1)) {
        draw_branch(p, row_of(p, info.source), row);
    } else {
        draw_arrow(p, p->aside[l], row - 1, row);
    }
    draw_box(p, p->aside[l], row, colour_of(info.text), info.text, info.output);
    if (p->aside[l])
        draw_numbers_aside(p, &info, row);
    else
        draw_numbers(p, row, info.parameters, info.flops);
}

static void draw_all(picture *p) {
    const qn_layer_info first = info_of(p, 0);
    const uint32_t beside = p->boxes ? ASIDE + p->width + 7 * EDGE : p->shortcuts ? ASIDE / 2 : 0;
    const uint32_t width = LEFT + p->width + EDGE + beside;
    const uint32_t height = top_of(p->rows + 1) + BOX + EDGE / 2;
    uint64_t flops = 0;
    uint32_t main = 0;
    qn__markup_begin_svg(&p->text, width, height, "The layers of a network");
    qn__text_add(&p->text, "%s", head);
    qn__markup_add_page(&p->text, width, height);
    qn__text_add(&p->text,
                 "<text class=\"n\" x=\"%u\" y=\"%u\">parameters</text><text class=\"n\" x=\"%u\" "
                 "y=\"%u\">MFLOP</text>\n",
                 PARAMETERS, top_of(0) + 20, FLOPS, top_of(0) + 20);
    draw_box(p, 0, 0, "input", "input", first.input);
    for (uint32_t l = 0; l < p->layers; ++l) {
        draw_layer(p, l, main);
        main = p->aside[l] ? main : p->row[l];
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
