#include "launch_view.h"
#include "format.h"
#include "message.h"
#include "plain.h"
#include "program.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const double REDRAW = 0.125; /* seconds between two drawings */
enum { LINE = 400 };

static struct {
    int quiet, live;
    int drawn; /* lines on the terminal */
    double last;
    char (*told)[32]; /* without a terminal: the last state of each host */
} view = {.last = -1};

void launch_view_begin(int quiet) {
    const char *term = getenv("TERM");
    view.quiet = quiet;
    view.live = !quiet && isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

void launch_view_clear(void) {
    for (; view.drawn > 0; view.drawn--)
        fputs("\033[A\033[2K", stderr);
    view.last = -1;
}

/* ---------------------------------------------------------------- one host */

typedef struct host_state {
    uint32_t ranks, running, ended, failed;
    const launch_rank *shown; /* the rank whose step or last words are shown */
} host_state;

static host_state state_of(const launch_host *host, const launch_rank *ranks, uint32_t count) {
    host_state s = {.shown = ranks};
    for (uint32_t i = 0; i < count; i++) {
        const launch_rank *r = &ranks[i];
        if (r->host != host)
            continue;
        s.ranks++;
        s.running += r->state == LAUNCH_RUNNING;
        s.ended += r->state == LAUNCH_ENDED;
        s.failed += r->state == LAUNCH_ENDED && r->code != 0;
        if (s.ranks == 1 || (s.shown->state == LAUNCH_ENDED && r->state != LAUNCH_ENDED) ||
            (s.shown->code == 0 && r->state == LAUNCH_ENDED && r->code != 0 && s.running == 0))
            s.shown = r;
    }
    return s;
}

/* "running", "starting", "2 of 4 running", "ended", "fell (signal 9)". */
static const char *word_of(const host_state *s, char text[32]) {
    const int code = s->shown->code;
    if (s->ended == s->ranks && s->failed > 0 && code > 128 && code != 130 && code != 255)
        snprintf(text, 32, "fell (signal %d)", code - 128);
    else if (s->ended == s->ranks && s->failed > 0)
        snprintf(text, 32, "ended (code %d)", code);
    else if (s->ended == s->ranks)
        snprintf(text, 32, "ended");
    else if (s->running == s->ranks)
        snprintf(text, 32, "running");
    else if (s->running > 0)
        snprintf(text, 32, "%" PRIu32 " of %" PRIu32 " running", s->running, s->ranks);
    else
        snprintf(text, 32, "starting");
    return text;
}

static void put_details(FILE *to, const host_state *s, int first) {
    const launch_rank *r = s->shown;
    char number[2][32];
    if (s->running == 0)
        fprintf(to, "  %.160s", r->said);
    else if (r->steps > 0) {
        fprintf(to, "  step %s/%s", format_count(r->step, number[0]),
                format_count(r->steps, number[1]));
        if (first && r->rate > 0)
            fprintf(to, "  %s items/s in all", format_rate(r->rate, number[0]));
    }
}

/* ---------------------------------------------------------------- all of them */

/* At most as many lines as the terminal has, and none that wraps. */
static void draw_all(const launch_hosts *hosts, const launch_rank *ranks, uint32_t count) {
    struct winsize size = {.ws_row = 0};
    const int known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
    const int width = known && size.ws_col > 1 ? size.ws_col - 1 : 79;
    const uint32_t rows = known && size.ws_row > 3 ? size.ws_row - 2u : 22;
    const uint32_t shown = hosts->count <= rows ? hosts->count : rows - 1;
    int first = 1;
    for (uint32_t i = 0; i < shown; i++) {
        char *text = NULL, word[32];
        size_t length = 0;
        FILE *to = open_memstream(&text, &length);
        if (!to)
            return;
        const host_state s = state_of(&hosts->at[i], ranks, count);
        fprintf(to, "%-20.60s  %-16s", hosts->at[i].name, word_of(&s, word));
        put_details(to, &s, first);
        first &= s.running == 0;
        if (fclose(to) == 0) {
            (void)plain_print(stderr, text, length, width);
            fputs("\033[K\n", stderr);
            view.drawn++;
        }
        free(text);
    }
    if (shown < hosts->count) {
        fprintf(stderr, "and %" PRIu32 " more hosts\033[K\n", hosts->count - shown);
        view.drawn++;
    }
}

static void tell_changes(const launch_hosts *hosts, const launch_rank *ranks, uint32_t count) {
    if (!view.told)
        view.told = calloc(hosts->count, sizeof *view.told);
    for (uint32_t i = 0; view.told && i < hosts->count; i++) {
        char word[32];
        const host_state s = state_of(&hosts->at[i], ranks, count);
        const int between = s.running > 0 && s.running < s.ranks && s.failed == 0;
        if (between || strcmp(word_of(&s, word), view.told[i]) == 0)
            continue;
        memcpy(view.told[i], word, sizeof word);
        fprintf(stderr, "quern launch: %.200s: %s\n", hosts->at[i].name, word);
    }
}

void launch_view_draw(const launch_hosts *hosts, const launch_rank *ranks, uint32_t count) {
    const double now = program_now();
    if (view.quiet)
        return;
    if (!view.live) {
        tell_changes(hosts, ranks, count);
        return;
    }
    if (view.last >= 0 && now - view.last < REDRAW)
        return;
    if (view.drawn > 0)
        fprintf(stderr, "\033[%dA", view.drawn);
    view.drawn = 0;
    draw_all(hosts, ranks, count);
    fflush(stderr);
    view.last = now;
}

void launch_view_line(FILE *to, const char *before, const char *text, size_t size) {
    if (to == stderr || plain_is_on())
        launch_view_clear();
    if (before)
        fprintf(to, "%.200s: ", before);
    if (to == stderr && isatty(STDERR_FILENO)) {
        char *clean = malloc(size);
        if (clean)
            (void)fwrite(clean, 1, plain_copy(clean, text, size, "\t\n"), to);
        free(clean);
    } else {
        (void)fwrite(text, 1, size, to);
    }
    if (text[size - 1] != '\n' && size < (1 << 20))
        fputc('\n', to);
    fflush(to);
}
