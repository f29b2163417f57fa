#include "num/augment.h"

#include "num/augment_words.h"
#include "num/philox.h"
#include <string.h>

/* Elements of the words that an item draws (docs/exactness.md 17.10). */
enum { CROP_ROW, CROP_COLUMN, MIRROR, CUT_ROW = 4, CUT_COLUMN, ELEMENTS = 8 };

/* What a word of an augmentation acts on: rows and columns of the picture, and what is drawn. */
typedef struct stage {
    int64_t side[2];
    uint32_t drawn[ELEMENTS];
} stage;

/* A number below `count`. */
static int64_t draw(const stage *s, int element, int64_t count) {
    return (int64_t)(((uint64_t)s->drawn[element] * (uint64_t)count) >> 32);
}

/* The square in pixels of the result, of which `view` is the part after it. */
static void cut(const stage *s, uint32_t side, qn__augment_view *view, const int64_t size[2]) {
    for (int d = 0; d < 2; ++d) {
        const int64_t first = draw(s, CUT_ROW + d, s->side[d]) - side / 2;
        int64_t from = first - (d ? view->left : view->top);
        if (d && view->mirrored)
            from = view->left - (first + side - 1);
        const int64_t end = from + side;
        view->cut[d][0] = (uint32_t)(from < 0 ? 0 : from < size[d] ? from : size[d]);
        view->cut[d][1] = (uint32_t)(end < 0 ? 0 : end < size[d] ? end : size[d]);
    }
}

/* Puts a word before the words of the view. `s` has the sides of the picture before it. */
static void put_before(const stage *s, qn__augment_word word, qn__augment_view *view,
                       const int64_t size[2]) {
    switch (word.kind) {
    case QN__AUGMENT_PAD:
        view->top -= word.size;
        view->left -= word.size;
        break;
    case QN__AUGMENT_CROP:
        view->top += draw(s, CROP_ROW, s->side[0] - size[0] + 1);
        view->left += draw(s, CROP_COLUMN, s->side[1] - size[1] + 1);
        break;
    case QN__AUGMENT_FLIP:
        if (draw(s, MIRROR, 2) == 0)
            break;
        view->mirrored = !view->mirrored;
        view->left = s->side[1] - 1 - view->left;
        break;
    case QN__AUGMENT_CUTOUT:
        cut(s, word.size, view, size);
        break;
    default: /* of those that make new bytes */
        break;
    }
}

/* From the last word to the first: a word changes where the view looks in the picture before it.
 */
qn__augment_view qn__augment_view_of(const qn__augment *augment, uint32_t begin, uint32_t end,
                                     uint64_t seed, uint32_t epoch, uint64_t item) {
    const int64_t size[2] = {augment->shape.height, augment->shape.width};
    stage s = {{size[0], size[1]}, {0}};
    qn__augment_view view = {0};
    for (uint32_t quad = 0; quad < ELEMENTS / 4; ++quad)
        qn__words(seed, QN__PURPOSE_AUGMENT, 0, epoch, item, quad, s.drawn + 4 * quad);
    for (uint32_t i = end; i-- > begin;) {
        int64_t pad = 0;
        for (uint32_t j = begin; j < i; ++j) {
            const qn__augment_word earlier = augment->word[j];
            pad = earlier.kind == QN__AUGMENT_PAD    ? earlier.size
                  : earlier.kind == QN__AUGMENT_CROP ? 0
                                                     : pad;
        }
        s.side[0] = size[0] + 2 * pad;
        s.side[1] = size[1] + 2 * pad;
        put_before(&s, augment->word[i], &view, size);
    }
    return view;
}

/* Columns of the result that show a pixel of the picture: from at[0] to at[1] - 1. */
static void shown(const qn__augment_view *view, int64_t width, int64_t at[2]) {
    at[0] = view->mirrored ? view->left - width + 1 : -view->left;
    at[1] = at[0] + width;
    for (int i = 0; i < 2; ++i)
        at[i] = at[i] < 0 ? 0 : at[i] < width ? at[i] : width;
}

static void mirror(size_t size, const void *last, size_t count, void *to) {
    const char *from = last;
    char *out = to;
    if (size == 1)
        for (size_t i = 0; i < count; ++i)
            out[i] = *(from - i);
    else
        for (size_t i = 0; i < count; ++i)
            memcpy(out + 4 * i, from - 4 * i, 4);
}

/* `fill`: the byte of pixels outside of the picture. */
static void show(qn__shape shape, const qn__augment_view *view, size_t size, int fill,
                 const void *from, void *to) {
    const int64_t height = shape.height, width = shape.width;
    const size_t line = (size_t)width * size;
    int64_t at[2];
    shown(view, width, at);
    const size_t count = at[1] > at[0] ? (size_t)(at[1] - at[0]) : 0;
    const size_t cut = view->cut[1][1] - view->cut[1][0];
    char *out = to;
    for (uint32_t c = 0; c < shape.channels; ++c) {
        const char *plane = (const char *)from + (size_t)c * (size_t)height * line;
        for (int64_t y = 0; y < height; ++y, out += line) {
            const int64_t row = view->top + y;
            if (count < (size_t)width || row < 0 || row >= height)
                memset(out, fill, line);
            if (count > 0 && row >= 0 && row < height) {
                const int64_t first = view->mirrored ? view->left - at[0] : view->left + at[0];
                const char *source = plane + (size_t)row * line + (size_t)first * size;
                if (view->mirrored)
                    mirror(size, source, count, out + (size_t)at[0] * size);
                else
                    memcpy(out + (size_t)at[0] * size, source, count * size);
            }
            if (y >= view->cut[0][0] && y < view->cut[0][1])
                memset(out + view->cut[1][0] * size, 0, cut * size);
        }
    }
}

