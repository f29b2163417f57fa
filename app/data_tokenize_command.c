/* quern data tokenize: texts as numbers of tokens, and back; learning a tokenizer. */

#include "command.h"
#include "format.h"
#include "message.h"
#include "paths.h"
#include "shared_rows.h"
#include <quern/tokenizer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tokenize_flags {
    const char *tokens, *out, *save, *text;
    uint64_t train, threads;
    int decode, quiet, json;
} tokenize_flags;

#define AT(member) .place = offsetof(tokenize_flags, member)

static const option tokenize_options[] = {
    {.heading = "Options",
     ROW_TEXT(
         "tokens", tokens, "WHICH",
         "bytes; chars, words or words:20000, which learn their vocabulary from the corpus; "
         "bpe:FILE, wordpiece:FILE or unigram:FILE, a tokenizer.json; bpe:8000, learned from the "
         "corpus; file:FILE, a saved one")},
    {ROW_TEXT("text", text, "COLUMN",
              "the corpus is a table of any format with columns: its documents are the texts of "
              "this column")},
    {ROW_COUNT("train-bpe", train, 257, 16777216,
               "learn a byte-level BPE with N tokens and write it with -o, as a tokenizer.json")},
    {ROW_OUTPUT(out, "FILE",
                "file to write; required. An array of numbers of 16 or 32 bits if the name ends in "
                ".npy, plain numbers of 16 bits if it ends in .bin")},
    {ROW_TEXT("save-tokenizer", save, "FILE",
              "also write the tokenizer, for bpe:FILE or programs")},
    {ROW_FLAG("decode", decode, "the other way: from a file of tokens to their text")},
    {ROW_COUNT("threads", threads, 1, 4096, "CPU threads; they do not change the result"),
     .fallback = "every core"},
    {ROW_QUIET(quiet)},
    {ROW_JSON(json, "print one JSON object instead")},
    {.name = NULL}};

/* Whether it is made of a corpus, as words or bpe:8000, not of a file. */
static int is_learned(const char *tokens) {
    const char *after = strchr(tokens, ':');
    return after ? after[1] && after[1 + strspn(after + 1, "0123456789")] == '\0'
                 : strcmp(tokens, "bytes") != 0;
}

/* Whether a name ends as files of tokens do. It is looked at before anything is learned. */
static int is_for_tokens(const char *name) {
    const size_t size = strlen(name);
    return size > 4 &&
           (strcmp(name + size - 4, ".npy") == 0 || strcmp(name + size - 4, ".bin") == 0);
}

static int check_flags(const tokenize_flags *f, const arguments *given) {
    if (!f->out)
        return message_usage(f->train ? "add -o tokenizer.json" : "add -o tokens.npy",
                             "-o FILE is required");
    if (!f->tokens == !f->train)
        return message_usage("give --tokens chars, or --train-bpe 8000",
                             f->tokens ? "--tokens and --train-bpe are two different tasks"
                                       : "--tokens WHICH is required");
    if (f->train && is_for_tokens(f->out))
        return message_usage("add -o tokenizer.json; encode with --tokens bpe:tokenizer.json",
                             "--train-bpe writes a tokenizer, not the tokens that \"%s\" is for",
                             f->out);
    if (!f->train && !f->decode && !is_for_tokens(f->out) && strcmp(f->out, "-") != 0)
        return message_usage(
            "end it in .npy, or in .bin for plain numbers",
            "the name \"%s\" of the file of tokens ends neither in .npy nor in .bin", f->out);
    if (f->train && (f->decode || f->save))
        return message_usage("leave it out", "%s does nothing with --train-bpe",
                             f->decode ? "--decode" : "--save-tokenizer");
    if (f->decode && f->text)
        return message_usage("leave it out", "--text does nothing with --decode");
    if (f->decode && given->operands > 1)
        return message_usage("decode one file at a time", "--decode takes one file of tokens");
    if (f->decode && is_learned(f->tokens))
        return message_usage("save the tokenizer with --save-tokenizer, and read it with file:FILE",
                             "\"%s\" is learned from a corpus, which --decode does not have",
                             f->tokens);
    if (f->json && f->quiet)
        return message_usage("leave one of them out", "--quiet does nothing with --json");
    paths files = {.count = 0};
    for (int k = 0; k < given->operands; k++)
        paths_add(&files, QN_FILE_READ, "CORPUS", given->operand[k]);
    paths_add(&files, QN_FILE_WRITE, "-o", f->out);
    paths_add(&files, QN_FILE_WRITE, "--save-tokenizer", f->save);
    return paths_check(&files, 1);
}

