#include "compute.h"
#include "message.h"
#include <stddef.h>

#define AT(member) .place = offsetof(compute_flags, member)

const option compute_options[] = {
    {.name = "devices",
     .kind = OPTION_TEXT,
     AT(devices),
     .value = "LIST",
     .help = "who may take part: auto, or a list of cpu, cpu:4 (cores), opencl:0, cuda:all, "
             "as \"quern devices\" names them",
     .fallback = "auto: the CPU and every GPU that makes the job shorter"},
    {.name = "threads",
     .kind = OPTION_COUNT,
     AT(threads),
     .value = "N",
     .high = 4096,
     .help = "cores of the CPU to use",
     .fallback = "0: every core the process may use"},
    {.name = "isa",
     .kind = OPTION_CHOICE,
     AT(isa),
     .choices = "auto|scalar|avx2|avx512|vnni|amx|neon|dotprod",
     .help = "the CPU's instruction set; refused where the machine lacks it",
     .fallback = "auto"},
    {.name = "gpu-isa",
     .kind = OPTION_CHOICE,
     AT(gpu_isa),
     .choices = "auto|dp4a|plain",
     .help = "the most that GPUs may multiply integers with: dp4a bars matrix units, plain also "
             "dot products of bytes",
     .fallback = "auto"},
    {.name = "shares",
     .kind = OPTION_TEXT,
     AT(shares),
     .value = "LIST",
     .help = "for experiments: fixed parts of each step for the devices of --devices, such as 3,1",
     .fallback = "by measured speed"},
    {.name = "device-timeout",
     .kind = OPTION_TEXT,
     AT(timeout),
     .value = "SECONDS",
     .help = "a device that is silent for so long is lost; the others take its work",
     .fallback = "60"},
    {.name = NULL}};

qn_compute compute_of(const compute_flags *f) {
    float seconds = 0;
    if (f->timeout)
        read_float(f->timeout, &seconds);
    return (qn_compute){.threads = (int)f->threads,
                        .isa = f->isa ? f->isa : "auto",
                        .gpu_isa = f->gpu_isa,
                        .devices = f->devices,
                        .shares = f->shares,
                        .device_timeout = (double)seconds};
}

int compute_check(const compute_flags *f) {
    const qn_compute compute = compute_of(f);
    float seconds;
    qn_error err;
    if (f->timeout && !(read_float(f->timeout, &seconds) && seconds > 0))
        return message_usage("it is a number of seconds, such as 60 or 0.5",
                             "--device-timeout cannot be \"%s\"", f->timeout);
    if (qn_compute_check(&compute, &err) != QN_OK)
        return message_error(&err);
    return -1;
}
