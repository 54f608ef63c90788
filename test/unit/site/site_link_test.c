/* Links between sites on loopback with real certificates: who may come in, which relay gets what,
 * what happens to messages that cannot leave, and what is left of a link afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "certs.h"
#include "net/grpc.h"
#include "site/link/link.h"

enum { PATIENCE_MS = 200000, RELAYS = 4, NOTES = SITE_LINKS_BAD + 1 };

struct world;

/* A relay of a site. */
struct relay {
    struct world *w;
    struct site_links *links;
    char *target;
    unsigned got, from[RELAYS]; /* messages, by peer */
    unsigned notes[NOTES];
    char text[NOTES][400];
    uint64_t last; /* number of the last message */
    size_t items;
    bool refuses;
    enum site_wire_why why;
    const char *leader;
    bool answers;        /* each message that is new with one of its own */
    size_t answer_count; /* the last answer */
    uint32_t answer_range;
    uint8_t answer_account;
};

struct world {
    struct loop *loop;
    struct loop_timer *patience, *again;
    struct certs certs;
    struct relay relays[RELAYS];
    /* a bare client */
    struct tls_context *tls;
    struct grpc_client *client;
    struct grpc_call *calls[64];
    unsigned ups, downs, ends;
    enum grpc_status status;
    char end_text[300];
};

static void impatient(void *arg)
{
    (void)arg;
    fail_msg("nothing happened in time");
}

static void on_again(void *arg)
{
    loop_stop(((struct world *)arg)->loop);
}

static int set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    w->loop = loop_new();
    w->patience = loop_timer_new(w->loop, impatient, w);
    loop_timer_at(w->patience, loop_now_ms(w->loop) + PATIENCE_MS);
    w->again = loop_timer_new(w->loop, on_again, w);
    certs_open(&w->certs);
    for (int i = 0; i < RELAYS; i++)
        w->relays[i].w = w;
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    grpc_client_close(w->client);
    for (int i = 0; i < RELAYS; i++) {
        site_links_close(w->relays[i].links);
        free(w->relays[i].target);
    }
    tls_context_free(w->tls);
    certs_close(&w->certs);
    loop_timer_close(w->patience);
    loop_timer_close(w->again);
    assert_int_equal(loop_open_handles(w->loop), 0);
    loop_free(w->loop);
    free(w);
    return 0;
}

static void send_number(struct relay *r, size_t peer, uint64_t number);

static bool on_message(void *arg, size_t peer, const struct site_wire_message *m)
{
    struct relay *r = arg;
    loop_stop(r->w->loop);
    if (r->refuses) {
        site_links_refuse(r->links, r->why, r->leader);
        return false;
    }
    r->got++;
    r->from[peer]++;
    r->items += m->m.count;
    bool new = m->m.number > r->last;
    r->last = m->m.number;
    if (r->answers && new)
        send_number(r, peer, m->m.number);
    return true;
}

static const char *const its_sites[] = {"a", "b"};

/* Of one account, which begins with 9. */
static bool on_question(void *arg, struct site_wire_settings *ret)
{
    (void)arg;
    ret->sites = its_sites;
    ret->count = 2;
    ret->range_blocks = 77;
    return ret->account[0] == 9;
}

static void on_answer(void *arg, size_t peer, const struct site_wire_settings *answer)
{
    struct relay *r = arg;
    (void)peer;
    r->answer_count = answer->count;
    r->answer_range = answer->range_blocks;
    r->answer_account = answer->account[0];
    loop_stop(r->w->loop);
}

static void on_note(void *arg, enum site_links_note note, size_t peer, const char *text)
{
    struct relay *r = arg;
    (void)peer;
    r->notes[note]++;
    snprintf(r->text[note], sizeof(r->text[note]), "%s", text);
    loop_stop(r->w->loop);
}

/* The certificate NAME.pem, which the authority of these tests signed for the names of `san`. */
static void certify(struct world *w, const char *name, const char *san)
{
    certs_add(&w->certs, name, san);
}

static char *file_of(struct world *w, const char *name, const char *suffix)
{
    char file[100];
    snprintf(file, sizeof(file), "%s%s", name, suffix);
    return xstrdup(certs_path(&w->certs, file));
}

