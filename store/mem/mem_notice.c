/* The notifications: 06_notify.sql (outbox_wake, leader_change, pending_tx_*) and the ends of
 * 16_finish.sql (pending_tx_removed). */
#include "base/check.h"
#include "mem/mem.h"

static void notify_all(struct mem_db *db, const struct mem_notice *n)
{
    for (struct list *p = db->sessions.next, *next; p != &db->sessions; p = next) {
        struct mem_session *s = CONTAINER_OF(p, struct mem_session, node);
        next = p->next;
        if ((s->channels & (unsigned)n->channel) && db->config.on_notice)
            db->config.on_notice(db->config.arg, s, n);
    }
}

static struct mem_notice notice_of(const struct mem_db *db, enum mem_channel channel,
                                   int32_t account)
{
    const struct mem_account *a = mem__account(db, account);
    return (struct mem_notice){
        .channel = channel, .account = account, .account_id = a->account_id, .nonce = -1};
}

void mem__notify_leader(struct mem_db *db, const struct mem_account *a)
{
    struct mem_notice n = notice_of(db, MEM_LEADER_CHANGE, a->number);
    n.holder = a->lead.holder;
    n.address = a->lead.holder_address;
    n.epoch = a->lead.epoch;
    notify_all(db, &n);
}

void mem__notify_wake(struct mem_db *db, const struct mem_account *a)
{
    struct mem_notice n = notice_of(db, MEM_OUTBOX_WAKE, a->number);
    notify_all(db, &n);
}

static struct mem_notice row_notice(const struct mem_db *db, enum mem_channel channel,
                                    const struct mem_row *row)
{
    struct mem_notice n = notice_of(db, channel, row->account);
    n.nonce = row->nonce;
    n.id = row->id;
    n.hash = row->hash;
    n.block_hash = row->in.known ? row->in.hash : NULL;
    n.state = mem_state_name(row->state);
    n.creator = row->creator;
    n.updated_us = row->updated_us;
    return n;
}

void mem__notify_row(struct mem_db *db, enum mem_channel channel, const struct mem_row *row)
{
    struct mem_notice n = row_notice(db, channel, row);
    n.error = row->error;
    notify_all(db, &n);
}

void mem__notify_refused(struct mem_db *db, const struct mem_row *row, const char *error)
{
    struct mem_notice n = row_notice(db, MEM_TX_REFUSED, row);
    n.error = error;
    notify_all(db, &n);
}

void mem__notify_removed(struct mem_db *db, const struct mem_finished *f)
{
    struct mem_notice n = notice_of(db, MEM_TX_REMOVED, f->account);
    n.nonce = f->nonce;
    n.id = f->requeued ? f->requeued : f->id;
    n.hash = f->has_hash ? f->hash : NULL;
    n.block_hash = f->in.known ? f->in.hash : NULL;
    n.state = mem_state_name(f->state);
    n.creator = f->creator;
    n.updated_us = f->finished_us;
    n.outcome = f->requeued ? NULL : mem_outcome_name(f->outcome);
    n.nonce_outcome = mem_outcome_name(f->outcome);
    n.error = f->error;
    notify_all(db, &n);
}
