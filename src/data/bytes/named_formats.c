#include "data/bytes/named_formats.h"
#include "base/files/scheme.h"
#include "base/text/text.h"
#include "image/image_head.h"
#include "image/image_other.h"
#include <string.h>

#define PANDAS(function) "convert it: pandas." function "(FILE).to_csv(NAME, index=False)"
#define AGAIN "unpack it once more by hand"
#define IMAGE "convert it to PNG or JPEG; WebP, GIF, TIFF and BMP are read, too"
#define OTHER "convert it to CSV in UTF-8, to Parquet or to NPY"
#define MODEL "this is a model; `model import` reads safetensors with a state dict"
#define PICKLE "write it again as CSV, Parquet or NPZ; Python code in a file is never run"
#define PAGE                                                                                       \
    "download the file itself, not the page about it; tables in a page: pandas.read_html(FILE)"

/* `size` 0: that of the text. */
static const struct {
    const char *magic;
    size_t at, size;
    const char *what, *remedy;
} formats[] = {
    {"\xFF\xFE", 0, 0, "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8 FILE"},
    {"\xFE\xFF", 0, 0, "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8 FILE"},
    {"\x1F\x8B", 0, 0, "gzip data inside compressed data", AGAIN},
    {"\x28\xB5\x2F\xFD", 0, 0, "zstd data inside compressed data", AGAIN},
    {"BZh", 0, 0, "bzip2 data inside compressed data", AGAIN},
    {"\xFD"
     "7zXZ",
     0, 0, "xz data inside compressed data", AGAIN},
    {"PK\3\4", 0, 0, "a ZIP archive inside compressed data", AGAIN},
    {"7z\xBC\xAF\x27\x1C", 0, 0, "a 7z archive", "unpack it: 7z x FILE"},
    {"Rar!\x1A\x07", 0, 0, "a RAR archive", "unpack it: unrar x FILE"},
    {"\x04\x22\x4D\x18", 0, 0, "LZ4 data", "unpack it: lz4 -d FILE"},
    {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", 0, 0,
     "an old Excel workbook (.xls) or another OLE document",
     "save the sheet as CSV in UTF-8, or: pandas.read_excel(FILE).to_csv(NAME, index=False)"},
    {"ORC", 0, 0, "an ORC file", PANDAS("read_orc")},
    {"Obj\x01", 0, 0, "an Avro file",
     "convert it: polars.read_avro(FILE).write_parquet(NAME), or in Spark"},
    {"FEA1", 0, 0, "a Feather file of version 1",
     "convert it: pandas.read_feather(FILE).to_parquet(NAME)"},
    {"\x89HDF", 0, 0, "an HDF5 file (or .mat of MATLAB 7.3, or .h5 of Keras)",
     "convert it: pandas.read_hdf(FILE).to_csv(NAME, index=False), or the arrays of h5py with "
     "numpy.savez"},
    {"MATLAB 5.0 MAT-file", 0, 0, "a MATLAB file (.mat)",
     "write its arrays with numpy.savez: scipy.io.loadmat(FILE)"},
    {"CDF\x01", 0, 0, "a netCDF file", "convert it: xarray.open_dataset(FILE).to_dataframe()"},
    {"CDF\x02", 0, 0, "a netCDF file", "convert it: xarray.open_dataset(FILE).to_dataframe()"},
    {"RDX2\n", 0, 0, "an R file (.RData)", "in R: write.csv(table, NAME, row.names = FALSE)"},
    {"RDX3\n", 0, 0, "an R file (.RData)", "in R: write.csv(table, NAME, row.names = FALSE)"},
    {"X\n\0\0\0", 0, 5, "an R file (.rds)",
     "in R: write.csv(readRDS(FILE), NAME, row.names = FALSE)"},
    {"\xC2\xEA\x81\x60\xB3\x14\x11\xCF\xBD\x92\x08", 12, 0, "a SAS file (.sas7bdat)",
     PANDAS("read_sas")},
    {"HEADER RECORD*******LIB", 0, 0, "a SAS transport file (.xpt)", PANDAS("read_sas")},
    {"<stata_dta>", 0, 0, "a Stata file (.dta)", PANDAS("read_stata")},
    {"$FL2", 0, 0, "an SPSS file (.sav)", PANDAS("read_spss")},
    {"$FL3", 0, 0, "an SPSS file (.zsav)", PANDAS("read_spss")},
    {"%PDF-", 0, 0, "a PDF document",
     "copy its table into a CSV file; programs such as tabula or pdfplumber find tables"},
    {"GGUF", 0, 0, "a GGUF model", MODEL},
    {"\x80\x02", 0, 0, "a pickle of Python", PICKLE},
    {"\x80\x03", 0, 0, "a pickle of Python", PICKLE},
    {"\x80\x04", 0, 0, "a pickle of Python", PICKLE},
    {"\x80\x05", 0, 0, "a pickle of Python", PICKLE},
    {"version https://git-lfs.", 0, 0, "the pointer of a file that Git LFS did not fetch",
     "fetch it: git lfs pull"},
    {"{\\rtf", 0, 0, "an RTF document", OTHER},
};

