/* txrelay audit: compare the final chain with what is on record. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/audit.h"
#include "audit/audit_chain.h"
#include "audit/audit_print.h"
#include "audit/audit_records.h"
#include "base/hex.h"
#include "cli.h"
#include "command.h"

/* CHUNK: blocks at a time. LATE: what is final for as many blocks must have ended. */
enum { CHUNK = 128, LATE = 300, DAY_MS = 86400000 };

struct audit_args {
    struct arguments args;
    uint64_t from, to; /* 0: not given */
    uint32_t days;     /* 0: not given */
    bool csv;
};

static uint64_t take_number(const char *name, const char *arg, struct argp_state *state)
{
    char *end;
    uint64_t n = command_is_number(arg, false) ? strtoull(arg, &end, 10) : 0;
    if (!n || n > INT64_MAX)
        argp_error(state, "--%s is '%.40s'; it must be a whole number from 1 on", name, arg);
    return n;
}

enum { OPT_FROM = 1000, OPT_TO, OPT_DAYS, OPT_CSV }; /* argp keys without a letter */

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    struct audit_args *x = (struct audit_args *)a;
    switch (key) {
    case OPT_FROM:
        x->from = take_number("from", arg, state);
        return 0;
    case OPT_TO:
        x->to = take_number("to", arg, state);
        return 0;
    case OPT_DAYS: {
        uint64_t days = take_number("days", arg, state);
        if (days > 36500)
            argp_error(state, "--days is '%.40s'; it must be at most 36500", arg);
        x->days = (uint32_t)days;
        return 0;
    }
    case OPT_CSV:
        x->csv = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void complete(struct arguments *a, struct argp_state *state)
{
    const struct audit_args *x = (const struct audit_args *)a;
    if (x->from && x->days)
        argp_error(state, "--from and --days both say where to begin: give one of them");
    if (x->from && x->to && x->from > x->to)
        argp_error(state, "--from %llu is after --to %llu", (unsigned long long)x->from,
                   (unsigned long long)x->to);
    if (x->csv && a->json)
        argp_error(state, "--csv and --json: give one of them");
}

/* ---- the audit ---- */

struct run {
    const struct audit_args *args;
    struct audit_chain *chain;
    struct audit_records *records;
    struct audit audit;
    struct audit_range range;
};

/* The end is the last final block unless the caller gave one; the beginning is a block, a number of
 * days before the end, or block 1. */
static int find_range(struct run *r, struct err *err)
{
    struct audit_chunk last;
    r->range.to = r->args->to ? r->args->to : r->audit.last;
    r->range.from = r->args->from ? r->args->from : 1;
    if (r->range.to > r->audit.last)
        return err_set(err, ERR_ARGUMENT, "block %llu is not final yet: the last final one is %llu",
                       (unsigned long long)r->range.to, (unsigned long long)r->audit.last);
    if (!r->audit.last || r->range.from > r->range.to)
        return err_set(err, ERR_ARGUMENT, "no block from %llu on is final: the last one is %llu",
                       (unsigned long long)r->range.from, (unsigned long long)r->audit.last);
    int rc = audit_chain_read(r->chain, &r->audit, r->range.to, 1, &last, err);
    r->range.to_ms = rc ? -1 : last.blocks[0].time_ms;
    audit_chunk_done(&last);
    if (rc == 0 && r->args->days)
        rc = audit_chain_at(r->chain, r->range.to_ms - (int64_t)r->args->days * DAY_MS, r->range.to,
                            &r->range.from, err);
    return rc;
}

static int compare(struct run *r, struct err *err)
{
    bool terminal = !r->args->csv && !r->args->args.json && isatty(STDERR_FILENO);
    for (uint64_t at = r->range.from; at <= r->range.to;) {
        struct audit_chunk c;
        uint64_t left = r->range.to - at + 1;
        size_t count = left < CHUNK ? (size_t)left : CHUNK;
        int rc = audit_chain_read(r->chain, &r->audit, at, count, &c, err);
        if (rc == 0)
            rc = audit_records_read(r->records, &r->audit, &c, err);
        if (rc == 0)
            audit_compare(&r->audit, &c);
        if (rc == 0 && at == r->range.from)
            r->range.from_ms = c.blocks[0].time_ms;
        audit_chunk_done(&c);
        if (rc)
            return rc;
        at += count;
        if (terminal)
            fprintf(stderr, "\rblock %llu of %llu ", (unsigned long long)(at - 1),
                    (unsigned long long)r->range.to);
    }
    if (terminal)
        fputs("\r\033[K", stderr);
    return audit_records_twice(r->records, &r->audit, r->range.from, r->range.to, err);
}

/* Extrinsics whose records retention removed look like those that were signed elsewhere. */
static int warn_of_removed(struct run *r, struct err *err)
{
    int64_t kept = -1;
    int rc = audit_records_kept(r->records, &kept, err);
    if (rc == 0 && kept >= 0 && r->range.from_ms >= 0 && r->range.from_ms < kept)
        fputs("txrelay: retention has removed records of blocks of this range: their extrinsics "
              "count as foreign. Begin later (--from, --days), or keep records for longer "
              "(retention.keep_days)\n",
              stderr);
    return rc;
}

static int carry_out(struct run *r, struct loop *l, const struct config *config, struct err *err)
{
    const struct config_file *f = config->file;
    uint8_t genesis[32];
    struct audit_chain_config chain = {.urls = (const char *const *)f->chain.endpoints,
                                       .url_count = f->chain.endpoints_count,
                                       .ca_file = f->chain.ca_file,
                                       .insecure = f->chain.insecure};
    r->records = audit_records_open(l, f->database.url, err);
    if (r->records)
        r->chain = audit_chain_open(l, &chain, err);
    if (!r->chain)
        return err->code;
    r->range.endpoint = audit_chain_url(r->chain);
    r->audit.late = LATE;
    if (audit_chain_head(r->chain, genesis, &r->audit.last, err) ||
        audit_records_accounts(r->records, r->args->args.word, (size_t)r->args->args.words, genesis,
                               &r->audit, err))
        return err->code;
    if (!r->audit.account_count)
        return err_set(err, ERR_ARGUMENT,
                       "the database has no account of the chain with genesis %s (%s): run txrelay "
                       "register, or give the endpoints of the chain that its accounts belong to",
                       hex_log(genesis, 32), r->range.endpoint);
    if (find_range(r, err) || compare(r, err))
        return err->code;
    return warn_of_removed(r, err);
}

static void print(const struct run *r)
{
    if (r->args->csv)
        audit_print_csv(&r->audit);
    else if (r->args->args.json)
        audit_print_json(&r->audit, &r->range);
    else
        audit_print_text(&r->audit, &r->range);
}

static int run_audit(int argc, char **argv)
{
    struct audit_args args = {0};
    struct config config;
    struct err err = {0};
    int rc = command_start(&command_audit, argc, argv, &args.args, true, &config);
    if (rc)
        return rc;
    if (!config.file->chain.endpoints_count) {
        fputs("txrelay: no chain node is given: use --endpoint, TXRELAY_ENDPOINTS or "
              "chain.endpoints in the config file\n",
              stderr);
        config_done(&config);
        return EXIT_USAGE;
    }
    struct run r = {.args = &args, .range = {.from_ms = -1, .to_ms = -1}};
    struct loop *l = loop_new();
    rc = carry_out(&r, l, &config, &err) ? cli_fail(&err) : EXIT_OK;
    if (rc == EXIT_OK)
        print(&r);
    if (rc == EXIT_OK && r.audit.finding_count)
        rc = EXIT_ELSE;
    audit_chain_close(r.chain);
    audit_records_close(r.records);
    loop_free(l);
    audit_done(&r.audit);
    config_done(&config);
    return rc;
}

static const struct argp_option options[] = {
    {"from", OPT_FROM, "BLOCK", 0, "the first block (default: 1)", 0},
    {"to", OPT_TO, "BLOCK", 0, "the last block (default: the last final one)", 0},
    {"days", OPT_DAYS, "N", 0, "begin as many days before the last block", 0},
    {"csv", OPT_CSV, NULL, 0, "the sums as CSV; findings go to standard error", 0},
    {"json", 'j', NULL, 0, "one JSON object", 0},
    {0}};

const struct command command_audit = {
    .name = "audit",
    .role = "txrelay_relay",
    .without = COMMAND_WITHOUT_NAME | COMMAND_WITHOUT_CONTROL,
    .run = run_audit,
    .what = "compare the final chain with what is on record, and add up fees",
    .options = options,
    .option = option,
    .complete = complete,
    .words_max = COMMAND_WORDS_MAX,
    .args_doc = "[ACCOUNT...]",
    .doc = "Read final blocks from a node and compare every extrinsic of the accounts with the "
           "records: block, hash, outcome and fee of each end, extrinsics without a record, nonces "
           "that are missing, transactions that took effect and are recorded otherwise. Adds up "
           "counts and fees by account, creator and day. Exit code 0: nothing is wrong; 4: there "
           "are findings; 1: the audit could not be carried out. The login needs the role "
           "txrelay_relay."};
