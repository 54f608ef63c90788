/* The signatures of a block's extrinsics that name one of our accounts and are not ours. What was
 * signed depends on the block on which its era begins, so the node asks for the hash of that one
 * first. A runtime executes nothing whose signature is wrong: a block that holds such an extrinsic
 * is refused, and its endpoint is left. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "node_internal.h"

static struct birth *birth_at(struct node *n, uint64_t number)
{
    return &n->births[number % NODE_BIRTHS];
}

static void got_birth(struct rpc_call *call)
{
    struct slot *s = CONTAINER_OF(call, struct slot, call);
    PRE(s->state == SLOT_BIRTH_WAIT && s->verified < s->included_count);
    uint64_t number = (uint64_t)s->included[s->verified].tx.era_birth;
    if (hash_again(node__rpc(s->node), call, number, &s->node->no_block_hash, got_birth))
        return;
    if (!s->abandoned && slot_gave_up(s, call)) { /* what was signed is not known */
        s->unverified[s->verified] = false;
        slot_signatures(s);
        return;
    }
    if (!slot_going_on(s))
        return;
    struct birth b = {.known = true, .number = number};
    if (!wire_hash(call->result, b.hash)) {
        slot_failed_protocol(s, "an era begins with a block that chain_getBlockHash does not know");
        return;
    }
    *birth_at(s->node, number) = b;
    slot_signatures(s);
}

static void ask_birth(struct slot *s, uint64_t number)
{
    s->state = SLOT_BIRTH_WAIT;
    hash_start(node__rpc(s->node), &s->call, number, s->node->no_block_hash, got_birth);
}

static void refuse(struct slot *s, const struct node_included *x)
{
    char what[200];
    snprintf(what, sizeof(what),
             "extrinsic %u names the account %s as its signer, nonce %llu, and its signature is "
             "wrong",
             x->tx.index, hex_log(x->signer, x->signer_len), (unsigned long long)x->tx.nonce);
    slot_failed_protocol(s, what);
}

void slot_signatures(struct slot *s)
{
    PRE(s->runtime && s->unverified);
    struct node *n = s->node;
    for (; s->verified < s->included_count; s->verified++) {
        struct node_included *x = &s->included[s->verified];
        struct extrinsic_params facts = {.spec_version = s->runtime->spec_version,
                                         .transaction_version = s->runtime->transaction_version};
        /* Where the state is gone, so is the version that was signed. */
        if (!s->unverified[s->verified] || s->state_pruned || !x->tx.bytes)
            continue;
        memcpy(facts.genesis, n->info.genesis, 32);
        if (x->tx.era_birth >= 0) {
            const struct birth *b = birth_at(n, (uint64_t)x->tx.era_birth);
            if (!b->known || b->number != (uint64_t)x->tx.era_birth) {
                ask_birth(s, (uint64_t)x->tx.era_birth);
                return;
            }
            memcpy(facts.era_block_hash, b->hash, 32);
        }
        x->tx.signature = n->config.verify(n->config.arg, &x->tx, s->runtime->metadata, &facts);
        if (x->tx.signature == TX_SIGNATURE_BAD) {
            refuse(s, x);
            return;
        }
    }
    slot_events(s);
}
