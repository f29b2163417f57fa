/* Folders and archives of images, and image files: a table of bytes, an item a file,
 * `[channel][row][column]`.
 *
 * The heads of all files come first: they say how large an item is, so that every image is decoded
 * to its place at once. Threads take files from a counter. Of several bad files, the first by name
 * is the one that is reported, whichever thread came to it. */
#include "base/memory.h"
#include "base/system/available.h"
#include "base/system/first_failure.h"
#include "base/system/float_state.h"
#include "data/bytes/zip_file.h"
#include "data/cells/readers.h"
#include "data/images/image_bytes.h"
#include "data/images/image_cache.h"
#include "data/images/image_classes.h"
#include "data/images/image_clutter.h"
#include "data/images/image_names.h"
#include "data/images/masks.h"
#include "data/table/rules.h"
#include "image/decode.h"
#include "image/image_other.h"
#include "image/image_turn.h"
#include "image/planes.h"
#include "image/resize.h"
#include <stdatomic.h>
#include <string.h>

/* Bytes of a file that nearly always hold its head. */
enum { HEAD_BYTES = 1 << 14 };

/* Pixels that are decoded sooner than a cached entry of them would be worth its place: a twentieth
 * of a second. */
static const uint64_t WORTH_CACHING = (uint64_t)4 << 20;

/* What one thread needs for one file after another. */
typedef struct scratch {
    qn__decoder decoder;
    qn__enclosed_bytes bytes, pixels, turned;
} scratch;

typedef struct reading {
    const qn__enclosed_files *files;
    qn_data *data;
    uint64_t from, to; /* files of the share that is read: from .. to - 1 */
    uint32_t share, shares, further;
    qn__image_head *head; /* of each file */
    uint8_t *marks;       /* of each file: qn__file_mark */
    qn__item_size *seen;  /* of each file's image */
    qn__image_cache cache;
    qn__image_entry entry; /* of the cache */
    int cached;            /* the entry was found */
    int several;           /* 1: of several folders, archives or files; they have no entry */
    int skip;              /* broken files are left out */
    int turns;             /* orientations are followed: QN__RULE_ORIENTATION */
    int later;             /* formats of contract 7 are left out as broken: QN__RULE_FILES */
    qn__resize resize;
    uint32_t expected;       /* qn_data_options.expected_features */
    qn_data_decoded decoded; /* the same */
    void *user;
    size_t stride;   /* bytes of an item */
    uint8_t *values; /* items are decoded to */
    _Atomic uint64_t next;
    qn__first_failure failed;
    qn_status (*each)(struct reading *r, uint64_t i, struct scratch *own, qn_error *err);
} reading;

static qn_status decode(reading *r, uint64_t i, scratch *own, qn_error *err);

/* The caller's thread is the only one that may call it. */
static void tell(const reading *r, int thread, uint64_t done) {
    if (thread != 0 || !r->decoded || r->each != decode)
        return;
    const uint64_t all = r->to - r->from;
    r->decoded(r->user, done < r->to ? done - r->from : all, all);
    qn__float_state_set();
}

/* A file that cannot be read is left out, if that is allowed. Memory, devices and missing libraries
 * are not a fault of the file. */
static void note_failure(reading *r, int thread, uint64_t i, qn_status status, const qn_error *e) {
    if (status == QN_INPUT && r->skip) {
        r->marks[i] = QN__FILE_BROKEN;
        return;
    }
    qn__first_failure_note(&r->failed, thread, i, status, e);
}

static void work(void *context, int thread) {
    reading *r = context;
    scratch own = {0};
    qn_error err = {0};
    for (;;) {
        const uint64_t i = atomic_fetch_add(&r->next, 1);
        if (i >= r->files->count || qn__first_failure_before(&r->failed, i))
            break;
        if (r->marks[i])
            continue;
        const qn_status status = r->each(r, i, &own, &err);
        tell(r, thread, i);
        if (status == QN_OK)
            continue;
        note_failure(r, thread, i, status, &err);
        if (qn__first_failure_before(&r->failed, UINT64_MAX))
            break; /* what this thread would take next comes later */
    }
    qn__decoder_release(&own.decoder);
    qn__enclosed_bytes_release(&own.bytes);
    qn__enclosed_bytes_release(&own.pixels);
    qn__enclosed_bytes_release(&own.turned);
}

