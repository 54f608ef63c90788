/* The requests of store.h on their way: store/pg/ decides and lays out everything, and
 * where it would send a statement (store_pg__send, which the linker turns to here) a copy of the
 * request goes instead, with all that it points to: whoever asked may be gone when it is carried
 * out. What it found comes back into the request. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "pg/pg.h"
#include "sim.h"
#include "sim_memory.h"

void __wrap_store_pg__send(struct store_pg *s, struct side *side, enum sql_id id, struct pg_args *a,
                           struct store_req *req, decode_fn decode);

/* ---- copies of what a request points to ---- */

struct part {
    struct part *next;
    _Alignas(max_align_t) uint8_t data[]; /* amounts have 128 bits */
};

static void *keep(struct request *x, const void *data, size_t n)
{
    if (!data)
        return NULL;
    struct part *p = world_alloc(sizeof(*p) + n);
    p->next = x->parts;
    x->parts = p;
    memcpy(p->data, data, n);
    return p->data;
}

static const char *copy_text(struct request *x, const char *s)
{
    return keep(x, s, s ? strlen(s) + 1 : 0);
}

static struct store_bytes copy_bytes(struct request *x, struct store_bytes b)
{
    return (struct store_bytes){.data = keep(x, b.data, b.len), .len = b.len};
}

static void copy_enroll(struct request *x)
{
    struct store_enroll *r = &x->u.enroll;
    r->alias = copy_text(x, r->alias);
    r->scheme = copy_text(x, r->scheme);
    r->address = copy_text(x, r->address);
    r->account_id = copy_bytes(x, r->account_id);
    r->genesis = copy_bytes(x, r->genesis);
}

static void copy_release(struct request *x)
{
    x->u.release.holder = copy_text(x, x->u.release.holder);
}

static void copy_renew(struct request *x)
{
    struct store_renew *r = &x->u.renew;
    r->holder = copy_text(x, r->holder);
    r->accounts = keep(x, r->accounts, r->count * sizeof(*r->accounts));
    r->epochs = keep(x, r->epochs, r->count * sizeof(*r->epochs));
    r->lock_keys = keep(x, r->lock_keys, r->count * sizeof(*r->lock_keys));
    r->renewed = keep(x, r->renewed, r->count * sizeof(*r->renewed));
}

static void copy_scan(struct request *x)
{
    struct store_scan *r = &x->u.scan;
    r->accounts = keep(x, r->accounts, r->count * sizeof(*r->accounts));
    r->epochs = keep(x, r->epochs, r->count * sizeof(*r->epochs));
}

static void copy_member(struct request *x)
{
    x->u.member.holder = copy_text(x, x->u.member.holder);
    x->u.member.address = copy_text(x, x->u.member.address);
}

static void copy_obstacles(struct request *x)
{
    struct store_obstacles *r = &x->u.obstacles;
    struct store_obstacle *rows = keep(x, r->rows, r->count * sizeof(*rows));
    for (size_t i = 0; i < r->count; i++) {
        rows[i].code = copy_text(x, rows[i].code);
        rows[i].text = copy_text(x, rows[i].text);
    }
    r->rows = rows;
}

static void copy_relay_obstacle(struct request *x)
{
    struct store_relay_obstacle *r = &x->u.relay_obstacle;
    r->holder = copy_text(x, r->holder);
    r->code = copy_text(x, r->code);
    r->text = copy_text(x, r->text);
}

static void copy_due(struct request *x)
{
    struct store_due *r = &x->u.due;
    r->accounts = keep(x, r->accounts, r->count * sizeof(*r->accounts));
    r->epochs = keep(x, r->epochs, r->count * sizeof(*r->epochs));
    r->fingerprints = keep(x, r->fingerprints, r->count * sizeof(*r->fingerprints));
}

static void copy_attempts(struct request *x)
{
    struct store_attempts *r = &x->u.attempts;
    struct store_attempt_row *rows = keep(x, r->rows, r->count * sizeof(*rows));
    for (size_t i = 0; i < r->count; i++) {
        rows[i].extrinsic = copy_bytes(x, rows[i].extrinsic);
        rows[i].call = copy_bytes(x, rows[i].call);
        rows[i].tip = copy_text(x, rows[i].tip);
        rows[i].reason = copy_text(x, rows[i].reason);
        rows[i].outcome = copy_text(x, rows[i].outcome);
        rows[i].stop_reason = copy_text(x, rows[i].stop_reason);
    }
    r->rows = rows;
}

static void copy_note(struct request *x)
{
    struct store_note *r = &x->u.note;
    r->rows = keep(x, r->rows, r->count * sizeof(*r->rows));
}

static void copy_states(struct request *x)
{
    struct store_states *r = &x->u.states;
    struct tx_report *rows = keep(x, r->rows, r->count * sizeof(*rows));
    for (size_t i = 0; i < r->count; i++)
        rows[i].state = copy_text(x, rows[i].state);
    r->rows = rows;
}

