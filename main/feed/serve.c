#include "serve.h"

#include <string.h>

#include "base/log.h"
#include "feed/door/door.h"

enum { GRACE_MS = 5000 }; /* for open streams, of a relay that drains */

static int serve_open(void *arg, struct loop *l, struct feed_room *room, struct err *err)
{
    struct feed_serve *s = arg;
    const struct feed_door_config config = {
        .listen = s->config->listen,
        .cert_file = s->config->cert_file,
        .key_file = s->config->key_file,
        .ca_file = s->config->ca_file,
        .token_file = s->config->token_file,
    };
    s->door = feed_door_open(l, room, &config, err);
    return s->door ? 0 : err->code;
}

static void serve_drain(void *arg)
{
    feed_door_drain(((struct feed_serve *)arg)->door, GRACE_MS);
}

static void serve_close(void *arg)
{
    struct feed_serve *s = arg;
    s->door = feed_door_close(s->door);
}

int feed_serve_fill(struct feed_serve *s, const struct config_file *f, struct service_config *ret,
                    struct err *err)
{
    const char *listen = f->feeds.listen;
    *s = (struct feed_serve){.config = &f->feeds};
    if (!listen)
        return 0;
    if (!f->database.url)
        return err_set(err, ERR_CONFIG,
                       "feeds.listen is given, and no database: feeds need one (database.url)");
    ret->feeds = (struct service_feeds){
        .address = f->feeds.address              ? f->feeds.address
                   : !strncmp(listen, "tcp:", 4) ? listen + 4
                                                 : listen,
        .open = serve_open,
        .drain = serve_drain,
        .close = serve_close,
        .arg = s,
    };
    return 0;
}

void feed_serve_reload(struct feed_serve *s)
{
    struct err err = {0};
    if (s->door && feed_door_reload(s->door, &err))
        log_error("feed.reload_failed",
                  "text=\"%s\" kept=\"the certificates and the token that were in force\"",
                  err.text);
}
