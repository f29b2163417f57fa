/* The columns of a Parquet file, from its footer alone. */
#include "base/memory.h"
#include "data/columnar/parquet.h"
#include <string.h>

/* Formats of the Arrow C interface by how they begin. */
static const struct {
    const char *begin, *type;
} types[] = {{"b", "bool"},       {"c", "int8"},   {"C", "uint8"},     {"s", "int16"},
             {"S", "uint16"},     {"i", "int32"},  {"I", "uint32"},    {"l", "int64"},
             {"L", "uint64"},     {"e", "half"},   {"f", "float"},     {"g", "double"},
             {"u", "text"},       {"U", "text"},   {"vu", "text"},     {"z", "bytes"},
             {"Z", "bytes"},      {"vz", "bytes"}, {"w", "bytes"},     {"td", "date"},
             {"ts", "timestamp"}, {"tt", "time"},  {"tD", "duration"}, {"d:", "decimal"},
             {"+s", "struct"},    {"+m", "map"},   {"+", "list"}};

static const char *type_of(const qn__parquet_column *c) {
    if (c->words)
        return "list";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (c->format && strncmp(c->format, types[i].begin, strlen(types[i].begin)) == 0)
            return types[i].type;
    return "other";
}

static qn_status copy(const qn__parquet_footer *footer, qn__described *out, qn_error *err) {
    out->column = qn__alloc(footer->columns, sizeof *out->column, err);
    if (!out->column)
        return QN_MEMORY;
    for (size_t g = 0; g < footer->groups; g++)
        out->items += (uint64_t)footer->rows[g];
    for (; out->columns < footer->columns; out->columns++) {
        const qn__parquet_column *from = &footer->column[out->columns];
        char *name = qn__copy_text(from->name, err);
        if (!name)
            return QN_MEMORY;
        out->column[out->columns] = (qn__described_column){name, type_of(from), from->optional};
    }
    return QN_OK;
}

qn_status qn__parquet_describe(int file, uint64_t size, const char *path, qn__described *out,
                               qn_error *err) {
    qn__pile pile = {0};
    qn__parquet_footer footer = {0};
    *out = (qn__described){0};
    qn_status status = qn__parquet_find_footer(file, size, path, &pile, &footer, err);
    if (status == QN_OK)
        status = copy(&footer, out, err);
    qn__pile_release(&pile);
    if (status != QN_OK)
        qn__described_release(out);
    return status;
}