static void copy_finish(struct request *x)
{
    struct store_finish *r = &x->u.finish;
    struct tx_end *rows = keep(x, r->rows, r->count * sizeof(*rows));
    for (size_t i = 0; i < r->count; i++)
        rows[i].outcome = copy_text(x, rows[i].outcome);
    r->rows = rows;
}

static void copy_pause(struct request *x)
{
    x->u.pause.suspension = copy_text(x, x->u.pause.suspension);
    x->u.pause.reason = copy_text(x, x->u.pause.reason);
}

static void copy_adopt(struct request *x)
{
    struct store_adopt *r = &x->u.adopt;
    struct tx_found *rows = keep(x, r->rows, r->count * sizeof(*rows));
    for (size_t i = 0; i < r->count; i++)
        rows[i].bytes = keep(x, rows[i].bytes, rows[i].bytes_len);
    r->rows = rows;
}

/* ---- what was found, back into the request ---- */

#define HOME(type) struct type *r = CONTAINER_OF(req, struct type, req)

static void back_enroll(struct store_req *req, const struct request *x)
{
    HOME(store_enroll);
    r->account = x->u.enroll.account;
}

static void back_release(struct store_req *req, const struct request *x)
{
    HOME(store_release);
    r->released = x->u.release.released;
}

static void back_evict(struct store_req *req, const struct request *x)
{
    HOME(store_evict);
    struct store_req own = r->req;
    *r = x->u.evict;
    r->req = own;
}

static void back_renew(struct store_req *req, const struct request *x)
{
    HOME(store_renew);
    memcpy(r->renewed, x->u.renew.renewed, r->count * sizeof(*r->renewed));
}

static void back_scan(struct store_req *req, const struct request *x)
{
    HOME(store_scan);
    r->seen = x->u.scan.seen;
    r->view_count = x->u.scan.view_count;
}

static void back_member(struct store_req *req, const struct request *x)
{
    HOME(store_member);
    r->count = x->u.member.count;
    r->holders = x->u.member.holders;
    r->best_known = x->u.member.best_known;
}

static void back_due(struct store_req *req, const struct request *x)
{
    HOME(store_due);
    r->wants = x->u.due.wants;
    r->want_count = x->u.due.want_count;
}

static void back_attempts(struct store_req *req, const struct request *x)
{
    HOME(store_attempts);
    r->next_nonce = x->u.attempts.next_nonce;
}

static void back_adopt(struct store_req *req, const struct request *x)
{
    HOME(store_adopt);
    r->adopted = x->u.adopt.adopted;
}

static void back_heard(struct store_req *req, const struct request *x)
{
    HOME(store_heard);
    r->until = x->u.heard.until;
}

#define WHOLE(name, type)                                                                          \
    static void back_##name(struct store_req *req, const struct request *x)                        \
    {                                                                                              \
        HOME(type);                                                                                \
        struct store_req own = r->req;                                                             \
        *r = x->u.name;                                                                            \
        r->req = own;                                                                              \
    }
WHOLE(snapshot, store_snapshot)
WHOLE(outbox, store_outbox)
WHOLE(poll_requests, store_poll_requests)

