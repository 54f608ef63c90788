/* A host of an account with sites, with the node, the room, the tables and the database played
 * (--wrap). Each call of theirs is a word in `did`. */
#ifndef SITES_HARNESS_H
#define SITES_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sites/sites.h"

enum { ERA = 16, ANCHORS = ERA + ANCHORS_MORE, READ = 1000, EPOCH = 7 };

struct played {
    bool connected, confirmed, no_poll;
    struct node_info info;
    struct site_account_view view;
    uint64_t now;
    struct store_site_setup *setup;
    void (*on_setup)(struct store_site_setup *r);
    struct store_site_note *note;
    void (*on_note)(struct store_site_note *r);
    struct store_site_match *match;
    void (*on_match)(struct store_site_match *r);
    struct node_ask *ask;
    void (*on_ask)(struct node_ask *a);
    struct node_submit *submit;
    void (*on_reply)(struct node_submit *s);
    uint8_t best_has; /* the first byte of a hash that is known */
};
extern struct played played;
extern char did[2000], logged[600]; /* the values of the last line in the log */
extern struct service service;
extern struct account account;
extern struct site_host host;
extern struct site_anchor anchors[ANCHORS];

#define did_so(wanted)                                                                             \
    do {                                                                                           \
        assert_string_equal(did, wanted);                                                          \
        did[0] = 0;                                                                                \
    } while (0)

int begin(void **state);
int end(void **state);
void led(void); /* it leads and has read block READ, after which its nonce is 5 */
/* Signed by the account, included with success. Hashes that begin with 'g' are granted here, with
 * 'd' coordinated here; others are not known. */
struct node_included tx(char name, uint64_t nonce);
void block(uint64_t number, uint64_t nonce, const struct node_included *all, size_t count,
           bool unread);
enum tx_doubt doubt(uint64_t number, uint64_t nonce, const struct node_included *all, size_t count);
void answer_setup(int code);
const char *obstacle(void); /* "": none */

#endif
