#include "store/cached.h"
#include "base/digest/sha256.h"
#include "base/digest/siphash.h"
#include "base/files/cache_folder.h"
#include "base/files/cache_space.h"
#include "base/files/other_hosts.h"
#include "base/memory.h"
#include "store/listed.h"
#include "store/soon.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAGIC "quernmap"
enum { VERSION = 1, HEAD = 4096, NAME = 128, PRIVATE = 1 };
/* After so many bytes the space of the cache is looked at again. */
#define SPACE_STEP ((uint64_t)256 << 20)

typedef struct map_head {
    char magic[8];
    uint32_t version, block;
    uint64_t size, inode; /* of the other file */
    char tag[QN__REMOTE_TAG];
    char boot[QN__BOOT_ID]; /* of the system that set the bits */
    char address[2048];
} map_head;

/* Where an address is in the cache folder. */
typedef struct place {
    char folder[PATH_MAX];
    char data[NAME], map[NAME]; /* names in it */
    char boot[QN__BOOT_ID];
    int lock;    /* of the folder's files; -1: not held */
    int unnamed; /* there is no cache folder: files have no names, and end with the process */
} place;

static atomic_ullong written_bytes;

uint64_t qn__cached_blocks(const qn__cached *f) {
    return (f->about.size + QN__CACHED_BLOCK - 1) / QN__CACHED_BLOCK;
}

static size_t bits_size(uint64_t blocks) { return (size_t)((blocks + 63) / 64 * 8); }

static atomic_uchar *bits_of(const qn__cached *f) { return (atomic_uchar *)(f->mapped + HEAD); }

static uint64_t *digests_of(const qn__cached *f) {
    return (uint64_t *)(void *)(f->mapped + HEAD + bits_size(qn__cached_blocks(f)));
}

/* A damaged block is found by it, not a forged one: the folder is the user's. */
static uint64_t digest_block(const void *bytes, size_t size) {
    static const qn__siphash_key key = {{0x7175657271756572u, 0x6E6D61706E6D6170u}};
    return qn__siphash_lanes(&key, bytes, size);
}

int qn__cached_has(const qn__cached *f, uint64_t block) {
    return !f->mapped ||
           (atomic_load_explicit(&bits_of(f)[block / 8], memory_order_acquire) >> (block % 8) & 1);
}

/* ------------------------------------------------------------------ places */

/* What another host maps of a file that both may use, this one does not see at once. Each has files
 * of its own there. */
static int is_shared(const char *path) {
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int shared = qn__folder_is_shared(folder);
    if (folder >= 0)
        close(folder);
    return shared;
}

static qn_status find_place(const char *address, place *p, qn_error *err) {
    qn__sha256 hash;
    uint8_t digest[32];
    char text[65];
    const char *temporary = getenv("TMPDIR");
    p->lock = -1;
    p->unnamed = qn__cache_folder(1, p->folder, NULL) != QN_OK;
    if (p->unnamed && snprintf(p->folder, sizeof p->folder, "%s",
                               temporary && *temporary ? temporary : "/tmp") >= PATH_MAX)
        return qn__fail(err, QN_IO, "the path in TMPDIR is too long");
    qn__boot_id(p->boot);
    qn__sha256_begin(&hash);
    qn__sha256_add(&hash, address, strlen(address) + 1);
    if (is_shared(p->folder))
        qn__sha256_add(&hash, p->boot, strlen(p->boot));
    qn__sha256_end(&hash, digest);
    qn__hex(digest, text);
    snprintf(p->data, sizeof p->data, "%s%s", text, QN__CACHE_STORED);
    snprintf(p->map, sizeof p->map, "%s%s", text, QN__CACHE_BLOCKS);
    return QN_OK;
}

static void path_of(const place *p, const char *name, char path[PATH_MAX + NAME]) {
    snprintf(path, PATH_MAX + NAME, "%s/%s", p->folder, name);
}

/* The pair of files is opened, made and removed under a lock, so that it always belongs together.
 */
static void lock_folder(place *p) {
    char path[PATH_MAX + NAME];
    if (p->unnamed)
        return;
    path_of(p, "stores.lock", path);
    p->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    while (p->lock >= 0 && flock(p->lock, LOCK_EX) != 0 && errno == EINTR)
        ;
}

static void unlock_folder(place *p) {
    if (p->lock >= 0)
        close(p->lock);
    p->lock = -1;
}

/* ------------------------------------------------------------------ files of the cache */

static int open_one(const place *p, const char *name) {
    char path[PATH_MAX + NAME];
    struct stat info;
    path_of(p, name, path);
    const int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (file >= 0 && (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) ||
                      qn__cache_trust(&info, path, NULL) != QN_OK)) {
        close(file);
        return -1;
    }
    return file;
}

