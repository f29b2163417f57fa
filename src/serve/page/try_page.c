/* One file without outside resources: a browser is told to take its own script and style alone, by
 * their digests, and to ask this server alone. */
#include "serve/page/try_page.h"

#include "base/digest/sha256.h"
#include "base/markup.h"
#include "try_page_text.h"

#include <pthread.h>
#include <string.h>

static char policy[512];
static pthread_once_t policy_made = PTHREAD_ONCE_INIT;

/* Appends the digest of what stands between two marks of the page, as a policy has it. */
static void add_digest(qn__text *text, const char *before, const char *after) {
    uint8_t digest[32];
    const char *begin = strstr(qn__text_try_page, before) + strlen(before);
    qn__sha256_of(begin, (size_t)(strstr(begin, after) - begin), digest);
    qn__text_add(text, "'sha256-");
    qn__markup_add_base64(text, digest, sizeof digest);
    qn__text_add(text, "'");
}

static void make_policy(void) {
    qn__text text = {0};
    qn__text_add(&text, "default-src 'none'; script-src ");
    add_digest(&text, "<script>", "</script>");
    qn__text_add(&text, "; style-src ");
    add_digest(&text, "<style>", "</style>");
    qn__text_add(&text, "; img-src blob: data:; connect-src 'self'; base-uri 'none'; form-action "
                        "'none'; frame-ancestors 'none'");
    if (!text.failed && text.size < sizeof policy)
        memcpy(policy, text.data, text.size + 1);
    qn__text_release(&text);
}

static void show_page(qn__request *request, void *user) {
    (void)user;
    pthread_once(&policy_made, make_policy);
    if (!*policy) {
        qn__answer_refusal(request, 500, "out of memory");
        return;
    }
    qn__answer_header(request, "Content-Security-Policy", policy);
    qn__answer_header(request, "X-Content-Type-Options", "nosniff");
    qn__answer_header(request, "Referrer-Policy", "no-referrer");
    qn__answer_header(request, "Cache-Control", "no-cache");
    qn__answer_text(request, 200, "text/html; charset=utf-8", qn__text_try_page);
}

static void add_model(void *user, const qn__model_state *state) {
    qn__text *text = user;
    if (!state->served)
        return;
    qn__text_add(text, text->data[text->size - 1] == '[' ? "" : ",");
    qn__try_page_model(text, state->served);
}

static void list_models(qn__request *request, void *user) {
    qn__text text = {0};
    qn__text_add(&text, "{\"models\":[");
    qn__models_list(user, add_model, &text);
    qn__text_add(&text, "]}");
    qn__answer_grown(request, 200, "application/json", &text);
}

static const qn__route routes[] = {{.method = "GET", .path = "/", .handle = show_page, .open = 1},
                                   {.method = "GET", .path = "/page/models", .handle = list_models},
                                   {.method = NULL}};

void qn__try_page_add(qn__http *http, qn__models *models) { qn__http_add(http, routes, models); }
