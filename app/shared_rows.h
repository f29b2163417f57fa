/* Rows of options that many commands have, with the text that differs. They are parts of an
 * initialiser, and AT(member) is the place in the command's own struct, as in its other rows:
 *
 *     {.heading = "Output", ROW_JSON(json, "print one JSON object instead")},
 *     {ROW_QUIET(quiet)}, */
#ifndef APP_SHARED_ROWS_H
#define APP_SHARED_ROWS_H

#include "options.h"

#define ROW_FLAG(word, member, text) .name = (word), .kind = OPTION_FLAG, AT(member), .help = (text)
#define ROW_TEXT(word, member, shown, text)                                                        \
    .name = (word), .kind = OPTION_TEXT, AT(member), .value = (shown), .help = (text)
#define ROW_TEXTS(word, member, shown, text)                                                       \
    .name = (word), .kind = OPTION_TEXTS, AT(member), .value = (shown), .help = (text)
#define ROW_CHOICE(word, member, shown, text)                                                      \
    .name = (word), .kind = OPTION_CHOICE, AT(member), .value = (shown), .help = (text)
#define ROW_COUNT(word, member, least, most, text)                                                 \
    .name = (word), .kind = OPTION_COUNT, AT(member), .value = "N", .low = (least),                \
    .high = (most), .help = (text)
#define ROW_COUNT32(word, member, least, most, text)                                               \
    .name = (word), .kind = OPTION_COUNT32, AT(member), .value = "N", .low = (least),              \
    .high = (most), .help = (text)
#define ROW_FLOAT(word, member, text)                                                              \
    .name = (word), .kind = OPTION_FLOAT, AT(member), .value = "X", .help = (text)
/* Needs AGAIN(member): the further files of a table. */
#define ROW_FILES(word, member, shown, text)                                                       \
    ROW_TEXT(word, member, shown, text), AGAIN(member##_more)

#define ROW_JSON(member, text) ROW_FLAG("json", member, text)
#define ROW_QUIET(member) ROW_FLAG("quiet", member, "print errors only")
#define ROW_VERBOSE(member, text) ROW_FLAG("verbose", member, text)

#define ROW_DATA(member, text) ROW_FILES("data", member, "FILE", text)
#define ROW_OUTPUT(member, shown, text) .letter = 'o', ROW_TEXT("output", member, shown, text)
#define ROW_TRACE(member)                                                                          \
    ROW_TEXT("trace", member, "FILE",                                                              \
             "write a timeline of every device, for ui.perfetto.dev or chrome://tracing")
#define ROW_SEED(member, text) ROW_COUNT("seed", member, 0, UINT64_MAX, text), .fallback = "1"
#define ROW_READERS(member)                                                                        \
    ROW_COUNT("threads", member, 1, 4096, "CPU threads for reading"), .fallback = "every core"
#define ROW_CLASSES(member, text) ROW_COUNT("classes", member, 1, 1 << 24, text), .fallback = "10"
#define ROW_TIMEOUT(member)                                                                        \
    ROW_TEXT("device-timeout", member, "SECONDS",                                                  \
             "a device that does not answer for this long counts as failed; the others take over " \
             "its work"),                                                                          \
        .field = "compute.device_timeout"
#define ROW_VALID_QUERY(member)                                                                    \
    ROW_TEXT("valid-query", member, "SQL", "SQLite, PostgreSQL: the rows of the validation set")

/* An option of train whose meaning other commands share. */
#define ROW_AS_IN_TRAIN(word, member, choices)                                                     \
    .name = (word), .kind = OPTION_CHOICE, AT(member), .value = "NAME", .from = (choices),         \
    .brief = 1, .help = "as in train: ", .field = "train." word

#endif
