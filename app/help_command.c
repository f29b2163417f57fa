/* quern help: the commands, or one of them; manual pages and completions for packages. */

#include "command.h"
#include "manual.h"
#include "message.h"
#include "shared_rows.h"
#include <stdio.h>
#include <string.h>

typedef struct help_flags {
    int man;
    const char *completion;
} help_flags;

#define AT(member) .place = offsetof(help_flags, member)

static const option_word shells[] = {{"bash", NULL}, {"zsh", NULL}, {"fish", NULL}, {NULL, NULL}};

static const option help_options[] = {
    {.heading = "For packages",
     ROW_FLAG("man", man, "print the manual page of COMMAND, or of quern, in groff's man format")},
    {ROW_CHOICE("completion", completion, "SHELL",
                "print the completion of the command line for a shell:\t"),
     .words = shells, .brief = 1},
    {.name = NULL}};

/* Whether a command is one of a group: "data info" is one of "data". Every command is one of "". */
static int is_in_group(const command *c, const char *group) {
    const size_t length = strlen(group);
    return length == 0 || (strncmp(c->name, group, length) == 0 && c->name[length] == ' ');
}

static void print_commands(const char *group) {
    for (int i = 0; all_commands[i]; i++)
        if (is_in_group(all_commands[i], group))
            printf("  %-18s %s\n", all_commands[i]->name, all_commands[i]->summary);
}

static void short_help(void) {
    puts("quern trains and applies neural networks, and runs kernels of your own. The same\n"
         "recipe gives the same bytes on every machine.\n"
         "\nusage: quern COMMAND [options]\n");
    print_commands("");
    puts("\nStart with    quern train -o digits.safetensors\n"
         "Every option  quern COMMAND --help");
}

static void print_facts(const char *heading, const fact *facts, int width) {
    printf("\n%s:\n", heading);
    for (; facts->name; facts++) {
        if ((int)strlen(facts->name) > width)
            printf("  %s\n  %*s  %s\n", facts->name, width, "", facts->text);
        else
            printf("  %-*s  %s\n", width, facts->name, facts->text);
    }
}

static void long_help(void) {
    short_help();
    puts("\nOptions are written --name VALUE or --name=VALUE, in any order.\n"
         "\nProgress, notes and errors go to stderr, results to stdout. With --json, stdout\n"
         "carries one JSON object a line, and stderr only errors. An error says what is\n"
         "wrong, where, and what to do. A file is written whole, or not at all. A command\n"
         "that fails leaves what was complete before: checkpoints, records of runs,\n"
         "predictions after a stage.");
    print_facts("Exit codes", manual_exit_codes, 3);
    print_facts("Environment", manual_environment, 9);
}

/* Joins the operands to the name of a command: "data", "info" is "data info". */
static void join_words(const arguments *given, char *name, size_t size) {
    size_t used = 0;
    name[0] = '\0';
    for (int i = 0; i < given->operands && used < size; i++)
        used +=
            (size_t)snprintf(name + used, size - used, "%s%s", i > 0 ? " " : "", given->operand[i]);
}

static int is_group(const char *name) {
    for (int i = 0; all_commands[i]; i++)
        if (is_in_group(all_commands[i], name))
            return 1;
    return 0;
}

static void group_help(const char *name) {
    printf("usage: quern %s COMMAND [options]\n\n", name);
    print_commands(name);
    printf("\nEvery option  quern %s COMMAND --help\n", name);
}

static int print(const help_flags *f, const char *name, const command *about) {
    if (f->completion)
        manual_completion(f->completion);
    else if (f->man)
        manual_page(about);
    else if (about)
        options_help(about);
    else if (*name)
        group_help(name);
    else
        long_help();
    return EXIT_DONE;
}

/* "quern help train" prints what "quern train --help" prints. argv is NULL for `quern` alone. */
static int run(const command *self, int argc, char **argv) {
    help_flags f = {0};
    arguments given = {0};
    char name[96];
    if (!argv) {
        short_help();
        return EXIT_DONE;
    }
    int code = argc > 2 ? options_read(self, argc - 2, argv + 2, &f, &given) : -1;
    if (code >= 0)
        return code;
    join_words(&given, name, sizeof name);
    const command *about = *name ? command_named(name) : NULL;
    if (f.completion && (f.man || *name))
        return message_usage("write it alone", "--completion is for all commands together");
    if (*name && !about && (f.man || !is_group(name)))
        return message_usage("\"quern help\" lists the commands", "there is no help on \"%s\"",
                             name);
    return print(&f, name, about);
}

const command help_command = {
    .name = "help",
    .summary = "list the commands, or print the help of one",
    .usage = "quern help [COMMAND] [options]",
    .about = "Without a command, lists the commands, the exit codes and the environment "
             "variables that Quern reads.",
    .operand = "COMMAND",
    .most_operands = 3,
    .optional = 1,
    .options = help_options,
    .examples = "quern help\n"
                "quern help train\n"
                "quern help --man train > quern-train.1\n"
                "quern help --completion bash > quern",
    .run = run};
