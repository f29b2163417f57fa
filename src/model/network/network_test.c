/* The model text: accepted and refused input, messages, and the resulting numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/network/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------- accepted */

static void check_canonical(const char *text, const char *expected) {
    qn__network network;
    qn_error err = {0};
    if (qn__network_parse(text, &network, &err) != QN_OK)
        fail_msg("%s: %s %s", text, err.what, err.where);
    qn__text again = {0};
    qn__network_text(&network, &again);
    assert_false(again.failed);
    assert_string_equal(again.data, expected);
    qn__text_release(&again);
}

static void test_canonical_text(void **state) {
    (void)state;
    check_canonical("dense 500 tanh; dense 10 softmax", "dense 500 tanh; dense 10 softmax");
    check_canonical("  DENSE\t500\nTanh ;dense 10 SoftMax ; ", "dense 500 tanh; dense 10 softmax");
    check_canonical("dense 1", "dense 1 none");
    check_canonical("dense 0016777216 NONE;", "dense 16777216 none");
    check_canonical("dense 7 dropout .25; dense 3 sigmoid dropout 0.10; dense 2 relu",
                    "dense 7 none dropout 0.25; dense 3 sigmoid dropout 0.1; dense 2 relu");
    /* The float nearest to 1e-3 and the shortest text of it. */
    check_canonical("dense 7 DROPOUT 1e-3; dense 2", "dense 7 none dropout 0.001; dense 2 none");
}

static void test_normalisations(void **state) {
    (void)state;
    check_canonical("conv 8 3; BatchNorm RELU dropout .5; dense 2",
                    "conv 8 3x3 none; batchnorm relu dropout 0.5; dense 2 none");
    check_canonical("conv 8 3; GROUPNORM 04 tanh; layernorm dropout .5; dense 2",
                    "conv 8 3x3 none; groupnorm 4 tanh; layernorm none dropout 0.5; dense 2 none");
    check_canonical("dense 7; batchnorm; dense 2", "dense 7 none; batchnorm none; dense 2 none");
    check_canonical(
        "batchnorm MOMENTUM .50 eps 1e-3 relu; layernorm eps 0.00001; groupnorm 1 eps 1; "
        "batchnorm momentum 0.1; layernorm Channels eps .5; layerscale; LayerScale .010 relu; "
        "dense 2",
        "batchnorm eps 0.001 momentum 0.5 relu; layernorm none; "
        "groupnorm 1 eps 1 none; batchnorm none; layernorm channels eps 0.5 none; "
        "layerscale 1e-06 none; layerscale 0.01 relu; dense 2 none");
    check_canonical("conv 8 1x1; RMSNorm eps 0.00001; rmsnorm eps .5 relu; dense 2",
                    "conv 8 1x1 none; rmsnorm none; rmsnorm eps 0.5 relu; dense 2 none");
}

/* One word for three kinds. */
static void test_positions(void **state) {
    (void)state;
    check_canonical("conv 8 1x1; position LEARNED; Position sinusoid relu dropout .5; dense 2",
                    "conv 8 1x1 none; position learned none; position sinusoid relu dropout 0.5; "
                    "dense 2 none");
    check_canonical("conv 8 1x1; position rotary 2 scale 1 llama3 1 4 10 base 1e4 kv 2; dense 2",
                    "conv 8 1x1 none; position rotary 2; dense 2 none");
    check_canonical("conv 8 1x1; position rotary 4 scale 8 llama3 1.0 4 8192 base 500000 kv 1; "
                    "attention 4 causal; dense 2",
                    "conv 8 1x1 none; position rotary 4 kv 1 base 5e+05 scale 8 llama3 1 4 8192; "
                    "attention 4 causal; dense 2 none");
}

/* Short forms: of a product, and of a convolution with the states after it. */
static void test_gated(void **state) {
    (void)state;
    check_canonical("conv 8 1x1; Gated 6 silu; conv 4 1x1; dense 2",
                    "conv 8 1x1 none; product { conv 6 1x1 silu | conv 6 1x1 none } none; "
                    "conv 4 1x1 none; dense 2 none");
    check_canonical(
        "gated 3 tanh; residual { gated 6 nobias gelu dropout .5; conv 8 1x1 | gated 8 "
        "relu }; dense 2",
        "product { conv 3 1x1 tanh | conv 3 1x1 none } none; residual { product { conv "
        "6 1x1 nobias gelu | conv 6 1x1 nobias none } none dropout 0.5; conv 8 1x1 none "
        "| product { conv 8 1x1 relu | conv 8 1x1 none } none } none; dense 2 none");
    check_canonical("conv 8 1x1; LSTM 6; gru 5 reverse tanh dropout .5; dense 2",
                    "conv 8 1x1 none; conv 24 1x1 none; recurrent lstm none; conv 15 1x1 none; "
                    "recurrent gru reverse tanh dropout 0.5; dense 2 none");
    check_canonical("conv 8 1x1; concat { lstm 4 | lstm 4 reverse }; Recurrent Gru; dense 2",
                    "conv 8 1x1 none; concat { conv 16 1x1 none; recurrent lstm none | conv 16 1x1 "
                    "none; recurrent lstm reverse none } none; recurrent gru none; dense 2 none");
}

