/* One line to a relay's control endpoint, and its answer. */
#include <string.h>

#include "cli.h"
#include "loop/peer.h"

enum { CONTROL_TIMEOUT_MS = 10000 };

struct control {
    const char *address, *line;
    void (*answer)(void *arg, const char *line);
    void *arg;
    struct loop_timer *timer;
    struct loop_peer *peer;
    struct err *err;
};

static void control_open(void *arg, struct loop_peer *peer)
{
    struct control *c = arg;
    loop_peer_write(peer, c->line, strlen(c->line));
    loop_peer_write(peer, "\n", 1);
}

static void control_line(void *arg, struct loop_peer *peer, const char *line, size_t len)
{
    struct control *c = arg;
    (void)len;
    c->answer(c->arg, line);
    err_clear(c->err);
    c->timer = loop_timer_close(c->timer);
    loop_peer_close(peer);
}

static void control_end(void *arg, struct loop_peer *peer, const struct err *err)
{
    struct control *c = arg;
    (void)peer;
    err_set(c->err, ERR_NET,
            "no relay answers at %.80s: %.100s: give the control endpoint of one "
            "that runs (its key `control`)",
            c->address, err->code ? err->text : "it closed the connection without an answer");
    c->timer = loop_timer_close(c->timer);
}

static void control_late(void *arg)
{
    struct control *c = arg;
    err_set(
        c->err, ERR_TIMEOUT,
        "the relay at %.80s did not answer within %d s: is this the control endpoint of a relay "
        "(its key `control`), and does its process run?",
        c->address, CONTROL_TIMEOUT_MS / 1000);
    c->timer = loop_timer_close(c->timer);
    loop_peer_close(c->peer);
}

int cli_control(const char *address, const char *line, void (*answer)(void *arg, const char *line),
                void *arg, struct err *err)
{
    struct loop *l = loop_new();
    struct control c = {.address = address, .line = line, .answer = answer, .arg = arg, .err = err};
    struct loop_peer_events events = {control_open, control_line, control_end, &c};
    c.timer = loop_timer_new(l, control_late, &c);
    loop_timer_at(c.timer, loop_now_ms(l) + CONTROL_TIMEOUT_MS);
    c.peer = loop_peer_connect(l, address, &events, err);
    if (!c.peer)
        c.timer = loop_timer_close(c.timer);
    loop_run(l);
    loop_free(l);
    return err->code;
}
