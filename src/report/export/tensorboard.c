/* The record of a run as an event file of TensorBoard: TFRecords, each a length, a checksum of it,
 * an Event (tensorflow/core/util/event.proto) and a checksum of that. */
#include <quern/runs.h>

#include "base/argument.h"
#include "base/binary/protobuf.h"
#include "base/files/file.h"
#include "base/files/folder_make.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "report/record/run_open.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Fields of event.proto and summary.proto. */
enum {
    EVENT_TIME = 1,
    EVENT_STEP = 2,
    EVENT_VERSION = 3,
    EVENT_SUMMARY = 5,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_NUMBER = 2
};

/* CRC-32C (Castagnoli), bit by bit: files are small. */
static uint32_t crc32c(const uint8_t *bytes, size_t size) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; ++i) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; ++bit)
            crc = crc >> 1 ^ (0x82f63b78 & (0 - (crc & 1)));
    }
    return ~crc;
}

/* As TFRecords have it: a checksum of bytes that contain checksums would be weak. */
static uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8; }

static void put(uint8_t *to, uint64_t number, int bytes) {
    for (int i = 0; i < bytes; ++i)
        to[i] = (uint8_t)(number >> (8 * i));
}

/* Writes and releases the event. */
static qn_status add_record(qn__writer *writer, qn__protobuf *event, qn_error *err) {
    uint8_t head[12], tail[4];
    put(head, event->size, 8);
    put(head + 8, masked(crc32c(head, 8)), 4);
    put(tail, masked(crc32c(event->data, event->size)), 4);
    qn_status status = event->failed ? qn__fail_memory(err, 1, 1024) : QN_OK;
    if (status == QN_OK)
        status = qn__writer_add(writer, head, sizeof head, err);
    if (status == QN_OK)
        status = qn__writer_add(writer, event->data, event->size, err);
    if (status == QN_OK)
        status = qn__writer_add(writer, tail, sizeof tail, err);
    qn__protobuf_release(event);
    return status;
}

/* "train_loss" becomes "loss/train": TensorBoard draws what stands before the stroke as one group.
 */
static void tag_of(const char *column, char tag[64]) {
    static const char *const sets[] = {"train", "valid", "test"};
    snprintf(tag, 64, "%s", strcmp(column, "rate") == 0 ? "learning_rate" : column);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; ++i) {
        const size_t size = strlen(sets[i]);
        if (strncmp(column, sets[i], size) == 0 && column[size] == '_')
            snprintf(tag, 64, "%.40s/%s", column + size + 1, sets[i]);
    }
}

static qn_status add_epoch(qn__writer *writer, const qn__past_run *run, uint64_t row,
                           qn_error *err) {
    qn__protobuf event = {0}, summary = {0};
    for (uint32_t c = 1; c < run->columns; ++c) {
        const float value = run->value[row * run->columns + c];
        qn__protobuf scalar = {0};
        char tag[64];
        if (isnan(value))
            continue;
        tag_of(run->name[c], tag);
        qn__protobuf_text(&scalar, VALUE_TAG, tag);
        qn__protobuf_float(&scalar, VALUE_NUMBER, value);
        qn__protobuf_message(&summary, SUMMARY_VALUE, &scalar);
    }
    qn__protobuf_double(&event, EVENT_TIME, run->when[row]);
    qn__protobuf_number(&event, EVENT_STEP, qn__past_run_epoch(run, row));
    qn__protobuf_message(&event, EVENT_SUMMARY, &summary);
    return add_record(writer, &event, err);
}

static qn_status write_events(const qn__past_run *run, const char *path, qn_error *err) {
    qn__writer *writer;
    qn__protobuf first = {0};
    qn_status status = qn__writer_create(path, &writer, err);
    if (status != QN_OK)
        return status;
    qn__protobuf_double(&first, EVENT_TIME, (double)run->started);
    qn__protobuf_text(&first, EVENT_VERSION, "brain.Event:2");
    status = add_record(writer, &first, err);
    for (uint64_t row = 0; row < run->epochs && status == QN_OK; ++row)
        status = add_epoch(writer, run, row, err);
    return qn__writer_finish(writer, NULL, status, err);
}

qn_status qn_run_write_tensorboard(const char *run_dir, const char *folder, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(run_dir, err);
    QN__NEED(folder, err);
    qn__past_run run;
    char name[128], *path = NULL;
    qn_status status = qn__run_open(run_dir, &run, NULL, err);
    if (status != QN_OK)
        return status;
    /* The same run has the same name, so that a second export replaces the first. */
    snprintf(name, sizeof name, "events.out.tfevents.%010" PRId64 ".quern", run.started);
    status = qn__folder_make(folder, err);
    if (status == QN_OK)
        status = qn__folder_path(folder, name, &path, err);
    if (status == QN_OK)
        status = write_events(&run, path, err);
    qn__free(path);
    qn__past_run_release(&run);
    return status;
}
