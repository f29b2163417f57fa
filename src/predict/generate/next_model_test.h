/* Models of next tokens for tests. */
#ifndef QN_PREDICT_GENERATE_NEXT_MODEL_TEST_H
#define QN_PREDICT_GENERATE_NEXT_MODEL_TEST_H

#include <quern/quern.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A model whose weights are their initial ones but for one step. */
static inline qn_model *train(const char *network, uint32_t context, const char *arith,
                              const char *attention) {
    char path[] = "/tmp/next-model-test-XXXXXX";
    qn_train_options o;
    qn_data_options from;
    qn_train *t = NULL;
    qn_data *data = NULL;
    qn_model *made = NULL;
    const int file = mkstemp(path);
    FILE *to = file >= 0 ? fdopen(file, "w") : NULL;
    for (int i = 0; to && i < 400; ++i)
        fputc('a' + i * i % 23, to);
    if (to)
        fclose(to);
    qn_train_options_init(&o);
    qn_data_options_init(&from);
    from.tokens = "bytes";
    from.context = context;
    from.task = "next";
    o.model = network;
    o.arith = arith;
    o.attention_arith = attention;
    o.epochs = 1;
    o.batch = 8;
    qn_error err;
    if (qn_data_open(path, &from, &data, &err) != QN_OK ||
        qn_train_open(&o, data, NULL, NULL, &t, &err) != QN_OK || qn_train_run(t, &err) != QN_OK ||
        qn_train_model(t, &made, &err) != QN_OK)
        print_error("%s\n", err.what);
    qn_train_close(t);
    qn_data_close(data);
    unlink(path);
    return made;
}

#endif
