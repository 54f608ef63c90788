/* The simulator: several relays with their real cores, a database, a chain with several nodes, applications
 * and followers, all on one queue of events in virtual time and driven by one seed.
 *
 *   sim_queue.c   events, timers, the trace            sim_relay.c    a process: its life, its accounts
 *   sim_chain.c   blocks, forks, finality              sim_store.c    its connections to the database
 *   sim_pool.c    pools of the nodes                   sim_elect.c    its elections and locks
 *   sim_db.c      sessions, locks, notifications       sim_door.c     its connection to a node
 *   sim_claim.c   leadership in SQL                    sim_submit.c   what it sends there
 *   sim_rows.c    the leader's writes in SQL           sim_plan.c     what a seed is like
 *   sim_ends.c    those that end something             sim_operator.c who pauses and resumes
 *   sim_read.c    its reads, and a listener's          sim_duty.c     what a core must and must not ask for
 *   sim_app.c     who enqueues                         sim_follower.c who listens
 *   sim_check.c   the invariants                       sim_request.c  its requests to the database
 *   sim_fault.c   what goes wrong                      sim_world.c    one seed from begin to end
 *
 * The glue (sim_relay, sim_store, sim_request, sim_elect, sim_door, sim_submit) does what relay/account*.c,
 * relay/service*.c, election/election*.c, store/store_pg*.c and chain/node*.c do, step by step: a difference
 * is a bug of the simulator. The database does what schema/functions say. Times are microseconds unless they
 * say ms. */
#ifndef TEST_SIM_SIM_H
#define TEST_SIM_SIM_H

#include "sim_types.h"

/* sim_queue.c */
struct event *later(struct world *w, uint64_t delay, const char *name,
                    void (*run)(struct world *w, struct event *e));
struct event *relay_later(struct world *w, const struct relay *r, uint64_t delay, const char *name,
                          void (*run)(struct world *w, struct event *e));
struct event *relay_at(struct world *w, int relay, uint32_t life, uint64_t at, const char *name,
                       void (*run)(struct world *w, struct event *e));
void relay_resume(struct world *w, struct relay *r);
void relay_drop_held(struct world *w, struct relay *r);
bool world_step(struct world *w); /* false: nothing is left to happen */
void queue_clear(struct world *w);
struct event *relay_event_held(struct world *w, struct relay *r, const char *name,
                               void (*run)(struct world *w,
                                           struct event *e)); /* runs first when it goes on */
uint64_t local_ms(const struct world *w, const struct relay *r);
void timer_set(struct world *w, struct relay *r, struct timer *t, uint64_t local, int account,
               const char *name, void (*run)(struct world *w, struct event *e));
bool timer_fired(struct timer *t, const struct event *e);
bool chance(struct world *w, unsigned percent);
uint64_t between(struct world *w, uint64_t lo, uint64_t hi);
uint64_t latency(struct world *w);
void note_line(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define note(w, ...)                                                                                         \
    do {                                                                                                     \
        if ((w)->tracing)                                                                                    \
            note_line(w, __VA_ARGS__);                                                                       \
    } while (0)

/* sim_check.c */
void broken(struct world *w, const char *invariant, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));
#define HOLDS(w, cond, invariant, ...)                                                                       \
    do {                                                                                                     \
        if (!(cond))                                                                                         \
            broken(w, invariant, __VA_ARGS__);                                                               \
    } while (0)
bool includable(const struct world *w, const struct tx *t);
void check_final(struct world *w, uint32_t block);
void check_sent(struct world *w, const struct relay *r, int account, uint32_t tx, bool stopped);
void check_effort(struct world *w, const struct relay *r, int account, uint32_t tx);
void check_end(struct world *w);
void check_view(struct world *w, const struct follower *f, bool all_ended);

/* sim_chain.c */
void chain_start(struct world *w);
void bytes_of_tx(const struct world *w, uint32_t tx, uint8_t out[BYTES_LEN]);
struct manager_included included_tx(const struct world *w, uint32_t tx, uint8_t bytes[BYTES_LEN]);
void hash_of_tx(uint32_t tx, uint8_t out[32]);
uint32_t tx_of_hash(const struct world *w, const uint8_t hash[32]); /* 0: none of ours */
void hash_of_block(uint32_t block, uint8_t out[32]);
uint32_t block_of_hash(const uint8_t hash[32]);
struct tx_content {
    int account;
    uint64_t nonce;
    int64_t id, for_id;
    uint32_t spec, anchor, period; /* period: 0: immortal */
    uint64_t tip;
};
uint32_t tx_sign(struct world *w, const struct tx_content *content);
uint32_t ancestor_at(const struct world *w, uint32_t block, uint64_t number);
bool refuses_call(const struct world *w, int64_t id, uint64_t number);
bool never_admitted(int64_t id);
enum fate { FATE_OK, FATE_FAILS, FATE_FAILS_INSIDE };
enum fate fate_of(const struct world *w, const struct tx *t); /* what becomes of its call in a block */
uint64_t priority_of(const struct world *w, const struct tx *t);
uint32_t version_of(const struct world *w, uint32_t spec); /* transaction_version */
void chain_fork(struct world *w, uint32_t depth);
void chain_foreign(struct world *w, int account);
void chain_foreign_in_pool(struct world *w, int account);
void chain_reap(struct world *w, int account);
void node_restart(struct world *w, int node, uint64_t down);

