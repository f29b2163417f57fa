/* NULL in every place of the functions of servers and watches, as null_test.c does for the others.
 */
#include "null_case_test.h"
#include <quern/serve.h>
#include <quern/watch.h>

static void test_servers(void **state) {
    (void)state;
    qn_server *server;
    qn_model *model = NULL;
    qn_server_options options;
    qn_server_options_init(NULL);
    qn_server_options_init(&options);
    options.listen = "127.0.0.1:0";
    REFUSED(qn_server_make, "options", NULL, &server);
    REFUSED(qn_server_make, "out", &options, NULL);
    REFUSED(qn_server_load, "server", NULL, "a");
    REFUSED(qn_server_add, "server", NULL, "a", NULL, model);
    REFUSED(qn_server_start, "server", NULL);
    REFUSED(qn_server_run, "server", NULL);
    qn_server_stop(NULL);
    qn_server_reload(NULL);
    qn_server_free(NULL);
    assert_string_equal(qn_server_address(NULL), "");
    if (!*qn_server_library())
        return;
    assert_int_equal(qn_server_make(&options, &server, NULL), QN_OK);
    REFUSED(qn_server_load, "what", server, NULL);
    REFUSED(qn_server_add, "name", server, NULL, NULL, model);
    REFUSED(qn_server_add, "model", server, "a", NULL, NULL);
    assert_int_equal(qn_server_run(server, NULL), QN_USAGE);
    qn_server_free(server);
}

static void test_watches(void **state) {
    (void)state;
    qn_watch *watch;
    qn_watch_options options;
    qn_watch_options_init(NULL);
    qn_watch_options_init(&options);
    REFUSED(qn_watch_make, "model", NULL, &options, &watch);
    assert_null(watch);
    REFUSED(qn_watch_make, "out", NULL, &options, NULL);
    REFUSED(qn_watch_run, "watch", NULL, NULL);
    qn_watch_stop(NULL);
    qn_watch_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_servers),
                                       cmocka_unit_test(test_watches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
