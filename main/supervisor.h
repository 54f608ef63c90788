/* What a relay tells systemd (sd_notify): one datagram to the socket that NOTIFY_SOCKET names.
 * Without that variable every call does nothing. The watchdog's datagrams come from the relay's
 * loop, so a loop that hangs is restarted. */
#ifndef MAIN_SUPERVISOR_H
#define MAIN_SUPERVISOR_H

#include <stdint.h>

struct loop;
struct supervisor;

/* Takes its variables out of the environment, so that no child inherits them. */
struct supervisor *supervisor_new(struct loop *l);
struct supervisor *supervisor_free(struct supervisor *s); /* NULL allowed; returns NULL */

void supervisor_ready(struct supervisor *s); /* at the start, and after a reload */
void supervisor_reloading(struct supervisor *s);
void supervisor_stopping(struct supervisor *s);
/* The line of `systemctl status`. Sent only if it differs from the last one. */
void supervisor_status(struct supervisor *s, const char *text);

#endif
