/* gRPC on sockets: a server and clients in one loop, in cleartext and over TLS 1.3. A call crosses,
 * a stranger is refused with its reason, certificates change without a restart, a drain ends, and
 * everything is closed at the end. */
#include "certs.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/check.h"
#include "net/grpc.h"

enum { PATIENCE_MS = 20000 };

struct world {
    struct loop *loop;
    struct grpc_server *server;
    struct grpc_client *client;
    struct loop_timer *patience;
    /* server */
    struct grpc_call *served;
    unsigned calls, served_messages, served_ends, lost;
    char identity[256], lost_why[400], token[64];
    enum grpc_status served_status;
    /* client */
    struct grpc_call *call;
    unsigned ups, downs, messages, ends;
    enum grpc_status status;
    char text[300];
    struct err down;
    uint64_t bytes;
};

static void impatient(void *arg)
{
    (void)arg;
    fail_msg("nothing happened in time");
}

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    w->loop = loop_new();
    w->patience = loop_timer_new(w->loop, impatient, w);
    loop_timer_at(w->patience, loop_now_ms(w->loop) + PATIENCE_MS);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    grpc_client_close(w->client);
    grpc_server_close(w->server);
    loop_timer_close(w->patience);
    assert_int_equal(loop_open_handles(w->loop), 0);
    loop_free(w->loop);
    free(w);
    return 0;
}

static void stop(struct world *w)
{
    loop_stop(w->loop);
}

/* ---- server ---- */

static void served_message(void *arg, const uint8_t *data, size_t len)
{
    struct world *w = arg;
    w->served_messages++;
    grpc_call_send(w->served, data, len);
}

static void served_half(void *arg)
{
    struct world *w = arg;
    grpc_call_finish(w->served, GRPC_OK, "");
}

static void served_end(void *arg, enum grpc_status status, const char *text)
{
    struct world *w = arg;
    (void)text;
    w->served = NULL;
    w->served_ends++;
    w->served_status = status;
}

static const struct grpc_call_events served_events = {
    .on_message = served_message, .on_half = served_half, .on_end = served_end};

static bool on_call(void *arg, struct grpc_call *call)
{
    struct world *w = arg;
    w->calls++;
    snprintf(w->identity, sizeof(w->identity), "%s", grpc_call_identity(call));
    snprintf(w->token, sizeof(w->token), "%s", grpc_call_token(call));
    if (!strcmp(grpc_call_path(call), "/test/secret")) {
        grpc_call_finish(call, GRPC_UNAUTHENTICATED, "who are you?");
        return true;
    }
    w->served = call;
    grpc_call_listen(call, &served_events, w);
    return true;
}

static void on_lost(void *arg, const char *peer, const struct err *why)
{
    struct world *w = arg;
    assert_true(peer[0] != 0);
    w->lost++;
    snprintf(w->lost_why, sizeof(w->lost_why), "%s", why->text);
    stop(w);
}

static void serve(struct world *w, struct tls_context *tls, const struct grpc_limits *limits)
{
    struct err err = {0};
    struct grpc_server_config config = {
        .address = "tcp:127.0.0.1:0", .tls = tls, .on_call = on_call, .on_lost = on_lost, .arg = w};
    if (limits)
        config.limits = *limits;
    w->server = grpc_server_new(w->loop, &config, &err);
    assert_non_null(w->server);
}

/* ---- client ---- */

static void on_message(void *arg, const uint8_t *data, size_t len)
{
    struct world *w = arg;
    (void)data;
    w->messages++;
    w->bytes += len;
}

static void on_end(void *arg, enum grpc_status status, const char *text)
{
    struct world *w = arg;
    w->call = NULL;
    w->ends++;
    w->status = status;
    snprintf(w->text, sizeof(w->text), "%s", text);
    stop(w);
}

static const struct grpc_call_events events = {.on_message = on_message, .on_end = on_end};

