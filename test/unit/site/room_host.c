#include "room_host.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "election/election.h"

enum { FINALITY = 2 };

/* ---- extrinsics: key, nonce, death, salt, call, and a checksum in place of a signature ---- */

static void put64(uint8_t *at, uint64_t v)
{
    memcpy(at, &v, sizeof(v));
}

static uint64_t get64(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof(v));
    return v;
}

void host_call(uint32_t sender, uint64_t id, uint8_t call[16])
{
    put64(call, sender);
    put64(call + 8, id);
}

static void make(struct extrinsic *e, const uint8_t call[16], uint32_t key, uint64_t nonce,
                 uint64_t death)
{
    static uint64_t salt;
    put64(e->data, key);
    put64(e->data + 8, nonce);
    put64(e->data + 16, death);
    put64(e->data + 24, ++salt);
    memcpy(e->data + 32, call, 16);
    put64(e->data + 48, election_hash(e->data, 48));
}

static bool parse(const uint8_t *data, size_t len, const uint8_t *call, struct site_bytes *ret)
{
    if (len != EXTRINSIC_BYTES || get64(data + 48) != election_hash(data, 48) ||
        (call && memcmp(data + 32, call, 16) != 0))
        return false;
    *ret = (struct site_bytes){
        .key = (uint32_t)get64(data), .nonce = get64(data + 8), .death = get64(data + 16)};
    for (uint8_t i = 0; i < 4; i++) {
        uint8_t salted[EXTRINSIC_BYTES];
        memcpy(salted, data, sizeof(salted));
        salted[EXTRINSIC_BYTES - 1] = i;
        put64(ret->hash.bytes + 8 * i, election_hash(salted, sizeof(salted)));
    }
    return true;
}

/* What its bytes say. */
static void seal(struct extrinsic *to)
{
    to->s.data = to->data;
    to->s.len = EXTRINSIC_BYTES;
    INVARIANT(parse(to->data, EXTRINSIC_BYTES, NULL, &to->s.bytes));
}

static void copy(struct extrinsic *to, const uint8_t *data)
{
    memmove(to->data, data, EXTRINSIC_BYTES);
    seal(to);
}

/* ---- the chain ---- */

static struct extrinsic *submitted(struct chain *c, const struct site_hash *hash)
{
    for (size_t i = 0; i < c->count; i++)
        if (!memcmp(&c->all[i]->s.bytes.hash, hash, sizeof(*hash)))
            return c->all[i];
    return NULL;
}

size_t chain_effects(const struct world *w, uint32_t sender, uint64_t id)
{
    uint8_t call[16];
    size_t n = 0;
    host_call(sender, id, call);
    for (size_t i = 0; i < w->chain.count; i++) {
        const struct extrinsic *e = w->chain.all[i];
        n += e->included && e->included <= w->chain.final && !memcmp(e->data + 32, call, 16);
    }
    return n;
}

static void include(struct chain *c)
{
    c->height++;
    INVARIANT(c->height < BLOCKS_MAX);
    for (bool any = true; any;) { /* one that came earlier may fit now */
        any = false;
        for (size_t i = 0; i < c->count; i++) {
            struct extrinsic *e = c->all[i];
            if (e->included || e->s.bytes.nonce != c->next[e->s.bytes.key] ||
                e->s.bytes.death < c->height)
                continue;
            e->included = c->height;
            c->next[e->s.bytes.key]++;
            any = true;
        }
    }
    memcpy(c->next_at[c->height], c->next, sizeof(c->next));
    c->final = c->height > FINALITY ? c->height - FINALITY : 0;
}

size_t chain_used(const struct host *h, struct site_used used[ROWS_MAX])
{
    const struct chain *c = &h->w->chain;
    size_t n = 0;
    for (size_t i = 0; i < c->count; i++) {
        const struct extrinsic *e = c->all[i];
        if (e->included != h->fed)
            continue;
        INVARIANT(n < ROWS_MAX);
        used[n] = (struct site_used){.bytes = e->s.bytes};
        if (get64(e->data + 32) == h->self)
            used[n].id = h->db.rows[get64(e->data + 40) - 1].id;
        n++;
    }
    return n;
}

static void tell(struct host *h)
{
    const struct chain *c = &h->w->chain;
    struct site_used used[ROWS_MAX];
    if (!h->room)
        return;
    site_account_head(h->account, c->height, c->next[h->w->own_keys ? h->self : 0]);
    while (h->loaded && h->fed < c->final) {
        h->fed++;
        site_account_final(h->account, h->fed, c->next_at[h->fed], used, chain_used(h, used));
    }
}