static qn_status over_all(reading *r, qn__pool *pool, qn_error *err) {
    const qn_status status = qn__first_failure_begin(&r->failed, qn__pool_threads(pool), err);
    if (status != QN_OK)
        return status;
    atomic_store(&r->next, 0);
    qn__pool_run(pool, work, r);
    return qn__first_failure_end(&r->failed, err);
}

/* ------------------------------------------------------------------ the heads */

/* What more of the file than its first bytes can tell: thumbnails and colour profiles can stand
 * before the frame, directories and Exif data after the pixels. */
static int needs_all(const reading *r, const qn__image_head *head, qn_status status) {
    return status == QN_OK ? head->partial && r->turns
                           : status == QN_INPUT && head->kind >= QN__IMAGE_JPEG;
}

/* Takes a file that is left out or refused for what it is, and not because it is broken. 0: it is
 * none of these. */
static int mark(reading *r, uint64_t i, qn_status status) {
    const qn__image_head *head = &r->head[i];
    if (status == QN_OK && r->later && head->kind >= QN__IMAGE_GIF)
        r->marks[i] = QN__FILE_LATER;
    else if (status == QN_INPUT && head->kind < QN__IMAGE_JPEG &&
             qn__image_is_clutter(r->files->file[i].name))
        r->marks[i] = QN__FILE_CLUTTER;
    else if (status == QN_INPUT && head->kind == QN__IMAGE_OTHER)
        r->marks[i] = (uint8_t)(QN__FILE_OTHER + head->other);
    return r->marks[i] != QN__FILE_ITEM;
}

/* Whether a file of another share is clutter, only its name tells. */
static qn_status refuse_name(const reading *r, uint64_t i, qn_error *err) {
    qn__fail(err, QN_UNSUPPORTED, "an image with a name of notes or lists is not read in parts");
    qn__enclosed_files_at(r->files, i, err);
    return qn__remedy(err, QN_UNSUPPORTED, "rename it, as to 1.jpg");
}

static void mark_others(reading *r) {
    for (uint64_t i = 0; i < r->files->count; i++)
        if (i < r->from || i >= r->to)
            r->marks[i] = qn__image_is_clutter(r->files->file[i].name) ? QN__FILE_CLUTTER
                                                                       : QN__FILE_ELSEWHERE;
}

static qn_status read_head(reading *r, uint64_t i, scratch *own, qn_error *err) {
    qn_status status = QN_OK;
    qn__image_head *head = &r->head[i];
    for (size_t most = HEAD_BYTES;; most = SIZE_MAX) {
        status = qn__enclosed_files_read(r->files, i, most, &own->bytes, err);
        if (status != QN_OK)
            return status;
        status = qn__image_head_read(own->bytes.data, own->bytes.size, head, err);
        if (own->bytes.size == r->files->file[i].size || !needs_all(r, head, status))
            break;
    }
    head->ignored = !r->turns;
    r->seen[i] = (qn__item_size){qn__image_height(head), qn__image_width(head)};
    if (r->shares && status == QN_OK && qn__image_is_clutter(r->files->file[i].name))
        return refuse_name(r, i, err);
    if (mark(r, i, status))
        return QN_OK;
    if (status != QN_OK)
        qn__enclosed_files_at(r->files, i, err);
    return status;
}

/* Formats that are not read, with how many files each has: of one the remedy is that format's. */
static qn_status refuse_others(const reading *r, qn_error *err) {
    qn__text each = {0};
    uint64_t first = 0;
    while (r->marks[first] < QN__FILE_OTHER)
        first++;
    const uint64_t all = qn__image_others_add(r->marks, r->files->count, &each);
    const uint32_t other = r->marks[first] - (uint32_t)QN__FILE_OTHER;
    if (all == 1)
        qn__fail(err, QN_INPUT, "the file is %s, which is not read",
                 qn__image_other_name(other, 0));
    else
        qn__fail(err, QN_INPUT, "%llu files are of formats that are not read: %.300s",
                 (unsigned long long)all, each.data ? each.data : "");
    qn__text_release(&each);
    qn__enclosed_files_at(r->files, first, err);
    return qn__remedy(err, QN_INPUT,
                      "%s; `data.skip_broken` leaves out all files that cannot be read",
                      qn__image_other_remedy(other));
}

static qn_status check_others(const reading *r, qn_error *err) {
    for (uint64_t i = 0; !r->skip && i < r->files->count; i++)
        if (r->marks[i] >= QN__FILE_OTHER)
            return refuse_others(r, err);
    return QN_OK;
}

