/* What relays answer. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "feed.pb-c.h"
#include "feed/wire/wire.h"
#include "wire/wire.h"

typedef Txrelay__Feed__V1__PublishResponse response_msg;
#define CASE(name) TXRELAY__FEED__V1__PUBLISH_RESPONSE__RESPONSE_##name

void feed_wire_response_write(struct buf *out, const struct feed_wire_response *r)
{
    response_msg msg = TXRELAY__FEED__V1__PUBLISH_RESPONSE__INIT;
    Txrelay__Feed__V1__Acknowledgement ack = TXRELAY__FEED__V1__ACKNOWLEDGEMENT__INIT;
    Txrelay__Feed__V1__SkipBlock skip = TXRELAY__FEED__V1__SKIP_BLOCK__INIT;
    Txrelay__Feed__V1__ResendBlock resend = TXRELAY__FEED__V1__RESEND_BLOCK__INIT;
    Txrelay__Feed__V1__NodeBehind behind = TXRELAY__FEED__V1__NODE_BEHIND__INIT;
    Txrelay__Feed__V1__EndOfStream end = TXRELAY__FEED__V1__END_OF_STREAM__INIT;
    switch (r->answer) {
    case FEED_WIRE_ACK:
        ack.number = r->number;
        msg.response_case = CASE(ACKNOWLEDGEMENT);
        msg.acknowledgement = &ack;
        break;
    case FEED_WIRE_SKIP:
        skip.number = r->number;
        msg.response_case = CASE(SKIP_BLOCK);
        msg.skip_block = &skip;
        break;
    case FEED_WIRE_RESEND:
        resend.number = r->number;
        msg.response_case = CASE(RESEND_BLOCK);
        msg.resend_block = &resend;
        break;
    case FEED_WIRE_BEHIND:
        behind.last = r->number;
        msg.response_case = CASE(NODE_BEHIND);
        msg.node_behind = &behind;
        break;
    case FEED_WIRE_END:
        end.status = (Txrelay__Feed__V1__EndOfStream__Status)r->status;
        end.last = r->number;
        end.leader = (char *)(uintptr_t)r->leader;
        end.detail = (char *)(uintptr_t)r->detail;
        msg.response_case = CASE(END_OF_STREAM);
        msg.end_of_stream = &end;
        break;
    }
    wire_put(out, &msg);
}

static int take(const response_msg *msg, struct feed_wire_response *ret)
{
    switch ((int)msg->response_case) {
    case CASE(ACKNOWLEDGEMENT):
        ret->answer = FEED_WIRE_ACK;
        ret->number = msg->acknowledgement->number;
        return 0;
    case CASE(SKIP_BLOCK):
        ret->answer = FEED_WIRE_SKIP;
        ret->number = msg->skip_block->number;
        return 0;
    case CASE(RESEND_BLOCK):
        ret->answer = FEED_WIRE_RESEND;
        ret->number = msg->resend_block->number;
        return 0;
    case CASE(NODE_BEHIND):
        ret->answer = FEED_WIRE_BEHIND;
        ret->number = msg->node_behind->last;
        return 0;
    case CASE(END_OF_STREAM):
        ret->answer = FEED_WIRE_END;
        ret->number = msg->end_of_stream->last;
        ret->status = (int)msg->end_of_stream->status;
        snprintf(ret->leader, sizeof(ret->leader), "%s", msg->end_of_stream->leader);
        snprintf(ret->detail, sizeof(ret->detail), "%s", msg->end_of_stream->detail);
        return 0;
    default:
        return -1;
    }
}

int feed_wire_response_read(const uint8_t *data, size_t len, struct feed_wire_response *ret,
                            struct err *err)
{
    struct arena arena;
    arena_init(&arena, len);
    const response_msg *msg = (const response_msg *)(void *)protobuf_c_message_unpack(
        &txrelay__feed__v1__publish_response__descriptor, &arena.allocator, len, data);
    *ret = (struct feed_wire_response){0};
    int rc = msg ? take(msg, ret) : -1;
    arena_done(&arena);
    if (rc == 0 && (ret->number < -1 || ret->number > FEED_WIRE_NUMBER_MAX))
        return err_set(err, ERR_PROTOCOL, "an answer has the number %lld; it must be -1 to %lld",
                       (long long)ret->number, FEED_WIRE_NUMBER_MAX);
    return rc ? err_set(err, ERR_PROTOCOL, "an answer is not a PublishResponse of feed.proto") : 0;
}

const char *feed_wire_status_name(int status)
{
    static const char *const names[] = {
        "UNKNOWN",         "SUCCESS",         "INVALID_REQUEST",    "ERROR",  "TIMEOUT",
        "DUPLICATE_BLOCK", "BAD_BLOCK_PROOF", "PERSISTENCE_FAILED", "BEHIND", "NOT_LEADER",
    };
    return status >= 0 && (size_t)status < ARRAY_LEN(names) ? names[status] : "?";
}
