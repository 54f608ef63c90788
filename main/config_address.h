/* Addresses in the configuration: one rule for a start, a reload and `check`. */
#ifndef MAIN_CONFIG_ADDRESS_H
#define MAIN_CONFIG_ADDRESS_H

#include "config.h"

/* Refuses addresses that are none (ERR_CONFIG), with key and value. An address to listen at that
 * has no scheme gets `tcp:`. */
int config__addresses(struct config_file *f, struct err *err);

#endif