static void on_up(void *arg)
{
    struct world *w = arg;
    w->ups++;
    stop(w);
}

static void on_down(void *arg, const struct err *why)
{
    struct world *w = arg;
    w->downs++;
    w->down = *why;
    stop(w);
}

static void dial(struct world *w, struct tls_context *tls, const char *name)
{
    struct err err = {0};
    struct grpc_client_config config = {.target = grpc_server_address(w->server) + 4, /* tcp: */
                                        .tls = tls,
                                        .server_name = name,
                                        .on_up = on_up,
                                        .on_down = on_down,
                                        .arg = w};
    w->client = grpc_client_new(w->loop, &config, &err);
    assert_non_null(w->client);
    unsigned before = w->ups + w->downs;
    grpc_client_open(w->client);
    assert_int_equal(w->ups + w->downs, before); /* not inside the call */
    while (w->ups + w->downs == before)
        loop_run(w->loop);
}

static void call(struct world *w, const char *path)
{
    w->call =
        grpc_client_call(w->client, path, "t0ken", loop_now_ms(w->loop) + PATIENCE_MS, &events, w);
}

static void wait_end(struct world *w)
{
    for (unsigned before = w->ends; w->ends == before;)
        loop_run(w->loop);
}

static void echo_three(struct world *w)
{
    static uint8_t big[300000];
    unsigned before = w->messages;
    call(w, "/test/echo");
    grpc_call_send(w->call, "one", 3);
    grpc_call_send(w->call, "", 0);
    grpc_call_send(w->call, big, sizeof(big));
    grpc_call_half_close(w->call);
    wait_end(w);
    assert_int_equal(w->status, GRPC_OK);
    assert_int_equal(w->messages - before, 3);
    assert_string_equal(w->token, "t0ken");
}

/* ---- cleartext ---- */

static void test_a_call_crosses(void **state)
{
    struct world *w = *state;
    serve(w, NULL, NULL);
    dial(w, NULL, NULL);
    assert_int_equal(w->ups, 1);
    echo_three(w);
    echo_three(w);
    assert_int_equal(w->bytes, 2 * 300003);
    assert_int_equal(w->served_ends, 2);
    call(w, "/test/secret");
    wait_end(w);
    assert_int_equal(w->status, GRPC_UNAUTHENTICATED);
    assert_string_equal(w->text, "who are you?");
    assert_int_equal(grpc_server_connections(w->server), 1);
}

