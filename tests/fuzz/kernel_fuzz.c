/* Texts of user kernels: what is accepted has results, and C whose brackets match. */
#include "fuzz/fuzz.h"

#include "userkernel/compiler/user_program.h"

static void check_brackets(const char *text) {
    char open[1024];
    size_t depth = 0;
    for (; *text; text++) {
        if (strchr("([{", *text)) {
            FUZZ_MUST(depth < sizeof open);
            open[depth++] = *text;
        } else if (strchr(")]}", *text)) {
            const char want = *text == ')' ? '(' : *text == ']' ? '[' : '{';
            FUZZ_MUST(depth > 0 && open[--depth] == want);
        }
    }
    FUZZ_MUST(depth == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    qn_error err = {0};
    qn__user_source source;
    qn__text program = {0};
    char *text = fuzz_text(bytes, size);
    const qn_status status = qn__user_source_read(text, "kernel.c", &source, &err);
    free(text);
    if (status != QN_OK) {
        fuzz_check_refusal(status, source.functions.data, &err);
        FUZZ_MUST(err.remedy[0] != '\0' && err.where[0] != '\0');
        return 0;
    }
    uint32_t results = 0;
    for (uint32_t i = 0; i < source.parts; i++) {
        FUZZ_MUST(source.part[i].name[0] != '\0');
        results += (uint32_t)qn__user_use_is_result(source.part[i].use);
    }
    FUZZ_MUST(results > 0 && source.dimensions > 0);
    check_brackets(source.functions.data);
    qn__user_program_write(&source, &program);
    FUZZ_MUST(!program.failed && strlen(program.data) == program.size);
    qn__text_release(&program);
    qn__user_source_release(&source);
    return 0;
}
