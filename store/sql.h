/* The statements, by name: store/sql/<verb_noun>.sql, embedded by CMake. Private to store/. */
#ifndef STORE_SQL_H
#define STORE_SQL_H

/* X(id, file without .sql) */
#define SQL_TABLE(X)                                                                                         \
    X(PROBE_SESSION, "probe_session")                                                                        \
    X(SET_SESSION, "set_session")                                                                            \
    X(CHECK_SCHEMA, "check_schema")                                                                          \
    X(REGISTER_ACCOUNT, "register_account")                                                                  \
    X(TAKE_LOCK, "take_lock")                                                                                \
    X(DROP_LOCK, "drop_lock")                                                                                \
    X(ARM_DOORBELL, "arm_doorbell")                                                                          \
    X(DISARM_DOORBELL, "disarm_doorbell")                                                                    \
    X(CLAIM_ACCOUNTS, "claim_accounts")                                                                      \
    X(RENEW_LEASE, "renew_lease")                                                                            \
    X(RENEW_CLAIMS, "renew_claims")                                                                          \
    X(RELEASE_CLAIM, "release_claim")                                                                        \
    X(EVICT_HOLDER, "evict_holder")                                                                          \
    X(SCAN_CLAIMS, "scan_claims")                                                                            \
    X(BEAT_MEMBER, "beat_member")                                                                            \
    X(READ_SNAPSHOT, "read_snapshot")                                                                        \
    X(READ_OUTBOX, "read_outbox")                                                                            \
    X(LOOK_AROUND, "look_around")                                                                            \
    X(FIND_DUE, "find_due")                                                                                  \
    X(ADMIT_ROWS, "admit_rows")                                                                              \
    X(ADMIT_SIGNED, "admit_signed")                                                                          \
    X(NOTE_SIGNED, "note_signed")                                                                            \
    X(ATTEMPT_ROWS, "attempt_rows")                                                                          \
    X(FILL_NONCES, "fill_nonces")                                                                            \
    X(RECORD_STATES, "record_states")                                                                        \
    X(FINISH_ROWS, "finish_rows")                                                                            \
    X(REJECT_ROWS, "reject_rows")                                                                            \
    X(REQUEUE_ROWS, "requeue_rows")                                                                          \
    X(SET_NONCE, "set_nonce")                                                                                \
    X(PAUSE_ACCOUNT, "pause_account")                                                                        \
    X(ADOPT_ROWS, "adopt_rows")                                                                              \
    X(ENQUEUE_CALL, "enqueue_call")                                                                          \
    X(CANCEL_ONE, "cancel_one")                                                                              \
    X(BUMP_ONE, "bump_one")                                                                                  \
    X(RESUME_ACCOUNT, "resume_account")                                                                      \
    X(ENSURE_PARTITIONS, "ensure_partitions")                                                                \
    X(DROP_PARTITIONS, "drop_partitions")                                                                    \
    X(CLEAN_ACCOUNT, "clean_account")                                                                        \
    X(BEGIN_MIGRATION, "begin_migration")                                                                    \
    X(FIND_SCHEMA, "find_schema")                                                                            \
    X(RECORD_MIGRATION, "record_migration")

enum sql_id {
#define X(id, file) SQL_##id,
    SQL_TABLE(X)
#undef X
        SQL_COUNT
};

const char *sql__text(enum sql_id id);
const char *sql__name(enum sql_id id); /* also the name under which it is prepared */

#endif
