/* Heights that were invented on a chain that makes no block for a while: no next head corrects
 * them. So the relay asks the node, and tells the owner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "node_internal.h"
#include "support_node.h"
#include "support_vectors.h"

static struct fake_runtime polkadot;

enum { HEAD = 3, INVENTED = 90 };

static bool is_invented(void *arg)
{
    const struct node_rig *rig = arg;
    const struct node_info *info = node_info(rig->node);
    return info && (info->best_number == INVENTED || info->finalized_number == INVENTED ||
                    info->best_known > INVENTED);
}

static bool is_corrected(void *arg)
{
    const struct node_rig *rig = arg;
    const struct node_info *info = node_info(rig->node);
    return rig->best && rig->best_head.number == HEAD && info && info->best_number == HEAD &&
           info->finalized_number == HEAD && info->best_known <= INVENTED;
}

static void best_head(struct node_rig *rig)
{
    fake_set_best(&rig->fake[0], INVENTED);
}

static void final_head(struct node_rig *rig)
{
    fake_set_finalized(&rig->fake[0], INVENTED);
}

static void told_by_a_relay(struct node_rig *rig)
{
    node_expect_height(rig->node, UINT64_C(1) << 40);
}

static void corrected_without_a_block(void **state)
{
    static void (*const lies[])(struct node_rig * rig) = {best_head, final_head, told_by_a_relay};
    (void)state;
    for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
        struct node_rig rig;
        rig_start(&rig, 1, &polkadot);
        struct fake *f = &rig.fake[0];
        for (int n = 0; n < INVENTED; n++)
            fake_add(f, NULL, NULL);
        f->best = f->finalized = HEAD;
        rig.config.silence_timeout_ms = rig_patience(60);
        rig_up(&rig);
        rig.best = 0;
        lies[i](&rig);
        if (!rig_wait(&rig, is_invented))
            fail_msg("lie %zu was not believed", i);
        f->best = f->finalized = HEAD;
        rig.node->heard.far.until_ms = rig.node->heard.near.until_ms = 0; /* the minute is over */
        node_expect_height(rig.node, HEAD); /* as with each heartbeat */
        if (!rig_wait(&rig, is_corrected))
            fail_msg("lie %zu was not corrected", i);
        rig_done(&rig);
    }
}

static bool is_told(void *arg)
{
    const struct node_rig *rig = arg;
    return rig->best && node_info(rig->node)->finalized_number == HEAD;
}

/* The owner follows no blocks, and no best head comes: the node tells it of a new final head all
 * the same. */
static void final_head_alone_is_told(void **state)
{
    (void)state;
    struct node_rig rig;
    rig_start(&rig, 1, &polkadot);
    struct fake *f = &rig.fake[0];
    for (int n = 0; n < HEAD; n++)
        fake_add(f, NULL, NULL);
    f->best = HEAD;
    f->finalized = HEAD - 1;
    rig_up(&rig);
    rig.best = 0;
    fake_set_finalized(f, HEAD);
    assert_true(rig_wait(&rig, is_told));
    assert_int_equal(rig.best_head.number, HEAD);
    rig_done(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(corrected_without_a_block),
                                       cmocka_unit_test(final_head_alone_is_told)};
    fake_runtime_load(&polkadot, "polkadot", 1002005, 26, "v14-polkadot");
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    fake_runtime_done(&polkadot);
    return rc;
}
