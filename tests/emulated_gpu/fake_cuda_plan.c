/* Reading the fake driver's plan. */
#include "fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

plan the_plan;

EXPORT void qn_fake_cuda_plan(const char *text);

void qn_fake_cuda_plan(const char *text) {
    static const struct {
        const char *name;
        size_t place;
    } words[] = {{"devices", offsetof(plan, devices)},
                 {"driver", offsetof(plan, driver)},
                 {"capability", offsetof(plan, capability)},
                 {"memory", offsetof(plan, memory)},
                 {"late", offsetof(plan, late)},
                 {"prohibited", offsetof(plan, prohibited)},
                 {"init", offsetof(plan, init)},
                 {"retain", offsetof(plan, retain)},
                 {"image", offsetof(plan, image)},
                 {"on", offsetof(plan, on)},
                 {"alloc", offsetof(plan, alloc)},
                 {"launch", offsetof(plan, launch)},
                 {"hang", offsetof(plan, hang)},
                 {"wrong", offsetof(plan, wrong)},
                 {"send", offsetof(plan, send)},
                 {"order", offsetof(plan, order)},
                 {"flush", offsetof(plan, flush)},
                 {"matrix", offsetof(plan, matrix)},
                 {"matrix_image", offsetof(plan, matrix_image)},
                 {"matrix_kernel", offsetof(plan, matrix_kernel)},
                 {"matrix_fault", offsetof(plan, matrix_fault)},
                 {"dots_fault", offsetof(plan, dots_fault)},
                 {"plain_fault", offsetof(plan, plain_fault)},
                 {"stuck", offsetof(plan, stuck)},
                 {"code", offsetof(plan, code)}};
    the_plan = (plan){
        .devices = 1, .driver = 13000, .capability = 90, .memory = 1024, .code = ILLEGAL_ADDRESS};
    for (int d = 0; d < MOST_DEVICES; ++d)
        devices[d].allocs = devices[d].launches = 0;
    while (text && *text) {
        const size_t name = strcspn(text, "=,"), all = strcspn(text, ",");
        int found = 0;
        for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
            if (strlen(words[i].name) == name && memcmp(words[i].name, text, name) == 0) {
                const int value = (int)strtol(text + name + (text[name] == '='), NULL, 10);
                memcpy((char *)&the_plan + words[i].place, &value, sizeof value);
                found = 1;
            }
        if (!found) {
            fprintf(stderr, "fake CUDA: the plan has an unknown word: %s\n", text);
            abort();
        }
        text += all + (text[all] == ',');
    }
    if (the_plan.devices > MOST_DEVICES)
        the_plan.devices = MOST_DEVICES;
}

__attribute__((constructor)) static void first_plan(void) {
    qn_fake_cuda_plan(getenv("QN_FAKE_CUDA"));
}
