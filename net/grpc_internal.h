/* Private to net/: frames and headers of gRPC. Pure. */
#ifndef NET_GRPC_INTERNAL_H
#define NET_GRPC_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/check.h"
#include "net/grpc.h"

/* ---- grpc_frame.c ---- */

enum { GRPC_FRAME_HEAD = 5 };
enum { GRPC_HEADER_BYTES = 8192 }; /* of a list of headers: names, values and 32 for each */

struct grpc_frames {
    uint32_t message_max;
    uint8_t head[GRPC_FRAME_HEAD];
    unsigned head_len;
    struct buf body; /* grows with the bytes that came, never with the length that was promised */
    bool delivered;
};

enum grpc_frame_result {
    GRPC_FRAME_MORE,    /* every byte is taken */
    GRPC_FRAME_MESSAGE, /* one message; the rest of the bytes is not taken yet */
    GRPC_FRAME_TOO_LONG,
    GRPC_FRAME_COMPRESSED,
    GRPC_FRAME_BAD,
};

void grpc__frames_init(struct grpc_frames *f, uint32_t message_max);
void grpc__frames_done(struct grpc_frames *f);
/* Takes bytes up to the end of one message. The message is borrowed until the next call; it may be
 * part of *data. After a result that is neither MORE nor MESSAGE nothing may be taken any more. */
enum grpc_frame_result grpc__frames_take(struct grpc_frames *f, const uint8_t **data, size_t *len,
                                         const uint8_t **ret_message, size_t *ret_len);
size_t grpc__frames_partial(const struct grpc_frames *f); /* bytes of a message that is not whole */
void grpc__frame_put(struct buf *out, const void *message, size_t len);

/* ---- grpc_meta.c ---- */

bool grpc__timeout_parse(const char *text, size_t len, uint64_t *ret_ms); /* of grpc-timeout */
void grpc__timeout_text(uint64_t ms, char ret[16]);
void grpc__percent_encode(const char *text, char *ret, size_t size); /* cut to the size */
void grpc__percent_decode(const char *text, size_t len, char *ret, size_t size);
bool grpc__status_parse(const char *text, size_t len, enum grpc_status *ret);
enum grpc_status grpc__status_of_reset(uint32_t code); /* of RST_STREAM */
enum grpc_status grpc__status_of_http(unsigned status);
bool grpc__type_is_grpc(const char *text, size_t len); /* a content-type */

#endif
