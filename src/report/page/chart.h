/* Charts as SVG: lines over epochs, bars, a matrix of counts. A chart is part of a page, or a file
 * by itself. Colours follow the reader's choice of light or dark. */
#ifndef QN_REPORT_PAGE_CHART_H
#define QN_REPORT_PAGE_CHART_H

#include "base/text/text.h"
#include <stddef.h>
#include <stdint.h>

/* The rules of all charts: a page has them once, a file of its own holds them. */
extern const char qn__chart_style[];

/* How the lines of a chart are told apart: by colour and by dashes. */
enum { QN__CHART_COLOURS = 8 };

/* Point i is at (x[i * stride], y[i * stride]); NaN: there is none. */
typedef struct qn__chart_line {
    const char *name; /* of a user, perhaps */
    const float *x, *y;
    size_t stride, points;
} qn__chart_line;

/* Appends a chart with a legend below. Of many points of a line it shows every so many, and the
 * last. `alone`: 1 for a file of its own. `title` and `below` are plain ASCII. */
void qn__chart_lines(qn__text *text, const char *title, const char *below,
                     const qn__chart_line *line, size_t lines, int alone);

typedef struct qn__chart_bar {
    const char *name; /* of a user, perhaps */
    double part;      /* of the whole width, 0 to 1; below 0 counts as 0 */
    char value[48];   /* the text at its end, plain ASCII */
} qn__chart_bar;

void qn__chart_bars(qn__text *text, const char *title, const qn__chart_bar *bar, size_t bars,
                    int alone);

/* A strip of time: part[b] of the time of bucket b was used, 0 to 1; more counts as 1. */
enum { QN__CHART_BUCKETS = 170 };
typedef struct qn__chart_strip {
    const char *name; /* of a user, perhaps */
    float part[QN__CHART_BUCKETS];
} qn__chart_strip;

/* Strips below each other, from 0 to `seconds`. */
void qn__chart_strips(qn__text *text, const char *title, const qn__chart_strip *strip,
                      size_t strips, double seconds, int alone);

/* Counts of labels (rows) and predictions; the colour of a cell is its part of the row. `name` is
 * called for the name of a class. */
typedef struct qn__chart_matrix {
    const char *title;
    uint32_t classes;
    const uint64_t *count; /* classes x classes */
    const char *(*name)(const void *user, uint32_t class, char buffer[16]);
    const void *user;
} qn__chart_matrix;

void qn__chart_matrix_add(qn__text *text, const qn__chart_matrix *matrix, int alone);

#endif
