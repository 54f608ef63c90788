/* The simulator: several relays, followers and applications, a database, and a chain with
 * several nodes, all on one queue of events in virtual time and driven by one seed. README.md
 * has the picture of what is real in it. Times are microseconds unless they say ms. */
#ifndef TEST_SIM_SIM_H
#define TEST_SIM_SIM_H

#include "base/tx.h"
#include "chain/keys/keys.h"
#include "sim_types.h"

extern struct world *simulated; /* the one that runs, for functions of the product that know none */

/* sim_queue.c */
struct event *later(struct world *w, uint64_t delay, const char *name,
                    void (*run)(struct world *w, struct event *e));
struct event *process_later(struct world *w, const struct process *p, uint64_t delay,
                            const char *name, void (*run)(struct world *w, struct event *e));
struct event *process_at(struct world *w, int process, uint32_t life, uint64_t at, const char *name,
                         void (*run)(struct world *w, struct event *e));
void process_resume(struct world *w, struct process *p);
void process_drop_held(struct world *w, struct process *p);
bool world_step(struct world *w); /* false: nothing is left to happen */
void queue_clear(struct world *w);
struct event *process_event_held(struct world *w, struct process *p, const char *name,
                                 void (*run)(struct world *w,
                                             struct event *e)); /* first when it goes on */
uint64_t local_ns(const struct world *w, const struct process *p);
uint64_t world_time(const struct process *p, uint64_t local_ms);
bool chance(struct world *w, unsigned percent);
uint64_t between(struct world *w, uint64_t lo, uint64_t hi);
uint64_t latency(struct world *w);
void note_line(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define note(w, ...)                                                                               \
    do {                                                                                           \
        if ((w)->tracing)                                                                          \
            note_line(w, __VA_ARGS__);                                                             \
    } while (0)

/* sim_check.c */
void broken(struct world *w, const char *invariant, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));
#define HOLDS(w, cond, invariant, ...)                                                             \
    do {                                                                                           \
        if (!(cond))                                                                               \
            broken(w, invariant, __VA_ARGS__);                                                     \
    } while (0)
bool includable(const struct world *w, const struct tx *t);
void check_final(struct world *w, uint32_t block);
void check_sent(struct world *w, const struct relay *r, int account, uint32_t tx, bool stopped);
void check_effort(struct world *w, const struct relay *r, int account, uint32_t tx);
void check_end(struct world *w);
void check_view(struct world *w, const struct follower *f);
void check_resend(struct world *w, const struct relay *r, uint32_t tx, uint64_t probed_at);

/* sim_chain.c */
void chain_start(struct world *w);
void hash_of_tx(uint32_t tx, uint8_t out[32]);
uint32_t tx_of_hash(const struct world *w, const uint8_t hash[32]); /* 0: none of ours */
void hash_of_block(uint32_t block, uint8_t out[32]);
uint32_t block_of_hash(const uint8_t hash[32]);
struct tx_content {
    int account;
    uint64_t nonce;
    int64_t id;
    uint32_t spec, anchor, period; /* period: 0: immortal */
    uint64_t tip;
};
uint32_t tx_sign(struct world *w, const struct tx_content *content);
uint32_t ancestor_at(const struct world *w, uint32_t block, uint64_t number);
bool refuses_call(const struct world *w, int64_t id, uint64_t number);
bool never_admitted(int64_t id);
enum fate { FATE_OK, FATE_FAILS, FATE_FAILS_INSIDE };
enum fate fate_of(const struct world *w,
                  const struct tx *t); /* what becomes of its call in a block */
uint64_t priority_of(const struct world *w, const struct tx *t);
uint32_t version_of(const struct world *w, uint32_t spec); /* transaction_version */
/* One runtime in three, with the feature `unsignable`, takes none that these relays can make. */
bool takes_no_signature(const struct world *w, uint32_t spec);
uint64_t slowest_block(const struct world *w); /* between two blocks, whoever wants them */
void chain_fork(struct world *w, uint32_t depth);
void chain_foreign(struct world *w, int account);
void chain_foreign_in_pool(struct world *w, int account);
void chain_reap(struct world *w, int account);
void node_restart(struct world *w, int node, uint64_t down);
uint32_t block_new(struct world *w, uint32_t parent);
void tell_block(struct world *w, int node, uint32_t block, uint64_t extra);
/* Money came, of which the chain tells with a block. */
void chain_pays(struct world *w, int account, bool unpaid);

/* sim_pool.c */
struct node_answer {
    int code;
    int64_t rpc_code;
    const char *text;
    enum tx_status status; /* of an accepted one */
};
void pool_submit(struct world *w, int node, uint32_t tx, struct node_answer *ret);

