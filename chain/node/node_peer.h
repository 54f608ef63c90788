/* Other endpoints, and the questions to them. */
#ifndef CHAIN_NODE_NODE_PEER_H
#define CHAIN_NODE_NODE_PEER_H

#include "node_runtime.h"

enum { PEER_AGAIN_TICKS = 10 }; /* between two questions for the runtime: metadata is large */

enum opinion { OPINION_NONE, OPINION_SAME, OPINION_OTHER };
enum peer_step {
    PEER_IDLE,
    PEER_GENESIS_WAIT,
    PEER_FINAL_WAIT,
    PEER_HEADER_WAIT,
    PEER_HASH_WAIT,
    PEER_NONCE_WAIT,
    PEER_EVENTS_WAIT,
    PEER_VERSION_WAIT,
    PEER_METADATA_WAIT,
};

/* An endpoint that is asked for its opinion. The one in use is asked on its connection, every
 * other one on a connection of its own. */
struct peer {
    struct node *node;
    size_t endpoint;
    char *url;       /* whole: it may hold a secret */
    struct rpc *rpc; /* NULL before the first question */
    bool stopping;
    bool same_chain; /* of the present connection */
    /* It refuses state_getStorageHash, chain_getBlockHash, state_getRuntimeVersion. */
    bool no_storage_hash, no_block_hash, no_version;
    enum peer_step step;
    uint64_t round; /* confirm.round or second.round of the question that is open */
    size_t nonce_next;
    struct rpc_call call;
    enum opinion opinion;    /* of the block */
    enum opinion of_runtime; /* of the runtime */
    uint64_t runtime_at;     /* it is asked for the runtime again */
    char text[200];          /* what it said last, for the log */
    char runtime_text[200];  /* of the runtime */
};

void peers_init(struct node *n, const char *const *urls);
/* Closes the peers' connections, and returns their number; `closed` is called for each. */
size_t peers_close(struct node *n, void (*closed)(void *arg));
void peers_done(struct node *n);
void peers_rest(struct node *n); /* nothing more is asked: give the connections back */
bool peer_in_use(const struct peer *p);
/* Nothing happens while a question of this peer is open, or if nothing is wanted of it. */
void peer_ask(struct peer *p);
void peer_connect(struct peer *p); /* unless it is connected, or being so */

/* ---- for the questions: node_peer.c ---- */
/* Ask a question of this step. Its answer arrives at the peer_got_ function of the step. */
void peer_call(struct peer *p, enum peer_step step, const char *method, const char *params);
void peer_ask_height(struct peer *p, enum peer_step step); /* the hash of a height */
/* Set the text that the log and node_unconfirmed show for this endpoint. */
void peer_says(struct peer *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- node_peer_block.c: of the block; ends in confirm_opinion, or says why there is none ---- */
void peer_ask_hash(struct peer *p); /* the first question to the endpoint in use */
void peer_ask_events(struct peer *p);
void peer_got_final(struct peer *p, const struct rpc_call *call);
void peer_got_header(struct peer *p, const struct rpc_call *call);
void peer_got_hash(struct peer *p, const struct rpc_call *call);
void peer_got_nonce(struct peer *p, const struct rpc_call *call);
void peer_got_events(struct peer *p, const struct rpc_call *call);

/* ---- node_peer_runtime.c: of the runtime; ends in second_opinion, or says why not ---- */
void peer_ask_version(struct peer *p); /* the first question */
void peer_got_version(struct peer *p, const struct rpc_call *call);
void peer_got_metadata(struct peer *p, const struct rpc_call *call);

#endif
