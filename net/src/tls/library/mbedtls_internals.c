#include <ssl_misc.h>  // before any other of mbedTLS's: it opens their private parts

#include "tls/library/mbedtls_internals.h"

#include <mbedtls/net_sockets.h>
#include <mbedtls/platform.h>
#include <string.h>

const size_t coir_tls_in_bytes = MBEDTLS_SSL_IN_BUFFER_LEN;
const size_t coir_tls_out_bytes = MBEDTLS_SSL_OUT_BUFFER_LEN;

int coir_tls_done(const mbedtls_ssl_context* ssl) {
  return ssl->state == MBEDTLS_SSL_HANDSHAKE_OVER;
}

int coir_tls_at_rest(const mbedtls_ssl_context* ssl) {
  return coir_tls_done(ssl) && ssl->in_left == 0 && ssl->out_left == 0 && ssl->badmac_seen_or_in_hsfraglen == 0 &&
         mbedtls_ssl_check_pending(ssl) == 0;
}

int coir_tls_begins_record(const mbedtls_ssl_context* ssl) {
  return ssl->in_left == 0;
}

void coir_tls_allow_empty(mbedtls_ssl_context* ssl) {
  ssl->nb_zero = 0;
}

int coir_tls_unsent(const mbedtls_ssl_context* ssl) {
  return ssl->out_left != 0;
}

void coir_tls_detach(mbedtls_ssl_context* ssl, unsigned char counter[8]) {
  if (ssl->in_buf == NULL) return;
  memcpy(counter, ssl->in_ctr, MBEDTLS_SSL_SEQUENCE_NUMBER_LEN);
  ssl->in_buf = ssl->out_buf = NULL;
}

void coir_tls_attach(mbedtls_ssl_context* ssl, unsigned char* in, unsigned char* out, const unsigned char counter[8]) {
  ssl->in_buf = in;
  ssl->out_buf = out;
  mbedtls_ssl_reset_in_pointers(ssl);
  mbedtls_ssl_reset_out_pointers(ssl);
  // TLS 1.2 puts a part of the nonce in front of the message, by the transform that is in force.
  mbedtls_ssl_update_out_pointers(ssl, ssl->transform_out);
  memcpy(ssl->in_ctr, counter, MBEDTLS_SSL_SEQUENCE_NUMBER_LEN);
}

void coir_tls_forget(mbedtls_ssl_context* ssl) {
  // A client that wants tickets needs it for those that are still to come.
  const int done_with = mbedtls_ssl_conf_get_endpoint(ssl->conf) == MBEDTLS_SSL_IS_SERVER ||
                        !mbedtls_ssl_conf_is_signal_new_session_tickets_enabled(ssl->conf);
  if (ssl->handshake != NULL && done_with) {
    mbedtls_ssl_handshake_free(ssl);
    mbedtls_free(ssl->handshake);
    ssl->handshake = NULL;
#if defined(MBEDTLS_SSL_PROTO_TLS1_2)
    // mbedtls_ssl_free looks for it only where there is a handshake.
    mbedtls_ssl_transform_free(ssl->transform_negotiate);
    mbedtls_free(ssl->transform_negotiate);
    ssl->transform_negotiate = NULL;
#endif
  }
  mbedtls_ssl_session* const session = ssl->session;
  if (session == NULL || session->peer_cert == NULL) return;
  mbedtls_x509_crt_free(session->peer_cert);
  mbedtls_free(session->peer_cert);
  session->peer_cert = NULL;
}

int coir_tls_gives_ticket(const mbedtls_ssl_context* ssl) {
  return ssl->state == MBEDTLS_SSL_TLS1_3_NEW_SESSION_TICKET ||
         ssl->state == MBEDTLS_SSL_TLS1_3_NEW_SESSION_TICKET_FLUSH;
}

int coir_tls_alert(const mbedtls_ssl_context* ssl) {
  return ssl->in_buf != NULL ? ssl->in_msg[1] : 0;
}

