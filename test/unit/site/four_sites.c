#include "four_sites.h"

#include <stdlib.h>

#include "base/alloc.h"

enum { QUEUE = 512, HELD = 64, BLOCKS = 2048 };
static const unsigned places[] = {315, 45, 225, 135}, ranges[] = {310, 55, 120};

struct table site[SITES];
struct site_config config;
bool away[SITES][SITES], twice;
unsigned lose[SITE_MSG_COUNT];
struct buf wire;
uint64_t messages, now_ms, unfinal;
unsigned sent[SITES][SITES][SITE_MSG_COUNT];
struct post beats[SITES][SITES];
struct site_bytes signed_bytes[BYTES];
uint64_t signed_ids[BYTES], used_heights[BYTES];
unsigned submitted[BYTES];
size_t signed_count;

static struct post queue[QUEUE];
static size_t queue_first, queue_last;
static struct block {
    struct site_used used[ITEMS];
    size_t count;
    uint64_t next; /* nonce after it */
} blocks[BLOCKS];
static uint64_t final_height;
static struct site_effect held[SITES][HELD]; /* what a stuck database did not commit */
static size_t held_count[SITES];

static void step(unsigned who, const struct site_event *ev);

static uint64_t degrees(unsigned d)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)(((wide)d << 64) / 360);
}

static uint64_t example_hash(const void *data, size_t len)
{
    const uint8_t *text = data;
    if (len < SELECTOR_ACCOUNT_BYTES)
        return degrees(places[text[0] - 'A']);
    return degrees(ranges[text[len - 1] % 3]);
}

static size_t number_of(const struct site_bytes *b)
{
    uint32_t number;
    memcpy(&number, b->hash.bytes, sizeof(number));
    assert_in_range(number, 1, signed_count);
    return number - 1;
}

/* ---- messages ---- */

static void copy(struct post *p, const struct site_message *m)
{
    assert_true(m->count <= ITEMS);
    p->message = *m;
    for (size_t i = 0; i < m->count; i++) {
        p->items[i] = m->items[i];
        p->items[i].valid = m->items[i].has_bytes;
    }
}

static void post(const struct site_message *m)
{
    messages++;
    sent[m->from][m->to][m->type]++;
    if (m->type == SITE_MSG_HEARTBEAT) {
        copy(&beats[m->from][m->to], m);
    } else {
        buf_printf(&wire, "%c>%c %s", 'A' + (int)m->from, 'A' + (int)m->to,
                   site_message_name(m->type));
        for (size_t i = 0; i < m->count; i++)
            buf_printf(&wire, " %u", (unsigned)m->items[i].id);
        if (m->count && m->items[0].reason)
            buf_printf(&wire, " (%s)", site_reason_name(m->items[0].reason));
        buf_puts(&wire, ", ");
    }
    if (away[m->from][m->to])
        return;
    if (lose[m->type]) {
        lose[m->type]--;
        return;
    }
    for (int copies = twice ? 2 : 1; copies; copies--) {
        assert_true(queue_last - queue_first < QUEUE);
        copy(&queue[queue_last++ % QUEUE], m);
    }
}

void deliver(void)
{
    assert_true(queue_first < queue_last);
    struct post p = queue[queue_first++ % QUEUE];
    p.message.items = p.items;
    if (site[p.message.to].core)
        step(p.message.to, &(struct site_event){.type = SITE_EV_MESSAGE, .message = p.message});
}

void settle(void)
{
    while (queue_first < queue_last)
        deliver();
}

void forget_posts(void)
{
    queue_first = queue_last;
}

/* ---- databases ---- */

static size_t row_at(const struct table *t, uint64_t id)
{
    for (size_t i = 0; i < t->row_count; i++)
        if (t->rows[i] == id)
            return i;
    fail_msg("no such row");
    return 0;
}

static void commit(struct table *t, const struct site_effect *fx)
{
    size_t i;
    switch (fx->type) {
    case SITE_FX_STORE_GRANT:
        i = row_at(t, fx->id);
        assert_true(t->grant_count[i] < GRANTS);
        t->grants[i][t->grant_count[i]++] = fx->bytes;
        return;
    case SITE_FX_STORE_DISPATCH:
        assert_true(t->dispatch_count < DISPATCHES);
        t->dispatches[t->dispatch_count++] =
            (struct site_dispatch){.sender = fx->sender, .id = fx->id, .bytes = fx->bytes};
        t->dispatched++;
        return;
    case SITE_FX_STORE_DROP:
        for (i = 0; i < t->dispatch_count; i++)
            if (t->dispatches[i].id == fx->id)
                t->dispatches[i] = t->dispatches[--t->dispatch_count];
        return;
    case SITE_FX_STORE_END:
        t->ended[row_at(t, fx->id)] = true;
        return;
    case SITE_FX_STORE_FINAL:
        t->final = fx->height;
        return;
    case SITE_FX_STORE_NOTED:
        t->noted++;
        return;
    case SITE_FX_STORE_WAIT:
    case SITE_FX_LOAD:
    case SITE_FX_SEND:
    case SITE_FX_SIGN:
    case SITE_FX_SUBMIT:
        return;
    }
}

