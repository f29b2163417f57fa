/* Initial parameters and learning rates, against numbers computed by the independent program in
 * tests/oracle (bits of float32). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/recipe/initial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* "dense 3 relu; dense 2 softmax" over 5 features: 15 + 3 + 6 + 2 parameters. */
enum { ALL = 26 };

static void initialise(qn__init init, float *parameter) {
    qn__network network;
    qn__layer layer[2];
    uint64_t parameters;
    assert_int_equal(qn__network_parse("dense 3 relu; dense 2 softmax", &network, NULL), QN_OK);
    assert_int_equal(
        qn__network_program(&network, (qn__shape){5, 1, 1, QN__PICTURE}, layer, &parameters, NULL),
        QN_OK);
    assert_int_equal(parameters, ALL);
    for (int i = 0; i < ALL; ++i)
        parameter[i] = NAN;
    const qn__recipe r = {.init = init, .seed = 0x123456789abcdef0u};
    qn__initial_parameters(layer, 2, &r, parameter);
}

static void test_against_the_oracle(void **state) {
    (void)state;
    static const uint32_t expected[3][ALL] = {{0x3ed3d275u, 0xbed979f0u,
                                               0x3e8d138au, 0x3c83811du,
                                               0x3eb438b6u, 0x3f03759cu,
                                               0xbf0f0d62u, 0x3c48803eu,
                                               0xbef83e4au, 0xbf4a5d4au,
                                               0xbe733c83u, 0x3e554294u,
                                               0x3f10bea9u, 0x3e938c34u,
                                               0x3f453735u, 0,
                                               0,           0,
                                               0xbedc5192u, 0x3f3b8036u,
                                               0x3ee3559fu, 0xbccdc746u,
                                               0xbe290195u, 0xbe8d247bu,
                                               0,           0},
                                              {0x3f05f7d3u, 0xbf098b4bu,
                                               0x3eb272f2u, 0x3ca65760u,
                                               0x3ee3f6d7u, 0x3f2648d3u,
                                               0xbf34f2cbu, 0x3c7d9daau,
                                               0xbf1d00bcu, 0xbf7ff917u,
                                               0xbe99d611u, 0x3e86e0a5u,
                                               0x3f3716dau, 0x3ebaa27bu,
                                               0x3f7975d4u, 0,
                                               0,           0,
                                               0xbf0e370eu, 0x3f721001u,
                                               0x3f12be67u, 0xbd04d453u,
                                               0xbe5a2fa0u, 0xbeb636d4u,
                                               0,           0},
                                              {0x3ebd759fu, 0xbec28449u,
                                               0x3e7c5d71u, 0x3c6b3dfdu,
                                               0x3ea131eeu, 0x3eeb2968u,
                                               0xbeffe653u, 0x3c335561u,
                                               0xbede091cu, 0xbf350010u,
                                               0xbe598ea7u, 0x3e3ebee1u,
                                               0x3f0176b2u, 0x3e83f87du,
                                               0x3f306522u, 0,
                                               0,           0,
                                               0xbec91f5au, 0x3f2b29ffu,
                                               0x3ecf86eau, 0xbcbbd960u,
                                               0xbe1a47e4u, 0xbe80d84au,
                                               0,           0}};
    const qn__init init[3] = {QN__INIT_GLOROT, QN__INIT_HE, QN__INIT_LECUN};
    float parameter[ALL];
    for (int r = 0; r < 3; ++r) {
        initialise(init[r], parameter);
        for (int i = 0; i < ALL; ++i)
            assert_int_equal(bits_of(parameter[i]), expected[r][i]);
    }
}

/* auto is he for the layer with relu and glorot for the one with softmax. */
static void test_auto(void **state) {
    (void)state;
    float automatic[ALL], he[ALL], glorot[ALL];
    initialise(QN__INIT_AUTO, automatic);
    initialise(QN__INIT_HE, he);
    initialise(QN__INIT_GLOROT, glorot);
    assert_memory_equal(automatic, he, 18 * sizeof(float));
    assert_memory_equal(automatic + 18, glorot + 18, 8 * sizeof(float));
}

/* Every weight of a larger layer is within the bound, none is 0, and the mean is near 0. */
static void test_spread(void **state) {
    (void)state;
    qn__layer layer = qn__layer_flat(301, 67, QN__ACT_NONE, 0);
    float *parameter = malloc((301 * 67 + 67) * sizeof *parameter);
    assert_non_null(parameter);
    const qn__recipe r = {.init = QN__INIT_LECUN, .seed = 1};
    qn__initial_parameters(&layer, 1, &r, parameter);
    const float limit = sqrtf(3.0f / 301.0f);
    double sum = 0, squares = 0;
    for (int i = 0; i < 301 * 67; ++i) {
        assert_true(fabsf(parameter[i]) < limit && parameter[i] != 0.0f);
        sum += parameter[i];
        squares += (double)parameter[i] * parameter[i];
    }
    /* A uniform distribution has the variance limit^2 / 3; 20,167 draws are within a few percent of
     * it. */
    const double variance = (double)limit * limit / 3 * 301 * 67;
    assert_true(fabs(sum) < 4 * sqrt(variance));
    assert_true(fabs(squares / variance - 1) < 0.03);
    free(parameter);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_the_oracle),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
