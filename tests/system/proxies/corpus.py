"""Requests that two servers may read differently. Each is a name, the bytes, and the verdicts that are allowed:

    refused     a status of 400 or above; the upstream has seen nothing, or the beginning of one request that never ends
    passed      the upstream has seen exactly one well-formed request
    either      one of the two
    own         either, or an answer of the proxy's own
"""

# The request that nobody has sent: it stands where content, an extension or a trailer is.
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: t\r\n\r\n"
REFUSED, PASSED, EITHER, OWN = "refused", "passed", "either", "own"


def post(fields, body=b"", version=b"HTTP/1.1", target=b"/case"):
    return b"POST " + target + b" " + version + b"\r\nHost: t\r\n" + fields + b"\r\n" + body


def get(line=b"GET /case HTTP/1.1", fields=b"Host: t\r\n"):
    return line + b"\r\n" + fields + b"\r\n"


def chunked(body, fields=b""):
    return post(b"Transfer-Encoding: chunked\r\n" + fields, body)


END = b"0\r\n\r\n"
CHUNKS = b"5\r\nhello\r\n" + END


def _both():
    """Content-Length and Transfer-Encoding together, the second in every disguise."""
    length = b"Content-Length: %d\r\n" % len(END + SMUGGLED)
    yield "both framings", post(length + b"Transfer-Encoding: chunked\r\n", END + SMUGGLED), REFUSED
    yield "both framings, the coding first", post(b"Transfer-Encoding: chunked\r\n" + length, END + SMUGGLED), REFUSED
    yield "both framings that agree", post(b"Content-Length: 15\r\nTransfer-Encoding: chunked\r\n", CHUNKS), REFUSED
    for name, field in (
        ("a tab before it", b"Transfer-Encoding:\tchunked"),
        ("another coding", b"Transfer-Encoding: xchunked"),
        ("a comma behind it", b"Transfer-Encoding: chunked,"),
        ("identity", b"Transfer-Encoding: identity"),
        ("in quotes", b'Transfer-Encoding: "chunked"'),
        ("a vertical tab behind it", b"Transfer-Encoding: chunked\x0b"),
        ("a NUL behind it", b"Transfer-Encoding: chunked\0"),
        ("a high byte behind it", b"Transfer-Encoding: chunked\xa0"),
        ("white space before the colon", b"Transfer-Encoding : chunked"),
        ("a folded line", b"Transfer-Encoding:\r\n chunked"),
        ("in a folded line of another field", b"X: y\r\n Transfer-Encoding: chunked"),
        ("behind a bare CR", b"X: y\rTransfer-Encoding: chunked"),
        ("a bare CR behind it", b"Transfer-Encoding: chunked\r"),
        ("white space before its name", b" Transfer-Encoding: chunked"),
        ("an underscore", b"Transfer_Encoding: chunked"),
        ("an empty one", b"Transfer-Encoding:"),
    ):
        yield f"a length, and a coding with {name}", post(length + field + b"\r\n", END + SMUGGLED), REFUSED
    yield "a length, and a coding behind a bare LF", post(length + b"X: y\nTransfer-Encoding: chunked\r\n", END + SMUGGLED), REFUSED


