/* A relay's end of the wire to a node (sim_node*.c). */
#ifndef TEST_SIM_SIM_NODE_H
#define TEST_SIM_SIM_NODE_H

#include "base/heard.h"
#include "chain/node/node.h"
#include "sim.h"

struct node {
    struct world *w;
    struct loop *loop;
    struct relay *r;
    struct node_config config;
    struct node_info info;
    struct heard heard;
    bool ready, closing, best_known_fell;
    struct backoff backoff;
    int watched[ACCOUNTS]; /* accounts by index */
    size_t watched_count;
    struct list submissions, asks;
    /* finalized blocks */
    bool following;
    uint64_t next;
    uint32_t restart;
    struct slot slots[PIPELINE];
    struct loop_task closed;
    void (*close_cb)(void *arg);
    void *close_arg;
};

struct event *wire_to_node(struct world *w, struct relay *r, const char *name,
                           void (*run)(struct world *w, struct event *e));
struct relay *wire_from(struct world *w, const struct event *e);
uint64_t wire_turn(struct world *w, struct relay *r);
struct event *wire_to_relay(struct world *w, struct relay *r, uint64_t extra, const char *name,
                            void (*run)(struct world *w, struct event *e));
struct node *wire_is_on(const struct world *w,
                        const struct event *e); /* NULL: it is another connection now */
void node_lost(struct node *n);                 /* the process finds out */

/* sim_node_blocks.c */
void node_kick(struct node *n);
void node_blocks_clear(struct node *n);

void included_tx(const struct world *w, uint32_t tx, uint8_t bytes[BYTES_LEN],
                 struct node_included *ret);

/* sim_node_ask.c, sim_node_submit.c: of those that were made before `last`, what is out has no
 * answer, and what is watched says no more. */
void node_asks_fail(struct node *n, uint32_t last, int code);
void node_submissions_fail(struct node *n, uint32_t last, int code);

enum { CALL_TIMEOUT_US = 10000000 };

#endif
