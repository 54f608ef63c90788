/* For `txrelay check`: are the relays of the other sites there, are they who they should be, and do
 * they have the same sites and policies? */
#ifndef MAIN_SITE_REACH_H
#define MAIN_SITE_REACH_H

#include "base/buf.h"
#include "base/error.h"
#include "relay/sites_config.h"
#include "site/core/selector.h"

/* Reads certificates and connects to each address of each site. `out` gets the own certificate and
 * who answers; `caution` who does not, what differs there, and what is to be mended soon. ids: of
 * the configuration's accounts, as sites write them. An error: links could never open. */
int site_reach(const struct sites_config *c, const uint8_t (*ids)[SELECTOR_ACCOUNT_BYTES],
               struct buf *out, void (*caution)(void *arg, const char *text), void *arg,
               struct err *err);

#endif