/* ---- sim_answer.c ---- */
void answer_submit(struct world *w, int node, uint32_t tx, struct node_answer *ret);
bool pool_ready(const struct world *w, int node, uint32_t tx);
bool pool_take(const struct world *w, int node, struct block *b, bool *skip);
bool pool_has_next(const struct world *w, int node);
void pool_set_best(struct world *w, int node, uint32_t block);
void pool_set_final(struct world *w, int node, uint32_t block);
void pool_evict(struct world *w, int node, bool say);
void pool_watch(struct world *w, int node, uint32_t tx, const struct relay *r, uint32_t sub);
void pool_unwatch(struct world *w, int node, int relay, uint32_t life, uint32_t sub);
void pool_drop_watches(struct world *w, int node, int relay, uint32_t life, uint32_t link);
void pool_false_in_block(struct world *w, int node);
void pool_lose_watch(struct world *w, int node);

void node_says_status(struct world *w, int node, const struct watch *x, enum tx_status status,
                      uint32_t block, uint32_t tx);
void node_says_heads(struct world *w, int node, bool best, bool final);
void node_says_runtime(struct world *w, int node);

/* sim_codec.c: keys and bytes of the simulated chain */
void account_id(int account, uint8_t out[32]);
int account_of_id(const uint8_t *id, size_t len);
const char *account_alias(int account);
struct keypair *account_key(int account);
void bytes_of_tx(const struct world *w, uint32_t tx, uint8_t out[BYTES_LEN]);
size_t call_len_of_tx(const struct world *w, uint32_t tx);
uint32_t tx_of_bytes(const struct world *w, const uint8_t *bytes, size_t len);

/* sim_signed.c: what is signed elsewhere */
bool signed_elsewhere(struct world *w, struct mem_session *s, int64_t id);
void signed_commit(struct world *w, int64_t id);

/* sim_loop.c */
struct loop *sim_loop_new(struct world *w, struct process *p);
struct world *loop_world(const struct loop *l);
struct process *loop_process(const struct loop *l);
size_t loop_blocks(const struct loop *l);
void loop_wall_set(uint64_t ms);

/* sim_process.c */
void process_start(struct world *w, struct process *p);
void process_end(struct world *w, struct process *p);
void process_stop(struct world *w, struct process *p, uint64_t us); /* SIGSTOP for so long */
struct link *process_link(struct world *w, const struct process *p, int kind);
int link_kind(const char *dsn, const char *name);

/* sim_link.c, sim_session.c: connections to the database */
void message_send(struct world *w, struct link *l, struct message *m);
uint64_t work_delay(struct world *w, const struct link *l); /* FEATURE_SLOW_WORK */
void message_fail_later(struct world *w, struct message *m, int code);
void message_unref(struct message *m);
void link_init(struct world *w, struct link *l, const struct process *p, int kind, void *owner);
void link_open(struct world *w, struct link *l);
void link_lost(struct world *w, struct link *l);                   /* the client finds out */
void link_cut(struct world *w, struct link *l, bool client_first); /* a fault */
void link_stall(struct world *w, struct link *l, uint64_t us);
void link_shut(struct world *w, struct link *l);             /* its owner closes it */
void link_close(struct world *w, struct link *l, bool host); /* its process is gone */
struct session *session_open(struct world *w, struct link *l);
void session_end(struct world *w, struct session *s, bool tell, uint64_t when);
void session_take(struct world *w, struct session *s, struct message *m);
/* Does a statement of another session keep the account's row of leadership locked for long? */
bool session_lead_held(const struct world *w, const struct mem_session *asks, int account);
void session_notify(struct world *w, struct session *s, int from_pid, const char *channel,
                    const char *payload);

/* sim_conn.c */
struct conn;
unsigned link_channels(const struct link *l);
void link_notify(struct world *w, struct link *l, int from_pid, const char *channel,
                 const char *payload);
void conn_send(struct conn *c, struct message *m);
void conn_answered(struct conn *c);

/* sim_db.c */
void db_start(struct world *w);
/* Everybody who listens hears it, from a session that is no relay's. */
void db_forge(struct world *w, const struct mem_notice *n);
void db_end(struct world *w);
int64_t db_now_us(const struct world *w);
struct mem_session *db_session(struct world *w, struct session *s, unsigned channels);
void db_session_end(struct world *w, struct session *s);
void db_session_active(struct session *s);
void db_stop(struct world *w, uint64_t down);
void db_failover(struct world *w, bool lossy);
void db_fall_behind(struct world *w);
const struct mem_account *db_account(const struct world *w, int account);
bool db_doubtful(const struct world *w, int account);
bool db_may_double(const struct world *w);
bool db_ended(const struct world *w, int64_t id);
uint32_t tx_of_row(const struct world *w, const struct mem_row *r);

/* sim_audit.c */
void db_run(struct world *w, struct session *s, enum mem_request what, struct store_req *req);
void audited_run(struct world *w, struct session *s, struct request *x);
void audit_told(struct world *w, const struct mem_notice *n);

