#include "data/tokens/models/bpe.h"

#include "data/tokens/models/byte_alphabet.h"
#include "data/tokens/models/marks.h"

static void add_token(const qn__bpe *b, uint32_t token, qn__text *json) {
    size_t size;
    const char *text = qn__vocabulary_text(&b->vocabulary, token, &size);
    qn__token_text_json(json, text, size);
}

static void write_affix(const char *key, const char *affix, qn__text *json) {
    qn__text_add(json, "\"%s\": ", key);
    if (*affix)
        qn__text_add_json(json, affix);
    else
        qn__text_add(json, "null");
    qn__text_add(json, ", ");
}

static void write_model(const qn__bpe *b, qn__text *json) {
    qn__text_add(json, "\"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": ");
    if (b->unknown == QN__WORD_NONE)
        qn__text_add(json, "null");
    else
        add_token(b, b->unknown, json);
    qn__text_add(json, ", ");
    write_affix("continuing_subword_prefix", b->prefix, json);
    write_affix("end_of_word_suffix", b->suffix, json);
    qn__text_add(json,
                 "\"fuse_unk\": %s, \"byte_fallback\": %s, \"ignore_merges\": %s, \"vocab\": ",
                 qn__truth_json(b->fuse_unknown), qn__truth_json(b->fallback),
                 qn__truth_json(b->whole_words));
    qn__vocabulary_write(&b->vocabulary, b->not_model, json);
    qn__text_add(json, ", \"merges\": [");
    for (uint32_t k = 0; k < b->merges.count; k++) {
        qn__text_add(json, "%s[", k ? ", " : "");
        add_token(b, b->merges.merge[k].left, json);
        qn__text_add(json, ", ");
        add_token(b, b->merges.merge[k].right, json);
        qn__text_add(json, "]");
    }
    qn__text_add(json, "]}");
}

static const char byte_level[] = "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                                 "\"trim_offsets\": true, \"use_regex\": true}";

/* A text in the place of another one. */
static void replace(const char *what, const char *by, qn__text *json) {
    qn__text_add(json, "{\"type\": \"Replace\", \"pattern\": {\"String\": ");
    qn__text_add_json(json, what);
    qn__text_add(json, "}, \"content\": \"%s\"}, ", by);
}

/* What `tokenizers` needs to decode words with affixes. A space is a letter for a byte there. */
static void affix_decoder(const qn__bpe *b, qn__text *json) {
    static const uint8_t space = ' ';
    char letters[8];
    letters[qn__byte_letters(&space, 1, letters)] = '\0';
    qn__text_add(json, "{\"type\": \"Sequence\", \"decoders\": [");
    if (*b->prefix)
        replace(b->prefix, "", json);
    if (*b->suffix) {
        qn__text_add(json, "{\"type\": \"BPEDecoder\", \"suffix\": ");
        qn__text_add_json(json, b->suffix);
        qn__text_add(json, "}, ");
        if (b->path.byte_level)
            replace(" ", letters, json);
    }
    qn__text_add(json, "%s]}", b->path.byte_level ? byte_level : "{\"type\": \"Fuse\"}");
}

void qn__bpe_write(const void *bpe, const qn__token_frame *frame, qn__text *json) {
    const qn__bpe *b = bpe;
    qn__text_path_write(&b->path, frame, json);
    qn__text_add(json, ", \"decoder\": ");
    if (*b->prefix || *b->suffix)
        affix_decoder(b, json);
    else if (b->path.byte_level)
        qn__text_add(json, "%s", byte_level);
    else
        qn__marked_decoder(&b->path, json);
    qn__text_add(json, ", ");
    write_model(b, json);
    qn__text_add(json, "}");
}
