#pragma once

#include <stddef.h>
#include <stdint.h>

// What coir takes from the inside of mbedTLS, in C because its internal header is. The record buffers above all, which
// mbedTLS keeps for a session's life and an idle session does not need.
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

// coir_tls_at_rest tells whether nothing lies in the buffers: no record, none half read or half sent, and no handshake.
int coir_tls_at_rest(const struct mbedtls_ssl_context* ssl);

// coir_tls_begins_record tells whether the byte that is received next is the first of a record.
int coir_tls_begins_record(const struct mbedtls_ssl_context* ssl);

// coir_tls_allow_empty lets empty records go on arriving: mbedTLS takes the fourth in a row for a damaged one.
void coir_tls_allow_empty(struct mbedtls_ssl_context* ssl);

// coir_tls_unsent tells whether a record waits to be sent.
int coir_tls_unsent(const struct mbedtls_ssl_context* ssl);

// coir_tls_detach takes the buffers away from a session at rest, or one that is about to be freed; the 8 bytes of its
// record counter that live there are kept in `counter`. coir_tls_attach gives it buffers again, of which nothing need
// be initialised.
void coir_tls_detach(struct mbedtls_ssl_context* ssl, unsigned char counter[8]);
void coir_tls_attach(struct mbedtls_ssl_context* ssl, unsigned char* in, unsigned char* out,
                     const unsigned char counter[8]);

// coir_tls_forget frees what the handshake leaves behind and nothing reads any more, once it is done: the peer's
// certificate, and by TLS 1.3 the handshake's own state, 4 KB that TLS 1.2 frees by itself.
void coir_tls_forget(struct mbedtls_ssl_context* ssl);

// coir_tls_gives_ticket tells whether the handshake is over but for a ticket by TLS 1.3 for the client.
int coir_tls_gives_ticket(const struct mbedtls_ssl_context* ssl);

// coir_tls_alert is the number of the alert that ended the session, given that one did.
int coir_tls_alert(const struct mbedtls_ssl_context* ssl);

// coir_tls_last_word takes in what has been received from a peer to whom nothing can be sent any more, and returns the
// number of the alert that ends the session, or -1.
int coir_tls_last_word(struct mbedtls_ssl_context* ssl);

// coir_tls_plain_alert is the number of an alert that the record is which could not be decrypted, or -1. By TLS 1.3 a
// client that finds the server's flight at fault has no keys in force to say so with yet: OpenSSL's and mbedTLS's say
// it in the clear.
int coir_tls_plain_alert(const struct mbedtls_ssl_context* ssl);

// coir_tls_begin_step sends what the last step of the handshake has left to send, so that the next sends nothing but an
// alert by TLS 1.3. It has a server's alerts encrypted by the keys that its client reads with: by TLS 1.3 they change
// behind the server's Finished (RFC 8446, A.2), and mbedTLS changes its own only behind the client's. Nothing but an
// alert that ends the session is sent in between: the record counter begins again with the handshake's end. If anything
// else was, this fails, for no number may serve twice under one key.
int coir_tls_begin_step(struct mbedtls_ssl_context* ssl);

// coir_tls_is_alert tells whether what is sent is an alert, given that it is no part of a handshake or its last step's.
int coir_tls_is_alert(const unsigned char* record, size_t size);

// coir_tls_alert_for is the number of the alert for the peer that made a call into mbedTLS fail with `code`; -1 where
// the peer is not to be told: it has gone or has ended the session itself, or nothing has failed.
int coir_tls_alert_for(const struct mbedtls_ssl_context* ssl, int code);

// coir_tls_resumes tells whether the handshake, not over yet, resumes an earlier session.
int coir_tls_resumes(const struct mbedtls_ssl_context* ssl);

// coir_tls_resumable tells whether the established session of a client has been given what it may be resumed by.
int coir_tls_resumable(const struct mbedtls_ssl_context* ssl);

// coir_tls_bio is what mbedtls_ssl_set_bio was given.
void* coir_tls_bio(const struct mbedtls_ssl_context* ssl);

// coir_tls_bind_ticket binds the tickets that a server gives by TLS 1.2 to the name that the client has asked for, of
// which `name` is a digest, 0 for none: a session of another name is not resumed (RFC 6066, 3), but made anew. Called
// before each step of the handshake. The digest lies in the ticket, which is encrypted, in the place of what became of
// the client's certificate: a session that has come so far has nothing to say there.
void coir_tls_bind_ticket(struct mbedtls_ssl_context* ssl, uint32_t name);

// coir_tls_name is the server's name that a client's session was made with, and verified for; or null.
const char* coir_tls_name(const struct mbedtls_ssl_context* ssl);

#ifdef __cplusplus
}
#endif
