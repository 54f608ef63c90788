/* TLS by OpenSSL 3, over memory: the owner moves the bytes.
 *
 *  - TLS 1.3 only, but for a client of HTTP/1.1, which asks servers of others: they may have 1.2.
 *  - Nothing is renegotiated or resumed, and each context has one protocol. A peer
 *    without ALPN passes the handshake: as HTTP/1.1, but HTTP/2 is what was selected or nothing.
 *  - The error queue of OpenSSL belongs to the thread: it is cleared before each call.
 *  - An alert is in the output after a failure, and must still leave.
 *  - In TLS 1.3 a client is done before the server has judged its certificate; it learns of a
 *    refusal when it reads. Only the server knows the reason. */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "loop/peer.h"
#include "tls_files.h"
#include "tls_internal.h"

struct tls_context {
    SSL_CTX *ctx;
    bool server;
    bool http1;
    char *cert_file;
    char *key_file;
    char *ca_file;
    char *own_name;
};

struct tls_session {
    SSL *ssl;
    BIO *in;  /* the session's */
    BIO *out; /* the session's */
    bool up;
    bool server;
    bool http1;
    char identity[256];
};

static const uint8_t alpn_h2[] = {2, 'h', '2'};
static const uint8_t alpn_http1[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

static int select_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
                           const unsigned char *in, unsigned in_len, void *arg)
{
    const struct tls_context *t = arg;
    (void)ssl;
    unsigned char *out = NULL;
    if (SSL_select_next_proto(&out, ret_len, t->http1 ? alpn_http1 : alpn_h2,
                              t->http1 ? sizeof(alpn_http1) : sizeof(alpn_h2), in,
                              in_len) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *ret = out;
    return SSL_TLSEXT_ERR_OK;
}

static const char *last_error(void)
{
    unsigned long e = ERR_peek_last_error();
    const char *text = e ? ERR_reason_error_string(e) : NULL;
    return text ? text : "no reason is known";
}

/* Nobody is asked for a passphrase: a relay has no terminal. */
static int no_passphrase(char *text, int size, int writes, void *asked)
{
    (void)text;
    (void)size;
    (void)writes;
    *(bool *)asked = true;
    return -1;
}

static int load_key(const struct tls_context *t, SSL_CTX *ctx, struct err *err)
{
    bool encrypted = false;
    if (tls__files_key(t->key_file, err))
        return ERR_CONFIG;
    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, &encrypted);
    bool loaded = SSL_CTX_use_PrivateKey_file(ctx, t->key_file, SSL_FILETYPE_PEM) == 1;
    SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
    SSL_CTX_set_default_passwd_cb(ctx, NULL);
    if (encrypted)
        return err_set(err, ERR_CONFIG,
                       "key %s has a passphrase: write it without one (openssl pkey)", t->key_file);
    bool other = !loaded && ERR_GET_LIB(ERR_peek_last_error()) == ERR_LIB_X509;
    if (other || (loaded && SSL_CTX_check_private_key(ctx) != 1))
        return err_set(err, ERR_CONFIG,
                       "key %s is not the key of certificate %s: give the two that belong together",
                       t->key_file, t->cert_file);
    if (!loaded)
        return err_set(err, ERR_CONFIG, "key %s: %s; give the PEM file of the certificate's key",
                       t->key_file, last_error());
    return 0;
}

static int load_own(const struct tls_context *t, SSL_CTX *ctx, struct err *err)
{
    if (!t->cert_file != !t->key_file || (t->server && !t->cert_file))
        return err_set(err, ERR_CONFIG, "a certificate and its key are both needed");
    if (!t->cert_file)
        return 0;
    if (SSL_CTX_use_certificate_chain_file(ctx, t->cert_file) != 1)
        return err_set(err, ERR_CONFIG, "certificate %s: %s; give a PEM file", t->cert_file,
                       last_error());
    if (load_key(t, ctx, err))
        return ERR_CONFIG;
    return tls__files_own(t->cert_file, SSL_CTX_get0_certificate(ctx), t->own_name, err);
}

