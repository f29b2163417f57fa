#include "model/exchange/architectures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A pattern is a list of names with blanks between them. "x.(a b)" means "x.a x.b", and
 * "x.{0-2}.a" means "x.0.a x.1.a x.2.a". The order is that of the layers in the model text: the
 * path of a block before its shortcut. */
#define TWO "(conv1 bn1 conv2 bn2)"
#define TWO_FIRST "0.(conv1 bn1 conv2 bn2 downsample.0 downsample.1)"
#define THREE "(conv1 bn1 conv2 bn2 conv3 bn3)"
#define THREE_FIRST "0.(conv1 bn1 conv2 bn2 conv3 bn3 downsample.0 downsample.1)"
#define EXCITED_FIRST "block.(0.0 0.1 1.fc1 1.fc2 2.0 2.1)"
#define EXCITED "block.(0.0 0.1 1.0 1.1 2.fc1 2.fc2 3.0 3.1)"
#define NEXT "(block.(0 2 3 5) layer_scale)"
#define NEXT_TIMM "blocks.{0-2}.(conv_dw norm mlp.fc1 mlp.fc2 gamma)"
#define NEXT_TIMM_LONG "blocks.{0-8}.(conv_dw norm mlp.fc1 mlp.fc2 gamma)"
#define WIDENED "(conv_pw bn1 conv_dw bn2 conv_pwl bn3)"
#define SQUEEZED "(conv_pw bn1 conv_dw bn2 se.(conv_reduce conv_expand) conv_pwl bn3)"

#define RESNET18 "conv1 bn1 layer1.{0-1}." TWO " layer{2-4}.(" TWO_FIRST " 1." TWO ") fc"
#define RESNET34                                                                                   \
    "conv1 bn1 layer1.{0-2}." TWO " layer2.(" TWO_FIRST " {1-3}." TWO ") layer3.(" TWO_FIRST       \
    " {1-5}." TWO ") layer4.(" TWO_FIRST " {1-2}." TWO ") fc"
#define BOTTLENECKS(B, C)                                                                          \
    "conv1 bn1 layer1.(" THREE_FIRST " {1-2}." THREE ") layer2.(" THREE_FIRST " {1-" B "}." THREE  \
    ") layer3.(" THREE_FIRST " {1-" C "}." THREE ") layer4.(" THREE_FIRST " {1-2}." THREE ") fc"
#define VGG(FEATURES) "features.(" FEATURES ") classifier.(0 3 6)"
#define VGG_TIMM(FEATURES) "features.(" FEATURES ") pre_logits.(fc1 fc2) head.fc"
#define VGG11 "0 3 6 8 11 13 16 18"
#define VGG13 "0 2 5 7 10 12 15 17 20 22"
#define VGG16 "0 2 5 7 10 12 14 17 19 21 24 26 28"
#define VGG19 "0 2 5 7 10 12 14 16 19 21 23 25 28 30 32 34"
#define VGG11_BN "{0-1} {4-5} {8-9} {11-12} {15-16} {18-19} {22-23} {25-26}"
#define VGG13_BN "{0-1} {3-4} {7-8} {10-11} {14-15} {17-18} {21-22} {24-25} {28-29} {31-32}"
#define VGG16_BN                                                                                   \
    "{0-1} {3-4} {7-8} {10-11} {14-15} {17-18} {20-21} {24-25} {27-28} {30-31} {34-35} {37-38} "   \
    "{40-41}"
#define VGG19_BN                                                                                   \
    "{0-1} {3-4} {7-8} {10-11} {14-15} {17-18} {20-21} {23-24} {27-28} {30-31} {33-34} {36-37} "   \
    "{40-41} {43-44} {46-47} {49-50}"

