/* Dispatch: what the calls of devchain's pallets do. The bytes were checked when the transaction
 * was decoded. */
#include <string.h>

#include "base/check.h"
#include "chain/codec/hash.h"
#include "runtime.h"

/* Pallet error indices, published by metadata_build.c. */
enum { BALANCES_INSUFFICIENT_BALANCE = 2, SUDO_REQUIRE_SUDO = 0 };
enum { TOKEN_BELOW_MINIMUM = 2, TOKEN_NOT_EXPENDABLE = 8 };

static const struct dispatch_error OK = {.kind = DISPATCH_KIND_OK};

static struct dispatch_error module_error(uint8_t pallet, uint8_t code)
{
    return (struct dispatch_error){DISPATCH_KIND_MODULE, pallet, code};
}

static struct dispatch_error token_error(uint8_t code)
{
    return (struct dispatch_error){DISPATCH_KIND_TOKEN, 0, code};
}

static void account_event(struct exec *x, uint8_t pallet, uint8_t variant, const uint8_t id[32],
                          const u128 *amount)
{
    struct buf b = {0};
    buf_put(&b, id, 32);
    if (amount)
        scale_put_u128(&b, *amount);
    exec__event(x, pallet, variant, &b);
    buf_done(&b);
}

/* Below the existential deposit an account is reaped: its record goes, and its nonce with it.
 */
static void set_free(struct exec *x, struct account *a, u128 amount)
{
    struct state *st = &x->rt->chain->state;
    struct account_rec rec = a->rec;
    if (amount < x->rt->existential_deposit) {
        state_write(st, a, (struct account_rec){0});
        if (rec.providers) {
            account_event(x, PALLET_SYSTEM, 4, a->id, NULL); /* KilledAccount */
            if (amount)
                account_event(x, PALLET_BALANCES, 1, a->id, &amount); /* DustLost */
        }
        return;
    }
    bool fresh = !rec.providers;
    rec.free = amount;
    rec.providers = 1;
    state_write(st, a, rec);
    if (fresh) {
        account_event(x, PALLET_SYSTEM, 3, a->id, NULL);      /* NewAccount */
        account_event(x, PALLET_BALANCES, 0, a->id, &amount); /* Endowed */
    }
}

static struct dispatch_error transfer(struct exec *x, const uint8_t from_id[32],
                                      const uint8_t to_id[32], u128 amount, bool keep_alive)
{
    struct state *st = &x->rt->chain->state;
    struct account *from = state_account(st, from_id), *to = state_account(st, to_id);
    u128 ed = x->rt->existential_deposit;
    if (from->rec.free < amount)
        return module_error(PALLET_BALANCES, BALANCES_INSUFFICIENT_BALANCE);
    if (keep_alive && from->rec.free - amount < ed)
        return token_error(TOKEN_NOT_EXPENDABLE);
    if (to->rec.free + amount < ed)
        return token_error(TOKEN_BELOW_MINIMUM);
    if (from != to) {
        set_free(x, from, from->rec.free - amount);
        set_free(x, to, to->rec.free + amount);
    }
    struct buf b = {0};
    buf_put(&b, from_id, 32);
    buf_put(&b, to_id, 32);
    scale_put_u128(&b, amount);
    exec__event(x, PALLET_BALANCES, 2, &b);
    buf_done(&b);
    return OK;
}

static struct dispatch_error do_transfer(struct exec *x, const uint8_t *origin, struct scale_in *in,
                                         unsigned call)
{
    uint8_t dest[32];
    bool known = tx_get_address(in, dest);
    u128 amount = 0;
    bool keep_alive = call == CALL_TRANSFER_KEEP_ALIVE;
    if (call == CALL_TRANSFER_ALL) {
        keep_alive = scale_get_bool(in);
        u128 have = state_account(&x->rt->chain->state, origin)->rec.free;
        u128 ed = x->rt->existential_deposit;
        amount = !keep_alive ? have : have > ed ? have - ed : 0;
    } else {
        amount = scale_get_compact(in);
    }
    if (!known)
        return (struct dispatch_error){.kind = 1}; /* CannotLookup */
    return transfer(x, origin, dest, amount, keep_alive);
}

