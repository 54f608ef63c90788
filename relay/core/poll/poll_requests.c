/* Request polls of one account. Deadlines and cancellations are facts of the table (one clock, the
 * database's), so the leader asks for them: when its rows are loaded, when a wakeup or a sweep says
 * that there is something, when the next time that the table named has come, and otherwise once a
 * second, if no sweep does that for it. */
#include "poll_internal.h"

void poll__requests_init(struct poll_requests *r)
{
    *r = (struct poll_requests){
        .state = r->state, .at = UINT64_MAX, .next_at = UINT64_MAX, .fingerprint = -1};
}

void poll__requests_off(struct poll *p, struct poll_account *a)
{
    poll__move_requests(p, a, POLL_REQUESTS_OFF);
    poll__requests_init(&a->requests);
}

static void ask(struct poll *p, struct poll_account *a, enum poll_reason why)
{
    struct poll_requests *r = &a->requests;
    poll__move_requests(p, a, POLL_REQUESTS_WAIT);
    r->again = false;
    r->at = p->now + POLL_LOST_MS;
    r->next_at = UINT64_MAX;
    struct poll_effect *fx = poll__emit(p, POLL_QUERY_REQUESTS, a, why);
    fx->question = r->question = ++p->questions;
    fx->serial = r->serial;
}

/* One that is out may have begun before the reason: it is followed by another. */
void poll__requests_now(struct poll *p, struct poll_account *a, enum poll_reason why)
{
    struct poll_requests *r = &a->requests;
    if (r->state == POLL_REQUESTS_IDLE && r->refused && p->now < r->at) {
        return; /* the poll that comes then covers it */
    } else if (r->state == POLL_REQUESTS_IDLE) {
        ask(p, a, why);
    } else if (r->state == POLL_REQUESTS_WAIT) {
        r->again = true;
        r->again_why = why;
    }
}

void poll__requests_want(struct poll *p, struct poll_account *a, uint64_t serial)
{
    if (!a->led)
        return;
    a->requests.serial = serial;
    if (a->requests.state == POLL_REQUESTS_OFF)
        ask(p, a, POLL_WHY_WANTED);
    else
        poll__requests_now(p, a, POLL_WHY_WANTED);
}

void poll__requests_tick(struct poll *p, struct poll_account *a)
{
    struct poll_requests *r = &a->requests;
    if (p->now < r->at)
        return;
    if (r->state == POLL_REQUESTS_WAIT)
        ask(p, a, POLL_WHY_NO_ANSWER);
    else if (p->now >= r->next_at)
        ask(p, a, POLL_WHY_DEADLINE);
    else if (r->fingerprint < 0 || !poll__covered(p, a))
        ask(p, a, r->why);
    else
        r->at = p->now + POLL_REST_MS < r->next_at ? p->now + POLL_REST_MS : r->next_at;
}

void poll__requests_mended(struct poll *p, struct poll_account *a)
{
    if (a->requests.state == POLL_REQUESTS_IDLE && a->requests.failed_ms)
        ask(p, a, POLL_WHY_RETRY);
}

/* What a sweep says about the next time counts until a request poll says it to the millisecond. */
void poll__requests_swept(struct poll_account *a, uint64_t next_at)
{
    struct poll_requests *r = &a->requests;
    r->next_at = next_at;
    if (r->state == POLL_REQUESTS_IDLE && !r->refused && next_at < r->at)
        r->at = next_at;
}

static void answered(struct poll *p, struct poll_requests *r, const struct poll_event *ev)
{
    bool failed = ev->type == POLL_EV_REQUESTS_FAILED;
    r->refused = failed && ev->refused;
    uint32_t cap = r->refused ? POLL_REFUSED_MS : POLL_FAILED_MS;
    r->failed_ms = failed ? poll__retry_ms(r->failed_ms, cap) : 0;
    r->question = 0;
    r->fingerprint = failed ? -1 : ev->requests.fingerprint;
    r->why = failed ? POLL_WHY_RETRY : POLL_WHY_SLOW;
    r->at = p->now + (failed ? r->failed_ms : POLL_SLOW_MS);
    if (!failed && ev->requests.next_ms >= 0)
        r->next_at = p->now + (uint64_t)ev->requests.next_ms;
    if (r->next_at < r->at)
        r->at = r->next_at;
}

bool poll__requests_answered(struct poll *p, struct poll_account *a, const struct poll_event *ev)
{
    struct poll_requests *r = &a->requests;
    if (!ev->question || ev->question != r->question)
        return false;
    INVARIANT(r->state == POLL_REQUESTS_WAIT);
    poll__move_requests(p, a, POLL_REQUESTS_IDLE);
    answered(p, r, ev);
    if (r->again && !r->refused)
        ask(p, a, r->again_why);
    if (ev->type == POLL_EV_REQUESTS &&
        ev->requests.has_rows) /* a row whose time has come causes no notification */
        poll__outbox_rang(p, a, POLL_WHY_TIMED);
    return true;
}
