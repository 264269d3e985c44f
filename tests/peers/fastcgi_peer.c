// usage: fastcgi_peer [REQUESTS] <LISTENING_SOCKET
//
// A FastCGI application by Debian's libfcgi, on the listening socket that is its standard input, as the specification has
// it. Up to so many requests (8) run at once, each on a connection of its own; one that is kept counts as one. Each word
// stands for an answer, in PATH_INFO, and N for a number in QUERY_STRING:
//
//   /hello       "hello\n"                                    /echo       the content, by its own type
//   /parameters  each parameter, "NAME=VALUE\n"               /count      how many bytes of content came
//   /talk        each line of the content, at once            /large?N    N bytes of content, "0123456789" again and again
//   /fields?N    ten fields, X-Field-0 on, of N bytes each    /errors?N   N lines of 64 bytes to stderr, then "hello\n"
//   /status?N    that status, without a reason                /location   "Location: /elsewhere" alone
//   /length?N    N bytes promised, "hello\n" sent             /unframed   "hello\n", with Transfer-Encoding: chunked
//   /nothing     an end without a head                        /half       a head that does not end
//   /headless    "hello\n" and no head                        /hang-up    the connection is closed without an end
//   /cut         it is closed within the content              /last       "hello\n", and the connection is closed
//   /never       nothing; its connection is looked at instead
//
// Each request is told on standard output, one line at its beginning: "begin WORD". /never adds "waiting" when it has the
// content, then "aborted" when it is sent FCGI_ABORT_REQUEST, and "closed" when the other side closes. The library reads
// ahead: what is sent before "waiting" may not be told.
//
// libfcgi 2.4.2 answers FCGI_GET_VALUES when a byte behind its content comes: the record's padding, or the next record.
// The answer's unused bytes are not zero. Build it by
//
//   gcc -O2 -pthread -o fastcgi_peer tests/peers/fastcgi_peer.c -lfcgi
#include <errno.h>
#include <fcgiapp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { kMostRequests = 256, kHeader = 8, kAbort = 2 };

static const char* parameter(const FCGX_Request* request, const char* name) {
  const char* const value = FCGX_GetParam(name, request->envp);
  return value != NULL ? value : "";
}

static void plain(FCGX_Request* request, const char* content) {
  FCGX_FPrintF(request->out, "Content-Type: text/plain\r\n\r\n%s", content);
}

static void told(const char* what, const char* more) {
  printf("%s%s\n", what, more);
  fflush(stdout);
}

static void copy_content(FCGX_Request* request) {
  const char* const type = parameter(request, "CONTENT_TYPE");
  char piece[4096];
  FCGX_FPrintF(request->out, "Content-Type: %s\r\n\r\n", *type != '\0' ? type : "text/plain");
  for (int got; (got = FCGX_GetStr(piece, sizeof piece, request->in)) > 0;) FCGX_PutStr(piece, got, request->out);
}

static void count_content(FCGX_Request* request) {
  char piece[4096], text[32];
  unsigned long long bytes = 0;
  for (int got; (got = FCGX_GetStr(piece, sizeof piece, request->in)) > 0;) bytes += (unsigned)got;
  snprintf(text, sizeof text, "%llu\n", bytes);
  plain(request, text);
}

static void talk(FCGX_Request* request) {
  plain(request, "");
  FCGX_FFlush(request->out);
  for (int byte; (byte = FCGX_GetChar(request->in)) >= 0;) {
    FCGX_PutChar(byte, request->out);
    if (byte == '\n' && FCGX_FFlush(request->out) != 0) return;
  }
}

static void repeat(FCGX_Request* request, long bytes) {
  static const char kDigits[] = "01234567890123456789012345678901234567890123456789";
  const long size = sizeof kDigits - 1;
  for (; bytes >= size; bytes -= size) {
    if (FCGX_PutStr(kDigits, size, request->out) < 0) return;
  }
  FCGX_PutStr(kDigits, (int)bytes, request->out);
}

static void put_fields(FCGX_Request* request, long bytes) {
  FCGX_PutS("Content-Type: text/plain\r\n", request->out);
  for (int i = 0; i < 10; ++i) {
    FCGX_FPrintF(request->out, "X-Field-%d: ", i);
    repeat(request, bytes);
    FCGX_PutS("\r\n", request->out);
  }
  FCGX_PutS("\r\nhello\n", request->out);
}

