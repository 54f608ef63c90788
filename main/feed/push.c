#include "push.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "chain/keys/keys.h"
#include "cli.h"
#include "feed/client/client.h"
#include "source.h"

enum {
    TARGETS_MAX = 16,
    TOKEN_MAX = 1000,
};

struct push {
    const struct feed_push_options *options;
    struct loop *loop;
    struct feed_client *client;
    struct loop_signal *term, *interrupt;
    struct source source;
    int64_t acked;
    bool terminal;
    bool dirty; /* the terminal's line is not ended */
    int exit_code;
};

/* ---- what is said ---- */

static void end_line(struct push *p)
{
    if (p->dirty)
        fputc('\n', stderr);
    p->dirty = false;
}

static void progress(struct push *p)
{
    if (!p->terminal)
        return;
    fprintf(stderr, "\r%s: %lld acknowledged, %zu kept \033[K", p->options->feed,
            (long long)p->acked, feed_client_kept(p->client));
    p->dirty = true;
}

static void stop(struct push *p, int exit_code)
{
    p->exit_code = exit_code;
    source_stop(&p->source);
    loop_stop(p->loop);
}

static void on_bad(void *arg, const char *place, const struct err *err)
{
    struct push *p = arg;
    struct err text;
    end_line(p);
    err_set(&text, ERR_ARGUMENT, "%s: %s", place, err->text);
    stop(p, cli_fail(&text));
}

/* ---- the client ---- */

static void on_acked(void *arg, int64_t number)
{
    struct push *p = arg;
    p->acked = number;
    if (p->options->json) {
        printf("{\"acknowledged\":%lld}\n", (long long)number);
        fflush(stdout); /* a reader waits for each one */
    }
    progress(p);
    source_acked(&p->source);
}

/* The database lost commits: the files are still there. */
static bool on_missing(void *arg, int64_t number)
{
    struct push *p = arg;
    if (!source_try_back(&p->source, number))
        return false;
    end_line(p);
    fprintf(stderr, "txrelay: the relay needs batch %lld again: going back to it\n",
            (long long)number);
    return true;
}

static void on_note(void *arg, enum feed_client_note note, int64_t number, const char *text)
{
    static const char *const words[] = {
        [FEED_CLIENT_CONNECTED] = "connected",
        [FEED_CLIENT_SENT] = "sent",
        [FEED_CLIENT_SKIP] = "skipped: another publisher's copy is taken",
        [FEED_CLIENT_RESEND] = "is to be sent again",
        [FEED_CLIENT_ENDED] = "the relay ended the stream",
        [FEED_CLIENT_LOST] = "no connection",
        [FEED_CLIENT_MISSING] = "is needed by the relay and is not here: others have to send it",
    };
    struct push *p = arg;
    switch (note) {
    case FEED_CLIENT_CONNECTED:
    case FEED_CLIENT_SENT:
    case FEED_CLIENT_SKIP:
        break; /* the usual course */
    case FEED_CLIENT_RESEND:
    case FEED_CLIENT_MISSING:
        end_line(p);
        fprintf(stderr, "txrelay: batch %lld %s\n", (long long)number, words[note]);
        break;
    case FEED_CLIENT_ENDED:
    case FEED_CLIENT_LOST:
        end_line(p);
        fprintf(stderr, "txrelay: %s: %s\n", words[note], text);
        break;
    }
    progress(p);
}

static void on_failed(void *arg, const struct err *why)
{
    struct push *p = arg;
    end_line(p);
    stop(p, cli_fail(why));
}

static void on_done(void *arg)
{
    stop(arg, EXIT_OK);
}

static void on_signal(void *arg, int signum)
{
    (void)signum;
    struct push *p = arg;
    end_line(p);
    fprintf(stderr, "txrelay: stopped; %zu batches are not acknowledged\n",
            feed_client_kept(p->client));
    stop(p, EXIT_FAILED);
}

static int read_token(const char *path, char **ret, struct err *err)
{
    struct buf text = {0};
    if (!path)
        return 0;
    if (!source_read_file(path, &text, err)) {
        size_t n = strcspn(buf_str(&text), "\r\n");
        if (n < 1 || n > TOKEN_MAX)
            err_set(err, ERR_CONFIG, "%s: its first line must be the token, 1 to %d characters",
                    path, TOKEN_MAX);
        else
            *ret = xstrndup(buf_str(&text), n);
    }
    buf_done(&text);
    return err->code;
}

static int make_tls(const struct feed_push_options *o, struct tls_context **ret, struct err *err)
{
    struct tls_config config = {
        .cert_file = o->cert_file, .key_file = o->cert_key_file, .ca_file = o->ca_file};
    if (!o->ca_file && !o->cert_file)
        return 0;
    *ret = tls_context_new(&config, err);
    return *ret ? 0 : err->code;
}

static size_t split_targets(char *list, const char *ret[TARGETS_MAX])
{
    size_t n = 0;
    char *rest = NULL;
    for (char *t = strtok_r(list, ",", &rest); t && n < TARGETS_MAX; t = strtok_r(NULL, ",", &rest))
        ret[n++] = t;
    return n;
}

static int run(struct push *p, const struct keypair *key, struct tls_context *tls,
               const char *token)
{
    const struct feed_push_options *o = p->options;
    const char *targets[TARGETS_MAX];
    char *list = xstrdup(o->to);
    struct err err = {0};
    struct feed_client_config config = {
        .feed = o->feed,
        .targets = targets,
        .target_count = split_targets(list, targets),
        .tls = tls,
        .server_name = o->server_name,
        .token = token,
        .key = key,
        .on_acked = on_acked,
        .on_note = on_note,
        .on_missing = on_missing,
        .on_failed = on_failed,
        .on_done = on_done,
        .arg = p,
    };
    p->loop = loop_new();
    p->client = feed_client_new(p->loop, &config, &err);
    p->source.loop = p->loop;
    p->source.client = p->client;
    if (p->client && !source_open(&p->source, &err)) {
        p->term = loop_signal_new(p->loop, SIGTERM, on_signal, p);
        p->interrupt = loop_signal_new(p->loop, SIGINT, on_signal, p);
        loop_run(p->loop);
        end_line(p);
    }
    p->term = loop_signal_close(p->term);
    p->interrupt = loop_signal_close(p->interrupt);
    source_close(&p->source);
    p->client = feed_client_close(p->client);
    loop_free(p->loop);
    free(list);
    return err.code ? cli_fail(&err) : p->exit_code;
}

int feed_push(const struct feed_push_options *o)
{
    struct push p = {.options = o, .acked = -1, .terminal = isatty(STDERR_FILENO) == 1};
    struct keypair *key = NULL;
    struct tls_context *tls = NULL;
    char *token = NULL;
    struct err err = {0};
    int rc = 0;
    p.source = (struct source){.path = o->source, .next = o->from, .on_bad = on_bad, .arg = &p};
    if (keypair_from_file(o->key_file, KEY_ED25519, &key, &err) ||
        read_token(o->token_file, &token, &err) || make_tls(o, &tls, &err))
        rc = cli_fail(&err);
    else
        rc = run(&p, key, tls, token);
    if (rc == EXIT_OK && !o->json)
        printf("%lld\n", (long long)p.acked);
    if (token)
        explicit_bzero(token, strlen(token));
    free(token);
    tls_context_free(tls);
    keypair_free(key);
    return rc;
}
