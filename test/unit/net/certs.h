/* Certificates for tests: an authority, and what it signed, as PEM files in a folder. */
#ifndef TEST_CERTS_H
#define TEST_CERTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct certs {
    char folder[64];
    char path[512]; /* of certs_path, until the next call */
    EVP_PKEY *ca_key;
    X509 *ca;
    long serial;
    long from_s, until_s; /* of the next certificates, from now on */
};

static inline const char *certs_path(struct certs *c, const char *name)
{
    snprintf(c->path, sizeof(c->path), "%s/%s", c->folder, name);
    return c->path;
}

static inline void certs_extension(X509 *cert, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    assert_non_null(e);
    X509_add_ext(cert, e, -1);
    X509_EXTENSION_free(e);
}

static inline X509 *certs_make(struct certs *c, EVP_PKEY *key, const char *name, const char *san)
{
    X509 *cert = X509_new();
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), ++c->serial);
    X509_gmtime_adj(X509_getm_notBefore(cert), c->from_s);
    X509_gmtime_adj(X509_getm_notAfter(cert), c->until_s);
    X509_set_pubkey(cert, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                               (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(c->ca ? c->ca : cert));
    certs_extension(cert, NID_basic_constraints, san ? "CA:FALSE" : "critical,CA:TRUE");
    if (san)
        certs_extension(cert, NID_subject_alt_name, san);
    assert_true(X509_sign(cert, c->ca_key ? c->ca_key : key, EVP_sha256()) > 0);
    return cert;
}

static inline void certs_write(struct certs *c, const char *name, X509 *cert, EVP_PKEY *key)
{
    FILE *f = fopen(certs_path(c, name), "w");
    assert_non_null(f);
    assert_int_equal(fchmod(fileno(f), cert ? 0644 : 0600), 0);
    if (cert)
        PEM_write_X509(f, cert);
    else
        PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
    fclose(f);
}

/* NAME.pem and NAME.key, signed by the authority, for "DNS:...,IP:..." */
static inline void certs_add(struct certs *c, const char *name, const char *san)
{
    char file[64];
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = certs_make(c, key, name, san);
    snprintf(file, sizeof(file), "%s.pem", name);
    certs_write(c, file, cert, NULL);
    snprintf(file, sizeof(file), "%s.key", name);
    certs_write(c, file, NULL, key);
    X509_free(cert);
    EVP_PKEY_free(key);
}

/* An authority that the present one signed, in NAME.pem; it signs from now on. */
static inline void certs_descend(struct certs *c, const char *name)
{
    char file[64];
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *ca = certs_make(c, key, name, NULL);
    X509_free(c->ca);
    EVP_PKEY_free(c->ca_key);
    c->ca_key = key;
    c->ca = ca;
    snprintf(file, sizeof(file), "%s.pem", name);
    certs_write(c, file, ca, NULL);
}

/* A new authority, in ca.pem. */
static inline void certs_open(struct certs *c)
{
    *c = (struct certs){.folder = "/tmp/txrelay-certs-XXXXXX", .from_s = -3600, .until_s = 86400};
    assert_non_null(mkdtemp(c->folder));
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *ca = certs_make(c, key, "test authority", NULL);
    c->ca_key = key;
    c->ca = ca;
    certs_write(c, "ca.pem", ca, NULL);
}

static inline void certs_close(struct certs *c)
{
    char command[128];
    X509_free(c->ca);
    EVP_PKEY_free(c->ca_key);
    snprintf(command, sizeof(command), "rm -rf %s", c->folder);
    assert_int_equal(system(command), 0);
}

#endif
