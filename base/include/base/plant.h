/* Planted faults prove that the simulator can fail. Its second build compiles the product with
 * TXRELAY_PLANT and enables one of these at a time. In all other builds PLANTED is the constant
 * false and leaves no trace. A hook stands at the place that enforces the rule it breaks. */
#ifndef BASE_PLANT_H
#define BASE_PLANT_H

/* X(NAME, name, what is wrong) */
#define PLANT_TABLE(X)                                                                             \
    X(SEND_UNCOMMITTED, "send-uncommitted", "bytes are sent before their admission is committed")  \
    X(NONCE_REUSE, "nonce-reuse",                                                                  \
      "after a restart nonces begin at the chain's, whatever is on record")                        \
    X(NO_FENCE, "no-fence", "one of the leader's writes does not compare the epoch")               \
    X(FILL_LIVE, "fill-live", "a filler takes a nonce whose bytes may still be included")          \
    X(TRUST_WATCH, "trust-watch", "a watch's finalized ends a transaction")                        \
    X(ANCHOR_BEST, "anchor-best", "an era is anchored on a block that is not final")               \
    X(UNKNOWN_FAILED, "unknown-failed", "a write without an answer counts as not done")            \
    X(UNKNOWN_DONE, "unknown-done", "a write without an answer counts as done")                    \
    X(RESEND_RENONCE, "resend-renonce", "no answer from the node: sent again at a new nonce")      \
    X(GATE_SKIPPED, "gate-skipped", "the gate is not checked when bytes leave")                    \
    X(RENEW_ANY, "renew-any", "a renewal does not compare the epoch")                              \
    X(LEASE_LATE, "lease-late",                                                                    \
      "a claim joins the lease with its first renewal, which has to write the row for that")       \
    X(LOCK_STACKED, "lock-stacked", "a held lock is taken again, and released once")               \
    X(CLAIM_ALWAYS, "claim-always", "a claim is granted without lock or expiry")                   \
    X(PROBE_ORDER, "probe-order", "a probe asks the nonce first and the pool second")              \
    X(SKIP_HEIGHT, "skip-height", "a finalized height that was skipped is not fetched")            \
    X(FOLLOW_BACK, "follow-back", "a reader receives an older state after a newer one")            \
    X(FOLLOW_ANYBODY, "follow-anybody", "a reader believes what any session notifies")             \
    X(FOLLOW_NO_END, "follow-no-end", "a reader does not look up how a transaction ended")         \
    X(WAKE_LOST, "wake-lost", "a leader falls asleep without another poll")                        \
    X(CANCEL_ADMIT, "cancel-admit", "a cancelled transaction gets a nonce")                        \
    X(FINISH_AGAIN, "finish-again", "an end is stored a second time")                              \
    X(EVICT_HEALTHY, "evict-healthy", "a session is evicted although its claim is in force")       \
    X(GHOST_WRITE, "ghost-write",                                                                  \
      "a write that may be under way is not excluded before the table is read")                    \
    X(REAP_UNSEEN, "reap-unseen",                                                                  \
      "a transaction that seems lost is not searched for in blocks that are not final")            \
    X(REORG_MISSED, "reorg-missed",                                                                \
      "a row in a block is not probed again when its nonce becomes free")                          \
    X(TIP_UNCAPPED, "tip-uncapped", "a tip is raised above its cap")                               \
    X(DEADLINE_LONG, "deadline-long", "an era reaches beyond the deadline's block")                \
    X(HOLD_FORGOTTEN, "hold-forgotten",                                                            \
      "a new leader continues although the account is suspended")                                  \
    X(RETRY_INNER, "retry-inner", "a call whose inner failure had effects is retried")             \
    X(REFUSAL_UNTOLD, "refusal-untold", "a refusal is not stored")                                 \
    X(REQUEUE_STOPPED, "requeue-stopped", "a cancelled transaction gets another nonce")            \
    X(REQUEUE_EARLY, "requeue-early",                                                              \
      "a transaction whose nonce a pool gives to another is requeued at once")                     \
    X(RETRY_ENDLESS, "retry-endless", "a dispatch error is retried without limit")                 \
    X(REFUSAL_LOST, "refusal-lost", "a refusal replaces one that is not stored yet")               \
    X(FILLER_CHEAP, "filler-cheap", "a filler in a transaction's place does not pay more")         \
    X(FILLER_COUNTS, "filler-counts", "a filler that got in counts as the transaction's success")  \
    X(BUMP_FORGOTTEN, "bump-forgotten", "a leader that loaded the row ignores a bump")             \
    X(SKIP_NEVER, "skip-never", "the first transaction in line is never given up")                 \
    X(PAYMENT_HAMMERED, "payment-hammered",                                                        \
      "an account that cannot pay is tried more than once a block")                                \
    X(ORDER_ASSUMED, "order-assumed", "a suspension ends without an operator's order")             \
    X(VERSION_IGNORED, "version-ignored",                                                          \
      "a new transaction_version is signed for as the old one was")                                \
    X(REAPED_SENDS, "reaped-sends", "bytes leave although the account was reaped")                 \
    X(REAP_MISSED, "reap-missed", "a final nonce that goes down is ignored")                       \
    X(LIFE_EARLY, "life-early", "a new life begins while bytes of the former one can be included") \
    X(SIGNED_ANEW, "signed-anew", "a presigned transaction is signed again")                       \
    X(SIGNED_EARLY, "signed-early",                                                                \
      "a presigned transaction ends when its era is over at the best block")                       \
    X(END_NOT_OVERTAKEN, "end-not-overtaken",                                                      \
      "a row that ended unused stays so when a later block uses its nonce")                        \
    X(RUNTIME_EARLY, "runtime-early",                                                              \
      "a presigned transaction ends when a node is under a later runtime than it was signed for")  \
    X(SIGNED_UNSEEN, "signed-unseen",                                                              \
      "a presigned transaction's nonce is used, and it is not checked by which bytes")             \
    X(ERROR_TRUSTED, "error-trusted",                                                              \
      "an error of a node or gateway proves that no pool has the bytes")                           \
    X(SILENCE_TRUSTED, "silence-trusted",                                                          \
      "a connection that is lost after the write proves the same")                                 \
    X(FULL_TRUSTED, "full-trusted", "a pool that drops the bytes at once proves the same")         \
    X(REFUSAL_BELIEVED, "refusal-believed", "a refusal as invalid proves the same")                \
    X(NONCE_FREED, "nonce-freed", "an error of a node or gateway frees the nonce")                 \
    X(RECORD_UNSENT, "record-unsent",                                                              \
      "a successor takes bytes without a status as never submitted")                               \
    X(WAIT_FORGOTTEN, "wait-forgotten",                                                            \
      "a successor does not go on with the wait after lost commits")                               \
    X(WAIT_SHORT, "wait-short", "the wait after lost commits ends an era too early")               \
    X(WAIT_BEHIND, "wait-behind",                                                                  \
      "the wait is counted from the final block of a node that is behind")                         \
    X(WAIT_EXPIRED, "wait-expired", "a deadline ends a transaction during the wait")               \
    X(WAIT_CANCELLED, "wait-cancelled", "a transaction is cancelled at once during the wait")      \
    X(ADOPTED_ONCE, "adopted-once",                                                                \
      "the search for lost commits ends with what was found first, of which a retry may be left")  \
    X(ADOPTED_MEMORY, "adopted-memory",                                                            \
      "that more may be left to adopt is known to the leader alone that adopted something")        \
    X(FORMER_LIFE, "former-life",                                                                  \
      "a block of an account's former life ends what has the nonce now")                           \
    X(BEHIND_PROBED, "behind-probed", "a node that is behind what another one had is asked")       \
    X(BLOCKS_ONLY, "blocks-only", "what waits is tried again only when a block comes")             \
    X(ILLEGAL_STATE, "illegal-state",                                                              \
      "a row changes its state by a transition that the table does not have")                      \
    X(FOREIGN_BELIEVED, "foreign-believed",                                                        \
      "an extrinsic that names our account counts whatever its signature")                         \
    X(DECODED_ONLY, "decoded-only",                                                                \
      "bytes of ours in a block that the node cannot decode are not recognised")                   \
    X(UNSIGNABLE_TRIED, "unsignable-tried",                                                        \
      "an account for which nothing can be signed is tried again and again")                       \
    X(POOLED_BELIEVED, "pooled-believed",                                                          \
      "a pooled extrinsic that names our account is adopted whatever its signature")               \
    X(HELD_TAKEN, "held-taken", "a row that an open transaction has cancelled gets a nonce")       \
    X(LOCK_ANYBODYS, "lock-anybodys", "a leadership lock is left to a session that is no relay's") \
    X(HEIGHT_KEPT, "height-kept", "a height that some node invented is waited for")                \
    X(HEIGHT_TRUSTED, "height-trusted", "a transaction ends by a height that was never read")      \
    X(UNREAD_EMPTY, "unread-empty",                                                                \
      "a final block that no endpoint has counts as one without extrinsics")                       \
    X(NONCE_BELIEVED, "nonce-believed", "an account nonce that cannot be is stored")               \
    X(REUSE_SENT, "reuse-sent", "the nonce of a stopped transaction that was sent is given again") \
    X(HEAD_KEPT_OUT, "head-kept-out",                                                              \
      "a pool that our later nonces fill has no room for the missing one, for ever")               \
    X(LATER_IMMORTAL, "later-immortal",                                                            \
      "without era_period, bytes behind another nonce have no era either")                         \
    X(BAN_KEPT, "ban-kept",                                                                        \
      "bytes without an era that a pool has banned are signed once more, and are the same")        \
    X(SILENT, "silent", "a leader that makes no progress does not say why")                        \
    X(NONCE_ONCE, "nonce-once", "one answer about the account's nonce suffices for everything")    \
    X(STUCK_KEPT, "stuck-kept", "a leader whose endpoint serves nothing keeps its accounts")       \
    X(ILLEGAL_PHASE, "illegal-phase", "the manager leads without having asked pool and nonce")

