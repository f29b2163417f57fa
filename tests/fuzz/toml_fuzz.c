/* Job files: what is accepted has keys and values of its kinds, and no key twice. */
#include "fuzz/fuzz.h"

#include "toml.h"

static void check_number(const char *text, int whole) {
    FUZZ_MUST(text[strspn(text, whole ? "-0123456789" : "+-.eE0123456789")] == '\0');
    FUZZ_MUST(strpbrk(text, "0123456789") != NULL);
}

static void check_value(const toml_value *v) {
    char *end;
    switch (v->kind) {
    case TOML_INTEGER:
        check_number(v->text, 1);
        break;
    case TOML_FLOAT:
        check_number(v->text, 0);
        (void)strtod(v->text, &end);
        FUZZ_MUST(*end == '\0');
        break;
    case TOML_BOOLEAN:
        FUZZ_MUST(strcmp(v->text, "true") == 0 || strcmp(v->text, "false") == 0);
        break;
    case TOML_INTEGERS:
        FUZZ_MUST(v->text[strspn(v->text, "- 0123456789")] == '\0');
        break;
    default:
        FUZZ_MUST(v->text != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    qn_error err = {0};
    toml_file file;
    /* A block of its own size, so that reading beyond it is seen. */
    char *text = malloc(size + 1);
    FUZZ_MUST(text != NULL);
    memcpy(text, bytes, size);
    char *exact = size > 0 ? realloc(text, size) : text;
    const qn_status status = toml_read(exact, size, "job.toml", &file, &err);
    free(exact);
    if (status != QN_OK) {
        fuzz_check_refusal(status, file.at, &err);
        FUZZ_MUST(err.where[0] != '\0' && err.remedy[0] != '\0');
        return 0;
    }
    for (size_t i = 0; i < file.count; i++) {
        const toml_value *v = &file.at[i];
        FUZZ_MUST(v->line > 0 && (i == 0 || v->line >= file.at[i - 1].line));
        check_value(v);
        for (size_t k = 0; k < i && k < 50; k++)
            FUZZ_MUST(strcmp(v->key, file.at[k].key) != 0 ||
                      strcmp(v->table, file.at[k].table) != 0);
    }
    toml_release(&file);
    return 0;
}
