#include "report/page/chart.h"

#include "base/markup.h"
#include <inttypes.h>
#include <math.h>

/* Pixels of a chart with lines, and of the area of the lines in it. */
enum { WIDTH = 360, LEFT = 58, RIGHT = 350, TOP = 30, BOTTOM = 186, FOOT = 226, LEGEND = 18 };
/* Of a chart with bars. */
enum { BAR_TOP = 34, BAR_ROW = 36, BAR_LEFT = 10 };
/* Points of a line that are drawn, and up to how many are marked. */
enum { POINTS = 400, MARKED = 12 };
/* Marks of an axis: more than any has. */
enum { MARKS = 20 };

const char qn__chart_style[] =
    ".chart text{font:12px system-ui,sans-serif;fill:#1f2328}"
    ".chart .t{font-weight:600;font-size:13px}.chart .d{fill:#57606a}"
    ".chart .e{text-anchor:end}.chart .m{text-anchor:middle}"
    ".chart .g{stroke:#d0d7de;stroke-width:1}"
    ".chart .k{fill:none;stroke-width:2;stroke-linejoin:round}.chart .b{fill:#0969da}"
    ".chart .r{fill:#eaeef2}.chart .page{fill:#fff;stroke:#d0d7de}"
    ".chart .k0{stroke:#0969da}.chart .k1{stroke:#bc4c00}.chart .k2{stroke:#1a7f37}"
    ".chart .k3{stroke:#8250df}.chart .k4{stroke:#bf3989}.chart .k5{stroke:#7d4e00}"
    ".chart .k6{stroke:#1b7c83}.chart .k7{stroke:#57606a}"
    ".chart .y1{stroke-dasharray:7 3}.chart .y2{stroke-dasharray:2 3}"
    ".chart .y3{stroke-dasharray:9 3 2 3}"
    ".chart .c{fill:#0969da}.chart .w{stroke:#d0d7de;stroke-width:.5;fill:none}"
    "@media(prefers-color-scheme:dark){.chart text{fill:#e6edf3}.chart .d{fill:#b1bac4}"
    ".chart .g,.chart .w{stroke:#3d444d}.chart .b,.chart .c{fill:#4493f8}"
    ".chart .r{fill:#2a313c}.chart .page{fill:#0d1117;stroke:#3d444d}"
    ".chart .k0{stroke:#4493f8}.chart .k1{stroke:#f0883e}.chart .k2{stroke:#3fb950}"
    ".chart .k3{stroke:#ab7df8}.chart .k4{stroke:#f778ba}.chart .k5{stroke:#d29922}"
    ".chart .k6{stroke:#39c5cf}.chart .k7{stroke:#b1bac4}}";

static void begin(qn__text *text, unsigned width, unsigned height, const char *title, int alone) {
    if (alone) {
        qn__markup_begin_svg(text, width, height, title);
        qn__text_add(text, "<style>%s</style>\n<g class=\"chart\">\n", qn__chart_style);
        qn__markup_add_page(text, width, height);
    } else {
        qn__text_add(text,
                     "<svg class=\"chart\" viewBox=\"0 0 %u %u\" role=\"img\" aria-label=\"%s\">\n",
                     width, height, title);
    }
    qn__text_add(text, "<title>%s</title>\n<text class=\"t\" x=\"10\" y=\"18\">%s</text>\n", title,
                 title);
}

static void end(qn__text *text, int alone) {
    qn__text_add(text, alone ? "</g>\n</svg>\n" : "</svg>\n");
}

/* --------------------------------------------------------------------------------------- lines */

typedef struct scale {
    double low, high, step;
} scale;

/* The steps of an axis: 1, 2 or 5 times a power of ten, at most seven in the range. */
static scale scale_of(double low, double high, int whole) {
    static const double factor[] = {2, 2.5, 2};
    scale s = {low, high, 1};
    if (!(high > low)) {
        const double around = fabs(low) > 0 ? fabs(low) / 2 : 0.5;
        s.low = low - around;
        s.high = high + around;
    }
    const double least = (s.high - s.low) / 7;
    int i = 0;
    for (; s.step > least && s.step > 1e-300; s.step /= 10)
        i = 0;
    for (; s.step < least; s.step *= factor[i++ % 3])
        ;
    if (whole && s.step < 1)
        s.step = 1;
    return s;
}

static double across(const scale *s, double x) {
    return LEFT + (RIGHT - LEFT) * (x - s->low) / (s->high - s->low);
}

static double down(const scale *s, double y) {
    return BOTTOM - (BOTTOM - TOP) * (y - s->low) / (s->high - s->low);
}

static scale range_of(const qn__chart_line *line, size_t lines, int of_x) {
    double low = INFINITY, high = -INFINITY;
    for (size_t l = 0; l < lines; ++l)
        for (size_t i = 0; i < line[l].points; ++i) {
            const double y = (double)line[l].y[i * line[l].stride];
            const double value = of_x ? (double)line[l].x[i * line[l].stride] : y;
            if (isnan(y) || isnan(value))
                continue;
            low = value < low ? value : low;
            high = value > high ? value : high;
        }
    /* Epochs are whole numbers; what lies between 0 and 1 is not epochs. */
    const int whole = of_x && high > 1;
    return low <= high ? scale_of(low, high, whole) : scale_of(0, 1, whole);
}