/* With `change` the caller alters the configuration first. */
static void open_relay(struct world *w, int i, const char *site, const char *cert,
                       const struct site_links_peer *peers, size_t count,
                       const struct site_links_config *change)
{
    struct relay *r = &w->relays[i];
    struct site_links_config config = change ? *change : (struct site_links_config){0};
    struct err err = {0};
    char *cert_file = file_of(w, cert, ".pem"), *key_file = file_of(w, cert, ".key"),
         *ca_file = file_of(w, "ca", ".pem");
    config.self = site;
    if (!config.listen)
        config.listen = "tcp:127.0.0.1:0";
    config.cert_file = cert_file;
    config.key_file = key_file;
    config.ca_file = ca_file;
    config.peers = peers;
    config.peer_count = count;
    config.on_message = on_message;
    config.on_note = on_note;
    config.on_question = on_question;
    config.on_answer = on_answer;
    config.arg = r;
    r->links = site_links_open(w->loop, &config, &err);
    if (!r->links)
        fail_msg("%s", err.text);
    free(r->target);
    r->target = xstrdup(site_links_address(r->links));
    free(cert_file);
    free(key_file);
    free(ca_file);
}

static void send_items(struct relay *r, size_t peer, uint64_t number, size_t count, size_t len)
{
    struct site_wire_item *items = xcalloc(count + 1, sizeof(*items));
    uint8_t *call = xcalloc(1, len + 1);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct site_wire_item){.item = {.id = i + 1}, .call = call, .call_len = len};
    struct site_wire_message m = {.m = {.type = count ? SITE_MSG_DELEGATE : SITE_MSG_PROBE,
                                        .life = 1,
                                        .number = number,
                                        .count = count},
                                  .items = items};
    m.account[0] = 7;
    site_links_send(r->links, peer, &m);
    free(items);
    free(call);
}

static void send_number(struct relay *r, size_t peer, uint64_t number)
{
    send_items(r, peer, number, 0, 0);
}

static struct site_links_view view(const struct relay *r, size_t peer)
{
    struct site_links_view v;
    site_links_view(r->links, peer, &v);
    return v;
}

/* Two sites, a and b; each knows where the other is. b's address is fixed before a opens. */
static void two_sites(struct world *w, const struct site_links_config *change)
{
    struct relay *a = &w->relays[0], *b = &w->relays[1];
    certify(w, "a", "DNS:a");
    certify(w, "b", "DNS:b");
    const char *nowhere[] = {"127.0.0.1:1"};
    open_relay(w, 1, "b", "b", &(struct site_links_peer){"a", nowhere, 1}, 1, change);
    const char *at_b[] = {b->target};
    open_relay(w, 0, "a", "a", &(struct site_links_peer){"b", at_b, 1}, 1, change);
    assert_non_null(a->links);
}

/* Some conditions are announced by no callback. */
static void run_soon(struct world *w)
{
    loop_timer_at(w->again, loop_now_ms(w->loop) + 1);
    loop_run(w->loop);
}

#define UNTIL(w, condition)                                                                        \
    do {                                                                                           \
        while (!(condition))                                                                       \
            run_soon(w);                                                                           \
    } while (0)

/* ---- messages ---- */

static void test_one_stream_carries_both_directions(void **state)
{
    struct world *w = *state;
    struct relay *a = &w->relays[0], *b = &w->relays[1];
    two_sites(w, NULL);
    b->answers = true;
    send_number(a, 0, 1);
    UNTIL(w, a->got == 1);
    assert_int_equal(b->got, 1);
    assert_int_equal(view(a, 0).streams, 1);
    assert_int_equal(view(b, 0).streams, 1);
    /* b never dialled: a's address is not known to it. */
    assert_int_equal(b->notes[SITE_LINKS_LOST], 0);
    for (uint64_t n = 2; n <= 50; n++)
        send_number(a, 0, n);
    UNTIL(w, a->got == 50);
    assert_int_equal(a->last, 50);
    assert_int_equal(b->last, 50);
    assert_int_equal(a->notes[SITE_LINKS_UP], 1);
    assert_int_equal(view(a, 0).dropped, 0);
    assert_int_equal(view(a, 0).sent, 50);
    assert_int_equal(view(a, 0).received, 50);
}

