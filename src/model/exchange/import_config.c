#include "model/exchange/import_config.h"

#include "base/argument.h"
#include "base/files/file.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "base/text/text.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct config_reader {
    const qn__json_node *root, *inner; /* inner: what is said about the images */
    qn_import_config *out;
    qn_error *err;
} config_reader;

/* An image that a network takes. */
typedef struct side_list {
    uint32_t side[3]; /* channels, height, width */
} side_list;

static qn_status refuse(const config_reader *r, const char *key, const char *what) {
    qn__fail(r->err, QN_INPUT, "\"%s\" %s", key, what);
    return qn__remedy(
        r->err, QN_INPUT,
        "give timm's config.json of this network, or none: the shape, the scaling and "
        "the resizing of images can be given by themselves");
}

/* NULL where the file does not say it. */
static const qn__json_node *said(const qn__json_node *object, const char *key) {
    const qn__json_node *node = qn__json_get(object, key);
    return qn__json_is_null(node) ? NULL : node;
}

static qn_status read_sides(const config_reader *r, const char *key, side_list *out) {
    const qn__json_node *node = said(r->inner, key);
    *out = (side_list){.side = {0}};
    if (!node)
        return QN_OK;
    for (size_t i = 0; i < 3; ++i) {
        uint64_t side = 0;
        if (qn__json_count(node) != 3 || !qn__json_u64(qn__json_at(node, i), &side) || side == 0 ||
            side > QN__RESIZE_MAX)
            return refuse(r, key, "is not a list of channels, height and width");
        out->side[i] = (uint32_t)side;
    }
    return QN_OK;
}

static void shape_text(const side_list *from, char text[32]) {
    if (from->side[0])
        snprintf(text, 32, "%ux%ux%u", from->side[0], from->side[1], from->side[2]);
}

static qn_status read_numbers(const config_reader *r, const char *key, uint32_t channels,
                              float *out) {
    const qn__json_node *node = said(r->inner, key);
    if (!qn__json_is_array(node) || qn__json_count(node) != channels)
        return refuse(r, key, "is not a list of one number for each channel");
    for (uint32_t c = 0; c < channels; ++c)
        if (!qn__json_float(qn__json_at(node, c), &out[c]))
            return refuse(r, key, "has an element that is not a number");
    return QN_OK;
}

static qn_status read_scale(const config_reader *r, uint32_t channels) {
    qn__scale_numbers numbers = {.channels = channels};
    if (!said(r->inner, "mean") && !said(r->inner, "std"))
        return QN_OK;
    if (channels > QN__SCALE_CHANNELS)
        return refuse(r, "input_size", "has more than 16 channels");
    qn_status status = read_numbers(r, "mean", channels, numbers.mean);
    if (status == QN_OK)
        status = read_numbers(r, "std", channels, numbers.deviation);
    if (status == QN_OK)
        qn__scale_numbers_text(&numbers, r->out->scale);
    return status;
}

/* The share of an image that the crop keeps. */
static qn_status read_share(const config_reader *r, const char *key, double *out) {
    const qn__json_node *node = said(r->inner, key);
    if (!node || (qn__json_real(node, out) && *out > 0 && *out <= 1))
        return QN_OK;
    return refuse(r, key, "is not a number above 0 and at most 1");
}

static qn_status read_filter(const config_reader *r, const char **out) {
    static const char *const filters[] = {"bilinear", "bicubic"};
    const qn__json_node *node = said(r->inner, "interpolation");
    const char *word = node ? qn__json_string(node) : "bicubic";
    for (size_t i = 0; word && i < sizeof filters / sizeof *filters; ++i)
        if (strcmp(word, filters[i]) == 0) {
            *out = filters[i];
            return QN_OK;
        }
    return refuse(r, "interpolation", "is neither bilinear nor bicubic");
}

/* As timm's create_transform makes it of these numbers. */
static qn_status find_resize(const config_reader *r, const side_list *size, double share) {
    const qn__json_node *mode = said(r->inner, "crop_mode");
    const char *word = mode ? qn__json_string(mode) : "center";
    const uint32_t height = size->side[1], width = size->side[2];
    const double shorter = floor(height / share);
    const char *filter = NULL;
    const qn_status status = read_filter(r, &filter);
    if (status != QN_OK)
        return status;
    const int squash = word && strcmp(word, "squash") == 0 && share == 1;
    if (!squash && (!word || strcmp(word, "center") != 0))
        return refuse(r, "crop_mode", "is not center, or squash of whole images");
    if (!squash && height != width)
        return refuse(r, "input_size",
                      "has sides that differ, and the shorter side of an image "
                      "cannot be made both");
    if (shorter > QN__RESIZE_MAX)
        return refuse(r, "crop_pct", "makes images of more than 4,096 pixels a side");
    if (squash)
        snprintf(r->out->resize, sizeof r->out->resize, "%ux%u %s", height, width, filter);
    else
        snprintf(r->out->resize, sizeof r->out->resize, "short %u crop %ux%u %s", (unsigned)shorter,
                 height, width, filter);
    return QN_OK;
}

/* Sides of another input have the same numbers of channels; 0: they are not a shape of an image. */
static int read_shape(const char *shape, side_list *out) {
    char end;
    return sscanf(shape, "%4ux%4ux%4u%c", &out->side[0], &out->side[1], &out->side[2], &end) == 3 &&
           out->side[0] && out->side[1] && out->side[2];
}