static const qn__architecture rows[] = {
    {"vgg11", "torchvision", VGG(VGG11)},
    {"vgg11", "timm", VGG_TIMM(VGG11)},
    {"vgg13", "torchvision", VGG(VGG13)},
    {"vgg13", "timm", VGG_TIMM(VGG13)},
    {"vgg16", "torchvision", VGG(VGG16)},
    {"vgg16", "timm", VGG_TIMM(VGG16)},
    {"vgg19", "torchvision", VGG(VGG19)},
    {"vgg19", "timm", VGG_TIMM(VGG19)},
    {"vgg11-bn", "torchvision", VGG(VGG11_BN)},
    {"vgg11-bn", "timm", VGG_TIMM(VGG11_BN)},
    {"vgg13-bn", "torchvision", VGG(VGG13_BN)},
    {"vgg13-bn", "timm", VGG_TIMM(VGG13_BN)},
    {"vgg16-bn", "torchvision", VGG(VGG16_BN)},
    {"vgg16-bn", "timm", VGG_TIMM(VGG16_BN)},
    {"vgg19-bn", "torchvision", VGG(VGG19_BN)},
    {"vgg19-bn", "timm", VGG_TIMM(VGG19_BN)},
    {"resnet18", "torchvision", RESNET18},
    {"resnet34", "torchvision", RESNET34},
    {"resnet50", "torchvision", BOTTLENECKS("3", "5")},
    {"resnet101", "torchvision", BOTTLENECKS("3", "22")},
    {"resnet152", "torchvision", BOTTLENECKS("7", "35")},
    {"resnet18", "timm", RESNET18},
    {"resnet34", "timm", RESNET34},
    {"resnet50", "timm", BOTTLENECKS("3", "5")},
    {"resnet101", "timm", BOTTLENECKS("3", "22")},
    {"resnet152", "timm", BOTTLENECKS("7", "35")},
    {"mobilenetv2", "torchvision",
     "features.0.(0 1) features.1.conv.(0.0 0.1 1 2) "
     "features.{2-17}.conv.(0.0 0.1 1.0 1.1 2 3) features.18.(0 1) classifier.1"},
    {"mobilenetv2", "timm",
     "conv_stem bn1 blocks.0.0.(conv_dw bn1 conv_pw bn2) blocks.(1.{0-1}." WIDENED
     " 2.{0-2}." WIDENED " 3.{0-3}." WIDENED " {4-5}.({0-2}." WIDENED ") 6.0." WIDENED
     ") conv_head bn2 classifier"},
    {"mobilenetv3-small", "torchvision",
     "features.(0.(0 1) 1." EXCITED_FIRST " {2-3}.block.(0.0 0.1 1.0 1.1 2.0 2.1) {4-11}." EXCITED
     " 12.(0 1)) classifier.(0 3)"},
    {"efficientnet-b0", "torchvision",
     "features.(0.(0 1) 1.0." EXCITED_FIRST " 2.{0-1}." EXCITED " 3.{0-1}." EXCITED
     " {4-5}.({0-2}." EXCITED ") 6.{0-3}." EXCITED " 7.0." EXCITED " 8.(0 1)) classifier.1"},
    {"efficientnet-b0", "timm",
     "conv_stem bn1 blocks.(0.0.(conv_dw bn1 se.(conv_reduce conv_expand) conv_pw bn2) "
     "{1-2}.({0-1}." SQUEEZED ") {3-4}.({0-2}." SQUEEZED ") 5.{0-3}." SQUEEZED " 6.0." SQUEEZED
     ") conv_head bn2 classifier"},
    {"convnext-tiny", "torchvision",
     "features.(0.(0 1) 1.{0-2}." NEXT " 2.(0 1) 3.{0-2}." NEXT " 4.(0 1) 5.{0-8}." NEXT
     " 6.(0 1) 7.{0-2}." NEXT ") classifier.(0 2)"},
    {"convnext-tiny", "timm",
     "stem.(0 1) stages.(0." NEXT_TIMM " 1.(downsample.(0 1) " NEXT_TIMM
     ") 2.(downsample.(0 1) " NEXT_TIMM_LONG ") 3.(downsample.(0 1) " NEXT_TIMM
     ")) head.(norm fc)"},
};

enum { ROWS = sizeof rows / sizeof *rows };

const qn__architecture *qn__architecture_row(uint32_t index) {
    return index < ROWS ? &rows[index] : NULL;
}

static void add(const char *name, qn__module_names *out) {
    if (out->count < QN__MAX_LAYERS)
        snprintf(out->name[out->count++], QN__MODULE_NAME, "%s", name);
}

static const char *expand(const char *at, const char *prefix, qn__module_names *out);

