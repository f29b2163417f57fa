/* Manual pages in groff's man macros, generated from the tables of options. */

#include "manual.h"
#include "options.h"
#include <ctype.h>
#include <quern/version.h>
#include <stdio.h>
#include <string.h>

const fact manual_exit_codes[] = {
    {"0", "done"},
    {"1", "failed: a file, the data or the machine did not do what the command needs"},
    {"2", "bad usage: an option, a value or the text of a model is wrong"},
    {"3", "replay differs: trained again, the recipe gave other bytes"},
    {"130", "interrupted by Ctrl-C or a signal; train says how to continue"},
    {NULL, NULL}};

const fact manual_environment[] = {
    {"NO_COLOR", "if set, no colours"},
    {"LC_ALL, LC_CTYPE, LANG", "with a UTF-8 locale the progress bar is finer"},
    {"TMPDIR", "where data from a pipe and the output of predict -o - are kept"},
    {"QUERN_CACHE, XDG_CACHE_HOME", "folder of compiled kernels, images, tables [~/.cache/quern]"},
    {"QUERN_RUNS", "file of runs that train writes to and runs and report read [none]"},
    {"QUERN_JOBS, XDG_STATE_HOME", "folder of submitted jobs [~/.local/state/quern/jobs]"},
    {NULL, NULL}};

