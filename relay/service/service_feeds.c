/* The room of feeds: batches of redundant publishers, for the accounts that this relay leads. The
 * configuration of the service has the door that publishers connect to. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "chain/codec/codec.h"
#include "feed/feed.h"
#include "service/entry.h"
#include "service/service_internal.h"
#include "store/feeds.h"

struct service_feeds_room {
    struct room room;
    struct feed_room *feeds;
    struct store_feeds *store; /* NULL: the accounts are not registered yet */
    struct store_feed_list list;
    int32_t *accounts; /* of the list */
    struct loop_task task;
    struct entry entry;
    bool read, failing; /* the list was read once; the last read failed, which is on record */
};

/* A batch on its way to the database. */
struct taking {
    struct service_feeds_room *k;
    struct feed_take *take;
    struct store_feed_take req;
};

/* ---- what the feeds ask for ---- */

/* One line for each failure that lasts. Before the first read the connection may not be up yet. */
static void record(struct service_feeds_room *k, const struct err *err)
{
    if (err->code == ERR_CANCELED)
        return;
    if (err->code && !k->failing && (k->read || err_is_refused(err->code))) {
        log_error("feed.list_failed", "code=%s sqlstate=%s text=\"%s\"", err_name(err->code),
                  err->sqlstate, err->text);
        k->failing = true;
    } else if (!err->code) {
        if (k->failing)
            log_info("feed.list_read", "feeds=%zu", k->list.row_count);
        k->failing = false;
        k->read = true;
    }
}

static void on_list(struct store_feed_list *r)
{
    struct service_feeds_room *k = CONTAINER_OF(r, struct service_feeds_room, list);
    struct feed_row *rows = xcalloc(r->row_count ? r->row_count : 1, sizeof(*rows));
    for (size_t i = 0; i < r->row_count; i++) {
        const struct store_feed_row *row = &r->rows[i];
        rows[i] = (struct feed_row){.name = row->name,
                                    .account = row->account,
                                    .last = row->last,
                                    .publishers = row->publishers,
                                    .publisher_count = row->publishers_len / FEED_KEY,
                                    .options = row->options,
                                    .paused = row->paused,
                                    .leader = row->leader};
    }
    record(k, &r->err);
    if (r->err.code)
        feed_room_no_rows(k->feeds);
    else
        feed_room_rows(k->feeds, rows, r->row_count);
    free(rows);
}

static void no_list(struct loop_task *task)
{
    feed_room_no_rows(CONTAINER_OF(task, struct service_feeds_room, task)->feeds);
}

static void load(void *arg)
{
    struct service_feeds_room *k = arg;
    const struct service *s = k->room.service;
    if (!k->store) {
        loop_post(s->loop, &k->task, no_list);
        return;
    }
    k->list = (struct store_feed_list){.count = s->account_count,
                                       .accounts = k->accounts,
                                       .holder = s->holder,
                                       .address = s->config.feeds.address};
    store_feed_list_start(k->store, &k->list, on_list);
}

/* The database has refused a call of it, and always will. */
static bool is_bad_batch(const struct err *err)
{
    return err->code == ERR_ARGUMENT &&
           (!strcmp(err->sqlstate, "TR011") || !strcmp(err->sqlstate, "TR012"));
}

static bool is_timed(const struct feed_take *take)
{
    for (size_t i = 0; i < take->count; i++) {
        const struct feed_call *c = &take->calls[i];
        if (c->not_before_ms >= 0 || c->deadline_ms >= 0 || c->deadline_block >= 0)
            return true;
    }
    return false;
}

/* A batch rings no doorbell: it is this relay that has to look. Rows with times need a request poll
 * as well, which a wakeup brings. What is stored by a statement without an answer is found by the
 * next sweep. */
static void look(struct account *a, bool timed)
{
    account_poll(a, (struct poll_event){.type = timed ? POLL_EV_RANG : POLL_EV_REQUEUED});
}