/* A line about what was done, or an object. `what`: "tokens" or "bytes". */
static void tell(const tokenize_flags *f, const qn_tokenizer *t, const char *what, uint64_t count) {
    char number[32], size[32];
    if (f->json)
        printf("{\"%s\": %llu, \"vocabulary\": %lu, \"tokenizer\": \"%s\", \"digest\": \"%s\"}\n",
               what, (unsigned long long)count, (unsigned long)qn_tokenizer_size(t),
               qn_tokenizer_kind(t), qn_tokenizer_digest(t));
    else if (!f->quiet && f->train)
        printf("%s tokens in %s, digest %s\n", format_count(qn_tokenizer_size(t), size), f->out,
               qn_tokenizer_digest(t));
    else if (!f->quiet)
        printf("%s %s in %s, of a vocabulary of %s\n", format_count(count, number), what, f->out,
               format_count(qn_tokenizer_size(t), size));
}

static qn_status open_tokenizer(const tokenize_flags *f, const qn_corpus *corpus, qn_tokenizer **t,
                                qn_error *err) {
    char which[32];
    snprintf(which, sizeof which, "bpe:%llu", (unsigned long long)f->train);
    return qn_tokenizer_from_corpus(f->train ? which : f->tokens, corpus, (uint32_t)f->threads, t,
                                    err);
}

static qn_status decode(const tokenize_flags *f, const char *tokens, qn_error *err) {
    qn_tokenizer *t = NULL;
    uint64_t bytes = 0;
    qn_status status = qn_tokenizer_open(f->tokens, NULL, 0, (uint32_t)f->threads, &t, err);
    if (status == QN_OK && f->save)
        status = qn_tokenizer_save(t, f->save, err);
    if (status == QN_OK)
        status = qn_tokenizer_write_text(t, tokens, f->out, &bytes, err);
    if (status == QN_OK)
        tell(f, t, "bytes", bytes);
    qn_tokenizer_free(t);
    return status;
}

static qn_status encode(const tokenize_flags *f, const qn_corpus *corpus, qn_error *err) {
    qn_tokenizer *t = NULL;
    uint64_t count = 0;
    qn_status status = open_tokenizer(f, corpus, &t, err);
    if (status == QN_OK && f->save)
        status = qn_tokenizer_save(t, f->save, err);
    if (status == QN_OK && f->train)
        status = qn_tokenizer_save(t, f->out, err);
    else if (status == QN_OK)
        status = qn_tokenizer_write_corpus(t, corpus, (uint32_t)f->threads, f->out, &count, err);
    if (status == QN_OK)
        tell(f, t, "tokens", f->train ? qn_tokenizer_size(t) : count);
    if (status == QN_OK && f->train && qn_tokenizer_size(t) < f->train)
        message_note("note: the corpus has no more pairs that occur twice, so there are %lu tokens",
                     (unsigned long)qn_tokenizer_size(t));
    qn_tokenizer_free(t);
    return status;
}

static qn_status work(const tokenize_flags *f, const arguments *given, qn_error *err) {
    qn_corpus *corpus = NULL;
    if (f->decode)
        return decode(f, given->operand[0], err);
    qn_status status = qn_corpus_open(given->operand, (size_t)given->operands, f->text,
                                      (uint32_t)f->threads, &corpus, err);
    if (status == QN_OK)
        status = encode(f, corpus, err);
    qn_corpus_close(corpus);
    return status;
}

static int run(const command *self, int argc, char **argv) {
    tokenize_flags f = {0};
    arguments given = {0};
    qn_error err = {0};
    int code = options_read(self, argc - 3, argv + 3, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, f.quiet, f.json);
    code = check_flags(&f, &given);
    if (code >= 0)
        return code;
    return work(&f, &given, &err) == QN_OK ? EXIT_DONE : message_error(&err);
}

const command data_tokenize_command = {
    .name = "data tokenize",
    .summary = "turn texts into numbers of tokens, or learn a tokenizer",
    .usage = "quern data tokenize CORPUS... --tokens WHICH -o FILE\n"
             "       quern data tokenize CORPUS... --train-bpe N -o tokenizer.json\n"
             "       quern data tokenize TOKENS --decode --tokens WHICH -o FILE",
    .about = "Encodes text files, which may be compressed (- is the standard input), or all files "
             "of folders, each by itself, and writes the numbers one after the other: 16 bits each "
             "where the vocabulary has at most 65535 tokens, else 32. With --text the texts of a "
             "column are the documents. Between two files or documents stands the token of a BPE "
             "for the end of a text, if it has one. docs/tokens.md describes the tokenizers.",
    .operand = "CORPUS",
    .most_operands = MOST_FILES,
    .options = tokenize_options,
    .examples = "quern data tokenize shakespeare.txt --tokens chars -o tokens.npy\n"
                "quern data tokenize a.txt b.txt.gz --train-bpe 8000 -o tokenizer.json\n"
                "quern data tokenize a.txt --tokens bpe:tokenizer.json -o train.bin\n"
                "quern data tokenize corpus.parquet --text body --tokens bytes -o train.bin\n"
                "quern data tokenize train.bin --decode --tokens bpe:tokenizer.json -o a.txt",
    .run = run};
