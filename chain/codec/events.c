/* System.Events of one block, reduced to the outcome of each extrinsic.
 *
 * The types measure every record; only the few events named in `watched` are read. Their fields are
 * found by type, not by position, because runtimes have renamed and reordered them over the
 * years. */
#include "chain/codec/events.h"

#include <stdio.h>
#include <string.h>

#include "chain/codec/codec.h"
#include "metadata_internal.h"

/* twox_128("System") and twox_128("Events") */
const char events_key[] = "0x26aa394eea5630e07c48ae0c9558cef780d41e5e16056765bc8461851072c9d7";

enum event_kind { EVENT_SUCCESS, EVENT_FAILED, EVENT_FEE, EVENT_INNER };

static const struct {
    const char *pallet;
    const char *event;
    enum event_kind kind;
} watched[] = {
    {"System", "ExtrinsicSuccess", EVENT_SUCCESS},
    {"System", "ExtrinsicFailed", EVENT_FAILED},
    {"TransactionPayment", "TransactionFeePaid", EVENT_FEE},
    {"Utility", "BatchInterrupted", EVENT_INNER},
    {"Utility", "ItemFailed", EVENT_INNER},
    {"Utility", "DispatchedAs", EVENT_INNER},
    {"Proxy", "ProxyExecuted", EVENT_INNER},
    {"Multisig", "MultisigExecuted", EVENT_INNER},
    {"Sudo", "Sudid", EVENT_INNER},
    {"Sudo", "SudoAsDone", EVENT_INNER},
};

/* One event: where its fields begin, and what was read from them. */
struct event {
    const struct metadata *md;
    const char *pallet;
    const struct type_variant *variant;
    struct scale_in fields;
};

static int bad_events(struct err *err, const char *what)
{
    return err_set(err, ERR_DECODE, "events: %s", what);
}

/* ---- DispatchError ---- */

/* Module { index, error }: two bytes in old runtimes; since 2022 an index and an error of four
 * bytes, of which the first counts. Both begin with the same two bytes. */
static void module_text(const struct metadata *md, struct scale_in in, char out[160])
{
    uint8_t pallet = scale_get_u8(&in);
    uint8_t error = scale_get_u8(&in);
    const char *pallet_name = metadata_pallet_name(md, pallet);
    const char *error_name = metadata_error_name(md, pallet, error);
    if (pallet_name && error_name)
        snprintf(out, 160, "%s.%s", pallet_name, error_name);
    else if (pallet_name)
        snprintf(out, 160, "%s.error %u", pallet_name, error);
    else
        snprintf(out, 160, "pallet %u.error %u", pallet, error);
}

/* The name of an enum's variant, without its fields. NULL: not an enum. */
static const char *peek_variant(const struct metadata *md, uint32_t type, struct scale_in in)
{
    const struct type *t = &md->types[metadata__unwrap(md, type)];
    if (t->kind != TYPE_VARIANT || scale_left(&in) == 0)
        return NULL;
    const struct type_variant *v = metadata__variant(md, t, scale_get_u8(&in));
    return v ? v->name : NULL;
}

static int error_text(const struct metadata *md, uint32_t type, struct scale_in *in, char out[160],
                      struct err *err)
{
    const struct type *t = &md->types[type];
    struct scale_in at = *in;
    int rc = codec_skip(md, type, in, err);
    if (rc != 0)
        return rc;
    const struct type_variant *v = metadata__variant(md, t, scale_get_u8(&at));
    if (!v)
        return bad_events(err, "no such dispatch error");
    if (strcmp(v->name, "Module") == 0) {
        module_text(md, at, out);
        return 0;
    }
    const char *detail = v->count == 1 ? peek_variant(md, md->fields[v->first].type, at) : NULL;
    snprintf(out, 160, "%s%s%s", v->name, detail ? "." : "", detail ? detail : "");
    return 0;
}

/* ---- the watched events ---- */

/* The type of the error in a Result whose error is a DispatchError; otherwise TYPE_NONE. */
static uint32_t result_error(const struct metadata *md, const struct type *t, uint8_t *ret_index)
{
    if (t->role != ROLE_RESULT)
        return TYPE_NONE;
    const struct type_variant *v = metadata__variant_named(md, t, "Err");
    if (!v || v->count != 1)
        return TYPE_NONE;
    uint32_t type = md->fields[v->first].type;
    *ret_index = v->index;
    return md->types[type].role == ROLE_DISPATCH_ERROR ? type : TYPE_NONE;
}