static void put_errors(FCGX_Request* request, long lines) {
  for (long i = 0; i < lines; ++i) {
    FCGX_FPrintF(request->err, "line %010ld of what went wrong, and more to make it long...\n", i);
  }
  plain(request, "hello\n");
}

// hang_up closes the connection under the library, behind what it has sent.
static void hang_up(const FCGX_Request* request) {
  FCGX_FFlush(request->out);
  shutdown(request->ipcFd, SHUT_RDWR);
}

// wait_for_end reads what is sent behind the content, which the library would read at its next request.
static void wait_for_end(FCGX_Request* request) {
  char piece[4096];
  while (FCGX_GetStr(piece, sizeof piece, request->in) > 0) continue;
  told("waiting", "");
  unsigned char record[kHeader];
  for (size_t have = 0;;) {
    const ssize_t got = recv(request->ipcFd, record + have, sizeof record - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if ((have += (size_t)got) < sizeof record) continue;
    if (record[1] == kAbort) told("aborted", "");
    have = 0;
  }
  told("closed", "");
}

static void answer(FCGX_Request* request) {
  const char* const word = parameter(request, "PATH_INFO");
  const long number = strtol(parameter(request, "QUERY_STRING"), NULL, 10);
  told("begin ", word);
  if (strcmp(word, "/hello") == 0) {
    plain(request, "hello\n");
  } else if (strcmp(word, "/echo") == 0) {
    copy_content(request);
  } else if (strcmp(word, "/count") == 0) {
    count_content(request);
  } else if (strcmp(word, "/talk") == 0) {
    talk(request);
  } else if (strcmp(word, "/parameters") == 0) {
    plain(request, "");
    for (char** each = request->envp; *each != NULL; ++each) FCGX_FPrintF(request->out, "%s\n", *each);
  } else if (strcmp(word, "/large") == 0) {
    plain(request, "");
    repeat(request, number);
  } else if (strcmp(word, "/fields") == 0) {
    put_fields(request, number);
  } else if (strcmp(word, "/errors") == 0) {
    put_errors(request, number);
  } else if (strcmp(word, "/status") == 0) {
    FCGX_FPrintF(request->out, "Status: %ld\r\nContent-Type: text/plain\r\n\r\nhello\n", number);
  } else if (strcmp(word, "/location") == 0) {
    FCGX_PutS("Location: /elsewhere\r\n\r\n", request->out);
  } else if (strcmp(word, "/length") == 0) {
    FCGX_FPrintF(request->out, "Content-Type: text/plain\r\nContent-Length: %ld\r\n\r\nhello\n", number);
  } else if (strcmp(word, "/unframed") == 0) {
    FCGX_PutS("Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\nhello\n", request->out);
  } else if (strcmp(word, "/half") == 0) {
    FCGX_PutS("Content-Type: text/pl", request->out);
  } else if (strcmp(word, "/headless") == 0) {
    FCGX_PutS("hello\n", request->out);
  } else if (strcmp(word, "/hang-up") == 0) {
    hang_up(request);
  } else if (strcmp(word, "/cut") == 0) {
    plain(request, "hel");
    hang_up(request);
  } else if (strcmp(word, "/last") == 0) {
    request->keepConnection = 0;
    plain(request, "hello\n");
  } else if (strcmp(word, "/never") == 0) {
    wait_for_end(request);
  } else if (strcmp(word, "/nothing") != 0) {
    FCGX_PutS("Status: 404 Not Found\r\nContent-Type: text/plain\r\n\r\nno such word\n", request->out);
  }
}

static void* serve(void* unused) {
  FCGX_Request request;
  if (FCGX_InitRequest(&request, 0, 0) != 0) return unused;
  while (FCGX_Accept_r(&request) == 0) {
    answer(&request);
    FCGX_Finish_r(&request);
  }
  return unused;
}

int main(int count, char** arguments) {
  const int requests = count > 1 ? atoi(arguments[1]) : 8;
  if (requests < 1 || requests > kMostRequests || FCGX_Init() != 0 || FCGX_IsCGI()) {
    fputs("fastcgi_peer: wants a number of requests up to 256, and a listening socket as its standard input\n", stderr);
    return 2;
  }
  for (int i = 1; i < requests; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve, NULL) != 0) return 1;
  }
  serve(NULL);
  return 1;
}
