/* The HTTP interface in a relay: what the service calls, made from the configuration. */
#ifndef MAIN_HTTP_SERVE_H
#define MAIN_HTTP_SERVE_H

#include "base/buf.h"
#include "config.h"
#include "relay/service.h"

struct api;

struct http_serve {
    const struct config_file *file; /* borrowed */
    struct service *service;
    struct api *api; /* NULL: not open */
};

/* Nothing where http.listen is not given. *h must live as long as the service. ERR_CONFIG: there is
 * no database, or the values can never be right. */
int http_serve_fill(struct http_serve *h, const struct config_file *f, struct service_config *ret,
                    struct err *err);
/* Would it open with this configuration? As api_check; 0 too where http.listen is not given, and
 * nothing in `out`. */
int http_serve_check(const struct config_file *f, struct buf *out,
                     void (*caution)(void *arg, const char *text), void *arg, struct err *err);
/* Certificates again. Logs what happened. */
void http_serve_reload(struct http_serve *h);

#endif