/* The effects of one step, in one transaction. */
static void store(unsigned who, const struct site_effect *effects, size_t count)
{
    uint64_t batch = 0;
    for (size_t i = 0; i < count; i++)
        if (effects[i].type >= SITE_FX_STORE_GRANT) {
            batch = effects[i].batch;
            commit(&site[who], &effects[i]);
        }
    if (batch)
        step(who, &(struct site_event){.type = SITE_EV_STORED, .stored = {.batch = batch}});
}

static void hold(unsigned who, const struct site_effect *effects, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (effects[i].type >= SITE_FX_STORE_GRANT) {
            assert_true(held_count[who] < HELD);
            held[who][held_count[who]++] = effects[i];
        }
}

void commit_late(unsigned who)
{
    struct site_effect late[HELD];
    size_t count = held_count[who], n;
    memcpy(late, held[who], count * sizeof(*late));
    held_count[who] = 0;
    site[who].stuck = false;
    for (size_t i = 0; i < count; i += n) {
        for (n = 1; i + n < count && late[i + n].batch == late[i].batch;)
            n++;
        store(who, &late[i], n);
    }
}

static void load(unsigned who, uint64_t number)
{
    struct table *t = &site[who];
    struct site_row rows[ROWS];
    const uint64_t nonces[SITES] = {blocks[t->final].next};
    struct site_event ev = {.type = SITE_EV_LOADED};
    for (size_t i = 0; i < t->row_count; i++)
        if (!t->ended[i])
            rows[ev.loaded.row_count++] = (struct site_row){
                .id = t->rows[i], .attempts = t->grants[i], .count = t->grant_count[i]};
    ev.loaded.load = number;
    ev.loaded.final = t->final;
    ev.loaded.next = nonces;
    ev.loaded.rows = rows;
    ev.loaded.dispatches = t->dispatches;
    ev.loaded.dispatch_count = t->dispatch_count;
    step(who, &ev);
}

static void sign(unsigned who, const struct site_effect *fx)
{
    assert_true(signed_count < BYTES);
    uint32_t number = (uint32_t)signed_count + 1;
    struct site_item item = {.sender = fx->sender, .id = fx->id, .has_bytes = true, .valid = true};
    item.bytes = fx->bytes;
    item.bytes.death = fx->height;
    memcpy(item.bytes.hash.bytes, &number, sizeof(number));
    signed_bytes[signed_count] = item.bytes;
    signed_ids[signed_count++] = fx->id;
    step(who,
         &(struct site_event){.type = SITE_EV_SIGNED, .signed_ = {.items = &item, .count = 1}});
}

static void step(unsigned who, const struct site_event *ev)
{
    struct table *t = &site[who];
    const struct site_effect *effects;
    size_t count;
    site_step(t->core, now_ms, ev, &effects, &count);
    assert_null(site_core_check(t->core));
    struct site_effect *fx = xcalloc(count + 1, sizeof(*fx));
    memcpy(fx, effects, count * sizeof(*fx));
    for (size_t i = 0; i < count; i++)
        if (fx[i].type == SITE_FX_SEND)
            post(&fx[i].message);
    if (t->stuck)
        hold(who, fx, count);
    else
        store(who, fx, count);
    for (size_t i = 0; i < count; i++)
        if (fx[i].type == SITE_FX_LOAD)
            load(who, fx[i].batch);
        else if (fx[i].type == SITE_FX_SUBMIT)
            submitted[number_of(&fx[i].bytes)]++;
        else if (fx[i].type == SITE_FX_SIGN && !t->mute)
            sign(who, &fx[i]);
    free(fx);
}

/* A row that has ended makes room for another one. */
void enqueue(unsigned who, uint64_t id)
{
    struct table *t = &site[who];
    size_t i = 0;
    while (i < t->row_count && (t->row_count < ROWS || !t->ended[i]))
        i++;
    assert_true(i < ROWS);
    t->row_count += i == t->row_count;
    t->rows[i] = id;
    t->ended[i] = false;
    t->grant_count[i] = 0;
    step(who, &(struct site_event){.type = SITE_EV_ROWS, .rows = {.ids = &id, .count = 1}});
}

/* ---- nodes and time ---- */

void see(unsigned who, uint64_t height)
{
    site[who].height = height;
    if (site[who].core)
        step(who, &(struct site_event){
                      .type = SITE_EV_HEAD,
                      .head = {.height = height, .next = blocks[final_height].next + unfinal}});
}

void all_see(uint64_t height)
{
    for (unsigned i = 0; i < SITES; i++)
        see(i, height);
}

