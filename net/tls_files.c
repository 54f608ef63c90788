/* Which files does TLS take, and what does it say about the others? Each refusal names the file,
 * what is wrong with it, and what to do. The clock is the machine's, as for every handshake. */
#include "tls_files.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"

enum { DAY_S = 86400, SOON_S = 14 * DAY_S };

/* ---- keys ---- */

int tls__files_key(const char *path, struct err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, ERR_CONFIG, "key %s: %s", path, strerror(errno));
    int rc = fstat(fd, &st);
    close(fd);
    if (rc || !S_ISREG(st.st_mode))
        return err_set(err, ERR_CONFIG, "key %s is not a regular file: give a PEM file", path);
    /* A group may read what root gave to it, as packages of certificates do. */
    mode_t open_to = S_IRWXO | (st.st_uid == 0 ? S_IWGRP | S_IXGRP : S_IRWXG);
    if (st.st_mode & open_to)
        return err_set(err, ERR_CONFIG,
                       "key %s has mode %03o, open to others than its owner: chmod 600 %s", path,
                       (unsigned)st.st_mode & 0777, path);
    return 0;
}

/* ---- certificates ---- */

static void put_date(struct buf *out, const ASN1_TIME *at)
{
    struct tm tm = {0};
    char text[32] = "?";
    if (ASN1_TIME_to_tm(at, &tm))
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
    buf_puts(out, text);
}

/* From now; negative: it has passed. A time that is not understood has passed. */
static long seconds_until(const ASN1_TIME *at)
{
    int days = 0, seconds = 0;
    if (!ASN1_TIME_diff(&days, &seconds, NULL, at))
        return -1;
    return (long)days * DAY_S + seconds;
}

/* Its subject, or a part of it. */
static void put_subject(struct buf *out, const X509 *cert)
{
    char text[200];
    X509_NAME_oneline(X509_get_subject_name(cert), text, sizeof(text));
    buf_put_plain(out, text, strlen(text));
}

/* Is it in force? false: out says why not. */
static bool in_force(const X509 *cert, struct buf *out)
{
    if (seconds_until(X509_get0_notBefore(cert)) > 0) {
        buf_puts(out, "is not valid before ");
        put_date(out, X509_get0_notBefore(cert));
        buf_puts(out, ": wait, or set the clock of this machine");
        return false;
    }
    if (seconds_until(X509_get0_notAfter(cert)) < 0) {
        buf_puts(out, "expired at ");
        put_date(out, X509_get0_notAfter(cert));
        buf_puts(out, ": renew it");
        return false;
    }
    return true;
}

/* Has it this DNS name, without wildcards? all: every one that it has. */
static bool has_name(const X509 *cert, const char *name, struct buf *all)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    bool found = false;
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *n = sk_GENERAL_NAME_value(names, i);
        if (n->type != GEN_DNS)
            continue;
        const char *text = (const char *)ASN1_STRING_get0_data(n->d.dNSName);
        size_t len = (size_t)ASN1_STRING_length(n->d.dNSName);
        found = found || (len == strlen(name) && memcmp(text, name, len) == 0);
        buf_puts(all, all->len ? ", " : "");
        buf_put_plain(all, text, len);
    }
    GENERAL_NAMES_free(names);
    return found;
}

int tls__files_own(const char *path, const X509 *cert, const char *name, struct err *err)
{
    struct buf why = {0}, names = {0};
    bool good = in_force(cert, &why);
    if (!good) {
        err_set(err, ERR_CONFIG, "certificate %s %s", path, buf_str(&why));
    } else if (name && !has_name(cert, name, &names)) {
        good = false;
        err_set(err, ERR_CONFIG,
                "certificate %s is not the one of %s: its DNS names are: %.300s; give one whose "
                "subjectAltName has DNS:%s",
                path, name, names.len ? buf_str(&names) : "none", name);
    }
    buf_done(&why);
    buf_done(&names);
    return good ? 0 : ERR_CONFIG;
}

