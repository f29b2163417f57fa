/* The fake driver's modules, launches and graphs. */
#include "fake_cuda_text.h"
#include "kernels/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUfunc_st {
    const qn_emulated_kernel *kernel;
    unsigned long products;
};

struct CUmod_st {
    char *image;
    size_t bytes;
    unsigned long products;
    text_program *program; /* of a user kernel, and its function */
    struct CUfunc_st function;
};

/* ---- modules: an image is machine code in ELF, PTX, or what the fake NVRTC wrote */

static size_t image_size(const char *image) {
    if (memcmp(image, "\177ELF", 4) == 0) {
        uint64_t sections;
        uint16_t size, count;
        memcpy(&sections, image + 40, sizeof sections);
        memcpy(&size, image + 58, sizeof size);
        memcpy(&count, image + 60, sizeof count);
        return (size_t)(sections + (uint64_t)size * count);
    }
    if (strncmp(image, "QNFAKE ", 7) == 0 || strstr(image, ".target sm_"))
        return strlen(image);
    return 0;
}

/* Of what the fake NVRTC wrote: its second line tells the program's products. */
static unsigned long products_of(const char *image) {
    static const char word[] = "\nproducts ";
    const char *line = strncmp(image, "QNFAKE ", 7) == 0 ? strstr(image, word) : NULL;
    return line ? strtoul(line + sizeof word - 1, NULL, 10) : 0;
}

static CUresult load(const char *image, CUmodule *module) {
    const size_t bytes = image_size(image);
    char target[32];
    snprintf(target, sizeof target, "QNFAKE sm_%d\n", the_plan.capability);
    if (bytes == 0)
        return INVALID_IMAGE;
    if (strncmp(image, "QNFAKE sm_", 10) == 0 && strncmp(image, target, strlen(target)) != 0)
        return NO_BINARY;
    if (the_plan.matrix_image && (products_of(image) & QN_WITH_MATRIX))
        return the_plan.matrix_image;
    CUmodule m = calloc(1, sizeof *m);
    char *copy = malloc(bytes + 1);
    if (!m || !copy)
        abort();
    memcpy(copy, image, bytes);
    copy[bytes] = '\0';
    m->image = copy;
    m->bytes = bytes;
    m->products = products_of(copy);
    *module = m;
    if (m->products || strncmp(copy, "QNFAKE ", 7) != 0)
        return DONE;
    const char *text = strstr(copy, "\nproducts 0\n");
    m->program = text ? text_program_make(text + strlen("\nproducts 0\n")) : NULL;
    return m->program ? DONE : INVALID_IMAGE;
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned options,
                                   CUjit_option *names, void **values);
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned options,
                            CUjit_option *names UNUSED, void **values UNUSED) {
    BEGIN
    result = the_plan.image ? the_plan.image : options ? INVALID_VALUE : load(image, module);
    END
}

EXPORT CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleUnload(CUmodule module) {
    text_program_free(module->program);
    free(module->image);
    free(module);
    return DONE;
}

/* Functions live as long as the library: one for each kernel of each kind of program. */
EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    enum { FUNCTIONS = 1024 };
    static struct CUfunc_st functions[FUNCTIONS];
    BEGIN
    const qn_emulated_kernel *kernel =
        module->program ? text_program_kernel(module->program, name) : qn_emulated_find(name);
    result = NOT_FOUND;
    if (kernel && module->program) {
        module->function = (struct CUfunc_st){kernel, 0};
        *function = &module->function;
        result = DONE;
        kernel = NULL;
    }
    if (the_plan.matrix_kernel && strstr(name, "_matrix_")) {
        kernel = NULL;
        result = the_plan.matrix_kernel;
    }
    /* The fake NVRTC's image is the text, in which macros make some of the names. */
    if (kernel && (strncmp(module->image, "QNFAKE ", 7) == 0 ||
                   memmem(module->image, module->bytes, name, strlen(name))))
        for (int i = 0; i < FUNCTIONS && result != DONE; ++i)
            if (!functions[i].kernel ||
                (functions[i].kernel == kernel && functions[i].products == module->products)) {
                functions[i] = (struct CUfunc_st){kernel, module->products};
                *function = &functions[i];
                result = DONE;
            }
    END
}

