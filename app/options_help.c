/* The help of a command, generated from its table: at most 80 columns, without breaking words. */

#include "command.h"
#include "options.h"
#include <stdio.h>
#include <string.h>

enum { WIDTH = 79, INDENT = 27 };

/* Prints a word; a tab in it is a non-breaking blank. */
static void print_word(const char *word, int length) {
    for (int i = 0; i < length; i++)
        putchar(word[i] == '\t' ? ' ' : word[i]);
}

/* Prints one paragraph from column `column` on, wrapped at WIDTH; further lines begin at
 * `indent`. */
static void print_paragraph(const char *text, int length, int column, int indent) {
    int first = 1;
    for (int at = 0; at < length;) {
        int word = (int)strcspn(text + at, " \n");
        if (word > length - at)
            word = length - at;
        if (!first && column + 1 + word > WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            putchar(' ');
            column++;
        }
        print_word(text + at, word);
        column += word;
        at += word + 1;
        first = 0;
    }
    putchar('\n');
}

/* Paragraphs end at line ends; a line that begins with a blank is printed as it is. */
static void print_text(const char *text) {
    while (*text) {
        int length = (int)strcspn(text, "\n");
        if (text[0] == ' ')
            printf("%.*s\n", length, text);
        else
            print_paragraph(text, length, 0, 0);
        text += length + (text[length] == '\n');
    }
}

/* A name at column `left` and a text at INDENT, on the next line if the name is too long. */
static void print_pair(int left, const char *name, const char *text) {
    int column = printf("%*s%s", left, "", name);
    if (column + 2 > INDENT && (column >= INDENT || *text == '\0')) {
        putchar('\n');
        column = 0;
    }
    if (*text == '\0') {
        if (column > 0)
            putchar('\n');
        return;
    }
    printf("%*s", INDENT - column, "");
    print_paragraph(text, (int)strlen(text), INDENT, INDENT);
}

static void add(char *text, size_t size, const char *piece) {
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", piece);
}

static void print_option(const option *o) {
    char left[80], fallback[FALLBACK_CAPACITY], text[640];
    option_word word;
    const char *value = o->kind == OPTION_FLAG ? "" : o->value;
    snprintf(left, sizeof left, "%s%c%s--%s%s%s", o->letter ? "-" : "", o->letter ? o->letter : ' ',
             o->letter ? ", " : "", o->name, *value ? " " : "", value);
    options_about(o, text, sizeof text);
    for (uint32_t i = 0; o->brief && options_word(o, i, &word); i++) {
        add(text, sizeof text, i > 0 ? ", " : "");
        add(text, sizeof text, word.name);
    }
    if (*options_fallback(o, fallback, sizeof fallback)) {
        add(text, sizeof text, " [");
        add(text, sizeof text, fallback);
        add(text, sizeof text, "]");
    }
    print_pair(2, left + (o->letter ? 0 : 1), text);
    for (uint32_t i = 0; !o->brief && options_word(o, i, &word); i++)
        print_pair(6, word.name, word.about ? word.about : "");
}

static void print_examples(const char *examples) {
    puts("Examples:");
    while (*examples) {
        int length = (int)strcspn(examples, "\n");
        printf("  %.*s\n", length, examples);
        examples += length + (examples[length] == '\n');
    }
}

static void print_formats(qn_choice_kind kind) {
    if (kind == QN_CHOICE_NONE)
        return;
    puts("Formats:");
    for (uint32_t i = 0; qn_choice_name(kind, i); i++)
        print_pair(2, qn_choice_name(kind, i), qn_choice_about(kind, i));
    putchar('\n');
}

void options_help(const command *self) {
    printf("quern %s: %s\n\nusage: %s\n\n", self->name, self->summary, self->usage);
    if (self->about) {
        print_text(self->about);
        putchar('\n');
    }
    print_formats(self->formats);
    print_examples(self->examples);
    option_row row;
    int count = 0;
    for (; options_row(self->options, count, &row); count++) {
        if (row.heading)
            printf("\n%s:\n", row.heading);
        print_option(row.option);
    }
    putchar('\n');
    print_pair(2, "-h, --help", "print this text");
    puts("\nExit codes: 0 done, 1 failed, 2 bad usage, 3 replay differs, 130 interrupted.");
}
