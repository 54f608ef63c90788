/* Server-sent events as the lines of `tail`. It resumes from the last id, after a pause. */
#include "tail_http.h"

#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hex.h"
#include "cli.h"
#include "listen/listen.h"
#include "net/http_client.h"

enum { PAUSE_MS = 1000, SILENCE_MS = 20000, BLOCK_MAX = 1 << 20, TOKEN_MAX = 200, BAD = 400 };

struct tail_http {
    struct tail_http_config config;
    char token[TOKEN_MAX + 2];
    struct buf target;
    struct loop *loop;
    struct tls_context *tls; /* NULL: cleartext */
    struct http_call *call;  /* NULL: none is under way */
    struct loop_timer *pause;
    struct loop_signal *term, *interrupt;
    struct buf text; /* of the stream, up to the next empty line */
    char last[128];  /* id; "": none yet */
    uint64_t stale_ms;
    bool live, over;
    int exit_code;
};

static void ask(struct tail_http *t);

static void stop(struct tail_http *t, int exit_code)
{
    if (t->over)
        return;
    t->over = true;
    t->exit_code = exit_code;
    if (t->call)
        http_call_cancel(t->call);
    t->call = NULL;
    t->pause = loop_timer_close(t->pause);
    t->term = loop_signal_close(t->term);
    t->interrupt = loop_signal_close(t->interrupt);
}

/* ---- lines ---- */

static const char *text_of(const json_t *event, const char *name)
{
    const char *text = json_string_value(json_object_get(event, name));
    return text ? text : "";
}

static bool hash_of(const json_t *event, const char *name, uint8_t ret[32])
{
    const char *text = text_of(event, name);
    return hex_decode_fixed(text, strlen(text), ret, 32);
}

static int64_t number_of(const json_t *event, const char *name, int64_t without)
{
    const json_t *value = json_object_get(event, name);
    return json_is_integer(value) ? json_integer_value(value) : without;
}

static bool kind_of(const char *name, enum listen_kind *ret)
{
    for (int k = LISTEN_NEW; k <= LISTEN_FINISHED; k++) {
        *ret = (enum listen_kind)k;
        if (!strcmp(listen_kind_name(*ret), name))
            return true;
    }
    return false;
}

/* false: it is about no transaction. */
static bool put_human(const json_t *event, struct buf *out)
{
    struct listen_event ev = {.alias = text_of(event, "account"),
                              .id = number_of(event, "id", 0),
                              .nonce = number_of(event, "nonce", -1),
                              .block_number = number_of(event, "block_number", -1),
                              .state = text_of(event, "state"),
                              .outcome = text_of(event, "outcome"),
                              .error = text_of(event, "error"),
                              .creator = text_of(event, "creator_id"),
                              .trace = text_of(event, "traceparent")};
    if (!kind_of(text_of(event, "event"), &ev.kind))
        return false;
    ev.has_hash = hash_of(event, "hash", ev.hash);
    ev.has_block = hash_of(event, "block_hash", ev.block_hash);
    (void)listen_since_parse(text_of(event, "updated_at"), &ev.updated_at_us);
    listen_format_human(&ev, out);
    return true;
}

static void state(struct tail_http *t, bool live, const struct err *err)
{
    uint64_t now = loop_now_ms(t->loop);
    if (t->live || live)
        t->stale_ms = now;
    t->live = live;
    cli_follow_state("tail", live, now - t->stale_ms, err);
}

/* false: the reader of standard output has gone. */
static bool print(struct tail_http *t, const char *data, size_t len)
{
    struct buf line = {0};
    json_t *event = json_loadb(data, len, 0, NULL);
    const char *name = text_of(event, "event");
    if (!strcmp(name, "live"))
        state(t, true, NULL);
    if (!strcmp(name, "stale")) {
        struct err err;
        err_set(&err, ERR_DB_UNAVAILABLE, "the relay: %s", text_of(event, "text"));
        state(t, false, &err);
    }
    if (t->config.json)
        buf_put(&line, data, len);
    if (t->config.json || put_human(event, &line)) {
        buf_put_u8(&line, '\n');
        fwrite(line.data, 1, line.len, stdout);
    }
    json_decref(event);
    buf_done(&line);
    return fflush(stdout) == 0;
}

/* ---- the stream ---- */

/* One line of the stream. */
static bool take_line(struct tail_http *t, const char *line, size_t len)
{
    if (len > 6 && !strncmp(line, "data: ", 6))
        return print(t, line + 6, len - 6);
    if (len > 4 && len - 4 < sizeof(t->last) && !strncmp(line, "id: ", 4)) {
        memcpy(t->last, line + 4, len - 4);
        t->last[len - 4] = 0;
    }
    return true;
}

static bool on_part(void *arg, int status, const void *data, size_t len)
{
    struct tail_http *t = arg;
    size_t at = 0;
    buf_put(&t->text, data, len);
    if (status >= BAD)
        return t->text.len < BLOCK_MAX; /* a problem: its end is waited for */
    for (;;) {
        const uint8_t *end = memchr(t->text.data + at, '\n', t->text.len - at);
        if (!end)
            break;
        size_t n = (size_t)(end - (t->text.data + at));
        if (!take_line(t, (const char *)t->text.data + at, n)) {
            buf_clear(&t->text);
            t->exit_code = EXIT_FAILED; /* on_done stops */
            return false;
        }
        at += n + 1;
    }
    struct buf rest = {0};
    buf_put(&rest, t->text.data + at, t->text.len - at);
    buf_done(&t->text);
    t->text = rest;
    return t->text.len < BLOCK_MAX;
}

