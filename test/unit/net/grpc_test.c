/* gRPC on sockets: a server and clients in one loop, in cleartext and over TLS 1.3. A call crosses,
 * a stranger is refused with its reason, certificates change without a restart, a drain ends, and
 * everything is closed at the end. */
#include "certs.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "net/grpc.h"

enum { PATIENCE_MS = 100000, SLOW_MS = 60000 };

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
    config.limits.up_ms = SLOW_MS; /* a TLS handshake under memcheck */
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
                                        .limits = {.up_ms = SLOW_MS},
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

/* A peer that vanished without a word: TCP asks too, on both sides. */
static void test_tcp_asks_whether_the_peer_is_there(void **state)
{
    struct world *w = *state;
    int sides = 0;
    serve(w, NULL, NULL);
    dial(w, NULL, NULL);
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in peer;
        socklen_t len = sizeof(peer), size = sizeof(int);
        int on = 0, idle_s = 0;
        if (getpeername(fd, (struct sockaddr *)&peer, &len) || peer.sin_family != AF_INET)
            continue;
        assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &size), 0);
        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, &size), 0);
        assert_int_equal(on, 1);
        assert_in_range(idle_s, 1, 60);
        sides++;
    }
    assert_int_equal(sides, 2);
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

/* What a server says about these files; "" if it takes them. */
static const char *refusal(struct certs *c, const char *cert, const char *key, const char *ca)
{
    static struct err err;
    char path[3][600];
    const char *const name[] = {cert, key, ca ? ca : ""};
    for (int i = 0; i < 3; i++)
        snprintf(path[i], sizeof(path[i]), "%s/%s", c->folder, name[i]);
    struct tls_config config = {
        .server = true, .cert_file = path[0], .key_file = path[1], .ca_file = ca ? path[2] : NULL};
    err = (struct err){0};
    struct tls_context *t = tls_context_new(&config, &err);
    assert_true(!t == (err.code == ERR_CONFIG));
    tls_context_free(t);
    return err.text;
}

#define ASSERT_REFUSED(why, ...) assert_non_null(strstr(refusal(&c, __VA_ARGS__), why))

static void test_a_key_that_others_can_read_is_refused(void **state)
{
    (void)state;
    struct certs c;
    certs_open(&c);
    certs_add(&c, "server", "DNS:relay.test");
    assert_string_equal(refusal(&c, "server.pem", "server.key", NULL), "");
    static const int open_to_others[] = {0604, 0602, 0601};
    for (size_t i = 0; i < ARRAY_LEN(open_to_others); i++) {
        assert_int_equal(chmod(certs_path(&c, "server.key"), (mode_t)open_to_others[i]), 0);
        ASSERT_REFUSED("open to others than its owner: chmod 600", "server.pem", "server.key",
                       NULL);
    }
    /* A group may read what root gave to it; another owner has no group. */
    assert_int_equal(chmod(certs_path(&c, "server.key"), 0640), 0);
    if (geteuid() == 0) {
        assert_string_equal(refusal(&c, "server.pem", "server.key", NULL), "");
        assert_int_equal(chown(certs_path(&c, "server.key"), 1, (gid_t)-1), 0);
    }
    ASSERT_REFUSED("has mode 640", "server.pem", "server.key", NULL);
    ASSERT_REFUSED("No such file", "server.pem", "absent.key", NULL);
    ASSERT_REFUSED("not a regular file", "server.pem", ".", NULL);
    certs_close(&c);
}

static void test_a_key_of_another_certificate_is_refused(void **state)
{
    (void)state;
    struct certs c;
    certs_open(&c);
    certs_add(&c, "server", "DNS:relay.test");
    certs_add(&c, "other", "DNS:other.test");
    ASSERT_REFUSED("is not the key of certificate", "server.pem", "other.key", NULL);
    /* It would get a place beside the certificate's. A long one takes memcheck a minute. */
    EVP_PKEY *rsa = EVP_RSA_gen(512);
    certs_write(&c, "rsa.key", NULL, rsa);
    ASSERT_REFUSED("is not the key of certificate", "server.pem", "rsa.key", NULL);
    FILE *f = fopen(certs_path(&c, "secret.key"), "w");
    fchmod(fileno(f), 0600);
    PEM_write_PrivateKey(f, rsa, EVP_aes_256_cbc(), (const unsigned char *)"word", 4, NULL, NULL);
    fclose(f);
    ASSERT_REFUSED("has a passphrase", "server.pem", "secret.key", NULL);
    EVP_PKEY_free(rsa);
    certs_close(&c);
}

