/* Private to http/.
 *
 *   api.c      the room: server, sessions, who may ask
 *   ask.c      a request on its way through the database, and its answer
 *   body.c     JSON bodies: what is known, of which kind
 *   headers.c  headers that may come once
 *   problem.c  errors as problems (RFC 9457)
 *   routes.c   each route: its parameters and its statement
 *   hub.c      events: one listener for all readers (events_internal.h)
 *   follower*.c   one reader of them
 *   page.c     the page
 *   enqueue.c  the route that enqueues
 *   dry_run.c  what it would enqueue, and the fee
 *   calls.c    what can be called, and what was: by the chain's metadata
 *   operate.c  those of operators
 *   register.c  the one that registers an account
 *   metrics.c  what was answered
 */
#ifndef HTTP_API_INTERNAL_H
#define HTTP_API_INTERNAL_H

#include <jansson.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/metrics.h"
#include "http/api.h"
#include "http/core/request.h"
#include "net/http.h"
#include "store/conn.h"

enum { API_HASH_HEX = 65, API_NAME_MAX = 65, API_PARAMS = 16 };

/* What was answered since the room is open. metrics.c */
enum { API_CLASSES = 6, API_ROUTE_NONE = HTTP_ROUTE_COUNT };
struct api_counts {
    uint64_t answers[HTTP_ROUTE_COUNT + 1][API_CLASSES]; /* by route, and hundreds of the status */
    uint64_t refused[16];                                /* by code: metrics.c has the names */
    struct metric_histogram took;
};

struct api {
    struct loop *loop;
    struct http_server *server;
    struct tls_context *tls;
    struct conn *reads, *acts; /* a slow read delays no write; NULL: closed */
    struct hub *hub;           /* events */
    char *host;
    uint32_t rate;
    struct token_rate *rates; /* uthash, by name */
    struct http_rate log;     /* refusals that are logged */
    uint64_t unlogged;
    struct api_counts counts;
    const struct metadata *(*metadata)(void *arg);
    bool (*account)(void *arg, const char *name, struct api_account *ret);
    bool (*enrolment)(void *arg, const uint8_t *account_id, size_t len, struct api_enrolment *ret);
    const char *(*relay)(void *arg);
    void (*drain)(void *arg);
    void *(*fee)(void *arg, const uint8_t *call, size_t len,
                 void (*cb)(void *cb_arg, bool known, u128 fee), void *cb_arg);
    void (*fee_forget)(void *fee);
    void *arg;
    struct list fees; /* requests that wait for one */
    void (*cb)(void *arg);
    void *cb_arg;
};

/* A request, from its arrival to its answer. */
struct ask {
    struct api *api;
    struct http_request *r;
    uint64_t since_ms;
    struct http_match match;
    struct conn_query query;
    void (*absent)(struct ask *k, bool row); /* the query has no row, or NULL */
    char hash[API_HASH_HEX];                 /* of its token */
    const char *problem;                     /* its code */
    char who[API_NAME_MAX];                  /* the token's name, once it is known */
    json_t *body;                            /* NULL: none */
    char *text;                              /* that a parameter lies in */
    struct buf call;
    char numbers[API_PARAMS][24];
    struct follower *follower; /* that is about to begin */
    struct list fees;          /* in its place among those of the room */
    void *fee;                 /* that is waited for */
    const char *location; /* path before the id that the answer has; NULL: an ordinary answer */
    void (*extend)(struct ask *k, const char *text,
                   size_t len); /* answers with the statement's value;
                                                                    NULL: as it is */
};

/* ask.c */
const char *api__sql(const char *file); /* the text of http/sql/<file> */
void api__ask_free(struct ask *k);
void api__answer(struct ask *k, int status, const char *headers, const char *body, size_t len);
void api__problem(struct ask *k, int status, const char *code, const char *headers,
                  const char *detail);
/* The statement's one value is the answer; no row or NULL: `absent`. */
void api__query(struct ask *k, struct conn *c, const char *file, bool prepare, int n,
                const struct conn_param *params, void (*absent)(struct ask *k, bool row));
void api__refuse(struct ask *k, int status, const char *code, const char *headers,
                 const char *detail); /* 401, 403: logged */

/* metrics.c */
void api__count(struct ask *k, int status, const char *code); /* code NULL: it is no problem */

/* headers.c; NULL: none is repeated */
const char *api__repeated_header(const struct http_request *r);

/* problem.c */
void api__put_problem(struct buf *out, int status, const char *code, const char *detail);
void api__database_problem(struct ask *k, const struct err *err);

/* body.c; ERR_ARGUMENT: err says what is wrong */
enum body_kind { BODY_TEXT, BODY_WHOLE, BODY_AMOUNT, BODY_IDS, BODY_BOOL, BODY_ANY };
struct body_field {
    const char *name;
    enum body_kind kind;
};
int api__body_read(struct ask *k, struct err *err); /* the request's JSON object into k->body */
/* Only these fields, each of its kind. */
int api__body_check(const json_t *body, const struct body_field *fields, size_t n, struct err *err);
/* The field as a text; NULL: it is not there. Numbers are written to room. */
const char *api__body_text(const json_t *body, const char *name, char room[24]);

/* routes.c */
enum api_param_kind { API_TEXT, API_NUMBER, API_LIMIT };
struct api_param {
    const char *name;
    enum api_param_kind kind;
};
/* Fills params with those of the path and the query, in the order of the list. false: k was
 * answered, because it has another parameter, or one of another kind. */
bool api__take_params(struct ask *k, const struct api_param *list, size_t n,
                      struct conn_param *params);
void api__route(struct ask *k); /* the token is good for the route's scope */

/* enqueue.c, dry_run.c, calls.c, operate.c */
void api__enqueue(struct ask *k);
void api__dry_run(struct ask *k, const struct metadata *md); /* of k->call */
void api__dry_runs_end(struct api *a);                       /* the room closes */
void api__calls(struct ask *k);
void api__no_chain(struct ask *k, const char *detail);
void api__extend_transaction(struct ask *k, const char *text, size_t len);
void api__operate(struct ask *k);
void api__register(struct ask *k); /* register.c */
bool api__take_body(struct ask *k, const struct body_field *fields,
                    size_t n); /* fields NULL: any. false: k was answered */
void api__extend_account(struct ask *k, const char *text, size_t len);
void api__events(struct ask *k); /* follower_route.c */
void api__page(struct ask *k);   /* page.c */

#endif
