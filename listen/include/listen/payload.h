/* What a NOTIFY carries, parsed strictly. Anybody who may connect may NOTIFY: a payload that does not fit is
 * refused whole, and nothing in one is more than a hint until a scan confirms it. Names that are not known
 * are ignored, so that a newer schema may say more. */
#ifndef LISTEN_PAYLOAD_H
#define LISTEN_PAYLOAD_H

#include "listen/listen.h"

enum { LISTEN_PAYLOAD_MAX = 8000 }; /* NOTIFY takes less than that */

struct listen_payload {
    struct listen_event event; /* account is 0 unless the payload names its number; texts lie in `root` */
    struct listen_leader leader;
    void *root; /* json_t */
};

/* false: it does not fit; nothing to free. */
bool listen_payload_row(const char *text, size_t len, enum listen_kind kind, struct listen_payload *ret);
bool listen_payload_leader(const char *text, size_t len, struct listen_payload *ret);
bool listen_payload_wake(const char *text, size_t len, int32_t *ret_account);
void listen_payload_done(struct listen_payload *p);

#endif
