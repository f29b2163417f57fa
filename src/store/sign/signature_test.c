/* Signatures against the examples that AWS publishes ("Signature Calculations for the Authorization
 * Header: Transferring Payload in a Single Chunk", Amazon S3 API Reference), and HMAC against
 * RFC 4231. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/digest/hmac.h"
#include "base/digest/sha256.h"
#include "store/sign/secret.h"
#include "store/sign/signature.h"

#include <stdlib.h>
#include <string.h>

#define HOST "examplebucket.s3.amazonaws.com"
#define DATE "20130524T000000Z"

static void test_hmac(void **state) {
    (void)state;
    uint8_t code[32], key[131];
    char text[65];
    qn__hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, code);
    qn__hex(code, text);
    assert_string_equal(text, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xAA, sizeof key);
    qn__hmac_sha256(key, sizeof key, "Test Using Larger Than Block-Size Key - Hash Key First", 54,
                    code);
    qn__hex(code, text);
    assert_string_equal(text, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void check(const char *method, const char *path, const char *query,
                  const qn__signed_header *header, size_t headers, const char *payload,
                  const char *signature) {
    char line[QN__SIGN_LINE];
    const qn__signing signing = {.method = method,
                                 .path = path,
                                 .query = query,
                                 .header = header,
                                 .headers = headers,
                                 .payload = payload,
                                 .date = DATE,
                                 .region = "us-east-1",
                                 .service = "s3",
                                 .key_id = "AKIAIOSFODNN7EXAMPLE",
                                 .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
    assert_int_equal(qn__sign(&signing, line, NULL), QN_OK);
    assert_string_equal(strstr(line, "Signature=") + 10, signature);
    assert_non_null(
        strstr(line, "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"));
}

static void test_published_vectors(void **state) {
    (void)state;
    const qn__signed_header object[] = {{"host", HOST},
                                        {"range", "bytes=0-9"},
                                        {"x-amz-content-sha256", QN__SIGN_EMPTY},
                                        {"x-amz-date", DATE}};
    check("GET", "/test.txt", "", object, 4, QN__SIGN_EMPTY,
          "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    const char *body = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    const qn__signed_header put[] = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                     {"host", HOST},
                                     {"x-amz-content-sha256", body},
                                     {"x-amz-date", DATE},
                                     {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
    check("PUT", "/test%24file.text", "", put, 5, body,
          "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    const qn__signed_header bucket[] = {
        {"host", HOST}, {"x-amz-content-sha256", QN__SIGN_EMPTY}, {"x-amz-date", DATE}};
    check("GET", "/", "lifecycle=", bucket, 3, QN__SIGN_EMPTY,
          "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    check("GET", "/", "max-keys=2&prefix=J", bucket, 3, QN__SIGN_EMPTY,
          "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void test_encoding(void **state) {
    (void)state;
    char text[32];
    assert_int_equal(qn__uri_encode("a b/\xC3\xA9~$", 1, text, sizeof text), 16);
    assert_string_equal(text, "a%20b/%C3%A9~%24");
    assert_int_equal(qn__uri_encode("a/b", 0, text, sizeof text), 5);
    assert_string_equal(text, "a%2Fb");
    assert_int_equal(qn__uri_encode("abc", 0, text, 2), 3);
    assert_string_equal(text, "a");
}

static void test_secrets(void **state) {
    (void)state;
    char *secret = qn__secret_make(100, NULL);
    assert_non_null(secret);
    assert_int_equal(secret[0] | secret[99], 0);
    memset(secret, 'x', 100);
    qn__secret_free(secret);
    qn__secret_free(NULL);
    secret = qn__secret_make(100, NULL); /* the same bytes again */
    assert_non_null(secret);
    assert_int_equal(secret[0] | secret[99], 0);
    qn__secret_free(secret);
    assert_null(qn__secret_make(SIZE_MAX / 2, NULL));
    setenv("QUERN_TEST_SECRET", "", 1);
    assert_null(qn__secret_variable("QUERN_TEST_SECRET"));
    setenv("QUERN_TEST_SECRET", "s", 1);
    assert_string_equal(qn__secret_variable("QUERN_TEST_SECRET"), "s");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hmac), cmocka_unit_test(test_published_vectors),
        cmocka_unit_test(test_encoding), cmocka_unit_test(test_secrets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
