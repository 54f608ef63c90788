/* Frames of gRPC in two splits: the same messages and the same end, whatever the pieces are. The
 * first byte is the length of a piece, the second the longest message in units of 16. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "grpc_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    struct buf bytes; /* of all messages, each with its length */
    enum grpc_frame_result end;
    size_t partial;
};

static void feed(struct seen *s, const uint8_t *data, size_t len, size_t piece, uint32_t max)
{
    struct grpc_frames f;
    grpc__frames_init(&f, max);
    s->end = GRPC_FRAME_MORE;
    for (size_t at = 0; at < len && s->end == GRPC_FRAME_MORE; at += piece) {
        size_t left = len - at < piece ? len - at : piece, n = 0;
        uint8_t *exact = xmalloc(left);
        const uint8_t *p = exact, *message = NULL;
        memcpy(exact, data + at, left);
        while (left && s->end == GRPC_FRAME_MORE) {
            enum grpc_frame_result r = grpc__frames_take(&f, &p, &left, &message, &n);
            if (r == GRPC_FRAME_MESSAGE) {
                INVARIANT(n <= max);
                buf_put(&s->bytes, &n, sizeof(n));
                buf_put(&s->bytes, message, n);
            } else {
                s->end = r;
            }
        }
        free(exact);
    }
    s->partial = grpc__frames_partial(&f);
    INVARIANT(f.body.len <= max);
    grpc__frames_done(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole = {0}, pieces = {0};
    if (size < 3)
        return 0;
    size_t piece = data[0] ? data[0] : 1;
    feed(&whole, data + 2, size - 2, size, data[1] * 16u);
    feed(&pieces, data + 2, size - 2, piece, data[1] * 16u);
    INVARIANT(whole.end == pieces.end && whole.partial == pieces.partial);
    INVARIANT(whole.bytes.len == pieces.bytes.len);
    INVARIANT(!whole.bytes.len || !memcmp(whole.bytes.data, pieces.bytes.data, whole.bytes.len));
    buf_done(&whole.bytes);
    buf_done(&pieces.bytes);
    return 0;
}