static void test_any_relay_says_what_it_has_configured(void **state)
{
    struct world *w = *state;
    struct relay *a = &w->relays[0];
    uint8_t account[SELECTOR_ACCOUNT_BYTES] = {9};
    two_sites(w, NULL);
    assert_true(site_links_ask(a->links, 0, account));
    UNTIL(w, a->answer_account == 9);
    assert_int_equal(a->answer_count, 2);
    assert_int_equal(a->answer_range, 77);
    account[0] = 8; /* it has no sites there */
    assert_true(site_links_ask(a->links, 0, account));
    UNTIL(w, a->answer_account == 8);
    assert_int_equal(a->answer_count, 0);
}

static void test_a_long_message_arrives_whole(void **state)
{
    struct world *w = *state;
    two_sites(w, NULL);
    send_items(&w->relays[0], 0, 1, 30, 250000);
    UNTIL(w, w->relays[1].items == 30);
    assert_int_equal(w->relays[1].got, 2); /* in two frames */
}

static void test_two_relays_that_dial_each_other_keep_one_stream(void **state)
{
    struct world *w = *state;
    struct relay *a = &w->relays[0], *b = &w->relays[1];
    two_sites(w, NULL);
    /* b again, on its address, and now it knows where a is. */
    char *listen = xcalloc(1, 100);
    snprintf(listen, 100, "tcp:%s", b->target);
    b->links = site_links_close(b->links);
    const char *at_a[] = {a->target};
    open_relay(w, 1, "b", "b", &(struct site_links_peer){"a", at_a, 1}, 1,
               &(struct site_links_config){.listen = listen});
    free(listen);
    send_number(a, 0, 1);
    send_number(b, 0, 1);
    UNTIL(w, a->got == 1 && b->got == 1);
    UNTIL(w, a->notes[SITE_LINKS_UP] + b->notes[SITE_LINKS_UP] == 4);
    UNTIL(w, view(a, 0).streams == 1 && view(b, 0).streams == 1);
    send_number(a, 0, 2);
    send_number(b, 0, 2);
    UNTIL(w, a->got == 2 && b->got == 2);
    assert_int_equal(view(a, 0).streams, 1);
    assert_int_equal(a->notes[SITE_LINKS_LOST] + b->notes[SITE_LINKS_LOST], 0);
}

/* ---- names come from certificates ---- */

/* A certificate with one URI, whatever characters it has. */
static void certify_uri(struct world *w, const char *name, const char *uri)
{
    char file[100];
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = certs_make(&w->certs, key, name, NULL);
    GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    GENERAL_NAME *one = GENERAL_NAME_new();
    ASN1_IA5STRING *text = ASN1_IA5STRING_new();
    assert_true(ASN1_STRING_set(text, uri, -1));
    GENERAL_NAME_set0_value(one, GEN_URI, text);
    assert_true(sk_GENERAL_NAME_push(names, one) > 0);
    assert_true(X509_add1_ext_i2d(cert, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) > 0);
    assert_true(X509_sign(cert, w->certs.ca_key, EVP_sha256()) > 0);
    snprintf(file, sizeof(file), "%s.pem", name);
    certs_write(&w->certs, file, cert, NULL);
    snprintf(file, sizeof(file), "%s.key", name);
    certs_write(&w->certs, file, NULL, key);
    GENERAL_NAMES_free(names);
    X509_free(cert);
    EVP_PKEY_free(key);
}

/* `san`: NULL: the certificate is made already. */
static void refuses(struct world *w, const char *san, unsigned note)
{
    struct relay *a = &w->relays[0], *b = &w->relays[1];
    if (san)
        certify(w, "other", san);
    const char *at_b[] = {b->target};
    open_relay(w, 0, "a", "other", &(struct site_links_peer){"b", at_b, 1}, 1, NULL);
    unsigned strangers = b->notes[SITE_LINKS_STRANGER];
    send_number(a, 0, 1);
    UNTIL(w, a->notes[SITE_LINKS_LOST] == note);
    assert_int_equal(b->notes[SITE_LINKS_STRANGER], strangers + 1);
    assert_int_equal(b->got, 0);
    assert_int_equal(a->notes[SITE_LINKS_UP], 0);
    a->links = site_links_close(a->links);
}

