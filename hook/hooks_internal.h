/* Private to hook/.
 *
 *   hooks.c    the session, the core's effects, the metrics
 *   deliver.c  a delivery: its signature and its request
 *   secret.c   secrets, from the key file
 */
#ifndef HOOK_HOOKS_INTERNAL_H
#define HOOK_HOOKS_INTERNAL_H

#include "base/list.h"
#include "base/metrics.h"
#include "hook/hooks.h"
#include "net/http_client.h"
#include "store/conn.h"

enum { HOOK_SALT_HEX = 33, HOOK_WHY = 300 };

struct hooks {
    struct loop *loop;
    struct hook_core *core;
    struct conn *conn; /* NULL: it is being closed */
    struct loop_timer *timer;
    struct tls_context *tls;
    char *holder, *key;
    bool allow_private;
    uint32_t timeout_ms;
    struct conn_query ask;
    struct list deliveries; /* with a request under way */
    struct metric_histogram took;
    uint64_t live;
    bool stepping;
    struct list reports;
    void (*cb)(void *arg);
    void *cb_arg;
};

/* A row of leader_webhooks: the core's item. */
struct delivery {
    struct list node;
    struct hooks *hooks;
    uint64_t lane;
    struct http_call *call; /* NULL: no request is under way */
    struct loop_task refused;
    uint64_t since_ms;
    char webhook[HOOK_NAME_MAX];
    uint64_t id;
    char *url, *body;
    char salt[HOOK_SALT_HEX], salt_before[HOOK_SALT_HEX]; /* "": none */
};

/* hooks.c */
void hooks__step(struct hooks *h, const struct hook_event *ev);
void hooks__failed(struct hooks *h, uint64_t lane, const char *why); /* for the report */

/* deliver.c */
void hooks__send(struct delivery *d, uint64_t lane);
void hooks__release(void *item);

/* secret.c */
void hooks__secret_of(const char *key, const char *name, const char *salt_hex, uint8_t ret[32]);

#endif
