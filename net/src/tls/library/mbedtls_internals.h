#pragma once

#include <stddef.h>
#include <stdint.h>

// coir's access to the internals of mbedTLS, in C because mbedTLS's internal header is C. Above all the record buffers:
// mbedTLS keeps them for a session's life, and an idle session does not need them.
#ifdef __cplusplus
extern "C" {
#endif

struct mbedtls_ssl_context;

// The sizes in which mbedtls_ssl_setup asks for the two buffers.
extern const size_t coir_tls_in_bytes;
extern const size_t coir_tls_out_bytes;

// coir_tls_done tells whether the handshake is over, tickets sent included, which mbedtls_ssl_is_handshake_over does
// not wait for.
int coir_tls_done(const struct mbedtls_ssl_context* ssl);

// coir_tls_at_rest tells whether the buffers are empty: no record, whole or partial, in either direction, and no
// handshake.
int coir_tls_at_rest(const struct mbedtls_ssl_context* ssl);

// coir_tls_begins_record tells whether the next received byte is the first of a record.
int coir_tls_begins_record(const struct mbedtls_ssl_context* ssl);

// coir_tls_allow_empty allows any number of empty records: mbedTLS takes the fourth in a row for a damaged one.
void coir_tls_allow_empty(struct mbedtls_ssl_context* ssl);

// coir_tls_unsent tells whether a record waits to be sent.
int coir_tls_unsent(const struct mbedtls_ssl_context* ssl);

// coir_tls_detach takes the buffers away from a session at rest, or from one that is about to be freed, and saves the 8
// bytes of its record counter that live there to `counter`. coir_tls_attach gives it buffers again, which need not be
// initialised.
void coir_tls_detach(struct mbedtls_ssl_context* ssl, unsigned char counter[8]);
void coir_tls_attach(struct mbedtls_ssl_context* ssl, unsigned char* in, unsigned char* out,
                     const unsigned char counter[8]);

// coir_tls_forget frees the memory that a finished handshake leaves behind and nothing reads again: the peer's
// certificate, and with TLS 1.3 the handshake's state of 4 KB, which mbedTLS frees itself with TLS 1.2.
void coir_tls_forget(struct mbedtls_ssl_context* ssl);

// coir_tls_gives_ticket tells whether only a TLS 1.3 ticket for the client is missing from the handshake.
int coir_tls_gives_ticket(const struct mbedtls_ssl_context* ssl);

// coir_tls_alert is the number of the alert that ended the session, if one did.
int coir_tls_alert(const struct mbedtls_ssl_context* ssl);

// coir_tls_last_word reads the bytes received from a peer to whom nothing can be sent any more, and returns the number
// of the alert that ends the session, or -1.
int coir_tls_last_word(struct mbedtls_ssl_context* ssl);

// coir_tls_plain_alert is the alert's number if the record that could not be decrypted is an alert in the clear, else
// -1. With TLS 1.3 a client that rejects the server's flight has no keys in force yet: OpenSSL's and mbedTLS's send
// their alert in the clear.
int coir_tls_plain_alert(const struct mbedtls_ssl_context* ssl);

// coir_tls_begin_step sends what the last step of the handshake left unsent, so that with TLS 1.3 the next step sends
// nothing but an alert. It encrypts a server's alerts by the keys that its client reads with: with TLS 1.3 these change
// after the server's Finished (RFC 8446, A.2), but mbedTLS changes its own only after the client's. In between only an
// alert that ends the session may be sent, because the record counter starts anew when the handshake ends. If anything
// else was sent, this function fails: no number may serve twice under one key.
int coir_tls_begin_step(struct mbedtls_ssl_context* ssl);

// coir_tls_is_alert tells whether the record being sent is an alert, given that it is not part of a handshake or
// belongs to its last step.
int coir_tls_is_alert(const unsigned char* record, size_t size);

// coir_tls_alert_for is the number of the alert to send after a call into mbedTLS failed with `code`; -1 for none: the
// peer is gone or has ended the session itself, or nothing has failed.
int coir_tls_alert_for(const struct mbedtls_ssl_context* ssl, int code);

// coir_tls_resumes tells whether the handshake, not over yet, resumes an earlier session.
int coir_tls_resumes(const struct mbedtls_ssl_context* ssl);

// coir_tls_resumable tells whether the established session of a client has received a ticket or a session id.
int coir_tls_resumable(const struct mbedtls_ssl_context* ssl);

// coir_tls_bio is the context that mbedtls_ssl_set_bio was given.
void* coir_tls_bio(const struct mbedtls_ssl_context* ssl);

// coir_tls_bind_ticket binds a server's TLS 1.2 tickets to the name that the client has asked for; `name` is its
// digest, 0 for none. A session of another name is not resumed (RFC 6066, 3). Call it before each step of the
// handshake. The digest lies in the encrypted ticket, in the field for the verification result of the client's
// certificate, which is always zero in a session that gets a ticket.
void coir_tls_bind_ticket(struct mbedtls_ssl_context* ssl, uint32_t name);

// coir_tls_name is the server's name that a client's session was made with, and verified for; or null.
const char* coir_tls_name(const struct mbedtls_ssl_context* ssl);

#ifdef __cplusplus
}
#endif
