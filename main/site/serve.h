/* Accounts that have several sites: what the service needs, made from the configuration. */
#ifndef MAIN_SITE_SERVE_H
#define MAIN_SITE_SERVE_H

#include "base/buf.h"
#include "config.h"
#include "relay/service.h"

struct site_serve {
    struct sites_config config; /* borrows from the configuration file */
    struct sites_peer *peers;
    struct sites_account *accounts;
};

/* Nothing if no account has sites. *s must live as long as the service; site_serve_done in any
 * case. ERR_CONFIG: there is no database, or the values can never be right. */
int site_serve_fill(struct site_serve *s, const struct config_file *f, struct service_config *ret,
                    struct err *err);
void site_serve_done(struct site_serve *s);
/* Would the links open with this configuration? Reads the files, connects to each relay of the
 * other sites, and compares what they have configured. `out` gets who is there, for people;
 * `caution` who is not, and what differs. 0, and nothing in `out`, if no account has sites. */
int site_serve_check(const struct config_file *f, const struct service_config *c, struct buf *out,
                     void (*caution)(void *arg, const char *text), void *arg, struct err *err);
/* Reads the certificates again, and logs what happened. */
void site_serve_reload(const struct site_serve *s, struct service *service);

#endif