static qn_status refuse_sizes(const reading *r, uint64_t i, uint64_t other, qn_error *err) {
    const qn__image_head *a = &r->head[i], *b = &r->head[other];
    qn__fail(err, QN_INPUT, "the images differ in size: %ux%u here, %ux%u in %s",
             (unsigned)qn__image_height(b), (unsigned)qn__image_width(b),
             (unsigned)qn__image_height(a), (unsigned)qn__image_width(a), r->files->file[i].name);
    qn__enclosed_files_at(r->files, other, err);
    return qn__remedy(err, QN_INPUT,
                      "bring all to one size, height x width, as with `data.resize` 32x32");
}

static qn_status refuse_all(const reading *r, qn_error *err) {
    qn__text each = {0};
    const int others = qn__image_others_add(r->marks, r->files->count, &each) > 0 && each.data;
    qn__fail(err, QN_INPUT, "none of the %llu files is an image that can be read%s%.300s",
             (unsigned long long)r->files->count, others ? "; there are " : "",
             others ? each.data : "");
    qn__text_release(&each);
    qn__at(err, "%s", r->files->path);
    for (uint64_t i = 0; !r->files->folder && i < r->files->count; i++)
        if (qn__names_table(r->files->file[i].name))
            return qn__remedy(err, QN_INPUT,
                              "unpack the archive and give the table in it, \"%.80s\"; from a ZIP "
                              "archive it is read as it is",
                              r->files->file[i].name);
    return qn__remedy(err, QN_INPUT,
                      "give a folder or an archive of JPEG, PNG, WebP, GIF, TIFF or BMP files");
}

/* 3 where some image that is not left out has colours, and where the other data does, of which only
 * the number of features is known; else 1. */
static uint32_t find_channels(const reading *r) {
    for (uint64_t i = 0; i < r->files->count; i++)
        if (!r->marks[i] && r->head[i].channels == 3)
            return 3;
    return 3 * (uint64_t)r->data->rows * r->data->columns == r->expected ? 3 : 1;
}

/* The size and the channels of all items, from the heads. */
static qn_status find_shape(reading *r, qn_error *err) {
    uint64_t first = 0;
    while (first < r->files->count && r->marks[first])
        first++;
    if (first == r->files->count)
        return refuse_all(r, err);
    const qn__image_head *head = &r->head[first];
    for (uint64_t i = first; r->resize.height == 0 && i < r->files->count; i++)
        if (!r->marks[i] && (qn__image_height(&r->head[i]) != qn__image_height(head) ||
                             qn__image_width(&r->head[i]) != qn__image_width(head)))
            return refuse_sizes(r, first, i, err);
    r->data->rows = r->resize.height ? r->resize.height : qn__image_height(head);
    r->data->columns = r->resize.height ? r->resize.width : qn__image_width(head);
    r->data->channels = find_channels(r);
    return QN_OK;
}

/* ------------------------------------------------------------------ the pixels */

/* The pixels as they are to be seen, in own->pixels or, where they were turned, in own->turned. */
static qn_status turn(const qn__image_head *head, uint32_t channels, scratch *own,
                      const uint8_t **pixels, qn_error *err) {
    *pixels = own->pixels.data;
    if (head->orientation == 1 || head->ignored)
        return QN_OK;
    const size_t size = (size_t)head->height * head->width * channels;
    const qn_status status = qn__enclosed_bytes_space(&own->turned, size, err);
    if (status != QN_OK)
        return status;
    qn__image_turn(own->pixels.data, head, channels, own->turned.data);
    *pixels = own->turned.data;
    return QN_OK;
}

static qn_status decode(reading *r, uint64_t i, scratch *own, qn_error *err) {
    const qn__image_head *head = &r->head[i];
    const uint32_t channels = r->data->channels;
    const uint32_t height = qn__image_height(head), width = qn__image_width(head);
    const uint8_t *seen = NULL;
    qn_status status = qn__enclosed_files_read(r->files, i, SIZE_MAX, &own->bytes, err);
    if (status != QN_OK)
        return status;
    status = qn__enclosed_bytes_space(&own->pixels, (size_t)height * width * channels, err);
    if (status == QN_OK)
        status = qn__image_decode(&own->decoder, own->bytes.data, own->bytes.size, head, channels,
                                  own->pixels.data, err);
    if (status == QN_OK)
        status = turn(head, channels, own, &seen, err);
    uint8_t *planes = r->values + (i - r->from) * r->stride;
    if (status == QN_OK && r->resize.height)
        status = qn__resize_planes(&r->resize, seen, height, width, channels, planes, err);
    else if (status == QN_OK)
        qn__planes_of(seen, height, width, channels, planes);
    if (status == QN_INPUT)
        qn__enclosed_files_at(r->files, i, err);
    return status;
}

