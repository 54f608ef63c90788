#include "warnings.h"
#include "base/check.h"
#include "base/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/conn_info.h"

struct sink {
    void (*each)(void *arg, const char *what, const char *text);
    void *arg;
};

static void database(const struct sink *s, const char *key, const char *dsn)
{
    struct conn_info info;
    char text[240];
    if (!dsn)
        return;
    conn_info_read(dsn, &info);
    if (info.leaves_host && !info.verifies_server) {
        snprintf(text, sizeof(text),
                 "%s: sslmode=%s does not verify the server, so an attacker in between can enqueue "
                 "transactions: use sslmode=verify-full with sslrootcert",
                 key, info.sslmode);
        s->each(s->arg, "database", text);
    }
    conn_info_done(&info);
}

/* ws:// to another machine. */
static bool is_clear(const char *endpoint)
{
    size_t len;
    const char *host = host_of_url(endpoint, &len);
    return !strncmp(endpoint, "ws://", 5) && !host_is_loopback(host, len);
}

static void chain(const struct sink *s, const struct config_chain *c)
{
    char text[240];
    for (uint32_t i = 0; i < c->endpoints_count; i++) {
        if (!is_clear(c->endpoints[i]))
            continue;
        char *shown = host_url_shown(c->endpoints[i]);
        snprintf(text, sizeof(text),
                 "%.120s is not encrypted, so an attacker in between can forge the chain's "
                 "answers: use wss://",
                 shown);
        s->each(s->arg, "chain", text);
        free(shown);
    }
    if (c->insecure)
        s->each(s->arg, "chain",
                "chain.insecure accepts every certificate: set it to false except for development");
    if (c->verify_blocks && !*c->verify_blocks)
        s->each(s->arg, "chain",
                "chain.verify_blocks is false, so a node can add extrinsics to blocks and leave "
                "them out: set it to true except for chains whose headers have another form");
    if (!c->genesis || !*c->genesis)
        s->each(s->arg, "chain",
                "chain.genesis is not set, so the first node decides which chain the accounts "
                "belong to: set it to the genesis hash that check prints");
}

static void keys(const struct sink *s, const struct service_config *c)
{
    char text[240];
    for (size_t i = 0; i < c->account_count; i++) {
        if (!c->accounts[i].key || !keypair_is_development(c->accounts[i].key))
            continue;
        snprintf(text, sizeof(text),
                 "account %.60s: its key comes from the development phrase, which is public: never "
                 "fund it on a real chain",
                 c->accounts[i].alias);
        s->each(s->arg, "key", text);
    }
    if (!keys_are_locked())
        s->each(s->arg, "key",
                "secrets are not locked in memory and may reach the swap: raise RLIMIT_MEMLOCK "
                "(systemd: LimitMEMLOCK=, shell: ulimit -l)");
}

/* What an account that has sites does not do, although the file says so. */
static void sites(const struct sink *s, const struct config_file *f)
{
    const struct config_manager *m = &f->manager;
    const struct {
        const char *key, *instead;
        bool given;
    } without[] = {
        {"manager.window", "its sites need no bound", m->window},
        {"manager.batch", "its sites need no bound", m->batch},
        {"manager.unanswered", "its sites need no bound", m->unanswered},
        {"manager.era_period", "its eras are sites.era_blocks long", m->era_period},
        {"manager.reprobe_blocks", "finalized blocks alone end its transactions",
         m->reprobe_blocks},
        {"manager.gap_blocks", "fillers close the gaps", m->gap_blocks},
        {"leadership.lost_commits", "it always waits after lost commits", config_lost_search(f)},
    };
    const struct config_account *a = NULL;
    for (uint32_t i = 0; i < f->accounts_count && !a; i++)
        if (f->accounts[i].sites_count)
            a = &f->accounts[i];
    for (size_t i = 0; a && i < ARRAY_LEN(without); i++) {
        char text[240];
        if (!without[i].given)
            continue;
        snprintf(text, sizeof(text),
                 "%s has no effect on account %.60s, which has sites: %s; leave it out unless "
                 "other accounts need it",
                 without[i].key, a->alias, without[i].instead);
        s->each(s->arg, "sites", text);
    }
}

void warnings_each(const struct config_file *f, const struct service_config *c,
                   void (*each)(void *arg, const char *what, const char *text), void *arg)
{
    struct sink s = {each, arg};
    database(&s, "database.url", f->database.url);
    database(&s, "database.work_url", f->database.work_url);
    database(&s, "database.listen_url", f->database.listen_url);
    chain(&s, &f->chain);
    keys(&s, c);
    sites(&s, f);
}