/* sim_pool.c */
struct answer {
    int code;
    int64_t rpc_code;
    const char *text;
    enum tx_status status; /* of an accepted one */
};
void pool_submit(struct world *w, int node, uint32_t tx, struct answer *ret);
bool pool_ready(const struct world *w, int node, uint32_t tx);
bool pool_take(const struct world *w, int node, struct block *b, bool *skip);
void pool_set_best(struct world *w, int node, uint32_t block);
void pool_set_final(struct world *w, int node, uint32_t block);
void pool_evict(struct world *w, int node, bool say);
void pool_watch(struct world *w, int node, uint32_t tx, const struct relay *r, uint32_t sub);
void pool_unwatch(struct world *w, int node, int relay, uint32_t life, uint32_t sub);
void pool_drop_watches(struct world *w, int node, int relay, uint32_t life, uint32_t link);
void pool_false_in_block(struct world *w, int node);
void pool_lose_watch(struct world *w, int node);

/* sim_signed.c: what is signed elsewhere */
void signed_elsewhere(struct world *w, int64_t id);
void signed_commit(struct world *w, int64_t id);
void signed_read(struct world *w, struct stmt *q, uint8_t *bytes);
void signed_note(struct world *w, struct stmt *q);
void signed_admit(struct world *w, struct stmt *q);
void signed_check(struct world *w, struct relay *r, struct stmt *s);

/* sim_db.c */
int64_t db_now_us(const struct world *w);
int64_t db_stamp(struct world *w);
struct session *session_open(struct world *w, struct link *l);
void session_end(struct world *w, struct session *s, bool tell, uint64_t when);
void session_take(struct world *w, struct session *s, struct stmt *stmt);
void db_stop(struct world *w, uint64_t down);
void db_failover(struct world *w, bool lossy);
void stmt_unref(struct stmt *s);
void notify_signal(struct world *w, const char *channel, int account);
void notify_row(struct world *w, const struct listen_event *ev);
struct session *lock_owner(struct world *w, int kind, int account);
const char *holder_name(int holder, char out[24]);

/* sim_claim.c, sim_rows.c, sim_read.c: what a statement does */
void sql_lock(struct world *w, struct session *s, struct stmt *q);
void sql_claim(struct world *w, struct session *s, struct stmt *q);
void sql_renew(struct world *w, struct session *s, struct stmt *q);
void sql_release(struct world *w, struct session *s, struct stmt *q);
void sql_evict(struct world *w, struct session *s, struct stmt *q);
void sql_scan(struct world *w, struct session *s, struct stmt *q);
bool sql_fence(struct world *w, struct stmt *q);
bool mid_submission(const struct world *w, int account);
void sql_adopt(struct world *w, struct stmt *q);
void sql_write(struct world *w, struct stmt *q);

/* sim_ends.c */
void rows_cancel(struct world *w, int64_t id);
void rows_end(struct world *w, struct stmt *q);
void rows_reject(struct world *w, struct stmt *q);
void rows_requeue(struct world *w, struct stmt *q);
void rows_look(struct world *w, struct stmt *q);
void row_leaves(struct world *w, const struct stmt *q, uint64_t nonce, const char *outcome);
const char *outcome_name(const char *outcome); /* the same, with a life of its own */

/* sim_rows.c */
void order_error(struct world *w, struct stmt *q, const char *what, uint64_t nonce);
struct pending_row *row_new(struct world *w, const struct stmt *q, uint64_t nonce, int64_t id, uint32_t tx);
void row_attempt(struct world *w, const struct stmt *q, uint64_t nonce, uint32_t tx);
bool is_attempt(const struct pending_row *p, uint32_t tx);
void row_told(struct world *w, const struct stmt *q, uint64_t nonce, enum listen_kind kind);
void rows_audible(struct world *w, int account);
struct manager_account account_facts(const struct world *w, int account);

void sql_read(struct world *w, struct stmt *q);
struct listen_event row_event(const struct world *w, int account, uint64_t nonce, enum listen_kind kind);

/* sim_relay.c */
void relay_start(struct world *w, struct relay *r);
void relay_start_later(struct world *w, struct relay *r, uint64_t us);
void relay_kill(struct world *w, struct relay *r, bool host);
void relay_stop(struct world *w, struct relay *r, uint64_t us); /* SIGSTOP for so long */
void relay_drain(struct world *w, struct relay *r);
void relay_drained(struct world *w, struct relay *r);
void relay_free(struct world *w, struct relay *r);
void relay_store_moved(struct world *w, struct relay *r);
void relay_chain_ready(struct world *w, struct relay *r);
void account_event(struct world *w, struct relay *r, int account, const struct manager_event *ev);
bool account_poll(struct world *w, struct relay *r, int account, struct poll_event ev);
void account_rung(struct world *w, struct relay *r, int account);
void account_promote(struct world *w, struct relay *r, int account, int64_t epoch);
void account_demote(struct world *w, struct relay *r, int account);
bool account_gate(const struct world *w, const struct relay *r, int account);

