#include "store/sign/signature.h"
#include "base/digest/hmac.h"
#include "base/digest/sha256.h"
#include "base/memory.h"
#include "store/sign/secret.h"
#include <stdio.h>
#include <string.h>

enum { NAMES = 512, DATE = 8, SCOPE = 128 };

size_t qn__uri_encode(const char *text, int slashes, char *out, size_t capacity) {
    static const char digits[] = "0123456789ABCDEF";
    size_t size = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        const unsigned char c = *at, low = c | 0x20;
        const int stays = (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
                          c == '.' || c == '_' || c == '~' || (slashes && c == '/');
        const size_t more = stays ? 1 : 3;
        if (size + more < capacity) {
            out[size] = stays ? (char)c : '%';
            if (!stays) {
                out[size + 1] = digits[c >> 4];
                out[size + 2] = digits[c & 15];
            }
        }
        size += more;
    }
    if (capacity > 0)
        out[size < capacity ? size : capacity - 1] = '\0';
    return size;
}

static void add_text(qn__sha256 *hash, const char *text) {
    qn__sha256_add(hash, text, strlen(text));
}

/* The digest of the canonical request. */
static void digest_request(const qn__signing *s, const char *names, char digest[65]) {
    qn__sha256 hash;
    uint8_t bytes[32];
    qn__sha256_begin(&hash);
    const char *const parts[] = {s->method, "\n", s->path, "\n", s->query, "\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        add_text(&hash, parts[i]);
    for (size_t i = 0; i < s->headers; i++) {
        add_text(&hash, s->header[i].name);
        add_text(&hash, ":");
        add_text(&hash, s->header[i].value);
        add_text(&hash, "\n");
    }
    add_text(&hash, "\n");
    add_text(&hash, names);
    add_text(&hash, "\n");
    add_text(&hash, s->payload);
    qn__sha256_end(&hash, bytes);
    qn__hex(bytes, digest);
}

/* The key of a day, a region and a service, made in secret memory. */
static qn_status sign_text(const qn__signing *s, const char *text, char code[65], qn_error *err) {
    const size_t size = strlen(s->secret) + 5;
    char *key = qn__secret_make(size + 32, err);
    if (!key)
        return QN_MEMORY;
    uint8_t *derived = (uint8_t *)key + size;
    snprintf(key, size, "AWS4%s", s->secret);
    qn__hmac_sha256(key, size - 1, s->date, DATE, derived);
    const char *const parts[] = {s->region, s->service, "aws4_request", text};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        qn__hmac_sha256(derived, 32, parts[i], strlen(parts[i]), derived);
    qn__hex(derived, code);
    qn__secret_free(key);
    return QN_OK;
}

qn_status qn__sign(const qn__signing *s, char authorization[QN__SIGN_LINE], qn_error *err) {
    char names[NAMES] = "", digest[65], scope[SCOPE], text[SCOPE + 128], code[65];
    size_t size = 0;
    for (size_t i = 0; i < s->headers && size < sizeof names; i++)
        size += (size_t)snprintf(names + size, sizeof names - size, "%s%s", i ? ";" : "",
                                 s->header[i].name);
    const int scoped =
        snprintf(scope, sizeof scope, "%.8s/%s/%s/aws4_request", s->date, s->region, s->service);
    if (size >= sizeof names || scoped < 0 || scoped >= SCOPE)
        return qn__fail(err, QN_USAGE, "the name of the region or of a header is too long");
    digest_request(s, names, digest);
    snprintf(text, sizeof text, "AWS4-HMAC-SHA256\n%.16s\n%s\n%s", s->date, scope, digest);
    const qn_status status = sign_text(s, text, code, err);
    if (status != QN_OK)
        return status;
    const int length = snprintf(authorization, QN__SIGN_LINE,
                                "AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s",
                                s->key_id, scope, names, code);
    return length > 0 && length < QN__SIGN_LINE
               ? QN_OK
               : qn__fail(err, QN_USAGE, "the key's name in the credentials is too long");
}
