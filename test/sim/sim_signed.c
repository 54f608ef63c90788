/* What is signed elsewhere: by applications (they choose the nonce, and sometimes send it
 * themselves). */
#include "sim.h"

static bool covered(const struct world *w, int account, uint64_t nonce)
{
    for (int64_t id = 1; id < w->next_id; id++) {
        const struct call *c = &w->calls[id];
        bool open = c->presigned && c->account == account && !db_ended(w, id) && !c->gone;
        if (open && w->chain.txs[c->presigned].nonce == nonce)
            return true;
    }
    return false;
}

/* Where no relay has the key its owner counts: the lowest nonce that nothing is there for, or
 * one above it, so that there is a hole for a while. Beside a relay he guesses. */
static uint64_t choose_nonce(struct world *w, int account)
{
    const struct block *final = &w->chain.blocks[w->chain.final];
    uint64_t nonce = final->nonce[account];
    if (w->plan.keyless[account]) {
        for (uint64_t skip = chance(w, 12) ? between(w, 1, 2) : 0;
             covered(w, account, nonce) || skip; nonce++)
            skip -= skip && !covered(w, account, nonce);
        return nonce;
    }
    int64_t next = db_account(w, account)->next_nonce;
    if (next > (int64_t)nonce)
        nonce = (uint64_t)next;
    if (nonce && chance(w, 10))
        return nonce - 1;
    return nonce + (chance(w, 50) ? 0 : between(w, 1, 4));
}

/* The call of this number is one of these: true, and it is enqueued in the session's open
 * transaction. */
bool signed_elsewhere(struct world *w, struct mem_session *s, int64_t id)
{
    struct call *c = &w->calls[id];
    if (!has(w, FEATURE_SIGNED) || (!w->plan.keyless[c->account] && !chance(w, 25)))
        return false;
    uint64_t nonce = choose_nonce(w, c->account);
    if (nonce + 8 >= NONCES)
        nonce = NONCES - 9;
    *c =
        (struct call){.asked = true, .account = c->account, .max_tip = -1, .bump = -1, .noted = -1};
    c->presigned = tx_sign(w, &(struct tx_content){.account = c->account,
                                                   .nonce = nonce,
                                                   .id = id,
                                                   .spec = w->chain.blocks[w->chain.final].spec,
                                                   .anchor = w->chain.final,
                                                   .period = w->plan.era,
                                                   .tip = between(w, 0, 20)});
    uint8_t bytes[BYTES_LEN];
    int64_t made;
    struct err err = {0};
    bytes_of_tx(w, c->presigned, bytes);
    struct mem_signed_call call = {
        .account = account_alias(c->account), .extrinsic = {bytes, BYTES_LEN}, .unchecked = true};
    int rc = mem_enqueue_signed(s, &call, &made, &err);
    HOLDS(w, !rc && made == id, "enqueue", "transaction %lld is refused, or is called %lld: %s",
          (long long)id, (long long)made, err.text);
    return true;
}

/* Its transaction is committed. Whoever sends it himself must not ask for its end: nobody could
 * keep that. Beside a relay with the key he would take nonces from it. */
void signed_commit(struct world *w, int64_t id)
{
    struct call *r = &w->calls[id];
    /* Nor where accounts are reaped: that it took effect in a former life is not known
     * (docs/design.md). */
    if (!r->presigned || !w->plan.keyless[r->account] || has(w, FEATURE_REAP) || !chance(w, 20))
        return;
    int node = (int)rng_below(&w->rng, (uint64_t)w->plan.nodes);
    if (w->chain.nodes[node].down_until > w->now)
        return;
    struct node_answer x;
    r->self_sent = true;
    w->chain.txs[r->presigned].committed = true; /* I3 is about what relays send */
    pool_submit(w, node, r->presigned, &x);
    note(w, "transaction %lld is sent by who signed it: %lld", (long long)id,
         (long long)x.rpc_code);
}