def _codings():
    for name, value in (
        ("a comma behind it", b"chunked,"), ("a comma before it", b",chunked"), ("twice", b"chunked, chunked"),
        ("behind gzip", b"gzip, chunked"), ("before gzip", b"chunked, gzip"), ("a parameter", b"chunked;q=1"),
        ("identity", b"identity"), ("nothing", b""), ("identity first", b"identity, chunked"), ("a prefix", b"xchunked"),
        ("a suffix", b"chunkedx"), ("quotes", b'"chunked"'), ("a vertical tab", b"\x0bchunked"), ("a NUL", b"chunked\0"),
        ("an escaped letter", b"chunke%64"),
    ):
        yield f"a coding: {name}", post(b"Transfer-Encoding: " + value + b"\r\n", CHUNKS), REFUSED
    yield "two codings", post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", CHUNKS), REFUSED
    yield "two codings that differ", post(b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", CHUNKS), REFUSED
    yield "chunked in HTTP/1.0", post(b"Transfer-Encoding: chunked\r\n", END + SMUGGLED, b"HTTP/1.0"), REFUSED
    yield "chunked, in capitals", post(b"TRANSFER-ENCODING: CHUNKED\r\n", CHUNKS), PASSED
    yield "chunked", post(b"Transfer-Encoding: chunked\r\n", CHUNKS), PASSED


def _lengths():
    for name, value in (
        ("a sign", b"+5"), ("minus", b"-5"), ("minus nothing", b"-0"), ("hex", b"0x5"), ("two in one", b"5, 5"), ("two that differ", b"5, 6"),
        ("a space inside", b"5 5"), ("empty", b""), ("white space", b"  "), ("an underscore", b"1_0"), ("2^64 + 5", b"18446744073709551621"),
        ("2^63", b"9223372036854775808"), ("letters behind", b"5x"), ("a semicolon", b"5;"), ("a vertical tab", b"5\x0b"),
        ("a NUL", b"5\0"), ("a decimal point", b"5.0"), ("an exponent", b"5e0"), ("full-width", "５".encode()), ("quotes", b'"5"'),
        ("a bare CR", b"5\rX: y"), ("a folded line", b"\r\n 5"),
    ):
        yield f"a length: {name}", post(b"Content-Length: " + value + b"\r\n", b"hello"), REFUSED
    yield "two lengths that differ", post(b"Content-Length: 5\r\nContent-Length: 0\r\n", b"hello"), REFUSED
    yield "two lengths that agree", post(b"Content-Length: 5\r\nContent-Length: 5\r\n", b"hello"), REFUSED
    yield "white space before a length's colon", post(b"Content-Length : 5\r\n", b"hello"), REFUSED
    yield "a tab before a length's colon", post(b"Content-Length\t: 5\r\n", b"hello"), REFUSED
    yield "white space before the first field", b"POST /case HTTP/1.1\r\n Content-Length: 5\r\nHost: t\r\n\r\nhello", REFUSED
    yield "a length and its twin", post(b"Content-Length: 5\r\nContent_Length: 0\r\n", b"hello"), EITHER
    yield "a length in HTTP/1.0", post(b"Content-Length: 5\r\n", b"hello", b"HTTP/1.0"), PASSED
    yield "a length of a GET", get(fields=b"Host: t\r\nContent-Length: %d\r\n" % len(SMUGGLED)) + SMUGGLED, EITHER
    yield "a length with zeros before it", post(b"Content-Length: 0005\r\n", b"hello"), EITHER


def _chunks():
    wrong = [
        ("a bare LF behind the size", b"5\nhello\r\n" + END), ("a bare CR behind the size", b"5\rhello\r\n" + END),
        ("a space before the size", b" 5\r\nhello\r\n" + END), ("hex with its prefix", b"0x5\r\nhello\r\n" + END),
        ("a sign", b"+5\r\nhello\r\n" + END), ("minus", b"-5\r\nhello\r\n" + END), ("an underscore", b"0_5\r\nhello\r\n" + END),
        ("no size", b"\r\nhello\r\n" + END), ("an extension alone", b";a=b\r\nhello\r\n" + END),
        ("a bare LF in an extension", b"5;a\nb\r\nhello\r\n" + END), ("a bare CR in an extension", b"5;a\rb\r\nhello\r\n" + END),
        ("a NUL in an extension", b"5;a\0\r\nhello\r\n" + END),
        ("a request behind an extension's LF", b"0;\n\r\n" + SMUGGLED), ("a size of 2^64 + 5", b"10000000000000005\r\nhello\r\n" + END),
        ("a size of 2^63", b"8000000000000000\r\nhello\r\n" + END), ("content longer than its size", b"5\r\nhello!\r\n" + END),
        ("content that ends with a bare LF", b"5\r\nhello\n" + END), ("content that ends with a bare CR", b"5\r\nhello\rX" + END),
        ("no end of content", b"5\r\nhello" + END), ("a comma", b"5,5\r\nhello\r\n" + END), ("a full stop", b"5.\r\nhello\r\n" + END),
        ("letters behind the size", b"5g\r\nhello\r\n" + END), ("a full-width size", "５\r\nhello\r\n".encode() + END),
        ("the end with bare LFs", b"5\r\nhello\r\n0\n\n" + SMUGGLED), ("the end with one bare LF", b"5\r\nhello\r\n0\r\n\n" + SMUGGLED),
        ("the end with a bare CR", b"5\r\nhello\r\n0\r\n\rX" + SMUGGLED), ("a size of blanks", b"   \r\nhello\r\n" + END),
    ]
    for name, body in wrong:
        yield f"chunks: {name}", chunked(body), REFUSED
    yield "chunks: an extension", chunked(b"5;a=b\r\nhello\r\n0;c\r\n\r\n"), EITHER
    yield "chunks: an extension in quotes", chunked(b'5;a="b;c"\r\nhello\r\n' + END), EITHER
    yield "chunks: a space behind the size", chunked(b"5 \r\nhello\r\n" + END), EITHER
    yield "chunks: zeros before the size", chunked(b"0000005\r\nhello\r\n" + END), EITHER
    yield "chunks: capitals", chunked(b"A\r\nhellohello\r\n" + END), PASSED


def _trailers():
    for name, line in (
        ("Content-Length", b"Content-Length: 99"), ("Transfer-Encoding", b"Transfer-Encoding: chunked"), ("Host", b"Host: other"),
        ("Authorization", b"Authorization: Basic eDp5"), ("Connection", b"Connection: close"), ("TE", b"TE: gzip"),
        ("a harmless one", b"X-Checksum: 1"),
    ):
        yield f"a trailer: {name}", chunked(b"5\r\nhello\r\n0\r\n" + line + b"\r\n\r\n", b"Trailer: X-Checksum\r\n"), EITHER
    for name, lines in (
        ("a bare LF", b"X: y\nZ: 1\r\n"), ("a bare CR", b"X: y\rZ: 1\r\n"), ("a folded line", b"X: y\r\n z\r\n"), ("no colon", b"X\r\n"),
        ("white space before the colon", b"X : y\r\n"), ("a NUL", b"X: \0\r\n"),
    ):
        yield f"a trailer: {name}", chunked(b"5\r\nhello\r\n0\r\n" + lines + b"\r\n"), REFUSED


def _lines():
    for name, line in (
        ("white space in the target", b"GET /case x HTTP/1.1"), ("a tab in the target", b"GET /ca\tse HTTP/1.1"),
        ("a version twice", b"GET /case HTTP/1.1 HTTP/1.1"), ("a version in small letters", b"GET /case http/1.1"),
        ("a longer version", b"GET /case HTTP/1.10"), ("HTTP/01.1", b"GET /case HTTP/01.1"), ("no version", b"GET /case"),
        ("a NUL in the method", b"G\0T /case HTTP/1.1"), ("a NUL in the target", b"GET /\0 HTTP/1.1"), ("no target", b"GET  HTTP/1.1"),
        ("a bare CR in the target", b"GET /case\r HTTP/1.1"), ("a relative target", b"GET case HTTP/1.1"),
        ("a colon behind the method", b"GET: /case HTTP/1.1"), ("an asterisk for a GET", b"GET * HTTP/1.1"),
    ):
        yield f"a line: {name}", get(line), REFUSED
    for name, line in (
        ("two spaces", b"GET  /case HTTP/1.1"), ("a high byte in the target", b"GET /\xff HTTP/1.1"), ("two slashes", b"GET //other/case HTTP/1.1"),
        ("an escaped CR LF", b"GET /case%0d%0aX:%20y HTTP/1.1"), ("a fragment", b"GET /case#x HTTP/1.1"), ("dots", b"GET /a/../case HTTP/1.1"),
        ("an escaped slash", b"GET /a%2f..%2fcase HTTP/1.1"), ("a small method", b"get /case HTTP/1.1"), ("HTTP/1.2", b"GET /case HTTP/1.2"),
        ("the absolute form", b"GET http://t/case HTTP/1.1"), ("the absolute form of another host", b"GET http://other/case HTTP/1.1"),
        ("the absolute form with a user", b"GET http://u:p@t/case HTTP/1.1"), ("the absolute form of https", b"GET https://t/case HTTP/1.1"),
        ("the absolute form without a path", b"GET http://t HTTP/1.1"), ("the absolute form with a query alone", b"GET http://t?x HTTP/1.1"),
        ("the absolute form of a file", b"GET file:///etc/passwd HTTP/1.1"), ("TRACE", b"TRACE /case HTTP/1.1"), ("backslashes", b"GET \\case HTTP/1.1"),
    ):
        yield f"a line: {name}", get(line), EITHER
    yield "OPTIONS *", get(b"OPTIONS * HTTP/1.1"), OWN
    yield "CONNECT", get(b"CONNECT t:80 HTTP/1.1", b"Host: t:80\r\n"), REFUSED


def _fields():
    for name, fields in (
        ("no Host", b""), ("two Hosts", b"Host: t\r\nHost: u\r\n"), ("two equal Hosts", b"Host: t\r\nHost: t\r\n"), ("a Host with a space", b"Host: t u\r\n"),
        ("a Host with a slash", b"Host: t/x\r\n"), ("a Host with a user", b"Host: u@t\r\n"), ("a folded field", b"Host: t\r\nA: b\r\n c\r\n"),
        ("a field without a colon", b"Host: t\r\nA\r\n"), ("a field without a name", b"Host: t\r\n: b\r\n"), ("a bare CR in a value", b"Host: t\r\nA: b\rc\r\n"),
        ("a NUL in a value", b"Host: t\r\nA: \0\r\n"), ("a NUL in a name", b"Host: t\r\nA\0: b\r\n"), ("a space in a name", b"Host: t\r\nA B: c\r\n"),
        ("a high byte in a name", b"Host: t\r\nA\xe9: b\r\n"), ("white space before Host's colon", b"Host : t\r\n"),
    ):
        yield f"fields: {name}", get(fields=fields), REFUSED
    for name, fields in (
        ("an empty Host", b"Host:\r\n"), ("a high byte in a value", b"Host: t\r\nA: \xe9\r\n"), ("underscored Host", b"Host: t\r\nHo_st: u\r\nHOST_: u\r\n"),
        ("X_Forwarded_For", b"Host: t\r\nX_Forwarded_For: 1.2.3.4\r\n"), ("a bare LF", b"Host: t\nA: b\r\n"), ("a Host with a port", b"Host: t:99\r\n"),
        ("Connection that names Host", b"Host: t\r\nConnection: Host\r\n"), ("Connection that names X-Forwarded-For", b"Host: t\r\nConnection: X-Forwarded-For\r\n"),
        ("Connection that names Connection", b"Host: t\r\nConnection: Connection, close\r\n"), ("TE", b"Host: t\r\nTE: gzip, trailers\r\nConnection: TE\r\n"),
        ("Proxy-Connection", b"Host: t\r\nProxy-Connection: keep-alive\r\nKeep-Alive: 5\r\n"), ("Expect in HTTP/1.0", b"Host: t\r\nExpect: 100-continue\r\n"),
    ):
        yield f"fields: {name}", get(fields=fields), EITHER
    yield "Connection that names Content-Length", post(b"Connection: Content-Length\r\nContent-Length: %d\r\n" % len(SMUGGLED), SMUGGLED), EITHER
    yield "Connection that names Transfer-Encoding", post(b"Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n", CHUNKS), EITHER
    yield "an empty line before a request", b"\r\n" + get(), EITHER
    yield "a bare LF before a request", b"\n" + get(), EITHER
    yield "only bare LFs", b"GET /case HTTP/1.1\nHost: t\n\n", EITHER


CASES = [*_both(), *_codings(), *_lengths(), *_chunks(), *_trailers(), *_lines(), *_fields()]