static void on_taken(struct store_feed_take *r)
{
    struct taking *t = CONTAINER_OF(r, struct taking, req);
    struct service *s = t->k->room.service;
    struct feed_take *take = t->take;
    struct err err = r->err;
    enum feed_stored outcome = FEED_STORED;
    int64_t last = r->last;
    struct account *account = service_account_by_row(s, r->account);
    bool taken = !err.code && r->taken == STORE_FEED_TAKEN, timed = taken && is_timed(take);
    if (is_bad_batch(&err))
        outcome = FEED_STORED_BAD;
    else if (err_class(err.code) == ERR_CLASS_LOST_LEADERSHIP)
        outcome = FEED_STORED_LOST;
    else if (err.code || r->taken > STORE_FEED_ELSEWHERE)
        outcome = FEED_STORED_UNKNOWN; /* the next list shows what it is */
    if (outcome == FEED_STORED_LOST)
        account_lost(account, err.code);
    free(t);
    feed_take_done(take, outcome, last, &err); /* the acknowledgement goes first */
    if (taken)
        look(account, timed);
}

static void call_of(void *arg, size_t i, struct store_feed_call *ret)
{
    const struct feed_call *c = &((const struct feed_take *)arg)->calls[i];
    *ret = (struct store_feed_call){.data = c->data,
                                    .len = c->len,
                                    .priority = c->priority,
                                    .not_before_ms = c->not_before_ms,
                                    .deadline_ms = c->deadline_ms,
                                    .spec_version = c->spec_version,
                                    .deadline_block = c->deadline_block,
                                    .retries = c->retries,
                                    .tip = c->tip,
                                    .max_tip = c->max_tip};
}

static void take(void *arg, struct feed_take *batch)
{
    struct service_feeds_room *k = arg;
    struct taking *t = xcalloc(1, sizeof(*t));
    t->k = k;
    t->take = batch;
    t->req = (struct store_feed_take){.account = batch->account,
                                      .epoch = batch->epoch,
                                      .feed = batch->feed,
                                      .number = batch->number,
                                      .publisher = batch->publisher,
                                      .digest = batch->digest,
                                      .count = batch->count,
                                      .call = call_of,
                                      .arg = batch};
    store_feed_take_start(k->store, &t->req, on_taken);
}

/* A node that gives other metadata than the chain's must not make a batch bad. */
static int check_call(void *arg, const uint8_t *call, size_t len, struct err *err)
{
    const struct service_feeds_room *k = arg;
    struct node *node = k->room.service->node;
    const struct node_info *info = node ? node_info(node) : NULL;
    if (!info)
        return ERR_NET;
    if (codec_check_call(info->metadata, call, len, err) == 0)
        return 0;
    return node_metadata_confirmed(node) ? ERR_DECODE : ERR_NET;
}

static const struct feed_host_ops host = {.load = load, .take = take, .check_call = check_call};

/* ---- who leads ---- */

void service_feeds_lead(struct service *s, const struct account *a, int64_t epoch)
{
    if (s->feeds)
        feed_room_lead(s->feeds->feeds, a->store_account, epoch);
}

void service_feeds_metrics(const struct service *s, struct buf *out)
{
    if (s->feeds)
        feed_room_metrics(s->feeds->feeds, out);
}

/* ---- its status ---- */

struct viewing {
    struct service *service;
    struct service_status *status;
};

static void on_view(void *arg, const struct feed_view *v)
{
    struct viewing *w = arg;
    struct service_status *s = w->status;
    const struct account *a = service_account_by_row(w->service, v->account);
    s->feeds = xrealloc(s->feeds, (s->feed_count + 1) * sizeof(*s->feeds));
    s->feeds[s->feed_count++] = (struct feed_status){.name = v->name,
                                                     .alias = a ? a->alias : "",
                                                     .phase = feed_phase_name(v->phase),
                                                     .served = v->served,
                                                     .paused = v->paused,
                                                     .unreadable = v->phase == FEED_LOAD_LATER,
                                                     .last = v->last,
                                                     .sessions = v->sessions,
                                                     .primary = v->primary,
                                                     .leader_address = v->leader};
}

