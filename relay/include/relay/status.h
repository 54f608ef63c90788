/* What a relay process is doing, as data: the control endpoint writes it as JSON (status_json.h).
 * Enums that operators read have a name. Texts belong to the service: they are valid until its loop
 * goes on. */
#ifndef RELAY_STATUS_H
#define RELAY_STATUS_H

#include "base/metrics.h"
#include "base/u128.h"
#include "chain/node/node.h"
#include "election/election.h"
#include "listen/listen.h"
#include "relay/core/tx/manager.h"
#include "relay/progress.h"
#include "store/sample.h"
#include "store/store.h"

struct service;

enum account_role { ACCOUNT_FOLLOWER, ACCOUNT_LEADER };
const char *account_role_name(enum account_role role);

/* STARTING (store up and node ready -> register accounts) -> RUNNING -> DRAINING (release) ->
 * CLOSING */
enum service_phase { SERVICE_STARTING, SERVICE_RUNNING, SERVICE_DRAINING, SERVICE_CLOSING };
const char *service_phase_name(enum service_phase phase);

/* What starts beside one another. */
enum start_part { START_PART_DATABASE, START_PART_CHAIN, START_PART_REGISTER, START_PARTS };

/* How a transaction ends. */
enum relay_outcome {
    RELAY_OUTCOME_OK,
    RELAY_OUTCOME_DISPATCH_ERROR,
    RELAY_OUTCOME_FAILED,
    RELAY_OUTCOME_EXPIRED,
    RELAY_OUTCOME_CANCELLED,
    RELAY_OUTCOME_USURPED,
    RELAY_OUTCOME_UNKNOWN,
    RELAY_OUTCOMES
};
const char *relay_outcome_name(enum relay_outcome outcome);

/* Of an account, since the process began, while it led. */
struct account_counts {
    uint64_t admitted;    /* transactions that got a nonce */
    uint64_t submitted;   /* submissions that were written to a node */
    uint64_t resubmitted; /* of these: the same bytes once more */
    uint64_t resigned, fillers, requeued;
    uint64_t outcomes[RELAY_OUTCOMES]; /* without fillers */
    double fees;                       /* that finalized blocks took, in planck */
};

/* From the enqueue of a transaction until its nonce was committed, a node's pool had it, a block
 * had it, and its end was committed with a final block. */
enum relay_stage {
    RELAY_STAGE_NONCE,
    RELAY_STAGE_POOL,
    RELAY_STAGE_BLOCK,
    RELAY_STAGE_FINALIZED,
    RELAY_STAGES
};

struct account_status {
    const char *alias, *address;
    enum account_role role;
    int64_t epoch; /* 0 unless leader */
    bool gate_open;
    bool leaving; /* it admits nothing, and is handed over when it has settled */
    /* as far as this relay knows; "" when no leader is known */
    const char *leader, *leader_address;
    size_t unstored;        /* store requests in flight of which new bytes may come */
    size_t unanswered;      /* submissions on the wire */
    uint64_t refused_total; /* requests that this endpoint refused, since another relay leads */
    uint64_t gated_total;   /* submissions that the gate stopped before they were written */
    struct account_counts counts;
    const struct metric_histogram *stages; /* RELAY_STAGES of them */
    bool balance_known; /* as of the last final block, of an account that is led */
    u128 balance;
    bool sampled; /* how many transactions wait, and how long; read every few seconds */
    struct store_sample sample;
    enum manager_phase phase;
    struct manager_view manager;
    struct progress progress; /* from its promotion to its first send */
    /* What keeps it from going on, and for how long already; "", "", 0: nothing that lasts. */
    const char *obstacle, *obstacle_text;
    uint64_t obstacle_ms;
    bool elected; /* the account takes part in the election: what follows counts */
    struct election_stats election;
};

/* A feed that this relay knows. */
struct feed_status {
    const char *name, *alias; /* alias: of its account */
    const char *phase;        /* of its diagram in docs/design.md */
    bool served;              /* this relay takes its batches */
    bool paused;
    bool unreadable;  /* the database does not give its last number, so that no batch is taken */
    int64_t last;     /* stored, as far as this relay knows; -1: none */
    size_t sessions;  /* streams of publishers */
    uint64_t primary; /* the session whose copy is being taken; 0: none */
    const char *leader_address; /* where publishers find the leader; "" if that is not known */
};

struct service_status {
    const char *name, *holder;
    enum service_phase phase;
    bool standalone;
    uint64_t now_ms; /* of the ages in `starting` and `progress` */
    struct progress starting[START_PARTS];
    /* What keeps the relay itself from its work, as in account_status. */
    const char *obstacle, *obstacle_text;
    uint64_t obstacle_ms;
    size_t members; /* relays of these accounts that live, with this one; 0: not known */
    bool database_up;
    const char *database_error; /* why not; "" if nothing is known */
    /* for how long the database has been away; 0: it is there, or there is none */
    uint64_t stale_ms;
    /* From here on: of the rooms; nothing of those that are closed. */
    struct store_status store;
    bool listens; /* false: standalone, which has no listener */
    struct listen_status listen;
    bool chain_up;
    struct node_stats node;
    const char *chain_error; /* why not; "" if nothing is known */
    const char *endpoint;    /* of the node that is used, or tried */
    const char *spec_name;   /* from here on: 0 and "" while the chain is down */
    uint32_t spec_version, transaction_version;
    uint64_t best, finalized, best_known;
    bool feeds_open;           /* publishers may connect: what follows counts */
    bool feeds_known;          /* the feeds were read from the database */
    bool feeds_failing;        /* they cannot be read now: changes are not noticed */
    const char *feeds_address; /* by which publishers reach this relay */
    size_t feed_sessions;      /* streams of publishers that are open */
    size_t feed_count;
    struct feed_status *feeds; /* owned: service_status_done */
    size_t account_count;
    struct account_status *accounts; /* owned: service_status_done */
};

void service_status(const struct service *s, struct service_status *ret);
/* One line about the first step of the start that lasts, and how many more do; "": none does. */
void service_status_progress(const struct service_status *status, char *ret, size_t size);
void service_status_done(struct service_status *status);

#endif
