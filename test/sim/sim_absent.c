/* The rooms that a simulated relay does not have: a control endpoint, the standalone's standard
 * input, and links to other sites, which have a simulation of their own (test/unit/site). With them
 * goes all that they need of sockets. */
#include "base/check.h"
#include "service/room.h"
#include "service/service_internal.h"

struct room *service_metrics(struct service *s, struct err *err)
{
    (void)s;
    (void)err;
    return NULL;
}

struct room *service_control(struct service *s, struct err *err)
{
    (void)s, (void)err;
    return NULL;
}

struct room *service_standalone(struct service *s, struct err *err)
{
    (void)s, (void)err;
    return NULL;
}

struct room *service_sites(struct service *s, struct err *err)
{
    (void)s, (void)err;
    return NULL;
}

void service_sites_head(struct service *s, bool up)
{
    (void)s, (void)up;
}

/* No account has sites. */

void service_sites_lead(struct account *a, int64_t epoch)
{
    (void)a, (void)epoch;
    UNREACHABLE();
}

void service_sites_block(struct account *a, const struct node_block *b)
{
    (void)a, (void)b;
    UNREACHABLE();
}

void service_sites_poll(struct account *a, const struct poll_effect *fx)
{
    (void)a, (void)fx;
    UNREACHABLE();
}

bool service_sites_knows(const struct account *a, const uint8_t hash[32])
{
    (void)a, (void)hash;
    UNREACHABLE();
}

bool service_sites_must_verify(const struct account *a, const uint8_t hash[32], uint64_t nonce)
{
    (void)a, (void)hash, (void)nonce;
    UNREACHABLE();
}

bool service_sites_need(const struct account *a)
{
    (void)a;
    UNREACHABLE();
}

enum tx_doubt service_sites_doubts(const struct account *a, const struct node_block *b)
{
    (void)a, (void)b;
    UNREACHABLE();
}

void service_sites_obstacle(const struct account *a, struct obstacle *ret)
{
    (void)a, (void)ret;
    UNREACHABLE();
}
