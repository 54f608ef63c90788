/* The one writer of the service's status as JSON. */
#include "service/status_json.h"

#include <ctype.h>
#include <string.h>

#include "base/check.h"

static void put_text(json_t *o, const char *key, const char *text)
{
    json_object_set_new(o, key, json_string(text));
}

/* The phases of the diagrams, as the status writes its other names. */
static void put_lower(json_t *o, const char *key, const char *name)
{
    char text[40];
    size_t len = strlen(name);
    PRE(len < sizeof(text));
    for (size_t i = 0; i <= len; i++)
        text[i] = (char)tolower((unsigned char)name[i]);
    put_text(o, key, text);
}

static void put_count(json_t *o, const char *key, uint64_t n)
{
    json_object_set_new(o, key, json_integer((json_int_t)n));
}

static void put_flag(json_t *o, const char *key, bool on)
{
    json_object_set_new(o, key, json_boolean(on));
}

/* How long ago; null: never. */
static void put_age(json_t *o, const char *key, uint64_t at_ms, uint64_t now_ms)
{
    json_object_set_new(o, key, at_ms ? json_integer((json_int_t)(now_ms - at_ms)) : json_null());
}

static json_t *election_json(const struct election_stats *e, uint64_t now_ms)
{
    json_t *o = json_object();
    put_text(o, "state", elector_state_name(e->state));
    put_flag(o, "leaving", e->leaving);
    put_count(o, "bids_total", e->bids_total);
    put_count(o, "acquired_total", e->acquired_total);
    put_count(o, "lost_total", e->lost_total);
    put_count(o, "evicted_total", e->evicted_total);
    put_count(o, "left_total", e->left_total);
    put_age(o, "renewed_ms_ago", e->renewed_at_ms, now_ms);
    put_count(o, "acquire_ms", e->acquire_ms);
    put_count(o, "renew_ms", e->renew_ms);
    return o;
}

static json_t *progress_json(const struct progress *p, uint64_t now_ms)
{
    char text[PROGRESS_TEXT];
    if (!progress_lasts(p))
        return json_null();
    json_t *o = json_object();
    put_text(o, "step", start_step_name(p->step));
    put_count(o, "ms", now_ms - p->since);
    put_count(o, "done", p->done);
    put_count(o, "of", p->of);
    put_text(o, "text", progress_text(p, now_ms, text));
    return o;
}

static json_t *starting_json(const struct service_status *s, uint64_t now_ms)
{
    json_t *list = json_array();
    for (size_t i = 0; i < START_PARTS; i++)
        if (progress_lasts(&s->starting[i]))
            json_array_append_new(list, progress_json(&s->starting[i], now_ms));
    return list;
}

static json_t *account_json(const struct account_status *a, bool standalone, uint64_t now_ms)
{
    const struct manager_view *m = &a->manager;
    json_t *o = json_object();
    put_text(o, "alias", a->alias);
    put_text(o, "address", a->address);
    put_text(o, "role", standalone ? "standalone" : account_role_name(a->role));
    put_count(o, "epoch", (uint64_t)a->epoch);
    put_flag(o, "gate", a->gate_open);
    put_flag(o, "leaving", a->leaving);
    put_text(o, "leader", a->leader);
    put_text(o, "leader_address", a->leader_address);
    put_lower(o, "phase", manager_phase_name(a->phase));
    json_object_set_new(o, "progress", progress_json(&a->progress, now_ms));
    put_count(o, "wait_blocks", m->wait_blocks);
    put_text(o, "suspension", manager_suspension_name(m->suspension));
    put_text(o, "obstacle", a->obstacle);
    put_text(o, "obstacle_text", a->obstacle_text);
    put_count(o, "obstacle_ms", a->obstacle_ms);
    put_count(o, "next_nonce", m->next_nonce);
    put_count(o, "processed", m->processed);
    put_count(o, "window", m->window);
    put_count(o, "open", m->open);
    put_count(o, "unsent", m->unsent);
    put_count(o, "unsure", m->unsure);
    put_count(o, "in_block", m->in_block);
    put_count(o, "unstored", a->unstored);
    put_count(o, "unanswered", a->unanswered);
    put_count(o, "refused_not_leader_total", a->refused_total);
    put_count(o, "blocked_not_leader_total", a->gated_total);
    put_count(o, "gap_blocks", m->gap_blocks);
    put_count(o, "gap_longest", m->gap_longest);
    if (a->elected)
        json_object_set_new(o, "election", election_json(&a->election, now_ms));
    return o;
}

