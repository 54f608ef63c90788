/* What another endpoint says of the runtime in use (node_second.c): its version, then its
 * metadata. */
#include <stdio.h>
#include <string.h>

#include "chain/codec/hash.h"
#include "node_internal.h"

void peer_ask_version(struct peer *p)
{
    char text[HASH_TEXT], params[HASH_TEXT + 64];
    wire_hash_text(p->node->second.at, text);
    snprintf(params, sizeof(params),
             p->no_version ? "[\"Core_version\",\"0x\",\"%s\"]" : "[\"%s\"]", text);
    peer_call(p, PEER_VERSION_WAIT, p->no_version ? "state_call" : "state_getRuntimeVersion",
              params);
}

/* In the form in which it was read at the endpoint in use. */
static void ask_metadata(struct peer *p)
{
    const struct second *s = &p->node->second;
    char text[HASH_TEXT], params[HASH_TEXT + 64];
    wire_hash_text(s->at, text);
    snprintf(params, sizeof(params),
             s->runtime->by_api ? "[\"Metadata_metadata_at_version\",\"0x0f000000\",\"%s\"]"
                                : "[\"%s\"]",
             text);
    peer_call(p, PEER_METADATA_WAIT, s->runtime->by_api ? "state_call" : "state_getMetadata",
              params);
}
void peer_got_version(struct peer *p, const struct rpc_call *call)
{
    const struct runtime *r = p->node->second.runtime;
    struct runtime v;
    bool api;
    if (p->no_version ? !runtime_version_decode(call->result, &v, &api)
                      : !runtime_version_read(call->result, &v)) {
        peer_says(p, "gave a runtime version that is not readable");
    } else if (v.spec_version != r->spec_version ||
               v.transaction_version != r->transaction_version ||
               strcmp(v.spec_name, r->spec_name) != 0) {
        peer_says(p, "says that the runtime is %s/%u with transaction_version %u", v.spec_name,
                  v.spec_version, v.transaction_version);
        p->runtime_at = loop_now_ms(p->node->loop) + PEER_AGAIN_TICKS * node__tick_ms(p->node);
        second_opinion(p, OPINION_OTHER);
    } else {
        ask_metadata(p);
    }
}

void peer_got_metadata(struct peer *p, const struct rpc_call *call)
{
    struct buf bytes = {0};
    uint8_t hash[32];
    bool good = wire_bytes(call->result, &bytes);
    hash_blake2b_256(bytes.data, bytes.len, hash);
    buf_done(&bytes);
    if (!good) {
        peer_says(p, "gave metadata that is not hexadecimal");
    } else if (memcmp(hash, p->node->second.runtime->hash, 32) != 0) {
        peer_says(p, "gives other metadata");
        second_opinion(p, OPINION_OTHER);
    } else {
        peer_says(p, "says the same");
        second_opinion(p, OPINION_SAME);
    }
}
