/* The life of a relay's links, and who may come in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "link_internal.h"

enum {
    TAKEN_MAX = 16, /* streams that one site may open */
    CONNECTIONS_MAX = 256,
    WINDOW_BYTES = 1 << 20,
    KEEPALIVE_MS = 3000, /* a stream that is open is in use: a peer that is gone shall be noticed */
    PING_MS = 3000,
};

void site__links_note(struct site_links *s, enum site_links_note note, const struct peer *p,
                      const char *text)
{
    s->config.on_note(s->config.arg, note, p ? p->index : s->config.peer_count, text);
}

/* ---- who may come in ---- */

/* Is "DNS:NAME" one of the names, which are separated by ", "? No name has a space. */
static bool has_name(const char *identity, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = identity, *end; *at; at = *end ? end + 2 : end) {
        end = strstr(at, ", ");
        if (!end)
            end = at + strlen(at);
        if ((size_t)(end - at) == 4 + n && !strncmp(at, "DNS:", 4) && !strncmp(at + 4, name, n))
            return true;
    }
    return false;
}

/* NULL: nobody, or a certificate that names two of our sites. */
static struct peer *peer_of(const struct site_links *s, const char *identity)
{
    struct peer *found = NULL;
    if (has_name(identity, s->config.self))
        return NULL;
    for (size_t i = 0; i < s->config.peer_count; i++) {
        if (!has_name(identity, s->peers[i].name))
            continue;
        if (found)
            return NULL;
        found = &s->peers[i];
    }
    return found;
}

static bool on_call(void *arg, struct grpc_call *call)
{
    struct site_links *s = arg;
    if (strcmp(grpc_call_path(call), SITE_WIRE_EXCHANGE) != 0)
        return false;
    struct peer *p = peer_of(s, grpc_call_identity(call));
    if (!p) {
        char text[600];
        snprintf(text, sizeof(text), "%s \"%s\"", grpc_call_peer(call), grpc_call_identity(call));
        grpc_call_finish(call, GRPC_PERMISSION_DENIED,
                         "the certificate does not name exactly one other site of this relay");
        site__links_note(s, SITE_LINKS_STRANGER, NULL, text);
        return true;
    }
    if (p->taken >= TAKEN_MAX) {
        grpc_call_finish(call, GRPC_RESOURCE_EXHAUSTED, "too many streams of this site");
        return true;
    }
    struct stream *stream = site__stream_new(p, NULL);
    stream->call = call;
    grpc_call_listen(call, &site__stream_events, stream);
    site__stream_begin(stream);
    return true;
}

/* ---- messages ---- */

/* address: NULL: any relay of the site. */
static bool send_frame(struct peer *p, const char *address, const struct buf *frame)
{
    struct stream *stream = site__stream_find(p, address);
    if (stream)
        return site__stream_send(stream, frame->data, frame->len);
    struct dial *d = site__dial_find(p, address);
    if (!d)
        d = site__dial(p, address);
    if (d && site__dial_queue(d, frame))
        return true;
    p->dropped++;
    return false;
}

bool site_links_send(struct site_links *s, size_t peer, const struct site_wire_message *m)
{
    PRE(peer < s->config.peer_count);
    struct peer *p = &s->peers[peer];
    struct site_wire_message rest = *m;
    struct buf frame = {0};
    bool all = true;
    do {
        buf_clear(&frame);
        size_t took = site_wire_message_write(&frame, &rest);
        all &= send_frame(p, site__route(s, p->index, m->account), &frame);
        rest.items += took;
        rest.m.count -= took;
    } while (rest.m.count > 0);
    buf_done(&frame);
    return all;
}

bool site_links_ask(struct site_links *s, size_t peer,
                    const uint8_t account[SELECTOR_ACCOUNT_BYTES])
{
    struct buf frame = {0};
    PRE(peer < s->config.peer_count);
    site_wire_question_write(&frame, account);
    bool sent = send_frame(&s->peers[peer], NULL, &frame);
    buf_done(&frame);
    return sent;
}

void site_links_refuse(struct site_links *s, enum site_wire_why why, const char *leader)
{
    struct buf frame = {0};
    PRE(s->current);
    site_wire_refusal_write(&frame, s->current_account, why, leader);
    site__stream_send(s->current, frame.data, frame.len);
    buf_done(&frame);
}

void site_links_view(const struct site_links *s, size_t peer, struct site_links_view *ret)
{
    PRE(peer < s->config.peer_count);
    const struct peer *p = &s->peers[peer];
    *ret = (struct site_links_view){
        .name = p->name,
        .sent = p->sent,
        .received = p->received,
        .sent_bytes = p->sent_bytes,
        .dropped = p->dropped,
        .refused = p->refused,
    };
    LIST_EACH (n, &p->streams)
        ret->streams += CONTAINER_OF(n, struct stream, node)->hello;
}

/* ---- its life ---- */

static int check(const struct site_links_config *c, struct err *err)
{
    if (!c->cert_file || !c->key_file || !c->ca_file)
        return err_set(err, ERR_CONFIG,
                       "links between sites need cert_file, key_file and ca_file: the name of a "
                       "site is believed from its certificate");
    for (size_t i = 0; i < c->peer_count; i++) {
        if (!strcmp(c->peers[i].name, c->self))
            return err_set(err, ERR_CONFIG, "site %s is this site itself", c->self);
        if (!c->peers[i].target_count)
            return err_set(err, ERR_CONFIG, "site %s has no address", c->peers[i].name);
        for (size_t j = 0; j < i; j++)
            if (!strcmp(c->peers[i].name, c->peers[j].name))
                return err_set(err, ERR_CONFIG, "two sites have the name %s", c->peers[i].name);
    }
    return 0;
}

