/* Events as lines. Texts come from applications and nodes, so terminal control characters are
 * replaced. */
#include <string.h>

#include "base/hex.h"
#include "listen/listen.h"
#include "time_text.h"

static void put_json_text(struct buf *out, const char *s)
{
    buf_put_u8(out, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            buf_printf(out, "\\u%04x", c);
        else if (c == 0xc2 && (unsigned char)s[1] >= 0x80 && (unsigned char)s[1] <= 0x9f)
            buf_printf(out, "\\u%04x", (unsigned char)*++s); /* U+0080 to U+009F */
        else
            buf_put_u8(out, c);
    }
    buf_put_u8(out, '"');
}

static void member_text(struct buf *out, const char *name, const char *value)
{
    if (!value || !value[0])
        return;
    buf_printf(out, ",\"%s\":", name);
    put_json_text(out, value);
}

static void member_hex(struct buf *out, const char *name, const void *data, size_t len)
{
    buf_printf(out, ",\"%s\":\"", name);
    hex_put_0x(out, data, len);
    buf_put_u8(out, '"');
}

static void member_time(struct buf *out, const char *name, int64_t us)
{
    if (!us)
        return;
    buf_printf(out, ",\"%s\":\"", name);
    listen__time_put(out, us);
    buf_put_u8(out, '"');
}

void listen_format_gap_json(int64_t from_us, int64_t to_us, struct buf *out)
{
    buf_puts(out, "{\"event\":\"gap\"");
    member_time(out, "from", from_us);
    member_time(out, "to", to_us);
    member_time(out, "position", from_us);
    buf_put_u8(out, '}');
}

void listen_format_state_json(int64_t position_us, uint64_t age_ms, const struct err *err,
                              struct buf *out)
{
    buf_printf(out, "{\"event\":\"%s\"", err ? "stale" : "live");
    if (err) {
        buf_printf(out, ",\"age_ms\":%llu", (unsigned long long)age_ms);
        member_text(out, "code", err_name(err->code));
        member_text(out, "text", err->text);
    }
    member_time(out, "position", position_us);
    buf_put_u8(out, '}');
}

void listen_format_json(const struct listen_event *ev, struct buf *out)
{
    buf_printf(out, "{\"event\":\"%s\"", listen_kind_name(ev->kind));
    member_text(out, "account", ev->alias);
    if (ev->account_id_len)
        member_hex(out, "account_id", ev->account_id, ev->account_id_len);
    if (ev->id)
        buf_printf(out, ",\"id\":%lld", (long long)ev->id);
    if (ev->nonce >= 0)
        buf_printf(out, ",\"nonce\":%lld", (long long)ev->nonce);
    member_text(out, "state", ev->state);
    member_text(out, "outcome", ev->outcome);
    if (ev->has_hash)
        member_hex(out, "hash", ev->hash, 32);
    if (ev->has_block)
        member_hex(out, "block_hash", ev->block_hash, 32);
    if (ev->block_number >= 0)
        buf_printf(out, ",\"block_number\":%lld", (long long)ev->block_number);
    member_text(out, "error", ev->error);
    member_text(out, "creator_id", ev->creator);
    member_text(out, "traceparent", ev->trace);
    member_time(out, "updated_at", ev->updated_at_us);
    member_time(out, "position", ev->position_us);
    buf_printf(out, ",\"from_scan\":%s}", ev->from_scan ? "true" : "false");
}

/* C0, DEL and the two-byte C1 controls of UTF-8. */
static void put_word(struct buf *out, const char *before, const char *value)
{
    if (!value || !value[0])
        return;
    buf_puts(out, before);
    buf_put_plain(out, value, strlen(value));
}

void listen_format_human(const struct listen_event *ev, struct buf *out)
{
    if (ev->updated_at_us)
        listen__time_put(out, ev->updated_at_us);
    else
        buf_puts(out, "-");
    put_word(out, " ", ev->alias);
    if (ev->id)
        buf_printf(out, " id=%lld", (long long)ev->id);
    else
        buf_puts(out, " filler");
    if (ev->nonce >= 0)
        buf_printf(out, " nonce=%lld", (long long)ev->nonce);
    buf_printf(out, " %s", listen_kind_name(ev->kind));
    put_word(out, " ", ev->state);
    put_word(out, " outcome=", ev->outcome);
    if (ev->has_hash) {
        buf_puts(out, " hash=");
        hex_put_0x(out, ev->hash, 32);
    }
    if (ev->has_block) {
        buf_puts(out, " block=");
        hex_put_0x(out, ev->block_hash, 32);
    }
    if (ev->block_number >= 0)
        buf_printf(out, " height=%lld", (long long)ev->block_number);
    put_word(out, " creator=", ev->creator);
    put_word(out, " trace=", ev->trace);
    if (ev->error && ev->error[0]) {
        buf_puts(out, " error=\"");
        buf_put_plain(out, ev->error, strlen(ev->error));
        buf_puts(out, "\"");
    }
}