static void remark_event(struct exec *x, const uint8_t *origin, const uint8_t *data, size_t len)
{
    struct buf b = {0};
    uint8_t hash[32];
    hash_blake2b_256(data, len, hash);
    buf_put(&b, origin, 32);
    buf_put(&b, hash, 32);
    exec__event(x, PALLET_SYSTEM, 5, &b);
    buf_done(&b);
}

static void item_failed(struct exec *x, struct dispatch_error e, const uint32_t *interrupted_at)
{
    struct buf b = {0};
    if (interrupted_at)
        scale_put_u32(&b, *interrupted_at);
    dispatch_error_scale(e, &b);
    exec__event(x, PALLET_UTILITY, interrupted_at ? 0 : 4, &b);
    buf_done(&b);
}

static void skip_rest(struct scale_in *in, uint32_t count)
{
    uint64_t weight = 0;
    for (uint32_t i = 0; i < count; i++)
        tx_skip_call(in, 0, &weight);
}

/* batch stops at the first failure and keeps what went before; batch_all fails as a whole;
 * force_batch goes on. */
static struct dispatch_error do_batch(struct exec *x, const uint8_t *origin, struct scale_in *in,
                                      unsigned call)
{
    struct state *st = &x->rt->chain->state;
    uint32_t count = scale_get_compact_u32(in);
    bool any_failed = false;
    for (uint32_t i = 0; i < count; i++) {
        size_t mark = state_checkpoint(st), events = x->events.len;
        uint32_t event_count = x->event_count;
        struct dispatch_error e = exec__dispatch(x, origin, in);
        if (e.kind == DISPATCH_KIND_OK) {
            exec__event(x, PALLET_UTILITY, 3, NULL); /* ItemCompleted */
            continue;
        }
        state_rollback(st, mark);
        x->events.len = events;
        x->event_count = event_count;
        if (call == CALL_BATCH_ALL) {
            skip_rest(in, count - i - 1);
            return e;
        }
        any_failed = true;
        item_failed(x, e, call == CALL_BATCH ? &i : NULL);
        if (call == CALL_BATCH) {
            skip_rest(in, count - i - 1);
            return OK;
        }
    }
    exec__event(x, PALLET_UTILITY, any_failed ? 2 : 1, NULL);
    return OK;
}

static struct dispatch_error do_sudo(struct exec *x, const uint8_t *origin, struct scale_in *in)
{
    if (memcmp(origin, x->rt->sudo_key, 32) != 0) {
        skip_rest(in, 1);
        return module_error(PALLET_SUDO, SUDO_REQUIRE_SUDO);
    }
    struct state *st = &x->rt->chain->state;
    size_t mark = state_checkpoint(st), events = x->events.len;
    uint32_t event_count = x->event_count;
    struct dispatch_error e = exec__dispatch(x, origin, in);
    struct buf b = {0};
    if (e.kind == DISPATCH_KIND_OK) {
        buf_put_u8(&b, 0);
    } else {
        state_rollback(st, mark);
        x->events.len = events;
        x->event_count = event_count;
        buf_put_u8(&b, 1);
        dispatch_error_scale(e, &b);
    }
    exec__event(x, PALLET_SUDO, 0, &b);
    buf_done(&b);
    return OK;
}

struct dispatch_error exec__dispatch(struct exec *x, const uint8_t *origin, struct scale_in *in)
{
    unsigned pallet = scale_get_u8(in);
    unsigned call = pallet << 8 | scale_get_u8(in);
    switch (call) {
    case CALL_REMARK:
        scale_get_bytes(in, scale_get_len(in));
        return OK;
    case CALL_REMARK_WITH_EVENT: {
        size_t len = scale_get_len(in);
        remark_event(x, origin, scale_get_bytes(in, len), len);
        return OK;
    }
    case CALL_TIMESTAMP_SET:
        scale_get_compact(in);
        return (struct dispatch_error){.kind = DISPATCH_KIND_BAD_ORIGIN};
    case CALL_TRANSFER_ALLOW_DEATH:
    case CALL_TRANSFER_KEEP_ALIVE:
    case CALL_TRANSFER_ALL:
        return do_transfer(x, origin, in, call);
    case CALL_BATCH:
    case CALL_BATCH_ALL:
    case CALL_FORCE_BATCH:
        return do_batch(x, origin, in, call);
    case CALL_SUDO:
        return do_sudo(x, origin, in);
    default:
        UNREACHABLE();
    }
}
