/* Answers to submissions that are not the pool's own: each row of the product's table
 * (relay/core/tx/answer.h) as a gateway, a node in trouble or a lying one gives it. The pool has
 * taken the bytes or not. */
#include "relay/core/tx/answer.h"
#include "sim.h"

enum { CODE_OF_NOBODY = -7 };

/* Refusals as invalid come a third as often as others: each of them costs a transaction. */
static const struct answer *draw(struct world *w)
{
    for (;;) {
        size_t rows = 0;
        while (answer_at(rows))
            rows++;
        const struct answer *a = answer_at(rng_below(&w->rng, rows));
        bool invalid = a->means == REFUSAL_INVALID || a->means == REFUSAL_TRAPPED;
        if (a->from == ANSWER_OF_NODE && (!invalid || chance(w, 33)))
            return a;
    }
}

static void by_the_table(struct world *w, int node, uint32_t tx, struct node_answer *ret)
{
    const struct answer *a = draw(w);
    bool passed_on = chance(w, 50);
    if (passed_on)
        pool_submit(w, node, tx, ret);
    w->chain.txs[tx].reached = true;
    note(w, "  n%d %s tx %u and answers by the table", node, passed_on ? "is given" : "never sees",
         tx);
    *ret = (struct node_answer){.code = ERR_RPC,
                                .rpc_code = a->first == INT64_MIN ? CODE_OF_NOBODY : a->first,
                                .text = a->text};
}

void answer_submit(struct world *w, int node, uint32_t tx, struct node_answer *ret)
{
    if (w->healing || !has(w, FEATURE_ANSWERS) || !chance(w, w->plan.answer_percent))
        pool_submit(w, node, tx, ret);
    else
        by_the_table(w, node, tx, ret);
    const struct answer *a = answer_of(ret->code, ret->rpc_code, ret->text ? ret->text : "");
    w->chain.txs[tx].refused |= a->means == REFUSAL_INVALID || a->means == REFUSAL_TRAPPED;
}
