/* Checkpoints. The target mends the digest of the contents, which would keep every mutation out. */
#include "fuzz/fuzz.h"

#include "base/digest/sha256.h"
#include "base/text/text.h"
#include "model/formats/safetensors.h"
#include "train/checkpoint_file.h"

enum { PARAMETERS = 12, SLOTS = 1 };

static const char *note_of(const qn__tensors *file, const char *key) {
    const char *value = qn__tensors_note(file, key);
    return value ? value : "";
}

/* The digest that docs/formats.md describes: six texts, each with its NUL, then the tensors. */
static void digest_of(const qn__tensors *file, char hex[65]) {
    static const char *const texts[] = {"recipe", "step", "loss", "correct", "items", "powers"};
    static const char *const names[] = {"parameters", "slot0", "slot1"};
    qn__sha256 hash;
    uint8_t digest[32];
    qn__sha256_begin(&hash);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = note_of(file, texts[i]);
        qn__sha256_add(&hash, text, strlen(text) + 1);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const qn__tensor_view *view = qn__tensors_find(file, names[i]);
        if (view)
            qn__sha256_add(&hash, view->bytes, (size_t)view->count * sizeof(float));
    }
    qn__sha256_end(&hash, digest);
    qn__hex(digest, hex);
}

static void mend(uint8_t *bytes, size_t size, const qn__tensors *file) {
    static const char key[] = "\"payload\":\"";
    const size_t length = sizeof key - 1;
    char hex[65];
    digest_of(file, hex);
    for (size_t at = 0; at + length + 64 <= size; at++)
        if (memcmp(bytes + at, key, length) == 0) {
            memcpy(bytes + at + length, hex, 64);
            return;
        }
}

static void read_one(const uint8_t *bytes, size_t size, uint64_t step, const char *recipe) {
    float *parameter = calloc(PARAMETERS, sizeof *parameter);
    float *slot = calloc(PARAMETERS, sizeof *slot);
    qn_error err = {0};
    FUZZ_MUST(parameter && slot);
    qn__snapshot into = {.recipe_json = recipe,
                         .parameters = PARAMETERS,
                         .slots = SLOTS,
                         .parameter = parameter,
                         .slot = {slot, NULL}};
    const qn_status status = qn__checkpoint_read(fuzz_file(0, bytes, size), step, &into, &err);
    if (status == QN_OK) {
        FUZZ_MUST(into.step == step && into.parameter == parameter && into.slot[0] == slot);
    } else {
        fuzz_check_refusal(status, NULL, &err);
        for (int i = 0; i < PARAMETERS; i++) /* nothing was written */
            FUZZ_MUST(parameter[i] == 0 && slot[i] == 0);
    }
    free(parameter);
    free(slot);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    qn__tensors *file = NULL;
    qn_error err = {0};
    uint64_t step = 0;
    read_one(bytes, size, 12, "{}");
    if (qn__tensors_from_bytes(bytes, size, "fuzzed", &file, &err) != QN_OK)
        return 0;
    uint8_t *mended = malloc(size);
    FUZZ_MUST(mended != NULL);
    memcpy(mended, bytes, size);
    mend(mended, size, file);
    const char *text = note_of(file, "step");
    qn__parse_u64(text, strlen(text), &step);
    read_one(mended, size, step, note_of(file, "recipe"));
    read_one(mended, size, step, "{\"quern\":1}");
    qn__tensors_free(file);
    free(mended);
    return 0;
}