/* Whether the images are kept in the cache. Not where their channels come of other data. */
static int is_worth_caching(const reading *r) {
    uint64_t pixels = 0;
    int colours = 0;
    for (uint64_t i = 0; i < r->files->count; i++)
        if (!r->marks[i]) {
            pixels += (uint64_t)r->head[i].height * r->head[i].width;
            colours |= r->head[i].channels == 3;
        }
    return pixels >= WORTH_CACHING && (colours || r->data->channels == 1);
}

/* Values that the data owns with the file they lie in. */
static void take_file(reading *r) {
    qn_data *data = r->data;
    data->values = r->values = r->entry.values;
    qn__mapped_file *file = qn__image_cache_take(&r->cache);
    data->memory = file;
    data->release = qn__mapped_file_close;
    if (qn__mapped_file_size(file) > qn__available_memory() / 2)
        data->in_file = file;
}

static qn_status refuse_memory(const reading *r, uint64_t bytes, uint64_t left, qn_error *err) {
    qn__fail(err, QN_MEMORY,
             "the decoded images take %llu MiB, and %llu MiB of memory are available",
             (unsigned long long)bytes >> 20, (unsigned long long)left >> 20);
    qn__at(err, "%s", r->files->path);
    if (r->several)
        return qn__remedy(err, QN_MEMORY,
                          "make them smaller with `data.resize`, or give one folder or archive in "
                          "the place of several: its images are decoded into a file of the cache "
                          "folder, on a disk with twice that space");
    return qn__remedy(err, QN_MEMORY,
                      "make them smaller with `data.resize`, or set QUERN_CACHE to a folder on a "
                      "disk with twice that space: they are then decoded into a file there");
}

static qn_status take_memory(reading *r, uint64_t features, qn_error *err) {
    const uint64_t left = qn__available_memory();
    uint64_t bytes;
    if (__builtin_mul_overflow(r->to - r->from, features, &bytes))
        bytes = UINT64_MAX;
    if (bytes > left)
        return refuse_memory(r, bytes, left, err);
    r->data->memory = qn__alloc(r->to - r->from, features, err);
    r->data->values = r->values = r->data->memory;
    r->data->release = qn__free;
    return r->data->memory ? QN_OK : QN_MEMORY;
}

/* Images are decoded into a file of the cache, where they may be more than memory holds; else into
 * memory. */
static qn_status reserve(reading *r, qn_error *err) {
    qn_data *data = r->data;
    const uint64_t features = (uint64_t)data->rows * data->columns * data->channels;
    if (features > UINT32_MAX)
        return qn__fail_memory(err, r->to - r->from, features);
    data->type = QN_U8;
    data->features = (uint32_t)features;
    r->stride = (size_t)features;
    r->entry = (qn__image_entry){.rows = data->rows,
                                 .columns = data->columns,
                                 .channels = data->channels,
                                 .items = r->to - r->from,
                                 .files = r->files->count};
    for (uint64_t i = 0; i < r->files->count; i++)
        r->entry.text += strlen(r->files->file[i].name) + 1;
    r->cache.off |= !is_worth_caching(r);
    if (!qn__image_cache_make(&r->cache, &r->entry))
        return take_memory(r, features, err);
    r->values = r->entry.values;
    return QN_OK;
}

/* Only the images that could be read stay. When all of these are grey, so is the table. */
static void close_gaps(reading *r) {
    qn_data *data = r->data;
    uint8_t *values = r->values;
    const uint32_t channels = find_channels(r);
    data->items = 0;
    const size_t stride = r->stride / data->channels * channels;
    for (uint64_t i = r->from; i < r->to; i++)
        if (!r->marks[i])
            memmove(values + stride * data->items++, values + r->stride * (i - r->from), stride);
    data->channels = channels;
    data->features = (uint32_t)stride;
}

/* Items that a rule of reading may have changed. */
static void count_marks(reading *r) {
    for (uint64_t i = 0; i < r->files->count; i++)
        if (!r->marks[i]) {
            r->entry.turned += r->head[i].orientation != 1;
            r->entry.newer += r->head[i].kind >= QN__IMAGE_GIF;
        }
}

