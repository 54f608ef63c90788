/* The room of sites: which accounts have several sites, the steps of their cores, and what becomes
 * of the effects. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "room_internal.h"

/* ---- effects ---- */

static void sign(struct site_account *a, const struct site_effect *fx)
{
    const struct kept_call *call = site__call(a, fx->sender, fx->id);
    struct site_room_sign s = {.sender = fx->sender,
                               .id = fx->id,
                               .call = call ? call->data : NULL,
                               .call_len = call ? call->len : 0,
                               .key = fx->bytes.key,
                               .nonce = fx->bytes.nonce,
                               .death = fx->height};
    PRE(call || (fx->id & SITE_FILLER));
    if (call) {
        s.tip = call->terms.tip;
        if (call->terms.last && call->terms.last < s.death)
            s.death = call->terms.last;
    }
    a->room->ops->sign(a->room->arg, a, &s);
}

static void submit(struct site_account *a, const struct site_effect *fx)
{
    const struct site_signed s = site__signed_of(a, &fx->bytes);
    if (s.data)
        a->room->ops->submit(a->room->arg, a, &s);
}

static bool is_store(enum site_effect_type type)
{
    return type >= SITE_FX_STORE_GRANT;
}

/* The STORE effects of one step are one transaction. */
static void store(struct site_account *a, const struct site_effect *effects, size_t count)
{
    struct site_room_write *writes = xcalloc(count + 1, sizeof(*writes));
    size_t n = 0;
    uint64_t batch = 0;
    for (size_t i = 0; i < count; i++) {
        const struct site_effect *fx = &effects[i];
        if (!is_store(fx->type))
            continue;
        batch = fx->batch;
        writes[n++] = (struct site_room_write){.type = fx->type,
                                               .sender = fx->sender,
                                               .id = fx->id,
                                               .end = fx->end,
                                               .height = fx->height,
                                               .attempt = site__signed_of(a, &fx->bytes)};
    }
    if (n)
        a->room->ops->store(a->room->arg, a, batch, writes, n);
    free(writes);
}

static void carry_out(struct site_account *a, const struct site_effect *fx)
{
    switch (fx->type) {
    case SITE_FX_LOAD:
        a->room->ops->load(a->room->arg, a, fx->batch);
        return;
    case SITE_FX_SEND:
        site__post(a, &fx->message);
        return;
    case SITE_FX_SIGN:
        sign(a, fx);
        return;
    case SITE_FX_SUBMIT:
        submit(a, fx);
        return;
    case SITE_FX_STORE_GRANT:
    case SITE_FX_STORE_DISPATCH:
    case SITE_FX_STORE_NOTED:
    case SITE_FX_STORE_DROP:
    case SITE_FX_STORE_END:
    case SITE_FX_STORE_FINAL:
    case SITE_FX_STORE_WAIT:
        return; /* together */
    }
    UNREACHABLE();
}

static void arm(struct site_account *a)
{
    uint64_t due = site_due(a->core, loop_now_ms(a->room->loop));
    if (due == UINT64_MAX)
        loop_timer_stop(a->timer);
    else
        loop_timer_at(a->timer, due);
}

void site__step(struct site_account *a, const struct site_event *ev)
{
    const struct site_effect *effects;
    size_t count;
    PRE(!a->stepping); /* the host answers from the loop */
    a->stepping = true;
    site_step(a->core, loop_now_ms(a->room->loop), ev, &effects, &count);
    if (site_core_bug(a->core))
        log_error("internal.bug", "part=sites account=%s text=\"%s: the tables are read again\"",
                  hex_log(a->id, sizeof(a->id)), site_core_bug(a->core));
    store(a, effects, count);
    for (size_t i = 0; i < count; i++)
        carry_out(a, &effects[i]);
    a->stepping = false;
    arm(a);
}

static void on_timer(void *arg)
{
    site__step(arg, &(struct site_event){.type = SITE_EV_TICK});
}

/* ---- what the host says ---- */

void site_account_lead(struct site_account *a, bool leads)
{
    if (leads == a->leads)
        return;
    a->leads = leads;
    site__step(a, &(struct site_event){.type = leads ? SITE_EV_LEAD : SITE_EV_LEAVE});
    if (!leads)
        site__cache_clear(a);
}

static void cache_row(struct site_account *a, const struct site_room_row *row)
{
    site__cache_call(a, a->self, row->id, row->call, row->call_len, &row->terms);
    for (size_t i = 0; i < row->count; i++)
        site__cache_bytes(a, &row->attempts[i]);
}

