/* Where does the publisher connect, when does it try again, and when is it over? It has one
 * connection at a time: to the leader that a relay named, else to the next target of its list. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "chain/keys/keys.h"
#include "client_internal.h"
#include "net/grpc.h"

void feed__client_note(struct feed_client *c, enum feed_client_note n, int64_t number,
                       const char *text)
{
    if (c->config.on_note)
        c->config.on_note(c->config.arg, n, number, text);
}

/* ---- connections ---- */

static void drop_link(struct feed_client *c)
{
    c->call = NULL; /* it goes without a callback */
    c->up = false;
    c->link = grpc_client_close(c->link);
}

void feed__client_fail(struct feed_client *c, const struct err *why)
{
    drop_link(c);
    c->phase = OVER;
    loop_timer_stop(c->timer);
    c->config.on_failed(c->config.arg, why);
}

void feed__client_finish(struct feed_client *c)
{
    drop_link(c);
    c->phase = OVER;
    loop_timer_stop(c->timer);
    c->config.on_done(c->config.arg);
}

void feed__client_again(struct feed_client *c, uint64_t delay_ms, bool elsewhere)
{
    if (elsewhere && c->link)
        drop_link(c);
    c->call = NULL;
    c->sending = NULL;
    c->phase = BACKOFF_WAIT;
    loop_timer_at(c->timer, loop_now_ms(c->loop) + delay_ms);
}

uint64_t feed__client_delay(struct feed_client *c)
{
    return backoff_next(&c->backoff, &c->rng);
}

void feed__client_wait_answer(struct feed_client *c, enum phase phase, uint64_t ms)
{
    c->phase = phase;
    loop_timer_at(c->timer, loop_now_ms(c->loop) + ms);
}

static void on_up(void *arg)
{
    struct feed_client *c = arg;
    c->up = true;
    feed__client_open_stream(c);
}

static void on_down(void *arg, const struct err *why)
{
    struct feed_client *c = arg;
    struct err text = *why;
    c->up = false;
    if (c->phase == OVER || c->phase == BACKOFF_WAIT)
        return; /* the next attempt dials anew */
    feed__client_again(c, feed__client_delay(c), true);
    feed__client_note(c, FEED_CLIENT_LOST, 0, text.text);
}

static const char *next_target(struct feed_client *c)
{
    if (c->leader)
        return c->leader;
    return c->targets[c->target++ % c->config.target_count];
}

static void dial(struct feed_client *c)
{
    const char *target = next_target(c);
    struct err err = {0};
    struct grpc_client_config config = {
        .target = target,
        .tls = c->config.tls,
        .server_name = c->config.server_name,
        .on_up = on_up,
        .on_down = on_down,
        .arg = c,
    };
    c->link = grpc_client_close(c->link);
    c->phase = CONNECT_WAIT;
    c->link = grpc_client_new(c->loop, &config, &err);
    if (c->link)
        grpc_client_open(c->link);
    else
        feed__client_again(c, feed__client_delay(c), true); /* an address that a relay gave */
    free(c->leader);
    c->leader = NULL;
}

static void on_timer(void *arg)
{
    struct feed_client *c = arg;
    switch (c->phase) {
    case BACKOFF_WAIT:
        if (c->up)
            feed__client_open_stream(c);
        else
            dial(c);
        return;
    case BEHIND_WAIT:
        c->phase = STREAM_IDLE;
        feed__client_wake(c);
        return;
    case ANSWER_WAIT:
    case SKIPPED_WAIT:
    case ENDING_WAIT:
    case TOO_FAR_WAIT:
        feed__client_again(c, feed__client_delay(c), true);
        feed__client_note(c, FEED_CLIENT_ENDED, 0, "no answer in time");
        return;
    case CONNECT_WAIT:
    case STREAM_IDLE:
    case SENDING:
    case ENDED_WAIT:
    case OVER:
        return;
    }
}

/* ---- its life ---- */

static int check(const struct feed_client_config *config, struct err *err)
{
    if (keypair_scheme(config->key) != KEY_ED25519)
        return err_set(err, ERR_CONFIG, "a publisher signs with an ed25519 key");
    if (strlen(config->feed) < 1 || strlen(config->feed) > FEED_WIRE_NAME_MAX)
        return err_set(err, ERR_CONFIG, "a feed's name has 1 to %d bytes", FEED_WIRE_NAME_MAX);
    return config->target_count ? 0 : err_set(err, ERR_CONFIG, "no relay is named");
}

static int check_targets(struct loop *l, const struct feed_client_config *config, struct err *err)
{
    for (size_t i = 0; i < config->target_count; i++) {
        struct grpc_client_config one = {.target = config->targets[i], .tls = config->tls};
        struct grpc_client *client = grpc_client_new(l, &one, err);
        if (!client)
            return ERR_CONFIG;
        grpc_client_close(client);
    }
    return 0;
}

static char *copy_of(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

struct feed_client *feed_client_new(struct loop *l, const struct feed_client_config *config,
                                    struct err *err)
{
    if (check(config, err) || check_targets(l, config, err))
        return NULL;
    struct feed_client *c = xcalloc(1, sizeof(*c));
    c->loop = l;
    c->config = *config;
    c->config.feed = xstrdup(config->feed);
    c->config.server_name = copy_of(config->server_name);
    c->config.token = copy_of(config->token);
    c->config.answer_ms = config->answer_ms ? config->answer_ms : 60000;
    c->config.skipped_ms = config->skipped_ms ? config->skipped_ms : 120000;
    c->config.refusals_max = config->refusals_max ? config->refusals_max : 3;
    c->targets = xcalloc(config->target_count, sizeof(*c->targets));
    for (size_t i = 0; i < config->target_count; i++)
        c->targets[i] = xstrdup(config->targets[i]);
    c->rng.state = loop_seed(l);
    c->backoff = (struct backoff){.base_ms = config->retry_ms ? config->retry_ms : 1000,
                                  .cap_ms = config->retry_max_ms ? config->retry_max_ms : 30000};
    c->last = -1;
    list_init(&c->batches);
    c->timer = loop_timer_new(l, on_timer, c);
    c->phase = BACKOFF_WAIT;
    loop_timer_at(c->timer, loop_now_ms(l));
    return c;
}

void feed_client_end(struct feed_client *c)
{
    c->ending = true;
    feed__client_wake(c);
}

struct feed_client *feed_client_close(struct feed_client *c)
{
    if (!c)
        return NULL;
    drop_link(c);
    loop_timer_close(c->timer);
    loop_task_cancel(&c->task);
    while (feed__client_first_batch(c))
        feed__client_batch_free(c, feed__client_first_batch(c));
    for (size_t i = 0; i < c->config.target_count; i++)
        free(c->targets[i]);
    free(c->targets);
    free(c->leader);
    free((char *)(uintptr_t)c->config.feed);
    free((char *)(uintptr_t)c->config.server_name);
    if (c->config.token)
        explicit_bzero((char *)(uintptr_t)c->config.token, strlen(c->config.token));
    free((char *)(uintptr_t)c->config.token);
    free(c);
    return NULL;
}
