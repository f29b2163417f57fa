#include "jsonline.h"
#include "fields.h"
#include "output.h"
#include "plain.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int first; /* nothing was written in the innermost bracket yet */

/* An event is one line in one write, so that a process that dies leaves the whole line or none of
 * it. If memory is short, parts are written directly. */
static struct {
    FILE *to;
    char *text;
    size_t size;
} line;

static void put_letter(char c) { fputc(c, line.to); }

/* The length of the UTF-8 sequence at `p`, 0 if it is invalid (RFC 3629). */
static int sequence(const unsigned char *p) {
    int n = p[0] >= 0xc2 && p[0] <= 0xdf   ? 2
            : (p[0] & 0xf0) == 0xe0        ? 3
            : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
                                           : 0;
    for (int i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

/* File names may be invalid UTF-8, which JSON forbids: invalid bytes become U+FFFD. */
static void put_string(const char *text) {
    put_letter('"');
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        int n = *p >= 0x80 ? sequence(p) : 1;
        if (*p == '"' || *p == '\\')
            fprintf(line.to, "\\%c", *p);
        else if (*p < 0x20)
            fprintf(line.to, "\\u%04x", *p);
        else if (n == 0)
            fputs("\\ufffd", line.to);
        else
            fwrite(p, 1, (size_t)n, line.to);
        p += n > 1 ? n - 1 : 0;
    }
    put_letter('"');
}

static void put_key(const char *key) {
    if (!first)
        put_letter(',');
    first = 0;
    if (key) {
        put_string(key);
        put_letter(':');
    }
}

void json_begin(const char *event) {
    line.to = open_memstream(&line.text, &line.size);
    if (!line.to)
        line.to = stdout;
    put_letter('{');
    first = 1;
    json_text("event", event);
}

void json_text(const char *key, const char *value) {
    put_key(key);
    if (value)
        put_string(value);
    else
        fputs("null", line.to);
}

void json_message(const char *key, const char *text) {
    char buffer[16384];
    json_text(key, text ? fields_spell(text, buffer, sizeof buffer) : NULL);
}

void json_count(const char *key, uint64_t value) {
    put_key(key);
    fprintf(line.to, "%" PRIu64, value);
}

/* The shorter of two texts that parse to the same double. */
void json_number(const char *key, double value) {
    char text[32];
    put_key(key);
    snprintf(text, sizeof text, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof text, "%.17g", value);
    fputs(isfinite(value) ? text : "null", line.to);
}

void json_value(const char *key, const char *value) {
    put_key(key);
    fputs(*value ? value : "null", line.to);
}

void json_flag(const char *key, int value) {
    put_key(key);
    fputs(value ? "true" : "false", line.to);
}

void json_open(const char *key, char bracket) {
    put_key(key);
    put_letter(bracket);
    first = 1;
}

void json_close(char bracket) {
    put_letter(bracket);
    first = 0;
}

/* Earlier output is sent first. */
static void send(const char *text, size_t size) {
    output_flush();
    while (size > 0) {
        const ssize_t put = write(STDOUT_FILENO, text, size);
        if (put < 0 && errno != EINTR) {
            output_lost(errno);
            return;
        }
        text += put > 0 ? put : 0;
        size -= put > 0 ? (size_t)put : 0;
    }
}

void json_end(void) {
    fputs("}\n", line.to);
    if (line.to == stdout) {
        output_flush();
        return;
    }
    if (fclose(line.to) != 0)
        output_lost(ENOMEM);
    else if (plain_is_on()) {
        fwrite(line.text, 1, line.size, stdout);
        output_flush();
    } else
        send(line.text, line.size);
    free(line.text);
}
