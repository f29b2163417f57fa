#include "model/network/ready.h"

#include "base/text/text.h"

/* Residual networks for small images (He et al. 2015, section 4.2): a convolution, then three
 * stages of blocks; the first block of the second and third stage halves the image and has a
 * convolution of 1x1 in its shortcut. */
#define NORMED(N, KERNEL) "conv " N " " KERNEL "; batchnorm"
#define BLOCK(N) "; residual { " NORMED(N, "3x3") " relu; " NORMED(N, "3x3") " } relu"
#define HALF(N)                                                                                    \
    "; residual { " NORMED(N, "3x3 stride 2") " relu; " NORMED(N, "3x3") " | " NORMED(             \
        N, "1x1 stride 2") " } relu"
#define RESNET(MORE)                                                                               \
    NORMED("16", "3x3")                                                                            \
    " relu" BLOCK("16") MORE(BLOCK("16")) HALF("32") MORE(BLOCK("32")) HALF("64")                  \
        MORE(BLOCK("64")) "; globalpool"
#define NONE(TEXT)
#define TWO(TEXT) TEXT TEXT
#define EIGHT(TEXT) TEXT TEXT TEXT TEXT TEXT TEXT TEXT TEXT

/* MobileNet (Howard et al. 2017) of a quarter of its width; for small images the first convolution
 * has stride 1. */
#define PAIR(IN, STRIDE, OUT)                                                                      \
    "; " NORMED(IN, "3x3 " STRIDE "depthwise") " relu; " NORMED(OUT, "1x1") " relu"
#define SAME(N) PAIR(N, "", N)
#define FEWER(IN, OUT) PAIR(IN, "stride 2 ", OUT)
#define MOBILENET                                                                                  \
    NORMED("8", "3x3")                                                                             \
    " relu" PAIR("8", "", "16") FEWER("16", "32") SAME("32") FEWER("32", "64") SAME("64")          \
        FEWER("64", "128") SAME("128") SAME("128") SAME("128") SAME("128") SAME("128")             \
            FEWER("128", "256") SAME("256") "; globalpool"

/* Residual networks for photographs (He et al. 2015, table 1) as torchvision has them: in a block
 * of three convolutions that of 3x3 has the stride. */
#define PLAIN(N, KERNEL) "conv " N " " KERNEL " nobias; batchnorm"
#define PLAIN_BLOCK(N) "; residual { " PLAIN(N, "3x3") " relu; " PLAIN(N, "3x3") " } relu"
#define PLAIN_HALF(N)                                                                              \
    "; residual { " PLAIN(N, "3x3 stride 2") " relu; " PLAIN(N, "3x3") " | " PLAIN(                \
        N, "1x1 stride 2") " } relu"
#define STEM PLAIN("64", "7x7 stride 2") " relu; maxpool 3 stride 2 pad 1"
#define THREE(TEXT) TEXT TEXT TEXT
#define FOUR(TEXT) TWO(TEXT) TWO(TEXT)
#define BASIC(A, B, C, D)                                                                          \
    STEM A(PLAIN_BLOCK("64")) PLAIN_HALF("128") B(PLAIN_BLOCK("128")) PLAIN_HALF("256")            \
        C(PLAIN_BLOCK("256")) PLAIN_HALF("512") D(PLAIN_BLOCK("512")) "; globalpool"
#define ONE(TEXT) TEXT
#define FIVE(TEXT) FOUR(TEXT) TEXT
#define NARROWED(N, M, STRIDE)                                                                     \
    "; residual { " PLAIN(N, "1x1") " relu; " PLAIN(N, "3x3" STRIDE) " relu; " PLAIN(M, "1x1")
#define DEEP(N, M) NARROWED(N, M, "") " } relu"
#define DEEP_FIRST(N, M, STRIDE) NARROWED(N, M, STRIDE) " | " PLAIN(M, "1x1" STRIDE) " } relu"
#define SEVEN(TEXT) FIVE(TEXT) TWO(TEXT)
#define THIRTEEN(TEXT) EIGHT(TEXT) FIVE(TEXT)
#define TWENTY_TWO(TEXT) THIRTEEN(TEXT) EIGHT(TEXT) TEXT
#define BOTTLENECKS(B, C, D)                                                                       \
    STEM DEEP_FIRST("64", "256", "") TWO(DEEP("64", "256")) DEEP_FIRST("128", "512", " stride 2")  \
        B(DEEP("128", "512")) DEEP_FIRST("256", "1024", " stride 2"),                              \
        C(DEEP("256", "1024")), "" D(DEEP("256", "1024")),                                         \
        DEEP_FIRST("512", "2048", " stride 2") TWO(DEEP("512", "2048")) "; globalpool"

