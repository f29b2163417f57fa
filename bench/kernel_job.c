/*
 * kernel_job: the time of a user kernel in a program whose arrays are in memory.
 *
 *     kernel_job KERNEL THREADS ITERATIONS SHAPE NAME=VALUE...
 *
 * SHAPE is AxBxC. VALUE is that of a scalar; FILE:SHAPE of an input, a file of numbers alone; the
 * FILE of an output. Inputs are read into memory, and the memory of outputs has been used before,
 * as in the programs of bench/kernel.py. Prints the seconds of the run. */
#include <quern/quern.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 32 };

typedef struct array {
    const char *path; /* of an output; NULL: of an input */
    void *data;
    size_t bytes;
} array;

typedef struct job {
    qn_kernel *kernel;
    uint64_t shape[QN_KERNEL_DIMENSIONS];
    array array[MOST];
    int arrays;
} job;

static int complain(const char *what, const char *of) {
    fprintf(stderr, "kernel_job: %s %s\n", what, of);
    return 1;
}

static int fail(const qn_error *err) {
    fprintf(stderr, "kernel_job: %s: %s\n  %s\n", err->where, err->what, err->remedy);
    return 1;
}

/* The lengths of AxBxC; returns how many there are. */
static uint32_t shape_of(const char *text, uint64_t shape[QN_KERNEL_DIMENSIONS]) {
    uint32_t dimensions = 0;
    while (dimensions < QN_KERNEL_DIMENSIONS) {
        char *end;
        shape[dimensions++] = strtoull(text, &end, 10);
        if (*end != 'x')
            break;
        text = end + 1;
    }
    return dimensions;
}

/* The bytes of a number: the type's name ends with its bits. */
static size_t size_of(const char *type) {
    return (size_t)strtoul(type + strcspn(type, "0123456789"), NULL, 10) / 8;
}

static int read_input(const char *path, array *a) {
    FILE *f = fopen(path, "rb");
    const int good = f && fread(a->data, 1, a->bytes, f) == a->bytes;
    if (f)
        fclose(f);
    return good ? 0 : complain("cannot read", path);
}

static int write_output(const array *a) {
    FILE *f = fopen(a->path, "wb");
    const int good = f && fwrite(a->data, 1, a->bytes, f) == a->bytes;
    if (f && fclose(f) != 0)
        return complain("cannot close", a->path);
    return good ? 0 : complain("cannot write", a->path);
}

/* Binds memory to an array, and fills that of an input. `text` is changed. */
static int bind_array(job *j, const qn_kernel_part *p, char *text) {
    uint64_t shape[QN_KERNEL_DIMENSIONS];
    uint32_t dimensions = p->dimensions;
    array *a = &j->array[j->arrays++];
    qn_error err;
    char *colon = strrchr(text, ':');
    const int is_input = p->use <= QN_KERNEL_HALO;
    if (is_input && !colon)
        return complain("no shape in", text);
    memcpy(shape, j->shape, sizeof shape);
    if (p->bins > 0)
        shape[0] = p->bins;
    if (p->components > 0)
        shape[dimensions - 1] = p->components;
    if (is_input) {
        dimensions = shape_of(colon + 1, shape);
        *colon = '\0';
    }
    a->bytes = size_of(p->type);
    for (uint32_t d = 0; d < dimensions; d++)
        a->bytes *= shape[d];
    a->data = malloc(a->bytes);
    if (!a->data)
        return complain("no memory for", text);
    memset(a->data, 1, a->bytes);
    a->path = is_input ? NULL : text;
    if (is_input && read_input(text, a) != 0)
        return 1;
    return qn_kernel_bind(j->kernel, p->name, a->data, shape, dimensions, &err) == QN_OK
               ? 0
               : fail(&err);
}

/* NAME=VALUE */
static int take(job *j, char *word) {
    qn_kernel_part part = {.size = sizeof part};
    qn_error err;
    char *value = strchr(word, '=');
    if (!value || j->arrays == MOST)
        return complain("cannot take", word);
    *value++ = '\0';
    for (uint32_t i = 0; i < qn_kernel_parts(j->kernel); i++) {
        if (qn_kernel_part_get(j->kernel, i, &part, &err) != QN_OK)
            return fail(&err);
        if (strcmp(part.name, word) != 0)
            continue;
        if (part.use != QN_KERNEL_SCALAR)
            return bind_array(j, &part, value);
        return qn_kernel_set(j->kernel, word, value, &err) == QN_OK ? 0 : fail(&err);
    }
    return complain("the kernel has no", word);
}

static int run(job *j, int threads, uint64_t iterations) {
    qn_kernel_report report = {.size = sizeof report};
    qn_kernel_options options;
    qn_error err;
    qn_kernel_options_init(&options);
    options.threads = threads;
    options.iterations = iterations;
    if (qn_kernel_run(j->kernel, &options, &err) != QN_OK ||
        qn_kernel_report_get(j->kernel, &report, &err) != QN_OK)
        return fail(&err);
    printf("%.9f\n", report.seconds);
    for (int i = 0; i < j->arrays; i++)
        if (j->array[i].path && write_output(&j->array[i]) != 0)
            return 1;
    return 0;
}

int main(int argc, char **argv) {
    job j = {.arrays = 0};
    char **word = argv + 1;
    qn_error err;
    if (argc < 5) {
        fputs("usage: kernel_job KERNEL THREADS ITERATIONS SHAPE NAME=VALUE...\n", stderr);
        return 2;
    }
    if (qn_kernel_open(word[0], &j.kernel, &err) != QN_OK)
        return fail(&err);
    int code = 0;
    const uint32_t dimensions = shape_of(word[3], j.shape);
    if (qn_kernel_set_shape(j.kernel, j.shape, dimensions, &err) != QN_OK)
        code = fail(&err);
    for (int i = 4; word[i] && code == 0; i++)
        code = take(&j, word[i]);
    if (code == 0)
        code = run(&j, atoi(word[1]), strtoull(word[2], NULL, 10));
    qn_kernel_free(j.kernel);
    for (int i = 0; i < j.arrays; i++)
        free(j.array[i].data);
    return code;
}
