/* The payload of a NOTIFY, parsed strictly. Any login may NOTIFY, so a malformed payload is refused
 * as a whole, and a valid one is only a hint until a scan confirms it. Unknown names are ignored,
 * so that a newer schema may add some. */
#ifndef LISTEN_PAYLOAD_H
#define LISTEN_PAYLOAD_H

#include "listen/listen.h"

enum { LISTEN_PAYLOAD_MAX = 8000 }; /* NOTIFY accepts less than that */

struct listen_payload {
    /* account is 0 unless the payload contains its number; texts are in `root` */
    struct listen_event event;
    struct listen_leader leader;
    void *root; /* json_t */
};

/* false: malformed; nothing to free. */
bool listen_payload_row(const char *text, size_t len, enum listen_kind kind,
                        struct listen_payload *ret);
bool listen_payload_leader(const char *text, size_t len, struct listen_payload *ret);
bool listen_payload_wake(const char *text, size_t len, int32_t *ret_account);
void listen_payload_done(struct listen_payload *p);

#endif
