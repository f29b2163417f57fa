/* The commands, which main.c lists: help and completion use the list, and are in it. */
#include "command.h"
#include <string.h>

const command *const *all_commands;

/* The number of words that match the name "data synth digits"; 0 unless all match. */
static int words_of(const char *name, int argc, char **argv) {
    int count = 0;
    while (*name) {
        size_t length = strcspn(name, " ");
        if (count + 1 >= argc || strlen(argv[count + 1]) != length ||
            strncmp(argv[count + 1], name, length) != 0)
            return 0;
        count++;
        name += length + (name[length] == ' ');
    }
    return count;
}

const command *command_find(int argc, char **argv, int *words) {
    for (int i = 0; all_commands[i]; i++) {
        *words = words_of(all_commands[i]->name, argc, argv);
        if (*words > 0)
            return all_commands[i];
    }
    return NULL;
}

const command *command_named(const char *name) {
    for (int i = 0; all_commands[i]; i++)
        if (strcmp(all_commands[i]->name, name) == 0)
            return all_commands[i];
    return NULL;
}