/* Those of the core of a feed, which has a simulation of its own (test/unit/feed). */
#define FEED_PLANT_TABLE(X)                                                                        \
    X(FEED_LIAR_FIRST, "feed-liar-first", "a publisher whose copy was bad may try again at once")  \
    X(FEED_SKIP_UNTOLD, "feed-skip-untold", "a loser is not told to skip")                         \
    X(FEED_STALE_KEPT, "feed-stale-kept", "a winner that stalls is never replaced")                \
    X(FEED_GAP, "feed-gap", "a number far ahead is taken as the next one")                         \
    X(FEED_LOSER_ENDED, "feed-loser-ended", "a loser that pipelines is ended")                     \
    X(FEED_UNVERIFIED, "feed-unverified", "a copy is stored without verification")                 \
    X(FEED_ACK_EARLY, "feed-ack-early", "a batch is acknowledged before it is stored")             \
    X(FEED_UNKNOWN_DONE, "feed-unknown-done", "a store without an answer counts as done")          \
    X(FEED_DEAD_WINNER, "feed-dead-winner", "a winner whose stream is closed keeps the number")    \
    X(FEED_NO_TIMEOUT, "feed-no-timeout", "a store may take for ever")                             \
    X(FEED_LATE_BELIEVED, "feed-late-believed",                                                    \
      "the answer about a lost copy counts for the one that replaced it")

