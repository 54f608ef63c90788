/* Requests that come as JSON, at the control endpoint and on a standalone relay's standard input,
 * as requests of the store. Private to relay/. */
#ifndef RELAY_ENQUEUE_JSON_H
#define RELAY_ENQUEUE_JSON_H

#include <jansson.h>

#include "base/buf.h"
#include "store/operator.h"
#include "store/outbox.h"

/* {"account":"alice","call":"0x..", "key":"..", "creator":"..", "priority":0,
 *  "not_before":T, "deadline":T, "spec_version":N, "tip":A, "max_tip":A, "deadline_block":N,
 *  "retries":N, "delay":S, "expires_in":S, "traceparent":".."}
 * S, in place of not_before and deadline: milliseconds from now, or text like 90s, 15m, 2h, 7d.
 * T: milliseconds since 1970, or text like 2026-01-31T12:00:00Z. A: planck, a whole number or its
 * digits as text. All but account and call may be left out; null is the same. "cmd" is the caller's
 * own. */
struct enqueue_json {
    struct store_enqueue req; /* its texts lie in `request` and in here */
    json_t *request;
    struct buf call;
    char tip[24], max_tip[24];
};
/* 0, or an error that names the field, the value and what is allowed. x is zero before;
 * enqueue_json_done in any case. */
int enqueue_json_read(struct enqueue_json *x, json_t *request, struct err *err);
void enqueue_json_done(struct enqueue_json *x);

/* {"cmd":"cancel","id":N}, {"cmd":"bump","id":N,"tip":A}, {"cmd":"resume","account":".."},
 * {"cmd":"retry","id":N,"deadline":T,"deadline_block":B} */
struct ask_json {
    struct store_ask req;
    json_t *request;
    char tip[24];
    const char *cmd; /* out */
    void (*start)(struct store *s, struct store_ask *r, store_cb cb);
};
bool ask_json_is(const char *cmd); /* one of these */
int ask_json_read(struct ask_json *x, const char *cmd, json_t *request, struct err *err);
void ask_json_done(struct ask_json *x);

#endif
