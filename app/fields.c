#include "fields.h"
#include <quern/option.h>
#include <stdio.h>
#include <string.h>

/* Beside those of a training, which <quern/option.h> has. */
static const struct {
    const char *field, *option;
} spellings[] = {
    {"cluster.rendezvous", "meet"},
    {"cluster.rendezvous none", "alone"},
    {"cluster.rendezvous_timeout", "meet-timeout"},
    {"compute.cache_features", "cache-features"},
    {"compute.device_timeout", "device-timeout"},
    {"compute.devices", "devices"},
    {"compute.gpu_isa", "gpu-isa"},
    {"compute.isa", "isa"},
    {"compute.parts", "parts"},
    {"compute.recompute", "recompute"},
    {"compute.shares", "shares"},
    {"compute.threads", "threads"},
    {"data.category", "category"},
    {"data.context", "context"},
    {"data.date_format", "date-format"},
    {"data.dates", "dates"},
    {"data.drop", "drop"},
    {"data.features", "features"},
    {"data.header", "header"},
    {"data.label_column", "label"},
    {"data.item", "item"},
    {"data.labels_path", "labels"},
    {"data.path", "data"},
    {"data.ignore", "ignore"},
    {"data.masks", "masks"},
    {"data.query", "query"},
    {"data.resize", "resize"},
    {"data.shape", "shape"},
    {"search.low", "lr-range"},
    {"search.steps", "lr-range"},
    {"server.chat", "chat"},
    {"server.connections", "connections"},
    {"server.embeddings", "embeddings"},
    {"server.latency_seconds", "latency"},
    {"server.listen", "listen"},
    {"server.most_body", "most-body"},
    {"server.read_seconds", "read-seconds"},
    {"server.reload_seconds", "reload-seconds"},
    {"server.answer_seconds", "answer-seconds"},
    {"server.stop_seconds", "stop-seconds"},
    {"server.text_batch", "text-batch"},
    {"server.text_waiting", "text-waiting"},
    {"server.insecure", "insecure"},
    {"server.tls_certificate", "tls-cert"},
    {"server.tls_key", "tls-key"},
    {"server.token", "token-file"},
    {"train.shape", "shape"},
    {"data.skip_broken", "skip-broken"},
    {"data.task", "task"},
    {"data.text", "text"},
    {"data.text_features", "text-features"},
    {"data.tokens", "tokens"},
    {"data.unlabelled", "unlabelled"},
    {"data.weight", "weight"},
    {"data.no_cache", "no-cache"},
    {"fit.parameters", "set"},
    {"generate.answers", "answers"},
    {"generate.batch", "batch"},
    {"generate.chat", "chat"},
    {"generate.repetition", "repetition"},
    {"generate.stop", "stop"},
    {"generate.system", "system"},
    {"generate.temperature", "temperature"},
    {"generate.tokens", "tokens"},
    {"generate.top_p", "top-p"},
    {"kernel.allow_path", "allow-path"},
    {"kernel.checkpoint", "checkpoint"},
    {"kernel.checkpoint_seconds", "checkpoint-every"},
    {"kernel.devices", "devices"},
    {"kernel.grain", "grain"},
    {"kernel.input", "in"},
    {"kernel.iterations", "iterations"},
    {"kernel.output", "out"},
    {"kernel.resume", "resume"},
    {"kernel.scalar", "set"},
    {"kernel.seed", "seed"},
    {"kernel.series", "series"},
    {"kernel.shape", "shape"},
    {"kernel.threads", "threads"},
    {"model.adapter", "adapter"},
    {"plan.features", "features"},
    {"plan.items", "items"},
    {"plan.ranks", "ranks"},
    {"plan.team", "team"},
    {"predict.flips", "flips"},
    {"predict.layer", "layer"},
    {"report.data", "data"},
    {"report.importance", "importance"},
    {"report.mistakes", "mistakes"},
    {"report.model", "model"},
    {"report.path", "output"},
    {"report.plots", "plots"},
    {"report.trace", "trace"},
    {"share.from_first", "data-from-rank0"},
    {"split.stratify", "stratify"},
    {"statistics.bins", "bins"},
    {"statistics.by_class", "by-class"},
    {"statistics.correlation", "correlation"},
    {"statistics.quantile_count", "quantiles"},
    {"statistics.quantiles", "quantiles"},
    {"statistics.threads", "threads"},
    {"synth.first", "first"},
    {"synth.items", "items"},
    {"search.folder", "run-dir"},
    {"search.folds", "folds"},
    {"search.settings", "grid"},
    {"search.part", "part"},
    {"search.merge", "merge"},
    {"train.checkpoint_dir", "checkpoint"},
    {"train.checkpoint_seconds", "checkpoint-every"},
    {"train.init_from", "init-from"},
    {"train.resume", "resume"},
    {"train.plots", "plots"},
    {"train.report", "report"},
    {"train.run_dir", "run-dir"},
    {"train.runs", "runs"},
    {"train.trace", "trace"},
    {"train.valid_fraction", "valid"},
    {"valid.path", "valid"},
    {"write.format", "format"},
    {"write.labels_path", "output-labels"},
    {"watch.all_outputs", "outputs"},
    {"watch.layer", "layer"},
    {"watch.summary", "pool"},
    {"watch.latency", "latency"},
    {"watch.masks", "masks"},
    {"watch.move_done", "move-done"},
    {"watch.poll_seconds", "poll-every"},
    {"watch.to", "output"},
};

static int is_field(const char *text, const char *field, const char **end) {
    const size_t length = strlen(field);
    if (strncmp(text + 1, field, length) != 0 || text[1 + length] != '`')
        return 0;
    *end = text + length + 2;
    return 1;
}

/* The option of the field after the backquote at `text`, and the end of the field; NULL if there is
 * none. */
static const char *option_at(const char *text, const char **end) {
    const qn_option *o;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (is_field(text, spellings[i].field, end))
            return spellings[i].option;
    for (uint32_t i = 0; (o = qn_train_option(i)) != NULL; i++)
        if (is_field(text, o->field, end))
            return o->name;
    return NULL;
}

const char *fields_spell(const char *text, char *buffer, size_t size) {
    size_t used = 0;
    buffer[0] = '\0';
    while (*text && used + 1 < size) {
        const char *option = *text == '`' ? option_at(text, &text) : NULL;
        if (option)
            used += (size_t)snprintf(buffer + used, size - used, "--%s", option);
        else
            used += (size_t)snprintf(buffer + used, size - used, "%c", *text++);
    }
    return buffer;
}
