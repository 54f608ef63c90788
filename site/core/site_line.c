/* The line: which nonce of this site's key is given to what. A nonce below others that nobody holds
 * comes first, because a line above a hole is never included. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/plant.h"
#include "site_internal.h"

uint32_t site__key(const struct site_core *c)
{
    return c->config.own_keys ? c->config.self : 0;
}

bool site__in_line(const struct site_core *c, const struct site_work *w)
{
    return w->state >= SITE_WORK_SIGNING && w->bytes.key == site__key(c);
}

struct site_work *site__at(struct site_core *c, uint64_t nonce)
{
    for (struct site_work *w = c->works; w; w = w->hh.next)
        if (site__in_line(c, w) && w->bytes.nonce == nonce)
            return w;
    return NULL;
}

/* ---- dispatches of others ---- */

void site__foreign(struct site_core *c, uint32_t from, const struct site_item *item)
{
    if (!item->has_bytes || item->bytes.key != site__key(c) ||
        item->bytes.key >= c->config.members || site__dead(c, &item->bytes))
        return;
    const struct site_work *w = site__work(c, item->sender, item->id);
    if (w && w->state >= SITE_WORK_SIGNING && site__same(&w->bytes.hash, &item->bytes.hash))
        return; /* the same bytes are in this line */
    for (size_t i = 0; i < c->foreign_count; i++)
        if (c->foreign[i].from == from && site__same(&c->foreign[i].bytes.hash, &item->bytes.hash))
            return;
    if (c->foreign_count >= c->config.work_max)
        return; /* it costs a nonce, nothing else */
    if (c->foreign_count == c->foreign_cap) {
        c->foreign_cap = c->foreign_cap ? c->foreign_cap * 2 : 16;
        c->foreign = xrealloc(c->foreign, c->foreign_cap * sizeof(*c->foreign));
    }
    c->foreign[c->foreign_count++] = (struct site_foreign){.from = from, .bytes = item->bytes};
}

void site__forget_foreign(struct site_core *c, uint32_t from)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->foreign_count; i++)
        if (c->foreign[i].from != from)
            c->foreign[kept++] = c->foreign[i];
    c->foreign_count = kept;
}

void site__review_foreign(struct site_core *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->foreign_count; i++)
        if (!site__dead(c, &c->foreign[i].bytes))
            c->foreign[kept++] = c->foreign[i];
    c->foreign_count = kept;
}

/* ---- nonces ---- */

struct line {
    uint64_t *taken; /* from the chain's next nonce on, ascending */
    size_t count;
    size_t at; /* of the next one to compare */
    uint64_t next;
};