static void close_both(qn__cached *f) {
    if (f->mapped)
        (void)munmap(f->mapped, f->mapped_size);
    if (f->data >= 0)
        close(f->data);
    if (f->map >= 0)
        close(f->map);
    f->mapped = NULL;
    f->data = f->map = -1;
}

static int map_bits(qn__cached *f) {
    const uint64_t blocks = qn__cached_blocks(f);
    const uint64_t size = HEAD + bits_size(blocks) + 8 * blocks;
    if (size > SIZE_MAX / 2)
        return 0;
    f->mapped_size = (size_t)size;
    void *bytes = mmap(NULL, f->mapped_size, PROT_READ | PROT_WRITE, MAP_SHARED, f->map, 0);
    f->mapped = bytes == MAP_FAILED ? NULL : bytes;
    return f->mapped != NULL;
}

/* 1: the pair is there, whole, and of this address; about the file is then in f->about. */
static int open_pair(const place *p, qn__cached *f) {
    map_head head;
    struct stat data, map;
    if (p->unnamed)
        return 0;
    f->data = open_one(p, p->data);
    f->map = f->data < 0 ? -1 : open_one(p, p->map);
    int good = f->map >= 0 && pread(f->map, &head, sizeof head, 0) == (ssize_t)sizeof head &&
               memcmp(head.magic, MAGIC, sizeof head.magic) == 0 && head.version == VERSION &&
               head.block == QN__CACHED_BLOCK && fstat(f->data, &data) == 0 &&
               fstat(f->map, &map) == 0 && head.inode == (uint64_t)data.st_ino &&
               head.size == (uint64_t)data.st_size &&
               strnlen(head.tag, sizeof head.tag) < sizeof head.tag &&
               strncmp(head.address, f->address, sizeof head.address) == 0;
    if (good) {
        f->about.size = head.size;
        snprintf(f->about.tag, sizeof f->about.tag, "%s", head.tag);
        const uint64_t blocks = qn__cached_blocks(f);
        good = (uint64_t)map.st_size == HEAD + bits_size(blocks) + 8 * blocks && map_bits(f);
    }
    if (!good)
        close_both(f);
    return good;
}

/* Blocks that another run of the system wrote: those whose bytes are not theirs are forgotten. */
static void check_blocks(const place *p, qn__cached *f) {
    map_head *head = (map_head *)(void *)f->mapped;
    uint8_t *bytes;
    if (strncmp(head->boot, p->boot, QN__BOOT_ID) == 0 && *p->boot)
        return;
    bytes = qn__alloc(QN__CACHED_BLOCK, 1, NULL);
    for (uint64_t i = 0; i < qn__cached_blocks(f); i++) {
        if (!qn__cached_has(f, i))
            continue;
        const uint64_t from = i * QN__CACHED_BLOCK, left = f->about.size - from;
        const size_t size = left < QN__CACHED_BLOCK ? (size_t)left : QN__CACHED_BLOCK;
        if (!bytes || pread(f->data, bytes, size, (off_t)from) != (ssize_t)size ||
            digest_block(bytes, size) != digests_of(f)[i])
            atomic_fetch_and(&bits_of(f)[i / 8], (unsigned char)~(1u << (i % 8)));
    }
    qn__free(bytes);
    snprintf(head->boot, sizeof head->boot, "%s", p->boot);
}

static qn_status make_one(const place *p, char name[NAME], uint64_t size, int *file,
                          qn_error *err) {
    char path[PATH_MAX + NAME];
    snprintf(name, NAME, "stores.%ld.XXXXXX", (long)getpid());
    path_of(p, name, path);
    *file = mkostemp(path, O_CLOEXEC);
    if (*file < 0)
        return qn__fail_errno(err, "create a file in", p->folder);
    snprintf(name, NAME, "%s", strrchr(path, '/') + 1);
    return ftruncate(*file, (off_t)size) == 0 ? QN_OK : qn__fail_errno(err, "extend", path);
}

static void remove_one(const place *p, const char *name) {
    char path[PATH_MAX + NAME];
    path_of(p, name, path);
    if (*name)
        (void)unlink(path);
}

static qn_status write_head(const place *p, qn__cached *f, qn_error *err) {
    struct stat info;
    map_head *head = (map_head *)(void *)f->mapped;
    if (fstat(f->data, &info) != 0)
        return qn__fail_errno(err, "look at a file in", p->folder);
    head->version = VERSION;
    head->block = QN__CACHED_BLOCK;
    head->size = f->about.size;
    head->inode = (uint64_t)info.st_ino;
    snprintf(head->tag, sizeof head->tag, "%s", f->about.tag);
    snprintf(head->boot, sizeof head->boot, "%s", p->boot);
    snprintf(head->address, sizeof head->address, "%.2047s", f->address);
    memcpy(head->magic, MAGIC, sizeof head->magic);
    return QN_OK;
}

