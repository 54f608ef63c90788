/* Any bytes as an extrinsic: refused, or a view that stays inside them and can be verified. */
#include "base/check.h"
#include "chain/keys/extrinsic_sign.h"
#include "fuzz_runtime.h"

static void check_inside(const struct extrinsic_view *view, const uint8_t *data, size_t size)
{
    INVARIANT(view->call >= data && view->call + view->call_len == data + size);
    if (view->is_signed) {
        INVARIANT(view->extra >= data && view->extra + view->extra_len == view->call);
        INVARIANT(view->signature >= data &&
                  view->signature + key_signature_len(view->scheme) <= view->extra);
        INVARIANT(view->signer_len == 0 || view->signer_len == 32 || view->signer_len == 20);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct metadata *md = fuzz_runtime();
    struct extrinsic_params params = {.spec_version = 1};
    struct extrinsic_view view;
    struct err err;
    bool good = false;
    if (extrinsic_decode(md, data, size, &view, &err) != 0)
        return 0;
    check_inside(&view, data, size);
    if (view.is_signed)
        (void)extrinsic_verify(md, &view, &params, &good, &err);
    return 0;
}
