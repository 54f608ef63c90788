/* leader_due of 13_due.sql: which accounts want something. */
#include "base/check.h"
#include "mem/mem.h"

struct dues {
    bool late, has_rows;
    int64_t next; /* 0: none */
};

static void sooner(int64_t *at, int64_t us)
{
    if (us && (!*at || us < *at))
        *at = us;
}

/* The soonest deadline of the outbox, or of pending rows, says whether something is late; one that
 * has passed hides those behind it. */
static void note_deadline(struct dues *d, int64_t first, int64_t now)
{
    d->late |= first && first <= now;
    sooner(&d->next, first > now ? first : 0);
}

static struct dues dues_of(const struct mem_account *a, int64_t now)
{
    struct dues d = {.has_rows = !list_empty(&a->signed_rows)};
    int64_t queued = 0, pending = 0;
    LIST_EACH (p, &a->outbox) {
        const struct mem_row *row = CONTAINER_OF(p, struct mem_row, node);
        d.has_rows |= row->not_before_us <= now && (!row->deadline_us || row->deadline_us > now);
        if (d.has_rows && !a->timed)
            break;
        sooner(&queued, row->deadline_us);
        sooner(&d.next, row->not_before_us > now ? row->not_before_us : 0);
    }
    for (size_t i = 0; a->timed && i < a->pending_count; i++)
        sooner(&pending, a->pending[i]->deadline_us);
    note_deadline(&d, queued, now);
    note_deadline(&d, pending, now);
    return d;
}

/* A bump of what waits in the outbox is paid by its admission. */
static bool is_asked(const struct mem_db *db, const struct mem_account *a)
{
    for (size_t i = 0; i < a->bump_count; i++)
        if (!mem__waiting(&db->t, MEM_OUTBOX, NULL, a->bumps[i].id))
            return true;
    return a->cancellation_count != 0;
}

static bool wants(const struct mem_db *db, const struct mem_account *a, const struct store_due *r,
                  size_t i, int64_t now, struct store_want *ret)
{
    struct dues d = dues_of(a, now);
    ret->has_requests = (r->fingerprints[i] >= 0 && mem__fingerprint(a) != r->fingerprints[i]) ||
                        is_asked(db, a) || d.late;
    ret->has_rows = d.has_rows && !a->paused;
    if (d.next && d.next <= now + (int64_t)r->ahead_ms * 1000)
        ret->next_ms = (d.next - now + 999) / 1000;
    return ret->has_requests || ret->has_rows || ret->next_ms >= 0;
}

void mem__due(struct mem_session *s, struct store_due *r)
{
    int64_t now = mem_db_now_us(s->db);
    struct mem_answer *answer = mem__answer(&r->req);
    struct store_want *out = mem__put(answer, NULL, r->count * sizeof(*out));
    r->wants = out;
    r->want_count = 0;
    for (size_t i = 0; i < r->count; i++) {
        struct err ignored;
        const struct mem_account *a = mem__fence(s->db, r->accounts[i], r->epochs[i], &ignored);
        struct store_want want = {.index = i, .lost = !a, .next_ms = -1};
        if (!a || wants(s->db, a, r, i, now, &want))
            out[r->want_count++] = want;
    }
}