int coir_tls_last_word(mbedtls_ssl_context* ssl) {
  return mbedtls_ssl_read_record(ssl, 0) == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE ? ssl->in_msg[1] : -1;
}

int coir_tls_plain_alert(const mbedtls_ssl_context* ssl) {
  if (coir_tls_done(ssl) || ssl->in_buf == NULL || ssl->tls_version != MBEDTLS_SSL_VERSION_TLS1_3) return -1;
  const unsigned char* const record = ssl->in_hdr;
  const int is_fatal_alert = record[0] == MBEDTLS_SSL_MSG_ALERT && record[3] == 0 && record[4] == 2 &&
                             record[5] == MBEDTLS_SSL_ALERT_LEVEL_FATAL;
  return is_fatal_alert ? record[6] : -1;
}

int coir_tls_begin_step(mbedtls_ssl_context* ssl) {
  static const unsigned char none[sizeof ssl->cur_out_ctr];
  const int flushed = mbedtls_ssl_flush_output(ssl);
  if (flushed != 0) return flushed;
  // transform_application is of TLS 1.3, and there from the server's Finished on.
  if (mbedtls_ssl_conf_get_endpoint(ssl->conf) != MBEDTLS_SSL_IS_SERVER || ssl->transform_application == NULL) return 0;
  if (ssl->handshake != NULL && ssl->transform_out == ssl->handshake->transform_handshake) {
    mbedtls_ssl_set_outbound_transform(ssl, ssl->transform_application);
  }
  if (ssl->state != MBEDTLS_SSL_HANDSHAKE_WRAPUP || memcmp(ssl->cur_out_ctr, none, sizeof none) == 0) return 0;
  return MBEDTLS_ERR_SSL_INTERNAL_ERROR;
}

int coir_tls_is_alert(const unsigned char* record, size_t size) {
  // Encrypted by TLS 1.3: level, number and type, padded, and the authentication tag.
  const size_t hidden = 5 +
                        (3 + MBEDTLS_SSL_CID_TLS1_3_PADDING_GRANULARITY - 1) /
                            MBEDTLS_SSL_CID_TLS1_3_PADDING_GRANULARITY * MBEDTLS_SSL_CID_TLS1_3_PADDING_GRANULARITY +
                        16;
  return size > 5 &&
         (record[0] == MBEDTLS_SSL_MSG_ALERT || (record[0] == MBEDTLS_SSL_MSG_APPLICATION_DATA && size == hidden));
}

// bad_record is what a record's header says is wrong with it.
static int bad_record(const mbedtls_ssl_context* ssl) {
  const unsigned char* const header = ssl->in_hdr;
  const size_t most = MBEDTLS_SSL_IN_CONTENT_LEN + (ssl->transform_in != NULL ? 256 : 0);
  if (header[0] < MBEDTLS_SSL_MSG_CHANGE_CIPHER_SPEC || header[0] > MBEDTLS_SSL_MSG_APPLICATION_DATA) {
    return MBEDTLS_SSL_ALERT_MSG_UNEXPECTED_MESSAGE;
  }
  if (header[1] != MBEDTLS_SSL_MAJOR_VERSION_3) return MBEDTLS_SSL_ALERT_MSG_PROTOCOL_VERSION;
  return MBEDTLS_GET_UINT16_BE(header, 3) > most ? MBEDTLS_SSL_ALERT_MSG_RECORD_OVERFLOW
                                                 : MBEDTLS_SSL_ALERT_MSG_DECODE_ERROR;
}