static int load_authorities(const struct tls_context *t, SSL_CTX *ctx, struct err *err)
{
    int mode = SSL_VERIFY_PEER | (t->server ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0);
    if (t->server && !t->ca_file)
        mode = SSL_VERIFY_NONE;
    SSL_CTX_set_verify(ctx, mode, NULL);
    if (!t->ca_file) {
        if (!t->server)
            SSL_CTX_set_default_verify_paths(ctx);
        return 0;
    }
    if (tls__files_authorities(t->ca_file, err))
        return ERR_CONFIG;
    if (SSL_CTX_load_verify_file(ctx, t->ca_file) != 1)
        return err_set(err, ERR_CONFIG, "ca_file %s: %s; give a PEM file", t->ca_file,
                       last_error());
    if (t->server)
        SSL_CTX_set_client_CA_list(ctx, SSL_load_client_CA_file(t->ca_file));
    return 0;
}

static SSL_CTX *context_make(struct tls_context *t, struct err *err)
{
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(t->server ? TLS_server_method() : TLS_client_method());
    INVARIANT(ctx);
    bool any = t->http1 && !t->server; /* servers of others */
    SSL_CTX_set_min_proto_version(ctx, any ? TLS1_2_VERSION : TLS1_3_VERSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(ctx, 0);
    if (t->server)
        SSL_CTX_set_alpn_select_cb(ctx, select_protocol, t);
    else
        INVARIANT(SSL_CTX_set_alpn_protos(ctx, t->http1 ? alpn_http1 : alpn_h2,
                                          t->http1 ? sizeof(alpn_http1) : sizeof(alpn_h2)) == 0);
    if (load_own(t, ctx, err) || load_authorities(t, ctx, err)) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    return ctx;
}

static char *copy_of(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

struct tls_context *tls_context_new(const struct tls_config *config, struct err *err)
{
    struct tls_context *t = xcalloc(1, sizeof(*t));
    *t = (struct tls_context){
        .server = config->server,
        .http1 = config->http1,
        .cert_file = copy_of(config->cert_file),
        .key_file = copy_of(config->key_file),
        .ca_file = copy_of(config->ca_file),
        .own_name = copy_of(config->own_name),
    };
    t->ctx = context_make(t, err);
    return t->ctx ? t : tls_context_free(t);
}

int tls_context_reload(struct tls_context *t, struct err *err)
{
    struct err why = {0};
    SSL_CTX *ctx = context_make(t, &why);
    if (!ctx)
        return err_set(err, why.code, "%s", why.text);
    SSL_CTX_free(t->ctx); /* its sessions hold it */
    t->ctx = ctx;
    return 0;
}

struct tls_context *tls_context_free(struct tls_context *t)
{
    if (!t)
        return NULL;
    SSL_CTX_free(t->ctx);
    free(t->cert_file);
    free(t->key_file);
    free(t->ca_file);
    free(t->own_name);
    free(t);
    return NULL;
}

void tls_context_shown(const struct tls_context *t, struct buf *out)
{
    const X509 *own = SSL_CTX_get0_certificate(t->ctx);
    if (own)
        tls__files_shown(own, out);
}

void tls_context_cautions(const struct tls_context *t, void (*each)(void *arg, const char *text),
                          void *arg)
{
    tls__files_cautions(t->cert_file, SSL_CTX_get0_certificate(t->ctx), t->ca_file, each, arg);
}

/* ---- sessions ---- */

static void demand_name(SSL *ssl, const char *host)
{
    uint8_t addr[16];
    if (inet_pton(AF_INET, host, addr) == 1 || inet_pton(AF_INET6, host, addr) == 1) {
        INVARIANT(X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1);
        return;
    }
    INVARIANT(SSL_set1_host(ssl, host) == 1);
    SSL_set_tlsext_host_name(ssl, host);
}

struct tls_session *tls__session_new(struct tls_context *t, const char *host)
{
    PRE(t->server == !host);
    struct tls_session *s = xcalloc(1, sizeof(*s));
    s->server = t->server;
    s->http1 = t->http1;
    s->ssl = SSL_new(t->ctx);
    s->in = BIO_new(BIO_s_mem());
    s->out = BIO_new(BIO_s_mem());
    INVARIANT(s->ssl && s->in && s->out);
    SSL_set_bio(s->ssl, s->in, s->out);
    if (t->server) {
        SSL_set_accept_state(s->ssl);
    } else {
        SSL_set_connect_state(s->ssl);
        demand_name(s->ssl, host);
    }
    return s;
}

struct tls_session *tls__session_free(struct tls_session *s)
{
    if (s) {
        SSL_free(s->ssl); /* and both BIOs */
        free(s);
    }
    return NULL;
}

static void put_name(struct tls_session *s, const char *kind, const ASN1_STRING *name)
{
    size_t n = strlen(s->identity);
    const char *text = (const char *)ASN1_STRING_get0_data(name);
    size_t len = (size_t)ASN1_STRING_length(name);
    /* A space would look like the end of a name: neither DNS names nor URIs have one. */
    if (memchr(text, 0, len) || memchr(text, ' ', len) ||
        n + len + strlen(kind) + 4 > sizeof(s->identity))
        return;
    snprintf(s->identity + n, sizeof(s->identity) - n, "%s%s:%.*s", n ? ", " : "", kind, (int)len,
             text);
}

static void read_identity(struct tls_session *s)
{
    X509 *cert = SSL_get0_peer_certificate(s->ssl);
    GENERAL_NAMES *names = cert ? X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL) : NULL;
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_DNS)
            put_name(s, "DNS", name->d.dNSName);
        else if (name->type == GEN_URI)
            put_name(s, "URI", name->d.uniformResourceIdentifier);
    }
    GENERAL_NAMES_free(names);
}

