/* For `txrelay check`: are the relays of the other sites there, and are they who they should be? */
#ifndef MAIN_SITE_REACH_H
#define MAIN_SITE_REACH_H

#include "base/buf.h"
#include "base/error.h"
#include "relay/sites_config.h"

/* Reads certificates and connects to each address of each site. `out` gets the own certificate and
 * who answers; `caution` who does not, and what is to be mended soon. An error: links could never
 * open. */
int site_reach(const struct sites_config *c, struct buf *out,
               void (*caution)(void *arg, const char *text), void *arg, struct err *err);

#endif
