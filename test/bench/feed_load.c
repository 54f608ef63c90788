/* Publishers for the bench of feeds (suite_feeds.py); the key is that of //Alice.
 *
 *   feed_load publish TARGET FEED FIRST COUNT CALL N   COUNT batches of N calls CALL (hexadecimal),
 *       each offered when the one before is acknowledged; prints the time of each in us
 *   feed_load idle TARGET FEED LAST N [CA CERT KEY NAME]   N connections with a session of the feed
 *       each, which has offered the number LAST that is stored; prints "open" then, and ends with
 *       its input. With TLS if PEM files are given; NAME is the relay's */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/hex.h"
#include "chain/keys/keys.h"
#include "feed/client/client.h"
#include "feed/wire/wire.h"
#include "net/grpc.h"
#include "net/tls.h"

static struct loop *loop;
static struct keypair *key;

static void fail(const char *what, const struct err *err)
{
    fprintf(stderr, "feed_load: %s: %s\n", what, err->text);
    exit(1);
}

/* ---- publish ---- */

static struct {
    struct feed_client *client;
    struct feed_wire_call *calls;
    size_t call_count;
    int64_t next, end;
    uint64_t began_ns, *took_ns;
    size_t took_count;
    struct loop_task ready;
} load;

static void put(void)
{
    struct err err = {0};
    if (load.next < load.end &&
        feed_client_put(load.client, load.next++, load.calls, load.call_count, &err))
        fail("put", &err);
}

/* The next one is built and signed while the relay has this one: what a publisher computes is not
 * the relay's time. The bytes of this one leave before the task runs. */
static void make_ready(struct loop_task *task)
{
    (void)task;
    put();
}

static void on_acked(void *arg, int64_t number)
{
    (void)arg;
    uint64_t now = loop_clock_ns(loop);
    load.took_ns[load.took_count++] = now - load.began_ns;
    load.began_ns = now;
    if (number == load.end - 1)
        loop_stop(loop);
}

static void on_note(void *arg, enum feed_client_note note, int64_t number, const char *text)
{
    struct err err = {0};
    (void)arg;
    (void)number;
    if (note == FEED_CLIENT_CONNECTED)
        load.began_ns = loop_clock_ns(loop);
    if (note == FEED_CLIENT_SENT)
        loop_post(loop, &load.ready, make_ready);
    if (note == FEED_CLIENT_ENDED || note == FEED_CLIENT_LOST) {
        err_set(&err, ERR_PROTOCOL, "%s", text);
        fail("the stream", &err);
    }
}

static void on_failed(void *arg, const struct err *why)
{
    (void)arg;
    fail("publish", why);
}

static void publish(char **argv)
{
    struct err err = {0};
    const char *targets[] = {argv[0]};
    struct feed_client_config config = {.feed = argv[1],
                                        .targets = targets,
                                        .target_count = 1,
                                        .key = key,
                                        .on_acked = on_acked,
                                        .on_note = on_note,
                                        .on_failed = on_failed};
    size_t count = strtoul(argv[3], NULL, 10);
    struct buf call = {0};
    load.call_count = strtoul(argv[5], NULL, 10);
    load.next = strtoll(argv[2], NULL, 10);
    load.end = load.next + (int64_t)count;
    load.calls = xcalloc(load.call_count, sizeof(*load.calls));
    load.took_ns = xcalloc(count, sizeof(*load.took_ns));
    if (!hex_decode(argv[4], strlen(argv[4]), &call)) {
        err_set(&err, ERR_ARGUMENT, "it is not hexadecimal");
        fail("CALL", &err);
    }
    for (size_t i = 0; i < load.call_count; i++)
        load.calls[i] = (struct feed_wire_call){
            .call = call.data, .call_len = call.len, .tip = "", .max_tip = ""};
    load.client = feed_client_new(loop, &config, &err);
    if (!load.client)
        fail("publish", &err);
    put();
    loop_run(loop);
    for (size_t i = 0; i < load.took_count; i++)
        printf("%llu\n", (unsigned long long)load.took_ns[i] / 1000);
    feed_client_close(load.client);
    free(load.calls);
    free(load.took_ns);
    buf_done(&call);
}

/* ---- idle ---- */