/* Makes the pair. Without a tag nobody can tell whether a later reading finds the same file, so the
 * pair has no name then. */
static qn_status make_pair(const place *p, qn__cached *f, qn_error *err) {
    char data[NAME] = "", map[NAME] = "", from[PATH_MAX + NAME], to[PATH_MAX + NAME];
    const uint64_t blocks = qn__cached_blocks(f);
    qn_status status = make_one(p, data, f->about.size, &f->data, err);
    if (status == QN_OK)
        status = make_one(p, map, HEAD + bits_size(blocks) + 8 * blocks, &f->map, err);
    if (status == QN_OK)
        status =
            map_bits(f) ? write_head(p, f, err) : qn__fail_errno(err, "map a file in", p->folder);
    if (status == QN_OK && f->about.tag[0] && !p->unnamed) {
        remove_one(p, p->map); /* first: a map is never there without its file */
        path_of(p, data, from);
        path_of(p, p->data, to);
        int is_named = rename(from, to) == 0;
        if (is_named)
            data[0] = '\0';
        path_of(p, map, from);
        path_of(p, p->map, to);
        is_named = is_named && rename(from, to) == 0;
        if (is_named)
            map[0] = '\0';
    }
    remove_one(p, data);
    remove_one(p, map);
    if (status != QN_OK)
        close_both(f);
    return status;
}

/* ------------------------------------------------------------------ writing */

static qn_status write_all(int file, const void *bytes, size_t size, uint64_t at, qn_error *err) {
    for (size_t done = 0; done < size;) {
        const ssize_t now =
            pwrite(file, (const char *)bytes + done, size - done, (off_t)(at + done));
        if (now < 0 && errno == EINTR)
            continue;
        if (now <= 0) {
            qn__fail_errno(err, "write to the cache", "");
            return qn__remedy(err, QN_IO,
                              "make space in the cache folder, or name another one by QUERN_CACHE");
        }
        done += (size_t)now;
    }
    return QN_OK;
}

/* Old entries give way to what was written since the last look. */
static qn_status keep_space(const qn__cached *f, size_t size, qn_error *err) {
    place p;
    const uint64_t before = atomic_fetch_add(&written_bytes, size);
    if (before / SPACE_STEP == (before + size) / SPACE_STEP && before > 0)
        return QN_OK;
    if (find_place(f->address, &p, err) != QN_OK)
        return QN_IO;
    lock_folder(&p);
    const int fits = qn__cache_space_make(p.folder, p.data, SPACE_STEP);
    unlock_folder(&p);
    if (fits)
        return QN_OK;
    qn__fail(err, QN_IO, "the cache folder has no space for the file");
    qn__at(err, "%s", p.folder);
    return qn__remedy(err, QN_IO, "make space there, or name another folder by QUERN_CACHE");
}

qn_status qn__cached_write(qn__cached *f, uint64_t block, const void *bytes, size_t size,
                           qn_error *err) {
    qn_status status = keep_space(f, size, err);
    if (status == QN_OK)
        status = write_all(f->data, bytes, size, block * QN__CACHED_BLOCK, err);
    if (status == QN_OK) {
        digests_of(f)[block] = digest_block(bytes, size);
        atomic_fetch_or_explicit(&bits_of(f)[block / 8], (unsigned char)(1u << (block % 8)),
                                 memory_order_release);
    }
    return status;
}

/* ------------------------------------------------------------------ opening */

/* A file without a name, for what is read once. */
static int make_unnamed(const char *folder) {
    char path[PATH_MAX + NAME];
    snprintf(path, sizeof path, "%s/stores.%ld.XXXXXX", folder, (long)getpid());
    const int file = mkostemp(path, O_CLOEXEC);
    if (file >= 0)
        (void)unlink(path);
    return file;
}

/* The whole file came with the first answer. */
static qn_status open_small(qn__cached *f, const qn__object_first *first, qn_error *err) {
    f->data = memfd_create("quern", MFD_CLOEXEC);
    if (f->data < 0)
        return qn__fail_errno(err, "make memory for", f->address);
    f->about.size = first->size;
    return write_all(f->data, first->bytes, first->size, 0, err);
}

typedef struct pouring {
    int file;
    uint64_t at;
    qn_status status;
    qn_error error;
} pouring;

static int pour(void *user, const void *bytes, size_t size) {
    pouring *p = user;
    p->status = write_all(p->file, bytes, size, p->at, &p->error);
    p->at += size;
    return p->status == QN_OK;
}