/* Where the run of words that begins at `first` and makes one copy of the picture ends. */
static uint32_t end_of_run(const qn__augment *a, uint32_t first) {
    uint32_t end = first;
    while (end < a->words && a->word[end].kind < QN__AUGMENT_VIEWS)
        ++end;
    return end > first ? end : first + 1;
}

static uint32_t count_runs(const qn__augment *a) {
    uint32_t runs = 0;
    for (uint32_t i = 0; i < a->words; i = end_of_run(a, i))
        ++runs;
    return runs;
}

int qn__augment_makes_bytes(const qn__augment *a) {
    for (uint32_t i = 0; i < a->words; ++i)
        if (a->word[i].kind >= QN__AUGMENT_VIEWS)
            return 1;
    return 0;
}

/* Lines of a word, and where there is more than one run the picture between two. */
size_t qn__augment_space(const qn__augment *a) {
    if (!qn__augment_makes_bytes(a))
        return 0;
    return qn__augment_lines(a->shape) + (count_runs(a) > 1 ? qn__shape_volume(a->shape) : 0);
}

/* Copies alternate between the spare picture and the result, and the last one is the result. */
void qn__augment_item(const qn__augment *a, uint64_t seed, uint32_t epoch, uint64_t item,
                      size_t size, const void *from, void *to, void *space) {
    static void (*const word[])(const qn__augment_picture *, const qn__augment_word *,
                                const uint8_t *, uint8_t *) = {
        [QN__AUGMENT_RESIZED_CROP] = qn__augment_resized_crop,
        [QN__AUGMENT_JITTER] = qn__augment_jitter,
        [QN__AUGMENT_ROTATE] = qn__augment_rotate,
        [QN__AUGMENT_BLUR] = qn__augment_blur,
    };
    const qn__augment_picture picture = {a->shape, epoch, seed, item, space};
    uint32_t left = count_runs(a);
    if (left == 0)
        memcpy(to, from, qn__shape_volume(a->shape) * size);
    for (uint32_t i = 0, end; i < a->words; i = end) {
        void *next = --left % 2 ? (char *)space + qn__augment_lines(a->shape) : to;
        end = end_of_run(a, i);
        if (a->word[i].kind >= QN__AUGMENT_VIEWS) {
            word[a->word[i].kind](&picture, &a->word[i], from, next);
        } else {
            const qn__augment_view view = qn__augment_view_of(a, i, end, seed, epoch, item);
            show(a->shape, &view, size, 0, from, next);
        }
        from = next;
    }
}

/* By kind: how a word that makes new bytes moves a mask; NULL: it moves no pixels. */
typedef void mask_mover(const qn__augment_picture *, const qn__augment_word *, const uint8_t *,
                        uint8_t *);
static mask_mover *const mask_movers[QN__AUGMENT_KINDS] = {
    [QN__AUGMENT_RESIZED_CROP] = qn__augment_resized_crop_mask,
    [QN__AUGMENT_ROTATE] = qn__augment_rotate_mask,
};

/* A square of zeros moves nothing. */
static int moves(qn__augment_kind kind) {
    return kind < QN__AUGMENT_VIEWS ? kind != QN__AUGMENT_CUTOUT : mask_movers[kind] != NULL;
}

int qn__augment_moves(const qn__augment *a) {
    for (uint32_t i = 0; i < a->words; ++i)
        if (moves(a->word[i].kind))
            return 1;
    return 0;
}

/* Of the runs of words, those that move pixels make copies, which alternate as those of a picture.
 */
void qn__augment_mask(const qn__augment *a, uint64_t seed, uint32_t epoch, uint64_t item,
                      const uint8_t *from, uint8_t *to, void *space) {
    const qn__shape shape = {1, a->shape.height, a->shape.width, QN__PICTURE};
    const qn__augment_picture picture = {shape, epoch, seed, item, space};
    uint32_t left = 0;
    for (uint32_t i = 0; i < a->words; i = end_of_run(a, i))
        left += a->word[i].kind < QN__AUGMENT_VIEWS || moves(a->word[i].kind);
    if (left == 0)
        memcpy(to, from, qn__shape_volume(shape));
    for (uint32_t i = 0, end; i < a->words; i = end) {
        const qn__augment_word *word = &a->word[i];
        end = end_of_run(a, i);
        if (word->kind >= QN__AUGMENT_VIEWS && !moves(word->kind))
            continue;
        uint8_t *next = --left % 2 ? (uint8_t *)space + qn__augment_lines(a->shape) : to;
        if (word->kind >= QN__AUGMENT_VIEWS) {
            mask_movers[word->kind](&picture, word, from, next);
        } else {
            qn__augment_view view = qn__augment_view_of(a, i, end, seed, epoch, item);
            memset(view.cut, 0, sizeof view.cut);
            show(shape, &view, 1, QN__IGNORED, from, next);
        }
        from = next;
    }
}
