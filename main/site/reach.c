#include "site/reach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "loop/loop.h"
#include "net/tls.h"
#include "site/compare.h"
#include "site/link/link.h"

enum { ANSWER_MS = 5000 };

/* One address of each site at a time: a link uses any of those that it has. */
struct reach {
    struct loop *loop;
    struct loop_timer *late;
    struct site_links *links;
    const struct sites_config *config;
    const uint8_t (*ids)[SELECTOR_ACCOUNT_BYTES];
    struct site_links_peer *peers; /* those that have an address at this place */
    size_t count, open;
    size_t *asked; /* questions to each that are open */
    bool *answered;
    struct buf *out;
    void (*caution)(void *arg, const char *text);
    void *arg;
};

/* A relay leads the accounts, not this program. */
static bool on_message(void *arg, size_t peer, const struct site_wire_message *m)
{
    const struct reach *r = arg;
    (void)peer;
    (void)m;
    site_links_refuse(r->links, SITE_WIRE_NOT_LEADER, "");
    return false;
}

static void is_away(const struct reach *r, size_t peer, const char *why)
{
    char text[700];
    snprintf(text, sizeof(text), "site %s: no link to %s: %s", r->peers[peer].name,
             r->peers[peer].targets[0], why);
    r->caution(r->arg, text);
}

static void answered(struct reach *r, size_t peer)
{
    r->answered[peer] = true;
    if (--r->open == 0)
        loop_stop(r->loop);
}

/* A site and its relay at this place. */
static void on_answer(void *arg, size_t peer, const struct site_wire_settings *answer)
{
    struct reach *r = arg;
    char who[400];
    if (r->answered[peer] || !r->asked[peer])
        return;
    snprintf(who, sizeof(who), "site %s (%s)", r->peers[peer].name, r->peers[peer].targets[0]);
    for (size_t i = 0; i < r->config->account_count; i++)
        if (!memcmp(r->ids[i], answer->account, sizeof(answer->account)))
            site_compare(&r->config->accounts[i], answer, who, r->caution, r->arg);
    if (--r->asked[peer] == 0)
        answered(r, peer);
}

/* All accounts that have sites here, whether this site is among theirs or not. */
static void ask(struct reach *r, size_t peer)
{
    for (size_t i = 0; i < r->config->account_count; i++)
        r->asked[peer] += site_links_ask(r->links, peer, r->ids[i]);
    if (!r->asked[peer]) {
        is_away(r, peer, "it is no address");
        answered(r, peer);
    }
}

static void on_note(void *arg, enum site_links_note note, size_t peer, const char *text)
{
    struct reach *r = arg;
    if (peer >= r->count || r->answered[peer])
        return;
    switch (note) {
    case SITE_LINKS_UP:
        buf_printf(r->out, "; site %s answers at %s", r->peers[peer].name,
                   r->peers[peer].targets[0]);
        return;
    case SITE_LINKS_LOST:
    case SITE_LINKS_BAD:
        is_away(r, peer, text);
        answered(r, peer);
        return;
    case SITE_LINKS_REFUSED:
    case SITE_LINKS_STRANGER:
        return;
    }
}

static void on_late(void *arg)
{
    struct reach *r = arg;
    for (size_t i = 0; i < r->count; i++)
        if (!r->answered[i])
            is_away(r, i, "no answer within 5 s");
    loop_stop(r->loop);
}

static struct site_links *open_links(struct reach *r, struct err *err)
{
    const struct sites_config *c = r->config;
    const struct site_links_config links = {.self = c->self,
                                            .listen = "tcp:127.0.0.1:0", /* a relay may have c's */
                                            .cert_file = c->cert_file,
                                            .key_file = c->key_file,
                                            .ca_file = c->ca_file,
                                            .peers = r->peers,
                                            .peer_count = r->count,
                                            .on_message = on_message,
                                            .on_note = on_note,
                                            .on_answer = on_answer,
                                            .arg = r};
    return site_links_open(r->loop, &links, err);
}

/* The addresses at this place of the lists. */
static int reach_each(struct reach *r, size_t place, struct err *err)
{
    const struct sites_config *c = r->config;
    r->count = 0;
    for (size_t i = 0; i < c->peer_count; i++)
        if (place < c->peers[i].target_count) {
            r->answered[r->count] = false;
            r->asked[r->count] = 0;
            r->peers[r->count++] = (struct site_links_peer){.name = c->peers[i].name,
                                                            .targets = &c->peers[i].targets[place],
                                                            .target_count = 1};
        }
    r->open = r->count;
    r->links = open_links(r, err);
    if (!r->links)
        return err->code;
    if (r->count) {
        loop_timer_at(r->late, loop_now_ms(r->loop) + ANSWER_MS);
        for (size_t i = 0; i < r->count; i++)
            ask(r, i); /* a link opens when there is something to say */
        loop_run(r->loop);
    }
    r->links = site_links_close(r->links);
    return 0;
}

static size_t places(const struct sites_config *c)
{
    size_t most = 1; /* the own files are read in any case */
    for (size_t i = 0; i < c->peer_count; i++)
        if (c->peers[i].target_count > most)
            most = c->peers[i].target_count;
    return most;
}

static int show_own(const struct sites_config *c, struct buf *out,
                    void (*caution)(void *arg, const char *text), void *arg, struct err *err)
{
    const struct tls_config tls = {.server = true,
                                   .cert_file = c->cert_file,
                                   .key_file = c->key_file,
                                   .ca_file = c->ca_file,
                                   .own_name = c->self};
    struct tls_context *t = tls_context_new(&tls, err);
    if (!t)
        return err->code;
    buf_printf(out, "site %s takes messages at %s; TLS ", c->self, c->listen);
    tls_context_shown(t, out);
    tls_context_cautions(t, caution, arg);
    tls_context_free(t);
    return 0;
}

int site_reach(const struct sites_config *c, const uint8_t (*ids)[SELECTOR_ACCOUNT_BYTES],
               struct buf *out, void (*caution)(void *arg, const char *text), void *arg,
               struct err *err)
{
    struct reach r = {.config = c, .ids = ids, .out = out, .caution = caution, .arg = arg};
    int rc = show_own(c, out, caution, arg, err);
    if (rc)
        return rc;
    r.loop = loop_new();
    r.late = loop_timer_new(r.loop, on_late, &r);
    r.peers = xcalloc(c->peer_count + 1, sizeof(*r.peers));
    r.answered = xcalloc(c->peer_count + 1, sizeof(*r.answered));
    r.asked = xcalloc(c->peer_count + 1, sizeof(*r.asked));
    for (size_t place = 0; rc == 0 && place < places(c); place++)
        rc = reach_each(&r, place, err);
    loop_timer_close(r.late);
    loop_free(r.loop);
    free(r.peers);
    free(r.answered);
    free(r.asked);
    return rc;
}
