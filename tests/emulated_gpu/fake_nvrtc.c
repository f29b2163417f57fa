/* An NVRTC that compiles nothing: its image is a line with the architecture, one with the
 * products, then the text itself. QN_FAKE_NVRTC=fail makes it find an error, =matrix one in
 * programs with matrix instructions alone, =dots in those with dp4a as well; =old makes it one of
 * CUDA 11.0, which writes PTX only and does not tell what it knows. */
#include "kernels/step.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct program {
    char *text;
    char arch[32];
    unsigned long products;
    char log[256];
} program;

#define EXPORT __attribute__((visibility("default")))

static int is(const char *word) {
    const char *told = getenv("QN_FAKE_NVRTC");
    return told && strcmp(told, word) == 0;
}

EXPORT int nvrtcVersion(int *major, int *minor);
int nvrtcVersion(int *major, int *minor) {
    *major = is("old") ? 11 : 13;
    *minor = 0;
    return 0;
}

EXPORT const char *nvrtcGetErrorString(int result);
const char *nvrtcGetErrorString(int result) {
    return result == 6 ? "NVRTC_ERROR_COMPILATION" : result ? "NVRTC_ERROR_INVALID_INPUT" : "ok";
}

EXPORT int nvrtcGetNumSupportedArchs(int *count);
EXPORT int nvrtcGetSupportedArchs(int *list);
static const int archs[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
int nvrtcGetNumSupportedArchs(int *count) {
    *count = (int)(sizeof archs / sizeof *archs);
    return is("old") ? 3 : 0;
}
int nvrtcGetSupportedArchs(int *list) {
    memcpy(list, archs, sizeof archs);
    return 0;
}

EXPORT int nvrtcCreateProgram(program **made, const char *text, const char *name, int headers,
                              const char *const *header, const char *const *header_name);
int nvrtcCreateProgram(program **made, const char *text, const char *name, int headers,
                       const char *const *header, const char *const *header_name) {
    program *p = calloc(1, sizeof *p);
    if (!p || !name || headers || header || header_name)
        return 3;
    p->text = strdup(text);
    *made = p;
    return p->text ? 0 : 3;
}

/* The options that exactness hangs on must be there; what else is asked does not matter. */
EXPORT int nvrtcCompileProgram(program *p, int options, const char *const *option);
int nvrtcCompileProgram(program *p, int options, const char *const *option) {
    static const char arch[] = "--gpu-architecture=";
    static const char products[] = "-DQN_PRODUCTS=";
    int contracts = 1;
    for (int i = 0; i < options; ++i) {
        if (strncmp(option[i], arch, sizeof arch - 1) == 0)
            snprintf(p->arch, sizeof p->arch, "%s", option[i] + sizeof arch - 1);
        if (strncmp(option[i], products, sizeof products - 1) == 0)
            p->products = strtoul(option[i] + sizeof products - 1, NULL, 10);
        contracts &= strcmp(option[i], "--fmad=false") != 0;
    }
    if (contracts || !p->arch[0]) {
        snprintf(p->log, sizeof p->log, "an option is missing\n");
        return 3;
    }
    const int has_matrix = (p->products & QN_WITH_MATRIX) != 0;
    const int has_dots = (p->products & QN_WITH_PLAIN) == 0;
    if (is("fail") || (is("matrix") && has_matrix) || (is("dots") && has_dots)) {
        snprintf(
            p->log, sizeof p->log,
            "quern.cu(7): warning #1: as planned\nquern.cu(12): error: identifier \"grain\" is "
            "undefined\n");
        return 6;
    }
    return 0;
}

EXPORT int nvrtcDestroyProgram(program **p);
int nvrtcDestroyProgram(program **p) {
    free((*p)->text);
    free(*p);
    *p = NULL;
    return 0;
}

EXPORT int nvrtcGetProgramLogSize(program *p, size_t *bytes);
EXPORT int nvrtcGetProgramLog(program *p, char *text);
int nvrtcGetProgramLogSize(program *p, size_t *bytes) {
    *bytes = strlen(p->log) + 1;
    return 0;
}
int nvrtcGetProgramLog(program *p, char *text) {
    memcpy(text, p->log, strlen(p->log) + 1);
    return 0;
}

static size_t image_of(const program *p, char *image) {
    char head[80];
    const int capacity =
        snprintf(head, sizeof head, "QNFAKE %s\nproducts %lu\n", p->arch, p->products);
    const size_t size = (size_t)capacity + strlen(p->text) + 1;
    if (image)
        snprintf(image, size, "%s%s", head, p->text);
    return size;
}

EXPORT int nvrtcGetPTXSize(program *p, size_t *bytes);
EXPORT int nvrtcGetPTX(program *p, char *image);
int nvrtcGetPTXSize(program *p, size_t *bytes) {
    *bytes = image_of(p, NULL);
    return 0;
}
int nvrtcGetPTX(program *p, char *image) {
    image_of(p, image);
    return 0;
}

/* Machine code for a real architecture alone, as the real one has it. */
EXPORT int nvrtcGetCUBINSize(program *p, size_t *bytes);
EXPORT int nvrtcGetCUBIN(program *p, char *image);
int nvrtcGetCUBINSize(program *p, size_t *bytes) {
    *bytes = strncmp(p->arch, "sm_", 3) == 0 ? image_of(p, NULL) : 0;
    return 0;
}
int nvrtcGetCUBIN(program *p, char *image) {
    image_of(p, image);
    return 0;
}
