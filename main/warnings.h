/* Settings that work but are unsafe: printed by `txrelay check` and logged at each start of a
 * relay. */
#ifndef MAIN_WARNINGS_H
#define MAIN_WARNINGS_H

#include "config.h"
#include "relay/service.h"

/* Calls `each` for every warning with its subject and a sentence that says what to do. */
void warnings_each(const struct config_file *f, const struct service_config *c,
                   void (*each)(void *arg, const char *what, const char *text), void *arg);

#endif
