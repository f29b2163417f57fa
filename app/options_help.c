/* The help of a command, written from its table. */

#include "command.h"
#include "options.h"
#include <stdio.h>
#include <string.h>

enum { WIDTH = 79, INDENT = 27 };

/* Prints words from column `column` on, breaking lines before WIDTH; lines after the first begin
 * at `indent`. A newline in the text starts a line too. Ends the last line. */
static void wrap(const char *text, int column, int indent) {
    while (*text) {
        int length = (int)strcspn(text, " \n");
        if (column + length > WIDTH && column > indent) {
            printf("\n%*s", indent, "");
            column = indent;
        }
        printf("%.*s", length, text);
        column += length;
        text += length;
        if (*text == '\n') {
            printf("\n%*s", indent, "");
            column = indent;
            text++;
        } else if (*text == ' ') {
            text++;
            if (column < WIDTH && column + 1 + (int)strcspn(text, " \n") <= WIDTH)
                column += printf(" ");
            else
                column = WIDTH;
        }
    }
    putchar('\n');
}

static void print_option(const option *o) {
    char left[80], text[512];
    const char *value = o->kind == OPTION_FLAG ? "" : o->choices ? o->choices : o->value;
    if (o->letter)
        snprintf(left, sizeof left, "  -%c, --%s %s", o->letter, o->name, value);
    else
        snprintf(left, sizeof left, "  --%s %s", o->name, value);
    snprintf(text, sizeof text, "%s%s%s%s", o->help, o->fallback ? " [" : "",
             o->fallback ? o->fallback : "", o->fallback ? "]" : "");
    int column = printf("%-*s", INDENT - 1, left);
    if (column >= INDENT) {
        printf("\n%*s", INDENT, "");
        column = INDENT;
    } else {
        column += printf(" ");
    }
    wrap(text, column, INDENT);
}

static void print_examples(const char *examples) {
    puts("\nExamples:");
    while (*examples) {
        int length = (int)strcspn(examples, "\n");
        printf("  %.*s\n", length, examples);
        examples += length + (examples[length] == '\n');
    }
}

void options_help(const command *self) {
    printf("usage: %s\n\n", self->usage);
    if (self->about)
        wrap(self->about, 0, 0);
    option_row row;
    int count = 0;
    for (; options_row(self->options, count, &row); count++) {
        if (row.heading)
            printf("%s%s:\n", count == 0 && !self->about ? "" : "\n", row.heading);
        print_option(row.option);
    }
    printf("%s  -h, --help               this text\n", count > 0 ? "" : "\nOptions:\n");
    if (self->examples)
        print_examples(self->examples);
    puts("\nExit codes: 0 done, 1 failed, 2 bad usage, 3 replay differs, 130 interrupted.");
}