void tls__files_shown(const X509 *cert, struct buf *out)
{
    put_subject(out, cert);
    buf_puts(out, ", until ");
    put_date(out, X509_get0_notAfter(cert));
}

/* ---- authorities ---- */

static STACK_OF(X509) * read_all(const char *path, struct err *err)
{
    BIO *file = BIO_new_file(path, "r");
    STACK_OF(X509) *all = sk_X509_new_null();
    INVARIANT(all);
    if (!file)
        err_set(err, ERR_CONFIG, "ca_file %s: %s", path, strerror(errno));
    for (X509 *cert = NULL; file && (cert = PEM_read_bio_X509(file, NULL, NULL, NULL)) != NULL;)
        INVARIANT(sk_X509_push(all, cert) > 0);
    BIO_free(file);
    ERR_clear_error(); /* the end of the file is one */
    if (file && !sk_X509_num(all))
        err_set(err, ERR_CONFIG, "ca_file %s has no certificate: give a PEM file", path);
    return all;
}

/* A chain ends at a certificate that signed itself; without that end nothing is accepted. */
static bool has_issuer(STACK_OF(X509) * all, X509 *cert)
{
    for (int i = 0; i < sk_X509_num(all); i++)
        if (X509_check_issued(sk_X509_value(all, i), cert) == X509_V_OK)
            return true;
    return false;
}

/* Can it accept anybody? false: out says why not. */
static bool is_usable(STACK_OF(X509) * all, X509 *cert, struct buf *out)
{
    char issuer[200];
    if (!in_force(cert, out))
        return false;
    if (has_issuer(all, cert))
        return true;
    X509_NAME_oneline(X509_get_issuer_name(cert), issuer, sizeof(issuer));
    buf_puts(out, "was signed by ");
    buf_put_plain(out, issuer, strlen(issuer));
    buf_puts(out, ", which is not in the file: append that certificate");
    return false;
}

int tls__files_authorities(const char *path, struct err *err)
{
    struct err why = {0};
    STACK_OF(X509) *all = read_all(path, &why);
    bool any = false;
    for (int i = 0; i < sk_X509_num(all); i++) {
        struct buf text = {0};
        put_subject(&text, sk_X509_value(all, i));
        buf_puts(&text, " ");
        bool usable = is_usable(all, sk_X509_value(all, i), &text);
        any |= usable;
        if (!usable && !why.code)
            err_set(&why, ERR_CONFIG, "ca_file %s: %s", path, buf_str(&text));
        buf_done(&text);
    }
    sk_X509_pop_free(all, X509_free);
    return any ? 0 : err_set(err, why.code, "%s", why.text);
}

static void caution(const char *what, const char *path, X509 *cert, struct buf *why,
                    void (*each)(void *arg, const char *text), void *arg)
{
    struct buf text = {0};
    if (!why->len && seconds_until(X509_get0_notAfter(cert)) < SOON_S) {
        buf_puts(why, "expires at ");
        put_date(why, X509_get0_notAfter(cert));
        buf_puts(why, ": renew it, then send SIGHUP to the relay");
    }
    if (why->len) {
        buf_printf(&text, "%s %s: ", what, path);
        put_subject(&text, cert);
        buf_printf(&text, " %s", buf_str(why));
        each(arg, buf_str(&text));
    }
    buf_done(&text);
}

void tls__files_cautions(const char *cert_file, X509 *own, const char *ca_file,
                         void (*each)(void *arg, const char *text), void *arg)
{
    struct err err = {0};
    struct buf why = {0};
    STACK_OF(X509) *all = ca_file ? read_all(ca_file, &err) : NULL;
    if (own)
        caution("certificate", cert_file, own, &why, each, arg);
    for (int i = 0; i < (all ? sk_X509_num(all) : 0); i++) {
        buf_clear(&why);
        is_usable(all, sk_X509_value(all, i), &why);
        caution("ca_file", ca_file, sk_X509_value(all, i), &why, each, arg);
    }
    sk_X509_pop_free(all, X509_free);
    buf_done(&why);
}
