/* What the readers of all ranks noted, as notes about the whole. */
#include "base/memory.h"
#include "base/text/text.h"
#include "data/parts/parts_heads.h"
#include <string.h>

/* A line of the notes of a rank, which end in NUL. */
static size_t line_of(const char *note) { return strcspn(note, "\n"); }

static const char *note_of(const qn__parts_blobs *blobs, uint32_t rank) {
    return (const char *)blobs->all + rank * blobs->each;
}

static int has_line(const char *note, const char *line, size_t size) {
    for (size_t own; *note; note += own + (note[own] == '\n')) {
        own = line_of(note);
        if (own == size && memcmp(note, line, size) == 0)
            return 1;
    }
    return 0;
}

/* Whether all parts with rows have the line; *first: whether none before `rank` has it. */
static int in_all(const qn_parts *parts, const qn__parts_blobs *blobs, uint32_t rank,
                  const char *line, size_t size, int *first) {
    int all = 1;
    *first = 1;
    for (uint32_t r = 0; r < parts->ranks; r++) {
        const int there = has_line(note_of(blobs, r), line, size);
        all &= there || parts->first[r] == parts->first[r + 1];
        *first &= r >= rank || !there;
    }
    return all;
}

/* A line of all parts stands once; else the files are named. */
static void join_notes(const qn_parts *parts, const qn__parts_blobs *blobs, qn__text *to) {
    for (uint32_t r = 0; r < parts->ranks; r++)
        for (const char *line = note_of(blobs, r); *line;) {
            const size_t size = line_of(line);
            int first;
            const int all = in_all(parts, blobs, r, line, size, &first);
            if (!all || first)
                qn__text_add(to, "%s%s%s%.*s", to->size > 0 ? "\n" : "", all ? "" : parts->name[r],
                             all ? "" : ": ", (int)size, line);
            line += size + (line[size] == '\n');
        }
}

qn_status qn__parts_notes(qn_parts *parts, qn_error *err) {
    const char *own = parts->own->note ? parts->own->note : "";
    qn__parts_blobs blobs;
    qn__text text = {0};
    qn_status status = qn__parts_gather_blobs(parts, own, strlen(own) + 1, &blobs, err);
    for (uint32_t r = 0; r < parts->ranks && status == QN_OK; r++)
        if (parts->gone[r] == QN__PART_THERE &&
            (blobs.size[r] == 0 || note_of(&blobs, r)[blobs.size[r] - 1] != 0))
            status = qn__fail(err, QN_CLUSTER, "%s sent a malformed message",
                              qn_cluster_name(parts->cluster, r));
    if (status == QN_OK && parts->ranks > 1) {
        join_notes(parts, &blobs, &text);
        qn__free(parts->own->note);
        parts->own->note = NULL;
        if (text.size > 0)
            status = (parts->own->note = qn__text_take(&text, err)) ? QN_OK : QN_MEMORY;
    }
    qn__text_release(&text);
    qn__parts_blobs_release(&blobs);
    return qn__parts_agree(parts, status, err);
}
