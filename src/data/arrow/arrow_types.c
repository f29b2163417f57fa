#include "data/arrow/arrow_types.h"
#include <stdio.h>
#include <string.h>

/* A format that begins so, or the name of an extension type. %s of the remedy is the name of the
 * column. The first that fits counts. */
typedef struct named {
    const char *begin, *what, *remedy;
} named;

static const char leave_out[] = "leave the column out with `data.drop`",
                  convert[] = "convert it to numbers or texts, or leave it out with `data.drop`",
                  lists[] = "make a column of each place of the lists (pandas: "
                            "t.join(pd.DataFrame(t.pop(\"%s\").tolist(), t.index).add_prefix(\"p\")"
                            ")), or leave the column out with `data.drop`",
                  records[] = "make a column of each field (pyarrow: table = table.flatten(); "
                              "polars: t.unnest(\"%s\")), or leave the column out with `data.drop`",
                  maps[] = "make a column of each key (pandas: t.join(pd.json_normalize("
                           "t.pop(\"%s\").map(dict)))), or leave the column out with `data.drop`";

static const named formats[] = {
    {"+l", "lists", lists},
    {"+L", "lists", lists},
    {"+vl", "lists", lists},
    {"+vL", "lists", lists},
    {"+w", "lists of one length", lists},
    {"+s", "records with fields of their own (structs)", records},
    {"+m", "maps from keys to values", maps},
    {"+u", "values of several types (a union)", convert},
    {"+r", "runs of equal values (run-end encoded)",
     "decode it (pyarrow: pyarrow.compute.run_end_decode(column)), or leave it out with "
     "`data.drop`"},
    {"tdm", "dates in milliseconds", convert},
    {"td", "dates", convert},
    {"tt", "times of day", convert},
    {"ts", "timestamps", convert},
    {"tD", "spans of time (durations)", convert},
    {"ti", "intervals of months, days or parts of them", convert},
    {"t", "dates or times", convert},
    {"d", "decimals of a width or scale that is not read", convert},
    {"w", "bytes of a fixed length", convert},
};

static const named extensions[] = {
    {"arrow.uuid", "UUIDs", leave_out},
    {"arrow.bool8", "truth values of 8 bits", convert},
    {"arrow.json", "JSON documents",
     "make columns of their fields (pandas: t.join(pd.json_normalize(t.pop(\"%s\").map(json.loads)"
     "))), or leave the column out with `data.drop`"},
    {"parquet.bson", "BSON documents", leave_out},
    {"parquet.interval", "intervals of months, days and milliseconds (INTERVAL)", leave_out},
    {"parquet.variant", "values of any type (VARIANT)", leave_out},
    {"arrow.parquet.variant", "values of any type (VARIANT)", leave_out},
    {"geoarrow.", "geometries",
     "make columns of numbers of them (geopandas: t[\"x\"] = t[\"%s\"].x), or leave the column out "
     "with `data.drop`"},
};

static const named *find(const named *list, size_t count, const char *text) {
    for (size_t i = 0; i < count; i++)
        if (strncmp(list[i].begin, text, strlen(list[i].begin)) == 0)
            return &list[i];
    return NULL;
}

/* A count of pairs, and each as two texts with their lengths (the Arrow C interface). The producer
 * is trusted with the lengths, as with those of buffers. */
static int32_t next_number(const char **at) {
    int32_t number;
    memcpy(&number, *at, sizeof number);
    *at += sizeof number;
    return number;
}

static const char *next_text(const char **at, int32_t *size) {
    *size = next_number(at);
    *size = *size < 0 ? 0 : *size;
    *at += *size;
    return *at - *size;
}

int qn__arrow_extension(const struct ArrowSchema *type, char name[QN__EXTENSION_CAPACITY]) {
    static const char key_of_name[] = "ARROW:extension:name";
    const char *at = type->metadata;
    int32_t count = at ? next_number(&at) : 0;
    for (; count > 0; count--) {
        int32_t key_size, size;
        const char *key = next_text(&at, &key_size), *text = next_text(&at, &size);
        if (key_size != sizeof key_of_name - 1 || memcmp(key, key_of_name, (size_t)key_size) != 0)
            continue;
        snprintf(name, QN__EXTENSION_CAPACITY, "%.*s", (int)size, text);
        return 1;
    }
    return 0;
}

qn_status qn__arrow_refuse_type(const qn__arrow_table *table, uint64_t column, qn_error *err) {
    const struct ArrowSchema *type = table->schema.children[column];
    const struct ArrowSchema *values = type->dictionary ? type->dictionary : type;
    const char *name = type->name ? type->name : "", *format = values->format;
    const char *inside = type->dictionary ? " in a dictionary" : "";
    char extension[QN__EXTENSION_CAPACITY], remedy[400], shown[41];
    const int extended = qn__arrow_extension(type, extension);
    const named *told =
        extended ? find(extensions, sizeof extensions / sizeof *extensions, extension) : NULL;
    if (!told)
        told = find(formats, sizeof formats / sizeof *formats, format);
    if (extended)
        qn__fail(err, QN_INPUT, "the column holds %s (type \"%s\"%s)",
                 told ? told->what : "values of an extension type", extension, inside);
    else
        qn__fail(err, QN_INPUT, "the column holds %s (format \"%.20s\"%s)",
                 told ? told->what : "a type that is unknown", format, inside);
    snprintf(shown, sizeof shown, "%.40s", name);
    snprintf(remedy, sizeof remedy, told ? told->remedy : convert, shown);
    return qn__arrow_refuse(table, column, QN__ARROW_NO_ITEM, remedy, err);
}