/* Mark number `i` of an axis; 0 when it lies beyond the axis. */
static int mark_of(const scale *s, int i, double *at) {
    *at = s->step * (ceil(s->low / s->step) + i);
    return i < MARKS && *at <= s->high;
}

static void add_axes(qn__text *text, const scale *x, const scale *y, const char *below) {
    double v;
    for (int i = 0; mark_of(y, i, &v); ++i) {
        const double shown = fabs(v) < y->step / 2 ? 0 : v, at = down(y, v);
        qn__text_add(text,
                     "<path class=\"g\" d=\"M%d %.1fH%d\"/><text class=\"d e\" x=\"%d\" "
                     "y=\"%.1f\">%.4g</text>\n",
                     LEFT, at, RIGHT, LEFT - 6, at + 4, shown);
    }
    for (int i = 0; mark_of(x, i, &v); ++i)
        qn__text_add(text, "<text class=\"d m\" x=\"%.1f\" y=\"%d\">%.6g</text>\n", across(x, v),
                     BOTTOM + 16, v);
    qn__text_add(text, "<text class=\"d m\" x=\"%d\" y=\"%d\">%s</text>\n", (LEFT + RIGHT) / 2,
                 BOTTOM + 32, below);
}

static void add_line(qn__text *text, const qn__chart_line *line, size_t number, const scale *x,
                     const scale *y) {
    const size_t every = line->points / POINTS + 1;
    char letter = 'M';
    qn__text_add(text, "<path class=\"k k%zu y%zu\" d=\"", number % QN__CHART_COLOURS, number % 4);
    for (size_t i = 0; i < line->points; ++i) {
        const double value = (double)line->y[i * line->stride];
        if (i % every && i + 1 < line->points)
            continue;
        if (isnan(value)) {
            letter = 'M';
            continue;
        }
        qn__text_add(text, "%c%.1f %.1f", letter, across(x, (double)line->x[i * line->stride]),
                     down(y, value));
        letter = 'L';
    }
    qn__text_add(text, "\"/>\n");
    for (size_t i = 0; i < line->points && line->points <= MARKED; ++i)
        if (!isnan(line->y[i * line->stride]))
            qn__text_add(text, "<circle class=\"k k%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"2\"/>\n",
                         number % QN__CHART_COLOURS, across(x, (double)line->x[i * line->stride]),
                         down(y, (double)line->y[i * line->stride]));
}

void qn__chart_lines(qn__text *text, const char *title, const char *below,
                     const qn__chart_line *line, size_t lines, int alone) {
    const scale x = range_of(line, lines, 1), y = range_of(line, lines, 0);
    begin(text, WIDTH, FOOT + LEGEND * (unsigned)lines + 4, title, alone);
    add_axes(text, &x, &y, below);
    for (size_t l = 0; l < lines; ++l) {
        const unsigned at = FOOT + LEGEND * (unsigned)l + 4;
        add_line(text, &line[l], l, &x, &y);
        qn__text_add(text, "<path class=\"k k%zu y%zu\" d=\"M%d %uh30\"/><text x=\"%d\" y=\"%u\">",
                     l % QN__CHART_COLOURS, l % 4, LEFT, at, LEFT + 38, at + 4);
        qn__markup_put(text, "", line[l].name, 40, "</text>\n");
    }
    end(text, alone);
}

/* ---------------------------------------------------------------------------------------- bars */

void qn__chart_bars(qn__text *text, const char *title, const qn__chart_bar *bar, size_t bars,
                    int alone) {
    begin(text, WIDTH, BAR_TOP + BAR_ROW * (unsigned)bars + 4, title, alone);
    for (size_t i = 0; i < bars; ++i) {
        const unsigned top = BAR_TOP + BAR_ROW * (unsigned)i;
        const double part = bar[i].part > 0 ? bar[i].part < 1 ? bar[i].part : 1 : 0;
        qn__text_add(text, "<text x=\"%d\" y=\"%u\">", BAR_LEFT, top + 12);
        qn__markup_add(text, bar[i].name, 34);
        qn__text_add(
            text,
            "</text><text class=\"d e\" x=\"%d\" y=\"%u\">%s</text>\n"
            "<rect class=\"r\" x=\"%d\" y=\"%u\" width=\"%d\" height=\"10\" rx=\"3\"/>"
            "<rect class=\"b\" x=\"%d\" y=\"%u\" width=\"%.1f\" height=\"10\" rx=\"3\"/>\n",
            RIGHT, top + 12, bar[i].value, BAR_LEFT, top + 18, RIGHT - BAR_LEFT, BAR_LEFT, top + 18,
            part * (RIGHT - BAR_LEFT));
    }
    end(text, alone);
}

