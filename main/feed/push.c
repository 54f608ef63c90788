#include "push.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "batch.h"
#include "chain/keys/keys.h"
#include "cli.h"
#include "feed/client/client.h"

enum {
    LINE_MAX = 64 << 20,
    KEPT_MAX = 64, /* batches; the source is not read beyond it */
    TARGETS_MAX = 16,
    TOKEN_MAX = 1000,
};

struct push {
    const struct feed_push_options *options;
    struct loop *loop;
    struct feed_client *client;
    struct loop_signal *term, *interrupt;
    int64_t next; /* the number of the next batch */
    int64_t acked;
    bool terminal;
    bool dirty; /* the terminal's line is not ended */
    int exit_code;
    /* the source: lines, or files */
    struct loop_stream *lines;
    unsigned long line;
    bool paused;
    int64_t *numbers; /* of the files, ascending; NULL: lines */
    size_t count, at;
    struct loop_task more;
    bool read; /* the source is at its end */
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
    loop_stop(p->loop);
}

static void bad_source(struct push *p, const char *name, const struct err *err)
{
    struct err text;
    end_line(p);
    err_set(&text, ERR_ARGUMENT, "%s: %s", name, err->text);
    stop(p, cli_fail(&text));
}

/* ---- the source ---- */

static bool put(struct push *p, const char *name, const char *text, size_t len, int64_t number)
{
    struct feed_batch b;
    struct err err = {0};
    if (feed_batch_read(text, len, &b, &err)) {
        bad_source(p, name, &err);
        return false;
    }
    if (b.number < 0)
        b.number = number >= 0 ? number : p->next;
    if (p->next < 0 || (number < 0 && p->line == 1))
        p->next = b.number;
    if (b.number != p->next)
        err_set(&err, ERR_ARGUMENT, "its number is %lld; after the one before it must be %lld",
                (long long)b.number, (long long)p->next);
    else if (!feed_client_put(p->client, b.number, b.calls, b.count, &err))
        p->next++;
    feed_batch_done(&b);
    if (err.code)
        bad_source(p, name, &err);
    return !err.code;
}

static void source_ended(struct push *p)
{
    p->read = true;
    feed_client_end(p->client);
}

static void on_line(void *arg, const char *text, size_t len)
{
    struct push *p = arg;
    char name[48];
    if (p->read || p->exit_code != EXIT_OK)
        return;
    if (!text && !len) {
        source_ended(p);
        return;
    }
    p->line++;
    snprintf(name, sizeof(name), "line %lu", p->line);
    if (!text) {
        struct err err;
        err_set(&err, ERR_ARGUMENT, "it is longer than %d MiB", LINE_MAX >> 20);
        bad_source(p, name, &err);
        return;
    }
    if (!put(p, name, text, len, -1))
        return;
    if (feed_client_kept(p->client) >= KEPT_MAX && !p->paused) {
        p->paused = true;
        loop_stream_read(p->lines, false);
    }
}

static int read_file(const char *path, struct buf *out, struct err *err)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return err_set(err, ERR_ARGUMENT, "%s", strerror(errno));
    int rc = cli_read(f, path, out, err);
    fclose(f);
    return rc;
}

static void more_files(struct loop_task *task)
{
    struct push *p = CONTAINER_OF(task, struct push, more);
    while (p->at < p->count && feed_client_kept(p->client) < KEPT_MAX) {
        struct buf text = {0};
        struct err err = {0};
        int64_t number = p->numbers[p->at++];
        char *path = xasprintf("%s/%lld.json", p->options->source, (long long)number);
        bool good = !read_file(path, &text, &err);
        if (good)
            good = put(p, path, buf_str(&text), text.len, number);
        else
            bad_source(p, path, &err);
        buf_done(&text);
        free(path);
        if (!good)
            return;
    }
    if (p->at == p->count && !p->read)
        source_ended(p);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The files N.json of a directory. */
static int list_files(struct push *p, DIR *dir, struct err *err)
{
    size_t cap = 0;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        size_t digits = strspn(e->d_name, "0123456789");
        if (!digits || digits > 18 || strcmp(e->d_name + digits, ".json") != 0)
            continue;
        if (p->count == cap) {
            cap = cap ? 2 * cap : 64;
            p->numbers = xrealloc(p->numbers, cap * sizeof(*p->numbers));
        }
        p->numbers[p->count++] = strtoll(e->d_name, NULL, 10);
    }
    closedir(dir);
    if (!p->count)
        return err_set(err, ERR_ARGUMENT, "%s has no file N.json, with N the number of a batch",
                       p->options->source);
    qsort(p->numbers, p->count, sizeof(*p->numbers), by_number);
    p->next = p->numbers[0];
    return 0;
}

static int open_source(struct push *p, struct err *err)
{
    const char *source = p->options->source;
    DIR *dir = strcmp(source, "-") != 0 ? opendir(source) : NULL;
    if (dir) {
        if (list_files(p, dir, err))
            return err->code;
        loop_post(p->loop, &p->more, more_files);
        return 0;
    }
    int fd = strcmp(source, "-") != 0 ? open(source, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (fd < 0)
        return err_set(err, ERR_ARGUMENT, "%s: %s", source, strerror(errno));
    p->next = p->options->from;
    p->lines = loop_stream_new(p->loop, fd, LINE_MAX, on_line, p);
    return 0;
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
    if (p->lines && p->paused && feed_client_kept(p->client) < KEPT_MAX / 2) {
        p->paused = false;
        loop_stream_read(p->lines, true);
    }
    if (p->numbers && !p->read && !list_linked(&p->more.node))
        loop_post(p->loop, &p->more, more_files);
}

/* The database lost commits: the files are still there. */
static bool on_missing(void *arg, int64_t number)
{
    struct push *p = arg;
    const int64_t *at =
        p->numbers ? bsearch(&number, p->numbers, p->count, sizeof(*p->numbers), by_number) : NULL;
    if (!at)
        return false;
    feed_client_rewind(p->client, number);
    p->at = (size_t)(at - p->numbers);
    p->next = number;
    p->read = false;
    end_line(p);
    fprintf(stderr, "txrelay: the relay needs batch %lld again: going back to it\n",
            (long long)number);
    if (!list_linked(&p->more.node))
        loop_post(p->loop, &p->more, more_files);
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
    if (!read_file(path, &text, err)) {
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
    if (p->client && !open_source(p, &err)) {
        p->term = loop_signal_new(p->loop, SIGTERM, on_signal, p);
        p->interrupt = loop_signal_new(p->loop, SIGINT, on_signal, p);
        loop_run(p->loop);
        end_line(p);
    }
    p->term = loop_signal_close(p->term);
    p->interrupt = loop_signal_close(p->interrupt);
    p->lines = loop_stream_close(p->lines);
    loop_task_cancel(&p->more);
    p->client = feed_client_close(p->client);
    loop_free(p->loop);
    free(p->numbers);
    free(list);
    return err.code ? cli_fail(&err) : p->exit_code;
}

int feed_push(const struct feed_push_options *o)
{
    struct push p = {.options = o, .next = -1, .acked = -1, .terminal = isatty(STDERR_FILENO) == 1};
    struct keypair *key = NULL;
    struct tls_context *tls = NULL;
    char *token = NULL;
    struct err err = {0};
    int rc = 0;
    cli_harden();
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
