/* The links of one relay to the relays of other sites: gRPC streams with mutual TLS, which carry
 * the messages of all accounts. A site's name comes from its certificate alone: a DNS name of the
 * subject's alternative names.
 *
 *   DOWN -> DIALLING -> UP -> ENDING      a stream that this relay opens when it has a message to
 *    ^         |         |      |         send, and closes when it was idle for idle_ms
 *    +---------+---------+------+
 *
 * A message goes to the relay of that site that last sent one for the account, on any stream to it.
 * If there is none, it goes to any relay of the site, which names the leader if it does not lead. A
 * message that cannot be sent is dropped: the core repeats those that must arrive. Two relays need
 * one stream: if both opened one at the same time, the site with the greater name closes its own.
 *
 * Callbacks fire from the loop, never inside the call that started them. They may call every
 * function below but site_links_close. */
#ifndef SITE_LINK_LINK_H
#define SITE_LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"
#include "site/wire/wire.h"

struct buf;
struct site_links;

/* Another site. */
struct site_links_peer {
    const char *name;           /* in its certificate */
    const char *const *targets; /* HOST:PORT of its relays */
    size_t target_count;
};

enum site_links_note {
    SITE_LINKS_UP,       /* a stream to a relay of the site is open; text: its address */
    SITE_LINKS_LOST,     /* a stream ended, or could not be opened; text: why */
    SITE_LINKS_REFUSED,  /* a relay of the site does not take an account's messages; text: why */
    SITE_LINKS_STRANGER, /* a peer's certificate names no configured site; text: its names */
    SITE_LINKS_BAD,      /* a peer broke the protocol; text: how. Its stream ends */
};

struct site_links_config {
    const char *self;    /* this site's name */
    const char *listen;  /* tcp:HOST:PORT */
    const char *address; /* HOST:PORT where other sites reach this relay; NULL: where it listens */
    const char *cert_file, *key_file, *ca_file; /* all three are needed */
    const struct site_links_peer *peers;
    size_t peer_count;
    /* back-off of a site that cannot be reached; 0: 200 and 10,000 */
    uint32_t retry_ms, retry_max_ms;
    uint32_t idle_ms;      /* 0: 60,000 */
    uint32_t hello_ms;     /* for the peer's first frame; 0: 5,000 */
    uint32_t flight_bytes; /* queued for a stream, at most; 0: 8 MiB */
    /* A message of a site. false: it is not taken, and site_links_refuse says why. Borrowed. */
    bool (*on_message)(void *arg, size_t peer, const struct site_wire_message *m);
    void (*on_note)(void *arg, enum site_links_note note, size_t peer, const char *text);
    /* What is configured here for ret->account; false: it has no sites. NULL: nothing is. */
    bool (*on_question)(void *arg, struct site_wire_settings *ret);
    /* The answer to site_links_ask. Borrowed. NULL: none is expected. */
    void (*on_answer)(void *arg, size_t peer, const struct site_wire_settings *answer);
    void *arg;
};

struct site_links_view {
    const char *name;
    size_t streams; /* that are open */
    uint64_t sent, received, sent_bytes;
    uint64_t dropped; /* messages that could not leave */
    uint64_t refused; /* messages that the peer did not take */
};

/* NULL: err (ERR_CONFIG or ERR_IO) says what is wrong. The strings are copied. */
struct site_links *site_links_open(struct loop *l, const struct site_links_config *config,
                                   struct err *err);
const char *site_links_address(const struct site_links *s); /* HOST:PORT, as other sites see it */
/* Sends a message, in one frame or several. false: some of it was dropped. */
bool site_links_send(struct site_links *s, size_t peer, const struct site_wire_message *m);
/* Asks any relay of the site what is configured there for the account; on_answer follows, unless
 * the link is lost. false: it was dropped. */
bool site_links_ask(struct site_links *s, size_t peer,
                    const uint8_t account[SELECTOR_ACCOUNT_BYTES]);
/* Inside on_message alone: the answer to a message that is not taken. */
void site_links_refuse(struct site_links *s, enum site_wire_why why, const char *leader);
void site_links_view(const struct site_links *s, size_t peer, struct site_links_view *ret);
/* Reads the certificates again; new streams use them. If that fails, the old ones stay in use. */
int site_links_reload(struct site_links *s, struct err *err);
struct site_links *site_links_close(struct site_links *s); /* at once; no callback follows */

#endif