/* What is usual is not written, and the order of the words is one. */
static void test_windows(void **state) {
    (void)state;
    check_canonical("conv 8 3 relu; dense 2", "conv 8 3x3 relu; dense 2 none");
    check_canonical("CONV 8 3x5 PAD Same STRIDE 1 Dilation 1; dense 2",
                    "conv 8 3x5 none; dense 2 none");
    check_canonical("conv 8 3 pad 1x1; dense 2", "conv 8 3x3 none; dense 2 none");
    check_canonical("conv 8 3 dilation 2 pad 2; dense 2",
                    "conv 8 3x3 dilation 2 none; dense 2 none");
    check_canonical("conv 8 3 dilation 2 pad 1; dense 2",
                    "conv 8 3x3 pad 1 dilation 2 none; dense 2 none");
    check_canonical("conv 8 3 pad none; dense 2", "conv 8 3x3 pad none none; dense 2 none");
    check_canonical("conv 8 3 pad 0 dilation 1x2 stride 2; dense 2",
                    "conv 8 3x3 stride 2 pad none dilation 1x2 none; dense 2 none");
    check_canonical("conv 8 2 pad none; dense 2", "conv 8 2x2 none; dense 2 none");
    check_canonical(
        "conv 8 3 NOBIAS stride 2 depthwise relu; dense 9 nobias; dense 2 nobias softmax",
        "conv 8 3x3 stride 2 depthwise nobias relu; dense 9 nobias none; "
        "dense 2 nobias softmax");
    check_canonical("maxpool 3 CEIL pad 1x1 stride 2; dense 2",
                    "maxpool 3x3 stride 2 pad 1 ceil; dense 2 none");
    check_canonical("avgpool 3 uncounted pad 0x1 ceil; avgpool 2 uncounted; dense 2",
                    "avgpool 3x3 pad 0x1 ceil uncounted; avgpool 2x2; dense 2 none");
    check_canonical("conv 8 2x3 pad 0x1; dense 2", "conv 8 2x3 pad 0x1 none; dense 2 none");
    check_canonical("residual { conv 8 1 DropPath .20; batchnorm relu droppath 0.5 }; dense 2",
                    "residual { conv 8 1x1 none droppath 0.2; batchnorm relu droppath 0.5 } none; "
                    "dense 2 none");
    check_canonical("conv 8 1 tanh dropout 0.5; dense 2",
                    "conv 8 1x1 tanh dropout 0.5; dense 2 none");
    check_canonical("convtranspose 8 2 stride 2 pad same; ConvTranspose 4 3x4 outpad 1x0 stride 2 "
                    "pad 1 relu; convtranspose 4 3 dilation 2 pad 0 stride 2; dense 2",
                    "convtranspose 8 2x2 stride 2 none; convtranspose 4 3x4 stride 2 relu; "
                    "convtranspose 4 3x3 stride 2 pad none dilation 2 none; dense 2 none");
    check_canonical("convtranspose 8 3 nobias pad 1 stride 2; convtranspose 8 2 stride 3 outpad "
                    "2 tanh; convtranspose 8 2; dense 2",
                    "convtranspose 8 3x3 stride 2 pad 1 nobias none; convtranspose 8 2x2 stride 3 "
                    "pad none outpad 2 tanh; convtranspose 8 2x2 none; dense 2 none");
    check_canonical("upsample 2x2 Bilinear; upsample 1x3 bilinear; dense 2",
                    "upsample 2 bilinear; upsample 1x3 bilinear; dense 2 none");
    check_canonical("avgpool TO 7; upsample 2X2; maxpool to 3x5; upsample 1x2; dense 2",
                    "avgpool to 7x7; upsample 2; maxpool to 3x5; upsample 1x2; dense 2 none");
    check_canonical("maxpool 2; avgpool 3 stride 2; maxpool 2x3 stride 2x3; GlobalPool; dense 2",
                    "maxpool 2x2; avgpool 3x3 stride 2; maxpool 2x3; globalpool; dense 2 none");
}

/* A shortcut without layers, one with layers, and blocks at both ends of a text. */
static void test_blocks(void **state) {
    (void)state;
    check_canonical("residual{conv 8 3;conv 8 3}relu;dense 2",
                    "residual { conv 8 3x3 none; conv 8 3x3 none } relu; dense 2 none");
    check_canonical(
        "dense 7; RESIDUAL { dense 7 relu ; } ; residual { dense 7 | dense 7 dropout .5; "
        "dense 7 } tanh dropout 0.25; dense 2",
        "dense 7 none; residual { dense 7 relu } none; residual { dense 7 none | dense 7 "
        "none dropout 0.5; dense 7 none } tanh dropout 0.25; dense 2 none");
    check_canonical(
        "residual { maxpool 2; conv 4 1 | avgpool 2; conv 4 1 }; dense 2",
        "residual { maxpool 2x2; conv 4 1x1 none | avgpool 2x2; conv 4 1x1 none } none; "
        "dense 2 none");
    check_canonical(
        "product{globalpool;concat{dense 3}};concat{dense 5 tanh|product{dense 7|dense "
        "7}relu}dropout .5;dense 2",
        "product { globalpool; concat { dense 3 none } none } none; concat { dense 5 tanh "
        "| product { dense 7 none | dense 7 none } relu } none dropout 0.5; dense 2 none");
    /* Blocks in blocks, at both ends of both paths, and one that is a whole path. */
    check_canonical(
        "residual{residual{dense 7 relu|dense 7;dense 7}tanh;residual{dense 7}|residual{"
        "residual{dense 7};residual{dense 7|dense 7}}}relu;dense 2",
        "residual { residual { dense 7 relu | dense 7 none; dense 7 none } tanh; residual { dense "
        "7 "
        "none } none | residual { residual { dense 7 none } none; residual { dense 7 none | dense "
        "7 "
        "none } none } none } relu; dense 2 none");
    check_canonical(
        "residual{dense 7;residual{residual{dense 7}}};residual{residual{dense 7}|dense 7;"
        "residual{dense 7}};dense 2",
        "residual { dense 7 none; residual { residual { dense 7 none } none } none } none; "
        "residual { residual { dense 7 none } none | dense 7 none; residual { dense 7 none "
        "} none } none; dense 2 none");
    check_canonical("residual{residual{residual{residual{residual{residual{residual{residual{dense "
                    "2}}}}}}}};dense 2",
                    "residual { residual { residual { residual { residual { residual { residual { "
                    "residual { dense "
                    "2 none } none } none } none } none } none } none } none } none; dense 2 none");
}

