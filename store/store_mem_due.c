/* leader_due of schema/migrations/0004_pending.sql in memory. */
#include "base/check.h"
#include "store_mem.h"

int64_t mem__mark(const struct mem_account *a)
{
    uint64_t hold = a->hold[0] ? hash_bytes(a->hold, strlen(a->hold)) & 0xffffff : 0;
    return (int64_t)(hold << 34 | (uint64_t)a->reborn << 33 | (uint64_t)a->paused << 32 |
                     a->transaction_version);
}

static void note_time(struct store_want *want, uint64_t at, uint64_t now, uint32_t ahead_ms)
{
    if (at <= now || at > now + ahead_ms)
        return;
    int64_t in = (int64_t)(at - now);
    if (want->next_ms < 0 || in < want->next_ms)
        want->next_ms = in;
}

static void queued(const struct mem_account *a, struct store_want *want, uint64_t now, uint32_t ahead_ms)
{
    LIST_EACH (p, &a->outbox) {
        const struct mem_row *row = CONTAINER_OF(p, struct mem_row, node);
        bool late = row->deadline && row->deadline <= now;
        want->look |= late || row->cancelled;
        want->ripe |= !a->paused && !late && row->not_before <= now;
        note_time(want, row->not_before, now, ahead_ms);
        note_time(want, row->deadline, now, ahead_ms);
    }
}

static void pending(const struct mem_account *a, struct store_want *want, uint64_t now, uint32_t ahead_ms)
{
    for (size_t i = 0; i < a->pending_count; i++) {
        const struct mem_row *row = a->pending[i];
        want->look |= row->cancelled || row->bump || (row->deadline && row->deadline <= now);
        note_time(want, row->deadline, now, ahead_ms);
    }
}

void mem__due(struct store_mem *s, struct store_due *r)
{
    uint64_t now = loop_now_ms(s->base.loop);
    struct store_want *wants = store__arena(&r->req, r->count * sizeof(*wants), NULL, NULL);
    r->wants = wants;
    r->want_count = 0;
    for (size_t i = 0; i < r->count; i++) {
        struct err ignored;
        const struct mem_account *a = mem__fence(s, r->accounts[i], r->epochs[i], &ignored);
        struct store_want want = {.index = i, .lost = !a, .next_ms = -1};
        if (a) {
            want.look = r->marks[i] >= 0 && mem__mark(a) != r->marks[i];
            queued(a, &want, now, r->ahead_ms);
            pending(a, &want, now, r->ahead_ms);
        }
        if (want.lost || want.look || want.ripe || want.next_ms >= 0)
            wants[r->want_count++] = want;
    }
}