static int by_nonce(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static struct line read_line(struct site_core *c)
{
    struct line l = {.next = c->next};
    uint64_t final = c->final_next[site__key(c)];
    if (l.next < final)
        l.next = final;
    size_t most = HASH_COUNT(c->works) + c->foreign_count;
    l.taken = xcalloc(most + 1, sizeof(*l.taken));
    for (const struct site_work *w = c->works; w; w = w->hh.next)
        if (site__in_line(c, w) && w->bytes.nonce >= l.next)
            l.taken[l.count++] = w->bytes.nonce;
    for (size_t i = 0; i < c->foreign_count; i++) {
        if (c->foreign[i].bytes.nonce >= l.next)
            l.taken[l.count++] = c->foreign[i].bytes.nonce;
        if (PLANTED(SITE_ABOVE) && c->foreign[i].bytes.nonce >= c->above)
            c->above = c->foreign[i].bytes.nonce + 1;
    }
    qsort(l.taken, l.count, sizeof(*l.taken), by_nonce);
    if (PLANTED(SITE_ABOVE) && l.next < c->above)
        l.next = c->above;
    return l;
}

static uint64_t lowest_free(struct line *l)
{
    while (l->at < l->count && l->taken[l->at] <= l->next) {
        if (l->taken[l->at] == l->next)
            l->next++;
        l->at++;
    }
    return l->next;
}

static void sign(struct site_core *c, struct site_work *w, uint64_t nonce)
{
    w->bytes = (struct site_bytes){.key = site__key(c), .nonce = nonce};
    site__work_state(c, w, SITE_WORK_SIGNING);
    struct site_effect *fx = site__emit(c, SITE_FX_SIGN);
    fx->sender = (uint32_t)w->key.sender;
    fx->id = w->key.id;
    fx->bytes = w->bytes;
    fx->height = c->final + c->config.era_blocks;
    if (PLANTED(SITE_ERA_LONG))
        fx->height += 3 * c->config.era_blocks;
    if (PLANTED(SITE_IMMORTAL))
        fx->height = SITE_NEVER;
}

/* A nonce below others that no transaction needs. */
static void fill(struct site_core *c, uint64_t now, uint64_t hole, const struct line *l)
{
    if (!l->count || hole >= l->taken[l->count - 1] || PLANTED(SITE_ABOVE)) {
        c->hole_at = 0;
        return;
    }
    if (!c->hole_at || c->hole != hole) {
        c->hole = hole;
        c->hole_at = now;
    }
    if (now < c->hole_at + c->config.hole_ms)
        return;
    struct site_work *w = site__begin_work(c, c->config.self, SITE_FILLER | hole, SITE_WORK_HELD);
    c->counts.fillers++;
    sign(c, w, hole);
    c->hole_at = 0;
}

void site__give_nonces(struct site_core *c, uint64_t now)
{
    struct line l = read_line(c);
    size_t open = l.count;
    for (struct site_work *w = c->works; w && c->held && open < c->config.window_max;
         w = w->hh.next)
        if (w->state == SITE_WORK_HELD && now >= w->retry_at) {
            sign(c, w, lowest_free(&l));
            l.next++;
            open++;
        }
    if (open == l.count)
        fill(c, now, lowest_free(&l), &l);
    free(l.taken);
}

/* ---- dispatch ---- */

static void dispatch(struct site_core *c, struct site_work *w)
{
    site__work_state(c, w, SITE_WORK_DISPATCHING);
    site__store(c, SITE_FX_STORE_DISPATCH, (uint32_t)w->key.sender, w->key.id, &w->bytes);
}

/* The lowest nonce that is open: below it everything is used, granted or another site's. */
static uint64_t open_from(struct site_core *c)
{
    struct line l = read_line(c);
    uint64_t first = lowest_free(&l);
    free(l.taken);
    for (const struct site_work *w = c->works; w; w = w->hh.next)
        if (site__in_line(c, w) && w->state < SITE_WORK_GRANTED && w->bytes.nonce < first)
            first = w->bytes.nonce;
    return first;
}

/* Below this nonce the former coordinator has dispatched something; 0: nothing. */
static uint64_t foreign_from(const struct site_core *c)
{
    uint64_t last = 0;
    for (size_t i = 0; i < c->foreign_count; i++)
        if (c->foreign[i].bytes.nonce > last)
            last = c->foreign[i].bytes.nonce;
    return last;
}

/* The nonces below this one may be sent. In FLUSH the line is another site's, which fills its
 * holes. In PREPARED these are the holes alone: what is dispatched above them cannot be included
 * before they are. */
static uint64_t sent_below(struct site_core *c)
{
    if (c->state == SITE_FLUSH)
        return SITE_NEVER;
    uint64_t first = open_from(c), holes = foreign_from(c);
    return c->state == SITE_PREPARED && holes < first ? holes : first;
}

void site__dispatch(struct site_core *c)
{
    uint64_t first = sent_below(c);
    bool any_key = c->state != SITE_PREPARED;
    for (struct site_work *w = c->works; w; w = w->hh.next) {
        bool may = w->state == SITE_WORK_GRANTED;
        if (PLANTED(SITE_UNGRANTED) && w->state == SITE_WORK_PROPOSED) {
            site__work_state(c, w, SITE_WORK_GRANTED);
            may = true;
        }
        if (may && (site__in_line(c, w) ? w->bytes.nonce < first : any_key))
            dispatch(c, w);
    }
}