static qn_status read_images(const config_reader *r, const char *shape) {
    side_list size, tested, own;
    double share = 0.875, test_share;
    qn_status status = read_sides(r, "input_size", &size);
    if (status == QN_OK)
        status = read_sides(r, "test_input_size", &tested);
    if (status == QN_OK)
        status = read_share(r, "crop_pct", &share);
    test_share = share;
    if (status == QN_OK)
        status = read_share(r, "test_crop_pct", &test_share);
    if (status == QN_OK && !size.side[0])
        status = refuse(r, "input_size", "is not in the file");
    if (status == QN_OK)
        status = read_scale(r, size.side[0]);
    if (status != QN_OK)
        return status;
    shape_text(&size, r->out->shape);
    shape_text(&tested, r->out->tested);
    if (!shape || !read_shape(shape, &own))
        own = size;
    const int as_tested = memcmp(&own, &tested, sizeof own) == 0;
    return find_resize(r, &own, as_tested ? test_share : share);
}

static const qn__json_node *either(const config_reader *r, const char *key) {
    const qn__json_node *outer = said(r->root, key);
    return outer ? outer : said(r->inner, key);
}

static qn_status read_classes(const config_reader *r) {
    const qn__json_node *count = either(r, "num_classes"), *names = either(r, "label_names");
    uint64_t classes = 0;
    names = names ? names : said(r->root, "id2label");
    if (count && (!qn__json_u64(count, &classes) || classes > UINT32_MAX))
        return refuse(r, "num_classes", "is not a number of classes");
    r->out->classes = (uint32_t)classes;
    if (!names)
        return QN_OK;
    return qn__class_labels_of_json(names, either(r, "label_descriptions"), &r->out->labels,
                                    r->err);
}

qn_status qn__import_config_parse(const char *text, size_t size, const char *shape,
                                  qn_import_config *out, qn_error *err) {
    qn__json *json = NULL;
    config_reader r = {.out = out, .err = err};
    qn_status status = qn__json_parse(text, size, &json, err);
    if (status != QN_OK)
        return status == QN_FORMAT ? qn__remedy(err, status, "give the file as timm wrote it")
                                   : status;
    r.root = qn__json_root(json);
    r.inner = said(r.root, "pretrained_cfg");
    r.inner = r.inner ? r.inner : r.root;
    status = read_images(&r, shape);
    if (status == QN_OK)
        status = read_classes(&r);
    qn__json_free(json);
    return status;
}

/* Whether a file is JSON by its name. */
static int is_json(const char *path) {
    const size_t size = strlen(path);
    return size >= 5 && qn__same_word(".json", path + size - 5, 5);
}

static qn_status read_labels(const char *path, const char *text, size_t size, qn_import_config *out,
                             qn_error *err) {
    qn__json *json = NULL;
    if (!is_json(path))
        return qn__class_labels_of_lines(text, size, &out->labels, err);
    qn_status status = qn__json_parse(text, size, &json, err);
    if (status == QN_FORMAT)
        return qn__remedy(err, status, "write the file again, or name a text with one name a line");
    const qn__json_node *root = qn__json_root(json), *names = said(root, "id2label");
    if (status == QN_OK)
        status = qn__class_labels_of_json(names ? names : root, NULL, &out->labels, err);
    qn__json_free(json);
    return status;
}

/* Reads a config, or names of classes. */
static qn_status open_file(const char *path, int config, const char *shape, qn_import_config **out,
                           qn_error *err) {
    qn__bytes file;
    qn_status status = qn__file_read(path, &file, err);
    qn_import_config *own = status == QN_OK ? qn__alloc(1, sizeof *own, err) : NULL;
    if (status != QN_OK)
        return status;
    if (!own)
        status = QN_MEMORY;
    else if (config)
        status = qn__import_config_parse((const char *)file.data, file.size, shape, own, err);
    else
        status = read_labels(path, (const char *)file.data, file.size, own, err);
    qn__bytes_release(&file);
    if (status != QN_OK) {
        qn__at(err, "%.300s", path);
        qn_import_config_free(own);
        return status;
    }
    own->classes = own->labels.count ? own->labels.count : own->classes;
    *out = own;
    return QN_OK;
}

qn_status qn_import_config_open(const char *path, const char *shape, qn_import_config **out,
                                qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(path, err);
    return open_file(path, 1, shape, out, err);
}

qn_status qn_import_labels_open(const char *path, qn_import_config **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(path, err);
    return open_file(path, 0, NULL, out, err);
}

qn_status qn_import_config_get(const qn_import_config *config, qn_import_about *out,
                               qn_error *err) {
    QN__NEED(config, err);
    QN__NEED(out, err);
    const qn_status status = qn__sized_check(QN__SIZED("out", qn_import_about), out, err);
    if (status != QN_OK)
        return status;
    const qn_import_about own = {
        .size = sizeof own,
        .shape = *config->shape ? config->shape : NULL,
        .test_shape = *config->tested ? config->tested : NULL,
        .scale = *config->scale ? config->scale : NULL,
        .resize = *config->resize ? config->resize : NULL,
        .classes = config->classes,
        .class_name = (const char *const *)config->labels.name,
    };
    qn__sized_give(QN__SIZED("out", qn_import_about), &own, out, out->size);
    return QN_OK;
}

void qn_import_config_free(qn_import_config *config) {
    if (!config)
        return;
    qn__class_labels_release(&config->labels);
    qn__free(config);
}
