/* Models with low-rank adapters from another file. */
#ifndef APP_ADAPTER_H
#define APP_ADAPTER_H

#include <quern/model.h>

/* Options of commands that apply a model. */
#define ROW_ADAPTER(member)                                                                        \
    ROW_TEXT("adapter", member, "FILE",                                                            \
             "low-rank adapters: of \"train --lora\", or a folder of the package peft")

/* Reads a model for all ranks, and the adapters for it where `adapter` is not NULL. Those of a
 * folder are merged into it. Fails as qn_model_adapt and qn_model_import_peft; also with
 * QN_MISMATCH where that file has none. */
qn_status adapter_open(const char *model, const char *adapter, qn_model **out, qn_error *err);

#endif
