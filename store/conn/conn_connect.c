/* From a host entry to an established session: names are resolved off the loop, then one PGconn per
 * address, each with its own deadline, which begins anew with each answer (libpq ignores
 * connect_timeout here and would resolve by blocking). The socket of a PGconn may be replaced
 * inside PQconnectPoll under the same number (sslmode=prefer): the poll handle is closed before
 * each PQconnectPoll and made anew after it. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "conn/conn_internal.h"

enum { CONNECT_OPTIONS_EXTRA = 16 };

struct options {
    const char **keys;
    const char **values;
    size_t count;
};

static void put(struct options *o, const char *key, const char *value)
{
    if (!value)
        return;
    o->keys[o->count] = key;
    o->values[o->count++] = value;
}

static void put_default(struct options *o, const struct conn_dsn *d, const char *key,
                        const char *value)
{
    if (!conn__dsn_has(d, key))
        put(o, key, value);
}

/* A dead peer is noticed in about 5 + 3 * 2 seconds when idle, in 10 with unanswered data. Later
 * entries win inside libpq. */
static PGconn *connect_start(const struct conn *c, const struct conn_host *h, const char *hostaddr)
{
    const struct conn_dsn *d = &c->dsn;
    struct options o = {.keys = xcalloc(d->count + CONNECT_OPTIONS_EXTRA, sizeof(char *)),
                        .values = xcalloc(d->count + CONNECT_OPTIONS_EXTRA, sizeof(char *))};
    for (size_t i = 0; i < d->count; i++)
        put(&o, d->keys[i], d->values[i]);
    put(&o, "host", h->host);
    put(&o, "hostaddr", hostaddr);
    put(&o, "port", h->port);
    put(&o, "application_name", c->config.name);
    put(&o, "client_encoding", "UTF8");
    put_default(&o, d, "keepalives", "1");
    put_default(&o, d, "keepalives_idle", "5");
    put_default(&o, d, "keepalives_interval", "2");
    put_default(&o, d, "keepalives_count", "3");
    put_default(&o, d, "tcp_user_timeout", "10000");
    put_default(&o, d, "gssencmode", "disable"); /* a round trip more, and Kerberos blocks */
    PGconn *pg = PQconnectStartParams(o.keys, o.values, 0);
    free(o.keys);
    free(o.values);
    INVARIANT(pg);
    return pg;
}

static void on_connect_io(void *arg, int status, int events);

static void watch(struct conn *c, int events)
{
    c->poll = loop_poll_new(c->loop, PQsocket(c->pg), on_connect_io, c);
    loop_poll_set(c->poll, events);
}

static void connect_failed(struct conn *c)
{
    struct err err = {0};
    conn__connect_err(c->pg, &err);
    conn__address_failed(c, &err);
}

/* The status is not looked at: libuv 1.44 reports a refused connect as an error, later ones as
 * readable; PQconnectPoll knows which it is. */
static void on_connect_io(void *arg, int status, int events)
{
    (void)status;
    (void)events;
    struct conn *c = arg;
    c->poll = loop_poll_close(c->poll);
    conn__deadline(c, c->config.connect_timeout_ms);
    switch (PQconnectPoll(c->pg)) {
    case PGRES_POLLING_READING:
        watch(c, LOOP_READABLE);
        return;
    case PGRES_POLLING_WRITING:
        watch(c, LOOP_WRITABLE);
        return;
    case PGRES_POLLING_OK:
        conn__setup_start(c);
        return;
    case PGRES_POLLING_FAILED:
    case PGRES_POLLING_ACTIVE:
        connect_failed(c);
        return;
    }
    UNREACHABLE();
}

static void try_address(struct conn *c, const char *hostaddr)
{
    conn__move(c, CONN_CONNECT_WAIT);
    conn__deadline(c, c->config.connect_timeout_ms);
    c->fatal = (struct err){0};
    c->session++;
    c->pg = connect_start(c, &c->dsn.hosts[c->host], hostaddr);
    PQsetErrorVerbosity(c->pg,
                        PQERRORS_VERBOSE); /* the only way to a SQLSTATE of a refused login */
    PQsetNoticeReceiver(c->pg, conn__notice, c);
    if (PQstatus(c->pg) == CONNECTION_BAD) {
        connect_failed(c);
        return;
    }
    watch(c, LOOP_WRITABLE); /* the first step behaves as if PQconnectPoll had asked for it */
}

static void on_resolved(struct loop_resolve *r)
{
    struct conn *c = CONTAINER_OF(r, struct conn, resolve);
    if (r->err.code) {
        struct err err;
        err_set(&err, ERR_DB_UNAVAILABLE, "host \"%s\": %s", c->dsn.hosts[c->host].host,
                r->err.text);
        conn__address_failed(c, &err);
        return;
    }
    c->addr = 0;
    try_address(c, r->addr[0]);
}

static void try_host(struct conn *c)
{
    const struct conn_host *h = &c->dsn.hosts[c->host];
    c->resolve.count = 0;
    if (!conn__host_is_name(h)) {
        try_address(c, h->hostaddr);
        return;
    }
    conn__move(c, CONN_RESOLVE_WAIT);
    conn__deadline(c, c->config.connect_timeout_ms);
    loop_resolve_start(c->loop, &c->resolve, h->host, on_resolved);
}

void conn__round_start(struct conn *c)
{
    c->round_err = (struct err){0};
    c->host = c->first_host;
    c->hosts_left = c->dsn.host_count;
    try_host(c);
}

void conn__next_address(struct conn *c)
{
    if (++c->addr < (size_t)c->resolve.count) {
        try_address(c, c->resolve.addr[c->addr]);
        return;
    }
    if (--c->hosts_left) {
        c->host = (c->host + 1) % c->dsn.host_count;
        try_host(c);
        return;
    }
    conn__round_failed(c, &c->round_err);
}

/* The poll handle goes before PQfinish closes the descriptor. */
void conn__session_end(struct conn *c)
{
    c->poll = loop_poll_close(c->poll);
    if (c->pg)
        PQfinish(c->pg);
    c->pg = NULL;
    c->session++;
    c->pooled = false;
    c->bytes_in_flight = 0;
    for (size_t i = 0; i < c->statement_count; i++)
        c->statements[i]->state = STATEMENT_NEW;
    conn__setup_drop(c);
}