void chain_block(struct world *w)
{
    include(&w->chain);
    for (uint32_t i = 0; i < w->members; i++)
        tell(&w->hosts[i]);
}

/* ---- the database ---- */

enum job_type { JOB_LOAD, JOB_STORE, JOB_SIGN };

struct job {
    struct job *next;
    enum job_type type;
    uint64_t number;
    struct site_room_write *writes;
    struct extrinsic *bytes;
    size_t count;
    struct site_room_sign sign;
    uint8_t call[16];
};

static struct job *add(struct host *h, enum job_type type, uint64_t number)
{
    struct job *j = xcalloc(1, sizeof(*j));
    j->type = type;
    j->number = number;
    if (!h->jobs)
        h->last = &h->jobs;
    *h->last = j;
    h->last = &j->next;
    return j;
}

static struct row *row_of(struct database *db, uint64_t id)
{
    for (size_t i = 0; i < db->count; i++)
        if (db->rows[i].id == id)
            return &db->rows[i];
    return NULL;
}

static void apply(struct host *h, const struct site_room_write *w, const struct extrinsic *bytes)
{
    struct database *db = &h->db;
    struct row *r;
    switch (w->type) {
    case SITE_FX_STORE_GRANT:
        r = row_of(db, w->id);
        INVARIANT(r && r->grant_count < ARRAY_LEN(r->grants));
        copy(&r->grants[r->grant_count++], bytes->data);
        return;
    case SITE_FX_STORE_DISPATCH:
        INVARIANT(db->dispatch_count < ARRAY_LEN(db->dispatches));
        copy(&db->dispatches[db->dispatch_count], bytes->data);
        db->dispatch_senders[db->dispatch_count] = w->sender;
        db->dispatch_ids[db->dispatch_count++] = w->id;
        return;
    case SITE_FX_STORE_DROP:
        for (size_t i = 0; i < db->dispatch_count; i++)
            if (db->dispatch_ids[i] == w->id && db->dispatch_senders[i] == w->sender) {
                db->dispatch_count--;
                copy(&db->dispatches[i], db->dispatches[db->dispatch_count].data);
                db->dispatch_ids[i] = db->dispatch_ids[db->dispatch_count];
                db->dispatch_senders[i] = db->dispatch_senders[db->dispatch_count];
            }
        return;
    case SITE_FX_STORE_END:
        r = row_of(db, w->id);
        INVARIANT(r);
        db->ends_twice += r->ended;
        r->ended = true;
        r->cancelled = w->end == SITE_CANCELLED;
        db->open--;
        return;
    case SITE_FX_STORE_FINAL:
        db->final = w->height;
        return;
    case SITE_FX_STORE_NOTED:
    case SITE_FX_STORE_WAIT:
        return;
    case SITE_FX_LOAD:
    case SITE_FX_SEND:
    case SITE_FX_SIGN:
    case SITE_FX_SUBMIT:
        break;
    }
    UNREACHABLE();
}

static void answer_load(struct host *h, const struct job *j)
{
    struct database *db = &h->db;
    struct site_room_row *rows = xcalloc(db->count + 1, sizeof(*rows));
    struct site_signed *attempts = xcalloc(db->count * 16 + 1, sizeof(*attempts));
    struct site_room_dispatch *dispatches = xcalloc(db->dispatch_count + 1, sizeof(*dispatches));
    size_t n = 0, at = 0;
    for (size_t i = 0; i < db->count; i++) {
        const struct row *r = &db->rows[i];
        if (r->ended)
            continue;
        rows[n] = (struct site_room_row){.id = r->id,
                                         .call = r->call,
                                         .call_len = sizeof(r->call),
                                         .attempts = attempts + at,
                                         .count = r->grant_count};
        for (size_t k = 0; k < r->grant_count; k++)
            attempts[at++] = r->grants[k].s;
        n++;
    }
    for (size_t i = 0; i < db->dispatch_count; i++)
        dispatches[i] = (struct site_room_dispatch){.sender = db->dispatch_senders[i],
                                                    .id = db->dispatch_ids[i],
                                                    .attempt = db->dispatches[i].s};
    const struct site_room_loaded loaded = {.final = db->final,
                                            .next = h->w->chain.next_at[db->final],
                                            .rows = rows,
                                            .row_count = n,
                                            .dispatches = dispatches,
                                            .dispatch_count = db->dispatch_count};
    h->fed = db->final;
    h->loaded = true;
    site_account_loaded(h->account, j->number, &loaded);
    free(dispatches);
    free(attempts);
    free(rows);
}

