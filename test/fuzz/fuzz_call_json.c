/* Any text as a call's arguments: refused, or bytes that check. The first byte picks the call. */
#include <string.h>

#include "base/check.h"
#include "chain/codec/codec.h"
#include "fuzz_runtime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const calls[] = {
        "System.remark",     "Balances.transfer_keep_alive", "Utility.batch",     "Proxy.proxy",
        "Staking.set_payee", "System.set_storage",           "Multisig.as_multi", "XcmPallet.send"};
    const struct metadata *md = fuzz_runtime();
    struct buf args = {0}, out = {0};
    struct err err;
    if (size == 0)
        return 0;
    buf_put(&args, data + 1, size - 1);
    if (codec_call_from_json(md, calls[data[0] % ARRAY_LEN(calls)], buf_str(&args), &out, &err) ==
        0)
        INVARIANT(codec_check_call(md, out.data, out.len, &err) == 0);
    else
        INVARIANT(out.len == 0);
    buf_done(&args);
    buf_done(&out);
    return 0;
}