/* MobileNetV2 (Sandler et al. 2018, table 2): blocks that widen six times, with a shortcut where
 * the shape stays. */
#define WIDENED(WIDE, STRIDE, OUT)                                                                 \
    PLAIN(WIDE, "1x1")                                                                             \
    " relu6; " PLAIN(WIDE, "3x3 " STRIDE "depthwise") " relu6; " PLAIN(OUT, "1x1")
#define CHANGE(WIDE, STRIDE, OUT) "; " WIDENED(WIDE, STRIDE, OUT)
#define KEEP(N, WIDE) "; residual { " WIDENED(WIDE, "", N) " }"
#define MOBILENETV2                                                                                \
    PLAIN("32", "3x3 stride 2")                                                                    \
    " relu6; " PLAIN("32", "3x3 depthwise") " relu6; " PLAIN("16", "1x1")                          \
        CHANGE("96", "stride 2 ", "24") KEEP("24", "144") CHANGE("144", "stride 2 ", "32")         \
            TWO(KEEP("32", "192")) CHANGE("192", "stride 2 ", "64") THREE(KEEP("64", "384"))       \
                CHANGE("384", "", "96") TWO(KEEP("96", "576")) CHANGE("576", "stride 2 ", "160")   \
                    TWO(KEEP("160", "960"))                                                        \
                        CHANGE("960", "", "320") "; " PLAIN("1280", "1x1") " relu6; globalpool"

/* Squeeze-and-excitation (Hu et al. 2018): each channel times a factor from the means of all. */
#define SQUEEZED(FEW, FIRST, WIDE, LAST)                                                           \
    "; product { globalpool; conv " FEW " 1x1 " FIRST "; conv " WIDE " 1x1 " LAST " }"

/* The formatter would indent each text of a list more than the one before. */
/* clang-format off */

/* MobileNetV3-Small (Howard et al. 2019, table 2); eps and momentum are those of torchvision. */
#define EXACTLY(N, KERNEL) "conv " N " " KERNEL " nobias; batchnorm eps 0.001 momentum 0.01"
#define HARD(WIDE, WINDOW, FEW, OUT)                                                               \
    EXACTLY(WIDE, "1x1")                                                                           \
    " hardswish; " EXACTLY(WIDE, WINDOW " depthwise") " hardswish" SQUEEZED(                       \
        FEW, "relu", WIDE, "hardsigmoid") "; " EXACTLY(OUT, "1x1")
#define HARD_CHANGE(WIDE, WINDOW, FEW, OUT) "; " HARD(WIDE, WINDOW, FEW, OUT)
#define HARD_KEEP(WIDE, FEW, N) "; residual { " HARD(WIDE, "5x5", FEW, N) " }"
#define LIGHT(WIDE, STRIDE, OUT)                                                                   \
    EXACTLY(WIDE, "1x1") " relu; " EXACTLY(WIDE, "3x3 " STRIDE "depthwise") " relu; " EXACTLY(OUT, "1x1")
#define HARD_STEM EXACTLY("16", "3x3 stride 2") " hardswish; "
#define HARD_FIRST EXACTLY("16", "3x3 stride 2 depthwise") " relu"
#define HARD_LAST "; " EXACTLY("576", "1x1") " hardswish; globalpool; "
#define MOBILENETV3                                                                                \
    HARD_STEM HARD_FIRST SQUEEZED("8", "relu", "16", "hardsigmoid")                                \
    "; " EXACTLY("16", "1x1")                                                                      \
    "; " LIGHT("72", "stride 2 ", "24")                                                            \
    "; residual { " LIGHT("88", "", "24") " }"                                                     \
    HARD_CHANGE("96", "5x5 stride 2", "24", "40") TWO(HARD_KEEP("240", "64", "40"))                \
    HARD_CHANGE("120", "5x5", "32", "48") HARD_KEEP("144", "40", "48")                             \
    HARD_CHANGE("288", "5x5 stride 2", "72", "96") TWO(HARD_KEEP("576", "144", "96"))              \
    HARD_LAST "dense 1024 hardswish dropout 0.2"