static json_t *session_json(const struct store_session *s)
{
    json_t *o = json_object();
    put_flag(o, "up", s->up);
    put_flag(o, "pooled", s->pooled);
    return o;
}

static json_t *listen_json(const struct listen_status *l, uint64_t now_ms)
{
    json_t *o = json_object();
    put_flag(o, "live", l->live);
    put_age(o, "proved_ms_ago", l->since_ms, now_ms);
    json_object_set_new(o, "queue_usage", json_real(l->queue_usage));
    return o;
}

static json_t *connections_json(const struct service_status *s, uint64_t now_ms)
{
    json_t *o = json_object();
    json_object_set_new(o, "control", session_json(&s->store.control));
    json_object_set_new(o, "work", session_json(&s->store.work));
    if (s->listens)
        json_object_set_new(o, "listen", listen_json(&s->listen, now_ms));
    return o;
}

static json_t *requests_json(const struct store_status *s)
{
    json_t *o = json_object();
    put_count(o, "started_total", s->started);
    put_count(o, "failed_total", s->failed);
    put_count(o, "in_flight", s->in_flight);
    return o;
}

static json_t *node_json(const struct service_status *s)
{
    json_t *o = json_object();
    put_text(o, "endpoint", s->endpoint);
    put_text(o, "spec_name", s->spec_name);
    put_count(o, "spec_version", s->spec_version);
    put_count(o, "transaction_version", s->transaction_version);
    put_count(o, "best", s->best);
    put_count(o, "finalized", s->finalized);
    put_count(o, "best_known", s->best_known);
    return o;
}

static json_t *feed_json(const struct feed_status *f)
{
    json_t *o = json_object();
    put_text(o, "feed", f->name);
    put_text(o, "account", f->alias);
    put_flag(o, "served", f->served);
    put_flag(o, "paused", f->paused);
    put_lower(o, "phase", f->phase);
    json_object_set_new(o, "last", json_integer(f->last));
    put_count(o, "sessions", f->sessions);
    json_object_set_new(o, "primary",
                        f->primary ? json_integer((json_int_t)f->primary) : json_null());
    put_text(o, "leader_address", f->leader_address);
    return o;
}

static json_t *feeds_json(const struct service_status *s)
{
    json_t *o = json_object(), *feeds = json_array();
    for (size_t i = 0; i < s->feed_count; i++)
        json_array_append_new(feeds, feed_json(&s->feeds[i]));
    put_text(o, "address", s->feeds_address);
    put_flag(o, "known", s->feeds_known);
    put_count(o, "sessions", s->feed_sessions);
    json_object_set_new(o, "feeds", feeds);
    return o;
}

json_t *status_json(const struct service_status *s, uint64_t now_ms)
{
    json_t *o = json_object();
    json_t *accounts = json_array();
    for (size_t i = 0; i < s->account_count; i++)
        json_array_append_new(accounts, account_json(&s->accounts[i], s->standalone, now_ms));
    put_text(o, "relay", s->name);
    put_text(o, "holder", s->holder);
    put_text(o, "phase", service_phase_name(s->phase));
    json_object_set_new(o, "starting", starting_json(s, now_ms));
    put_count(o, "members", s->members);
    put_text(o, "obstacle", s->obstacle);
    put_text(o, "obstacle_text", s->obstacle_text);
    put_count(o, "obstacle_ms", s->obstacle_ms);
    put_flag(o, "database", s->database_up);
    put_count(o, "stale_ms", s->stale_ms);
    if (!s->standalone)
        json_object_set_new(o, "connections", connections_json(s, now_ms));
    json_object_set_new(o, "requests", requests_json(&s->store));
    put_flag(o, "chain", s->chain_up);
    json_object_set_new(o, "node", node_json(s));
    json_object_set_new(o, "accounts", accounts);
    if (s->feeds_open)
        json_object_set_new(o, "feeds", feeds_json(s));
    return o;
}