static void test_cleartext_stays_on_this_machine(void **state)
{
    struct world *w = *state;
    struct err err = {0};
    struct grpc_server_config sc = {.address = "tcp:0.0.0.0:0", .on_call = on_call, .arg = w};
    assert_null(grpc_server_new(w->loop, &sc, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    struct grpc_client_config cc = {
        .target = "192.0.2.1:1", .on_up = on_up, .on_down = on_down, .arg = w};
    assert_null(grpc_client_new(w->loop, &cc, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    cc.target = "127.0.0.1";
    assert_null(grpc_client_new(w->loop, &cc, &err));
    cc.target = "127.0.0.1:70000";
    assert_null(grpc_client_new(w->loop, &cc, &err));
}

static void test_unix_sockets(void **state)
{
    struct world *w = *state;
    struct err err = {0};
    char address[64];
    snprintf(address, sizeof(address), "unix:/tmp/txrelay-grpc-%d", (int)getpid());
    struct grpc_server_config config = {.address = address, .on_call = on_call, .arg = w};
    w->server = grpc_server_new(w->loop, &config, &err);
    assert_non_null(w->server);
    struct grpc_client_config cc = {
        .target = address, .on_up = on_up, .on_down = on_down, .arg = w};
    w->client = grpc_client_new(w->loop, &cc, &err);
    grpc_client_open(w->client);
    while (!w->ups)
        loop_run(w->loop);
    echo_three(w);
}

static void test_nobody_listens(void **state)
{
    struct world *w = *state;
    struct err err = {0};
    serve(w, NULL, NULL);
    struct grpc_client_config cc = {
        .target = grpc_server_address(w->server) + 4, .on_up = on_up, .on_down = on_down, .arg = w};
    w->client = grpc_client_new(w->loop, &cc, &err);
    w->server = grpc_server_close(w->server);
    grpc_client_open(w->client);
    while (!w->downs)
        loop_run(w->loop);
    assert_int_equal(w->down.code, ERR_NET);
    assert_non_null(strstr(w->down.text, "connection refused"));
    grpc_client_open(w->client); /* again, by the owner */
    while (w->downs < 2)
        loop_run(w->loop);
}

static int raw_connect(struct world *w)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET};
    const char *port = strrchr(grpc_server_address(w->server), ':') + 1;
    to.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static void test_connections_have_a_cap(void **state)
{
    struct world *w = *state;
    struct grpc_limits limits = {.connections_max = 1};
    serve(w, NULL, &limits);
    dial(w, NULL, NULL);
    int fd = raw_connect(w);
    while (!w->lost)
        loop_run(w->loop);
    assert_string_equal(w->lost_why, "refused: there are 1 connections already");
    echo_three(w); /* the first one is unharmed */
    close(fd);
}

static void test_a_socket_that_says_nothing_is_closed(void **state)
{
    struct world *w = *state;
    struct grpc_limits limits = {.up_ms = 50};
    serve(w, NULL, &limits);
    int fd = raw_connect(w);
    while (!w->lost)
        loop_run(w->loop);
    assert_string_equal(w->lost_why, "no HTTP/2 SETTINGS came in time");
    assert_int_equal(grpc_server_connections(w->server), 0);
    close(fd);
}

static void test_a_drain_waits_and_then_cuts(void **state)
{
    struct world *w = *state;
    serve(w, NULL, NULL);
    dial(w, NULL, NULL);
    call(w, "/test/echo");
    grpc_call_send(w->call, "x", 1);
    while (!w->messages)
        loop_turn(w->loop);
    grpc_server_drain(w->server, 200);
    wait_end(w);
    assert_int_equal(w->status, GRPC_UNAVAILABLE);
    assert_int_equal(w->served_ends, 1);
    while (!w->downs)
        loop_run(w->loop);
    assert_int_equal(grpc_server_connections(w->server), 0);
}

/* ---- TLS ---- */

static struct tls_context *context(struct certs *c, bool server, const char *name, const char *ca)
{
    struct err err = {0};
    char cert[600], key[600];
    snprintf(cert, sizeof(cert), "%s/%s.pem", c->folder, name ? name : "");
    snprintf(key, sizeof(key), "%s/%s.key", c->folder, name ? name : "");
    struct tls_config config = {.server = server,
                                .cert_file = name ? cert : NULL,
                                .key_file = name ? key : NULL,
                                .ca_file = ca};
    struct tls_context *t = tls_context_new(&config, &err);
    if (!t)
        print_message("%s\n", err.text);
    return t;
}

static void test_mutual_tls(void **state)
{
    struct world *w = *state;
    struct certs c, other;
    char ca[600], other_ca[600];
    certs_open(&c);
    certs_open(&other);
    certs_add(&c, "server", "DNS:relay.test,IP:127.0.0.1");
    certs_add(&c, "alice", "DNS:alice.test,URI:feed://alice");
    certs_add(&other, "mallory", "DNS:alice.test");
    snprintf(ca, sizeof(ca), "%s/ca.pem", c.folder);
    snprintf(other_ca, sizeof(other_ca), "%s/ca.pem", other.folder);
    struct tls_context *server = context(&c, true, "server", ca);
    struct tls_context *alice = context(&c, false, "alice", ca);
    struct tls_context *none = context(&c, false, NULL, ca);
    struct tls_context *mallory = context(&other, false, "mallory", ca);
    struct tls_context *doubter = context(&c, false, "alice", other_ca);
    assert_true(server && alice && none && mallory && doubter);
    serve(w, server, NULL);

    dial(w, alice, NULL); /* by the address in the certificate */
    assert_int_equal(w->ups, 1);
    echo_three(w);
    assert_string_equal(w->identity, "DNS:alice.test, URI:feed://alice");
    w->client = grpc_client_close(w->client);
    dial(w, alice, "relay.test");
    assert_int_equal(w->ups, 2);
    w->client = grpc_client_close(w->client);

    dial(w, alice, "another.test");
    assert_non_null(strstr(w->down.text, "hostname mismatch"));
    w->client = grpc_client_close(w->client);
    dial(w, doubter, NULL);
    assert_non_null(strstr(w->down.text, "certificate is refused"));
    w->client = grpc_client_close(w->client);

    struct tls_context *refused[] = {none, mallory};
    static const char *const why[] = {"did not return a certificate", "certificate is refused"};
    for (int i = 0; i < 2; i++) {
        w->lost = 0;
        dial(w, refused[i], NULL);
        assert_int_equal(w->ups, 2); /* never up, although its handshake was over */
        while (!w->lost || !strstr(w->lost_why, why[i]))
            loop_run(w->loop);
        w->client = grpc_client_close(w->client);
    }
    struct tls_context *all[] = {server, alice, none, mallory, doubter};
    w->server = grpc_server_close(w->server);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        tls_context_free(all[i]);
    certs_close(&c);
    certs_close(&other);
}

static void test_certificates_change_without_a_restart(void **state)
{
    struct world *w = *state;
    struct certs c;
    struct err err = {0};
    char ca[600];
    certs_open(&c);
    certs_add(&c, "server", "DNS:old.test");
    snprintf(ca, sizeof(ca), "%s/ca.pem", c.folder);
    struct tls_context *server = context(&c, true, "server", NULL);
    struct tls_context *client = context(&c, false, NULL, ca);
    serve(w, server, NULL);
    dial(w, client, "old.test");
    assert_int_equal(w->ups, 1);
    struct grpc_client *old = w->client;

    certs_add(&c, "server", "DNS:new.test");
    assert_int_equal(tls_context_reload(server, &err), 0);
    dial(w, client, "new.test");
    assert_int_equal(w->ups, 2);
    echo_three(w);
    grpc_client_close(w->client);
    w->client = old; /* goes on */
    echo_three(w);
    grpc_client_close(w->client);

    FILE *f = fopen(certs_path(&c, "server.pem"), "w");
    fputs("nonsense", f);
    fclose(f);
    assert_int_equal(tls_context_reload(server, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "server.pem"));
    dial(w, client, "new.test"); /* what was in force is in force */
    assert_int_equal(w->ups, 3);
    w->client = grpc_client_close(w->client);
    w->server = grpc_server_close(w->server);
    tls_context_free(server);
    tls_context_free(client);
    certs_close(&c);
}

static void test_files_that_are_no_certificates(void **state)
{
    (void)state;
    struct err err = {0};
    struct tls_config config = {.server = true, .cert_file = "/nonexistent", .key_file = "/none"};
    assert_null(tls_context_new(&config, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    assert_non_null(strstr(err.text, "/nonexistent"));
    config = (struct tls_config){.server = true};
    assert_null(tls_context_new(&config, &err));
    config = (struct tls_config){.ca_file = "/nonexistent"};
    assert_null(tls_context_new(&config, &err));
    assert_non_null(strstr(err.text, "/nonexistent"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_call_crosses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cleartext_stays_on_this_machine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unix_sockets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nobody_listens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_connections_have_a_cap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_socket_that_says_nothing_is_closed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_drain_waits_and_then_cuts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mutual_tls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_certificates_change_without_a_restart, set_up,
                                        tear_down),
        cmocka_unit_test(test_files_that_are_no_certificates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