/* Those of the core of the sites, which has a simulation of its own (test/unit/site): the variants
 * that docs/design.md refutes. */
#define SITE_PLANT_TABLE(X)                                                                        \
    X(SITE_EARLY, "site-early", "a grant leaves before it is committed")                           \
    X(SITE_BY_ID, "site-by-id", "a grant names the transaction, not the bytes")                    \
    X(SITE_SILENCE, "site-silence", "another nonce is granted because nobody answers")             \
    X(SITE_UNGRANTED, "site-ungranted", "bytes are dispatched that were not granted")              \
    X(SITE_UNFINAL, "site-unfinal", "bytes count as dead by a block that is not final")            \
    X(SITE_PER_DELEGATE, "site-per-delegate",                                                      \
      "a second delegate's bytes are granted while the first one's can be included")               \
    X(SITE_FORGETFUL, "site-forgetful", "a successor does not read what was granted")              \
    X(SITE_TOLD, "site-told", "lost commits: the members' answers end the wait")                   \
    X(SITE_NO_WAIT, "site-no-wait", "lost commits: nobody waits")                                  \
    X(SITE_WAIT_BEHIND, "site-wait-behind",                                                        \
      "lost commits: the wait is counted from a node that is behind")                              \
    X(SITE_WAIT_MEMORY, "site-wait-memory", "lost commits: the wait is not on record")             \
    X(SITE_ERA_LONG, "site-era-long", "bytes are granted that live longer than the bound")         \
    X(SITE_HASH_ONLY, "site-hash-only",                                                            \
      "lost commits: blocks are searched for the hashes that are left alone")                      \
    X(SITE_CANCEL_BLIND, "site-cancel-blind",                                                      \
      "lost commits: a transaction without a grant is cancelled at once")                          \
    X(SITE_SELF_FREE, "site-self-free",                                                            \
      "a site signs its own transaction while another one's bytes can be included")                \
    X(SITE_NONCE_ONLY, "site-nonce-only",                                                          \
      "the same nonce of another key counts as the same place")                                    \
    X(SITE_BEST_END, "site-best-end", "a transaction ends by the best block")                      \
    X(SITE_IMMORTAL, "site-immortal", "immortal bytes are granted")                                \
    X(SITE_ABOVE, "site-above", "the line begins above a hole, and nobody fills it")               \
    X(SITE_STICKY_ID, "site-sticky-id", "a transaction whose bytes are dead counts as known")

enum plant {
    PLANT_NONE,
#define X(NAME, name, text) PLANT_##NAME,
    PLANT_TABLE(X)
#undef X
        PLANT_COUNT,
#define X(NAME, name, text) PLANT_##NAME,
    FEED_PLANT_TABLE(X)
#undef X
        FEED_PLANT_END,
#define X(NAME, name, text) PLANT_##NAME,
    SITE_PLANT_TABLE(X)
#undef X
        SITE_PLANT_END
};

#ifdef TXRELAY_PLANT
extern enum plant plant;
#define PLANTED(NAME) (plant == PLANT_##NAME)
#elif defined(TXRELAY_NO_PLANT) /* one object for both builds, see compile_once of layer.cmake */
#define PLANTED(NAME) a_hook_is_new_in_this_file_so_run_cmake_again
#else
#define PLANTED(NAME) 0
#endif

#endif