/* ---- launches */

static int take_arguments(device_state *d, const char *kinds, void **arguments, uint64_t *value) {
    for (int i = 0; kinds[i]; ++i) {
        uint32_t word;
        value[i] = 0;
        switch (kinds[i]) {
        case 'M':
            memcpy(&value[i], arguments[i], sizeof value[i]);
            if (value[i] == 0) /* no memory: a kernel that touches it dies */
                break;
            value[i] = (uintptr_t)host_of(d, value[i], 1);
            if (value[i] == 0)
                return 0;
            break;
        case 'U':
            memcpy(&value[i], arguments[i], sizeof value[i]);
            break;
        default:
            memcpy(&word, arguments[i], sizeof word);
            memcpy(&value[i], &word, sizeof word);
        }
    }
    return 1;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned groups0, unsigned groups1,
                               unsigned groups2, unsigned lanes0, unsigned lanes1, unsigned lanes2,
                               unsigned shared, CUstream stream, void **arguments, void **extra);
CUresult cuLaunchKernel(CUfunction function, unsigned groups0, unsigned groups1, unsigned groups2,
                        unsigned lanes0, unsigned lanes1, unsigned lanes2, unsigned shared,
                        CUstream stream, void **arguments, void **extra) {
    BEGIN
    op work = {.kind = OP_LAUNCH,
               .kernel = function->kernel,
               .products = function->products,
               .groups = {groups0, groups1, groups2},
               .lanes = lanes0 * lanes1};
    if (!groups0 || !groups1 || !groups2 || groups1 > 65535 || groups2 > 65535 || lanes2 != 1 ||
        lanes0 * lanes1 < 1 || lanes0 * lanes1 > 1024 || shared || extra || stream->device != d ||
        !take_arguments(d, function->kernel->arguments, arguments, work.value))
        result = INVALID_VALUE;
    else
        result = enqueue(stream, &work);
    END
}

/* ---- recordings */

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
    BEGIN
    if (stream->capture || (int)mode != 1)
        result = INVALID_VALUE;
    else {
        stream->capture = calloc(1, sizeof *stream->capture);
        if (!stream->capture)
            abort();
        stream->capture->last = &stream->capture->first;
    }
    END
}

static void drop_graph(CUgraph graph) {
    drop_ops(graph->first);
    free(graph);
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    CUgraph made = stream->capture;
    stream->capture = NULL;
    *graph = made;
    if (stream->device->sticky && made) {
        drop_graph(made);
        *graph = NULL;
    }
    return made ? stream->device->sticky : INVALID_VALUE;
}

static op *copy_ops(const op *from) {
    op *first = NULL, **last = &first;
    for (; from; from = from->next) {
        op *o = malloc(sizeof *o);
        if (!o)
            abort();
        *o = *from;
        o->next = NULL;
        *last = o;
        last = &o->next;
    }
    return first;
}

static CUresult make_ready(CUgraphExec *exec, CUgraph graph) {
    BEGIN
    CUgraphExec e = malloc(sizeof *e);
    if (!e)
        abort();
    e->first = copy_ops(graph->first);
    *exec = e;
    END
}

/* The first is of CUDA 11.4, the second of 11.0: a driver of that time has no other. */
#ifndef QN_FAKE_OLD
EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                            unsigned long long flags);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
    return flags ? INVALID_VALUE : make_ready(exec, graph);
}
#else
EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, void **node, char *log,
                                      size_t capacity);
CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, void **node, char *log,
                               size_t capacity) {
    return node || log || capacity ? INVALID_VALUE : make_ready(exec, graph);
}
#endif

EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    BEGIN
    if (!exec)
        result = INVALID_VALUE;
    for (const op *o = exec ? exec->first : NULL; o && result == DONE; o = o->next)
        result = enqueue(stream, o);
    END
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuGraphExecDestroy(CUgraphExec exec) {
    drop_ops(exec->first);
    free(exec);
    return DONE;
}

EXPORT CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphDestroy(CUgraph graph) {
    drop_graph(graph);
    return DONE;
}