/* EfficientNet-B0 (Tan and Le 2019, table 1) as torchvision has it: the nth of the 16 blocks is
 * left out with a probability of 0.2 * (n-1) / 16, if it has a shortcut. */
#define SMOOTH(WIDE, WINDOW, FEW, OUT)                                                             \
    PLAIN(WIDE, "1x1") " silu; " PLAIN(WIDE, WINDOW " depthwise") " silu"                        \
    SQUEEZED(FEW, "silu", WIDE, "sigmoid") "; " PLAIN(OUT, "1x1")
#define SMOOTH_CHANGE(WIDE, WINDOW, FEW, OUT) "; " SMOOTH(WIDE, WINDOW, FEW, OUT)
#define SMOOTH_KEEP(WIDE, WINDOW, FEW, N, P)                                                       \
    "; residual { " SMOOTH(WIDE, WINDOW, FEW, N) " droppath " P " }"
#define SMOOTH_STEM PLAIN("32", "3x3 stride 2") " silu; " PLAIN("32", "3x3 depthwise") " silu"
#define SMOOTH_LAST "; " PLAIN("1280", "1x1") " silu; globalpool"
#define EFFICIENTNET                                                                               \
    SMOOTH_STEM SQUEEZED("8", "silu", "32", "sigmoid") "; " PLAIN("16", "1x1")                    \
    SMOOTH_CHANGE("96", "3x3 stride 2", "4", "24") SMOOTH_KEEP("144", "3x3", "6", "24", "0.025")   \
    SMOOTH_CHANGE("144", "5x5 stride 2", "6", "40") SMOOTH_KEEP("240", "5x5", "10", "40", "0.05")  \
    SMOOTH_CHANGE("240", "3x3 stride 2", "10", "80")                                               \
    SMOOTH_KEEP("480", "3x3", "20", "80", "0.075") SMOOTH_KEEP("480", "3x3", "20", "80", "0.0875") \
    SMOOTH_CHANGE("480", "5x5", "20", "112")                                                       \
    SMOOTH_KEEP("672", "5x5", "28", "112", "0.1125") SMOOTH_KEEP("672", "5x5", "28", "112", "0.125") \
    SMOOTH_CHANGE("672", "5x5 stride 2", "28", "192")                                              \
    SMOOTH_KEEP("1152", "5x5", "48", "192", "0.15")                                                \
    SMOOTH_KEEP("1152", "5x5", "48", "192", "0.1625")                                              \
    SMOOTH_KEEP("1152", "5x5", "48", "192", "0.175")                                               \
    SMOOTH_CHANGE("1152", "3x3", "48", "320") SMOOTH_LAST

/* ConvNeXt (Liu et al. 2022) as torchvision has it: layer normalisation of each pixel, and a factor
 * of each channel at the end of a block. The nth of the 18 blocks is left out with a probability of
 * 0.1 * (n-1) / 17. */
#define EACH "layernorm channels eps 1e-6"
#define NEXT(N, WIDE, DROP)                                                                        \
    "; residual { conv " N " 7x7 depthwise; " EACH "; conv " WIDE " 1x1 gelu; conv " N             \
    " 1x1; layerscale 1e-6" DROP " }"
#define NEXT_STAGE(N) "; " EACH "; conv " N " 2x2 stride 2"
#define CONVNEXT                                                                                   \
    "conv 96 4x4 stride 4; " EACH NEXT("96", "384", "")                                            \
    NEXT("96", "384", " droppath 0.005882353") NEXT("96", "384", " droppath 0.011764706")          \
    NEXT_STAGE("192") NEXT("192", "768", " droppath 0.01764706")                                   \
    NEXT("192", "768", " droppath 0.023529412") NEXT("192", "768", " droppath 0.029411765")        \
    NEXT_STAGE("384") NEXT("384", "1536", " droppath 0.03529412")                                  \
    NEXT("384", "1536", " droppath 0.04117647") NEXT("384", "1536", " droppath 0.047058824")       \
    NEXT("384", "1536", " droppath 0.052941177") NEXT("384", "1536", " droppath 0.05882353")       \
    NEXT("384", "1536", " droppath 0.064705886") NEXT("384", "1536", " droppath 0.07058824")       \
    NEXT("384", "1536", " droppath 0.07647059") NEXT("384", "1536", " droppath 0.08235294")        \
    NEXT_STAGE("768") NEXT("768", "3072", " droppath 0.0882353")                                   \
    NEXT("768", "3072", " droppath 0.09411765") NEXT("768", "3072", " droppath 0.1")               \
    "; globalpool; " EACH