/* The rules that changed something, and what is told to people. */
static qn_status settle_rules(const reading *r, const qn_data_options *options, qn_error *err) {
    if (r->turns && r->entry.turned > 0)
        r->data->rules |= QN__RULE_ORIENTATION;
    if (qn__rule_holds(options, QN__RULE_FILES) && r->entry.newer > 0)
        r->data->rules |= QN__RULE_FILES;
    return qn__image_note(r->files, r->marks, r->turns ? 0 : r->entry.turned, r->cache.note,
                          r->data, err);
}

/* ------------------------------------------------------------------ the cache */

/* Keeps what was decoded; the digest of the values is then known. */
static qn_status keep(reading *r, qn__pool *pool, qn_error *err) {
    uint8_t digest[32];
    char *names = qn__alloc(r->entry.text, 1, err), *to = names;
    qn_data *data = r->data;
    data->values = r->values;
    if (!names)
        return QN_MEMORY;
    qn__data_values_digest(data, pool, digest);
    for (uint64_t i = 0; i < r->files->count; i++)
        to = stpcpy(to, r->files->file[i].name) + 1;
    r->entry.items = data->items;
    r->entry.channels = data->channels;
    r->entry.values_digest = digest;
    r->entry.names = names;
    r->entry.marks = r->marks;
    r->entry.sizes = r->seen;
    qn__image_cache_keep(&r->cache, &r->entry);
    take_file(r);
    data->values_digest = r->entry.values_digest;
    qn__free(names);
    return QN_OK;
}

/* Takes the entry that was found: as if its files had been decoded now. */
static void take_entry(reading *r) {
    qn_data *data = r->data;
    data->type = QN_U8;
    data->rows = r->entry.rows;
    data->columns = r->entry.columns;
    data->channels = r->entry.channels;
    data->features = data->rows * data->columns * data->channels;
    data->items = r->entry.items;
    memcpy(r->marks, r->entry.marks, (size_t)r->entry.files);
    memcpy(r->seen, r->entry.sizes, (size_t)r->entry.files * sizeof *r->seen);
    take_file(r);
    data->values_digest = r->entry.values_digest;
}

/* An entry of grey images does not serve where their channels come of other data. */
static int find_entry(reading *r, qn__pool *pool) {
    if (!qn__image_cache_load(&r->cache, pool, &r->entry))
        return 0;
    const uint64_t area = (uint64_t)r->entry.rows * r->entry.columns;
    r->cached = (r->entry.channels == 3 || 3 * area != r->expected) &&
                (!r->files->folder || r->entry.files == r->files->count);
    if (!r->cached)
        qn__mapped_file_close(qn__image_cache_take(&r->cache));
    return r->cached;
}

/* ------------------------------------------------------------------ all of it */

/* A share may have no image. */
static int is_empty(const reading *r) {
    uint64_t i = r->from;
    while (i < r->to && r->marks[i])
        i++;
    return r->shares && i == r->to;
}

static qn_status read_images(reading *r, qn__pool *pool, qn_error *err) {
    r->each = read_head;
    mark_others(r);
    qn_status status = over_all(r, pool, err);
    if (status == QN_OK)
        status = check_others(r, err);
    if (status == QN_OK && is_empty(r))
        return QN_OK;
    if (status == QN_OK)
        status = find_shape(r, err);
    if (status == QN_OK)
        status = reserve(r, err);
    r->each = decode;
    if (status == QN_OK)
        status = over_all(r, pool, err);
    if (status != QN_OK)
        return status;
    tell(r, 0, r->to);
    close_gaps(r);
    count_marks(r);
    if (r->data->items == 0)
        return is_empty(r) ? QN_OK : refuse_all(r, err);
    return r->data->memory ? QN_OK : keep(r, pool, err);
}

/* Images that a caller named have no class. */
static int is_classless(const reading *r, const qn_data_options *options) {
    return options->unlabelled || options->masks || r->files->named != NULL;
}

/* What the items have beside their pixels. */
static qn_status describe(reading *r, const qn_data_options *options, qn__pool *pool,
                          qn_error *err) {
    qn_status status =
        qn__image_names(r->files, r->marks, r->resize.height ? r->seen : NULL, r->data, err);
    if (status == QN_OK)
        status = settle_rules(r, options, err);
    if (status == QN_OK && !is_classless(r, options))
        status = qn__image_classes(r->files, r->marks, options, r->data, err);
    return status == QN_OK && options->masks ? qn__masks_read(options, pool, r->data, err) : status;
}

