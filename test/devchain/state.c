/* See state.h. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"

void state_init(struct state *s)
{
    *s = (struct state){0};
    map_init(&s->accounts, 32);
}

void state_done(struct state *s)
{
    size_t pos = 0;
    for (struct account *a; (a = map_next(&s->accounts, &pos));) {
        free(a->versions);
        free(a);
    }
    map_done(&s->accounts);
    free(s->undo);
}

struct account *state_account(struct state *s, const uint8_t id[32])
{
    struct account *a = map_get(&s->accounts, id);
    if (!a) {
        a = xcalloc(1, sizeof *a);
        memcpy(a->id, id, 32);
        map_put(&s->accounts, id, a);
    }
    return a;
}

const struct account *state_find(const struct state *s, const uint8_t id[32])
{
    return map_get(&s->accounts, id);
}

void state_write(struct state *s, struct account *a, struct account_rec rec)
{
    if (s->undo_len == s->undo_cap) {
        s->undo_cap = s->undo_cap ? s->undo_cap * 2 : 64;
        s->undo = xrealloc(s->undo, s->undo_cap * sizeof *s->undo);
    }
    s->undo[s->undo_len++] = (struct state_undo){a, a->rec};
    a->rec = rec;
}

size_t state_checkpoint(const struct state *s)
{
    return s->undo_len;
}

void state_rollback(struct state *s, size_t checkpoint)
{
    PRE(checkpoint <= s->undo_len);
    while (s->undo_len > checkpoint) {
        struct state_undo *u = &s->undo[--s->undo_len];
        u->account->rec = u->old;
    }
}

static void push_version(struct account *a, uint64_t number)
{
    if (a->version_count == a->version_cap) {
        a->version_cap = a->version_cap ? a->version_cap * 2 : 2;
        a->versions = xrealloc(a->versions, a->version_cap * sizeof *a->versions);
    }
    a->versions[a->version_count++] = (struct account_version){number, a->rec};
}

void state_seal(struct state *s, uint64_t number, struct state_diff *ret_diff)
{
    s->mark++;
    struct state_diff d = {xmalloc((s->undo_len + 1) * sizeof *d.changes), 0};
    for (size_t i = 0; i < s->undo_len; i++) {
        struct account *a = s->undo[i].account;
        if (a->mark == s->mark)
            continue;
        a->mark = s->mark;
        push_version(a, number);
        d.changes[d.count++] = (struct state_change){a, a->rec};
    }
    d.changes = xrealloc(d.changes, (d.count + 1) * sizeof *d.changes);
    s->undo_len = 0;
    *ret_diff = d;
}

void state_unwind(struct state *s, uint64_t number, const struct state_diff *diff)
{
    PRE(s->undo_len == 0);
    for (size_t i = 0; i < diff->count; i++) {
        struct account *a = diff->changes[i].account;
        INVARIANT(a->version_count && a->versions[a->version_count - 1].number == number);
        a->version_count--;
        a->rec = a->version_count ? a->versions[a->version_count - 1].rec : (struct account_rec){0};
    }
}

void state_diff_done(struct state_diff *diff)
{
    free(diff->changes);
    *diff = (struct state_diff){0};
}

struct account_rec state_at(const struct account *a, uint64_t number)
{
    size_t lo = 0, hi = a->version_count; /* the first version above number */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (a->versions[mid].number <= number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? a->versions[lo - 1].rec : (struct account_rec){0};
}
