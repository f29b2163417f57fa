#include "serve/watch/watch_files.h"

#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

/* Seconds after which a file is what it is. */
enum { FRESH = 2 };

/* A lease for reading is granted where nobody has the file open for writing. Its holder is told of
 * a writer who comes meanwhile by a signal: this one is ignored, unlike SIGIO. */
qn__writers qn__watch_writers(int folder, const char *name) {
    const int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return QN__WRITERS_UNKNOWN;
    (void)fcntl(file, F_SETSIG, SIGURG);
    qn__writers is = QN__WRITERS_NONE;
    if (fcntl(file, F_SETLEASE, F_RDLCK) != 0)
        is = errno == EAGAIN ? QN__WRITERS_SOME : QN__WRITERS_UNKNOWN;
    else
        (void)fcntl(file, F_SETLEASE, F_UNLCK);
    close(file);
    return is;
}

static int is_same(const struct stat *a, const struct stat *b) {
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* What this machine lacks is not a fault of the file. Other reasons may pass: rights are given
 * later, and a server is reached again. */
static qn__skip refuse(qn__watch_unit *unit, const char *name, int is_final) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || !is_final)
        return QN__SKIP_LATER;
    qn__fail_errno(&unit->error, "read", name);
    unit->status = unit->error.status = QN_INPUT;
    return QN__SKIP_NOT;
}

qn_status qn__watch_refuse_size(qn_error *err) {
    return qn__fail(err, QN_INPUT, "the file is larger than 2 GiB");
}

int qn__watch_read_bytes(int file, uint64_t size, qn__watch_bytes *out) {
    while (out->size < size) {
        const ssize_t got = read(file, out->bytes + out->size, (size_t)size - out->size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return 0;
        if (got == 0)
            break;
        out->size += (size_t)got;
    }
    return 1;
}

/* When the file was made tells one from another that got its number later. */
static void find_who(int file, qn__watch_bytes *out) {
    struct statx more = {.stx_mask = 0};
    const int knows = statx(file, "", AT_EMPTY_PATH, STATX_BTIME, &more) == 0 &&
                      (more.stx_mask & STATX_BTIME) != 0;
    out->who = (qn__watch_who){
        .device = (uint64_t)out->info.st_dev,
        .inode = (uint64_t)out->info.st_ino,
        .size = (uint64_t)out->info.st_size,
        .modified = qn__modified(&out->info),
        .born = knows ? more.stx_btime.tv_sec * 1000000000 + more.stx_btime.tv_nsec : 0};
}

static qn__skip read_open(int file, const char *name, int is_final, qn__watch_bytes *out,
                          qn__watch_unit *unit) {
    struct stat after;
    if (fstat(file, &out->info) != 0)
        return refuse(unit, name, is_final);
    find_who(file, out);
    if (!S_ISREG(out->info.st_mode))
        return QN__SKIP_GONE;
    if ((uint64_t)out->info.st_size > QN__WATCH_MOST_BYTES) {
        unit->status = qn__watch_refuse_size(&unit->error);
        return QN__SKIP_NOT;
    }
    out->bytes = qn__alloc((uint64_t)out->info.st_size + 1, 1, &unit->error);
    if (!out->bytes) {
        unit->status = QN_MEMORY;
        return QN__SKIP_NOT;
    }
    if (!qn__watch_read_bytes(file, (uint64_t)out->info.st_size, out) || fstat(file, &after) != 0)
        return refuse(unit, name, is_final);
    return is_same(&out->info, &after) ? QN__SKIP_NOT : QN__SKIP_LATER;
}

qn__skip qn__watch_file_read(int folder, const char *name, int is_final, qn__watch_bytes *out,
                             qn__watch_unit *unit) {
    const int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return errno == ENOENT || errno == ENOTDIR ? QN__SKIP_GONE : refuse(unit, name, is_final);
    const qn__skip skip = read_open(file, name, is_final, out, unit);
    close(file);
    return skip;
}

static int ends_with(const char *name, const char *end) {
    const size_t size = strlen(name), length = strlen(end);
    return size >= length && strcasecmp(name + size - length, end) == 0;
}

int qn__watch_may_hold_rows(const char *name) {
    static const char *const one[] = {".jpg",  ".jpeg", ".png", ".webp", ".gif",
                                      ".tiff", ".tif",  ".bmp", ".txt"};
    for (size_t k = 0; k < sizeof one / sizeof *one; ++k)
        if (ends_with(name, one[k]))
            return 0;
    return 1;
}

static qn_status read_items(const qn__watch_units *units, const char *name,
                            const qn__watch_bytes *bytes, qn_data **out, qn_error *err) {
    qn__body_kind kind;
    const qn__body_text text = {bytes->bytes, bytes->size};
    if (ends_with(name, ".txt"))
        return qn__body_of_texts(units->reader, &text, 1, out, err);
    if (!qn__watch_may_hold_rows(name))
        return qn__body_read(units->reader, QN__BODY_IMAGE, bytes->bytes, bytes->size, out, err);
    const qn_status status = qn__body_kind_of(NULL, bytes->bytes, bytes->size, &kind, err);
    if (status == QN_OK)
        return qn__body_read(units->reader, kind, bytes->bytes, bytes->size, out, err);
    qn__fail(err, QN_INPUT,
             bytes->size ? "the file is neither an image nor rows as CSV or JSON"
                         : "the file is empty");
    return QN_INPUT;
}

static qn_status read_prompts(const char *name, const qn__watch_bytes *bytes,
                              qn__watch_prompts **out, qn_error *err) {
    const size_t blanks = strspn(bytes->bytes, " \t\r\n\xef\xbb\xbf");
    const int text = ends_with(name, ".txt");
    if (text || bytes->bytes[blanks] == '{')
        return qn__watch_prompts_read(bytes->bytes, bytes->size, !text, out, err);
    qn__fail(err, QN_INPUT,
             bytes->size ? "the file is neither a text (.txt) nor prompts as lines of JSON"
                         : "the file is empty");
    return QN_INPUT;
}

void qn__watch_file_items(const qn__watch_units *units, const char *name,
                          const qn__watch_bytes *bytes, qn__watch_unit *unit) {
    unit->status = units->texts ? read_prompts(name, bytes, &unit->prompts, &unit->error)
                                : read_items(units, name, bytes, &unit->data, &unit->error);
}

int qn__watch_is_fresh(const struct stat *info) {
    const time_t age = time(NULL) - info->st_mtim.tv_sec;
    return age < FRESH;
}
