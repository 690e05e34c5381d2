"""A store with the interface of S3 for tests: signatures are verified, lists have short pages, failures on demand."""

import collections
import hashlib
import hmac
import http.server
import re
import socket
import sys
import threading
import urllib.parse
import xml.sax.saxutils

import places

KEYS = places.Keys("KEYID", "se/cret+", "tok:en")
BUCKET = "logs"


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def expected_signature(method, path, headers, names, scope, secret=KEYS.secret):
    """By the specification of AWS Signature Version 4, from the words of the request."""
    path, _, query = path.partition("?")
    pairs = sorted(pair.partition("=")[::2] for pair in query.split("&") if pair)
    lines = [f"{name}:{' '.join(headers[name].split())}" for name in names]
    request = "\n".join(
        [
            method,
            path,
            "&".join(f"{k}={v}" for k, v in pairs),
            *lines,
            "",
            ";".join(names),
            headers["x-amz-content-sha256"],
        ]
    )
    text = "\n".join(
        ["AWS4-HMAC-SHA256", headers["x-amz-date"], "/".join(scope), hashlib.sha256(request.encode()).hexdigest()]
    )
    key = f"AWS4{secret}".encode()
    for part in scope:
        key = sign(key, part)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Store:
    """State that a test sets and reads."""

    region = "eu-test-1"

    def __init__(self):
        self.signed = True  # whether requests must be
        self.objects = {}  # key: bytes
        self.cuts = 0  # downloads that break in their middle
        self.busy = 0  # requests that are answered by 503
        self.busy_after_cuts = 0  # what busy becomes when a download breaks
        self.listed_etag = None  # that lists have in place of the true ones
        self.listing = None  # called with the number of a list, 1, 2, ..: what is answered in its place
        self.ignore_ranges = False
        self.ignore_prefixes = False  # of lists of objects
        self.page = 2  # entries of a list
        self.uploads = {}  # id: (key, {number of the part: bytes})
        self.cut_writes = 0  # PUT whose connection breaks in the middle of its body
        self.lost_answers = 0  # completed uploads whose answer is lost
        self.late_errors = 0  # completions that are answered by 200 and then fail
        self.smallest_part = 0  # bytes; a completion with a smaller part, the last one apart, fails
        self.denied = set()  # operations without the right to them: "delete", "uploads"
        self.writes = []  # (operation, key or bucket, number of the part) that changed something
        self.before_write = lambda _: None  # called with the number of a write, 0, 1, ..; True: it breaks then
        self.changed = lambda: None  # called after every change, while nothing else changes
        self.arrived = 0  # writes
        self.requests = collections.Counter()
        self.ranges = []

        class Handler(http.server.BaseHTTPRequestHandler):
            store = self

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.store.answer(self, b"")

            def do_PUT(self):
                self.store.receive(self)

            do_POST = do_DELETE = do_PUT

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, request, client_address):
                if not isinstance(sys.exc_info()[1], OSError):  # of a client that was killed
                    super().handle_error(request, client_address)

        self.server = Server(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def receive(self, request):
        """A write: reads its body, unless the connection is to break in its middle."""
        if request.headers.get("Expect") == "100-continue":
            request.send_response_only(100)
            request.end_headers()
        length = int(request.headers.get("Content-Length", "0"))
        half = request.rfile.read(length // 2)
        with self.lock:
            number, self.arrived = self.arrived, self.arrived + 1
            cut = self.cut_writes > 0 and request.command == "PUT"
            self.cut_writes -= cut
        if cut or self.before_write(number):
            return self.drop(request)
        body = half + request.rfile.read(length - len(half))
        if len(body) < length:  # the client has gone
            return self.drop(request)
        return self.answer(request, body)

    def answer(self, request, body):
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
            query = {name: values[0] for name, values in urllib.parse.parse_qs(query, keep_blank_values=True).items()}
            if request.command != "GET":
                return self.write(request, key, query, body)
            if "uploads" in query:
                return self.list_uploads(request, query)
            if "uploadId" in query:
                return self.list_parts(request, query)
            if not key:
                return self.list(request, query)
            if key not in self.objects:
                return self.fail(request, 404, "NoSuchKey", "The specified key does not exist.")
        return self.get(request, key)

    def wrong_signature(self, request):
        headers = {name.lower(): value for name, value in request.headers.items()}
        match = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^,]*), ?SignedHeaders=([^,]*), ?Signature=([0-9a-f]{64})",
            headers.get("authorization", ""),
        )
        if not match:
            return "AccessDenied", "Access Denied"
        key, *scope = match[1].split("/")
        names = match[2].split(";")
        token = headers.get("x-amz-security-token")
        if (key, token) != (KEYS.id, KEYS.token) or scope[1:] != [self.region, "s3", "aws4_request"]:
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
        assert query["list-type"] == "2"
        self.requests["list"] += 1
        if self.listing:
            self.send(request, 200, self.listing(self.requests["list"]).encode())
            return
        prefix = query.get("prefix", "")
        keys = sorted(key for key in self.objects if self.ignore_prefixes or key.startswith(prefix))
        begin = int(query.get("continuation-token", "to+ken/=0").removeprefix("to+ken/="))
        escape = xml.sax.saxutils.escape
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2024-05-01T00:00:00.000Z</LastModified>"
            f"<ETag>{escape(self.listed_etag or self.etag(key), {chr(34): '&quot;'})}</ETag>"
            f"<Size>{len(self.objects[key])}</Size></Contents>"
            for key in keys[begin : begin + self.page]
        )
        more = begin + self.page < len(keys)
        after = f"<NextContinuationToken>to+ken/={begin + self.page}</NextContinuationToken>" if more else ""
        self.send(
            request,
            200,
            (
                '<?xml version="1.0" encoding="UTF-8"?>\n'
                '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
                f"<Prefix>{escape(prefix)}</Prefix><IsTruncated>{str(more).lower()}</IsTruncated>"
                f"{after}{entries}</ListBucketResult>"
            ).encode(),
        )

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
        sent = content[begin : begin + (len(content) - begin) // 2] if cut else content[begin:]
        self.send(request, 206 if begin else 200, sent, len(content) - begin)
        if cut:
            self.drop(request)
        return None

    def write(self, request, key, query, body):
        """PUT of an object or a part, POST that begins or completes an upload, DELETE of an object or an upload."""
        upload = query.get("uploadId")
        if upload is not None and upload not in self.uploads:
            return self.fail(request, 404, "NoSuchUpload", "The specified upload does not exist.")
        text = b""
        etag = f'"{hashlib.md5(body).hexdigest()}"'
        if request.command == "DELETE":
            if "delete" in self.denied and not upload:
                return self.fail(request, 403, "AccessDenied", "Access Denied")
            self.writes.append(("abort" if upload else "delete", key, 0))
            self.uploads.pop(upload, None) if upload else self.objects.pop(key, None)
        elif request.command == "PUT" and upload:
            number = int(query["partNumber"])
            self.writes.append(("part", key, number))
            self.uploads[upload][1][number] = body
        elif request.command == "PUT":
            self.writes.append(("put", key, 0))
            self.objects[key] = body
        elif "uploads" in query:
            upload = f"id/+{len(self.writes)}"
            self.writes.append(("begin", key, 0))
            self.uploads[upload] = (key, {})
            text = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            text = text.encode()
        else:
            return self.complete(request, key, upload, body.decode())
        self.changed()
        self.send(request, 204 if request.command == "DELETE" else 200, text, etag=etag)
        return None

    def complete(self, request, key, upload, body):
        parts = self.uploads[upload][1]
        named = [
            (int(number), xml.sax.saxutils.unescape(etag, {"&quot;": '"'}))
            for number, etag in re.findall(r"<Part><PartNumber>(\d+)</PartNumber><ETag>([^<]*)</ETag></Part>", body)
        ]
        for number, etag in named:
            if number not in parts or etag != f'"{hashlib.md5(parts[number]).hexdigest()}"':
                return self.fail(request, 400, "InvalidPart", f"Part {number}")
        if any(len(parts[number]) < self.smallest_part for number, _ in named[:-1]):
            return self.fail(request, 400, "EntityTooSmall", "A part is too small")
        if not named or named != sorted(named):
            return self.fail(request, 400, "InvalidPartOrder", "Parts are not in their order")
        if self.late_errors > 0:
            self.late_errors -= 1
            return self.fail(request, 200, "InternalError", "Please try again.")
        self.writes.append(("complete", key, 0))
        self.objects[key] = b"".join(parts[number] for number, _ in named)
        del self.uploads[upload]
        self.changed()
        if self.lost_answers > 0:
            self.lost_answers -= 1
            return self.drop(request)
        self.send(request, 200, b"<CompleteMultipartUploadResult><Key/></CompleteMultipartUploadResult>")
        return None

    def list_uploads(self, request, query):
        if "uploads" in self.denied:
            return self.fail(request, 403, "AccessDenied", "Access Denied")
        after = (query.get("key-marker", ""), query.get("upload-id-marker", ""))
        begun = sorted(
            (key, upload)
            for upload, (key, _) in self.uploads.items()
            if key.startswith(query["prefix"]) and (key, upload) > after
        )
        escape = xml.sax.saxutils.escape
        entries = "".join(
            f"<Upload><Key>{escape(key)}</Key><UploadId>{upload}</UploadId></Upload>"
            for key, upload in begun[: self.page]
        )
        next_ = ""
        if len(begun) > self.page:
            key, upload = begun[self.page - 1]
            next_ = f"<NextKeyMarker>{escape(key)}</NextKeyMarker><NextUploadIdMarker>{upload}</NextUploadIdMarker>"
        self.send(
            request,
            200,
            (
                f"<ListMultipartUploadsResult><IsTruncated>{str(bool(next_)).lower()}</IsTruncated>"
                f"{next_}{entries}</ListMultipartUploadsResult>"
            ).encode(),
        )
        return None

    def list_parts(self, request, query):
        if query["uploadId"] not in self.uploads:
            return self.fail(request, 404, "NoSuchUpload", "The specified upload does not exist.")
        parts = self.uploads[query["uploadId"]][1]
        numbers = sorted(number for number in parts if number > int(query.get("part-number-marker", "0")))
        shown = numbers[: self.page]
        entries = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>&quot;{hashlib.md5(parts[number]).hexdigest()}"
            f"&quot;</ETag><Size>{len(parts[number])}</Size></Part>"
            for number in shown
        )
        more = len(numbers) > len(shown)
        next_ = f"<NextPartNumberMarker>{shown[-1]}</NextPartNumberMarker>" if more else ""
        self.send(
            request,
            200,
            (
                f"<ListPartsResult><IsTruncated>{str(more).lower()}</IsTruncated>{next_}{entries}</ListPartsResult>"
            ).encode(),
        )
        return None

    def drop(self, request):
        """Breaks the connection."""
        request.wfile.flush()
        request.close_connection = True
        request.connection.shutdown(socket.SHUT_RDWR)
        request.connection.close()

    def fail(self, request, status, code, message):
        text = f"<Error><Code>{code}</Code><Message>{xml.sax.saxutils.escape(message)}</Message></Error>"
        self.send(request, status, text.encode())

    def send(self, request, status, body, length=None, etag=None):
        request.send_response(status)
        if etag is not None:
            request.send_header("ETag", etag)
        request.send_header("Content-Length", str(len(body) if length is None else length))
        request.end_headers()
        request.wfile.write(body)