/* Find the event's DispatchError, bare or in a Result. *ret_failed false: it is Ok, or the event
 * has none. ret_index gets a u32 that comes before it (the index in an interrupted batch). */
static int find_error(struct event *e, char out[160], bool *ret_failed, int64_t *ret_index,
                      struct err *err)
{
    const struct metadata *md = e->md;
    struct scale_in in = e->fields;
    int rc = 0;
    *ret_failed = false;
    for (uint32_t i = 0; i < e->variant->count && rc == 0 && !*ret_failed; i++) {
        const struct type_field *f = &md->fields[e->variant->first + i];
        const struct type *t = &md->types[f->type];
        uint8_t err_index = 0;
        uint32_t error = t->role == ROLE_DISPATCH_ERROR ? f->type : result_error(md, t, &err_index);
        if (error == TYPE_NONE) {
            struct scale_in again = in;
            rc = codec_skip(md, f->type, &in, err);
            if (t->kind == TYPE_PRIMITIVE && t->prim == PRIM_U32)
                *ret_index = scale_get_u32(&again);
        } else if (t->role == ROLE_RESULT &&
                   *in.p != err_index) { /* a byte is there: the record was measured */
            rc = codec_skip(md, f->type, &in, err);
        } else {
            if (t->role == ROLE_RESULT)
                scale_get_u8(&in);
            rc = error_text(md, error, &in, out, err);
            *ret_failed = rc == 0;
        }
    }
    return rc;
}

/* The field of this name, or the second one: the event has always been { who, actual_fee, tip }. */
static int read_fee(struct event *e, struct dispatch_result *result, struct err *err)
{
    const struct metadata *md = e->md;
    struct scale_in in = e->fields;
    int rc = 0;
    for (uint32_t i = 0; i < e->variant->count && rc == 0; i++) {
        const struct type_field *f = &md->fields[e->variant->first + i];
        struct scale_in again = in;
        rc = codec_skip(md, f->type, &in, err);
        uint32_t size = md->types[f->type].plain_size; /* of the chain's type Balance */
        if (rc == 0 && (size == 16 || size == 8) &&
            (f->name ? strcmp(f->name, "actual_fee") == 0 : i == 1)) {
            result->fee = size == 16 ? scale_get_u128(&again) : scale_get_u64(&again);
            result->has_fee = true;
        }
    }
    return rc;
}

/* The first inner failure is the cause and is kept; later ones are wrappers around it. */
static int note_inner(struct event *e, struct dispatch_result *result, struct err *err)
{
    char text[160];
    bool failed = false;
    int64_t index = -1;
    int rc = find_error(e, text, &failed, &index, err);
    if (rc != 0 || !failed || result->outcome == DISPATCH_FAILED)
        return rc;
    char where[24] = "";
    if (index >= 0)
        snprintf(where, sizeof(where), "[%lld]", (long long)index);
    snprintf(result->error, sizeof(result->error), "%.30s.%.30s%s: %.70s", e->pallet,
             e->variant->name, where, text);
    result->outcome = DISPATCH_FAILED;
    result->inner = true;
    return 0;
}

static int note(struct event *e, enum event_kind kind, struct dispatch_result *result,
                struct err *err)
{
    bool failed = false;
    int64_t index = -1;
    switch (kind) {
    case EVENT_SUCCESS:
        if (result->outcome == DISPATCH_NONE) /* an inner failure stays */
            result->outcome = DISPATCH_OK;
        return 0;
    case EVENT_FAILED: /* the whole extrinsic was rolled back, so inner failures do not matter */
        result->outcome = DISPATCH_FAILED;
        result->inner = false;
        snprintf(result->error, sizeof(result->error), "unknown");
        return find_error(e, result->error, &failed, &index, err);
    case EVENT_FEE:
        return read_fee(e, result, err);
    case EVENT_INNER:
        return note_inner(e, result, err);
    }
    return 0;
}

/* ---- records ---- */

