/* Four sites on a table: a test moves their messages, databases and nodes by single steps. The
 * sites are those of the worked example of the requirements: the ranges of four blocks belong to A,
 * B and D in turn. The rankings are ACBD, BDAC and DBCA. */
#ifndef TEST_FOUR_SITES_H
#define TEST_FOUR_SITES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "site/core/site.h"

enum { A, B, C, D, SITES, ROWS = 64, GRANTS = 32, DISPATCHES = 128, BYTES = 8192, ITEMS = 64 };

struct post {
    struct site_message message;
    struct site_item items[ITEMS];
};

struct table {
    struct site_core *core;
    uint64_t height;
    uint64_t rows[ROWS]; /* the database */
    struct site_bytes grants[ROWS][GRANTS];
    size_t row_count, grant_count[ROWS];
    bool ended[ROWS];
    struct site_dispatch dispatches[DISPATCHES];
    size_t dispatch_count;
    uint64_t final;
    unsigned noted;      /* dispatches that the coordinator reported */
    unsigned dispatched; /* that were ever stored */
    bool mute;           /* signs nothing: what it holds stays undispatched */
    bool stuck;          /* commits nothing */
};

extern struct table site[SITES];
extern struct site_config config;     /* of sites that are started from now on */
extern bool away[SITES][SITES];       /* messages from the one to the other are lost */
extern unsigned lose[SITE_MSG_COUNT]; /* how many of the next messages of a kind are lost */
extern bool twice;                    /* each message arrives twice */
extern struct buf wire;               /* every message but heartbeats, such as "C>A delegate 1, " */
extern uint64_t messages, now_ms;
extern unsigned sent[SITES][SITES][SITE_MSG_COUNT];
extern struct post beats[SITES][SITES]; /* the last heartbeat from the one to the other */
extern uint64_t unfinal;                /* nonces that only the best block has used */

/* What was signed, for any site, in its order. */
extern struct site_bytes signed_bytes[BYTES];
extern uint64_t signed_ids[BYTES], used_heights[BYTES]; /* 0: in no final block */
extern unsigned submitted[BYTES];                       /* how often; 0: no pool has it */
extern size_t signed_count;

void begin(uint32_t members);                       /* all sites, at height 1 */
void begin_with(const struct site_config *changes); /* four; zeros: as begin() sets them */
void done(void);
void start(unsigned who);
void crash(unsigned who);
void restart(unsigned who);
void enqueue(unsigned who, uint64_t id);
void see(unsigned who, uint64_t height); /* its node shows this best block */
void all_see(uint64_t height);
void finalize(void);            /* a final block with what was submitted, by nonces */
void deliver(void);             /* the next message */
void settle(void);              /* all messages */
void forget_posts(void);        /* what is on its way is lost */
void commit_late(unsigned who); /* commits what it did not commit while it was stuck */
void wait_ms(uint64_t ms);
/* Blocks become final, one a second, until every transaction has ended: each is in one block. */
void finish(void);

bool told(const char *text);
bool has_ended(unsigned who, uint64_t id);
unsigned effects_of(uint64_t id);
enum site_state state_of(unsigned who);
struct site_view view_of(unsigned who);
unsigned coordinators(void); /* how many sites are in ELECT to ACTIVE */

#define SAYS(text) assert_string_equal(buf_str(&wire), text)

#endif
