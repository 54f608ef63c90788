/* Defaults and limits of the elector's times. */
#include "base/error.h"
#include "elector_internal.h"

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
    return value ? value : fallback;
}

struct elector_config elector_config_defaults(const struct elector_config *config)
{
    struct elector_config c = *config;
    c.heartbeat_ms = or_default(c.heartbeat_ms, 1000);
    c.expiry_1_ms = or_default(c.expiry_1_ms, 5000);
    c.expiry_2_ms = or_default(c.expiry_2_ms, c.expiry_1_ms > 20000 ? c.expiry_1_ms : 20000);
    c.margin_ms = or_default(c.margin_ms, 1000);
    c.bid_min_ms = or_default(c.bid_min_ms, 150);
    c.bid_max_ms = or_default(c.bid_max_ms, c.bid_min_ms > 450 ? c.bid_min_ms : 450);
    c.leaves_max = or_default(c.leaves_max, 8);
    return c;
}

int elector_config_check(const struct elector_config *config, struct err *err)
{
    struct elector_config c = elector_config_defaults(config);
    if (c.expiry_2_ms < c.expiry_1_ms)
        return err_set(err, ERR_CONFIG,
                       "expiry_2 = %u ms is shorter than expiry_1 = %u ms: make it at least as "
                       "long (equal = one expiry whatever is in flight)",
                       c.expiry_2_ms, c.expiry_1_ms);
    if (c.margin_ms >= c.expiry_1_ms)
        return err_set(err, ERR_CONFIG,
                       "margin = %u ms leaves nothing of expiry_1 = %u ms: the gate would never "
                       "open; make the margin smaller",
                       c.margin_ms, c.expiry_1_ms);
    /* The gate must survive one lost renewal at the longest jitter (+20 %) of two. */
    uint64_t need = (uint64_t)c.heartbeat_ms * 12 / 10 * 2;
    if (need > c.expiry_1_ms - c.margin_ms)
        return err_set(err, ERR_CONFIG,
                       "heartbeat = %u ms is too long for expiry_1 = %u ms less margin = %u ms: "
                       "one lost renewal would end the leadership; use at most %u ms",
                       c.heartbeat_ms, c.expiry_1_ms, c.margin_ms,
                       (c.expiry_1_ms - c.margin_ms) / 2 * 10 / 12);
    if (c.bid_min_ms > c.bid_max_ms)
        return err_set(err, ERR_CONFIG, "bid_min = %u ms is longer than bid_max = %u ms",
                       c.bid_min_ms, c.bid_max_ms);
    return 0;
}
