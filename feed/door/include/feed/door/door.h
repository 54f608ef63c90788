/* Where publishers come in: the service txrelay.feed.v1.Feed on HTTP/2, each stream a session of
 * the room (feed/feed.h). */
#ifndef FEED_DOOR_DOOR_H
#define FEED_DOOR_DOOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"

struct buf;
struct feed_room;
struct feed_door;

struct feed_door_config {
    const char *listen; /* unix:/path or tcp:HOST:PORT */
    /* TLS; NULL: cleartext, which loopback and a unix socket alone allow. */
    const char *cert_file, *key_file;
    const char *ca_file;    /* publishers must show a certificate that one of these signed */
    const char *token_file; /* publishers must give the token in its first line */
};

/* Can these values ever be right, whatever files and ports there are? */
int feed_door_values(const struct feed_door_config *config, struct err *err);
/* NULL: err (ERR_CONFIG or ERR_IO) says what is wrong. An address that other machines reach needs a
 * ca_file or a token_file. */
struct feed_door *feed_door_open(struct loop *l, struct feed_room *room,
                                 const struct feed_door_config *config, struct err *err);
/* Would it open? It reads the files and listens to nothing; what it refuses, feed_door_open refuses
 * in the same words. `out` gets who may come in, for people; `caution` what is to be mended soon.
 */
int feed_door_check(const struct feed_door_config *config, struct buf *out,
                    void (*caution)(void *arg, const char *text), void *arg, struct err *err);
const char *feed_door_address(const struct feed_door *d); /* with the real port */
size_t feed_door_sessions(const struct feed_door *d);
/* The certificate in force, for people; nothing without TLS. */
void feed_door_certificate(const struct feed_door *d, struct buf *out);
/* Reads certificates and the token again; what was in force stays if it fails. */
int feed_door_reload(struct feed_door *d, struct err *err);
/* Publishers connect elsewhere from now on. Open streams go on for grace_ms. */
void feed_door_drain(struct feed_door *d, uint64_t grace_ms);
/* At once: every session is gone. */
struct feed_door *feed_door_close(struct feed_door *d);

#endif
