#include "serve.h"

#include <string.h>

#include "base/log.h"
#include "feed/door/door.h"

enum { GRACE_MS = 5000 }; /* for open streams, of a relay that drains */

static struct feed_door_config door_config(const struct config_feeds *c)
{
    return (struct feed_door_config){
        .listen = c->listen,
        .cert_file = c->cert_file,
        .key_file = c->key_file,
        .ca_file = c->ca_file,
        .token_file = c->token_file,
    };
}

static int serve_open(void *arg, struct loop *l, struct feed_room *room, struct err *err)
{
    struct feed_serve *s = arg;
    const struct feed_door_config config = door_config(s->config);
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

/* By which publishers reach it. */
static const char *address_of(const struct config_feeds *c)
{
    static const char tcp[] = "tcp:";
    if (c->address)
        return c->address;
    return strncmp(c->listen, tcp, sizeof(tcp) - 1) ? c->listen : c->listen + sizeof(tcp) - 1;
}

static int check_database(const struct config_file *f, struct err *err)
{
    if (f->database.url)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "feeds.listen is given, and no database: feeds need one (database.url)");
}

int feed_serve_fill(struct feed_serve *s, const struct config_file *f, struct service_config *ret,
                    struct err *err)
{
    *s = (struct feed_serve){.config = &f->feeds};
    if (!f->feeds.listen)
        return 0;
    const struct feed_door_config config = door_config(&f->feeds);
    if (check_database(f, err) || feed_door_values(&config, err))
        return err->code;
    ret->feeds = (struct service_feeds){
        .address = address_of(&f->feeds),
        .open = serve_open,
        .drain = serve_drain,
        .close = serve_close,
        .arg = s,
    };
    return 0;
}

int feed_serve_check(const struct config_file *f, struct buf *out,
                     void (*caution)(void *arg, const char *text), void *arg, struct err *err)
{
    if (!f->feeds.listen)
        return 0;
    const struct feed_door_config config = door_config(&f->feeds);
    if (check_database(f, err) || feed_door_check(&config, out, caution, arg, err))
        return err->code;
    buf_printf(out, "; other relays name it as %s", address_of(&f->feeds));
    return 0;
}

void feed_serve_reload(struct feed_serve *s)
{
    struct err err = {0};
    struct buf shown = {0};
    if (!s->door)
        return;
    if (feed_door_reload(s->door, &err)) {
        log_error("feed.reload_failed",
                  "text=\"%s\" kept=\"the certificates and the token that were in force\"",
                  err.text);
    } else {
        feed_door_certificate(s->door, &shown);
        log_info("feed.reloaded", "certificate=\"%s\"", buf_str(&shown));
    }
    buf_done(&shown);
}
