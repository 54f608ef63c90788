/* Leading an account that has several sites: what the room of sites wants of the database, who
 * leads, and what operators see. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/log.h"
#include "sites/sites.h"

enum { RANGE_BLOCKS = 1000, SETUP_AGAIN_MS = 2000 };

/* ---- operations of the room ---- */

static void load(void *arg, struct site_account *a, uint64_t number)
{
    struct site_host *h = site_account_ctx(a);
    (void)arg;
    sites_chain_forget(h);
    site_tables_load(h->tables, number);
    sites_poll_failed(h, false); /* a poll that is out is not answered */
}

static void store(void *arg, struct site_account *a, uint64_t batch,
                  const struct site_room_write *writes, size_t count)
{
    const struct site_host *h = site_account_ctx(a);
    (void)arg;
    site_tables_store(h->tables, batch, writes, count);
}

/* Links ask any relay of the site when nobody is named. */
static const char *leader(void *arg, struct site_account *a)
{
    (void)arg;
    (void)a;
    return "";
}

static void note(void *arg, enum site_links_note what, size_t peer, const char *text)
{
    const struct service_sites_room *k = arg;
    const char *name = peer < k->config->peer_count ? k->config->peers[peer].name : "";
    switch (what) {
    case SITE_LINKS_UP:
        log_info("site.link_up", "site=%s peer=%s address=%s", k->config->self, name, text);
        return;
    case SITE_LINKS_LOST:
        log_warn("site.link_lost", "site=%s peer=%s text=\"%s\"", k->config->self, name, text);
        return;
    case SITE_LINKS_REFUSED:
        log_warn("site.refused", "site=%s peer=%s text=\"%s\"", k->config->self, name, text);
        return;
    case SITE_LINKS_STRANGER:
        log_warn("site.stranger", "site=%s text=\"%s\"", k->config->self, text);
        return;
    case SITE_LINKS_BAD:
        log_error("site.link_bad", "site=%s peer=%s text=\"%s\"", k->config->self, name, text);
        return;
    }
    UNREACHABLE();
}

const struct site_host_ops sites_host_ops = {.load = load,
                                             .store = store,
                                             .sign = sites_sign,
                                             .submit = sites_submit,
                                             .read = sites_read,
                                             .leader = leader,
                                             .note = note};

/* ---- what operators see ---- */

static void on_noted(struct store_site_note *r)
{
    struct site_host *h = CONTAINER_OF(r, struct site_host, note);
    h->noting = false;
    if (r->err.code) {
        h->seen_state = -1; /* again with the next block */
        sites_lost(h, r->err.code);
    }
}

void sites_look(struct site_host *h)
{
    struct site_account_view v;
    if (h->phase != HOST_LED || h->noting)
        return;
    site_account_view(h->site, &v);
    if (h->seen_state == (int)v.core.state && h->seen_chosen == v.core.chosen &&
        h->seen_down == v.core.down)
        return;
    h->noting = true;
    h->seen_state = (int)v.core.state;
    h->seen_chosen = v.core.chosen;
    h->seen_down = v.core.down;
    snprintf(h->reason, sizeof(h->reason), "%s the ranking of range %llu%s",
             v.chosen ? "first in" : "nobody is left in", (unsigned long long)v.core.range,
             v.core.down ? ", without the sites that are away" : "");
    log_info("site.coordinator", "account=%s site=%s state=%s coordinator=%s reason=\"%s\"",
             h->account->alias, h->room->config->self, site_state_name(v.core.state),
             v.chosen ? v.chosen : "", h->reason);
    h->note = (struct store_site_note){.account = h->account->store_account,
                                       .epoch = h->epoch,
                                       .state = site_state_name(v.core.state),
                                       .coordinator = v.core.chosen,
                                       .height = (int64_t)v.core.final,
                                       .reason = h->reason,
                                       .down = v.core.down};
    store_site_note_start(h->room->store, &h->note, on_noted);
}

/* ---- who leads ---- */

void sites_lost(struct site_host *h, int code)
{
    if (h->epoch)
        account_lost(h->account, code);
}

void sites_failed(void *arg, const char *request, const struct err *err)
{
    struct site_host *h = arg;
    bool refused = err_is_refused(err->code);
    if (refused)
        log_error("store.refused", "account=%s query=site_%s code=%s sqlstate=%s text=\"%s\"",
                  h->account->alias, request, err_name(err->code), err->sqlstate, err->text);
    if (refused)
        snprintf(h->trouble, sizeof(h->trouble), "the database refuses its %s: %.140s", request,
                 err->text);
    if (!strcmp(request, "poll"))
        sites_poll_failed(h, refused);
    sites_lost(h, err->code);
}

/* A block may come without the nonce, and no other one may follow it. */
static void wait_for_block(struct site_host *h)
{
    if (h->again)
        loop_timer_at(h->again, loop_now_ms(h->room->room.service->loop) + SETUP_AGAIN_MS);
}