static void feeds_status(const struct room *r, struct service_status *ret)
{
    const struct service_feeds_room *k = (const struct service_feeds_room *)(const void *)r;
    struct viewing w = {r->service, ret};
    if (!k->feeds)
        return;
    ret->feeds_open = entry_is_open(&k->entry);
    ret->feeds_address = r->service->config.feeds.address;
    ret->feed_sessions = feed_room_sessions(k->feeds);
    ret->feeds_known = feed_room_view(k->feeds, on_view, &w);
    ret->feeds_failing = k->failing;
}

/* ---- the room ---- */

static int try_door(struct entry *e, struct err *err)
{
    struct service_feeds_room *k = CONTAINER_OF(e, struct service_feeds_room, entry);
    const struct service_feeds *door = &e->service->config.feeds;
    int rc = door->open(door->arg, e->service->loop, k->feeds, err);
    if (rc == 0)
        log_info("feed.listening", "address=%s", door->address);
    return rc;
}

static void feeds_open(struct room *r)
{
    struct service_feeds_room *k = CONTAINER_OF(r, struct service_feeds_room, room);
    struct service *s = r->service;
    k->feeds = feed_room_new(s->loop, &host, k);
    s->feeds = k;
    k->entry = (struct entry){.name = "feeds", .service = s, .open = try_door};
    entry_begin(&k->entry);
}

static void feeds_run(struct room *r)
{
    struct service_feeds_room *k = CONTAINER_OF(r, struct service_feeds_room, room);
    const struct service *s = r->service;
    k->accounts = xcalloc(s->account_count, sizeof(*k->accounts));
    for (size_t i = 0; i < s->account_count; i++)
        k->accounts[i] = s->accounts[i].store_account;
    k->store = store_feeds_new(
        s->loop, s->config.work_dsn ? s->config.work_dsn : s->config.control_dsn, s->holder);
}

static void on_drained(void *arg)
{
    struct service_feeds_room *k = arg;
    room_ended(&k->room);
}

static void feeds_drain(struct room *r)
{
    struct service_feeds_room *k = CONTAINER_OF(r, struct service_feeds_room, room);
    const struct service_feeds *door = &r->service->config.feeds;
    if (entry_is_open(&k->entry))
        door->drain(door->arg);
    else
        entry_end(&k->entry);
    feed_room_drain(k->feeds, on_drained);
}

static void on_room_closed(void *arg)
{
    struct service_feeds_room *k = arg;
    k->feeds = NULL;
    room_ended(&k->room);
}

static void on_store_closed(void *arg)
{
    struct service_feeds_room *k = arg;
    k->store = NULL;
    feed_room_close(k->feeds, on_room_closed);
}

static void feeds_close(struct room *r)
{
    struct service_feeds_room *k = CONTAINER_OF(r, struct service_feeds_room, room);
    const struct service_feeds *door = &r->service->config.feeds;
    if (entry_is_open(&k->entry))
        door->close(door->arg);
    entry_end(&k->entry);
    r->service->feeds = NULL;
    if (k->store)
        store_feeds_close(k->store, on_store_closed, k);
    else
        feed_room_close(k->feeds, on_room_closed);
}

static void feeds_free(struct room *r)
{
    struct service_feeds_room *k = CONTAINER_OF(r, struct service_feeds_room, room);
    INVARIANT(!k->feeds);
    free(k->accounts);
    free(k);
}

static const struct room_ops ops = {.name = "feeds",
                                    .open = feeds_open,
                                    .run = feeds_run,
                                    .drain = feeds_drain,
                                    .close = feeds_close,
                                    .free = feeds_free,
                                    .status = feeds_status};

struct room *service_feeds(struct service *s, struct err *err)
{
    (void)err;
    if (s->standalone || !s->config.feeds.open)
        return NULL;
    struct service_feeds_room *k = xcalloc(1, sizeof(*k));
    k->room = (struct room){.ops = &ops, .service = s};
    return &k->room;
}
