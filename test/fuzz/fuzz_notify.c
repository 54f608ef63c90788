/* NOTIFY payloads from anybody: the first byte chooses the channel. What parses is written out as
 * well. */
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "listen/payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    struct listen_payload p;
    struct buf out = {0};
    int32_t account;
    switch (data[0] % 5) {
    case 0:
    case 1:
    case 2:
        if (!listen_payload_row(text, size - 1, (enum listen_kind)(data[0] % 5), &p))
            return 0;
        listen_format_json(&p.event, &out);
        listen_format_human(&p.event, &out);
        listen_payload_done(&p);
        break;
    case 3:
        if (listen_payload_leader(text, size - 1, &p))
            listen_payload_done(&p);
        break;
    default:
        listen_payload_wake(text, size - 1, &account);
    }
    buf_done(&out);
    return 0;
}
