/* The chain's metadata for one command: from a file, or from a node. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hex.h"
#include "chain/node/node.h"
#include "cli.h"

enum { NODE_TIMEOUT_MS = 15000, FILE_MAX = 128 * 1024 * 1024, READ_STEP = 65536 };

/* ---- from a file ---- */

int cli_read(FILE *f, const char *name, struct buf *out, struct err *err)
{
    size_t n = 1;
    while (n > 0 && out->len <= FILE_MAX) {
        n = fread(buf_grow(out, READ_STEP), 1, READ_STEP, f);
        out->len += n;
    }
    if (ferror(f))
        return err_set(err, ERR_IO, "%s: it cannot be read", name);
    return out->len > FILE_MAX
               ? err_set(err, ERR_ARGUMENT, "%s: more than %d bytes", name, FILE_MAX)
               : 0;
}

/* The metadata's text in a node's answer to state_getMetadata; NULL: not such an answer. The text
 * lives as long as the JSON. */
static const char *answer_text(const json_t *answer)
{
    const json_t *result = json_is_object(answer) ? json_object_get(answer, "result") : answer;
    return json_string_value(result);
}

/* SCALE bytes as they are, as 0x text, or as a node's answer in JSON. */
static bool to_bytes(struct buf *file, struct buf *ret)
{
    const char *text = buf_str(file);
    size_t blank = strspn(text, " \t\r\n");
    size_t len = strcspn(text + blank, " \t\r\n");
    if (strncmp(text + blank, "0x", 2) == 0)
        return hex_decode(text + blank, len, ret);
    if (text[blank] != '{' && text[blank] != '"') {
        buf_put(ret, file->data, file->len);
        return true;
    }
    json_t *answer = json_loadb(text, file->len, JSON_DECODE_ANY, NULL);
    const char *hex = answer_text(answer);
    bool good = hex && hex_decode(hex, strlen(hex), ret);
    json_decref(answer);
    return good;
}

static int parse_file(const char *path, struct metadata **ret, struct err *err)
{
    struct buf file = {0}, bytes = {0};
    struct err why = {0};
    FILE *f = fopen(path, "rb");
    if (!f)
        return err_set(err, ERR_ARGUMENT, "metadata file '%.200s' cannot be opened", path);
    int rc = cli_read(f, path, &file, err);
    fclose(f);
    if (rc == 0 && !to_bytes(&file, &bytes))
        rc = err_set(err, ERR_ARGUMENT,
                     "metadata file '%.120s' holds neither SCALE bytes, nor 0x text, nor a node's "
                     "answer to state_getMetadata",
                     path);
    if (rc == 0 && metadata_parse(bytes.data, bytes.len, ret, &why))
        rc = err_set(err, ERR_METADATA, "metadata file '%.120s': %.150s", path, why.text);
    buf_done(&file);
    buf_done(&bytes);
    return rc;
}

/* ---- from a node ---- */

struct ask {
    struct node *node;
    struct loop_timer *timer;
    int (*use)(void *arg, const struct metadata *md);
    void *arg;
    int exit_code;
    struct err err;
    uint32_t left; /* endpoints that have not failed */
    bool done;
};

static void node_closed(void *arg)
{
    (void)arg;
}

static void end_ask(struct ask *a)
{
    if (a->done)
        return;
    a->done = true;
    a->timer = loop_timer_close(a->timer);
    node_close(a->node, node_closed, a);
}

/* The caller does not use the metadata after `use` returns, so the node may then drop it. */
static void on_ready(void *arg, const struct node_info *info)
{
    struct ask *a = arg;
    if (a->done)
        return;
    err_clear(&a->err);
    a->exit_code = a->use(a->arg, info->metadata);
    end_ask(a);
}

/* Report the reason as soon as every endpoint has failed. */
static void on_down(void *arg, const struct err *err)
{
    struct ask *a = arg;
    if (a->done)
        return;
    a->err = *err;
    if (--a->left == 0)
        end_ask(a);
}

static void on_late(void *arg)
{
    struct ask *a = arg;
    if (!a->err.code)
        err_set(&a->err, ERR_TIMEOUT, "no node answered within %d s", NODE_TIMEOUT_MS / 1000);
    end_ask(a);
}

static int ask_node(const struct config_chain *c, struct ask *a)
{
    uint8_t genesis[32];
    struct loop *l = loop_new();
    struct node_config config = {.urls = (const char *const *)c->endpoints,
                                 .url_count = c->endpoints_count,
                                 .ca_file = c->ca_file,
                                 .insecure = c->insecure,
                                 .call_timeout_ms = c->call_timeout_ms,
                                 .on_ready = on_ready,
                                 .on_down = on_down,
                                 .arg = a};
    a->left = c->endpoints_count;
    if (c->genesis && hex_decode_fixed(c->genesis, strlen(c->genesis), genesis, sizeof(genesis)))
        config.genesis = genesis;
    a->node = node_new(l, &config, &a->err);
    if (a->node) {
        a->timer = loop_timer_new(l, on_late, a);
        loop_timer_at(a->timer, loop_now_ms(l) + NODE_TIMEOUT_MS);
        node_open(a->node);
        loop_run(l);
    }
    loop_free(l);
    return a->err.code ? cli_fail(&a->err) : a->exit_code;
}

int cli_with_metadata(const char *file, const struct config *config,
                      int (*use)(void *arg, const struct metadata *md), void *arg)
{
    struct ask a = {.use = use, .arg = arg};
    struct metadata *md = NULL;
    if (!file && config->file->chain.endpoints_count == 0) {
        fputs("txrelay: no chain is given: use --node, --metadata, TXRELAY_ENDPOINTS or "
              "chain.endpoints in the config file\n",
              stderr);
        return EXIT_USAGE;
    }
    if (!file)
        return ask_node(&config->file->chain, &a);
    if (parse_file(file, &md, &a.err))
        return cli_fail(&a.err);
    int rc = use(arg, md);
    metadata_free(md);
    return rc;
}