/* It is led: a finalized block is wanted. */
static void begin(struct site_host *h)
{
    struct service *s = h->room->room.service;
    const struct node_info *info = node_info(s->node);
    if (info)
        service_follow(s, info->finalized_number);
    wait_for_block(h);
}

void sites_begin_again(struct site_host *h)
{
    if (h->phase != HOST_BLOCK)
        return;
    if (!h->trouble[0])
        snprintf(h->trouble, sizeof(h->trouble),
                 "no finalized block has come with the account's nonce");
    begin(h);
}

static void lead(struct site_host *h)
{
    h->phase = HOST_LED;
    h->seen_state = -1;
    h->trouble[0] = 0;
    site_tables_lead(h->tables, h->epoch);
    sites_head(h);
}

static void on_setup(struct store_site_setup *r)
{
    struct site_host *h = CONTAINER_OF(r, struct site_host, setup);
    h->setting_up = false;
    if (h->phase != HOST_SETUP)
        return;
    if (!r->err.code) {
        lead(h);
        return;
    }
    h->phase = HOST_BLOCK; /* again with a later block, or with this one */
    wait_for_block(h);
    sites_failed(h, "setup", &r->err);
}

void sites_setup(struct site_host *h, uint64_t final, uint64_t next)
{
    const struct sites_account *c = h->config;
    uint64_t now = loop_now_ms(h->room->room.service->loop);
    if (h->setting_up || !h->tables || now < h->setup_at)
        return;
    h->setup_at = now + SETUP_AGAIN_MS;
    for (size_t i = 0; i < c->count; i++)
        h->setup_next[i] = (int64_t)next;
    h->phase = HOST_SETUP;
    h->setting_up = true;
    h->setup =
        (struct store_site_setup){.account = h->account->store_account,
                                  .epoch = h->epoch,
                                  .count = c->count,
                                  .members = h->members,
                                  .self = h->self,
                                  .sticky = c->sticky,
                                  .silence_is_down = c->silence_is_down,
                                  .range_blocks = c->range_blocks ? c->range_blocks : RANGE_BLOCKS,
                                  .era_blocks = h->era_blocks,
                                  .approvals = c->approvals,
                                  .final = (int64_t) final,
                                  .next = h->setup_next};
    store_site_setup_start(h->room->store, &h->setup, on_setup);
}

void sites_leave(struct site_host *h)
{
    if (h->phase == HOST_LED)
        site_tables_lead(h->tables, 0);
    h->phase = HOST_AWAY;
    h->epoch = 0;
    h->setup_at = 0;
    h->trouble[0] = 0;
    memset(h->asked, 0, sizeof(h->asked));
    memset(h->waiting, 0, sizeof(h->waiting));
    sites_chain_forget(h);
    sites_submit_end(h);
    sites_sign_end(h);
}

void service_sites_lead(struct account *a, int64_t epoch)
{
    struct site_host *h = a->site;
    sites_leave(h);
    if (!epoch)
        return;
    h->epoch = epoch;
    h->phase = HOST_BLOCK;
    begin(h);
}

void service_sites_head(struct service *s, bool up)
{
    const struct node_info *info = node_info(s->node);
    for (size_t i = 0; i < s->account_count; i++) {
        struct site_host *h = s->accounts[i].site;
        if (h && up && info && h->phase == HOST_AWAY)
            service_follow(s, sites_first_wanted(h, info->finalized_number));
        if (h && up && h->phase == HOST_BLOCK)
            begin(h);
        if (h)
            sites_head(h);
    }
}

/* Its nonce is below those that were used: the former ones will be valid once more, and bytes that
 * count as dead with them. `doubts` had the nonce asked for again. */
void sites_look_for_life(struct site_host *h, const struct node_block *from, uint64_t used)
{
    uint64_t nonce = from->nonces[h->account->node_index];
    if (h->reaped || nonce == UINT64_MAX || nonce >= used)
        return;
    h->reaped = from->head.number;
    snprintf(
        h->reaped_text, sizeof(h->reaped_text),
        "account nonce is %llu at block %llu and was %llu: the account was reaped; pause it at "
        "all sites, wait for %u blocks, then account_unsite at all, and restart",
        (unsigned long long)nonce, (unsigned long long)h->reaped, (unsigned long long)used,
        h->era_blocks);
}

void service_sites_obstacle(const struct account *a, struct obstacle *ret)
{
    const struct site_host *h = a->site;
    const char *text = h->trouble;
    *ret = (struct obstacle){0};
    if (!node_info(a->service->node)) {
        ret->code = OBSTACLE_NODE;
        text = "no endpoint is usable";
    } else if (!h->tables) {
        ret->code = OBSTACLE_READ;
        text = "the links to the other sites cannot be opened; the relay's log has the reason";
    } else if (h->reaped) {
        ret->code = OBSTACLE_READ;
        text = h->reaped_text;
    } else if (text[0]) {
        ret->code = OBSTACLE_READ;
    } else {
        sites_refused(h, ret);
        return;
    }
    if (ret->code)
        plain_text(ret->text, sizeof(ret->text), text);
}
