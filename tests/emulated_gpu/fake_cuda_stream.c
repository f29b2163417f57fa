/* Streams of the fake driver: queues of work, done at once or when asked for. */
#include "fake_cuda.h"

#include "kernels/step.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void flush_subnormals(const op *o) {
    /* The result of the self-test's arithmetic, as a device without subnormal numbers gives it. */
    uint64_t *out = (uint64_t *)(uintptr_t)o->value[3];
    const uint64_t count = o->value[4];
    for (uint64_t i = 0; i < count; ++i)
        if ((out[i] & 0x7f800000u) == 0 && out[i] <= 0xffffffffu)
            out[i] &= 0x80000000u;
}

/* Which argument of a product of integers is written. */
static int result_of(const char *name) {
    return strncmp(name, "qn_intgemm_forward", 16) == 0  ? 7
           : strncmp(name, "qn_intgemm_errors", 15) == 0 ? 5
                                                         : 4;
}

/* What a kernel fails with because of how it multiplies integers; 0: it does not. */
static CUresult fault_of(const op *o) {
    const char *name = o->kernel->name;
    if (strstr(name, "_matrix_"))
        return the_plan.matrix_fault;
    if (strncmp(name, "qn_intgemm_", 9) != 0)
        return DONE;
    return o->products & QN_WITH_PLAIN ? the_plan.plain_fault : the_plan.dots_fault;
}

/* Spoils the first byte of what the kernel has written and read. The one that is named is spoilt at
 * each launch, so a bit that only changed to and fro could end as it was. */
static void spoil(const op *o, int launches) {
    const char *named = getenv("QN_FAKE_WRONG_KERNEL");
    const int always = named && strcmp(named, o->kernel->name) == 0;
    if (!always && launches != the_plan.wrong)
        return;
    for (int i = 1; o->kernel->arguments[i]; ++i)
        if (o->kernel->arguments[i] == 'M') {
            unsigned char *byte = (unsigned char *)(uintptr_t)o->value[i];
            *byte = (unsigned char)(always ? *byte + 1 : *byte ^ 1);
        }
}

static void run_kernel(device_state *d, const op *o) {
    void *arguments[MOST_ARGUMENTS];
    const int launches = ++devices[d->ordinal].launches;
    if (the_plan.on < 0 && the_plan.launch && launches >= the_plan.launch)
        the_plan.on = d->ordinal;
    const int ours = d->ordinal == the_plan.on;
    if (ours && the_plan.hang && launches >= the_plan.hang) {
        d->hung = 1;
        return;
    }
    if (ours && the_plan.launch && launches >= the_plan.launch)
        d->sticky = the_plan.code;
    else
        d->sticky = fault_of(o);
    if (d->sticky)
        return;
    for (int i = 0; i < MOST_ARGUMENTS; ++i)
        arguments[i] = (void *)(uintptr_t)&o->value[i];
    qn_emulated_quarters(the_plan.capability < 80);
    qn_emulated_launch(o->kernel, o->groups, o->lanes, arguments);
    if (the_plan.matrix && strstr(o->kernel->name, "_matrix_"))
        *(unsigned char *)(uintptr_t)o->value[result_of(o->kernel->name)] ^= 1;
    if (ours && the_plan.flush && strcmp(o->kernel->name, "qn_trial") == 0)
        flush_subnormals(o);
    if (ours)
        spoil(o, launches);
}

static void delay(const op *o) {
    const long all = (long)o->bytes / 1024 * the_plan.send; /* microseconds */
    const struct timespec time = {.tv_sec = all / 1000000, .tv_nsec = all % 1000000 * 1000};
    if (all > 0)
        nanosleep(&time, NULL);
}

static void perform(device_state *d, const op *o) {
    switch (o->kind) {
    case OP_LAUNCH:
        run_kernel(d, o);
        break;
    case OP_UP:
        delay(o);
        memcpy(o->to, o->from, o->bytes);
        break;
    case OP_DOWN:
        memcpy(o->to, o->from, o->bytes);
        break;
    case OP_CLEAR:
        memset(o->to, o->byte, o->bytes);
        break;
    case OP_EVENT:
        if (o->event) {
            o->event->when = seconds_now();
            if (o->event->reached_serial < o->value[0])
                o->event->reached_serial = o->value[0];
        }
        break;
    case OP_WAIT:
        break;
    }
}

/* The stream that has to go on before this one can; NULL: none. */
static CUstream waits_for(CUstream stream) {
    const op *o = stream->first;
    if (!o || o->kind != OP_WAIT || !o->event)
        return NULL;
    for (CUstream s = stream->device->streams; s; s = s->next)
        for (const op *mark = s->first; mark; mark = mark->next)
            if (mark->kind == OP_EVENT && mark->event == o->event && mark->value[0] == o->value[0])
                return s;
    return NULL;
}

/* Does the first of the queue, or of the one that it waits for; 0 when the device hangs. */
static int step(CUstream stream) {
    for (CUstream other; (other = waits_for(stream));)
        stream = other;
    op *o = stream->first;
    if (stream->device->hung)
        return 0;
    if (!stream->device->sticky)
        perform(stream->device, o);
    if (stream->device->hung)
        return 0;
    stream->first = o->next;
    if (!stream->first)
        stream->last = &stream->first;
    free(o);
    stream->asked = 0;
    return 1;
}

int drain(CUstream stream) {
    while (stream->first)
        if (!step(stream))
            return 0;
    return !stream->device->hung;
}

static void append(op ***last, const op *work) {
    op *o = malloc(sizeof *o);
    if (!o)
        abort();
    *o = *work;
    o->next = NULL;
    **last = o;
    *last = &o->next;
}

CUresult enqueue(CUstream stream, const op *work) {
    if (stream->device->sticky)
        return stream->device->sticky;
    if (stream->capture) {
        if (work->kind != OP_LAUNCH && work->kind != OP_CLEAR)
            return CAPTURE_UNSUPPORTED;
        append(&stream->capture->last, work);
        return DONE;
    }
    append(&stream->last, work);
    if (!the_plan.late)
        drain(stream);
    return DONE;
}

/* Some streams do some of their work although nobody asked for it. */
static void run_ahead(device_state *d) {
    static uint32_t chance;
    for (CUstream s = d->streams; s; s = s->next) {
        chance = (chance + (uint32_t)the_plan.order) * 1664525u + 1013904223u;
        for (uint32_t n = chance >> 31 ? chance >> 24 & 15 : 0; n > 0 && s->first; --n)
            if (waits_for(s) || !step(s))
                break;
    }
}

/* Late work waits for two questions; the third finds one more piece of it done, and so on. */
CUresult query(CUstream stream, CUevent event) {
    device_state *d = stream->device;
    if (d->sticky)
        return d->sticky;
    while (!d->hung && stream->first && (!event || event->reached_serial < event->serial)) {
        if (the_plan.late && ++stream->asked < 2)
            return NOT_READY;
        if (the_plan.order)
            run_ahead(d);
        if (!stream->first)
            break;
        if (!step(stream))
            break;
    }
    if (d->sticky)
        return d->sticky;
    if (event)
        return event->reached_serial < event->serial ? NOT_READY : DONE;
    return stream->first || d->hung ? NOT_READY : DONE;
}

void drop_ops(op *first) {
    while (first) {
        op *next = first->next;
        free(first);
        first = next;
    }
}