static void test_a_name_is_believed_from_the_certificate_alone(void **state)
{
    struct world *w = *state;
    struct relay *b = &w->relays[1];
    const char *nowhere[] = {"127.0.0.1:1"};
    const struct site_links_peer peers[] = {{"a", nowhere, 1}, {"c", nowhere, 1}};
    certify(w, "b", "DNS:b");
    open_relay(w, 1, "b", "b", peers, 2, NULL);
    refuses(w, "DNS:x", 1);       /* no site of ours */
    refuses(w, "DNS:b", 2);       /* b itself */
    refuses(w, "DNS:a,DNS:c", 3); /* two sites */
    refuses(w, "DNS:a.c", 4);     /* not the whole name */
    refuses(w, "URI:a", 5);       /* another kind of name */
    /* Names that look like two. */
    certify_uri(w, "other", "x://y, DNS:a");
    refuses(w, NULL, 6);
    certify_uri(w, "other", "x://y,DNS:a");
    refuses(w, NULL, 7);
    assert_int_equal(b->notes[SITE_LINKS_UP], 0);
    /* The same words, signed for the site's own name. */
    certify(w, "good", "URI:spiffe://x/a,DNS:a");
    const char *at_b[] = {b->target};
    open_relay(w, 0, "a", "good", &(struct site_links_peer){"b", at_b, 1}, 1, NULL);
    send_number(&w->relays[0], 0, 1);
    UNTIL(w, b->got == 1);
    assert_int_equal(b->from[0], 1); /* a, and not c */
}

static void test_a_relay_with_another_name_is_not_spoken_to(void **state)
{
    struct world *w = *state;
    struct relay *a = &w->relays[0], *b = &w->relays[1];
    const char *nowhere[] = {"127.0.0.1:1"};
    certify(w, "a", "DNS:a");
    certify(w, "b", "DNS:b2"); /* its certificate is another site's */
    open_relay(w, 1, "b2", "b", &(struct site_links_peer){"a", nowhere, 1}, 1, NULL);
    const char *at_b[] = {b->target};
    open_relay(w, 0, "a", "a", &(struct site_links_peer){"b", at_b, 1}, 1, NULL);
    send_number(a, 0, 1);
    UNTIL(w, a->notes[SITE_LINKS_LOST] == 1);
    assert_non_null(strstr(a->text[SITE_LINKS_LOST], "certificate is refused"));
    assert_int_equal(b->got + b->notes[SITE_LINKS_UP], 0);
}

