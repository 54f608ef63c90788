/* The frames of gRPC: 1 byte of flags, 4 bytes of length, the message; split over DATA frames in
 * any way. Pure: bytes in, messages out. */
#include "grpc_internal.h"

enum { KEEP_BYTES = 65536 }; /* the memory of a longer message is freed after it */

void grpc__frames_init(struct grpc_frames *f, uint32_t message_max)
{
    *f = (struct grpc_frames){.message_max = message_max};
}

void grpc__frames_done(struct grpc_frames *f)
{
    buf_done(&f->body);
}

size_t grpc__frames_partial(const struct grpc_frames *f)
{
    return f->delivered ? 0 : f->head_len + f->body.len;
}

/* The message that was delivered before is gone. */
static void forget(struct grpc_frames *f)
{
    if (!f->delivered)
        return;
    f->delivered = false;
    f->head_len = 0;
    buf_clear(&f->body);
    if (f->body.cap > KEEP_BYTES)
        buf_done(&f->body);
}

static uint32_t length_of(const uint8_t head[GRPC_FRAME_HEAD])
{
    return (uint32_t)head[1] << 24 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 8 | head[4];
}

static enum grpc_frame_result check_head(const struct grpc_frames *f)
{
    if (f->head[0] > 1)
        return GRPC_FRAME_BAD;
    if (f->head[0] == 1)
        return GRPC_FRAME_COMPRESSED;
    if (length_of(f->head) > f->message_max)
        return GRPC_FRAME_TOO_LONG;
    return GRPC_FRAME_MORE;
}

enum grpc_frame_result grpc__frames_take(struct grpc_frames *f, const uint8_t **data, size_t *len,
                                         const uint8_t **ret_message, size_t *ret_len)
{
    forget(f);
    while (f->head_len < GRPC_FRAME_HEAD) {
        if (!*len)
            return GRPC_FRAME_MORE;
        f->head[f->head_len++] = **data;
        ++*data;
        --*len;
        if (f->head_len == GRPC_FRAME_HEAD) {
            enum grpc_frame_result bad = check_head(f);
            if (bad != GRPC_FRAME_MORE)
                return bad;
        }
    }
    size_t want = length_of(f->head) - f->body.len;
    bool whole = !f->body.len && *len >= want; /* it needs no copy */
    size_t part = *len < want ? *len : want;
    *ret_message = *data;
    if (!whole)
        buf_put(&f->body, *data, part);
    *data += part;
    *len -= part;
    if (part < want)
        return GRPC_FRAME_MORE;
    if (!whole)
        *ret_message = f->body.data;
    *ret_len = length_of(f->head);
    f->delivered = true;
    return GRPC_FRAME_MESSAGE;
}

void grpc__frame_put(struct buf *out, const void *message, size_t len)
{
    uint8_t head[GRPC_FRAME_HEAD] = {0, (uint8_t)(len >> 24), (uint8_t)(len >> 16),
                                     (uint8_t)(len >> 8), (uint8_t)len};
    buf_put(out, head, sizeof(head));
    if (len)
        buf_put(out, message, len);
}
