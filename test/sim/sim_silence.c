/* Nothing waits in silence: where the same transaction is the first of an account's outbox, or its
 * lowest open nonce is in no block, for a dozen blocks and a minute under one leader, that
 * leader says why. */
#include "sim_relay.h"

enum { SILENT_BLOCKS = 14 }; /* the manager's gap_blocks, and some until it hears of them */

static uint64_t patience(const struct world *w)
{
    return SILENT_BLOCKS * slowest_block(w) + 75 * SECOND;
}

/* The first row that may be admitted now; 0: none. */
static int64_t first_waiting(const struct world *w, const struct mem_account *a)
{
    int64_t now = mem_db_now_us(w->db.mem);
    LIST_EACH (p, &a->outbox) {
        const struct mem_row *row = CONTAINER_OF(p, struct mem_row, node);
        if (!row->held && row->not_before_us <= now)
            return row->id;
    }
    return 0;
}

/* The lowest nonce of a row that is in no block; -1: none. */
static int64_t first_open(const struct mem_account *a)
{
    for (size_t i = 0; i < a->pending_count; i++) {
        const struct mem_row *p = a->pending[i];
        if (p->state != MEM_IN_BLOCK && p->state != MEM_FINALIZED)
            return p->nonce;
    }
    return -1;
}

/* A process that is stopped, or does not reach the database, can say nothing. */
static bool can_speak(const struct relay *r)
{
    return store_is_up(r) && r->process->alive && !r->process->paused;
}

void silence_check(struct world *w)
{
    for (int account = 0; account < w->plan.accounts; account++) {
        const struct mem_account *a = db_account(w, account);
        const struct relay *r = leader_of(w, account);
        struct silence *s = &w->silences[account];
        struct silence is = {.epoch = a->lead.epoch,
                             .id = first_waiting(w, a),
                             .nonce = first_open(a),
                             .since = w->now};
        bool waits = r && can_speak(r) && !a->paused && (is.id || is.nonce >= 0) &&
                     !obstacle_lasts(&r->service->accounts[account].obstacle);
        if (!waits || s->epoch != is.epoch || s->id != is.id || s->nonce != is.nonce) {
            *s = is;
            continue;
        }
        HOLDS(
            w, w->now < s->since + patience(w), "silence",
            "r%d leads account %d, where transaction %lld waits and nonce %lld is open for %llu s, "
            "and does not say why",
            r->index, account, (long long)is.id, (long long)is.nonce,
            (unsigned long long)((w->now - s->since) / SECOND));
    }
}
