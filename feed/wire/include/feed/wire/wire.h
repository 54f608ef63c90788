/* The messages of feed.proto as plain structs: what comes is parsed and checked here, and what
 * leaves is written here. No other file sees the generated code. Pure. */
#ifndef FEED_WIRE_WIRE_H
#define FEED_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define FEED_WIRE_PUBLISH "/txrelay.feed.v1.Feed/Publish"

enum {
    FEED_WIRE_REQUEST_MAX = 1 << 20, /* bytes of a request */
    FEED_WIRE_NAME_MAX = 200,        /* of a feed */
    FEED_WIRE_KEY = 32,
    FEED_WIRE_DIGEST = 32,
    FEED_WIRE_SIGNATURE = 64,
};

enum feed_wire_kind { FEED_WIRE_HEADER, FEED_WIRE_CALL, FEED_WIRE_TRAILER, FEED_WIRE_END_STREAM };

struct feed_wire_header {
    const char *feed;
    int64_t number;
    const uint8_t *publisher; /* FEED_WIRE_KEY bytes */
};

struct feed_wire_trailer {
    uint32_t count;
    const uint8_t *digest;    /* FEED_WIRE_DIGEST bytes */
    const uint8_t *signature; /* FEED_WIRE_SIGNATURE bytes */
};

/* Why a publisher ends its stream. */
enum feed_wire_end_code {
    FEED_WIRE_END_RESET = 1,
    FEED_WIRE_END_TIMEOUT = 2,
    FEED_WIRE_END_ERROR = 3,
    FEED_WIRE_END_TOO_FAR_BEHIND = 4,
};

struct feed_wire_end_stream {
    int code;             /* enum feed_wire_end_code, or what an unknown publisher sent */
    int64_t earliest;     /* that it still has */
    int64_t latest_acked; /* to it */
};

struct feed_wire_item {
    enum feed_wire_kind kind;
    union {
        struct feed_wire_header header;
        struct {
            const uint8_t *data; /* a serialised Call */
            size_t len;
        } call;
        struct feed_wire_trailer trailer;
        struct feed_wire_end_stream end;
    };
};

/* What a publisher sent. END_STREAM comes as one item. */
struct feed_wire_request;
/* NULL: err (ERR_PROTOCOL) says what is wrong with it. */
struct feed_wire_request *feed_wire_request_read(const uint8_t *data, size_t len, struct err *err);
size_t feed_wire_request_count(const struct feed_wire_request *r);
struct feed_wire_item feed_wire_request_item(const struct feed_wire_request *r, size_t i);
struct feed_wire_request *feed_wire_request_free(struct feed_wire_request *r);

/* A call, as its publisher described it. Fields that are left out are 0 or "". */
struct feed_wire_call {
    const uint8_t *call;
    size_t call_len;
    int64_t priority;
    const char *tip, *max_tip; /* decimal */
    int64_t not_before_ms, deadline_ms, deadline_block;
    uint32_t retries, spec_version;
};
/* *ret is borrowed until *ret_memory is freed by feed_wire_call_free. */
struct feed_wire_call_memory;
int feed_wire_call_read(const uint8_t *data, size_t len, struct feed_wire_call *ret,
                        struct feed_wire_call_memory **ret_memory, struct err *err);
struct feed_wire_call_memory *feed_wire_call_free(struct feed_wire_call_memory *m);
void feed_wire_call_write(struct buf *out, const struct feed_wire_call *call);

/* Appends a request with these items of one batch, or with one END_STREAM. */
void feed_wire_request_write(struct buf *out, const struct feed_wire_item *items, size_t count);

enum feed_wire_answer {
    FEED_WIRE_ACK,
    FEED_WIRE_SKIP,
    FEED_WIRE_RESEND,
    FEED_WIRE_BEHIND,
    FEED_WIRE_END,
};

/* Of EndOfStream; the values of feed.proto. */
enum feed_wire_status {
    FEED_WIRE_SUCCESS = 1,
    FEED_WIRE_INVALID_REQUEST = 2,
    FEED_WIRE_ERROR = 3,
    FEED_WIRE_TIMEOUT = 4,
    FEED_WIRE_DUPLICATE_BLOCK = 5,
    FEED_WIRE_BAD_BLOCK_PROOF = 6,
    FEED_WIRE_PERSISTENCE_FAILED = 7,
    FEED_WIRE_STATUS_BEHIND = 8,
    FEED_WIRE_NOT_LEADER = 9,
};
const char *feed_wire_status_name(int status); /* "?" for what feed.proto does not have */

/* Numbers of answers end here: publishers compute the one after, and one more. */
#define FEED_WIRE_NUMBER_MAX (1LL << 62)

struct feed_wire_response {
    enum feed_wire_answer answer;
    int64_t number; /* BEHIND and END: the last stored one */
    int status;     /* END */
    char leader[128];
    char detail[300];
};

void feed_wire_response_write(struct buf *out, const struct feed_wire_response *r);
int feed_wire_response_read(const uint8_t *data, size_t len, struct feed_wire_response *ret,
                            struct err *err);

/* Appends what a trailer's signature is made over. */
void feed_wire_signed_put(struct buf *out, const char *feed, int64_t number, uint32_t count,
                          const uint8_t digest[FEED_WIRE_DIGEST]);

#endif
