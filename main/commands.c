/* The table of commands, in the order of the help. */
#include "command.h"

const struct command *const commands[] = {
    &command_run,    &command_migrate, &command_register, &command_enqueue,   &command_encode,
    &command_decode, &command_status,  &command_tail,     &command_wait,      &command_cancel,
    &command_retry,  &command_bump,    &command_history,  &command_accounts,  &command_blocked,
    &command_policy, &command_pause,   &command_resume,   &command_reconcile, &command_feed,
    &command_token,  &command_webhook, &command_top,      &command_keys,      &command_drain,
    &command_check,  &command_audit,   &command_health,   &command_metrics,   NULL};