void site_account_loaded(struct site_account *a, uint64_t load,
                         const struct site_room_loaded *loaded)
{
    struct site_event ev = {.type = SITE_EV_LOADED, .loaded = {.load = load, .failed = !loaded}};
    if (!loaded) {
        site__step(a, &ev);
        return;
    }
    size_t attempts = 0, at = 0;
    for (size_t i = 0; i < loaded->row_count; i++)
        attempts += loaded->rows[i].count;
    struct site_bytes *bytes = xcalloc(attempts + 1, sizeof(*bytes));
    struct site_row *rows = xcalloc(loaded->row_count + 1, sizeof(*rows));
    struct site_dispatch *dispatches = xcalloc(loaded->dispatch_count + 1, sizeof(*dispatches));
    for (size_t i = 0; i < loaded->row_count; i++) {
        const struct site_room_row *row = &loaded->rows[i];
        rows[i] = (struct site_row){
            .id = row->id, .attempts = bytes + at, .count = row->count, .cancel = row->cancel};
        for (size_t k = 0; k < row->count; k++)
            bytes[at++] = row->attempts[k].bytes;
        cache_row(a, row);
    }
    for (size_t i = 0; i < loaded->dispatch_count; i++) {
        const struct site_room_dispatch *d = &loaded->dispatches[i];
        dispatches[i] =
            (struct site_dispatch){.sender = d->sender, .id = d->id, .bytes = d->attempt.bytes};
        site__cache_bytes(a, &d->attempt);
    }
    ev.loaded.lost = loaded->lost;
    ev.loaded.wait_until = loaded->wait_until;
    ev.loaded.highest = loaded->highest;
    ev.loaded.final = loaded->final;
    ev.loaded.next = loaded->next;
    ev.loaded.rows = rows;
    ev.loaded.row_count = loaded->row_count;
    ev.loaded.dispatches = dispatches;
    ev.loaded.dispatch_count = loaded->dispatch_count;
    site__step(a, &ev);
    free(dispatches);
    free(rows);
    free(bytes);
}

void site_account_rows(struct site_account *a, const struct site_room_row *rows, size_t count)
{
    uint64_t *ids = xcalloc(count + 1, sizeof(*ids));
    for (size_t i = 0; i < count; i++) {
        ids[i] = rows[i].id;
        cache_row(a, &rows[i]);
    }
    site__step(a, &(struct site_event){.type = SITE_EV_ROWS, .rows = {.ids = ids, .count = count}});
    free(ids);
}

void site_account_cancel(struct site_account *a, uint64_t id)
{
    site__step(a, &(struct site_event){.type = SITE_EV_CANCEL, .id = id});
}

void site_account_head(struct site_account *a, uint64_t height, uint64_t next)
{
    site__step(
        a, &(struct site_event){.type = SITE_EV_HEAD, .head = {.height = height, .next = next}});
}

void site_account_final(struct site_account *a, uint64_t height, const uint64_t *next,
                        const struct site_used *used, size_t count)
{
    struct site_view v;
    site__step(a, &(struct site_event){
                      .type = SITE_EV_FINAL,
                      .final = {.height = height, .next = next, .used = used, .count = count}});
    site_core_view(a->core, &v);
    if (v.final == height)
        site__sweep(a, height, next);
}

void site_account_signed(struct site_account *a, const struct site_room_signed *all, size_t count)
{
    struct site_item *items = xcalloc(count + 1, sizeof(*items));
    for (size_t i = 0; i < count; i++) {
        const struct site_signed *attempt = &all[i].attempt;
        items[i] = (struct site_item){.sender = all[i].sender,
                                      .id = all[i].id,
                                      .has_bytes = attempt->data != NULL,
                                      .valid = true,
                                      .bytes = attempt->bytes};
        site__cache_bytes(a, attempt);
    }
    site__step(a, &(struct site_event){.type = SITE_EV_SIGNED,
                                       .signed_ = {.items = items, .count = count}});
    free(items);
}

void site_account_stored(struct site_account *a, uint64_t batch, enum site_stored outcome)
{
    if (outcome == SITE_STORED_LOST)
        a->leads = false;
    site__step(a, &(struct site_event){.type = SITE_EV_STORED,
                                       .stored = {.batch = batch, .outcome = outcome}});
    if (!a->leads)
        site__cache_clear(a);
}

void site_account_view(const struct site_account *a, struct site_account_view *ret)
{
    *ret = (struct site_account_view){.kept_bytes = a->kept};
    site_core_view(a->core, &ret->core);
    if (ret->core.chosen != SITE_NOBODY)
        ret->chosen = a->names[ret->core.chosen];
}

bool site_account_has(const struct site_account *a, const uint8_t hash[SITE_HASH_BYTES])
{
    struct site_hash h;
    memcpy(h.bytes, hash, sizeof(h.bytes));
    return site__bytes(a, &h) != NULL;
}

