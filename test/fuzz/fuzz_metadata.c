/* Any bytes as metadata: refused or usable. What parses is asked everything that the relay asks. */
#include "base/check.h"
#include "chain/codec/codec.h"
#include "chain/codec/events.h"
#include "chain/codec/extrinsic.h"
#include "chain/codec/metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What people ask: every pallet's calls, and some values by its types. */
static void ask_for_people(const struct metadata *md, const uint8_t *data, size_t size)
{
    static const char *const values[] = {
        "[]", "{\"pallet\":\"System\",\"call\":\"remark\",\"args\":[\"\"]}", "\"0x00\""};
    struct buf out = {0};
    struct err err;
    (void)codec_list_calls(md, NULL, NULL, &out, &err);
    for (unsigned i = 0; i < 256; i++) {
        const char *pallet = metadata_pallet_name(md, (uint8_t)i);
        const char *call = metadata_call_name(md, (uint8_t)i, 0);
        buf_clear(&out);
        if (pallet && call)
            (void)codec_list_calls(md, pallet, call, &out, &err);
    }
    for (uint32_t i = 0; i < 3; i++)
        (void)codec_from_json(md, metadata_type_call(md), values[i], &out, &err);
    if (size > 64) {
        (void)codec_call_to_readable(md, data + size - 64, 64, &out, &err);
        (void)extrinsic_to_json(md, data + size - 64, 64, false, &out, &err);
    }
    buf_done(&out);
}

static void ask(const struct metadata *md, const uint8_t *data, size_t size)
{
    struct err err;
    struct buf out = {0};
    struct extrinsic_view view;
    struct extrinsic_params params = {.era = {64, 3}};
    struct dispatch_result results[2];
    uint8_t index[2];
    size_t len;
    for (unsigned i = 0; i < 256; i++) {
        (void)metadata_call_name(md, (uint8_t)i, 0);
        (void)metadata_event_name(md, (uint8_t)i, 1);
        (void)metadata_error_name(md, (uint8_t)i, 2);
    }
    (void)metadata_find_call(md, "System", "remark", index);
    (void)metadata_constant(md, "System", "SS58Prefix", &len);
    (void)extrinsic_payload(md, &params, data, size, &out, &err);
    buf_clear(&out);
    if (size > 64) { /* values of its own types */
        const uint8_t *tail = data + size - 64;
        (void)codec_call_to_json(md, tail, 64, &out, &err);
        (void)extrinsic_decode(md, tail, 64, &view, &err);
        (void)events_decode(md, tail, 64, results, 2, &err);
        struct scale_in in = scale_in_of(tail, 64);
        (void)codec_skip(md, metadata_type_event_record(md), &in, &err);
    }
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct metadata *md = NULL;
    struct err err;
    if (metadata_parse(data, size, &md, &err) == 0) {
        ask(md, data, size);
        ask_for_people(md, data, size);
        metadata_free(md);
    } else {
        INVARIANT(!md);
    }
    return 0;
}
