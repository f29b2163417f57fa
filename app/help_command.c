/* quern help: the commands, or one of them. */

#include "command.h"
#include "message.h"
#include <stdio.h>
#include <string.h>

static const option help_options[] = {{.name = NULL}};

static void print_commands(void) {
    for (int i = 0; all_commands[i]; i++)
        printf("  %-18s %s\n", all_commands[i]->name, all_commands[i]->summary);
}

static void short_help(void) {
    puts("quern trains and applies networks; the same recipe gives the same bytes, every time.\n"
         "\nusage: quern COMMAND [options]\n");
    print_commands();
    puts("\nStart with    quern train -o digits.safetensors\n"
         "Every option  quern COMMAND --help");
}

static void long_help(void) {
    short_help();
    puts("\nOptions are written --name VALUE or --name=VALUE, in any order.\n"
         "\nProgress, notes and errors go to stderr; results go to stdout. With --json,\n"
         "stdout carries one JSON object a line and stderr errors only. An error says\n"
         "what is wrong, where, and what to do about it; no file is touched by a\n"
         "command that fails, but for checkpoints that were asked for.\n"
         "\nExit codes:\n"
         "    0  done\n"
         "    1  failed: a file, the data or the machine would not do\n"
         "    2  bad usage: an option, a value or the text of a model makes no sense\n"
         "    3  replay differs: trained again, the recipe gave other bytes\n"
         "  130  interrupted by Ctrl-C or a signal; train says how to go on\n"
         "\nEnvironment:\n"
         "  NO_COLOR  when set, no colours\n"
         "  LC_ALL, LC_CTYPE, LANG  a UTF-8 locale gets a smoother bar\n"
         "  TMPDIR    where predict -o - keeps its output until it is whole\n"
         "  QUERN_CACHE, XDG_CACHE_HOME\n"
         "            the folder of programs built for GPUs [~/.cache/quern]\n"
         "  QUERN_JOBS, XDG_STATE_HOME\n"
         "            the folder of submitted jobs [~/.local/state/quern/jobs]");
}

/* "quern help train": what "quern train --help" prints. argv is NULL for `quern` alone. */
static int run(const command *self, int argc, char **argv) {
    int words;
    (void)self;
    if (!argv)
        short_help();
    else if (argc <= 2 || strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0)
        long_help();
    else if (strcmp(argv[2], "data") == 0 && argc == 3) {
        options_help(&data_info_command);
        putchar('\n');
        options_help(&data_synth_command);
    } else {
        const command *c = command_find(argc - 1, argv + 1, &words);
        if (!c)
            return message_usage("\"quern help\" lists the commands", "there is no help on \"%s\"",
                                 argv[2]);
        options_help(c);
    }
    return EXIT_DONE;
}

const command help_command = {.name = "help",
                              .summary = "this list, exit codes, or help on one command",
                              .usage = "quern help [COMMAND]",
                              .options = help_options,
                              .examples = "quern help\nquern help train",
                              .run = run};