const struct site_counts *site_account_counts(const struct site_account *a)
{
    return site_core_counts(a->core);
}

void *site_account_ctx(const struct site_account *a)
{
    return a->ctx;
}

/* ---- accounts ---- */

struct site_account *site__account(const struct site_room *r,
                                   const uint8_t id[SELECTOR_ACCOUNT_BYTES])
{
    struct site_account *a = r->accounts;
    while (a && memcmp(a->id, id, sizeof(a->id)) != 0)
        a = a->next;
    return a;
}

static const char *name_of(const struct site_room *r, const char *name, size_t *ret_peer)
{
    for (size_t i = 0; i < r->peer_count; i++)
        if (!strcmp(r->peer_names[i], name)) {
            *ret_peer = i;
            return r->peer_names[i];
        }
    return strcmp(r->self, name) ? NULL : r->self;
}

static int check(const struct site_room *r, const struct site_config *config, struct err *err)
{
    size_t peer;
    if (config->members < 1 || config->members > SITE_MEMBERS_MAX ||
        config->self >= config->members || strcmp(config->names[config->self], r->self) != 0)
        return err_set(err, ERR_CONFIG, "the sites of an account are 1 to %d, and %s is among them",
                       SITE_MEMBERS_MAX, r->self);
    if (config->approvals >= config->members)
        return err_set(err, ERR_CONFIG,
                       "approvals: %u, but an account with %u sites has %u others that can approve",
                       config->approvals, config->members, config->members - 1);
    if (config->work_max > SITE_WIRE_ITEMS_MAX || config->batch_max > SITE_WIRE_ITEMS_MAX)
        return err_set(err, ERR_CONFIG, "a message has at most %d transactions",
                       SITE_WIRE_ITEMS_MAX);
    for (uint32_t i = 0; i < config->members; i++) {
        if (!name_of(r, config->names[i], &peer))
            return err_set(err, ERR_CONFIG, "site %s is not in the list of sites",
                           config->names[i]);
        if (i && strcmp(config->names[i - 1], config->names[i]) >= 0)
            return err_set(err, ERR_CONFIG, "site %s: the names are in order, each once",
                           config->names[i]);
    }
    return 0;
}

struct site_account *site_room_add(struct site_room *r, const struct site_config *config, void *ctx,
                                   struct err *err)
{
    if (check(r, config, err))
        return NULL;
    struct site_account *a = xcalloc(1, sizeof(*a));
    struct site_config core = *config;
    core.life = loop_seed(r->loop) | 1; /* 0 is no life */
    a->room = r;
    a->ctx = ctx;
    a->members = config->members;
    a->self = config->self;
    a->committee = site_wire_committee(config);
    memcpy(a->id, config->account, sizeof(a->id));
    for (uint32_t i = 0; i < config->members; i++)
        a->names[i] = name_of(r, config->names[i], &a->peers[i]);
    a->core = site_core_new(&core);
    site__settle(a, &core);
    a->timer = loop_timer_new(r->loop, on_timer, a);
    a->next = r->accounts;
    r->accounts = a;
    return a;
}

static void free_account(struct site_account *a)
{
    site__cache_clear(a);
    loop_timer_close(a->timer);
    site_core_free(a->core);
    free(a);
}

/* ---- the room ---- */

static void on_note(void *arg, enum site_links_note note, size_t peer, const char *text)
{
    struct site_room *r = arg;
    r->ops->note(r->arg, note, peer, text);
}

struct site_room *site_room_open(struct loop *l, const struct site_links_config *links,
                                 const struct site_host_ops *ops, void *arg, struct err *err)
{
    struct site_room *r = xcalloc(1, sizeof(*r));
    struct site_links_config config = *links;
    r->loop = l;
    r->ops = ops;
    r->arg = arg;
    r->self = xstrdup(links->self);
    r->peer_names = xcalloc(links->peer_count + 1, sizeof(*r->peer_names));
    for (size_t i = 0; i < links->peer_count; i++)
        r->peer_names[r->peer_count++] = xstrdup(links->peers[i].name);
    config.on_message = site__on_mail;
    config.on_note = on_note;
    config.on_question = site__on_question;
    config.arg = r;
    r->links = site_links_open(l, &config, err);
    return r->links ? r : site_room_close(r);
}

struct site_links *site_room_links(struct site_room *r)
{
    return r->links;
}

struct site_room *site_room_close(struct site_room *r)
{
    if (!r)
        return NULL;
    site_links_close(r->links);
    for (struct site_account *a = r->accounts, *next; a; a = next) {
        next = a->next;
        free_account(a);
    }
    for (size_t i = 0; i < r->peer_count; i++)
        free(r->peer_names[i]);
    free(r->peer_names);
    free(r->self);
    free(r);
    return NULL;
}