/* Text with groff's special characters escaped. */
static void put_text(const char *text, int length) {
    for (int i = 0; i < length; i++) {
        const int begins = i == 0 || text[i - 1] == '\n';
        if (begins && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", stdout);
        if (text[i] == '\\')
            fputs("\\e", stdout);
        else if (text[i] == '-')
            fputs("\\-", stdout);
        else if (text[i] == '\t')
            fputs("\\ ", stdout);
        else if (text[i] == '"')
            fputs("\\(dq", stdout);
        else if (text[i] == '\'')
            fputs("\\(aq", stdout);
        else if (text[i] == '~')
            fputs("\\(ti", stdout);
        else if (text[i] == '^')
            fputs("\\(ha", stdout);
        else if (text[i] == '`')
            fputs("\\(ga", stdout);
        else
            putchar(text[i]);
    }
}

static void put(const char *text) { put_text(text, (int)strlen(text)); }

static void put_line(const char *macro, const char *text) {
    printf("%s", macro);
    put(text);
    putchar('\n');
}

/* "quern data info" is the page quern-data-info. */
static void put_page_name(const command *self, int upper) {
    fputs(upper ? "QUERN" : "quern", stdout);
    if (self)
        fputs("\\-", stdout);
    for (const char *p = self ? self->name : ""; *p; p++)
        if (*p == ' ')
            fputs("\\-", stdout);
        else
            putchar(upper ? toupper((unsigned char)*p) : *p);
}

static void put_header(const command *self, const char *summary) {
    puts(".\\\" Made by `quern help --man` from the tables of options.");
    fputs(".TH ", stdout);
    put_page_name(self, 1);
    printf(" 1 \"\" \"quern %s\" \"Quern\"\n.nh\n.ad l\n.SH NAME\n", qn_version());
    put_page_name(self, 0);
    fputs(" \\- ", stdout);
    put_line("", summary);
}

/* Paragraphs; lines that begin with a blank are kept as they are. */
static void put_paragraphs(const char *text) {
    int verbatim = 0, started = 0;
    while (*text) {
        const int length = (int)strcspn(text, "\n"), as_it_is = text[0] == ' ';
        if (as_it_is != verbatim)
            puts(as_it_is ? ".PP\n.nf" : ".fi");
        if (!as_it_is && length > 0 && started)
            puts(".PP");
        if (length > 0) {
            put_text(text, length);
            putchar('\n');
            started = 1;
        }
        verbatim = as_it_is;
        text += length + (text[length] == '\n');
    }
    if (verbatim)
        puts(".fi");
}

static void put_words(const option *o) {
    option_word word;
    if (!options_word(o, 0, &word))
        return;
    if (o->brief) {
        for (uint32_t i = 0; options_word(o, i, &word); i++) {
            fputs(i > 0 ? ", " : "", stdout);
            put(word.name);
        }
        putchar('\n');
        return;
    }
    puts(".RS");
    for (uint32_t i = 0; options_word(o, i, &word); i++) {
        put_line(".TP\n.B ", word.name);
        put_line("", word.about ? word.about : word.name);
    }
    puts(".RE");
}

static void put_option(const option *o) {
    char fallback[FALLBACK_CAPACITY], about[HELP_CAPACITY];
    puts(".TP");
    if (o->letter)
        printf("\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", stdout);
    put(o->name);
    fputs("\\fR", stdout);
    if (o->kind != OPTION_FLAG) {
        fputs(" \\fI", stdout);
        put(o->value);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    put(options_about(o, about, sizeof about));
    putchar('\n');
    if (o->brief)
        put_words(o);
    if (*options_fallback(o, fallback, sizeof fallback)) {
        fputs("[default: ", stdout);
        put(fallback);
        puts("]");
    }
    if (!o->brief)
        put_words(o);
}

static void put_options(const command *self) {
    option_row row;
    puts(".SH OPTIONS");
    for (int i = 0; options_row(self->options, i, &row); i++) {
        if (row.heading) {
            fputs(".SS \"", stdout);
            put(row.heading);
            puts("\"");
        }
        put_option(row.option);
    }
    puts(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nprint the help");
}

static void put_facts(const char *heading, const fact *facts) {
    printf(".SH %s\n", heading);
    for (; facts->name; facts++) {
        put_line(".TP\n.B ", facts->name);
        put_line("", facts->text);
    }
}

static void put_see_also(const command *self) {
    puts(".SH SEE ALSO");
    if (self)
        fputs(".BR quern (1)", stdout);
    for (int i = 0, n = self != NULL; all_commands[i]; i++) {
        if (all_commands[i] == self)
            continue;
        fputs(n++ > 0 ? ",\n.BR " : ".BR ", stdout);
        put_page_name(all_commands[i], 0);
        fputs(" (1)", stdout);
    }
    putchar('\n');
}

static void put_program(void) {
    put_header(NULL, "train and apply neural networks with reproducible bytes");
    puts(".SH SYNOPSIS\n.B quern\n.I COMMAND\n[\\fIoptions\\fR]\n.SH DESCRIPTION\n"
         "Quern trains neural networks on tables and images, and applies them. It uses all CPU\n"
         "cores and GPUs of one machine or of several. The same recipe gives the same bytes on\n"
         "every machine.\n.PP\n"
         "Options are written \\fB\\-\\-name\\fR \\fIVALUE\\fR or "
         "\\fB\\-\\-name=\\fR\\fIVALUE\\fR, in any\norder. Progress, notes and errors go to "
         "stderr, results to stdout. With \\fB\\-\\-json\\fR,\nstdout carries one JSON object a "
         "line.\n.SH COMMANDS");
    for (int i = 0; all_commands[i]; i++) {
        put_line(".TP\n.B ", all_commands[i]->name);
        put_line("", all_commands[i]->summary);
    }
}

void manual_page(const command *self) {
    if (!self) {
        put_program();
    } else {
        put_header(self, self->summary);
        put_line(".SH SYNOPSIS\n.nf\n", self->usage);
        puts(".fi\n.SH DESCRIPTION");
        put_paragraphs(self->about);
        for (uint32_t i = 0; qn_choice_name(self->formats, i); i++) {
            put_line(".TP\n.B ", qn_choice_name(self->formats, i));
            put_line("", qn_choice_about(self->formats, i));
        }
        put_options(self);
        put_line(".SH EXAMPLES\n.nf\n", self->examples);
        puts(".fi");
    }
    put_facts("EXIT STATUS", manual_exit_codes);
    if (!self)
        put_facts("ENVIRONMENT", manual_environment);
    put_see_also(self);
}
