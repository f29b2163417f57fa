/* Command lines: the input is words, a line each, the first of them the command's. Only the reading
 * of options runs, not the command. */
#include "fuzz/fuzz.h"

#include "command.h"

#include <stdalign.h>

enum { MOST_WORDS = 64, ROOM = 1 << 15 };

/* A word of an option's values may point into the words, and into nothing else of this call. */
static void read_words(int argc, char **argv) {
    static alignas(max_align_t) unsigned char values[ROOM];
    arguments words = {0};
    int used = 0;
    const command *self = command_find(argc, argv, &used);
    if (!self)
        return;
    memset(values, 0, sizeof values);
    const int code = options_read(self, argc, argv, values, &words);
    FUZZ_MUST(code == -1 || code == EXIT_DONE || code == EXIT_USAGE);
    FUZZ_MUST(words.operands >= 0 && words.operands <= MOST_OPERANDS);
    for (int i = 0; code < 0 && i < words.operands; i++)
        FUZZ_MUST(words.operand[i] != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static FILE *nothing;
    char *argv[MOST_WORDS + 2] = {(char[]){"quern"}}, *rest = NULL;
    int argc = 1;
    FILE *const out = stdout, *const err = stderr;
    if (!nothing) {
        commands_load();
        nothing = fopen("/dev/null", "w");
    }
    FUZZ_MUST(nothing != NULL);
    char *text = fuzz_text(bytes, size);
    for (char *word = strtok_r(text, "\n", &rest); word && argc <= MOST_WORDS;
         word = strtok_r(NULL, "\n", &rest))
        argv[argc++] = word;
    stdout = stderr = nothing; /* glibc's and musl's are variables of which a program may set one */
    read_words(argc, argv);
    stdout = out, stderr = err;
    free(text);
    return 0;
}