/* A server that tells no size: all is read now. */
static qn_status open_unsized(qn__cached *f, const place *p, qn_error *err) {
    pouring all = {.file = make_unnamed(p->folder)};
    f->data = all.file;
    if (f->data < 0)
        return qn__fail_errno(err, "create a file in", p->folder);
    const qn__object_range range = {
        .address = f->address, .about = &f->about, .end = UINT64_MAX, .take = pour, .user = &all};
    const qn_status status = qn__object_read(&range, err);
    f->about.size = all.at;
    if (all.status != QN_OK && err)
        *err = all.error;
    return all.status != QN_OK ? all.status : status;
}

static qn_status write_first(qn__cached *f, const qn__object_first *first, qn_error *err) {
    qn_status status = QN_OK;
    for (size_t at = 0; status == QN_OK && at + QN__CACHED_BLOCK <= first->size;
         at += QN__CACHED_BLOCK)
        if (!qn__cached_has(f, at / QN__CACHED_BLOCK))
            status = qn__cached_write(f, at / QN__CACHED_BLOCK, first->bytes + at, QN__CACHED_BLOCK,
                                      err);
    return status;
}

static qn_status open_large(qn__cached *f, place *p, const qn__object_first *first, qn_error *err) {
    qn_status status = QN_OK;
    lock_folder(p);
    const int found = open_pair(p, f);
    const int same = found && strcmp(f->about.tag, first->about.tag) == 0 && f->about.tag[0] &&
                     f->about.size == first->about.size;
    if (found && !same)
        close_both(f);
    if (!same) {
        f->about = first->about;
        status = make_pair(p, f, err);
    } else {
        check_blocks(p, f);
        (void)futimens(f->data, NULL); /* it was used last */
    }
    unlock_folder(p);
    return status == QN_OK ? write_first(f, first, err) : status;
}

int qn__cached_known(const char *address, qn__remote_about *out) {
    qn__cached f = {.data = -1, .map = -1};
    place *p = qn__alloc(1, sizeof *p, NULL);
    f.address = qn__copy_text(address, NULL);
    int known = 0;
    if (p && f.address && find_place(address, p, NULL) == QN_OK) {
        lock_folder(p);
        known = open_pair(p, &f);
        unlock_folder(p);
    }
    if (known)
        *out = f.about;
    close_both(&f);
    qn__free(f.address);
    qn__free(p);
    return known;
}

/* What an earlier reading left, if the store says that the file is still the same. */
static qn_status ask_store(qn__cached *f, place *p, qn__object_first *first, qn_error *err) {
    qn_status told;
    if (qn__soon_find(f->address, first, &told, err))
        return told;
    if (qn__listed_find(f->address, &first->about) && first->about.size > QN__OBJECT_FIRST) {
        first->ranges = first->sized = 1;
        return QN_OK;
    }
    lock_folder(p);
    const int known = open_pair(p, f);
    unlock_folder(p);
    qn_status status = qn__object_look(f->address, known ? f->about.tag : "", first, err);
    if (status != QN_OK || !first->unchanged) {
        close_both(f);
        return status;
    }
    first->about = f->about;
    first->ranges = first->sized = 1;
    close_both(f);
    return QN_OK;
}

static qn_status open_file(qn__cached *f, qn_error *err) {
    place *p = qn__alloc(1, sizeof *p, err);
    qn__object_first first = {0};
    if (!p)
        return QN_MEMORY;
    qn_status status = find_place(f->address, p, err);
    if (status == QN_OK)
        status = ask_store(f, p, &first, err);
    if (status == QN_OK) {
        f->about = first.about;
        f->ranges = first.ranges;
        const int whole = first.sized && !first.unchanged && first.about.size == first.size;
        status = whole          ? open_small(f, &first, err)
                 : !first.sized ? open_unsized(f, p, err)
                                : open_large(f, p, &first, err);
    }
    qn__free(first.bytes);
    qn__free(p);
    return status;
}

qn_status qn__cached_open(const char *address, qn__cached **out, qn_error *err) {
    struct stat info;
    *out = NULL;
    qn__cached *f = qn__alloc(1, sizeof *f, err);
    if (!f)
        return QN_MEMORY;
    f->data = f->map = -1;
    f->users = 1;
    pthread_mutex_init(&f->guard, NULL);
    pthread_cond_init(&f->changed, NULL);
    f->address = qn__copy_text(address, err);
    qn_status status = f->address ? open_file(f, err) : QN_MEMORY;
    if (status == QN_OK && fstat(f->data, &info) != 0)
        status = qn__fail_errno(err, "look at", address);
    if (status != QN_OK) {
        qn__cached_free(f);
        return status;
    }
    f->device = info.st_dev;
    f->inode = info.st_ino;
    *out = f;
    return QN_OK;
}

void qn__cached_free(qn__cached *f) {
    if (!f)
        return;
    close_both(f);
    pthread_mutex_destroy(&f->guard);
    pthread_cond_destroy(&f->changed);
    qn__free(f->address);
    qn__free(f);
}