static int check_targets(const struct site_links *s, const struct site_links_config *c,
                         struct err *err)
{
    for (size_t i = 0; i < c->peer_count; i++)
        for (size_t k = 0; k < c->peers[i].target_count; k++) {
            struct grpc_client_config one = {.target = c->peers[i].targets[k],
                                             .tls = s->tls_client};
            struct grpc_client *client = grpc_client_new(s->loop, &one, err);
            if (!client)
                return err->code;
            grpc_client_close(client);
        }
    return 0;
}

static void add_peers(struct site_links *s, const struct site_links_config *c)
{
    s->peers = xcalloc(c->peer_count + 1, sizeof(*s->peers));
    for (size_t i = 0; i < c->peer_count; i++) {
        struct peer *p = &s->peers[i];
        const struct site_links_peer *from = &c->peers[i];
        p->links = s;
        p->index = i;
        p->name = xstrdup(from->name);
        p->targets = xcalloc(from->target_count, sizeof(*p->targets));
        p->target_count = from->target_count;
        for (size_t k = 0; k < from->target_count; k++)
            p->targets[k] = xstrdup(from->targets[k]);
        p->backoff =
            (struct backoff){.base_ms = s->config.retry_ms, .cap_ms = s->config.retry_max_ms};
        list_init(&p->streams);
        list_init(&p->dials);
    }
}

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
    return value ? value : fallback;
}

static void fill(struct site_links *s, const struct site_links_config *c)
{
    s->config = *c;
    s->config.self = xstrdup(c->self);
    s->config.listen = s->config.address = NULL;
    s->config.peers = NULL;
    s->config.peer_count = 0;
    s->config.retry_ms = or_default(c->retry_ms, 200);
    s->config.retry_max_ms = or_default(c->retry_max_ms, 10000);
    s->config.idle_ms = or_default(c->idle_ms, 60000);
    s->config.hello_ms = or_default(c->hello_ms, 5000);
    s->config.flight_bytes = or_default(c->flight_bytes, 2 * SITE_WIRE_MAX);
    /* A quarter of the cap is where a stream stops to read: it is never reached, so two sides that
     * both send do not wait for each other. */
    uint32_t cap = 4 * s->config.flight_bytes + SITE_WIRE_MAX;
    s->limits = (struct grpc_limits){
        .connections_max = CONNECTIONS_MAX,
        .streams_max = 4,
        .message_bytes = SITE_WIRE_MAX,
        .window_bytes = WINDOW_BYTES,
        .call_out_bytes = cap,
        .conn_out_bytes = cap,
        .keepalive_ms = KEEPALIVE_MS,
        .ping_ms = PING_MS,
    };
    s->rng.state = loop_seed(s->loop);
}

static int open_tls(struct site_links *s, const struct site_links_config *c, struct err *err)
{
    struct tls_config tls = {
        .cert_file = c->cert_file, .key_file = c->key_file, .ca_file = c->ca_file};
    s->tls_client = tls_context_new(&tls, err);
    tls.server = true;
    s->tls_server = s->tls_client ? tls_context_new(&tls, err) : NULL;
    return s->tls_server ? 0 : err->code;
}

struct site_links *site_links_open(struct loop *l, const struct site_links_config *config,
                                   struct err *err)
{
    if (check(config, err))
        return NULL;
    struct site_links *s = xcalloc(1, sizeof(*s));
    s->loop = l;
    fill(s, config);
    if (open_tls(s, config, err) || check_targets(s, config, err))
        return site_links_close(s);
    struct grpc_server_config server = {
        .address = config->listen,
        .tls = s->tls_server,
        .limits = s->limits,
        .on_call = on_call,
        .arg = s,
    };
    s->server = grpc_server_new(l, &server, err);
    if (!s->server)
        return site_links_close(s);
    add_peers(s, config);
    s->config.peer_count = config->peer_count;
    const char *listening = grpc_server_address(s->server);
    if (!strncmp(listening, "tcp:", 4))
        listening += 4;
    s->address = xstrdup(config->address ? config->address : listening);
    return s;
}

const char *site_links_address(const struct site_links *s)
{
    return s->address;
}

int site_links_reload(struct site_links *s, struct err *err)
{
    int rc = tls_context_reload(s->tls_client, err);
    return rc ? rc : tls_context_reload(s->tls_server, err);
}

static void close_peer(struct peer *p)
{
    for (struct list *n = list_first(&p->dials); n; n = list_first(&p->dials))
        site__dial_free(CONTAINER_OF(n, struct dial, node));
    for (struct list *n = list_first(&p->streams); n; n = list_first(&p->streams))
        site__stream_free(CONTAINER_OF(n, struct stream, node));
    for (size_t i = 0; i < p->target_count; i++)
        free(p->targets[i]);
    free(p->targets);
    free(p->name);
}

struct site_links *site_links_close(struct site_links *s)
{
    if (!s)
        return NULL;
    s->server = grpc_server_close(s->server); /* no call reports anything any more */
    for (size_t i = 0; i < s->config.peer_count; i++)
        close_peer(&s->peers[i]);
    site__routes_free(s);
    tls_context_free(s->tls_client);
    tls_context_free(s->tls_server);
    free(s->peers);
    free(s->address);
    free((char *)(uintptr_t)s->config.self);
    free(s);
    return NULL;
}