/* Texts that begin so, whatever their case, after white space. */
static const struct {
    const char *begin, *what, *remedy;
} texts[] = {
    {"<!doctype html", "an HTML page", PAGE},
    {"<html", "an HTML page", PAGE},
    {"<head", "an HTML page", PAGE},
    {"<?xml", "an XML document", PANDAS("read_xml")},
    {"@relation", "an ARFF file (Weka)",
     "write scipy.io.arff.loadarff(FILE)[0] as CSV: pandas.DataFrame(...).to_csv(NAME, "
     "index=False)"},
};

/* What a binary file is called that is an image of a format that is not read, or NULL. */
static const char *image_name(const char *first, size_t size) {
    qn__image_head head;
    (void)qn__image_head_read((const uint8_t *)first, size, &head, NULL);
    return head.kind == QN__IMAGE_OTHER ? qn__image_other_name(head.other, 0) : NULL;
}

/* PNM: "P1" to "P7", perhaps comments, then width and height on a line. A column of a table with
 * this name has a number on each line. */
static int is_pnm(const char *b, size_t size) {
    const char *end = b + size;
    if (size < 3 || b[0] != 'P' || b[1] < '1' || b[1] > '7' || (b[2] != '\n' && b[2] != ' '))
        return 0;
    for (b += 3; b < end && *b == '#'; ++b) {
        const char *line = memchr(b, '\n', (size_t)(end - b));
        b = line ? line : end - 1;
    }
    int numbers = 0;
    while (b < end && *b >= '0' && *b <= '9') {
        while (b < end && *b >= '0' && *b <= '9')
            ++b;
        ++numbers;
        while (b < end && *b == ' ')
            ++b;
    }
    return numbers >= 2 || (end - b >= 6 && memcmp(b, "WIDTH ", 6) == 0);
}

/* An image that is text, or begins so. */
static int is_text_image(const char *first, size_t size, const char *name) {
    return name && (is_pnm(first, size) || strstr(name, "SVG"));
}

/* Stata before version 13: its version, the order of bytes, and 1. */
static int is_old_stata(const char *first, size_t size) {
    return size >= 4 && (first[0] == 0x71 || first[0] == 0x72 || first[0] == 0x73) &&
           (first[1] == 1 || first[1] == 2) && first[2] == 1 && first[3] == 0;
}

/* A word such as ORC may also begin the header of a CSV file, which holds no zero byte. */
static int may_be_text(const char *magic, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (magic[i] < ' ' || magic[i] > '~')
            return 0;
    return size < 5;
}

static qn_status refuse(const char *path, const char *what, const char *remedy, qn_error *err) {
    qn__fail(err, QN_INPUT, "Quern does not read such files: this is %s", what);
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

static qn_status check_texts(const char *first, size_t size, const char *path, qn_error *err) {
    const char *image = image_name(first, size);
    if (is_text_image(first, size, image))
        return refuse(path, image, IMAGE, err);
    if (size >= 3 && memcmp(first, "\xEF\xBB\xBF", 3) == 0) {
        first += 3;
        size -= 3;
    }
    for (; size > 0 && (*first == ' ' || *first == '\t' || *first == '\n' || *first == '\r');
         size--)
        first++;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const size_t length = strlen(texts[i].begin);
        if (size >= length && qn__same_word(texts[i].begin, first, length))
            return refuse(path, texts[i].what, texts[i].remedy, err);
    }
    return QN_OK;
}

qn_status qn__named_format_check(const char *first, size_t size, const char *path, qn_error *err) {
    const int binary = memchr(first, '\0', size < 1024 ? size : 1024) != NULL;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const size_t length = formats[i].size ? formats[i].size : strlen(formats[i].magic),
                     at = formats[i].at;
        if (size >= at + length && memcmp(first + at, formats[i].magic, length) == 0 &&
            (binary || !may_be_text(formats[i].magic, length)))
            return refuse(path, formats[i].what, formats[i].remedy, err);
    }
    if (is_old_stata(first, size))
        return refuse(path, "a Stata file (.dta)", PANDAS("read_stata"), err);
    const char *image = binary ? image_name(first, size) : NULL;
    if (binary)
        return refuse(path, image ? image : "not text", image ? IMAGE : OTHER, err);
    return check_texts(first, size, path, err);
}

qn_status qn__named_address_check(const char *path, qn_error *err) {
    static const struct {
        const char *begin, *what, *remedy;
    } schemes[] = {
        {"az://", "an address in Azure Storage", "copy the file: az storage blob download"},
        {"abfs://", "an address in Azure Storage", "copy the file: az storage blob download"},
        {"abfss://", "an address in Azure Storage", "copy the file: az storage blob download"},
        {"hf://", "an address of the Hugging Face hub", "copy the file: hf download"},
        {"ftp://", "an address of the network", "download the file: curl -O ADDRESS"},
        {"file://", "an address of a file", "give its path: leave out file://"},
    };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncmp(path, schemes[i].begin, strlen(schemes[i].begin)) == 0) {
            qn__fail(err, QN_INPUT, "this is %s, which Quern does not read", schemes[i].what);
            qn__at(err, "%s", path);
            return qn__remedy(err, QN_INPUT, "%s", schemes[i].remedy);
        }
    const size_t word = qn__scheme_length(path);
    if (word == 0 || strncmp(path + word, "://", 3) != 0)
        return QN_OK;
    qn__fail(err, QN_INPUT, "this is an address of a kind that Quern does not read");
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT,
                      "give a path, or an address that begins with s3://, s3a://, gs://, hdfs://, "
                      "webhdfs://, swebhdfs://, https:// or http://, in small letters");
}
