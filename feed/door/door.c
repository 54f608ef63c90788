/* The door: a gRPC server, who may come in, and the sessions that are open. */
#include "door_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/host.h"
#include "base/log.h"
#include "feed/wire/wire.h"
#include "loop/peer.h"

enum { TOKEN_MAX = 1000 };

static char *copy_of(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

static void wipe(char *token)
{
    if (token)
        explicit_bzero(token, strlen(token));
    free(token);
}

static int read_token(const char *path, char **ret, struct err *err)
{
    char line[TOKEN_MAX + 2] = "";
    FILE *f = fopen(path, "re");
    if (!f)
        return err_set(err, ERR_CONFIG, "token_file %s: %s", path, strerror(errno));
    size_t n = fgets(line, sizeof(line), f) ? strcspn(line, "\r\n") : 0;
    fclose(f);
    if (n >= 1 && n <= TOKEN_MAX)
        *ret = xstrndup(line, n);
    else
        err_set(err, ERR_CONFIG,
                "token_file %s: its first line must be the token, 1 to %d characters", path,
                TOKEN_MAX);
    explicit_bzero(line, sizeof(line));
    return *ret ? 0 : ERR_CONFIG;
}

/* The time does not depend on where the first difference is. */
static bool same_token(const char *ours, const char *theirs)
{
    size_t n = strlen(ours), m = strlen(theirs);
    unsigned differs = n != m;
    for (size_t i = 0; i < n; i++)
        differs |= (unsigned)(unsigned char)ours[i] ^ (unsigned char)theirs[i < m ? i : 0];
    return !differs;
}

static bool on_call(void *arg, struct grpc_call *call)
{
    struct feed_door *d = arg;
    if (strcmp(grpc_call_path(call), FEED_WIRE_PUBLISH) != 0)
        return false;
    if (d->token && !same_token(d->token, grpc_call_token(call))) {
        log_warn("feed.refused", "peer=%s identity=\"%s\" reason=token", grpc_call_peer(call),
                 grpc_call_identity(call));
        grpc_call_finish(call, GRPC_UNAUTHENTICATED, "the token is missing, or not the relay's");
        return true;
    }
    feed__stream_open(d, call);
    return true;
}

static void on_lost(void *arg, const char *peer, const struct err *why)
{
    (void)arg;
    if (why->code)
        log_info("feed.connection_lost", "peer=%s reason=\"%s\"", peer, why->text);
}

int feed_door_values(const struct feed_door_config *config, struct err *err)
{
    if (loop_address_check(config->listen, err))
        return err->code;
    if (!config->cert_file != !config->key_file)
        return err_set(err, ERR_CONFIG, "feeds.cert_file and feeds.key_file belong together");
    if (config->ca_file && !config->cert_file)
        return err_set(err, ERR_CONFIG, "feeds.ca_file needs feeds.cert_file and feeds.key_file");
    if (!loop_address_is_local(config->listen) && !config->ca_file && !config->token_file)
        return err_set(err, ERR_CONFIG,
                       "%s can be reached from other machines: publishers need certificates "
                       "(feeds.ca_file) or a token (feeds.token_file)",
                       config->listen);
    return config->cert_file ? 0 : tls_listen_check(NULL, config->listen, err);
}

/* What a configuration says, without a server. NULL: it is refused. */
static struct feed_door *load(const struct feed_door_config *config, struct err *err)
{
    if (feed_door_values(config, err))
        return NULL;
    struct feed_door *d = xcalloc(1, sizeof(*d));
    struct tls_config tls = {.server = true,
                             .cert_file = config->cert_file,
                             .key_file = config->key_file,
                             .ca_file = config->ca_file};
    d->token_file = copy_of(config->token_file);
    list_init(&d->streams);
    if ((d->token_file && read_token(d->token_file, &d->token, err)) ||
        (tls.cert_file && !(d->tls = tls_context_new(&tls, err))))
        return feed_door_close(d);
    return d;
}

struct feed_door *feed_door_open(struct loop *l, struct feed_room *room,
                                 const struct feed_door_config *config, struct err *err)
{
    struct feed_door *d = load(config, err);
    if (!d)
        return NULL;
    d->loop = l;
    d->room = room;
    struct grpc_server_config server = {
        .address = config->listen,
        .tls = d->tls,
        .limits = {.message_bytes = FEED_WIRE_REQUEST_MAX,
                   .window_bytes = 256 << 10,
                   .call_out_bytes = 64 << 10, /* answers are short */
                   .conn_out_bytes = 1 << 20},
        .on_call = on_call,
        .on_lost = on_lost,
        .arg = d,
    };
    d->server = grpc_server_new(l, &server, err);
    return d->server ? d : feed_door_close(d);
}

int feed_door_check(const struct feed_door_config *config, struct buf *out,
                    void (*caution)(void *arg, const char *text), void *arg, struct err *err)
{
    struct stat st;
    struct buf text = {0};
    struct feed_door *d = load(config, err);
    if (!d)
        return err->code;
    buf_printf(out, "%s takes publishers with %s", config->listen,
               d->tls && config->ca_file
                   ? (d->token ? "a certificate and the token" : "a certificate")
               : d->token ? "the token"
                          : "nothing but their signature");
    if (d->tls) {
        buf_puts(out, "; TLS ");
        tls_context_shown(d->tls, out);
        tls_context_cautions(d->tls, caution, arg);
    }
    if (d->token_file && stat(d->token_file, &st) == 0 && st.st_mode & S_IRWXO) {
        buf_printf(&text, "token_file %s has mode %03o, open to every user: chmod 600 %s",
                   d->token_file, (unsigned)st.st_mode & 0777, d->token_file);
        caution(arg, buf_str(&text));
    }
    buf_done(&text);
    feed_door_close(d);
    return 0;
}

const char *feed_door_address(const struct feed_door *d)
{
    return grpc_server_address(d->server);
}

size_t feed_door_sessions(const struct feed_door *d)
{
    return d->count;
}

void feed_door_certificate(const struct feed_door *d, struct buf *out)
{
    if (d->tls)
        tls_context_shown(d->tls, out);
}

int feed_door_reload(struct feed_door *d, struct err *err)
{
    char *token = NULL;
    if (d->token_file && read_token(d->token_file, &token, err))
        return err->code;
    if (d->tls && tls_context_reload(d->tls, err)) {
        wipe(token);
        return err->code;
    }
    wipe(d->token);
    d->token = token;
    return 0;
}

void feed_door_drain(struct feed_door *d, uint64_t grace_ms)
{
    grpc_server_drain(d->server, grace_ms);
}

struct feed_door *feed_door_close(struct feed_door *d)
{
    if (!d)
        return NULL;
    d->server = grpc_server_close(d->server); /* no call reports anything any more */
    for (struct list *n = list_first(&d->streams); n; n = list_first(&d->streams))
        feed__stream_gone(CONTAINER_OF(n, struct feed_stream, node));
    tls_context_free(d->tls);
    wipe(d->token);
    free(d->token_file);
    free(d);
    return NULL;
}