static const struct {
    bool known;
    enum mem_request what;
    size_t size;
    void (*copy)(struct request *x);
    void (*back)(struct store_req *req, const struct request *x);
    const char *name;
} kinds[SQL_COUNT] = {
#define KIND(sql, request, type, copy, back)                                                       \
    [SQL_##sql] = {true, MEM_REQUEST_##request, sizeof(struct type), copy, back, #request}
    KIND(REGISTER_ACCOUNT, enroll, store_enroll, copy_enroll, back_enroll),
    KIND(RENEW_CLAIMS, renew, store_renew, copy_renew, back_renew),
    KIND(RENEW_LEASE, renew, store_renew, copy_renew, back_renew),
    KIND(RELEASE_CLAIM, release, store_release, copy_release, back_release),
    KIND(EVICT_HOLDER, evict, store_evict, NULL, back_evict),
    KIND(SCAN_CLAIMS, scan, store_scan, copy_scan, back_scan),
    KIND(SEND_HEARTBEAT, member, store_member, copy_member, back_member),
    KIND(NOTE_OBSTACLES, obstacles, store_obstacles, copy_obstacles, NULL),
    KIND(NOTE_RELAY, relay_obstacle, store_relay_obstacle, copy_relay_obstacle, NULL),
    KIND(READ_SNAPSHOT, snapshot, store_snapshot, NULL, back_snapshot),
    KIND(READ_OUTBOX, outbox, store_outbox, NULL, back_outbox),
    KIND(POLL_REQUESTS, poll_requests, store_poll_requests, NULL, back_poll_requests),
    KIND(FIND_DUE, due, store_due, copy_due, back_due),
    KIND(ADMIT_ROWS, admit, store_attempts, copy_attempts, back_attempts),
    KIND(ADMIT_PRESIGNED, admit_signed, store_attempts, copy_attempts, back_attempts),
    KIND(NOTE_PRESIGNED, note, store_note, copy_note, NULL),
    KIND(ATTEMPT_ROWS, attempt, store_attempts, copy_attempts, back_attempts),
    KIND(FILL_NONCES, fill, store_attempts, copy_attempts, back_attempts),
    KIND(RECORD_STATES, state, store_states, copy_states, NULL),
    KIND(FINISH_ROWS, finish, store_finish, copy_finish, NULL),
    KIND(REJECT_ROWS, reject, store_finish, copy_finish, NULL),
    KIND(REQUEUE_ROWS, requeue, store_finish, copy_finish, NULL),
    KIND(SET_NONCE, nonce, store_nonce, NULL, NULL),
    KIND(PAUSE_ACCOUNT, pause, store_pause, copy_pause, NULL),
    KIND(NOTE_HEARD, heard, store_heard, NULL, back_heard),
    KIND(ADOPT_ROWS, adopt, store_adopt, copy_adopt, back_adopt),
};

/* ---- life of one ---- */

static void release(struct message *m)
{
    struct request *x = CONTAINER_OF(m, struct request, message);
    store_req_done(&x->u.req);
    for (struct part *p = x->parts, *next; p; p = next) {
        next = p->next;
        free(p);
    }
}

/* The process has given its answer back. One that is killed never does: process_end() goes
 * through the list. */
static void given_back(void *extra)
{
    message_unref(extra);
}

static void run(struct world *w, struct session *s, struct message *m)
{
    struct request *x = CONTAINER_OF(m, struct request, message);
    audited_run(w, s, x);
    note(w, "  r%d a%d %s: %s", m->process, m->account, m->name, err_name(x->u.req.err.code));
}

static void done(struct world *w, struct message *m)
{
    struct request *x = CONTAINER_OF(m, struct request, message);
    struct store_req *req = m->client;
    if (m->code) {
        err_set(&req->err, m->code, "the database did not answer");
    } else {
        conn_answered(m->link->owner);
        req->err = x->u.req.err;
        if (!req->err.code && kinds[x->sql].back) {
            kinds[x->sql].back(req, x);
            m->refs++;
            list_append(&w->processes[m->process].borrowed, &m->borrowed);
            store__arena(req, 0, m, given_back);
        }
        request_heard(w, x);
    }
    req->cb(req);
}

/* What the book of locks does not have is named under an epoch that nobody had, as in
 * pg_lead_renew.c. */
static void mask_epochs(struct store_pg *s, struct request *x)
{
    struct store_renew *r = &x->u.renew;
    int64_t *epochs = keep(x, r->epochs, r->count * sizeof(*epochs));
    for (size_t i = 0; i < r->count; i++)
        if (r->lock_keys && s->config.use_lock && !store_pg__lock_held(s, r->lock_keys[i]))
            epochs[i] = -1;
    r->epochs = epochs;
}

static int account_of(const struct request *x)
{
    switch ((int)x->what) {
    case MEM_REQUEST_snapshot:
    case MEM_REQUEST_outbox:
    case MEM_REQUEST_poll_requests:
    case MEM_REQUEST_release:
    case MEM_REQUEST_note:
    case MEM_REQUEST_state:
    case MEM_REQUEST_finish:
    case MEM_REQUEST_reject:
    case MEM_REQUEST_requeue:
    case MEM_REQUEST_nonce:
    case MEM_REQUEST_pause:
    case MEM_REQUEST_adopt:
    case MEM_REQUEST_heard:
    case MEM_REQUEST_admit:
    case MEM_REQUEST_admit_signed:
    case MEM_REQUEST_attempt:
    case MEM_REQUEST_fill:
        return *(const int32_t *)((const char *)&x->u + sizeof(struct store_req)) - 1;
    default:
        return -1;
    }
}

/* The writes of leaders, whose fence locks the row. The reads of a load only wait for it. */
static bool locks_row(enum mem_request what)
{
    return what != MEM_REQUEST_snapshot && what != MEM_REQUEST_outbox &&
           what != MEM_REQUEST_poll_requests && what != MEM_REQUEST_release;
}

void __wrap_store_pg__send(struct store_pg *s, struct side *side, enum sql_id id, struct pg_args *a,
                           struct store_req *req, decode_fn decode)
{
    (void)a, (void)decode;
    PRE(id < SQL_COUNT && kinds[id].known);
    if (store_pg__refused(s, req))
        return;
    struct request *x = world_alloc(sizeof(*x));
    memcpy(&x->u, req, kinds[id].size);
    x->u.req = (struct store_req){0};
    x->sql = (int)id;
    x->what = kinds[id].what;
    if (kinds[id].copy)
        kinds[id].copy(x);
    if (x->what == MEM_REQUEST_renew)
        mask_epochs(s, x);
    x->message.client = req;
    x->message.run = run;
    x->message.done = done;
    x->message.release = release;
    x->message.name = kinds[id].name;
    x->message.account = account_of(x);
    x->message.locks = x->message.account >= 0 && locks_row(x->what);
    conn_send(side->conn, &x->message);
}