int coir_tls_alert_for(const mbedtls_ssl_context* ssl, int code) {
  switch (code) {
    case MBEDTLS_ERR_SSL_WANT_READ:
    case MBEDTLS_ERR_SSL_WANT_WRITE:
    case MBEDTLS_ERR_SSL_ASYNC_IN_PROGRESS:
    case MBEDTLS_ERR_SSL_CRYPTO_IN_PROGRESS:
    case MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET:
    case MBEDTLS_ERR_SSL_CONN_EOF:
    case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY:
    case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE:
    case MBEDTLS_ERR_NET_RECV_FAILED:
    case MBEDTLS_ERR_NET_SEND_FAILED:
      return -1;
    case MBEDTLS_ERR_SSL_INVALID_RECORD:
    case MBEDTLS_ERR_SSL_BAD_INPUT_DATA:
      return bad_record(ssl);
    case MBEDTLS_ERR_SSL_UNEXPECTED_MESSAGE:
      return MBEDTLS_SSL_ALERT_MSG_UNEXPECTED_MESSAGE;
    case MBEDTLS_ERR_SSL_INVALID_MAC:
      return MBEDTLS_SSL_ALERT_MSG_BAD_RECORD_MAC;
    case MBEDTLS_ERR_SSL_DECODE_ERROR:
      return MBEDTLS_SSL_ALERT_MSG_DECODE_ERROR;
    case MBEDTLS_ERR_SSL_ILLEGAL_PARAMETER:
      return MBEDTLS_SSL_ALERT_MSG_ILLEGAL_PARAMETER;
    case MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION:
      return MBEDTLS_SSL_ALERT_MSG_PROTOCOL_VERSION;
    case MBEDTLS_ERR_SSL_BAD_CERTIFICATE:
    case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED:
      return MBEDTLS_SSL_ALERT_MSG_BAD_CERT;
    case MBEDTLS_ERR_SSL_HANDSHAKE_FAILURE:
    case MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE:
      return MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE;
    default:
      return code < 0 ? MBEDTLS_SSL_ALERT_MSG_INTERNAL_ERROR : -1;
  }
}

int coir_tls_resumes(const mbedtls_ssl_context* ssl) {
  if (ssl->handshake == NULL) return 0;
#if defined(MBEDTLS_SSL_PROTO_TLS1_2)
  if (ssl->tls_version == MBEDTLS_SSL_VERSION_TLS1_2) return ssl->handshake->resume;
#endif
  return ssl->handshake->key_exchange_mode == MBEDTLS_SSL_TLS1_3_KEY_EXCHANGE_MODE_PSK_EPHEMERAL;
}

int coir_tls_resumable(const mbedtls_ssl_context* ssl) {
  const mbedtls_ssl_session* const session = ssl->session;
  if (session == NULL) return 0;
  if (session->ticket != NULL) return 1;
  return session->tls_version == MBEDTLS_SSL_VERSION_TLS1_2 && session->id_len != 0;
}

const char* coir_tls_name(const mbedtls_ssl_context* ssl) {
  return ssl->hostname;
}

void* coir_tls_bio(const mbedtls_ssl_context* ssl) {
  return ssl->p_bio;
}

void coir_tls_bind_ticket(mbedtls_ssl_context* ssl, uint32_t name) {
#if defined(MBEDTLS_SSL_PROTO_TLS1_2) && defined(MBEDTLS_SSL_SRV_C)
  mbedtls_ssl_session* const session = ssl->session_negotiate;
  if (session == NULL || ssl->handshake == NULL || ssl->tls_version != MBEDTLS_SSL_VERSION_TLS1_2 ||
      mbedtls_ssl_conf_get_endpoint(ssl->conf) != MBEDTLS_SSL_IS_SERVER) {
    return;
  }
  if (ssl->state == MBEDTLS_SSL_SERVER_HELLO && ssl->handshake->resume) {
    if (session->verify_result != name) {
      ssl->handshake->resume = 0;
      ssl->handshake->new_session_ticket = 1;
    }
    session->verify_result = 0;
  } else if (ssl->state == MBEDTLS_SSL_SERVER_CHANGE_CIPHER_SPEC) {
    // The ticket is written in this state, before the message that the state is named after.
    session->verify_result = ssl->handshake->new_session_ticket ? name : 0;
  }
#else
  (void)ssl;
  (void)name;
#endif
}