static void test_most_layers(void **state) {
    (void)state;
    char text[QN__MAX_LAYERS * 8 + 9] = "";
    qn__network network = {0};
    qn_error err = {0};
    for (int i = 0; i < 255; ++i)
        strcat(text, "dense 3;");
    assert_int_equal(qn__network_parse(text, &network, NULL), QN_OK);
    assert_int_equal(network.layers, 255);
    assert_int_equal(qn__network_contract(&network), 1);
    strcat(text, "dense 3;");
    assert_int_equal(qn__network_parse(text, &network, NULL), QN_OK);
    assert_int_equal(qn__network_contract(&network), 8);
    for (int i = 256; i < QN__MAX_LAYERS; ++i)
        strcat(text, "dense 3;");
    assert_int_equal(qn__network_parse(text, &network, NULL), QN_OK);
    assert_int_equal(network.layers, QN__MAX_LAYERS);
    strcat(text, "dense 3;");
    assert_int_equal(qn__network_parse(text, &network, &err), QN_USAGE);
    assert_string_equal(err.what, "the model has more than 1023 layers");
    assert_non_null(strstr(err.where, "model, column 8185:\n  ..."));
}

/* -------------------------------------------------------------------------------------- refused */

/* `column` is from 1; the caret must be under it in the second line. */
static void check_refused(const char *text, const char *what, int column, const char *advice) {
    qn__network network = {.layers = 77};
    qn_error err = {0};
    char head[64];
    assert_int_equal(qn__network_parse(text, &network, &err), QN_USAGE);
    assert_int_equal(err.status, QN_USAGE);
    assert_string_equal(err.what, what);
    if (strstr(err.remedy, advice) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", advice, err.remedy);
    snprintf(head, sizeof head, "model, column %d:\n  ", column);
    assert_memory_equal(err.where, head, strlen(head));
    const char *shown = err.where + strlen(head), *end = strchr(shown, '\n');
    assert_non_null(end);
    const char *caret = strchr(end, '^');
    assert_non_null(caret);
    assert_string_equal(caret, "^");
    assert_int_equal(caret - (end + 3), column - 1);
    assert_int_equal(network.layers, 77);
    assert_int_equal(qn__network_parse(text, &network, NULL), QN_USAGE);
}

static void test_refusals(void **state) {
    (void)state;
    check_refused("", "the model has no layers", 1, "`train.model`");
    check_refused("   ", "the model has no layers", 1, "dense 500 tanh; dense 10 softmax");
    check_refused("dense 500 tanhh; dense 10 softmax", "unknown activation \"tanhh\"", 11,
                  "did you mean \"tanh\"? there are: none, relu, tanh, sigmoid, softmax");
    check_refused("dense 500 tanh, dense 10 softmax", "unknown activation \"tanh,\"", 11,
                  "layers are separated by \";\"");
    check_refused("dens 500", "unknown layer \"dens\"", 1, "did you mean \"dense\"?");
    check_refused(
        "dense 5; rnn 3", "unknown layer \"rnn\"", 10,
        "there are: dense, conv, maxpool, avgpool, globalpool, batchnorm, groupnorm, layernorm, "
        "residual");
    check_refused("dense 5; Conv2D 3", "unknown layer \"Conv2D\"", 10, "did you mean \"conv\"?");
    check_refused("linear 5", "unknown layer \"linear\"", 1, "did you mean \"dense\"?");
    check_refused("dense 5; flatten", "this is not a layer: \"flatten\"", 10, "leave it out");
    check_refused("dropout 0.5", "this is not a layer: \"dropout\"", 1,
                  "dense 500 relu dropout 0.2");
    check_refused("dense 5; relu", "this is not a layer: \"relu\"", 10,
                  "after the words of its layer");
    check_refused("dense 5;; dense 3", "a layer is empty", 9, "take the semicolon out");
    check_refused(";", "a layer is empty", 1, "take the semicolon out");
    check_refused("dense", "the layer's width is missing", 6, "from 1 to 16777216");
    check_refused("dense ; dense 3", "the layer's width is missing", 7, "from 1 to 16777216");
    check_refused("dense tanh", "invalid width \"tanh\"", 7, "dense 500 tanh");
    check_refused("dense -3", "invalid width \"-3\"", 7, "whole number");
    check_refused("dense 3.5", "invalid width \"3.5\"", 7, "whole number");
    check_refused("dense 0", "the layer's width is 0", 7, "from 1");
    check_refused("dense 16777217", "the layer's width is above 16777216", 7, "16777216");
    check_refused("dense 18446744073709551616", "invalid width \"18446744073709551616\"", 7,
                  "16777216");
    check_refused("dense 5 softmax; dense 3", "softmax stands before the last layer", 9, "relu");
    check_refused("dense 5 relu dropout 0.5", "the last layer has dropout", 14, "take the dropout");
    check_refused("dense 5 relu dropout 0.5;", "the last layer has dropout", 14,
                  "take the dropout");
    check_refused("dense 5 dropout; dense 3", "the dropout's probability is missing", 16, "0.2");
    check_refused("dense 5 dropout x; dense 3", "invalid dropout probability \"x\"", 17, "0.2");
    check_refused("dense 5 dropout nan; dense 3", "invalid dropout probability \"nan\"", 17, "0.2");
    const char *const outside = "the dropout's probability is not between 0 and 1";
    check_refused("dense 5 dropout 0; dense 3", outside, 17, "leave the word out");
    check_refused("dense 5 dropout 1; dense 3", outside, 17, "excluded");
    check_refused("dense 5 dropout -0.1; dense 3", outside, 17, "excluded");
    /* Between 0 and 1 as written, but not as floats. */
    check_refused("dense 5 dropout 0.999999999; dense 3", outside, 17, "excluded");
    check_refused("dense 5 dropout 1e-60; dense 3", outside, 17, "excluded");
    check_refused("dense 5 tanh relu", "\"relu\" does not belong here", 14,
                  "brackets hold what may be left out");
    check_refused("dense 5 dropout 0.5 tanh; dense 3", "\"tanh\" does not belong here", 21,
                  "dense WIDTH [nobias] [ACTIVATION] [dropout|droppath P]");
}

static void test_refused_windows(void **state) {
    (void)state;
    check_refused("conv", "the layer's number of channels is missing", 5, "conv 32 3x3 relu");
    check_refused("conv 3x3", "invalid number of channels \"3x3\"", 6, "conv 32 3x3 relu");
    check_refused("conv 1x1 384 gelu; dense 3", "invalid number of channels \"1x1\"", 6,
                  "the channels come first, then height and width of the window: \"384 1x1\"");
    check_refused("conv 8", "the layer's window is missing", 7, "from 1 to 255");
    check_refused("conv 8 relu; dense 2", "invalid window \"relu\"", 8, "3x3");
    check_refused("conv 8 3x; dense 2", "invalid window \"3x\"", 8, "3x3");
    check_refused("conv 8 x3; dense 2", "invalid window \"x3\"", 8, "3x3");
    check_refused("conv 8 3x3x3; dense 2", "invalid window \"3x3x3\"", 8, "3x3");
    check_refused("conv 8 0; dense 2", "invalid window \"0\"", 8, "from 1 to 255");
    check_refused("conv 8 256; dense 2", "invalid window \"256\"", 8, "from 1 to 255");
    check_refused("conv 8 3 stride; dense 2", "the layer's stride is missing", 16, "\"stride 2\"");
    check_refused("conv 8 3 stride 0; dense 2", "invalid stride \"0\"", 17, "\"stride 2\"");
    check_refused("conv 8 3 stride 2 pad 1 stride 2; dense 2", "a layer has only one \"stride\"",
                  25, "take one of the two out");
    check_refused("conv 8 3 nobias stride 2 nobias; dense 2", "a layer has only one \"nobias\"", 26,
                  "take one of the two out");
    check_refused("dense 8 relu nobias; dense 2", "\"nobias\" does not belong here", 14,
                  "dense WIDTH [nobias]");
    check_refused("conv 8 3 pad some; dense 2", "invalid padding \"some\"", 14, "same");
    check_refused("conv 8 2 pad same; dense 2", "only an odd window has the padding \"same\"", 14,
                  "odd height");
    check_refused("conv 8 3 relu stride 2; dense 2", "\"stride\" does not belong here", 15,
                  "CHANNELS HEIGHTxWIDTH [stride S]");
    check_refused("maxpool 2 relu; dense 2", "\"relu\" does not belong here", 11,
                  "maxpool HEIGHTxWIDTH [stride S] [pad P]");
    check_refused("maxpool 2 dilation 1; dense 2", "\"dilation\" does not belong here", 11,
                  "[stride S] [pad P] [ceil], or maxpool to");
    check_refused("maxpool 2 uncounted; dense 2", "\"uncounted\" does not belong here", 11, "ceil");
    check_refused("maxpool 2x5 pad 2; dense 2", "the padding is more than half the window", 17,
                  "smaller");
    check_refused("maxpool 3 ceil pad 1 ceil; dense 2", "a layer has only one \"ceil\"", 22,
                  "take one");
    check_refused("avgpool 3 ceil pad 1; dense 2",
                  "with \"ceil\" the padding of avgpool cannot count", 11, "uncounted");
    check_refused("avgpool to 3x0; dense 2", "invalid size \"3x0\"", 12, "avgpool to 7x7");
    check_refused("avgpool to; dense 2", "the layer's size is missing", 11, "avgpool to 7x7");
    check_refused("avgpool to 3 stride 2; dense 2", "\"stride\" does not belong here", 14,
                  "avgpool to HEIGHTxWIDTH");
    check_refused("convtranspose 4 3 pad 3; dense 2", "the padding is larger than the window", 19,
                  "at most the window less 1");
    check_refused("convtranspose 4 3 stride 2 outpad 2; dense 2",
                  "the outpad is not below the stride", 28, "less than the stride");
    check_refused("convtranspose 4 3 groups 2; dense 2", "\"groups\" does not belong here", 19,
                  "[outpad Q]");
    check_refused("convtranspose 4 3 pad 1 pad 1; dense 2", "a layer has only one \"pad\"", 25,
                  "take one");
    check_refused("upsample; dense 2", "the layer's factor is missing", 9, "upsample 2");
    check_refused("upsample 256; dense 2", "invalid factor \"256\"", 10, "from 1 to 255");
    check_refused("upsample 2 relu; dense 2", "\"relu\" does not belong here", 12,
                  "upsample FACTOR [bilinear]");
    check_refused("globalpool 2; dense 2", "\"2\" does not belong here", 12, "globalpool; layers");
    check_refused("dense 2; avgpool 1", "the last layer is neither dense nor a convolution", 10,
                  "conv 10 1x1 softmax");
    check_refused("maxpool 2;", "the last layer is neither dense nor a convolution", 1,
                  "dense 10 softmax");
}

/* What newcomers wrote, and what they meant. */
static void test_advice(void **state) {
    static const struct {
        const char *text, *what, *advice;
        int column;
    } rows[] = {
        {"conv 8 3 padding 1; dense 2", "unknown word \"padding\"", "did you mean \"pad\"?", 10},
        {"conv 8 3 strides 2; dense 2", "unknown word \"strides\"", "mean \"stride\"?", 10},
        {"conv 8 3 stride=2; dense 2", "unknown word \"stride=2\"", "mean \"stride\"?", 10},
        {"conv 8 3 pad valid; dense 2", "invalid padding \"valid\"", "\"none\"", 14},
        {"conv 8 3 dilation 300; dense 2", "invalid dilation \"300\"", "from 1 to 255", 19},
        {"conv 8 3 3; dense 2", "\"3\" does not belong here", "HEIGHTxWIDTH", 10},
        {"conv(8, 3); dense 2", "unknown layer \"conv(8,\"", "separate words by blanks", 1},
        {"dense 9, dense 2", "invalid width \"9,\"", "layers by \";\"", 7},
        {"dense 9 relu dense 2", "\"dense\" does not belong here", "\";\" before it", 14},
        {"dense 9 leaky; dense 2", "unknown activation \"leaky\"", "mean \"leaky_relu\"?", 9},
        {"dense 9 leaky_relu 0.2; dense 2", "\"0.2\" does not belong here", "dense WIDTH", 20},
        {"dense 2 softmax;;", "a layer is empty", "take the semicolon out", 17},
        {"batchnorm 8; dense 2", "\"8\" does not belong here",
         "batchnorm [eps X] [momentum X] [ACTIVATION]", 11},
        {"batchnorm eps; dense 2", "a number is missing at the layer's end",
         "eps 0.001 momentum 0.01", 14},
        {"batchnorm eps 1e-60; dense 2", "invalid eps \"1e-60\"", "above 0, up to 1", 15},
        {"batchnorm momentum 1.1; dense 2", "invalid momentum \"1.1\"", "above 0", 20},
        {"layernorm momentum 1; dense 2", "\"momentum\" does not belong here",
         "layernorm [channels] [eps X]", 11},
        {"groupnorm 1 eps 1 eps 1; dense 2", "a layer has only one \"eps\"", "take one", 19},
        {"dense 9 droppath; dense 2", "the probability of droppath is missing", "between 0 and 1",
         17},
        {"dense 9 droppath 1; dense 2", "the probability of droppath is not between 0 and 1",
         "excluded", 18},
        {"dense 9 dropout 0.1 droppath 0.1; dense 2", "\"droppath\" does not belong here",
         "dropout", 21},
        {"layerscale 0; dense 2", "invalid factor \"0\"", "above 0, up to 65536", 12},
        {"layerscale 65537; dense 2", "invalid factor \"65537\"", "layerscale 1e-6", 12},
        {"attention; dense 2", "the layer's number of heads is missing", "\"attention 6 causal\"",
         10},
        {"attention 0; dense 2", "the layer's number of heads is 0", "from 1", 11},
        {"attention 8 kv 3; dense 2", "the heads cannot be divided among those of the keys",
         "must divide", 16},
        {"attention 8 window 4; dense 2", "a window needs \"causal\"", "causal window 256", 13},
        {"attention 8 window 4 causal window 4; dense 2", "a layer has only one \"window\"",
         "take one", 29},
        {"attention 8 relu; dense 2", "attention has no word \"relu\"", "the layer after it", 13},
        {"lstm; dense 2", "the layer's width is missing", "lstm 256", 5},
        {"gru 6000000; dense 2", "the layer's width is above 5592405", "lstm 256", 5},
        {"lstm 5 backward; dense 2", "unknown activation \"backward\"", "relu", 8},
        {"recurrent; dense 2", "the kind of the cell is missing", "recurrent gru", 10},
        {"recurrent 5; dense 2", "invalid kind of cell \"5\"", "lstm 256", 11},
        {"gated; dense 2", "the layer's width is missing", "gated 1024 silu", 6},
        {"gated 4; dense 2", "the activation of the gate is missing", "gated 1024 silu", 8},
        {"gated 4 softmax; dense 2", "softmax stands before the last layer", "use relu", 9},
        {"dense 2; gated 4 silu", "the last layer is neither dense nor a convolution", "dense 10",
         10},
        {"gated 4 silu stride 2; dense 2", "\"stride\" does not belong here", "product", 14},
        {"position; dense 2", "the kind of the positions is missing", "position rotary HEADS", 9},
        {"position fixed; dense 2", "invalid kind of positions \"fixed\"", "position sinusoid", 10},
        {"position rotary 2 base 0.5; dense 2", "invalid base \"0.5\"", "base 500000", 24},
        {"position rotary 2 scale; dense 2", "a number is missing at the layer's end",
         "scale takes the factor", 24},
        {"position rotary 2 scale 2 llama3 4 4 9; dense 2",
         "the first number of turns must be the lower one", "the least", 27},
        {"position rotary 2 relu; dense 2", "position rotary has no word \"relu\"", "rotary 8", 19},
        {"groupnorm -3; dense 2", "invalid number of groups \"-3\"", "\"groupnorm 8\"", 11},
        {"residual { dense 2 } stride 2; dense 2", "\"stride\" does not belong here",
         "residual { LAYERS", 22},
        {"lenet; dense 2", "this is not a layer: \"lenet\"", "give the name alone", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        check_refused(rows[i].text, rows[i].what, rows[i].column, rows[i].advice);
    check_canonical("CONV 8 3X5; dense 2", "conv 8 3x5 none; dense 2 none");
}

static void test_groups(void **state) {
    (void)state;
    check_canonical(
        "conv 8 3 groups 4 stride 2 relu; conv 8 3 DEPTHWISE pad 2; dense 2",
        "conv 8 3x3 stride 2 groups 4 relu; conv 8 3x3 pad 2 depthwise none; dense 2 none");
    check_canonical("conv 8 3 groups 1; dense 2", "conv 8 3x3 none; dense 2 none");
    check_refused("conv 8 3 groups; dense 2", "the layer's number of groups is missing", 16,
                  "groups 4");
    check_refused("conv 8 3 groups 0; dense 2", "the layer's number of groups is 0", 17,
                  "groups 4");
    check_refused("conv 8 3 groups 2 depthwise; dense 2",
                  "a layer has its groups already, before \"depthwise\"", 19, "once");
    static const char *const texts[] = {"conv 6 3 groups 4; dense 2", "conv 6 3 groups 3; dense 2",
                                        "conv 12 2 depthwise; dense 2",
                                        "conv 6 3 depthwise; dense 2"};
    static const char *const said[] = {"6 channels cannot be divided into 4 groups",
                                       "4 channels of the input cannot be divided into 3 groups",
                                       NULL, "6 channels cannot be divided into 4 groups"};
    for (int i = 0; i < 4; ++i) {
        qn__network network;
        qn__layer layer[QN__MAX_LAYERS];
        uint64_t parameters;
        qn_error err = {0};
        assert_int_equal(qn__network_parse(texts[i], &network, NULL), QN_OK);
        assert_int_equal(qn__network_contract(&network), 6);
        assert_int_equal(qn__network_program(&network, (qn__shape){4, 3, 3, QN__PICTURE}, layer,
                                             &parameters, &err),
                         said[i] ? QN_USAGE : QN_OK);
        if (said[i])
            assert_string_equal(err.what, said[i]);
        else
            assert_int_equal(parameters, 12 * 4 + 12 + 12 * 4 * 2 + 2);
    }
}

/* Deeper than blocks may stand in one another; the text is too long to be shown whole. */
static void test_too_deep(void **state) {
    (void)state;
    qn__network network;
    qn_error err = {0};
    char text[9 * 300 + 1] = "";
    for (int i = 0; i < 300; ++i)
        memcpy(text + 9 * i, "residual{", 10);
    assert_int_equal(qn__network_parse(text, &network, &err), QN_USAGE);
    assert_string_equal(err.what, "more than 8 blocks stand in one another");
    assert_non_null(strstr(err.where, "column 73:"));
}

static void test_refused_blocks(void **state) {
    (void)state;
    check_refused("residual conv 8 3", "the block's \"{\" is missing", 10, "residual { conv");
    check_refused("residual { dense 2; residual { dense 2 }; dense 2",
                  "the block's \"}\" is missing", 1, "residual { conv");
    check_refused("residual { dense 2; residual { dense 2; dense 2", "the block's \"}\" is missing",
                  21, "residual { conv");
    check_refused("residual { residual { } }; dense 2", "the block has no layers", 23, "conv");
    check_refused("residual { residual { dense 2 } | }; dense 2", "the shortcut has no layers", 35,
                  "block's input itself");
    check_refused("residual { }; dense 2", "the block has no layers", 12, "residual { conv");
    check_refused("residual { | dense 2 }; dense 2", "the block has no layers", 12, "conv");
    check_refused("residual { dense 2 | }; dense 2", "the shortcut has no layers", 22,
                  "without \"|\" the shortcut is the block's input itself");
    check_refused("residual { dense 2 | dense 2 | dense 2 }; dense 2",
                  "the block has a second shortcut", 30, "at most one \"|\"");
    check_refused("dense 2 }; dense 2", "no block is open at \"}\"", 9, "residual {");
    check_refused("dense 2 | dense 2", "no block is open at \"|\"", 9, "residual {");
    check_refused("residual { dense 2", "the block's \"}\" is missing", 1, "residual {");
    check_refused("dense 2; residual { dense 2; dense 2 softmax", "the block's \"}\" is missing",
                  10, "residual {");
    check_refused("residual { dense 2 softmax }; dense 2", "softmax stands before the last layer",
                  20, "relu");
    check_refused("residual { dense 2 } softmax; dense 2", "softmax stands before the last layer",
                  22, "relu");
    check_refused("dense 3; residual { dense 2 }",
                  "the last layer is neither dense nor a convolution", 10, "dense 10");
    check_refused("dense 3 {; dense 2", "\"{\" does not belong here", 9, "dense WIDTH");
    check_refused("residual { dense 2 } relu relu; dense 2", "\"relu\" does not belong here", 27,
                  "residual { LAYERS [| LAYERS] } [ACTIVATION]");
}

static void test_exact_place(void **state) {
    (void)state;
    qn__network network;
    qn_error err = {0};
    assert_int_equal(qn__network_parse("dense 500 tanhh; dense 10 softmax", &network, &err),
                     QN_USAGE);
    assert_string_equal(err.where, "model, column 11:\n  dense 500 tanhh; dense 10 softmax\n"
                                   "            ^");
}

/* Long and unprintable texts: the caret's line stays short, and the output is UTF-8 without control
 * characters. */
static void test_hostile_text(void **state) {
    (void)state;
    static char text[100001];
    qn__network network;
    static const char strange[] = "dense 5;\x1b[2J\xc3\xa4\x80\x01";
    qn_error err = {0};
    memset(text, 'x', 100000);
    assert_int_equal(qn__network_parse(text, &network, &err), QN_USAGE);
    assert_true(strlen(err.where) < 200);
    for (size_t i = 0; i < sizeof strange - 1; ++i)
        text[i] = strange[i];
    assert_int_equal(qn__network_parse(text, &network, &err), QN_USAGE);
    assert_non_null(strstr(err.where, "model, column 9:\n  dense 5;?[2J\xc3\xa4??xxx"));
    for (const char *p = err.where; *p != '\0'; ++p)
        assert_true(*p == '\n' || (*p >= ' ' && *p <= '~') || (unsigned char)*p >= 0x80);
}

/* Random texts from the words of the language: none may crash, and an accepted text is a fixed
 * point. */
static void test_random_texts(void **state) {
    (void)state;
    static const char *const words[] = {"dense 5",
                                        "dense 10",
                                        "dense",
                                        "tanh",
                                        "softmax",
                                        "dropout 0.5",
                                        "dropout",
                                        "0.2",
                                        ";",
                                        ";",
                                        ";",
                                        "x",
                                        "1e9",
                                        "conv 3 3x2",
                                        "pad",
                                        "same",
                                        "stride 2x1",
                                        "none",
                                        "maxpool 2",
                                        "dilation 2",
                                        "; dense 3",
                                        "residual { dense 3 }",
                                        "residual { dense 3 ;",
                                        "| dense 2",
                                        "} relu;"};
    uint32_t seed = 12345, accepted = 0, blocks = 0;
    for (int round = 0; round < 30000; ++round) {
        char text[256] = "";
        for (int i = 0; i < 2 + round % 7; ++i) {
            seed = seed * 1664525u + 1013904223u;
            strcat(strcat(text, words[(seed >> 16) % (sizeof words / sizeof words[0])]), " ");
        }
        qn__network one, other;
        if (qn__network_parse(text, &one, NULL) != QN_OK)
            continue;
        ++accepted;
        qn__text again = {0};
        qn__network_text(&one, &again);
        blocks += strstr(again.data, "residual") != NULL;
        assert_int_equal(qn__network_parse(again.data, &other, NULL), QN_OK);
        assert_memory_equal(&one, &other, sizeof one);
        qn__text_release(&again);
    }
    assert_true(accepted > 100 && blocks > 10);
}

/* -------------------------------------------------------------------------------------- numbers */

static void test_program(void **state) {
    (void)state;
    qn__network network;
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    assert_int_equal(
        qn__network_parse("dense 5 relu dropout 0.2; dense 3 tanh; dense 2", &network, NULL),
        QN_OK);
    assert_int_equal(
        qn__network_program(&network, (qn__shape){7, 1, 1, QN__PICTURE}, layer, &parameters, NULL),
        QN_OK);
    assert_int_equal(parameters, 7 * 5 + 5 + 5 * 3 + 3 + 3 * 2 + 2);
    const uint64_t expected[3][4] = {{7, 5, 0, 35}, {5, 3, 40, 55}, {3, 2, 58, 64}};
    for (int l = 0; l < 3; ++l) {
        assert_int_equal(layer[l].in, expected[l][0]);
        assert_int_equal(layer[l].out, expected[l][1]);
        assert_int_equal(layer[l].weights, expected[l][2]);
        assert_int_equal(layer[l].biases, expected[l][3]);
        assert_int_equal(layer[l].kind, QN__LAYER_DENSE);
        assert_int_equal(layer[l].depth, expected[l][0]);
        assert_int_equal(qn__shape_volume(layer[l].from), expected[l][0]);
        assert_int_equal(qn__shape_volume(layer[l].to), expected[l][1]);
        for (int d = 0; d < 2; ++d) {
            assert_int_equal(layer[l].window.kernel[d], 1);
            assert_int_equal(layer[l].window.stride[d], 1);
            assert_int_equal(layer[l].window.pad[d], 0);
            assert_int_equal(layer[l].window.dilation[d], 1);
        }
    }
    /* RN(0.2) * 2^32 = 858993472, and 1 / RN(1 - RN(0.2)) is 1.25 rounded: exact fractions in
     * Python. */
    assert_int_equal(layer[0].drop_threshold, 858993472);
    assert_true(layer[0].drop_keep == 1.25f);
    assert_int_equal(layer[1].drop_threshold, 0);
    assert_true(layer[1].drop_keep == 1.0f);
}

/* Shapes from layer to layer; pools have no parameters, and a dense layer takes all pixels. */
static void test_shapes(void **state) {
    (void)state;
    static const uint32_t to[][3] = {{8, 14, 15}, {8, 7, 7}, {5, 9, 4},
                                     {5, 1, 1},   {4, 1, 1}, {2, 1, 1}};
    static const uint32_t input[] = {3, 28, 15};
    static const uint64_t ends[] = {8 * 27 + 8, 224, 224 + 5 * 48 + 5, 469, 469 + 24, 493 + 10};
    qn__network network;
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    qn_error err = {0};
    assert_int_equal(
        qn__network_parse("conv 8 3 stride 2x1; maxpool 2; conv 5 1x6 pad 1 dilation 1x1; "
                          "globalpool; dense 4; dense 2",
                          &network, NULL),
        QN_OK);
    assert_int_equal(qn__network_program(&network, (qn__shape){3, 28, 15, QN__PICTURE}, layer,
                                         &parameters, NULL),
                     QN_OK);
    for (uint32_t l = 0; l < network.layers; ++l) {
        assert_memory_equal(&layer[l].to, to[l], sizeof to[l]);
        assert_int_equal(qn__layer_end(&layer[l]), ends[l]);
        assert_int_equal(layer[l].out, to[l][0] * to[l][1] * to[l][2]);
        assert_memory_equal(&layer[l].from, l ? to[l - 1] : input, sizeof input);
    }
    assert_int_equal(layer[2].depth, 48);
    assert_int_equal(parameters, 503);
    /* Nothing is left of 3x3 pixels for the second pool. */
    assert_int_equal(qn__network_parse("maxpool 2; maxpool 2; dense 2", &network, NULL), QN_OK);
    assert_int_equal(
        qn__network_program(&network, (qn__shape){1, 3, 3, QN__PICTURE}, layer, &parameters, &err),
        QN_USAGE);
    assert_string_equal(err.what, "a window of 2x2 pixels does not fit into 1x1 pixels");
    assert_string_equal(err.where, "model, layer 1");
    /* The same pixels are features for a dense layer, and all of a picture after a pool. */
    assert_int_equal(qn__network_parse("dense 2", &network, NULL), QN_OK);
    assert_int_equal(qn__network_program(&network, (qn__shape){3, 28, 15, QN__PICTURE}, layer,
                                         &parameters, NULL),
                     QN_OK);
    assert_int_equal(layer[0].from.channels, 3 * 28 * 15);
    assert_int_equal(qn__network_parse("avgpool 2; dense 2", &network, NULL), QN_OK);
    assert_int_equal(qn__network_program(&network, (qn__shape){3, 28, 15, QN__PICTURE}, layer,
                                         &parameters, NULL),
                     QN_OK);
    assert_int_equal(layer[1].window.kernel[0], 14);
    assert_int_equal(layer[1].window.kernel[1], 7);
    assert_int_equal(layer[1].depth, 3 * 14 * 7);
}

/* 24.30: the first of a path reads the input of the block around it, however deep. */
static void test_nested_sources(void **state) {
    (void)state;
    static const int32_t source[] = {-1, 0, 0, 1, 0, 0, 5, 4, 3, 8},
                         other[] = {[3] = 2, [6] = 0, [7] = 6, [8] = 7};
    qn__network network;
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    assert_int_equal(qn__network_parse("dense 3; residual { residual { dense 3 | dense 3 } | "
                                       "residual { dense 3 | residual { dense 3 } } }; dense 2",
                                       &network, NULL),
                     QN_OK);
    assert_int_equal(network.layers, 10);
    assert_int_equal(qn__network_contract(&network), 8);
    assert_int_equal(
        qn__network_program(&network, (qn__shape){3, 1, 1, QN__PICTURE}, layer, &parameters, NULL),
        QN_OK);
    for (uint32_t l = 0; l < network.layers; ++l) {
        assert_int_equal(qn__layer_source(layer, l), source[l]);
        if (layer[l].kind == QN__LAYER_ADD)
            assert_int_equal(qn__layer_other(layer, l), other[l]);
    }
}

/* What the layers of blocks read: both paths their block's input, the sum both paths. */
static void test_block_sources(void **state) {
    (void)state;
    static const int32_t source[] = {-1, 0, -1, 1, 3, 4, 5}, other[] = {[3] = 2, [5] = 3};
    qn__network network;
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    qn_error err = {0};
    assert_int_equal(
        qn__network_parse("residual { conv 8 3 stride 2; conv 8 1 | maxpool 1 stride 2 }; "
                          "residual { conv 8 3 } relu dropout 0.5; dense 2",
                          &network, NULL),
        QN_OK);
    assert_int_equal(network.layers, 7);
    assert_int_equal(qn__network_contract(&network), 6);
    assert_int_equal(
        qn__network_program(&network, (qn__shape){8, 6, 5, QN__PICTURE}, layer, &parameters, NULL),
        QN_OK);
    for (uint32_t l = 0; l < 7; ++l) {
        const int add = layer[l].kind == QN__LAYER_ADD;
        const qn__shape from = source[l] < 0 ? layer[0].from : layer[source[l]].to;
        assert_int_equal(qn__layer_source(layer, l), source[l]);
        assert_int_equal(add, l == 3 || l == 5);
        assert_memory_equal(&layer[l].from, &from, sizeof from);
        if (add)
            assert_int_equal(qn__layer_other(layer, l), other[l]);
    }
    assert_int_equal(layer[5].activation, QN__ACT_RELU);
    assert_true(layer[5].drop_keep == 2.0f);
    assert_int_equal(parameters, 8 * 72 + 8 + 8 * 8 + 8 + 8 * 72 + 8 + 8 * 9 * 2 + 2);
    assert_int_equal(
        qn__network_program(&network, (qn__shape){3, 6, 5, QN__PICTURE}, layer, &parameters, &err),
        QN_USAGE);
    assert_string_equal(err.what,
                        "a residual block adds outputs of different shapes: 8x3x3 of layer 1 "
                        "and 3x3x3 of layer 2");
    assert_string_equal(err.where, "model, layer 3");
    assert_non_null(strstr(err.remedy, "give the block a shortcut"));
    assert_int_equal(qn__network_parse("residual { dense 3 } tanh; dense 2", &network, NULL),
                     QN_OK);
    assert_int_equal(
        qn__network_program(&network, (qn__shape){2, 2, 1, QN__PICTURE}, layer, &parameters, &err),
        QN_USAGE);
    assert_string_equal(err.what,
                        "a residual block adds outputs of different shapes: 3x1x1 of layer 0 "
                        "and 4x1x1 of the network's input");
}

/* The threshold of 6.5 at the ends of the range, where rounding is critical. */
static void test_thresholds(void **state) {
    (void)state;
    const struct {
        float chance;
        uint32_t threshold;
    } cases[] = {
        {0x1.fffffep-1f, 4294967040u}, /* the largest below 1 */
        {0x1p-33f, 1},                 /* 1/2 + 1/2 */
        {0x1.fffffep-34f, 0},          /* just below */
        {0x1.8p-32f, 2},               /* 1.5 + 0.5 */
        {0x1.7ffffep-32f, 1},
        {0x1p-149f, 0},
        {0.5f, 2147483648u},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        qn__network network = {
            .layers = 2,
            .layer = {{.out = 3, .activation = QN__ACT_RELU, .dropout = cases[i].chance},
                      {.out = 2}}};
        qn__layer layer[2];
        uint64_t parameters;
        assert_int_equal(qn__network_program(&network, (qn__shape){1, 1, 1, QN__PICTURE}, layer,
                                             &parameters, NULL),
                         QN_OK);
        assert_int_equal(layer[0].drop_threshold, cases[i].threshold);
    }
}

static void test_too_many_parameters(void **state) {
    (void)state;
    qn__network network = {.layers = 700};
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters = 77;
    qn_error err = {0};
    for (int l = 0; l < QN__MAX_LAYERS; ++l)
        network.layer[l].out = QN__MAX_WIDTH;
    assert_int_equal(qn__network_program(&network, (qn__shape){UINT32_MAX, 1, 1, QN__PICTURE},
                                         layer, &parameters, &err),
                     QN_OK);
    /* 2^24 * (2^32 - 1) + 2^24 + 699 * (2^48 + 2^24), in Python */
    assert_true(parameters == 268808614485950464u);
    network.layers = QN__MAX_LAYERS; /* more than 2^58 */
    assert_int_equal(qn__network_program(&network, (qn__shape){UINT32_MAX, 1, 1, QN__PICTURE},
                                         layer, &parameters, &err),
                     QN_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical_text),  cmocka_unit_test(test_advice),
        cmocka_unit_test(test_groups),          cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_refused_blocks),  cmocka_unit_test(test_too_deep),
        cmocka_unit_test(test_block_sources),   cmocka_unit_test(test_nested_sources),
        cmocka_unit_test(test_windows),         cmocka_unit_test(test_normalisations),
        cmocka_unit_test(test_positions),       cmocka_unit_test(test_gated),
        cmocka_unit_test(test_refused_windows), cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_most_layers),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_exact_place),     cmocka_unit_test(test_hostile_text),
        cmocka_unit_test(test_random_texts),    cmocka_unit_test(test_program),
        cmocka_unit_test(test_thresholds),      cmocka_unit_test(test_too_many_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
