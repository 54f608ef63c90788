/* Webhooks in a relay: asks the database what is to be delivered for the accounts that this relay
 * leads, posts it with a signature (Standard Webhooks), and reports what became of it. It has one
 * session of its own. hook/core decides; this folder carries it out. */
#ifndef HOOK_HOOKS_H
#define HOOK_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "hook/core/hook.h"
#include "loop/loop.h"

struct buf;
struct hooks;

struct hooks_config {
    const char *dsn, *name; /* of the session */
    const char *holder;     /* this relay, as in leadership */
    const char *key;        /* secrets of webhooks are derived from it */
    const char *ca_file;    /* who may have signed receivers' certificates; NULL: the system's */
    bool allow_private;  /* receivers on this machine and in private networks, also without TLS */
    uint32_t timeout_ms; /* of a request; 0: 10,000 */
    struct hook_config core; /* zeros = defaults */
};

/* NULL and *err (ERR_CONFIG). The strings are copied. */
struct hooks *hooks_open(struct loop *l, const struct hooks_config *config, struct err *err);
int hooks_reload(struct hooks *h, struct err *err); /* ca_file again */
void hooks_drain(struct hooks *h); /* what is under way is finished, and nothing more is sent */
void hooks_close(struct hooks *h, void (*cb)(void *arg),
                 void *arg); /* frees h before the callback */
void hooks_metrics(const struct hooks *h, struct buf *out);

/* The key in a file: one line of at least 32 characters. NULL: err (ERR_CONFIG) says what is wrong
 * with the file. The caller erases and frees it. */
char *hooks_key_read(const char *path, struct err *err);
/* The secret of a webhook as its receiver needs it: "whsec_" and base64. salt in hexadecimal. */
enum { HOOKS_SECRET_MAX = 64 };
void hooks_secret(const char *key, const char *name, const char *salt_hex,
                  char ret[HOOKS_SECRET_MAX]);

#endif
