/* Accounts and addresses from JSON: SS58 of this chain, or 0x. */
#include <string.h>

#include "base/hex.h"
#include "chain/codec/ss58.h"
#include "encode_internal.h"

/* SS58 text of another chain names the same key, but is most likely a mistake. The error gives the
 * key's address on this chain. */
static int other_prefix(struct encoder *e, const struct type *t, const json_t *value,
                        const uint8_t id[32], unsigned prefix, unsigned own)
{
    char address[SS58_TEXT_MAX];
    ss58_encode(id, (uint16_t)own, address);
    return encode__unfit(e, t, value,
                         "it is of prefix %u, this chain's is %u; the same key here: %s", prefix,
                         own, address);
}

/* Reports ERR_ARGUMENT; appends nothing. */
static int read_account(struct encoder *e, const struct type *t, const json_t *value, uint32_t size,
                        uint8_t ret_id[ACCOUNT_ID_MAX])
{
    int own = metadata__ss58_prefix(e->md);
    uint16_t prefix = 0;
    const char *text = encode__text(value);
    if (encode__is_hex(value)) {
        if (hex_decode_fixed(json_string_value(value), json_string_length(value), ret_id, size))
            return 0;
    } else if (size == 32 && text && ss58_decode(text, ret_id, &prefix)) {
        if (own < 0 || prefix == own)
            return 0;
        return other_prefix(e, t, value, ret_id, prefix, (unsigned)own);
    }
    if (size != 32)
        return encode__unfit(e, t, value, "give 0x and %u hexadecimal digits", size * 2);
    return encode__unfit(e, t, value,
                         "give an SS58 address (its checksum is wrong if it looks like one) or 0x "
                         "and 64 hexadecimal digits");
}

int encode__account(struct encoder *e, const struct type *t, const json_t *value)
{
    uint8_t id[ACCOUNT_ID_MAX];
    int rc = read_account(e, t, value, t->plain_size, id);
    if (rc == 0)
        buf_put(e->out, id, t->plain_size);
    return rc;
}

int encode__address(struct encoder *e, const struct type *t, const json_t *value)
{
    uint8_t id[ACCOUNT_ID_MAX];
    const struct type_variant *v = metadata__variant_named(e->md, t, "Id");
    const struct type *account =
        v && v->count == 1 ? &e->md->types[e->md->fields[v->first].type] : NULL;
    if (!account || account->role != ROLE_ACCOUNT)
        return encode__unfit(e, t, value, "give {\"Variant\": value}");
    int rc = read_account(e, t, value, account->plain_size, id);
    if (rc == 0) {
        buf_put_u8(e->out, v->index);
        buf_put(e->out, id, account->plain_size);
    }
    return rc;
}