/* Is the event at `in` one of the watched ones? */
static bool is_watched(const struct metadata *md, uint32_t type, struct scale_in in,
                       struct event *ret_event, enum event_kind *ret_kind)
{
    const struct type *t = &md->types[type];
    if (t->kind != TYPE_VARIANT)
        return false;
    const struct type_variant *pallet = metadata__variant(md, t, scale_get_u8(&in));
    if (!pallet || pallet->count != 1)
        return false;
    const struct type *events = &md->types[md->fields[pallet->first].type];
    if (events->kind != TYPE_VARIANT)
        return false;
    const struct type_variant *v = metadata__variant(md, events, scale_get_u8(&in));
    for (size_t i = 0; v && i < sizeof(watched) / sizeof(watched[0]); i++)
        if (strcmp(v->name, watched[i].event) == 0 &&
            strcmp(pallet->name, watched[i].pallet) == 0) {
            *ret_event = (struct event){md, pallet->name, v, in};
            *ret_kind = watched[i].kind;
            return true;
        }
    return false;
}

/* The parts of EventRecord, by name: phase, event, topics. */
struct record_shape {
    const struct type_field *fields;
    uint32_t count;
    uint32_t phase, event; /* positions */
    uint8_t apply;         /* Phase::ApplyExtrinsic */
};

static int record_shape(const struct metadata *md, struct record_shape *shape, struct err *err)
{
    const struct type *t = metadata__type(md, md->type_event_record);
    if (!t || t->kind != TYPE_COMPOSITE)
        return err_set(err, ERR_METADATA, "the metadata does not say what System.Events holds");
    *shape = (struct record_shape){&md->fields[t->first], t->count, TYPE_NONE, TYPE_NONE, 0};
    for (uint32_t i = 0; i < t->count; i++) {
        const struct type_field *f = &shape->fields[i];
        if (f->name && strcmp(f->name, "phase") == 0)
            shape->phase = i;
        if (f->name && strcmp(f->name, "event") == 0)
            shape->event = i;
    }
    bool whole =
        shape->phase != TYPE_NONE && shape->event != TYPE_NONE && shape->phase < shape->event;
    const struct type *phase = whole ? &md->types[shape->fields[shape->phase].type] : NULL;
    const struct type_variant *apply = phase && phase->kind == TYPE_VARIANT
                                           ? metadata__variant_named(md, phase, "ApplyExtrinsic")
                                           : NULL;
    if (!apply || apply->count != 1 || md->types[md->fields[apply->first].type].plain_size != 4)
        return err_set(err, ERR_METADATA,
                       "the metadata's EventRecord has not the known form {phase, event, ..}");
    shape->apply = apply->index;
    return 0;
}

static int read_record(const struct metadata *md, const struct record_shape *shape,
                       struct scale_in *in, struct dispatch_result *results, size_t count,
                       struct err *err)
{
    struct scale_in phase = {0};
    struct scale_in event = {0};
    for (uint32_t i = 0; i < shape->count; i++) {
        if (i == shape->phase)
            phase = *in;
        if (i == shape->event)
            event = *in;
        int rc = codec_skip(md, shape->fields[i].type, in, err);
        if (rc != 0)
            return rc;
    }
    if (scale_get_u8(&phase) != shape->apply)
        return 0;
    uint32_t extrinsic = scale_get_u32(&phase);
    struct event e;
    enum event_kind kind;
    if (extrinsic >= count || !is_watched(md, shape->fields[shape->event].type, event, &e, &kind))
        return 0;
    return note(&e, kind, &results[extrinsic], err);
}

int events_decode(const struct metadata *md, const uint8_t *bytes, size_t len,
                  struct dispatch_result *results, size_t count, struct err *err)
{
    struct record_shape shape = {0};
    struct scale_in in = scale_in_of(bytes, len);
    memset(results, 0, count * sizeof(*results));
    int rc = record_shape(md, &shape, err);
    if (rc != 0)
        return rc;
    size_t n = scale_get_len(&in);
    if (in.bad)
        return bad_events(err, "the count of records does not decode");
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = read_record(md, &shape, &in, results, count, err);
        if (rc != 0)
            return err_set(err, rc, "events: record %zu of %zu: %.200s", i, n,
                           err ? err->text : "");
    }
    return scale_left(&in) ? bad_events(err, "bytes are left over behind the last record") : 0;
}