struct idle {
    struct grpc_client *link;
    const char *feed;
    int64_t last;
};

static struct idle *idle;
static size_t idle_count, idle_open;

static void open_next(void);

static void idle_message(void *arg, const uint8_t *data, size_t len)
{
    struct feed_wire_response r;
    struct err err = {0};
    if (feed_wire_response_read(data, len, &r, &err) || r.answer == FEED_WIRE_END)
        fail(r.detail, &err);
    if (r.answer == FEED_WIRE_ACK && idle_open < idle_count && arg == &idle[idle_open])
        idle_open++, open_next();
}

static void idle_end(void *arg, enum grpc_status status, const char *text)
{
    struct err err = {0};
    (void)arg;
    err_set(&err, ERR_PROTOCOL, "%s: %s", grpc_status_name(status), text);
    fail("a session ended", &err);
}

static const struct grpc_call_events events = {.on_message = idle_message, .on_end = idle_end};

static void on_up(void *arg)
{
    struct idle *s = arg;
    struct buf out = {0};
    size_t len;
    struct feed_wire_item item = {.kind = FEED_WIRE_HEADER};
    item.header = (struct feed_wire_header){s->feed, s->last, keypair_public(key, &len)};
    struct grpc_call *call = grpc_client_call(s->link, FEED_WIRE_PUBLISH, NULL, 0, &events, s);
    feed_wire_request_write(&out, &item, 1);
    grpc_call_send(call, out.data, out.len);
    buf_done(&out);
}

static void on_down(void *arg, const struct err *why)
{
    (void)arg;
    fail("a connection ended", why);
}

/* One after the other: a listening socket keeps few that wait. */
static void open_next(void)
{
    if (idle_open < idle_count) {
        grpc_client_open(idle[idle_open].link);
        return;
    }
    printf("open\n");
    fflush(stdout);
}

static void on_line(void *arg, const char *line, size_t len)
{
    (void)arg;
    (void)len;
    if (!line)
        loop_stop(loop);
}

static struct tls_context *read_tls(char **files)
{
    struct err err = {0};
    struct tls_config config = {.ca_file = files[0], .cert_file = files[1], .key_file = files[2]};
    struct tls_context *tls = tls_context_new(&config, &err);
    if (!tls)
        fail("TLS", &err);
    return tls;
}

static void stay(char **argv, bool with_tls)
{
    struct err err = {0};
    struct tls_context *tls = with_tls ? read_tls(argv + 4) : NULL;
    struct loop_stream *in = loop_stream_new(loop, STDIN_FILENO, 1000, on_line, NULL);
    idle_count = strtoul(argv[3], NULL, 10);
    idle = xcalloc(idle_count, sizeof(*idle));
    for (size_t i = 0; i < idle_count; i++) {
        struct grpc_client_config config = {.target = argv[0],
                                            .tls = tls,
                                            .server_name = with_tls ? argv[7] : NULL,
                                            .on_up = on_up,
                                            .on_down = on_down,
                                            .arg = &idle[i]};
        idle[i].feed = argv[1];
        idle[i].last = strtoll(argv[2], NULL, 10);
        idle[i].link = grpc_client_new(loop, &config, &err);
        if (!idle[i].link)
            fail("idle", &err);
    }
    open_next();
    loop_run(loop);
    for (size_t i = 0; i < idle_count; i++)
        grpc_client_close(idle[i].link);
    loop_stream_close(in);
    tls_context_free(tls);
    free(idle);
}

int main(int argc, char **argv)
{
    struct err err = {0};
    bool publishes = argc == 8 && !strcmp(argv[1], "publish");
    if (!publishes && !((argc == 6 || argc == 10) && !strcmp(argv[1], "idle"))) {
        fprintf(stderr, "usage: feed_load publish TARGET FEED FIRST COUNT CALL N\n"
                        "       feed_load idle TARGET FEED LAST N [CA CERT KEY NAME]\n");
        return 2;
    }
    if (keypair_from_uri("//Alice", KEY_ED25519, &key, &err))
        fail("key", &err);
    loop = loop_new();
    if (publishes)
        publish(argv + 2);
    else
        stay(argv + 2, argc == 10);
    loop_free(loop);
    keypair_free(key);
    return 0;
}