static void test_a_configuration_that_cannot_work_is_refused(void **state)
{
    struct world *w = *state;
    const char *target[] = {"127.0.0.1:1"}, *bad[] = {"nonsense"};
    certify(w, "a", "DNS:a");
    char *cert = file_of(w, "a", ".pem"), *key = file_of(w, "a", ".key"),
         *ca = file_of(w, "ca", ".pem");
    const struct site_links_peer b = {"b", target, 1}, self = {"a", target, 1},
                                 none = {"b", target, 0}, nonsense = {"b", bad, 1},
                                 twice[] = {{"b", target, 1}, {"b", target, 1}};
    struct {
        struct site_links_config c;
        const char *says;
    } cases[] = {
        {{.peers = &b, .peer_count = 1, .cert_file = NULL, .key_file = key}, "ca_file"},
        {{.peers = &self, .peer_count = 1, .cert_file = cert, .key_file = key}, "itself"},
        {{.peers = &none, .peer_count = 1, .cert_file = cert, .key_file = key}, "no address"},
        {{.peers = twice, .peer_count = 2, .cert_file = cert, .key_file = key}, "two sites"},
        {{.peers = &nonsense, .peer_count = 1, .cert_file = cert, .key_file = key}, "nonsense"},
        {{.peers = &b, .peer_count = 1, .cert_file = key, .key_file = key}, "key"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = {0};
        cases[i].c.self = "a";
        cases[i].c.listen = "tcp:127.0.0.1:0";
        cases[i].c.ca_file = ca;
        assert_null(site_links_open(w->loop, &cases[i].c, &err));
        assert_int_equal(err.code, ERR_CONFIG);
        if (!strstr(err.text, cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
    }
    free(cert);
    free(key);
    free(ca);
}

/* ---- which relay speaks for the account ---- */

/* Site b has relays 1 and 2; a knows both, or the first alone. */
static void two_relays(struct world *w, size_t known)
{
    const char *nowhere[] = {"127.0.0.1:1"};
    const struct site_links_peer a = {"a", nowhere, 1};
    certify(w, "a", "DNS:a");
    certify(w, "b", "DNS:b");
    open_relay(w, 1, "b", "b", &a, 1, NULL);
    open_relay(w, 2, "b", "b", &a, 1, NULL);
    const char *targets[] = {w->relays[1].target, w->relays[2].target};
    open_relay(w, 0, "a", "a", &(struct site_links_peer){"b", targets, known}, 1, NULL);
}

static void test_a_relay_that_does_not_lead_names_the_leader(void **state)
{
    struct world *w = *state;
    struct relay *a = &w->relays[0], *follower = &w->relays[1], *leader = &w->relays[2];
    two_relays(w, 1);
    follower->refuses = true;
    follower->why = SITE_WIRE_NOT_LEADER;
    follower->leader = leader->target;
    send_number(a, 0, 1);
    UNTIL(w, view(a, 0).refused == 1);
    send_number(a, 0, 2);
    UNTIL(w, leader->got == 1);
    send_number(a, 0, 3);
    UNTIL(w, leader->got == 2);
    assert_int_equal(leader->last, 3);
    assert_int_equal(view(a, 0).refused, 1); /* it was not asked again */
    /* The lead moves back, and the new leader speaks first: that is enough. */
    follower->refuses = false;
    send_number(follower, 0, 9);
    UNTIL(w, a->got == 1);
    send_number(a, 0, 4);
    UNTIL(w, follower->got == 1);
    assert_int_equal(leader->got, 2);
}

static void test_a_relay_that_knows_no_leader_is_not_asked_again_first(void **state)
{
    struct world *w = *state;
    struct relay *a = &w->relays[0], *follower = &w->relays[1], *leader = &w->relays[2];
    two_relays(w, 2);
    follower->refuses = true;
    follower->why = SITE_WIRE_NOT_LEADER;
    const char *useless[] = {"", "unix:/tmp/x", follower->target};
    for (size_t i = 0; i < ARRAY_LEN(useless); i++) {
        unsigned before = leader->got;
        follower->leader = useless[i];
        leader->refuses = i > 0; /* so that a comes back to the follower */
        leader->why = SITE_WIRE_NOT_LEADER;
        leader->leader = follower->target;
        if (i > 0) {
            send_number(a, 0, 10 * i + 1);
            UNTIL(w, view(a, 0).refused == 2 * i);
            leader->refuses = false;
        }
        send_number(a, 0, 10 * i + 2);
        UNTIL(w, view(a, 0).refused == 2 * i + 1);
        send_number(a, 0, 10 * i + 3);
        UNTIL(w, leader->got == before + 1);
    }
}

static void test_a_committee_that_differs_is_told(void **state)
{
    struct world *w = *state;
    struct relay *a = &w->relays[0], *b = &w->relays[1];
    two_sites(w, NULL);
    b->refuses = true;
    b->why = SITE_WIRE_OTHER_COMMITTEE;
    b->leader = "";
    send_number(a, 0, 1);
    UNTIL(w, a->notes[SITE_LINKS_REFUSED] == 1);
    assert_string_equal(a->text[SITE_LINKS_REFUSED], "other committee");
    assert_int_equal(view(a, 0).streams, 1);
}

/* A dead leader: after a failed attempt any other relay of the site is tried. */
static void test_another_relay_is_tried_when_one_is_gone(void **state)
{
    struct world *w = *state;
    struct relay *a = &w->relays[0];
    const char *nowhere[] = {"127.0.0.1:1"};
    certify(w, "a", "DNS:a");
    certify(w, "b", "DNS:b");
    open_relay(w, 2, "b", "b", &(struct site_links_peer){"a", nowhere, 1}, 1, NULL);
    const char *targets[] = {"127.0.0.1:1", w->relays[2].target};
    open_relay(w, 0, "a", "a", &(struct site_links_peer){"b", targets, 2}, 1,
               &(struct site_links_config){.retry_ms = 2, .retry_max_ms = 4});
    for (uint64_t n = 1; !w->relays[2].got; n++) {
        send_number(a, 0, n);
        run_soon(w);
    }
    assert_in_range(a->notes[SITE_LINKS_LOST], 1, 1);
}

/* ---- what cannot leave ---- */

static void test_a_site_that_is_away_is_not_dialled_before_the_back_off_is_over(void **state)
{
    struct world *w = *state;
    struct relay *a = &w->relays[0], *b = &w->relays[1];
    const struct site_links_config slow = {.retry_ms = 3600000, .retry_max_ms = 3600000};
    two_sites(w, &slow);
    char *listen = xcalloc(1, 100);
    snprintf(listen, 100, "tcp:%s", b->target);
    b->links = site_links_close(b->links);
    send_number(a, 0, 1);
    UNTIL(w, a->notes[SITE_LINKS_LOST] == 1);
    assert_int_equal(view(a, 0).dropped, 1); /* it waited for the connection */
    for (uint64_t n = 2; n <= 100; n++)
        send_number(a, 0, n);
    assert_int_equal(view(a, 0).dropped, 100);
    /* b itself comes: that ends the back-off, and a speaks on b's stream. */
    const char *at_a[] = {a->target};
    open_relay(w, 1, "b", "b", &(struct site_links_peer){"a", at_a, 1}, 1,
               &(struct site_links_config){.listen = listen});
    free(listen);
    send_number(b, 0, 1);
    UNTIL(w, a->got == 1);
    send_number(a, 0, 101);
    UNTIL(w, b->got == 1);
    assert_int_equal(a->notes[SITE_LINKS_LOST], 1);
}

static void test_what_is_in_flight_is_bounded(void **state)
{
    enum { LEN = 100000, COUNT = 100 };
    struct world *w = *state;
    struct relay *a = &w->relays[0], *b = &w->relays[1];
    two_sites(w, &(struct site_links_config){.flight_bytes = 10 * LEN});
    for (uint64_t n = 1; n <= COUNT; n++) /* before there is a connection */
        send_items(a, 0, n, 1, LEN);
    assert_int_equal(view(a, 0).dropped, COUNT - 9);
    UNTIL(w, b->got == 9);
    for (uint64_t n = 1; n <= COUNT; n++) /* on the open stream */
        send_items(a, 0, COUNT + n, 1, LEN);
    assert_int_equal(view(a, 0).dropped, 2 * (COUNT - 9));
    UNTIL(w, b->got == 18);
    assert_int_equal(b->last, COUNT + 9);
    assert_int_equal(view(a, 0).streams, 1);
}

/* ---- the end ---- */

static void test_an_idle_link_is_closed_and_costs_nothing(void **state)
{
    struct world *w = *state;
    struct relay *a = &w->relays[0], *b = &w->relays[1];
    two_sites(w, &(struct site_links_config){.idle_ms = 30});
    for (unsigned i = 1; i <= 3; i++) {
        send_number(a, 0, i);
        UNTIL(w, b->got == i);
        UNTIL(w, !view(a, 0).streams && !view(b, 0).streams);
        assert_int_equal(a->notes[SITE_LINKS_UP], i);
    }
    assert_int_equal(a->notes[SITE_LINKS_LOST] + b->notes[SITE_LINKS_LOST], 0);
    assert_int_equal(view(a, 0).sent, 3);
    assert_int_equal(view(b, 0).sent, 0);
}

static void test_certificates_are_read_again(void **state)
{
    struct world *w = *state;
    struct relay *a = &w->relays[0], *b = &w->relays[1];
    struct err err = {0};
    const char *nowhere[] = {"127.0.0.1:1"};
    certify(w, "a", "DNS:a");
    certify(w, "b", "DNS:late"); /* not yet */
    open_relay(w, 1, "b", "b", &(struct site_links_peer){"a", nowhere, 1}, 1, NULL);
    const char *at_b[] = {b->target};
    open_relay(w, 0, "a", "a", &(struct site_links_peer){"b", at_b, 1}, 1,
               &(struct site_links_config){.retry_ms = 1, .retry_max_ms = 1});
    send_number(a, 0, 1);
    UNTIL(w, a->notes[SITE_LINKS_LOST] == 1);
    certify(w, "b", "DNS:b");
    assert_int_equal(site_links_reload(b->links, &err), 0);
    for (uint64_t n = 2; !b->got; n++) {
        send_number(a, 0, n);
        run_soon(w);
    }
    FILE *f = fopen(certs_path(&w->certs, "b.pem"), "w");
    fclose(f);
    assert_int_equal(site_links_reload(b->links, &err), ERR_CONFIG);
    unsigned got = b->got;
    send_number(a, 0, 1000);
    UNTIL(w, b->got > got);
}

/* ---- peers that break the protocol ---- */

static void on_call_message(void *arg, const uint8_t *data, size_t len)
{
    (void)arg;
    (void)data;
    (void)len;
}

static void on_call_end(void *arg, enum grpc_status status, const char *text)
{
    struct world *w = arg;
    w->ends++;
    w->status = status;
    snprintf(w->end_text, sizeof(w->end_text), "%s", text);
    loop_stop(w->loop);
}

static const struct grpc_call_events call_events = {.on_message = on_call_message,
                                                    .on_end = on_call_end};

static void on_up(void *arg)
{
    struct world *w = arg;
    w->ups++;
    loop_stop(w->loop);
}

static void on_down(void *arg, const struct err *why)
{
    struct world *w = arg;
    (void)why;
    w->downs++;
    loop_stop(w->loop);
}

/* A client of another maker, with the certificate of site a. */
static void bare_client(struct world *w, const char *target)
{
    struct err err = {0};
    if (!w->tls) {
        char *cert = file_of(w, "a", ".pem"), *key = file_of(w, "a", ".key"),
             *ca = file_of(w, "ca", ".pem");
        w->tls = tls_context_new(
            &(struct tls_config){.cert_file = cert, .key_file = key, .ca_file = ca}, &err);
        assert_non_null(w->tls);
        free(cert);
        free(key);
        free(ca);
    }
    w->client = grpc_client_close(w->client);
    w->client = grpc_client_new(w->loop,
                                &(struct grpc_client_config){.target = target,
                                                             .tls = w->tls,
                                                             .server_name = "b",
                                                             .on_up = on_up,
                                                             .on_down = on_down,
                                                             .arg = w},
                                &err);
    assert_non_null(w->client);
    unsigned before = w->ups;
    grpc_client_open(w->client);
    UNTIL(w, w->ups > before);
}

static struct grpc_call *call(struct world *w, const char *path)
{
    return grpc_client_call(w->client, path, NULL, 0, &call_events, w);
}

static void test_bytes_that_break_the_protocol_end_the_stream(void **state)
{
    struct world *w = *state;
    struct relay *b = &w->relays[1];
    struct buf hello = {0}, probe = {0}, long_one = {0};
    two_sites(w, NULL);
    site_wire_hello_write(&hello, "elsewhere:1");
    struct site_wire_message m = {.m = {.type = SITE_MSG_PROBE, .life = 1, .number = 1}};
    site_wire_message_write(&probe, &m);
    memset(buf_grow(&long_one, SITE_WIRE_MAX + 1), 0, SITE_WIRE_MAX + 1);
    long_one.len = SITE_WIRE_MAX + 1;
    const struct buf garbage = {(uint8_t *)"\x08\x01", 2, 0};
    const struct {
        const struct buf *first, *second;
        const char *says;
    } cases[] = {
        {&garbage, NULL, "not a Frame"},
        {&probe, NULL, "before the Hello"},
        {&hello, &hello, "second Hello"},
        {&hello, &garbage, "not a Frame"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bare_client(w, b->target);
        struct grpc_call *c = call(w, SITE_WIRE_EXCHANGE);
        unsigned ends = w->ends;
        grpc_call_send(c, cases[i].first->data, cases[i].first->len);
        if (cases[i].second)
            grpc_call_send(c, cases[i].second->data, cases[i].second->len);
        UNTIL(w, w->ends > ends);
        assert_int_equal(w->status, GRPC_INVALID_ARGUMENT);
        assert_int_equal(b->notes[SITE_LINKS_BAD], i + 1);
        if (!strstr(w->end_text, cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", w->end_text, cases[i].says);
    }
    assert_int_equal(b->got, 0);
    bare_client(w, b->target);
    unsigned ends = w->ends;
    call(w, "/txrelay.site.v1.Sites/Other");
    UNTIL(w, w->ends > ends);
    assert_int_equal(w->status, GRPC_UNIMPLEMENTED);
    ends = w->ends;
    struct grpc_call *c = call(w, SITE_WIRE_EXCHANGE);
    grpc_call_send(c, hello.data, hello.len);
    grpc_call_send(c, long_one.data, long_one.len);
    UNTIL(w, w->ends > ends);
    assert_int_equal(w->status, GRPC_RESOURCE_EXHAUSTED);
    /* Others are not disturbed. */
    send_number(&w->relays[0], 0, 1);
    UNTIL(w, b->got == 1);
    buf_done(&hello);
    buf_done(&probe);
    buf_done(&long_one);
}

static void test_a_peer_that_says_nothing_is_closed(void **state)
{
    struct world *w = *state;
    /* long enough for the two sites themselves, under memcheck too */
    two_sites(w, &(struct site_links_config){.hello_ms = getenv("TXRELAY_VALGRIND") ? 2000 : 50});
    bare_client(w, w->relays[1].target);
    call(w, SITE_WIRE_EXCHANGE);
    UNTIL(w, w->ends == 1);
    assert_non_null(strstr(w->end_text, "Hello"));
    assert_int_equal(w->relays[1].notes[SITE_LINKS_BAD], 1);
}

static void test_the_streams_of_a_site_are_bounded(void **state)
{
    enum { MAX = 16, EACH = 4 };
    struct world *w = *state;
    struct relay *b = &w->relays[1];
    struct grpc_client *clients[MAX / EACH];
    two_sites(w, NULL);
    for (int i = 0; i < MAX / EACH; i++) {
        bare_client(w, b->target);
        for (int k = 0; k < EACH; k++)
            call(w, SITE_WIRE_EXCHANGE);
        clients[i] = w->client;
        w->client = NULL;
    }
    bare_client(w, b->target);
    call(w, SITE_WIRE_EXCHANGE);
    UNTIL(w, w->ends == 1);
    assert_int_equal(w->status, GRPC_RESOURCE_EXHAUSTED);
    for (int i = 0; i < MAX / EACH; i++)
        grpc_client_close(clients[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* as main() does */
    const struct CMUnitTest tests[] = {
        TEST(test_one_stream_carries_both_directions),
        TEST(test_any_relay_says_what_it_has_configured),
        TEST(test_a_long_message_arrives_whole),
        TEST(test_two_relays_that_dial_each_other_keep_one_stream),
        TEST(test_a_name_is_believed_from_the_certificate_alone),
        TEST(test_a_relay_with_another_name_is_not_spoken_to),
        TEST(test_a_configuration_that_cannot_work_is_refused),
        TEST(test_a_relay_that_does_not_lead_names_the_leader),
        TEST(test_a_relay_that_knows_no_leader_is_not_asked_again_first),
        TEST(test_a_committee_that_differs_is_told),
        TEST(test_another_relay_is_tried_when_one_is_gone),
        TEST(test_a_site_that_is_away_is_not_dialled_before_the_back_off_is_over),
        TEST(test_what_is_in_flight_is_bounded),
        TEST(test_an_idle_link_is_closed_and_costs_nothing),
        TEST(test_certificates_are_read_again),
        TEST(test_bytes_that_break_the_protocol_end_the_stream),
        TEST(test_a_peer_that_says_nothing_is_closed),
        TEST(test_the_streams_of_a_site_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
