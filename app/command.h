/* A subcommand of `quern`: its name, its options, and its function.
 *
 * One file for each, named NAME_command.c, defines one `const command`; main.c lists them. An
 * option is defined only in the table of its command: parser, help, manual pages, completions and
 * suggestions read it. */
#ifndef APP_COMMAND_H
#define APP_COMMAND_H

#include "options.h"

/* The exit codes of the program; `quern help` documents them. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_DIFFERS = 3, EXIT_INTERRUPTED = 130 };

struct command {
    const char *name;    /* "train", "data info" */
    const char *summary; /* a short phrase for the list of commands */
    const char *usage;   /* "quern train [--data FILE] [options] -o FILE" */
    const char *about; /* paragraphs for --help, each one line of source text, or NULL. A line that
                          begins with a blank is printed as it is. A tab is a non-breaking blank */
    const option *options;  /* ends with an entry whose name is NULL */
    const command *like;    /* a command whose options are taken too, without being listed in the
                               help: a line of it can be copied; NULL: none */
    size_t like_place;      /* of its values in this command's own struct */
    const char *operand;    /* the positional argument, such as "MODEL"; NULL: none */
    qn_choice_kind formats; /* names with a line each that the help lists after `about` */
    int most_operands;      /* maximum number of operands, up to MOST_FILES + 1; 0: one */
    int optional;           /* 1: operands may be missing */
    const char *examples;   /* lines, each indented by the printer */
    int (*run)(const command *self, int argc, char **argv); /* argv[0] is the program's name */
};

extern const command version_command;
extern const command devices_command;
extern const command data_info_command;
extern const command data_stats_command;
extern const command data_head_command;
extern const command data_convert_command;
extern const command data_split_command;
extern const command data_tokenize_command;
extern const command data_synth_digits_command;
extern const command train_command;
extern const command fit_command;
extern const command predict_command;
extern const command watch_command;
extern const command evaluate_command;
extern const command generate_command;
extern const command serve_command;
extern const command replay_command;
extern const command run_command;
extern const command search_command;
extern const command plan_command;
extern const command model_list_command;
extern const command model_show_command;
extern const command model_export_command;
extern const command model_import_command;
extern const command model_merge_command;
extern const command report_command;
extern const command runs_list_command;
extern const command runs_show_command;
extern const command runs_compare_command;
extern const command runs_export_command;
extern const command launch_command;
extern const command submit_command;
extern const command jobs_command;
extern const command help_command;

/* The commands in the order of the help; ends with NULL. */
extern const command *const *all_commands;

/* Sets all_commands, and completes the tables of the commands. Called once, when the program
 * starts. */
void commands_load(void);

/* The command named by argv[1], argv[2] ("train", or "data" "info"), and in *words the number of
 * words used; NULL if there is none. */
const command *command_find(int argc, char **argv, int *words);

/* The command of exactly that name, or NULL. */
const command *command_named(const char *name);

#endif