/* sim_watch.c */
void claim_heard(struct world *w, int process, int32_t account, uint64_t sent_at);
void request_heard(struct world *w, const struct request *x);

/* sim_relay.c */
void relay_start(struct world *w, struct relay *r);
void relay_start_later(struct world *w, struct relay *r, uint64_t us);
void relay_kill(struct world *w, struct relay *r, bool host);
void relay_stop(struct world *w, struct relay *r, uint64_t us);
void relay_drain(struct world *w, struct relay *r);
bool leads(const struct relay *r, int account);
int64_t epoch_of(const struct relay *r, int account);
const struct manager *manager_of(const struct relay *r, int account);
bool store_is_up(const struct relay *r);
uint32_t spec_of(const struct relay *r);

/* sim_node.c */
void wire_cut(struct world *w, struct relay *r); /* a fault */
void wire_stall(struct world *w, struct relay *r, uint64_t us);
void wire_close(struct world *w, struct relay *r);

/* sim_follower.c */
void follower_start(struct world *w, struct follower *f);
void follower_end(struct world *w, struct follower *f);
bool follower_quiet(const struct follower *f);

/* sim_app.c, sim_fault.c */
void app_start(struct world *w);
void app_database_lost(struct world *w);
enum { PLAIN_FAULTS = 23 };         /* those after them belong to features */
int fault_number(const char *name); /* -1: none */
const char *fault_name(int number); /* NULL: no more */
void fault_start(struct world *w);
void fault_heal(struct world *w);
void fault_between(struct world *w, int relay);
void fault_adopted(struct world *w, int relay);

/* sim_lie.c: what a node says that is not so, for a while */
enum lie {
    LIE_FORGED, /* an extrinsic of ours that nobody signed, in a final block */
    LIE_POOLED, /* the same in the pool */
    LIE_BEST,   /* a best block far above all that are */
    LIE_FINAL,  /* a final one */
    LIE_NONCE,  /* an account nonce that cannot be */
    LIES,
};
void lie_start(struct world *w);
bool lies(const struct world *w, int node, enum lie lie);
uint64_t lie_nonce(struct world *w);
uint64_t lie_once(struct world *w, uint64_t nonce);
uint64_t lie_height(struct world *w, uint64_t number);
uint32_t lie_forged(struct world *w, uint32_t block, int account); /* 0: not now */

/* sim_warp.c: a node that begins anew */
void warp_start(struct world *w);
void warp_end(struct world *w);
bool warps(const struct world *w); /* some node has block 0 alone */
/* The network goes on without it. */
void warp_block(struct world *w);
uint32_t warp_best(const struct world *w);

/* sim_away.c: no relay is there */
void away_start(struct world *w);

/* sim_operator.c */
void operator_start(struct world *w);

/* sim_holder.c */
void holder_start(struct world *w);
void holder_ended(struct world *w, const struct mem_session *m);

/* sim_stranger.c */
bool is_forged(const struct listen_event *ev);
void stranger_start(struct world *w);
void operator_pauses(struct world *w);
void operator_bumps(struct world *w);

/* sim_duty.c */
void duty_forget(struct duty *d);
void duty_event(struct world *w, struct relay *r, int account, const struct manager_event *ev);
void duty_effect(struct world *w, struct relay *r, int account, const struct manager_effect *fx);
void duty_waits(struct world *w);
/* The relay that leads it under the epoch of the table; NULL: none does. */
const struct relay *leader_of(const struct world *w, int account);

/* sim_silence.c: once a second */
void silence_check(struct world *w);

/* sim_stuck.c; the check once a second */
void stuck_start(struct world *w);
bool is_stuck(const struct world *w, const struct relay *r);
void stuck_check(struct world *w);

/* sim_plan.c */
int feature_number(const char *name); /* -1: none */
const char *feature_name(int number); /* NULL: no more */
bool has(const struct world *w, enum feature f);
bool unread(const struct world *w, uint64_t number); /* no node has this final block */
struct options;
void plan_features(struct world *w, const struct options *o);
uint64_t tip_limit(const struct world *w, int64_t id, int account); /* UINT64_MAX: none */

/* sim_world.c */
struct world *world_new(void);
void world_free(struct world *w);
struct options {
    uint64_t until;    /* 0: to the end */
    int fault;         /* the only one, -1: all */
    uint32_t features; /* that a seed may have */
    /* A seed that is to come into a rare situation is not drawn in these; -1: as drawn. */
    uint32_t must; /* features that it has */
    int era, pool;
    bool tracing;
    bool lossy; /* each failover of each seed loses commits, and eras are waited for */
};
/* true: all invariants held; else w->violation says what did not. */
bool world_run(struct world *w, uint64_t seed, const struct options *options);

#endif
