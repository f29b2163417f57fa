#include "fake_opencl_plan.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

long fake_plan(const char *word, long otherwise) {
    const char *plan = getenv("QN_FAKE_OPENCL");
    const size_t length = strlen(word);
    while (plan && *plan) {
        if (strncmp(plan, word, length) == 0 && plan[length] == '=')
            return strtol(plan + length + 1, NULL, 10);
        plan += strcspn(plan, ",");
        plan += *plan == ',';
    }
    return otherwise;
}

static atomic_long calls[FAKE_KINDS];

int fake_turn(int kind) {
    static const char *const words[FAKE_KINDS] = {"alloc", "launch", "read", "write"};
    return atomic_fetch_add(&calls[kind], 1) + 1 == fake_plan(words[kind], 0);
}

int fake_since(const char *word) {
    const long from = fake_plan(word, 0);
    return from > 0 && atomic_load(&calls[FAKE_LAUNCH]) >= from;
}
