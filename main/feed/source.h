/* Where the batches of `txrelay feed push` come from: JSON lines, or the files N.json of a
 * directory. It is read as far as the client keeps batches. */
#ifndef MAIN_FEED_SOURCE_H
#define MAIN_FEED_SOURCE_H

#include "base/buf.h"
#include "feed/client/client.h"

struct source {
    /* set by the owner */
    struct loop *loop;
    struct feed_client *client;
    const char *path; /* "-": standard input */
    int64_t next;     /* the number of the first batch; -1: as the first line says */
    /* A batch cannot be taken: its place and what is wrong. Nothing is read after that. */
    void (*on_bad)(void *arg, const char *place, const struct err *err);
    void *arg;
    /* private */
    struct loop_stream *lines;
    unsigned long line;
    bool paused, ended; /* it is at its end, or had a bad batch */
    int64_t *numbers;   /* of the files, ascending; NULL: lines */
    size_t count, at;
    struct loop_task more;
};

int source_open(struct source *s, struct err *err); /* source_close in any case */
void source_stop(struct source *s);                 /* nothing more is read */
void source_close(struct source *s);
/* Batches were acknowledged: reads more if there is room. */
void source_acked(struct source *s);
/* The relay needs this batch, which was acknowledged, again. false: it is not there. */
bool source_try_back(struct source *s, int64_t number);

int source_read_file(const char *path, struct buf *out, struct err *err);

#endif
