#include "source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "batch.h"
#include "cli.h"

enum {
    LINE_MAX = 64 << 20,
    KEPT_MAX = 64, /* batches; the source is not read beyond it */
};

static bool is_full(const struct source *s)
{
    return feed_client_kept(s->client) >= KEPT_MAX;
}

static void bad(struct source *s, const char *place, const struct err *err)
{
    s->ended = true;
    s->on_bad(s->arg, place, err);
}

static void end(struct source *s)
{
    s->ended = true;
    feed_client_end(s->client);
}

static bool put(struct source *s, const char *place, const char *text, size_t len, int64_t number)
{
    struct feed_batch b;
    struct err err = {0};
    if (feed_batch_read(text, len, &b, &err)) {
        bad(s, place, &err);
        return false;
    }
    if (b.number < 0)
        b.number = number >= 0 ? number : s->next;
    if (s->next < 0 || (number < 0 && s->line == 1))
        s->next = b.number;
    if (b.number != s->next)
        err_set(&err, ERR_ARGUMENT, "its number is %lld; after the one before it must be %lld",
                (long long)b.number, (long long)s->next);
    else if (!feed_client_put(s->client, b.number, b.calls, b.count, &err))
        s->next++;
    feed_batch_done(&b);
    if (err.code)
        bad(s, place, &err);
    return !err.code;
}

/* ---- lines ---- */

static void end_of_lines(struct source *s)
{
    const char *failure = loop_stream_failure(s->lines);
    struct err err;
    if (!failure) {
        end(s);
        return;
    }
    err_set(&err, ERR_IO, "cannot be read: %s", failure);
    bad(s, s->path, &err);
}

static void on_line(void *arg, const char *text, size_t len)
{
    struct source *s = arg;
    char place[48];
    if (s->ended)
        return;
    if (!text && !len) {
        end_of_lines(s);
        return;
    }
    s->line++;
    snprintf(place, sizeof(place), "line %lu", s->line);
    if (!text) {
        struct err err;
        err_set(&err, ERR_ARGUMENT, "it is longer than %d MiB", LINE_MAX >> 20);
        bad(s, place, &err);
    } else if (put(s, place, text, len, -1) && is_full(s) && !s->paused) {
        s->paused = true;
        loop_stream_read(s->lines, false);
    }
}

/* ---- files ---- */

int source_read_file(const char *path, struct buf *out, struct err *err)
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
    struct source *s = CONTAINER_OF(task, struct source, more);
    while (s->at < s->count && !is_full(s)) {
        struct buf text = {0};
        struct err err = {0};
        int64_t number = s->numbers[s->at++];
        char *path = xasprintf("%s/%lld.json", s->path, (long long)number);
        bool good = !source_read_file(path, &text, &err);
        if (good)
            good = put(s, path, buf_str(&text), text.len, number);
        else
            bad(s, path, &err);
        buf_done(&text);
        free(path);
        if (!good)
            return;
    }
    if (s->at == s->count && !s->ended)
        end(s);
}

static void read_files(struct source *s)
{
    if (!list_linked(&s->more.node))
        loop_post(s->loop, &s->more, more_files);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The files N.json of a directory. */
static int list_files(struct source *s, DIR *dir, struct err *err)
{
    size_t cap = 0;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        size_t digits = strspn(e->d_name, "0123456789");
        if (!digits || digits > 18 || strcmp(e->d_name + digits, ".json") != 0)
            continue;
        GROW(s->numbers, s->count, cap);
        s->numbers[s->count++] = strtoll(e->d_name, NULL, 10);
    }
    closedir(dir);
    if (!s->count)
        return err_set(err, ERR_ARGUMENT, "%s has no file N.json, with N the number of a batch",
                       s->path);
    qsort(s->numbers, s->count, sizeof(*s->numbers), by_number);
    s->next = s->numbers[0];
    return 0;
}

/* ---- either ---- */

void source_stop(struct source *s)
{
    s->ended = true;
}

int source_open(struct source *s, struct err *err)
{
    bool is_stdin = strcmp(s->path, "-") == 0;
    DIR *dir = is_stdin ? NULL : opendir(s->path);
    if (dir) {
        if (list_files(s, dir, err))
            return err->code;
        read_files(s);
        return 0;
    }
    int fd = is_stdin ? STDIN_FILENO : open(s->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, ERR_ARGUMENT, "%s: %s", s->path, strerror(errno));
    s->lines = loop_stream_new(s->loop, fd, LINE_MAX, on_line, s);
    return 0;
}

void source_close(struct source *s)
{
    s->lines = loop_stream_close(s->lines);
    loop_task_cancel(&s->more);
    free(s->numbers);
    s->numbers = NULL;
}

void source_acked(struct source *s)
{
    if (s->lines && s->paused && feed_client_kept(s->client) < KEPT_MAX / 2) {
        s->paused = false;
        loop_stream_read(s->lines, true);
    }
    if (s->numbers && !s->ended)
        read_files(s);
}

bool source_try_back(struct source *s, int64_t number)
{
    const int64_t *at =
        s->numbers ? bsearch(&number, s->numbers, s->count, sizeof(*s->numbers), by_number) : NULL;
    if (!at)
        return false;
    feed_client_rewind(s->client, number);
    s->at = (size_t)(at - s->numbers);
    s->next = number;
    s->ended = false;
    read_files(s);
    return true;
}
