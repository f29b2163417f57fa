/* Bodies of completions and conversations. The first byte of an input says which of both it is: 'c'
 * a conversation. What is accepted has prompts, and every text of it can be read. */
#include "fuzz/fuzz.h"

#include "serve/text/text_ask.h"

static size_t read_text(const char *text) {
    FUZZ_MUST(text != NULL);
    return strlen(text); /* so that the address sanitizer sees it */
}

static size_t read_prompt(const qn__ask *ask, const qn__text_prompt *prompt) {
    size_t sum = 0;
    FUZZ_MUST((prompt->text != NULL) + (prompt->tokens != NULL) + (prompt->said != NULL) == 1);
    FUZZ_MUST((prompt->said != NULL) == (ask->kind == QN__ASK_CHAT));
    if (prompt->text)
        return read_text(prompt->text);
    for (uint32_t i = 0; i < prompt->count; i++)
        sum += prompt->said ? read_text(prompt->said[i].role) + read_text(prompt->said[i].content)
                            : prompt->tokens[i];
    FUZZ_MUST(!prompt->said || sum > 0);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    qn__ask ask;
    qn__ask_refusal no;
    size_t sum = 0;
    if (size < 1)
        return 0;
    const qn__ask_kind kind = bytes[0] == 'c' ? QN__ASK_CHAT : QN__ASK_COMPLETION;
    if (!qn__ask_read(kind, (const char *)bytes + 1, size - 1, &ask, &no)) {
        FUZZ_MUST(no.status >= 400 && no.message[0]);
        return 0;
    }
    FUZZ_MUST(ask.prompts > 0 && ask.options.stops <= QN__ASK_STOPS);
    FUZZ_MUST(ask.choices == 0 || ask.options.log_probabilities);
    for (uint32_t i = 0; i < ask.options.stops; i++)
        sum += read_text(ask.options.stop[i]);
    for (uint32_t i = 0; i < ask.prompts; i++)
        sum += read_prompt(&ask, &ask.prompt[i]);
    FUZZ_MUST(sum < SIZE_MAX);
    qn__ask_release(&ask);
    return 0;
}