/* sim_store.c */
void link_open(struct world *w, struct link *l);
void link_lost(struct world *w, struct link *l);                   /* the client finds out */
void link_cut(struct world *w, struct link *l, bool client_first); /* a fault */
void link_stall(struct world *w, struct link *l, uint64_t us);
void link_close(struct world *w, struct link *l, bool host);
void stmt_send(struct world *w, struct link *l, struct stmt *s);
struct stmt *stmt_new(struct world *w, struct relay *r, int account, enum op op,
                      void (*done)(struct world *w, struct stmt *s));
void stmt_fail_later(struct world *w, struct stmt *s, int code);
void store_links(struct world *w, struct relay *r);

/* sim_request.c */
void store_effect(struct world *w, struct relay *r, int account, const struct manager_effect *fx);
void store_give_back(struct world *w, struct relay *r, int account, uint64_t nonce);
void store_fetch(struct world *w, struct relay *r, int account, const struct poll_effect *fx);
void store_look(struct world *w, struct relay *r, int account, const struct poll_effect *fx);
void store_arm(struct world *w, struct relay *r, int account, const struct poll_effect *fx);

/* sim_elect.c */
void elect_feed(struct world *w, struct relay *r, const struct elector_event *ev);
void elect_start(struct world *w, struct relay *r);
void lock_request(struct world *w, struct relay *r, int kind, struct stmt *s, bool take);
void locks_lost(struct world *w, struct relay *r);
void locks_free(struct relay *r);

/* sim_submit.c */
void door_submit(struct world *w, struct relay *r, int account, const struct manager_effect *fx);
void door_unwatch(struct world *w, struct relay *r, int account, uint32_t tx);
void door_unwatch_all(struct world *w, struct relay *r, int account);
void door_ask(struct world *w, struct relay *r, int account, const struct manager_effect *fx);
void door_fail_calls(struct world *w, struct relay *r);
void node_says_status(struct world *w, int node, const struct watch *x, enum tx_status status, uint32_t block,
                      uint32_t tx);

/* sim_door.c */
struct event *door_to_node(struct world *w, struct relay *r, const char *name,
                           void (*run)(struct world *w, struct event *e));
struct relay *door_from(struct world *w, const struct event *e);
struct event *door_to_relay(struct world *w, int relay, uint32_t life, uint64_t extra, const char *name,
                            void (*run)(struct world *w, struct event *e));
bool door_is_on(const struct relay *r, const struct event *e);
void door_open(struct world *w, struct relay *r);
void door_close(struct world *w, struct relay *r);
void door_lost(struct world *w, struct relay *r); /* the process finds out */
void door_cut(struct world *w, struct relay *r);  /* a fault */
void door_stall(struct world *w, struct relay *r, uint64_t us);
void door_follow(struct world *w, struct relay *r, uint64_t number);
void door_expect_height(struct world *w, struct relay *r, uint64_t number);
void door_recheck_runtime(struct world *w, struct relay *r);
void node_says_heads(struct world *w, int node, bool best, bool final);
void node_says_runtime(struct world *w, int node);

/* sim_follower.c */
void follower_start(struct world *w, struct follower *f);
void follower_free(struct follower *f);
void follower_hear(struct world *w, struct follower *f, const struct listen_event *ev);
bool follower_quiet(const struct follower *f);

/* sim_app.c, sim_fault.c */
void app_start(struct world *w);
void app_database_lost(struct world *w);
enum { PLAIN_FAULTS = 23 };         /* those after them belong to features */
int fault_number(const char *name); /* -1: none */
const char *fault_name(int number); /* NULL: no more */
void fault_start(struct world *w);
void fault_heal(struct world *w);

/* sim_operator.c */
void operator_start(struct world *w);
void operator_pauses(struct world *w);
void operator_bumps(struct world *w);

/* sim_duty.c */
void duty_forget(struct duty *d);
void duty_event(struct world *w, struct relay *r, int account, const struct manager_event *ev);
void duty_effect(struct world *w, struct relay *r, int account, const struct manager_effect *fx);
void duty_waits(struct world *w);

/* sim_plan.c */
int feature_number(const char *name); /* -1: none */
const char *feature_name(int number); /* NULL: no more */
bool has(const struct world *w, enum feature f);
void plan_features(struct world *w, uint32_t allowed);
uint64_t tip_limit(const struct world *w, int64_t id, int account); /* UINT64_MAX: none */

/* sim_world.c */
struct world *world_new(void);
void world_free(struct world *w);
struct options {
    uint64_t until;    /* 0: to the end */
    int fault;         /* the only one, -1: all */
    uint32_t features; /* that a seed may have */
    bool tracing;
};
/* true: all invariants held; else w->violation says what did not. */
bool world_run(struct world *w, uint64_t seed, const struct options *options);

#endif
