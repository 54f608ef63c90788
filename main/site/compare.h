/* For `txrelay check`: what another site has configured for an account, beside this one's. */
#ifndef MAIN_SITE_COMPARE_H
#define MAIN_SITE_COMPARE_H

#include "relay/sites_config.h"
#include "site/wire/wire.h"

/* `caution` gets a line if they differ; `who` is the other site, with the relay that answered. */
void site_compare(const struct sites_account *ours, const struct site_wire_settings *theirs,
                  const char *who, void (*caution)(void *arg, const char *text), void *arg);

#endif