/* clang-format on */

/* VGG (Simonyan and Zisserman 2014) as torchvision has it: its pool to 7x7 changes nothing at
 * 224x224, and lets other sizes in. */
#define CONV(N) "conv " N " 3x3 relu; "
#define CONV_BN(N) "conv " N " 3x3; batchnorm relu; "
#define POOL "maxpool 2; "
#define VGG_END "avgpool to 7x7; dense 4096 relu dropout 0.5; dense 4096 relu dropout 0.5"
#define VGG(CONV, A, B)                                                                            \
    A(CONV("64"))                                                                                  \
    POOL A(CONV("128")) POOL B(CONV("256")) POOL B(CONV("512")) POOL B(CONV("512")) POOL VGG_END
#define VGG11(CONV)                                                                                \
    CONV("64")                                                                                     \
    POOL CONV("128") POOL TWO(CONV("256")) POOL TWO(CONV("512")) POOL TWO(CONV("512")) POOL VGG_END

/* A U-Net (Ronneberger, Fischer and Brox 2015, figure 1) of a quarter of its width, with batchnorm
 * and padding: each half of the picture is enlarged again and stands beside what it came from. */
#define TWICE(N) PLAIN(N, "3x3") " relu; " PLAIN(N, "3x3") " relu"
#define HALVED(N, INNER)                                                                           \
    TWICE(N) "; concat { maxpool 2; " INNER "; convtranspose " N " 2x2 stride 2 }; " TWICE(N)
#define UNET HALVED("16", HALVED("32", HALVED("64", HALVED("128", TWICE("256")))))
static const char unet[] = UNET;

/* GPT-2 (Radford et al. 2019): each position reads those before it; the embedding and the last
 * layer have one table. Small ones are called as others call them, with the numbers of nanoGPT. */
#define GPT_BLOCK(N, QKV, HEADS, WIDE, GELU, DROP)                                                 \
    "; residual { layernorm channels; conv " QKV " 1x1; attention " HEADS " causal; conv " N       \
    " 1x1" DROP " }; residual { layernorm channels; conv " WIDE " 1x1 " GELU "; conv " N           \
    " 1x1" DROP " }"
#define GPT_BEGIN(N, DROP) "embedding $V " N "; position learned" DROP
#define GPT_END "; layernorm channels; conv $V 1x1 tied softmax"
#define MICRO GPT_BLOCK("128", "384", "4", "512", "gelu", "")
#define MINI GPT_BLOCK("384", "1152", "6", "1536", "gelu", " dropout 0.2")
#define GPT2 GPT_BLOCK("768", "2304", "12", "3072", "gelu-tanh", " dropout 0.1")

/* Llama (Touvron et al. 2023, Dubey et al. 2024) of the size of gpt-mini: heads of queries share
 * those of keys, and dropout is for small texts. */
#define LLAMA_BLOCK(N, QKV, HEADS, KV, WIDE, DROP)                                                 \
    "; residual { rmsnorm; conv " QKV " 1x1 nobias; position rotary " HEADS " kv " KV              \
    "; attention " HEADS " causal kv " KV "; conv " N " 1x1 nobias" DROP                           \
    " }; residual { rmsnorm; gated " WIDE " nobias silu; conv " N " 1x1 nobias" DROP " }"
#define LLAMA LLAMA_BLOCK("384", "640", "6", "2", "1024", " dropout 0.2")

/* Classes of texts: words in any order; windows of words (Kim 2014), of odd widths, which keep the
 * positions; and the encoder of a small BERT (Devlin et al. 2018, Turc et al. 2019). */
#define WINDOW(WIDTH) "conv 100 1x" WIDTH " relu; pool max"
#define TEXT_CNN                                                                                   \
    "embedding $V 128; concat { concat { " WINDOW("3") " | " WINDOW("5") " } | " WINDOW(           \
        "7") " } dropout 0.5"