static void test_certificates_out_of_their_time_are_refused(void **state)
{
    (void)state;
    struct certs c;
    certs_open(&c);
    c.until_s = -60;
    certs_add(&c, "late", "DNS:relay.test");
    ASSERT_REFUSED("late.pem expired at 2", "late.pem", "late.key", NULL);
    c.from_s = 0; /* as just made */
    c.until_s = 3600;
    certs_add(&c, "fresh", "DNS:relay.test");
    assert_string_equal(refusal(&c, "fresh.pem", "fresh.key", NULL), "");
    c.from_s = 3600;
    c.until_s = 7200;
    certs_add(&c, "early", "DNS:relay.test");
    ASSERT_REFUSED("early.pem is not valid before 2", "early.pem", "early.key", NULL);
    certs_close(&c);
}

static void append(struct certs *c, const char *to, const char *from)
{
    char command[1200];
    snprintf(command, sizeof(command), "cat %s/%s >>%s/%s", c->folder, from, c->folder, to);
    assert_int_equal(system(command), 0);
}

static void test_authorities_that_accept_nobody_are_refused(void **state)
{
    (void)state;
    struct certs c;
    certs_open(&c);
    certs_add(&c, "server", "DNS:relay.test");
    assert_string_equal(refusal(&c, "server.pem", "server.key", "ca.pem"), "");
    ASSERT_REFUSED("No such file", "server.pem", "server.key", "absent.pem");
    ASSERT_REFUSED("has no certificate", "server.pem", "server.key", "server.key");
    certs_descend(&c, "between");
    ASSERT_REFUSED("/CN=between was signed by /CN=test authority, which is not in the file",
                   "server.pem", "server.key", "between.pem");
    append(&c, "between.pem", "ca.pem");
    assert_string_equal(refusal(&c, "server.pem", "server.key", "between.pem"), "");
    c.until_s = -60;
    certs_descend(&c, "gone");
    append(&c, "gone.pem", "between.pem"); /* the root still accepts */
    assert_string_equal(refusal(&c, "server.pem", "server.key", "gone.pem"), "");
    certs_descend(&c, "alone");
    ASSERT_REFUSED("/CN=alone expired at", "server.pem", "server.key", "alone.pem");
    certs_close(&c);
}

static void on_caution(void *arg, const char *text)
{
    buf_printf(arg, "%s\n", text);
}

static void test_what_expires_soon_is_said(void **state)
{
    (void)state;
    struct certs c;
    char ca[600];
    struct buf text = {0};
    certs_open(&c);
    certs_add(&c, "server", "DNS:relay.test");
    snprintf(ca, sizeof(ca), "%s/ca.pem", c.folder);
    struct tls_context *t = context(&c, true, "server", ca);
    tls_context_cautions(t, on_caution, &text);
    assert_non_null(strstr(buf_str(&text), "server.pem: /CN=server expires at 2"));
    assert_non_null(strstr(buf_str(&text), "ca.pem: /CN=test authority expires at 2"));
    buf_clear(&text);
    tls_context_shown(t, &text);
    assert_non_null(strstr(buf_str(&text), "/CN=server, until 2"));
    tls_context_free(t);
    buf_clear(&text);
    c.until_s = 30L * 86400;
    certs_add(&c, "server", "DNS:relay.test");
    t = context(&c, true, "server", NULL);
    tls_context_cautions(t, on_caution, &text);
    assert_string_equal(buf_str(&text), "");
    tls_context_free(t);
    buf_done(&text);
    certs_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_call_crosses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cleartext_stays_on_this_machine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unix_sockets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nobody_listens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tcp_asks_whether_the_peer_is_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_connections_have_a_cap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_socket_that_says_nothing_is_closed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_drain_waits_and_then_cuts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mutual_tls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_certificates_change_without_a_restart, set_up,
                                        tear_down),
        cmocka_unit_test(test_files_that_are_no_certificates),
        cmocka_unit_test(test_a_key_that_others_can_read_is_refused),
        cmocka_unit_test(test_a_key_of_another_certificate_is_refused),
        cmocka_unit_test(test_certificates_out_of_their_time_are_refused),
        cmocka_unit_test(test_authorities_that_accept_nobody_are_refused),
        cmocka_unit_test(test_what_expires_soon_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