/* One name or group, for each number of its braces; returns its end. */
static const char *expand_item(const char *at, const char *prefix, qn__module_names *out) {
    const size_t size = strcspn(at, " ()");
    const char *const brace = memchr(at, '{', size), *end = at + size, *tail = end;
    long number = 0, last = 0;
    if (brace) {
        char *stop;
        number = strtol(brace + 1, &stop, 10);
        last = strtol(stop + 1, &stop, 10);
        tail = stop + 1;
    }
    for (; number <= last; ++number) {
        char name[QN__MODULE_NAME], digits[24] = "";
        if (brace)
            snprintf(digits, sizeof digits, "%ld", number);
        snprintf(name, sizeof name, "%s%.*s%s%.*s", prefix, (int)((brace ? brace : end) - at), at,
                 digits, (int)(at + size - tail), tail);
        if (at[size] == '(')
            end = expand(at + size + 1, name, out) + 1;
        else
            add(name, out);
    }
    return end;
}

/* A list up to its bracket, which is returned, or up to the end. */
static const char *expand(const char *at, const char *prefix, qn__module_names *out) {
    for (at += strspn(at, " "); *at && *at != ')'; at += strspn(at, " "))
        at = expand_item(at, prefix, out);
    return at;
}

void qn__architecture_names(const qn__architecture *row, qn__module_names *out) {
    out->count = 0;
    expand(row->modules, "", out);
}

/* Bytes of the longest prefix with a point at its end that all modules have. */
static size_t prefix_of(const qn__state_dict *state) {
    const char *first = state->modules ? qn__module_any(&state->module[0])->name : "";
    size_t size = state->modules ? qn__module_size(first) : 0;
    for (size_t m = 0; m < state->modules; ++m) {
        const char *name = qn__module_any(&state->module[m])->name;
        size_t same = 0;
        while (same < size && name[same] == first[same])
            ++same;
        size = same;
    }
    while (size > 0 && first[size - 1] != '.')
        --size;
    return size;
}

enum { LONGEST_PREFIX = 400 };

/* The prefix with which the file has the first module of the names. Where only a part of a network
 * is in the file, the prefix that its modules share is longer. */
static size_t prefix_before(const qn__state_dict *state, const char *first_name) {
    char name[LONGEST_PREFIX + QN__MODULE_NAME];
    const size_t longest = prefix_of(state), shared = longest < LONGEST_PREFIX ? longest : 0;
    const char *first = state->modules ? qn__module_any(&state->module[0])->name : "";
    for (size_t size = shared;;) {
        snprintf(name, sizeof name, "%.*s%s", (int)size, first, first_name);
        if (qn__module_find(state, name))
            return size;
        if (size == 0)
            return shared;
        do
            --size;
        while (size > 0 && first[size - 1] != '.');
    }
}

void qn__architecture_compare(const qn__state_dict *state, const qn__module_names *names,
                              qn__module **of, qn__architecture_match *match) {
    char name[LONGEST_PREFIX + QN__MODULE_NAME];
    const size_t prefix = prefix_before(state, names->name[0]);
    const char *first = state->modules ? qn__module_any(&state->module[0])->name : "";
    *match = (qn__architecture_match){.more = state->modules};
    for (uint32_t i = 0; i < names->count; ++i) {
        snprintf(name, sizeof name, "%.*s%s", (int)prefix, first, names->name[i]);
        qn__module *found = qn__module_find(state, name);
        if (!found && match->missing++ == 0)
            snprintf(match->lacks, sizeof match->lacks, "%s", names->name[i]);
        match->more -= found != NULL;
        if (of)
            of[i] = found;
    }
}

qn__architecture_match qn__architecture_nearest(const qn__state_dict *state,
                                                qn__module_names *names) {
    qn__architecture_match best = {0};
    for (uint32_t i = 0; i < ROWS; ++i) {
        qn__architecture_match match;
        qn__architecture_names(&rows[i], names);
        qn__architecture_compare(state, names, NULL, &match);
        match.row = &rows[i];
        if (!best.row || match.missing + match.more < best.missing + best.more)
            best = match;
    }
    qn__architecture_names(best.row, names);
    return best;
}

int qn__architecture_meant(const qn__architecture_match *match, const qn__module_names *names) {
    return match->missing <= names->count / 4 && match->more <= names->count / 4;
}