static qn_status read_files(reading *r, const qn_data_options *options, qn__pool *pool,
                            qn_error *err) {
    r->to = r->files->count;
    if (r->shares) {
        r->to = r->files->count * (r->share + 1 + r->further) / r->shares;
        r->from = r->files->count * r->share / r->shares;
    }
    r->head = qn__alloc(r->files->count, sizeof *r->head, err);
    r->marks = r->head ? qn__alloc(r->files->count, 1, err) : NULL;
    r->seen = r->marks ? qn__alloc(r->files->count, sizeof *r->seen, err) : NULL;
    qn_status status = r->seen ? QN_OK : QN_MEMORY;
    if (status == QN_OK && r->cached)
        take_entry(r);
    else if (status == QN_OK)
        status = read_images(r, pool, err);
    if (status == QN_OK && r->data->items > 0)
        status = describe(r, options, pool, err);
    qn__free(r->head);
    qn__free(r->marks);
    qn__free(r->seen);
    return status;
}

/* A folder is listed to know its stamp. An archive need not be, where the cache has its names. */
static qn_status list_files(reading *r, qn__source *source, qn__pool *pool,
                            qn__enclosed_files *files, qn_error *err) {
    const int folder = qn__source_is_folder(source);
    qn_status status = folder ? qn__enclosed_files_open(source, files, err) : QN_OK;
    if (status != QN_OK)
        return status;
    qn__image_cache_begin(&r->cache, source, folder ? files : NULL, &r->resize, r->skip, r->turns,
                          r->later);
    if (find_entry(r, pool) && !folder)
        return qn__enclosed_files_known(source, r->entry.names, (size_t)r->entry.text,
                                        r->entry.files, files, err);
    return folder ? QN_OK : qn__enclosed_files_open(source, files, err);
}

static qn_status begin(const qn__enclosed_files *files, const qn_data_options *options,
                       qn_data *data, reading *r, qn_error *err) {
    const char *resize = options->resize ? options->resize : options->expected_resize;
    *r = (reading){.files = files,
                   .data = data,
                   .skip = options->skip_broken,
                   .turns = qn__rule_holds(options, QN__RULE_ORIENTATION),
                   .later = options->skip_broken && !qn__rule_holds(options, QN__RULE_FILES),
                   .cache = {.off = options->no_cache},
                   .expected = options->expected_features,
                   .decoded = options->decoded,
                   .user = options->decoded_user};
    const qn_status status = qn__resize_parse(resize, &r->resize, err);
    data->resize = r->resize;
    return status;
}

/* `image`: the files are images that a caller named, and not folders or archives. */
static qn_status read_all(qn__part_files *given, int image, const qn_data_options *options,
                          qn__pool *pool, qn_data *data, qn_error *err) {
    qn__enclosed_files files = {0};
    reading r;
    qn_status status = begin(&files, options, data, &r, err);
    r.several = image || !qn__part_files_are_one(given);
    r.cache.off |= r.several;
    r.share = given->list->file[0].share;
    r.shares = given->list->file[0].shares;
    r.further = given->list->file[0].further;
    if (r.shares)
        qn__text_add(&r.cache.key, "share %u and %u of %u\n", r.share, r.further, r.shares);
    if (status == QN_OK && image)
        status = qn__enclosed_files_open_named(given, &files, err);
    else if (status == QN_OK && qn__part_files_are_one(given))
        status = list_files(&r, given->first, pool, &files, err);
    else if (status == QN_OK)
        status = qn__enclosed_files_open_several(given, &files, err);
    if (status == QN_OK)
        status = read_files(&r, options, pool, err);
    status = qn__enclosed_files_end(&files, status, err);
    qn__image_cache_end(&r.cache);
    qn__enclosed_files_release(&files);
    return status;
}

/* Whether a file with these first bytes is an image that is read. */
static int is_read(const uint8_t *first, size_t size) {
    qn__image_head head;
    (void)qn__image_head_read(first, size, &head, NULL);
    return head.kind >= QN__IMAGE_JPEG;
}