void wait_ms(uint64_t ms)
{
    for (uint64_t until = now_ms + ms; now_ms < until;) {
        now_ms += 50;
        for (unsigned i = 0; i < SITES; i++)
            if (site[i].core) {
                if (now_ms % 1000 == 0)
                    see(i, site[i].height); /* blocks go on, in the same range */
                step(i, &(struct site_event){.type = SITE_EV_TICK});
            }
        settle();
    }
}

static void read_final(unsigned who, uint64_t height)
{
    const struct block *b = &blocks[height];
    const uint64_t nonces[SITES] = {b->next};
    step(who, &(struct site_event){
                  .type = SITE_EV_FINAL,
                  .final = {.height = height, .next = nonces, .used = b->used, .count = b->count}});
}

/* The bytes at the block's next nonce that a pool has. */
static bool include(struct block *b)
{
    for (size_t i = 0; i < signed_count && b->count < ITEMS; i++)
        if (submitted[i] && !used_heights[i] && signed_bytes[i].nonce == b->next &&
            signed_bytes[i].death >= final_height) {
            used_heights[i] = final_height;
            b->used[b->count++] = (struct site_used){.bytes = signed_bytes[i], .id = signed_ids[i]};
            b->next++;
            return true;
        }
    return false;
}

void finalize(void)
{
    assert_true(final_height + 1 < BLOCKS);
    struct block *b = &blocks[++final_height];
    b->count = 0;
    b->next = blocks[final_height - 1].next;
    while (include(b))
        continue;
    for (unsigned i = 0; i < SITES; i++)
        if (site[i].core)
            read_final(i, final_height);
    for (unsigned i = 0; i < SITES; i++)
        see(i, site[i].height);
    settle();
}

static bool all_ended(void)
{
    for (unsigned i = 0; i < SITES; i++)
        for (size_t r = 0; r < site[i].row_count; r++)
            if (!site[i].ended[r])
                return false;
    return true;
}

void finish(void)
{
    for (int seconds = 0; !all_ended(); seconds++) {
        assert_true(seconds < 200);
        wait_ms(1000);
        finalize();
    }
    for (unsigned i = 0; i < SITES; i++)
        for (size_t r = 0; r < site[i].row_count; r++)
            assert_int_equal(effects_of(site[i].rows[r]), 1);
}

/* ---- lives ---- */

void start(unsigned who)
{
    static const char *const names[] = {"A", "B", "C", "D"};
    static uint64_t life;
    config.names = names;
    config.self = who;
    config.life = ++life;
    held_count[who] = 0;
    site[who].core = site_core_new(&config);
    step(who, &(struct site_event){.type = SITE_EV_LEAD});
    while (view_of(who).final < final_height)
        read_final(who, view_of(who).final + 1);
    see(who, site[who].height);
}

void crash(unsigned who)
{
    site[who].core = site_core_free(site[who].core);
}

void restart(unsigned who)
{
    crash(who);
    start(who);
}

void done(void)
{
    for (unsigned i = 0; i < SITES; i++)
        crash(i);
    buf_done(&wire);
}

static void begin_sites(uint32_t members, const struct site_config *changes)
{
    done();
    memset(site, 0, sizeof(site));
    memset(away, 0, sizeof(away));
    memset(lose, 0, sizeof(lose));
    memset(sent, 0, sizeof(sent));
    memset(beats, 0, sizeof(beats));
    memset(submitted, 0, sizeof(submitted));
    memset(used_heights, 0, sizeof(used_heights));
    queue_first = queue_last = signed_count = 0;
    now_ms = 1000;
    final_height = messages = unfinal = 0;
    twice = false;
    config = *changes;
    config.hash = example_hash;
    config.account[0] = 1;
    config.members = members;
    config.range_blocks = config.range_blocks ? config.range_blocks : 4;
    config.era_blocks = config.era_blocks ? config.era_blocks : 1000;
    config.own_send_ms = config.own_send_ms ? config.own_send_ms : 3600000;
    for (unsigned i = 0; i < members; i++) {
        site[i].height = 1;
        start(i);
    }
    buf_clear(&wire);
}

void begin(uint32_t members)
{
    begin_sites(members, &(struct site_config){0});
}

void begin_with(const struct site_config *changes)
{
    begin_sites(SITES, changes);
}

/* ---- what the test sees ---- */

bool has_ended(unsigned who, uint64_t id)
{
    return site[who].ended[row_at(&site[who], id)];
}

unsigned effects_of(uint64_t id)
{
    unsigned n = 0;
    for (size_t i = 0; i < signed_count; i++)
        n += signed_ids[i] == id && used_heights[i];
    return n;
}

struct site_view view_of(unsigned who)
{
    struct site_view view;
    site_core_view(site[who].core, &view);
    return view;
}

enum site_state state_of(unsigned who)
{
    return view_of(who).state;
}

unsigned coordinators(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < SITES; i++)
        n += site[i].core && state_of(i) >= SITE_ELECT && state_of(i) <= SITE_ACTIVE;
    return n;
}

bool told(const char *text)
{
    return strstr(buf_str(&wire), text) != NULL;
}
