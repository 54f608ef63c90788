#include "feed_harness.h"

#include <string.h>

struct feed_core *core;
uint64_t now_ms, all_moved;
static struct buf line;

void core_done(void)
{
    if (core)
        all_moved |= feed_core_moved(core);
    core = feed_core_free(core);
    buf_done(&line);
}

void core_new(const struct feed_config *config)
{
    core_done();
    now_ms = 1000;
    core = feed_core_new(config ? config : &(struct feed_config){0});
}

void core_at(const struct feed_config *config, int64_t last)
{
    core_new(config);
    assert_string_equal(serve(), "load 1");
    assert_string_equal(loaded(1, last), "");
    assert_int_equal(feed_core_last(core), last);
}

static const char *const messages[] = {"ack", "skip", "resend", "behind", "end"};
static const char *const outcomes[] = {"acknowledged", "timed out", "not valid", "not stored"};

static void put(const struct feed_effect *fx)
{
    if (line.len)
        buf_puts(&line, ", ");
    unsigned long long session = fx->session, copy = fx->copy;
    long long number = fx->number;
    switch (fx->type) {
    case FEED_FX_LOAD:
        buf_printf(&line, "load %llu", copy);
        return;
    case FEED_FX_SEND:
        if (fx->send.message == FEED_MSG_END)
            buf_printf(&line, "%llu:end %s %lld", session, feed_end_name(fx->send.end), number);
        else
            buf_printf(&line, "%llu:%s %lld", session, messages[fx->send.message], number);
        return;
    case FEED_FX_HOLD:
        buf_printf(&line, "%llu:hold", session);
        return;
    case FEED_FX_RELEASE:
        buf_printf(&line, "%llu:release", session);
        return;
    case FEED_FX_BEGIN:
        buf_printf(&line, "%llu:begin %lld c%llu", session, number, copy);
        return;
    case FEED_FX_KEEP:
        buf_printf(&line, "keep c%llu", copy);
        return;
    case FEED_FX_VERIFY:
        buf_printf(&line, "verify c%llu", copy);
        return;
    case FEED_FX_STORE:
        buf_printf(&line, "store %lld c%llu", number, copy);
        return;
    case FEED_FX_DROP:
        buf_printf(&line, "drop c%llu", copy);
        return;
    case FEED_FX_SETTLED:
        buf_printf(&line, "%s", outcomes[fx->settled.outcome]);
        return;
    }
    fail();
}

const char *step(const struct feed_event *ev)
{
    const struct feed_effect *effects;
    size_t count;
    feed_step(core, now_ms, ev, &effects, &count);
    buf_clear(&line);
    for (size_t i = 0; i < count; i++)
        put(&effects[i]);
    assert_null(feed_core_check(core));
    return buf_str(&line);
}

const char *serve(void)
{
    return step(&(struct feed_event){.type = FEED_EV_SERVE});
}

const char *leave(enum feed_end end, bool graceful)
{
    return step(
        &(struct feed_event){.type = FEED_EV_LEAVE, .leave = {.end = end, .graceful = graceful}});
}

const char *loaded(uint64_t load, int64_t last)
{
    return step(&(struct feed_event){
        .type = FEED_EV_LOADED,
        .loaded = {.load = load, .failed = last == -2, .last = last == -2 ? 0 : last}});
}

static const char *of_session(enum feed_event_type type, uint64_t session)
{
    return step(&(struct feed_event){.type = type, .session = session});
}

const char *open_session(uint64_t session)
{
    return of_session(FEED_EV_OPEN, session);
}

const char *header_by(uint64_t session, int64_t number, int publisher)
{
    return step(&(struct feed_event){.type = FEED_EV_HEADER,
                                     .session = session,
                                     .header = {.number = number, .publisher = publisher}});
}

const char *header(uint64_t session, int64_t number)
{
    return header_by(session, number, (int)session - 1);
}

const char *items(uint64_t session, uint32_t count, uint64_t bytes)
{
    return step(&(struct feed_event){
        .type = FEED_EV_ITEMS, .session = session, .items = {.count = count, .bytes = bytes}});
}

const char *trailer(uint64_t session)
{
    return of_session(FEED_EV_TRAILER, session);
}

const char *client_closes(uint64_t session)
{
    return of_session(FEED_EV_CLOSE, session);
}

const char *not_understood(uint64_t session)
{
    return of_session(FEED_EV_REFUSE, session);
}

const char *gone(uint64_t session)
{
    return of_session(FEED_EV_GONE, session);
}

const char *verified(uint64_t copy, bool valid)
{
    return step(
        &(struct feed_event){.type = FEED_EV_VERIFIED, .verified = {.copy = copy, .valid = valid}});
}

const char *stored(uint64_t copy, enum feed_stored outcome, int64_t last)
{
    return step(&(struct feed_event){.type = FEED_EV_STORED,
                                     .stored = {.copy = copy, .outcome = outcome, .last = last}});
}

const char *tick(void)
{
    return step(&(struct feed_event){.type = FEED_EV_TICK});
}

const char *wait_ms(uint64_t ms)
{
    now_ms += ms;
    return tick();
}

void open_sessions(unsigned n)
{
    for (unsigned s = 1; s <= n; s++)
        assert_string_equal(open_session(s), "");
}

void send_batch(uint64_t session, int64_t number)
{
    assert_non_null(strstr(header(session, number), ":begin "));
    assert_non_null(strstr(items(session, 1, 10), "keep "));
    assert_non_null(strstr(trailer(session), "verify "));
}