static qn_status is_image(qn__source *source, int *image, qn_error *err) {
    uint8_t first[QN__PROBE_BYTES];
    size_t got = 0;
    *image = 0;
    if (qn__source_is_folder(source))
        return QN_OK;
    const qn_status status = qn__source_peek(source, first, sizeof first, &got, err);
    *image = status == QN_OK && is_read(first, got);
    return status;
}

static qn_status refuse_with(const qn__source *source, const char *what, const char *remedy,
                             qn_error *err) {
    qn__fail(err, QN_INPUT, "%s", what);
    qn__at(err, "%s", qn__source_path(source));
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

/* Folders and archives are not mixed with image files. */
static qn_status check_others_enclose(qn__part_files *files, qn_error *err) {
    qn_status status = QN_OK;
    for (size_t i = 1; status == QN_OK && i < files->list->count; i++) {
        qn__source *source;
        int image = 0;
        status = qn__part_files_open(files, i, &source, err);
        if (status != QN_OK)
            return status;
        status = is_image(source, &image, err);
        if (status == QN_OK && image)
            status = refuse_with(source, "this is an image among folders or archives of images",
                                 "put it into a folder of its class", err);
        status = qn__part_files_close(source, status, err);
    }
    return status;
}

/* Folders and archives, or image files that a caller named. */
static qn_status read(qn__part_files *files, const qn_data_options *options, qn__pool *pool,
                      qn_data *data, qn_error *err) {
    int image = 0;
    qn__source *first = files->first;
    qn_status status = is_image(first, &image, err);
    if (status != QN_OK)
        return status;
    if (image && qn__source_packing(first))
        return refuse_with(first, "this is a compressed image", "unpack it by hand", err);
    if (!image && options->masks && !qn__part_files_are_one(files))
        return refuse_with(first, "images of several folders or archives have no masks",
                           "name one folder with the images of all", err);
    if (!image && (status = check_others_enclose(files, err)) != QN_OK)
        return status;
    status = read_all(files, image, options, pool, data, err);
    return image || !files->first ? status : qn__source_end(first, status, err);
}

static int ends_with(const char *text, const char *end) {
    const size_t size = strlen(text), more = strlen(end);
    return size >= more && strcmp(text + size - more, end) == 0;
}

/* Old archives have no mark. The mark of a ZIP archive is that of an NPZ archive too. */
static int probe(const uint8_t *first, size_t size, const char *path) {
    if (qn__tar_is(first, size) || is_read(first, size))
        return QN__PROBE_MAGIC;
    if (size >= 4 && memcmp(first, "PK\3\4", 4) == 0 && ends_with(path, ".zip"))
        return QN__PROBE_BOTH;
    return ends_with(path, ".tar") || ends_with(path, ".tar.gz") || ends_with(path, ".tgz")
               ? QN__PROBE_NAME
               : QN__PROBE_NO;
}

const qn__reader qn__image_reader = {
    .name = QN__PACKED_NAMES("images"),
    .about = "JPEG, PNG, WebP, GIF, TIFF or BMP files, or a folder or an archive of them",
    .folders = 1,
    .labels_remedy = "put the images of each class into a folder of its name",
    .files = 1,
    .probe = probe,
    .read_parts = read,
};

/* ------------------------------------------------------------------ bytes that a caller has */

static qn_status read_bytes(const qn__enclosed_files *files, const qn_data_options *options,
                            qn_data *data, qn_error *err) {
    reading r;
    qn__pool *pool;
    qn_status status = qn__pool_create(1, 0, &pool, err);
    if (status != QN_OK)
        return status;
    data->format = qn__image_reader.name[QN__PLAIN];
    status = begin(files, options, data, &r, err);
    r.cache.off = 1;
    if (status == QN_OK)
        status = read_files(&r, options, pool, err);
    qn__pool_destroy(pool);
    return status == QN_OK ? qn__data_finish_later(data, err) : status;
}

qn_status qn__image_of_bytes(const void *bytes, size_t size, const char *name,
                             const qn_data_options *options, qn_data **out, qn_error *err) {
    qn__enclosed_files files;
    *out = NULL;
    qn_data *data = qn__alloc(1, sizeof *data, err);
    if (!data)
        return QN_MEMORY;
    qn_status status = qn__enclosed_files_of_bytes(bytes, size, name, &files, err);
    if (status == QN_OK)
        status = read_bytes(&files, options, data, err);
    qn__enclosed_files_release(&files);
    if (status == QN_OK)
        *out = data;
    else
        qn_data_close(data);
    return status;
}
