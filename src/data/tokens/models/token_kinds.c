#include "data/tokens/models/token_kind.h"

const qn__token_kind *const qn__token_kinds[] = {&qn__token_bytes_kind,
                                                 &qn__token_chars_kind,
                                                 &qn__token_words_kind,
                                                 &qn__token_bpe_kind,
                                                 &qn__token_wordpiece_kind,
                                                 &qn__token_unigram_kind,
                                                 NULL};