#define BERT_BLOCK                                                                                 \
    "; residual { conv 768 1x1; attention 4; conv 256 1x1 dropout 0.1 }; layernorm channels; "     \
    "residual { conv 1024 1x1 gelu; conv 256 1x1 dropout 0.1 }; layernorm channels"
#define BERT                                                                                       \
    "embedding $V 256; position learned; layernorm channels dropout 0.1" FOUR(                     \
        BERT_BLOCK) "; pool mean"

/* A model is one row. The last layer is mostly not in it: it is that of the default model. */
static const qn__ready rows[] = {
    {"lenet",
     "two convolutions of 5x5 with pools, one hidden dense layer; for digits",
     {1, 28, 28, QN__PICTURE},
     .body = {"conv 32 5x5 relu; maxpool 2; conv 64 5x5 relu; maxpool 2; dense 512 relu"}},
    {"vgg8",
     "three times two convolutions of 3x3 and a pool, one hidden dense layer",
     {3, 32, 32, QN__PICTURE},
     .body =
         {"conv 64 3x3 relu; conv 64 3x3 relu; maxpool 2; conv 128 3x3 relu; conv 128 3x3 relu; "
          "maxpool 2; conv 256 3x3 relu; conv 256 3x3 relu; maxpool 2; dense 256 relu"}},
    {"resnet8",
     "residual, three stages of one block with batchnorm",
     {3, 32, 32, QN__PICTURE},
     .body = {RESNET(NONE)}},
    {"resnet20",
     "residual, three stages of three blocks with batchnorm",
     {3, 32, 32, QN__PICTURE},
     .body = {RESNET(TWO)}},
    {"resnet56",
     "residual, three stages of nine blocks with batchnorm",
     {3, 32, 32, QN__PICTURE},
     .body = {RESNET(EIGHT)}},
    {"mobilenet-small",
     "depthwise and 1x1 convolutions, a quarter of MobileNet's width",
     {3, 32, 32, QN__PICTURE},
     .body = {MOBILENET}},
    {"vgg11",
     "eight convolutions of 3x3 and three dense layers, as torchvision",
     {3, 224, 224, QN__PICTURE},
     .body = {VGG11(CONV)}},
    {"vgg13",
     "ten convolutions of 3x3 and three dense layers, as torchvision",
     {3, 224, 224, QN__PICTURE},
     .body = {VGG(CONV, TWO, TWO)}},
    {"vgg16",
     "thirteen convolutions of 3x3 and three dense layers, as torchvision",
     {3, 224, 224, QN__PICTURE},
     .body = {VGG(CONV, TWO, THREE)}},
    {"vgg19",
     "sixteen convolutions of 3x3 and three dense layers, as torchvision",
     {3, 224, 224, QN__PICTURE},
     .body = {VGG(CONV, TWO, FOUR)}},
    {"vgg11-bn",
     "vgg11 with batchnorm after each convolution",
     {3, 224, 224, QN__PICTURE},
     .body = {VGG11(CONV_BN)}},
    {"vgg13-bn",
     "vgg13 with batchnorm after each convolution",
     {3, 224, 224, QN__PICTURE},
     .body = {VGG(CONV_BN, TWO, TWO)}},
    {"vgg16-bn",
     "vgg16 with batchnorm after each convolution",
     {3, 224, 224, QN__PICTURE},
     .body = {VGG(CONV_BN, TWO, THREE)}},
    {"vgg19-bn",
     "vgg19 with batchnorm after each convolution",
     {3, 224, 224, QN__PICTURE},
     .body = {VGG(CONV_BN, TWO, FOUR)}},
    {"resnet18",
     "residual, four stages of two blocks, as torchvision",
     {3, 224, 224, QN__PICTURE},
     .body = {BASIC(TWO, ONE, ONE, ONE)}},
    {"resnet34",
     "residual, stages of 3, 4, 6 and 3 blocks, as torchvision",
     {3, 224, 224, QN__PICTURE},
     .body = {BASIC(THREE, THREE, FIVE, TWO)}},
    {"resnet50",
     "residual, stages of 3, 4, 6 and 3 blocks of three convolutions, as torchvision",
     {3, 224, 224, QN__PICTURE},
     .body = {BOTTLENECKS(THREE, FIVE, NONE)}},
    {"resnet101",
     "residual, stages of 3, 4, 23 and 3 blocks of three convolutions, as torchvision",
     {3, 224, 224, QN__PICTURE},
     .body = {BOTTLENECKS(THREE, TWENTY_TWO, NONE)}},
    {"resnet152",
     "residual, stages of 3, 8, 36 and 3 blocks of three convolutions, as torchvision",
     {3, 224, 224, QN__PICTURE},
     .body = {BOTTLENECKS(SEVEN, TWENTY_TWO, THIRTEEN)}},
    {"mobilenetv2",
     "residual blocks that widen six times, with depthwise convolutions, as torchvision",
     {3, 224, 224, QN__PICTURE},
     .body = {MOBILENETV2}},
    {"mobilenetv3-small",
     "depthwise blocks with squeeze-and-excitation and hardswish, as torchvision",
     {3, 224, 224, QN__PICTURE},
     .body = {MOBILENETV3}},
    {"efficientnet-b0",
     "depthwise blocks with squeeze-and-excitation and silu, as torchvision",
     {3, 224, 224, QN__PICTURE},
     .body = {EFFICIENTNET}},
    {"convnext-tiny",
     "depthwise convolutions of 7x7 and layer normalisation, as torchvision",
     {3, 224, 224, QN__PICTURE},
     .body = {CONVNEXT}},
    {"unet-small",
     "a class for each pixel: four halvings and back, a quarter of U-Net's width",
     {3, 256, 256, QN__PICTURE},
     .body = {unet}},
    {"gpt-micro",
     "the next token: a transformer of 4 layers with 4 heads",
     {1, 1, 64, QN__PICTURE},
     .body = {GPT_BEGIN("128", "") FOUR(MICRO) GPT_END},
     .tokens = 65,
     .whole = 1},
    {"gpt-mini",
     "the next token: a transformer of 6 layers with 6 heads",
     {1, 1, 256, QN__PICTURE},
     .body = {GPT_BEGIN("384", " dropout 0.2") FIVE(MINI) MINI GPT_END},
     .tokens = 65,
     .whole = 1},
    {"gpt2",
     "the next token: the small GPT-2, of 12 layers with 12 heads",
     {1, 1, 1024, QN__PICTURE},
     .body = {GPT_BEGIN("768", " dropout 0.1") EIGHT(GPT2) FOUR(GPT2) GPT_END},
     .tokens = 50257,
     .whole = 1},
    {"llama-mini",
     "the next token: a Llama of 6 layers with 6 heads of queries and 2 of keys",
     {1, 1, 256, QN__PICTURE},
     .body = {"embedding $V 384" FIVE(LLAMA) LLAMA "; rmsnorm; conv $V 1x1 nobias softmax"},
     .tokens = 65,
     .whole = 1},
    {"bag",
     "classes of texts: the mean of the vectors of all tokens",
     {1, 1, 128, QN__PICTURE},
     .body = {"embedding $V 128; pool mean"},
     .tokens = 8000},
    {"text-cnn",
     "classes of texts: convolutions over 3, 5 and 7 tokens, and their greatest values",
     {1, 1, 128, QN__PICTURE},
     .body = {TEXT_CNN},
     .tokens = 8000},
    {"lstm-text",
     "classes of texts: the last of the states of 128 channels",
     {1, 1, 128, QN__PICTURE},
     .body = {"embedding $V 128 dropout 0.2; lstm 128; pool last"},
     .tokens = 8000},
    {"bert-mini",
     "classes of texts: an encoder of 4 layers with 4 heads, and the mean of its positions",
     {1, 1, 128, QN__PICTURE},
     .body = {BERT},
     .tokens = 8000},
};

enum { ROWS = sizeof rows / sizeof *rows };

const qn__ready *qn__ready_row(uint32_t index) { return index < ROWS ? &rows[index] : NULL; }

int qn__ready_segments(const qn__ready *row) { return row->body[0] == unet; }

const qn__ready *qn__ready_find(const char *name, size_t size) {
    for (uint32_t i = 0; i < ROWS; ++i)
        if (qn__same_word(rows[i].name, name, size))
            return &rows[i];
    return NULL;
}

const char *qn__ready_near(const char *word) {
    const char *names[ROWS + 1];
    for (uint32_t i = 0; i < ROWS; ++i)
        names[i] = rows[i].name;
    names[ROWS] = NULL;
    return qn__nearest(word, names);
}
