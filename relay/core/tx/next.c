#include "next.h"

enum probe_action probe_next(const struct probe_view *v)
{
    bool may = v->phase && v->node_up && !v->node_behind && !v->final_unread;
    return v->wanted && may && !v->asking && !v->adopting && !v->backing_off ? PROBE_BEGIN : PROBE_NOT_NOW;
}

enum hold_action hold_next(const struct hold_view *v)
{
    if (v->payment && v->leading && !v->rows_open)
        return HOLD_END; /* nothing is left that could find out */
    return v->loaded && v->unstored && !v->storing ? HOLD_STORE : HOLD_KEEP;
}

enum life_action life_next(const struct life_view *v)
{
    if (!v->ordered || !v->leading || !v->node_up)
        return LIFE_KEEP;
    if (v->rows)
        return LIFE_BURY;
    return v->nonce_known && !v->bytes_alive && !v->final_unread && !v->storing ? LIFE_BEGIN : LIFE_KEEP;
}

enum adopt_action adopt_next(const struct adopt_view *v)
{
    return v->due && v->loaded && !v->first_probe && !v->storing ? ADOPT_STORE : ADOPT_NOT_NOW;
}

enum nonce_action nonce_next(const struct nonce_view *v)
{
    if (!v->leading || v->storing)
        return NONCE_KEEP;
    if (v->unstored)
        return NONCE_STORE;
    return v->given_back && v->final_known && !v->admitting && !v->rewinding ? NONCE_GIVE_BACK : NONCE_KEEP;
}

enum send_action send_next(const struct send_view *v)
{
    if (!v->leading || !v->node_up || v->node_unverified || v->gate_closed || v->suspended)
        return SEND_WAIT;
    if (v->funds_wait || v->refusal_unstored || v->backing_off || v->lower_repaired || v->window_full)
        return SEND_WAIT;
    return v->era_ends ? SEND_RESIGN : SEND_SUBMIT;
}

enum sign_action sign_next(const struct sign_view *v)
{
    bool may = v->leading && v->node_up && !v->node_unverified && !v->suspended;
    return v->wanted && may && !v->backing_off ? SIGN_ROWS : SIGN_NOT_NOW;
}

enum admit_action admit_next(const struct admit_view *v)
{
    bool may = v->leading && v->node_up && !v->gate_closed && v->room && !v->backing_off;
    bool settled = !v->suspended && !v->suspension_unstored && !v->rewinding && !v->nonce_unstored;
    bool stored = !v->rejecting && !v->noting && !v->admitting && !v->storing_nonce && !v->storing_suspension;
    return may && settled && stored ? ADMIT_ROWS : ADMIT_NOT_NOW;
}