static void answer_sign(struct host *h, const struct job *j)
{
    struct extrinsic e = {0};
    make(&e, j->call, j->sign.key, j->sign.nonce, j->sign.death);
    seal(&e);
    site_account_signed(
        h->account,
        &(struct site_room_signed){.sender = j->sign.sender, .id = j->sign.id, .attempt = e.s}, 1);
}

static void free_job(struct job *j)
{
    free(j->writes);
    free(j->bytes);
    free(j);
}

static void commit(struct host *h, const struct job *j)
{
    for (size_t i = 0; i < j->count; i++)
        apply(h, &j->writes[i], &j->bytes[i]);
}

void host_work(struct host *h)
{
    for (struct job *j = h->jobs; j && h->room; j = h->jobs) {
        h->jobs = j->next;
        if (j->type == JOB_LOAD) {
            answer_load(h, j);
        } else if (j->type == JOB_SIGN) {
            answer_sign(h, j);
        } else {
            commit(h, j);
            site_account_stored(h->account, j->number, SITE_STORED);
        }
        free_job(j);
    }
}

void host_forget(struct host *h, bool apply_first)
{
    for (struct job *j = h->jobs; j; j = h->jobs) {
        h->jobs = j->next;
        if (apply_first)
            commit(h, j); /* and nobody heard of it */
        free_job(j);
    }
    h->loaded = false;
}

void host_enqueue(struct host *h, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        INVARIANT(h->db.count < ROWS_MAX);
        struct row *r = &h->db.rows[h->db.count++];
        r->id = h->db.count;
        host_call(h->self, r->id, r->call);
        h->db.open++;
        if (h->loaded)
            site_account_rows(
                h->account,
                &(struct site_room_row){.id = r->id, .call = r->call, .call_len = sizeof(r->call)},
                1);
    }
}

/* ---- operations ---- */

static void load(void *arg, struct site_account *a, uint64_t number)
{
    struct host *h = arg;
    INVARIANT(site_account_ctx(a) == h);
    h->loaded = false;
    add(h, JOB_LOAD, number);
}

static void store(void *arg, struct site_account *a, uint64_t batch,
                  const struct site_room_write *writes, size_t count)
{
    struct job *j = add(arg, JOB_STORE, batch);
    (void)a;
    j->writes = xcalloc(count, sizeof(*j->writes));
    j->bytes = xcalloc(count, sizeof(*j->bytes));
    j->count = count;
    for (size_t i = 0; i < count; i++) {
        j->writes[i] = writes[i];
        /* Bytes that are to be stored are here, with their hash. */
        if (writes[i].type == SITE_FX_STORE_GRANT || writes[i].type == SITE_FX_STORE_DISPATCH) {
            INVARIANT(writes[i].attempt.data);
            copy(&j->bytes[i], writes[i].attempt.data);
            INVARIANT(
                !memcmp(&j->bytes[i].s.bytes, &writes[i].attempt.bytes, sizeof(struct site_hash)));
        }
    }
}

static void sign(void *arg, struct site_account *a, const struct site_room_sign *s)
{
    struct job *j = add(arg, JOB_SIGN, 0);
    (void)a;
    j->sign = *s;
    if (s->call)
        memcpy(j->call, s->call, 16);
    else
        host_call(UINT32_MAX, s->id, j->call);
}

static void submit(void *arg, struct site_account *a, const struct site_signed *attempt)
{
    struct host *h = arg;
    struct chain *c = &h->w->chain;
    (void)a;
    h->submitted++;
    if (submitted(c, &attempt->bytes.hash))
        return;
    INVARIANT(c->count < EXTRINSICS_MAX);
    struct extrinsic *e = xcalloc(1, sizeof(*e));
    copy(e, attempt->data);
    c->all[c->count++] = e;
}

static bool read_bytes(void *arg, struct site_account *a, uint64_t own, const uint8_t *data,
                       size_t len, const uint8_t *call, size_t call_len, struct site_bytes *ret)
{
    (void)arg;
    (void)own;
    (void)a;
    return call_len == 16 && parse(data, len, call, ret);
}

static const char *leader(void *arg, struct site_account *a)
{
    (void)arg;
    (void)a;
    return "";
}

static void note(void *arg, enum site_links_note n, size_t peer, const char *text)
{
    struct host *h = arg;
    (void)peer;
    (void)text;
    h->notes[n]++;
}

const struct site_host_ops host_ops = {.load = load,
                                       .store = store,
                                       .sign = sign,
                                       .submit = submit,
                                       .read = read_bytes,
                                       .leader = leader,
                                       .note = note};
