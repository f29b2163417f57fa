#include "progress.h"
#include "format.h"
#include "program.h"
#include <inttypes.h>
#include <langinfo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const double REDRAW = 0.125; /* seconds between two drawings */
static const double RELINE = 30;    /* seconds between two lines without a terminal */
enum { WIDEST_BAR = 30, NARROWEST_BAR = 6, ROOM = 512 };

static progress *drawn; /* the bar in the terminal's last line, or NULL */

void progress_init(progress *p, int quiet) {
    const char *term = getenv("TERM"), *plain = getenv("NO_COLOR");
    *p = (progress){.quiet = quiet};
    p->live = !quiet && isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
    p->blocks = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    p->colour = p->live && !(plain && *plain);
    p->last_draw = -1;
}

/* Queried at each drawing, so that a resized window needs no signal handler. */
static int terminal_width(void) {
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

/* A bar of `width` cells of which `share` is full, in eighths of a cell if the locale has block
 * characters. */
static char *draw_bar(const progress *p, char *to, int width, double share) {
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    int eighths = (int)(share * width * 8 + 0.5), full = eighths / 8, rest = eighths % 8;
    to = stpcpy(to, p->blocks ? "│" : "[");
    if (p->colour)
        to = stpcpy(to, "\033[36m");
    for (int i = 0; i < full; i++)
        to = stpcpy(to, p->blocks ? "█" : "=");
    int cells = full;
    if (p->blocks && rest > 0) {
        to = stpcpy(to, parts[rest]);
        cells++;
    } else if (!p->blocks && full < width) {
        to = stpcpy(to, ">");
        cells++;
    }
    for (; cells < width; cells++)
        *to++ = ' ';
    if (p->colour)
        to = stpcpy(to, "\033[0m");
    return stpcpy(to, p->blocks ? "│" : "]");
}

/* The facts next to the bar, most important first; as many as fit into `capacity` cells. */
static int facts(const qn_step_event *e, char *text, int capacity) {
    char piece[4][64], number[24];
    snprintf(piece[0], 64, "  step %" PRIu64 "/%" PRIu64, e->step, e->steps);
    snprintf(piece[1], 64, "  %s left", format_duration(e->seconds_left, number));
    snprintf(piece[2], 64, "  loss %.4g", e->loss);
    snprintf(piece[3], 64, "  %s items/s", format_rate(e->items_per_second, number));
    int used = 0, keep = 0;
    while (keep < 4 && used + (int)strlen(piece[keep]) <= capacity)
        used += (int)strlen(piece[keep++]);
    /* Printed in this order. */
    static const int order[] = {0, 3, 2, 1};
    text[0] = '\0';
    for (int i = 0; i < 4; i++)
        if (order[i] < keep)
            strcat(text, piece[order[i]]);
    return used;
}

static void draw(progress *p, const qn_step_event *e) {
    char line[ROOM], head[48], tail[256];
    /* The last column stays free: writing to it wraps the line on some terminals. */
    int width = terminal_width() - 1;
    int used =
        snprintf(head, sizeof head, "epoch %" PRIu32 "/%" PRIu32 " ", e->epoch + 1, e->epochs);
    if (width < used + NARROWEST_BAR + 2)
        return;
    used += facts(e, tail, width - used - NARROWEST_BAR - 2);
    int bar = width - used - 2 < WIDEST_BAR ? width - used - 2 : WIDEST_BAR;
    char *to = stpcpy(line, "\r");
    to = stpcpy(to, head);
    to = draw_bar(p, to, bar, e->steps > 0 ? (double)e->step / (double)e->steps : 0);
    to = stpcpy(to, tail);
    stpcpy(to, "\033[K");
    fputs(line, stderr); /* one write, so that the line is never partly drawn */
    fflush(stderr);
    p->drawn = 1;
    drawn = p;
}

/* Draws a bar of `width` cells over the line, between two texts. */
static void show_bar(progress *p, const char *before, int width, double part, const char *tail) {
    char line[ROOM], *to = line + sprintf(line, "\r%s", before);
    to = stpcpy(draw_bar(p, to, width, part), tail);
    stpcpy(to, "\033[K");
    fputs(line, stderr);
    fflush(stderr);
    p->drawn = 1;
    drawn = p;
}

static void draw_count(progress *p, const char *what, uint64_t done, uint64_t all) {
    char before[80], tail[80], number[2][32];
    const int width = terminal_width() - 1;
    int used = (int)strlen(what) + 1;
    used += snprintf(tail, sizeof tail, "  %s/%s", format_count(done, number[0]),
                     format_count(all, number[1]));
    if (width < used + NARROWEST_BAR + 2)
        return;
    const int bar = width - used - 2 < WIDEST_BAR ? width - used - 2 : WIDEST_BAR;
    snprintf(before, sizeof before, "%s ", what);
    show_bar(p, before, bar, all > 0 ? (double)done / (double)all : 0, tail);
}

void progress_count(progress *p, const char *what, uint64_t done, uint64_t all) {
    const double t = p->live ? program_now() : 0;
    if (!p->live || (p->last_draw >= 0 && t - p->last_draw < REDRAW))
        return;
    if (p->last_draw >= 0)
        draw_count(p, what, done, all);
    p->last_draw = t;
}

/* What stands beside the bar of a kernel; as much as fits into `capacity` cells. */
static int kernel_facts(const qn_kernel_progress *k, char *text, int capacity) {
    char piece[3][80], number[2][32];
    snprintf(piece[0], 80, "  %s/%s items", format_count(k->done, number[0]),
             format_count(k->items, number[1]));
    snprintf(piece[1], 80, "  %s left", format_duration(k->seconds_left, number[0]));
    snprintf(piece[2], 80, "  %s items/s", format_rate(k->items_per_second, number[0]));
    int used = 0;
    text[0] = '\0';
    for (int i = 0; i < 3 && used + (int)strlen(piece[i]) <= capacity; i++) {
        used += (int)strlen(piece[i]);
        strcat(text, piece[i]);
    }
    return used;
}

static void draw_kernel(progress *p, const qn_kernel_progress *k) {
    char tail[256];
    const int width = terminal_width() - 1;
    const int used = kernel_facts(k, tail, width - NARROWEST_BAR - 2);
    const int capacity = width - used - 2, bar = capacity < WIDEST_BAR ? capacity : WIDEST_BAR;
    if (bar < NARROWEST_BAR)
        return;
    show_bar(p, "", bar, k->items > 0 ? (double)k->done / (double)k->items : 0, tail);
}

void progress_kernel(progress *p, const qn_kernel_progress *k) {
    char text[256];
    const double t = program_now();
    if (p->last_draw < 0)
        p->last_draw = t - k->seconds;
    if (p->quiet || t - p->last_draw < (p->live ? REDRAW : RELINE))
        return;
    p->last_draw = t;
    if (p->live) {
        draw_kernel(p, k);
        return;
    }
    kernel_facts(k, text, sizeof text - 1);
    fprintf(stderr, "%s\n", text);
    fflush(stderr);
}

/* For long epochs only: the interval restarts with each. */
static void print_line(const qn_step_event *e) {
    char text[256];
    facts(e, text, sizeof text);
    fprintf(stderr, "  epoch %" PRIu32 "/%" PRIu32 "%s\n", e->epoch + 1, e->epochs, text);
    fflush(stderr);
}

void progress_step(progress *p, const qn_step_event *event) {
    if (p->quiet)
        return;
    double t = program_now();
    if (p->last_draw >= 0 && t - p->last_draw < (p->live ? REDRAW : RELINE))
        return;
    if (p->live)
        draw(p, event);
    else if (p->last_draw >= 0)
        print_line(event);
    p->last_draw = t;
}

void progress_clear(progress *p) {
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = 0;
    drawn = NULL;
}

void progress_make_way(void) {
    if (drawn)
        progress_clear(drawn);
}

/* Of real labels the error in their units, which the loss of a training does not always tell. */
static void print_score(const qn_score *s, int real, int next) {
    char number[32];
    if (s->items == 0)
        return;
    fprintf(stderr, "  %10.5g", s->loss);
    if (!real)
        fprintf(stderr, "  %6.2f %%", 100.0 * (double)s->correct / (double)s->items);
    else if (isfinite(s->rmse))
        fprintf(stderr, "  %8s", format_quantity(s->rmse, number));
    else
        fprintf(stderr, "  %8s", "-");
    if (next)
        fprintf(stderr, "  %10.5g", exp(s->loss));
}

static void print_heading(const qn_epoch_event *e, int digits) {
    const char *what = e->real ? "RMSE" : "accuracy", *more = e->next ? "  perplexity" : "";
    fprintf(stderr, "%*s  %10s  %8s%s", 5 + 2 * digits + 1, "epoch", "loss", what, more);
    if (e->valid.items > 0)
        fprintf(stderr, "  %10s  %8s%s", "valid loss", what, more);
    if (e->test.items > 0)
        fprintf(stderr, "  %10s  %8s%s", "test loss", what, more);
    fprintf(stderr, "  %8s  %8s\n", "seconds", "items/s");
}

void progress_epoch(progress *p, const qn_epoch_event *e) {
    char rate[16];
    if (p->quiet)
        return;
    int digits = snprintf(NULL, 0, "%" PRIu32, e->epochs);
    progress_clear(p);
    if (!p->headed)
        print_heading(e, digits);
    p->headed = 1;
    fprintf(stderr, "%*" PRIu32 "/%" PRIu32, 5 + digits, e->epoch, e->epochs);
    print_score(&e->train, e->real, e->next);
    print_score(&e->valid, e->real, e->next);
    print_score(&e->test, e->real, e->next);
    fprintf(stderr, "  %8.2f  %8s\n", e->seconds, format_rate(e->items_per_second, rate));
    fflush(stderr);
    p->last_draw = -1;
}
