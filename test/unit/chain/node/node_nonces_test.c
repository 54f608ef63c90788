/* The largest answer about the largest number of accounts costs no more than to read it, in any
 * order and with any repetitions: the comparisons of keys are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "node_internal.h"
#include "support_node.h"

enum {
    ACCOUNTS = 10000,
    SLOW_ACCOUNTS = 500, /* where everything is slow (valgrind) */
    REPEATED = 380000,   /* times, a key of 162 characters makes a message of nearly 64 MiB */
    OTHERS = 2000,       /* comparisons for all else that the node tells, at most */
};

static struct fake_runtime polkadot;
static size_t accounts, compared;

bool __real_jv_equals(const struct jv *string, const char *text);
bool __wrap_jv_equals(const struct jv *string, const char *text);

bool __wrap_jv_equals(const struct jv *string, const char *text)
{
    compared++;
    return __real_jv_equals(string, text);
}

/* Which account of the question stands at this place of the answer. */
struct answer {
    size_t count;
    size_t (*at)(size_t i);
    unsigned longer; /* so many answers have more; then `count` is that of the question */
};

static size_t same(size_t i)
{
    return i;
}

static size_t backwards(size_t i)
{
    return accounts - 1 - i;
}

static size_t swapped(size_t i)
{
    return i ^ 1;
}

static size_t last(size_t i)
{
    (void)i;
    return accounts - 1;
}

/* Each account's nonce is its place in the question. */
static void put_change(struct buf *out, const json_t *keys, size_t at)
{
    struct buf info = {0};
    scale_put_u32(&info, (uint32_t)at);
    while (info.len < FAKE_ACCOUNT_LEN)
        buf_put_u8(&info, 0);
    buf_printf(out, "[\"%s\",\"", json_string_value(json_array_get(keys, at)));
    hex_put_0x(out, info.data, info.len);
    buf_puts(out, "\"]");
    buf_done(&info);
}

static void put_none(struct buf *out, const json_t *keys, size_t at)
{
    buf_puts(out, "[\"");
    buf_puts(out, json_string_value(json_array_get(keys, at)));
    buf_puts(out, "\",null]");
}

static bool answers(struct fake *f, struct ws_peer *p, const char *method, const json_t *id,
                    const json_t *params)
{
    struct answer *a = f->hook_arg;
    const json_t *keys = json_array_get(params, 0);
    struct buf text = {0};
    if (strcmp(method, "state_queryStorageAt") != 0)
        return false;
    if (a->count > accounts && !a->longer--)
        *a = (struct answer){accounts, same, 0};
    assert_int_equal(json_array_size(keys), accounts);
    buf_printf(&text,
               "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":[{\"block\":\"0x\",\"changes\":[",
               (long long)json_integer_value(id));
    for (size_t i = 0; i < a->count; i++) {
        if (i)
            buf_puts(&text, ",");
        if (a->count <= accounts)
            put_change(&text, keys, a->at(i));
        else
            put_none(&text, keys, a->at(i));
    }
    buf_puts(&text, "]}]}");
    ws_peer_send(p, buf_str(&text));
    buf_done(&text);
    return true;
}

static size_t right; /* accounts whose nonce is theirs */

static void on_block(struct node_rig *rig, const struct node_block *block)
{
    (void)rig;
    assert_int_equal(block->nonce_count, accounts);
    for (size_t i = 0; i < accounts; i++)
        right += block->nonces[i] == i;
}

static void begin(struct node_rig *rig, struct answer *a)
{
    rig_start(rig, 1, &polkadot);
    struct fake *f = &rig->fake[0];
    fake_add(f, NULL, NULL);
    f->finalized = f->best = 1;
    f->hook = answers;
    f->hook_arg = a;
    rig->on_block = on_block;
    rig_up(rig);
    for (size_t i = 0; i < accounts; i++) {
        uint8_t account[32] = {0};
        memcpy(account, &i, sizeof(i));
        node_watch_account(rig->node, account, sizeof(account));
    }
    compared = right = 0;
    node_follow(rig->node, 1);
}

static void each_order_costs_the_same(void **state)
{
    (void)state;
    const struct {
        size_t (*at)(size_t i);
        size_t right;
    } orders[] = {{same, accounts}, {backwards, accounts}, {swapped, accounts}, {last, 2}};
    for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
        struct node_rig rig;
        struct answer a = {accounts, orders[i].at, 0};
        begin(&rig, &a);
        rig_wait_seen(&rig, 1);
        assert_int_equal(right, orders[i].right); /* who is not named has none: nonce 0 */
        assert_in_range(compared, 0, accounts + OTHERS);
        assert_int_equal(rig.down, 0);
        rig_done(&rig);
    }
}

/* It is refused before it is read; the endpoint answers something else than it was asked. The block
 * is asked for again on the same connection. */
static void more_than_was_asked_for(void **state)
{
    (void)state;
    struct answer longer[] = {
        {accounts + 1, last, NODE_ATTEMPTS},
        {getenv("TXRELAY_VALGRIND") ? 2 * accounts : REPEATED, last, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(longer); i++) {
        struct node_rig rig;
        begin(&rig, &longer[i]);
        rig_wait_seen(&rig, 1);
        assert_in_range(compared, 0, accounts + OTHERS);
        assert_int_equal(right, accounts);
        assert_int_equal(rig.down, 0);
        rig_done(&rig);
    }
}

static int load(void **state)
{
    (void)state;
    accounts = getenv("TXRELAY_VALGRIND") ? SLOW_ACCOUNTS : ACCOUNTS;
    fake_runtime_load(&polkadot, "polkadot", 1002005, 26, "v14-polkadot");
    return 0;
}

static int unload(void **state)
{
    (void)state;
    fake_runtime_done(&polkadot);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_order_costs_the_same),
        cmocka_unit_test(more_than_was_asked_for),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
