/* What the items of each kind of message have, and what members must agree on. */
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "wire_internal.h"

const struct rule *site__wire_rule(enum site_message_type type)
{
    static const struct rule rules[] = {
        [SITE_MSG_DELEGATE] = {FIELD_CALL, FIELD_EXTRINSIC | FIELD_TERMS, ITEMS_SOME},
        [SITE_MSG_ACCEPTED] = {0, 0, ITEMS_SOME},
        [SITE_MSG_REFUSED] = {FIELD_REASON, 0, ITEMS_SOME},
        [SITE_MSG_PROPOSE] = {FIELD_EXTRINSIC, 0, ITEMS_SOME},
        [SITE_MSG_GRANT] = {FIELD_HASH, 0, ITEMS_SOME},
        [SITE_MSG_DENY] = {FIELD_REASON, FIELD_HASH | FIELD_EXTRINSIC, ITEMS_SOME},
        [SITE_MSG_DISPATCHED] = {FIELD_HASH, 0, ITEMS_SOME},
        [SITE_MSG_GONE] = {FIELD_HASH, 0, ITEMS_SOME},
        [SITE_MSG_RETURNED] = {0, 0, ITEMS_SOME},
        [SITE_MSG_REVERTED] = {FIELD_HASH, 0, ITEMS_SOME},
        [SITE_MSG_HANDOVER] = {0, FIELD_HASH | FIELD_PLACE, ITEMS_SOME},
        [SITE_MSG_CLOSED] = {0, FIELD_HASH | FIELD_PLACE, ITEMS_SOME},
        [SITE_MSG_APPROVE] = {FIELD_HASH, 0, ITEMS_SOME},
        [SITE_MSG_APPROVED] = {FIELD_HASH, 0, ITEMS_SOME},
        [SITE_MSG_DISAPPROVED] = {FIELD_HASH | FIELD_REASON, 0, ITEMS_SOME},
        [SITE_MSG_ACK] = {FIELD_ACKED, FIELD_HASH, ITEMS_SOME},
        [SITE_MSG_HEARTBEAT] = {FIELD_STAGE, FIELD_HASH | FIELD_PLACE, ITEMS_ANY},
        [SITE_MSG_PROBE] = {0, 0, ITEMS_NONE},
    };
    _Static_assert(ARRAY_LEN(rules) == SITE_MSG_COUNT, "a rule for each kind");
    PRE(type < SITE_MSG_COUNT);
    return &rules[type];
}

const char *site_wire_why_name(enum site_wire_why why)
{
    static const char *const names[] = {"?", "not leader", "unknown account", "other committee"};
    return why >= SITE_WIRE_NOT_LEADER && why < ARRAY_LEN(names) ? names[why] : names[0];
}

static void put_number(struct buf *out, uint64_t v)
{
    for (int shift = 56; shift >= 0; shift -= 8)
        buf_put_u8(out, (uint8_t)(v >> shift));
}

uint64_t site_wire_committee(const struct site_config *config)
{
    const struct site_config c = site_config_filled(config);
    struct buf all = {0};
    buf_put(&all, c.account, sizeof(c.account));
    put_number(&all, c.members);
    for (uint32_t i = 0; i < c.members; i++) {
        PRE(i == 0 || strcmp(c.names[i - 1], c.names[i]) < 0);
        put_number(&all, strlen(c.names[i]));
        buf_puts(&all, c.names[i]);
    }
    put_number(&all, c.own_keys);
    put_number(&all, c.sticky);
    put_number(&all, c.range_blocks);
    put_number(&all, c.approvals);
    put_number(&all, c.era_blocks);
    uint64_t digest = c.hash(all.data, all.len);
    buf_done(&all);
    return digest;
}
