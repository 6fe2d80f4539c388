/* And of what a scheduler on another host answers: the length of the credentials made of it, which are in `to` if they
 * fit; negative: it was refused. */
#include "libdcs/commands/dcs_begin/remote.c"

long fuzz_credentials(const unsigned char *reply, size_t length, const char *key_pem, const char *authority_pem,
                      char *to, size_t most) {
    BIO *in = BIO_new_mem_buf(key_pem, -1), *out = BIO_new(BIO_s_mem());
    EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, no_password, NULL);
    BIO_free(in);
    in = BIO_new_mem_buf(authority_pem, -1);
    X509 *authority = PEM_read_bio_X509(in, NULL, NULL, NULL);
    BIO_free(in);
    char *bytes = NULL;
    long made = -1;
    if (write_credentials(reply, length, "pool:7001", key, authority, out) == got_it)
        made = BIO_get_mem_data(out, &bytes);
    if (made >= 0 && (size_t)made <= most) memcpy(to, bytes, (size_t)made);
    EVP_PKEY_free(key);
    X509_free(authority);
    BIO_free(out);
    return made;
}

/* Is this a certificate that dcs_begin would take for the scheduler's? */
int fuzz_judge(const unsigned char *der, size_t length, const char *authority_pem) {
    BIO *in = BIO_new_mem_buf(authority_pem, -1);
    X509 *authority = PEM_read_bio_X509(in, NULL, NULL, NULL), *x = d2i_X509(NULL, &der, (long)length);
    BIO_free(in);
    const int good = judge(x, authority) == X509_V_OK;
    X509_free(x);
    X509_free(authority);
    ERR_clear_error();
    return good;
}
