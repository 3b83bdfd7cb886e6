/* SPDX-License-Identifier: MIT */
#include "adapters/redis/conn/tls.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "adapters/redis/conn/compat.h"
#include "adapters/redis/monotonic.h"
#include "core/error.h"
#include "core/mem.h"

struct weir__tls {
    SSL_CTX *context;
    BIO_METHOD *method;              /* how its connections write */
    char name[WEIR__REDIS_TEXT_CAP]; /* what certificates must name; "": host */
};

/* --- what the address says ------------------------------------------------ */

/* The last thing that OpenSSL complained of, on this thread. */
static const char *complaint(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_last_error());

    if (ERR_GET_LIB(ERR_peek_last_error()) == ERR_LIB_SYS)
        text = strerror(ERR_GET_REASON(ERR_peek_last_error()));
    return text != NULL ? text : "OpenSSL does not say why";
}

static int refuse(struct weir_error *err, const char *parameter,
                  const char *file)
{
    return weir__error_set(err, WEIR_EINVAL,
                           "redis address: %s=%s cannot be used (%s)",
                           parameter, file, complaint());
}

/* Nobody is asked: a key with a passphrase is refused. */
static int give_no_passphrase(char *buf, int cap, int is_writing, void *arg)
{
    (void)buf;
    (void)cap;
    (void)is_writing;
    (void)arg;
    return -1;
}

static int trust(SSL_CTX *context, const struct weir__redis_url *url,
                 struct weir_error *err)
{
    SSL_CTX_set_verify(
        context, url->no_verify ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (url->ca[0] == '\0') {
        (void)SSL_CTX_set_default_verify_paths(context); /* may be none */
        return WEIR_OK;
    }
    if (SSL_CTX_load_verify_locations(context, url->ca, NULL) != 1)
        return refuse(err, "ca", url->ca);
    return WEIR_OK;
}

/* Called where the server asks for a certificate and there is none to show. A
 * server that insists hangs up, and mostly too soon to say why. */
static int note_question(SSL *ssl, X509 **certificate, EVP_PKEY **key)
{
    (void)certificate;
    (void)key;
    SSL_set_app_data(ssl, ssl);
    return 0;
}

static int identify(SSL_CTX *context, const struct weir__redis_url *url,
                    struct weir_error *err)
{
    int reason;

    if (url->cert[0] == '\0') {
        SSL_CTX_set_client_cert_cb(context, note_question);
        return WEIR_OK;
    }
    SSL_CTX_set_default_passwd_cb(context, give_no_passphrase);
    if (SSL_CTX_use_certificate_chain_file(context, url->cert) != 1)
        return refuse(err, "cert", url->cert);
    if (SSL_CTX_use_PrivateKey_file(context, url->key, SSL_FILETYPE_PEM) == 1)
        return WEIR_OK;
    reason = ERR_GET_REASON(ERR_peek_last_error());
    if (reason == X509_R_KEY_VALUES_MISMATCH ||
        reason == X509_R_KEY_TYPE_MISMATCH)
        return weir__error_set(err, WEIR_EINVAL,
                               "redis address: key=%s does not fit cert=%s",
                               url->key, url->cert);
    return refuse(err, "key", url->key);
}

/* As OpenSSL's own, but a peer that is gone raises no SIGPIPE. */
static int send_quietly(BIO *bio, const char *bytes, int len)
{
    int fd = (int)(intptr_t)BIO_get_data(bio);
    int sent = (int)send(fd, bytes, (size_t)len, MSG_NOSIGNAL);

    BIO_clear_retry_flags(bio);
    if (sent < 0 && BIO_sock_should_retry(sent) != 0)
        BIO_set_retry_write(bio);
    return sent;
}

/* Nothing is held back, so flushing is done. */
static long control(BIO *bio, int command, long value, void *arg)
{
    (void)bio;
    (void)value;
    (void)arg;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static bool make_method(struct weir__tls *tls)
{
    tls->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "weir");
    return tls->method != NULL &&
           BIO_meth_set_write(tls->method, send_quietly) == 1 &&
           BIO_meth_set_ctrl(tls->method, control) == 1;
}

static int fill(struct weir__tls *tls, const struct weir__redis_url *url,
                struct weir_error *err)
{
    int rc;

    tls->context = SSL_CTX_new(TLS_client_method());
    if (tls->context == NULL || !make_method(tls) ||
        SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) != 1)
        return weir__error_set(err, WEIR_ENOMEM, "no TLS: %s", complaint());
#ifdef SSL_OP_IGNORE_UNEXPECTED_EOF
    /* A reply says how long it is: one that was cut is seen without TLS. */
    (void)SSL_CTX_set_options(tls->context, SSL_OP_IGNORE_UNEXPECTED_EOF);
#endif
    (void)snprintf(tls->name, sizeof(tls->name), "%s",
                   url->server_name); /* fits */
    rc = trust(tls->context, url, err);
    return rc == WEIR_OK ? identify(tls->context, url, err) : rc;
}

