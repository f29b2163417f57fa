/* quern: finds the command by the first words and runs it. */

#include "command.h"
#include "interrupt.h"
#include "message.h"
#include "own_stack.h"
#include "plain.h"
#include "recipe_rows.h"
#include "suggest.h"
#include "synonyms.h"
#include <fenv.h>
#include <locale.h>
#include <quern/version.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const command *const commands[] = {&train_command,
                                          &fit_command,
                                          &predict_command,
                                          &evaluate_command,
                                          &generate_command,
                                          &serve_command,
                                          &watch_command,
                                          &replay_command,
                                          &run_command,
                                          &search_command,
                                          &launch_command,
                                          &submit_command,
                                          &jobs_command,
                                          &data_info_command,
                                          &data_stats_command,
                                          &data_head_command,
                                          &data_convert_command,
                                          &data_split_command,
                                          &data_tokenize_command,
                                          &data_synth_digits_command,
                                          &model_list_command,
                                          &model_show_command,
                                          &model_export_command,
                                          &model_import_command,
                                          &model_merge_command,
                                          &devices_command,
                                          &plan_command,
                                          &report_command,
                                          &runs_list_command,
                                          &runs_show_command,
                                          &runs_compare_command,
                                          &runs_export_command,
                                          &version_command,
                                          &help_command,
                                          NULL};

/* A word that begins the names of several commands. */
static int is_group(const char *word) {
    return strcmp(word, "data") == 0 || strcmp(word, "model") == 0 || strcmp(word, "runs") == 0;
}

/* "quern data", "quern data synth" and misspelled names. */
static int no_such_command(int argc, char **argv) {
    static const char help[] = "\"quern help\" lists the commands";
    const char *names[sizeof commands / sizeof *commands];
    char typed[128] = "", remedy[256];
    size_t count = 0, used = 0;
    for (int i = 0; all_commands[i]; i++)
        names[count++] = all_commands[i]->name;
    /* Compares both words: "data inof" is similar to "data info". */
    int longest = is_group(argv[1]) ? 3 : 1;
    for (int i = 1; i < argc && i <= longest && argv[i][0] != '-'; i++)
        used += (size_t)snprintf(typed + used, sizeof typed - used, "%s%.30s", i > 1 ? " " : "",
                                 argv[i]);
    if (argv[1][0] == '-')
        snprintf(typed, sizeof typed, "%.60s", argv[1]);
    if (strcmp(typed, "model") == 0)
        return message_usage("such as quern model list; \"quern help model\" lists them",
                             "\"model\" needs a subcommand: list, show, export or import");
    if (strcmp(typed, "data") == 0)
        return message_usage(
            "such as quern data info FILE; \"quern help data\" lists them",
            "\"data\" needs a subcommand: info, stats, head, convert, split, tokenize or synth "
            "digits");
    if (strcmp(typed, "runs") == 0)
        return message_usage("such as quern runs list; \"quern help runs\" lists them",
                             "\"runs\" needs a subcommand: list, show, compare or export");
    const char *ours = synonym_command(typed), *near = suggest(typed, names, count);
    if (ours)
        snprintf(remedy, sizeof remedy, "Quern calls it \"%s\". %s", ours, help);
    else if (near)
        snprintf(remedy, sizeof remedy, "did you mean \"%s\"? %s", near, help);
    else
        snprintf(remedy, sizeof remedy, "%s", help);
    return message_usage(remedy, "there is no command \"%s\"", typed);
}

static int has_word(int argc, char **argv, const char *word) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return 1;
    return 0;
}

static int dispatch(int argc, char **argv) {
    int words;
    if (argc < 2)
        return help_command.run(&help_command, 0, NULL);
    /* Standard options. */
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help_command.run(&help_command, 2, argv);
    if (strcmp(argv[1], "--version") == 0) {
        printf("quern %s\n", qn_version());
        return EXIT_DONE;
    }
    if (argc > 2 && is_group(argv[1]) && argv[2][0] == '-' && has_word(argc, argv, "--help"))
        return help_command.run(&help_command, 3, (char *[]){argv[0], argv[0], argv[1]});
    const command *c = command_find(argc, argv, &words);
    if (!c)
        return no_such_command(argc, argv);
    /* Before the options are parsed, errors use the output that --quiet and --json select. */
    message_setup(c->name, has_word(argc, argv, "--quiet"), has_word(argc, argv, "--json"));
    return c->run(c, argc, argv);
}

void commands_load(void) {
    all_commands = commands;
    recipe_rows_load();
}

static int begin(int argc, char **argv) {
    /* A loaded library may have changed the rounding mode, and options contain numbers. */
    fesetenv(FE_DFL_ENV);
    /* For the characters that the terminal can show; numbers keep the C format. */
    setlocale(LC_CTYPE, "");
    /* Line buffering, so that lines of several ranks in one pipe do not mix. */
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
    /* A closed pipe and a limit on file sizes become errors of a write, not signals. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    plain_start();
    commands_load();
    /* A full disk after `>` is an error like any other. */
    return interrupt_conclude(message_output(dispatch(argc, argv)));
}

int main(int argc, char **argv) {
    interrupt_start();
    return own_stack_run(begin, argc, argv);
}
