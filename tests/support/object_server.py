"""A store with the interface of S3 for tests: signatures are verified, lists have pages of two, failures on demand."""

import collections
import hashlib
import hmac
import http.server
import re
import threading
import urllib.parse
import xml.sax.saxutils

KEY, SECRET, TOKEN, REGION, BUCKET = "KEYID", "se/cret+", "tok:en", "eu-test-1", "logs"


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def expected_signature(method, path, headers, names, scope, secret=SECRET):
    """By the specification of AWS Signature Version 4, from the words of the request."""
    path, _, query = path.partition("?")
    pairs = sorted(pair.partition("=")[::2] for pair in query.split("&") if pair)
    lines = [f"{name}:{' '.join(headers[name].split())}" for name in names]
    request = "\n".join([method, path, "&".join(f"{k}={v}" for k, v in pairs), *lines, "", ";".join(names),
                         headers["x-amz-content-sha256"]])
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], "/".join(scope),
                      hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in scope:
        key = sign(key, part)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Store:
    """State that a test sets and reads."""

    def __init__(self, signed=True):
        self.signed = signed
        self.objects = {}  # key: bytes
        self.cuts = 0  # downloads that break in their middle
        self.busy = 0  # requests that are answered by 503
        self.busy_after_cuts = 0  # what busy becomes when a download breaks
        self.listed_etag = None  # that lists have in place of the true ones
        self.ignore_ranges = False
        self.requests = collections.Counter()
        self.ranges = []

        class Handler(http.server.BaseHTTPRequestHandler):
            store = self

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.store.answer(self)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request):
        with self.lock:
            self.requests["all"] += 1
            if self.busy > 0:
                self.busy -= 1
                return self.fail(request, 503, "SlowDown", "Please reduce your request rate.")
            if self.signed and (wrong := self.wrong_signature(request)):
                return self.fail(request, 403, *wrong)
            path, _, query = request.path.partition("?")
            bucket, _, key = urllib.parse.unquote(path).removeprefix("/").partition("/")
            if bucket != BUCKET:
                return self.fail(request, 404, "NoSuchBucket", "The specified bucket does not exist")
            if not key:
                return self.list(request, urllib.parse.parse_qs(query))
            if key not in self.objects:
                return self.fail(request, 404, "NoSuchKey", "The specified key does not exist.")
        return self.get(request, key)

    def wrong_signature(self, request):
        headers = {name.lower(): value for name, value in request.headers.items()}
        match = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^,]*), ?SignedHeaders=([^,]*), ?Signature=([0-9a-f]{64})",
                             headers.get("authorization", ""))
        if not match:
            return "AccessDenied", "Access Denied"
        key, *scope = match[1].split("/")
        names = match[2].split(";")
        if key != KEY or scope[1:] != [REGION, "s3", "aws4_request"] or headers.get("x-amz-security-token") != TOKEN:
            return "InvalidAccessKeyId", "The key does not exist."
        must = {"host"} | {name for name in headers if name.startswith("x-amz-")}
        if names != sorted(names) or not must <= set(names):
            return "AccessDenied", "There were headers that are not signed"
        if expected_signature(request.command, request.path, headers, names, scope) != match[3]:
            return "SignatureDoesNotMatch", "The signature does not match <&>"
        return None

    def etag(self, key):
        return f'"{hashlib.md5(self.objects[key]).hexdigest()}"'

    def list(self, request, query):
        assert query["list-type"] == ["2"]
        self.requests["list"] += 1
        prefix = query.get("prefix", [""])[0]
        keys = sorted(key for key in self.objects if key.startswith(prefix))
        begin = int(query.get("continuation-token", ["to+ken/=0"])[0].removeprefix("to+ken/="))
        escape = xml.sax.saxutils.escape
        entries = "".join(f"<Contents><Key>{escape(key)}</Key><LastModified>2024-05-01T00:00:00.000Z</LastModified>"
                          f"<ETag>{escape(self.listed_etag or self.etag(key), {chr(34): '&quot;'})}</ETag>"
                          f"<Size>{len(self.objects[key])}</Size></Contents>" for key in keys[begin:begin + 2])
        more = begin + 2 < len(keys)
        after = f"<NextContinuationToken>to+ken/={begin + 2}</NextContinuationToken>" if more else ""
        self.send(request, 200, ('<?xml version="1.0" encoding="UTF-8"?>\n'
                                 '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
                                 f"<Prefix>{escape(prefix)}</Prefix><IsTruncated>{str(more).lower()}</IsTruncated>"
                                 f"{after}{entries}</ListBucketResult>").encode())

    def get(self, request, key):
        content = self.objects[key]
        if request.headers.get("If-Match", self.etag(key)) != self.etag(key):
            return self.fail(request, 412, "PreconditionFailed", "It changed")
        begin = 0
        with self.lock:
            self.requests["get"] += 1
            if (wanted := request.headers.get("Range")) is not None:
                begin = 0 if self.ignore_ranges else int(wanted.removeprefix("bytes=").removesuffix("-"))
                self.ranges.append(wanted)
            cut = self.cuts > 0 and len(content) - begin > 100
            self.cuts -= cut
            self.busy = self.busy_after_cuts if cut and self.busy_after_cuts else self.busy
        sent = content[begin:begin + (len(content) - begin) // 2] if cut else content[begin:]
        self.send(request, 206 if begin else 200, sent, len(content) - begin)
        if cut:
            request.wfile.flush()
            request.close_connection = True
            request.connection.close()
        return None

    def fail(self, request, status, code, message):
        text = f"<Error><Code>{code}</Code><Message>{xml.sax.saxutils.escape(message)}</Message></Error>"
        self.send(request, status, text.encode())

    def send(self, request, status, body, length=None):
        request.send_response(status)
        request.send_header("Content-Length", str(len(body) if length is None else length))
        request.end_headers()
        request.wfile.write(body)
