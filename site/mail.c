/* Messages: the core's with the bytes that they need, and the links' with what this relay's host
 * reads from the bytes that came. What a message says about bytes that it brings is not used. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "room_internal.h"

/* ---- to other sites ---- */

static bool brings_bytes(enum site_message_type type)
{
    return type == SITE_MSG_DELEGATE || type == SITE_MSG_PROPOSE || type == SITE_MSG_DENY;
}

/* false: what the message is about is not kept, so there is nothing to say about it. */
static bool fill(const struct site_account *a, const struct site_message *m,
                 const struct site_item *from, struct site_wire_item *ret)
{
    *ret = (struct site_wire_item){.item = *from};
    if (m->type == SITE_MSG_DELEGATE) {
        const struct kept_call *call = site__call(a, from->sender, from->id);
        if (!call)
            return false;
        ret->call = call->data;
        ret->call_len = call->len;
        ret->terms = call->terms;
    }
    if (!from->has_bytes || !brings_bytes(m->type))
        return true;
    /* Of a denial the bytes that are in the way, not those that it denies. */
    if (m->type == SITE_MSG_DENY && from->reason != SITE_REASON_LIVE)
        return true;
    const struct kept_bytes *b = site__bytes(a, &from->bytes.hash);
    if (b) {
        ret->extrinsic = b->data;
        ret->extrinsic_len = b->len;
    }
    return b || m->type == SITE_MSG_DENY;
}

void site__post(struct site_account *a, const struct site_message *m)
{
    struct site_wire_item *items = xcalloc(m->count + 1, sizeof(*items));
    struct site_wire_message out = {.committee = a->committee, .m = *m, .items = items};
    memcpy(out.account, a->id, sizeof(out.account));
    out.m.items = NULL;
    out.m.count = 0;
    for (size_t i = 0; i < m->count; i++)
        out.m.count += fill(a, m, &m->items[i], &items[out.m.count]);
    if (out.m.count || !m->count)
        site_links_send(a->room->links, a->peers[m->to], &out);
    free(items);
}

/* ---- from other sites ---- */

/* Bytes that came: what the host reads from them. */
static void read_bytes(struct site_account *a, const struct site_wire_item *from,
                       const struct kept_call *call, struct site_item *ret)
{
    struct site_signed s = {.data = from->extrinsic, .len = from->extrinsic_len};
    uint64_t own = ret->sender == a->self ? ret->id : 0;
    ret->valid = call && a->room->ops->read(a->room->arg, a, own, from->extrinsic,
                                            from->extrinsic_len, call->data, call->len, &s.bytes);
    ret->valid = ret->valid && s.bytes.key < a->members;
    if (!ret->valid)
        return;
    ret->bytes = s.bytes;
    site__cache_bytes(a, &s);
}

/* Bytes that are named: what is known of them here. */
static void look_up(const struct site_account *a, struct site_item *ret)
{
    const struct kept_bytes *b = site__bytes(a, &ret->bytes.hash);
    ret->valid = b != NULL;
    if (b)
        ret->bytes = b->bytes;
}

/* false: there is no room for its call. Its sender asks again. */
static bool take(struct site_account *a, uint32_t from, enum site_message_type type,
                 const struct site_wire_item *item, struct site_item *ret)
{
    *ret = item->item;
    /* Its own transactions are all that a site may delegate. */
    bool theirs = item->item.sender == from;
    if (type == SITE_MSG_DELEGATE && theirs &&
        !site__cache_call(a, from, ret->id, item->call, item->call_len, &item->terms))
        return false;
    if (item->extrinsic) {
        bool ours = type == SITE_MSG_PROPOSE ? ret->sender == a->self : theirs;
        read_bytes(a, item, ours ? site__call(a, ret->sender, ret->id) : NULL, ret);
    } else if (ret->has_bytes && type != SITE_MSG_HEARTBEAT && type != SITE_MSG_HANDOVER &&
               type != SITE_MSG_CLOSED) {
        look_up(a, ret);
    }
    return true;
}

static int member_of(const struct site_account *a, size_t peer)
{
    for (uint32_t i = 0; i < a->members; i++)
        if (i != a->self && a->peers[i] == peer)
            return (int)i;
    return SITE_NOBODY;
}

bool site__on_mail(void *arg, size_t peer, const struct site_wire_message *m)
{
    struct site_room *r = arg;
    struct site_account *a = site__account(r, m->account);
    int from = a ? member_of(a, peer) : SITE_NOBODY;
    if (from == SITE_NOBODY || m->committee != a->committee) {
        site_links_refuse(r->links, a ? SITE_WIRE_OTHER_COMMITTEE : SITE_WIRE_UNKNOWN_ACCOUNT, "");
        return false;
    }
    if (!a->leads) {
        site_links_refuse(r->links, SITE_WIRE_NOT_LEADER, r->ops->leader(r->arg, a));
        return false;
    }
    struct site_item *items = xcalloc(m->m.count + 1, sizeof(*items));
    struct site_event ev = {.type = SITE_EV_MESSAGE, .message = m->m};
    ev.message.count = 0;
    for (size_t i = 0; i < m->m.count; i++)
        ev.message.count +=
            take(a, (uint32_t)from, m->m.type, &m->items[i], &items[ev.message.count]);
    ev.message.from = (uint32_t)from;
    ev.message.to = a->self;
    ev.message.items = items;
    site__step(a, &ev);
    free(items);
    return true;
}

/* ---- questions ---- */

void site__settle(struct site_account *a, const struct site_config *config)
{
    const struct site_config c = site_config_filled(config);
    a->settings = (struct site_wire_settings){.sites = a->names,
                                              .count = a->members,
                                              .own_keys = c.own_keys,
                                              .sticky = c.sticky,
                                              .silence_is_down = c.silence_is_down,
                                              .range_blocks = c.range_blocks,
                                              .approvals = c.approvals,
                                              .era_blocks = c.era_blocks};
    memcpy(a->settings.account, a->id, sizeof(a->id));
}

bool site__on_question(void *arg, struct site_wire_settings *ret)
{
    const struct site_account *a = site__account(arg, ret->account);
    if (a)
        *ret = a->settings;
    return a != NULL;
}
