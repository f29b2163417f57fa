#include "compute.h"
#include "message.h"
#include <stddef.h>
#include <string.h>

#define AT(member) .place = offsetof(compute_flags, member)

static const option_word isas[] = {{"auto", "the fastest; all give the same bytes"},
                                   {"scalar", "plain C"},
                                   {"avx2", "x86 with AVX2"},
                                   {"avx512", "x86 with AVX-512"},
                                   {"vnni", "AVX-512 with dot products of bytes"},
                                   {"amx", "AVX-512 with matrix units"},
                                   {"neon", "Arm with NEON"},
                                   {"dotprod", "NEON with dot products of bytes"},
                                   {NULL, NULL}};

static const option_word gpu_isas[] = {{"auto", "all instructions of the GPU"},
                                       {"dp4a", "no matrix units"},
                                       {"plain", "no matrix units, no dot products of bytes"},
                                       {NULL, NULL}};

const option compute_options[] = {
    {.name = "devices",
     .kind = OPTION_TEXT,
     AT(devices),
     .value = "LIST",
     .help = "devices that can take part: auto, or a list of cpu, cpu:4 (cores), opencl:0, "
             "cuda:all, as \"quern\tdevices\" names them",
     .fallback = "auto: the CPU and every GPU that makes the job faster"},
    {.name = "threads",
     .kind = OPTION_COUNT,
     AT(threads),
     .value = "N",
     .high = 4096,
     .help = "cores of the CPU to use",
     .fallback = "0: all that the process may use"},
    {.name = NULL}};

const option compute_expert_options[] = {
    {.name = "isa",
     .kind = OPTION_CHOICE,
     AT(isa),
     .value = "NAME",
     .words = isas,
     .help = "instruction set of the CPU; an error where the machine lacks it",
     .fallback = "auto"},
    {.name = "gpu-isa",
     .kind = OPTION_CHOICE,
     AT(gpu_isa),
     .value = "NAME",
     .words = gpu_isas,
     .help = "instructions for integer products on GPUs",
     .fallback = "auto"},
    {.name = "shares",
     .kind = OPTION_TEXT,
     AT(shares),
     .value = "LIST",
     .help = "for experiments: fixed shares of each step for the devices of --devices, such as 3,1",
     .fallback = "by measured speed"},
    {.name = "device-timeout",
     .kind = OPTION_TEXT,
     AT(timeout),
     .value = "SECONDS",
     .help = "a device that does not answer for this long counts as failed; the others take over "
             "its work",
     .field = "compute.device_timeout"},
    {.name = NULL}};

qn_compute compute_of(const compute_flags *f) {
    float seconds = 0;
    if (f->timeout)
        read_float(f->timeout, &seconds);
    return (qn_compute){.size = sizeof(qn_compute),
                        .threads = (int)f->threads,
                        .isa = f->isa ? f->isa : "auto",
                        .gpu_isa = f->gpu_isa,
                        .devices = f->devices,
                        .shares = f->shares,
                        .device_timeout = (double)seconds};
}

/* 1 if --devices names the CPU alone: "cpu", "cpu:4". */
static int cpu_alone(const compute_flags *f) {
    return f->devices && strncmp(f->devices, "cpu", 3) == 0 && !strchr(f->devices, ',');
}

int compute_check(const compute_flags *f) {
    const qn_compute compute = compute_of(f);
    float seconds;
    qn_error err;
    if (f->timeout && !(read_float(f->timeout, &seconds) && seconds > 0))
        return message_usage("it is a number of seconds, such as 60 or 0.5",
                             "--device-timeout cannot be \"%s\"", f->timeout);
    if (f->gpu_isa && cpu_alone(f))
        return message_usage("leave it out, or name a GPU with --devices",
                             "--gpu-isa does nothing with --devices %s", f->devices);
    if (qn_compute_check(&compute, &err) != QN_OK)
        return message_error(&err);
    return -1;
}