/* A refusal that no later attempt changes. */
static bool refused(struct tail_http *t, int status)
{
    enum { TOO_MANY = 429, SERVER = 500 };
    struct err err;
    if (status < BAD || status == TOO_MANY || status >= SERVER)
        return false;
    json_t *problem = json_loadb((const char *)t->text.data, t->text.len, 0, NULL);
    const char *detail = text_of(problem, "detail");
    err_set(&err, ERR_ARGUMENT, "the relay answers %d: %s", status, *detail ? detail : "no reason");
    json_decref(problem);
    stop(t, cli_fail(&err));
    return true;
}

static void on_done(void *arg, int status, const struct err *err)
{
    struct tail_http *t = arg;
    struct err why = *err;
    t->call = NULL;
    if (refused(t, status))
        return;
    if (t->exit_code) {
        stop(t, EXIT_OK);
        return;
    }
    if (!why.code && status >= BAD)
        err_set(&why, ERR_NET, "the relay answers %d", status);
    else if (!why.code)
        err_set(&why, ERR_NET, "the stream ended");
    state(t, false, &why);
    loop_timer_at(t->pause, loop_now_ms(t->loop) + PAUSE_MS);
}

static void on_pause(void *arg)
{
    ask(arg);
}

static void ask(struct tail_http *t)
{
    struct err err = {0};
    struct buf headers = {0}, url = {0};
    bool is_unix = !strncmp(t->config.address, "unix:", 5);
    buf_printf(&headers, "Authorization: Bearer %s\r\nAccept: text/event-stream\r\n", t->token);
    if (*t->last)
        buf_printf(&headers, "Last-Event-ID: %s\r\n", t->last);
    buf_printf(&url, "%s%s", is_unix ? "http://localhost" : t->config.address, buf_str(&t->target));
    struct http_call_config call = {.url = buf_str(&url),
                                    .address = is_unix ? t->config.address : NULL,
                                    .tls = t->tls,
                                    .headers = buf_str(&headers),
                                    .timeout_ms = SILENCE_MS,
                                    .on_part = on_part,
                                    .on_done = on_done,
                                    .arg = t};
    buf_clear(&t->text);
    t->call = http_call_start(t->loop, &call, &err);
    explicit_bzero(headers.data, headers.len);
    buf_done(&headers);
    buf_done(&url);
    if (!t->call)
        stop(t, cli_fail(&err));
}

/* ---- the beginning ---- */

static int read_token(struct tail_http *t, struct err *err)
{
    const char *path = t->config.token_file;
    struct stat st;
    FILE *f = fopen(path, "re");
    if (!f || fstat(fileno(f), &st)) {
        err_set(err, ERR_CONFIG, "--token-file %s: %m", path);
    } else if (st.st_mode & 077) {
        err_set(err, ERR_CONFIG, "--token-file %s can be read by others: chmod 600 %s", path, path);
    } else {
        char *line = fgets(t->token, sizeof(t->token), f);
        t->token[line ? strcspn(t->token, "\r\n") : 0] = 0;
        if (!*t->token || strlen(t->token) > TOKEN_MAX)
            err_set(err, ERR_CONFIG, "--token-file %s: its first line is no token", path);
    }
    if (f)
        fclose(f);
    return err->code;
}

static void put_query(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "%c%s=", memchr(out->data, '?', out->len) ? '&' : '?', name);
    for (; *value; value++)
        buf_printf(out, "%%%02x", (unsigned)(unsigned char)*value);
}

static void put_target(struct tail_http *t)
{
    char id[24];
    buf_puts(&t->target, "/v1/events");
    if (t->config.account)
        put_query(&t->target, "account", t->config.account);
    if (t->config.id) {
        snprintf(id, sizeof(id), "%" PRId64, t->config.id);
        put_query(&t->target, "id", id);
    }
    if (t->config.since)
        put_query(&t->target, "since", t->config.since);
}

static int make_tls(struct tail_http *t, struct err *err)
{
    const struct tls_config tls = {.http1 = true,
                                   .ca_file = t->config.ca_file,
                                   .cert_file = t->config.cert_file,
                                   .key_file = t->config.key_file};
    if (!strncmp(t->config.address, "https://", 8))
        t->tls = tls_context_new(&tls, err);
    return err->code;
}

static void on_signal(void *arg, int signum)
{
    (void)signum;
    stop(arg, EXIT_OK);
}

int tail_http(const struct tail_http_config *config)
{
    struct tail_http t = {.config = *config};
    struct err err = {0};
    if (read_token(&t, &err) || make_tls(&t, &err)) {
        explicit_bzero(t.token, sizeof(t.token));
        return cli_fail(&err);
    }
    put_target(&t);
    t.loop = loop_new();
    t.stale_ms = loop_now_ms(t.loop);
    t.pause = loop_timer_new(t.loop, on_pause, &t);
    t.term = loop_signal_new(t.loop, SIGTERM, on_signal, &t);
    t.interrupt = loop_signal_new(t.loop, SIGINT, on_signal, &t);
    ask(&t);
    loop_run(t.loop);
    loop_free(t.loop);
    tls_context_free(t.tls);
    buf_done(&t.text);
    buf_done(&t.target);
    explicit_bzero(t.token, sizeof(t.token));
    return t.exit_code;
}