static int failed(struct tls_session *s, const char *what, struct err *err)
{
    long verify = SSL_get_verify_result(s->ssl);
    if (verify != X509_V_OK && !s->up)
        return err_set(err, ERR_NET, "TLS %s: the peer's certificate is refused: %s", what,
                       X509_verify_cert_error_string(verify));
    return err_set(err, ERR_NET, "TLS %s: %s", what, last_error());
}

static int shake_hands(struct tls_session *s, struct err *err)
{
    ERR_clear_error();
    int rc = SSL_do_handshake(s->ssl);
    if (rc != 1)
        return SSL_get_error(s->ssl, rc) == SSL_ERROR_WANT_READ ? 0 : failed(s, "handshake", err);
    const unsigned char *alpn = NULL;
    unsigned len = 0;
    SSL_get0_alpn_selected(s->ssl, &alpn, &len);
    if (!s->http1 && (len != 2 || memcmp(alpn, "h2", 2) != 0))
        return err_set(err, ERR_NET, "TLS handshake: the peer does not offer HTTP/2 (ALPN h2)");
    s->up = true;
    read_identity(s);
    return 0;
}

int tls__session_start(struct tls_session *s, struct err *err)
{
    PRE(!s->server);
    return shake_hands(s, err);
}

int tls__session_feed(struct tls_session *s, const uint8_t *data, size_t len,
                      bool (*plain)(void *arg, const uint8_t *data, size_t len), void *arg,
                      struct err *err)
{
    uint8_t chunk[16384];
    INVARIANT(BIO_write(s->in, data, (int)len) == (int)len);
    if (!s->up && shake_hands(s, err))
        return ERR_NET;
    while (s->up) {
        ERR_clear_error();
        int n = SSL_read(s->ssl, chunk, sizeof(chunk));
        if (n <= 0) {
            int why = SSL_get_error(s->ssl, n);
            if (why == SSL_ERROR_WANT_READ)
                return 0;
            if (why == SSL_ERROR_ZERO_RETURN)
                return err_set(err, ERR_NET, "the peer closed the connection");
            return failed(s, "read", err);
        }
        if (!plain(arg, chunk, (size_t)n))
            return 0;
    }
    return 0;
}

int tls__session_put(struct tls_session *s, const uint8_t *data, size_t len, struct err *err)
{
    PRE(s->up && len > 0);
    ERR_clear_error();
    int n = SSL_write(s->ssl, data, (int)len);
    return n == (int)len ? 0 : failed(s, "write", err);
}

void tls__session_goodbye(struct tls_session *s)
{
    ERR_clear_error();
    if (s->up)
        SSL_shutdown(s->ssl);
}

size_t tls__session_out(struct tls_session *s, const uint8_t **ret_data)
{
    char *data = NULL;
    long n = BIO_get_mem_data(s->out, &data);
    *ret_data = (const uint8_t *)data;
    return n > 0 ? (size_t)n : 0;
}

void tls__session_sent(struct tls_session *s)
{
    (void)BIO_reset(s->out);
}

bool tls__session_up(const struct tls_session *s)
{
    return s->up;
}

const char *tls__session_identity(const struct tls_session *s)
{
    return s->identity;
}

int tls_listen_check(const struct tls_context *t, const char *address, struct err *err)
{
    if (t || loop_address_is_local(address))
        return 0;
    return err_set(err, ERR_CONFIG,
                   "%s can be reached from other machines: give a certificate and a key, or listen "
                   "on loopback or a unix socket",
                   address);
}