/* Neighbours that look alike are one rectangle. */
static void add_strip(qn__text *text, const qn__chart_strip *strip, unsigned top) {
    enum { SHADES = 16, WIDE = (RIGHT - BAR_LEFT) / QN__CHART_BUCKETS };
    for (int b = 0, n = 1; b < QN__CHART_BUCKETS; b += n) {
        const float part = strip->part[b] < 1 ? strip->part[b] : 1;
        const int shade = (int)(part * SHADES + 0.999f);
        for (n = 1; b + n < QN__CHART_BUCKETS; ++n) {
            const float next = strip->part[b + n] < 1 ? strip->part[b + n] : 1;
            if ((int)(next * SHADES + 0.999f) != shade)
                break;
        }
        if (shade > 0)
            qn__text_add(text,
                         "<rect class=\"b\" x=\"%d\" y=\"%u\" width=\"%d\" height=\"10\" "
                         "opacity=\"%.2f\"/>",
                         BAR_LEFT + b * WIDE, top, n * WIDE, (double)shade / SHADES);
    }
    qn__text_add(text, "\n");
}

void qn__chart_strips(qn__text *text, const char *title, const qn__chart_strip *strip,
                      size_t strips, double seconds, int alone) {
    const unsigned bottom = BAR_TOP + BAR_ROW * (unsigned)strips;
    begin(text, WIDTH, bottom + 22, title, alone);
    for (size_t i = 0; i < strips; ++i) {
        const unsigned top = BAR_TOP + BAR_ROW * (unsigned)i;
        qn__text_add(text, "<text x=\"%d\" y=\"%u\">", BAR_LEFT, top + 12);
        qn__markup_add(text, strip[i].name, 40);
        qn__text_add(text,
                     "</text>\n<rect class=\"r\" x=\"%d\" y=\"%u\" width=\"%d\" "
                     "height=\"10\"/>",
                     BAR_LEFT, top + 18, RIGHT - BAR_LEFT);
        add_strip(text, &strip[i], top + 18);
    }
    qn__text_add(text,
                 "<text class=\"d\" x=\"%d\" y=\"%u\">0 s</text><text class=\"d e\" x=\"%d\" "
                 "y=\"%u\">%.4g s</text>\n",
                 BAR_LEFT, bottom + 10, RIGHT, bottom + 10, seconds);
    end(text, alone);
}

/* -------------------------------------------------------------------------------------- matrix */

enum { MATRIX = 560, NAMES = 96, NUMBERS = 24, NAMED = 40 };

static void add_names(qn__text *text, const qn__chart_matrix *m, double side) {
    char buffer[16];
    for (uint32_t c = 0; c < m->classes && m->classes <= NAMED; ++c) {
        const double at = NAMES + side * (c + 0.5);
        qn__text_add(text, "<text class=\"d e\" x=\"%d\" y=\"%.1f\">", NAMES - 6, at + 4);
        qn__markup_add(text, m->name(m->user, c, buffer), 12);
        qn__text_add(text, "</text><text class=\"d\" transform=\"translate(%.1f %d) rotate(-60)\">",
                     at + 4, NAMES - 6);
        qn__markup_put(text, "", m->name(m->user, c, buffer), 12, "</text>\n");
    }
}

static void add_cell(qn__text *text, const qn__chart_matrix *m, double side, uint32_t label,
                     uint32_t class, uint64_t sum) {
    const uint64_t count = m->count[(size_t)label * m->classes + class];
    const double part = sum ? (double)count / (double)sum : 0;
    const double left = NAMES + side * class, top = NAMES + side * label;
    if (count == 0)
        return;
    qn__text_add(text,
                 "<rect class=\"c\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                 "opacity=\"%.3f\"/>",
                 left, top, side, side, 0.08 + 0.5 * part);
    if (side >= NUMBERS)
        qn__text_add(text, "<text class=\"m\" x=\"%.1f\" y=\"%.1f\">%" PRIu64 "</text>",
                     left + side / 2, top + side / 2 + 4, count);
    qn__text_add(text, "\n");
}

void qn__chart_matrix_add(qn__text *text, const qn__chart_matrix *m, int alone) {
    const double side =
        (double)(MATRIX - NAMES) / m->classes < 48 ? (double)(MATRIX - NAMES) / m->classes : 48;
    const unsigned width = NAMES + (unsigned)(side * m->classes) + 12;
    begin(text, width > WIDTH ? width : WIDTH, NAMES + (unsigned)(side * m->classes) + 12, m->title,
          alone);
    add_names(text, m, side);
    for (uint32_t label = 0; label < m->classes; ++label) {
        uint64_t sum = 0;
        for (uint32_t c = 0; c < m->classes; ++c)
            sum += m->count[(size_t)label * m->classes + c];
        for (uint32_t c = 0; c < m->classes; ++c)
            add_cell(text, m, side, label, c, sum);
    }
    qn__text_add(text, "<rect class=\"w\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%.1f\"/>\n",
                 NAMES, NAMES, side * m->classes, side * m->classes);
    end(text, alone);
}
