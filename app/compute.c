#include "compute.h"
#include "message.h"
#include "ranks.h"
#include "shared_rows.h"
#include <quern/network.h>
#include <stddef.h>
#include <string.h>

#define AT(member) .place = offsetof(compute_flags, member)

const option compute_options[] = {
    {ROW_TEXT("devices", devices, "LIST",
              "devices that can take part, such as cpu:4,cuda:0, as \"quern\tdevices\" names them"),
     .from = QN_CHOICE_DEVICE, .fallback = "auto"},
    {ROW_COUNT("threads", threads, 0, 4096, "cores of the CPU to use"),
     .fallback = "0: all that the process may use"},
    {.name = NULL}};

const option compute_memory_options[] = {
    {ROW_COUNT("parts", parts, 0, 4096,
               "compute the grains of a batch in so many parts, one after the other, where memory "
               "does not hold a whole batch"),
     .fallback = "0: as many as the memory asks for"},
    {ROW_FLAG("recompute", recompute,
              "compute outputs inside blocks again in the backward pass instead of keeping them: "
              "less memory, more time")},
    {ROW_FLAG("cache-features", cache_features,
              "with --freeze: compute the outputs of layers that do not train once for each "
              "item, not in each epoch")},
    {.name = NULL}};

const option compute_expert_options[] = {
    {ROW_CHOICE("isa", isa, "NAME",
                "instruction set of the CPU; an error if the machine does not have it"),
     .from = QN_CHOICE_ISA, .fallback = "auto"},
    {ROW_CHOICE("gpu-isa", gpu_isa, "NAME", "instructions for integer products on GPUs"),
     .from = QN_CHOICE_GPU_ISA, .fallback = "auto"},
    {ROW_TEXT(
         "shares", shares, "LIST",
         "for experiments: fixed shares of each step for the devices of --devices, such as 3,1"),
     .fallback = "by measured speed"},
    {ROW_TIMEOUT(timeout)},
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
                        .device_timeout = (double)seconds,
                        .parts = (int)f->parts,
                        .recompute = f->recompute,
                        .cache_features = f->cache_features};
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

/* 1 when a device other than the CPU can take part. */
static int has_gpu(const qn_compute *compute) {
    const int named = compute->devices && strcmp(compute->devices, "auto") != 0;
    for (uint32_t i = 1; i < qn_device_count(); i++) {
        qn_device_info info = {.size = sizeof info};
        if (qn_device_get(i, &info, NULL) == QN_OK && !info.refused && (named || info.automatic))
            return 1;
    }
    return 0;
}

void compute_note(const qn_compute *compute) {
    qn_device_info cpu = {.size = sizeof cpu};
    if (!ranks_is_writer())
        return;
    if (compute->threads > 0 && qn_device_get(0, &cpu, NULL) == QN_OK &&
        compute->threads > cpu.cores)
        message_note("note: --threads %d is more than the %d core%s that this process may use; "
                     "one thread for each core is usually faster",
                     compute->threads, cpu.cores, cpu.cores == 1 ? "" : "s");
    if (compute->gpu_isa && !ranks_cluster() && !has_gpu(compute))
        message_note("note: --gpu-isa does nothing: this machine has no GPU that can take part; "
                     "\"quern devices\" says why");
}

/* A loss that asks for nothing of the last layer, unless this is a convolution. */
const char *compute_loss(const char *model) {
    const char *loss = "mse";
    qn_train_options job;
    qn_network *network;
    if (!model || !*model)
        return NULL;
    qn_train_options_init(&job);
    job.model = model;
    if (qn_network_open(&job, 0, 10, &network, NULL) != QN_OK)
        return loss; /* opening it reports the error */
    const char *text = qn_network_text(network), *end = strrchr(text, ';');
    if (strncmp(end ? end + 2 : text, "conv ", 5) == 0)
        loss = strstr(end ? end : text, " sigmoid") ? "binary" : "cross-entropy";
    qn_network_free(network);
    return loss;
}
