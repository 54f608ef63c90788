/* Whose notifications are believed. Any login may NOTIFY. The server stamps each notification
 * with the number of the sender's backend, which no session can forge, and shows whose session
 * that is: only sessions of txrelay_relay write what readers are notified of. An answer counts
 * until the next one, which comes with every probe, because a backend's number is used again
 * after its session. */
#include <stdlib.h>

#include "base/alloc.h"
#include "listen_internal.h"

enum { COLUMNS = 2 };

void listen__sources_drop(struct listen *s)
{
    free(s->source_pids);
    s->source_pids = NULL;
    s->source_count = 0;
    s->sources_at = 0;
}

bool listen__sources_take(struct listen *s, const struct conn_result *r)
{
    int rows = conn_result_rows(r);
    listen__sources_drop(s);
    if (conn_result_columns(r) != COLUMNS)
        return false;
    s->source_pids = xcalloc((size_t)rows + 1, sizeof(*s->source_pids));
    s->sources_at = loop_now_ms(s->loop);
    for (int i = 0; i < rows; i++) {
        int64_t pid;
        if (!listen__number_at(r, i, 0, &pid) || !listen__number_at(r, i, 1, &s->clock_us))
            return false;
        s->source_pids[s->source_count++] = (int)pid;
    }
    return true;
}

bool listen__believes(const struct listen *s, int pid)
{
    for (size_t i = 0; i < s->source_count; i++)
        if (s->source_pids[i] == pid)
            return true;
    return false;
}

int64_t listen__clock_us(const struct listen *s)
{
    return s->clock_us + (int64_t)(loop_now_ms(s->loop) - s->sources_at) * 1000;
}
