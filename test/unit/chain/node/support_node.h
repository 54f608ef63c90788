/* A node door in front of fake chains, and what it reported. */
#ifndef TEST_SUPPORT_NODE_H
#define TEST_SUPPORT_NODE_H

#include "chain/node/node.h"
#include "support_fake.h"

enum { RIG_LIMIT_MS = 20000, RIG_SEEN = 256, RIG_TICK_MS = 50 };

struct seen_block {
    struct node_head head;
    uint32_t extrinsic_count;
    bool unread;
    size_t included_count;
    struct node_included included; /* the first */
    uint64_t nonce;                /* of the first account */
    struct node_balance balance;   /* of the last one */
    size_t nonce_count;
};

struct node_rig {
    struct loop *loop;
    struct fake fake[3];
    size_t fakes;
    struct node *node;
    struct node_config config;
    char urls[3][64];
    const char *url_list[3];
    unsigned ready, down, runtime, best;
    struct err why;
    struct node_info info; /* of the last on_ready or on_runtime */
    struct node_head best_head;
    struct seen_block seen[RIG_SEEN];
    size_t view_count;
    const uint8_t *want; /* a hash; NULL: nothing is wanted */
    const uint8_t *want_signer;
    size_t want_signer_len;
    bool verifies; /* what this signer signed is wanted with its signature verified */
    unsigned verified;
    void (*on_block)(struct node_rig *rig, const struct node_block *block);
    bool gone;
    uint64_t until_ms; /* of a test that waits for a time */
};

void rig_start(struct node_rig *rig, size_t fakes,
               const struct fake_runtime *runtime); /* loop, servers, config */
/* A short time-out for a test that waits for it to pass, longer where everything is slow
 * (valgrind). */
uint32_t rig_patience(uint32_t ms);
uint32_t rig_limit(void); /* ms that a test waits for what must come, before it fails */
void rig_connect(struct node_rig *rig); /* the node, opened */
void rig_up(struct node_rig *rig);      /* rig_connect, and wait for on_ready */
void rig_done(struct node_rig *rig);
void rig_close_node(struct node_rig *rig);
bool rig_wait(struct node_rig *rig, bool (*done)(void *arg));
void rig_wait_seen(struct node_rig *rig, size_t count);
void rig_wait_ready(struct node_rig *rig, unsigned count);
void rig_wait_down(struct node_rig *rig, unsigned count);

#endif