int weir__tls_new(const struct weir__redis_url *url, struct weir__tls **ret_tls,
                  struct weir_error *err)
{
    struct weir__tls *tls;
    int rc;

    *ret_tls = NULL;
    if (!url->is_tls)
        return WEIR_OK;
    tls = weir__mem_new(sizeof(*tls));
    if (tls == NULL)
        return weir__error_code(err, WEIR_ENOMEM);
    ERR_clear_error();
    rc = fill(tls, url, err);
    if (rc != WEIR_OK) {
        weir__tls_free(tls);
        return rc;
    }
    *ret_tls = tls;
    return WEIR_OK;
}

void weir__tls_free(struct weir__tls *tls)
{
    if (tls == NULL)
        return;
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->method);
    weir__mem_free(tls);
}

/* --- a connection --------------------------------------------------------- */

/* An address is no name: certificates have it elsewhere, and none is told to
 * the server. */
static bool demand_name(SSL *ssl, const char *name)
{
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1)
        return true;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) == 1 &&
           SSL_set_tlsext_host_name(ssl, name) == 1;
}

static bool write_quietly(const struct weir__tls *tls, SSL *ssl)
{
    BIO *bio = BIO_new(tls->method);

    if (bio == NULL)
        return false;
    BIO_set_data(bio, (void *)(intptr_t)SSL_get_fd(ssl));
    BIO_set_init(bio, 1);
    SSL_set0_wbio(ssl, bio);
    return true;
}

struct ssl_st *weir__tls_begin(const struct weir__tls *tls,
                               struct redisContext *context, const char *host,
                               char *why, size_t cap)
{
    SSL *ssl = SSL_new(tls->context);

    if (ssl == NULL ||
        !demand_name(ssl, tls->name[0] != '\0' ? tls->name : host)) {
        SSL_free(ssl);
        (void)snprintf(why, cap, "out of memory"); /* fits */
        return NULL;
    }
    (void)fcntl(context->fd, F_SETFL,
                fcntl(context->fd, F_GETFL) | O_NONBLOCK); /* cannot fail */
    context->flags &= ~REDIS_BLOCK;
    ERR_clear_error();
    if (redisInitiateSSL(context, ssl) == REDIS_OK) {
        if (write_quietly(tls, ssl))
            return ssl;
        (void)snprintf(why, cap, "out of memory"); /* fits */
        return NULL;
    }
    (void)weir__tls_reason(ssl, why, cap); /* there is one */
    SSL_free(ssl);
    return NULL;
}

bool weir__tls_finish(struct ssl_st *ssl, int limit_ms, char *why, size_t cap)
{
    int64_t until_ms = weir__monotonic_ms() + limit_ms, left_ms = limit_ms;
    struct pollfd look = {.fd = SSL_get_fd(ssl)};

    while (left_ms > 0) {
        int rc, error;

        ERR_clear_error();
        rc = SSL_do_handshake(ssl);
        if (rc == 1)
            return true;
        error = SSL_get_error(ssl, rc);
        if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
            (void)weir__tls_reason(ssl, why, cap); /* there is one */
            return false;
        }
        look.events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        (void)poll(&look, 1, (int)left_ms); /* or a signal: once more */
        left_ms = until_ms - weir__monotonic_ms();
    }
    (void)snprintf(why, cap, "no end of the TLS handshake within %d ms",
                   limit_ms); /* fits */
    return false;
}

void weir__tls_prepare(void)
{
    ERR_clear_error();
}

/* What to do, where it is not plain. */
static const char *advice(long verdict)
{
    switch (verdict) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return " (server_name= tells another name)";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return " (ca= tells whom to trust)";
    default:
        return "";
    }
}

bool weir__tls_reason(const struct ssl_st *ssl, char *text, size_t cap)
{
    long verdict = SSL_get_verify_result(ssl);
    unsigned long error = ERR_peek_last_error();

    if (SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE && verdict != X509_V_OK)
        (void)snprintf(text, cap, "its certificate is refused: %s%s",
                       X509_verify_cert_error_string(verdict),
                       advice(verdict)); /* cut */
    else if (SSL_get_app_data(ssl) != NULL)
        (void)snprintf(text, cap,
                       "closed; it had asked for a certificate (cert= and "
                       "key= give one)"); /* cut */
    else if (ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER)
        (void)snprintf(text, cap, "no TLS on that port"); /* fits */
    else if (error != 0 && ERR_GET_LIB(error) != ERR_LIB_SYS)
        (void)snprintf(text, cap, "TLS: %s", complaint()); /* cut */
    else if (!SSL_is_init_finished(ssl))
        (void)snprintf(text, cap, "closed during the TLS handshake"); /* fits */
    else
        return false;
    return true;
}
