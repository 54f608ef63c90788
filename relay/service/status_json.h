/* relay/status.h as JSON. Private to relay/. */
#ifndef RELAY_STATUS_JSON_H
#define RELAY_STATUS_JSON_H

#include <jansson.h>

#include "relay/status.h"

/* now_ms: of the loop's clock, to which times are relative. The caller owns the value. */
json_t *status_json(const struct service_status *status, uint64_t now_ms);

#endif
