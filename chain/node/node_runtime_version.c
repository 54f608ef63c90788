/* A runtime's version, in the two forms in which a node tells it. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "chain/codec/scale.h"
#include "node_runtime.h"

static const char metadata_api[] = "0x37e397fc7c91f5e4"; /* blake2b-64 of "Metadata" */
static const uint8_t metadata_api_id[8] = {0x37, 0xe3, 0x97, 0xfc, 0x7c, 0x91, 0xf5, 0xe4};

bool runtime_version_read(const struct jv *value, struct runtime *ret_version)
{
    const struct jv *name = jv_get(value, "specName");
    uint64_t spec, transaction = 0;
    if (!jv_is(name, JV_STRING) || !wire_number(jv_get(value, "specVersion"), &spec) ||
        spec > UINT32_MAX)
        return false;
    /* Missing in runtimes from before 2020, which do not sign it either. */
    wire_number(jv_get(value, "transactionVersion"), &transaction);
    *ret_version = (struct runtime){.spec_version = (uint32_t)spec,
                                    .transaction_version = (uint32_t)transaction};
    jv_copy(name, ret_version->spec_name, sizeof(ret_version->spec_name));
    return true;
}

/* A RuntimeVersion in SCALE: spec_name, impl_name, authoring_version, spec_version, impl_version,
 * apis of 8 bytes and a version, transaction_version, .. */
bool runtime_version_decode(const struct jv *value, struct runtime *ret_version, bool *ret_api)
{
    struct buf bytes = {0};
    *ret_version = (struct runtime){0};
    *ret_api = false;
    bool good = wire_bytes(value, &bytes);
    struct scale_in in = scale_in_of(bytes.data, bytes.len);
    for (unsigned i = 0; i < 2; i++) {
        u128 len = scale_get_compact(&in);
        const uint8_t *name = len < bytes.len ? scale_get_bytes(&in, (size_t)len) : NULL;
        good = good && name && len > 0;
        if (good && i == 0)
            snprintf(ret_version->spec_name, sizeof(ret_version->spec_name), "%.*s", (int)len,
                     name);
    }
    scale_get_u32(&in);
    ret_version->spec_version = scale_get_u32(&in);
    scale_get_u32(&in);
    for (u128 apis = scale_get_compact(&in); good && !in.bad && apis > 0; apis--) {
        const uint8_t *id = scale_get_bytes(&in, 8);
        uint32_t version = scale_get_u32(&in);
        *ret_api |= id && memcmp(id, metadata_api_id, 8) == 0 && version >= 2;
    }
    ret_version->transaction_version = scale_get_u32(&in);
    buf_done(&bytes);
    return good && !in.bad;
}

bool runtime_has_metadata_api(const struct jv *version)
{
    const struct jv *apis = jv_get(version, "apis");
    for (const struct jv *api = jv_first(apis); api; api = jv_next(apis, api)) {
        int64_t number;
        if (jv_equals(jv_at(api, 0), metadata_api))
            return jv_int(jv_at(api, 1), &number) && number >= 2;
    }
    return false;
}
