"""Exchanges of HTTP with hstu serve, byte by byte, for serve_test.cc: exchanges.py MODE ARGUMENTS..

Ends with status 0 if all answers are as they should be.
"""

import contextlib
import gzip
import http.client
import json
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import time

COUNT = re.compile(r'hstu_http_requests_total\{path="([^"]+)",status="(\d+)"\} (\d+)')


def connect(port, receive_buffer=0):
    connection = socket.socket()
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(20)
    connection.connect(("127.0.0.1", port))
    return connection


def raw(port, data):
    """What the server sends for these bytes until it closes the connection."""
    with connect(port) as connection:
        received = b""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has refused what it read
            connection.sendall(data)
        while part := connection.recv(65536):
            received += part
        return received


def status_of(answer):
    assert re.match(rb"HTTP/1\.1 \d{3} ", answer), answer[:100]
    return int(answer[9:12])


def ask(port, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET" if body is None else "POST", path, body, headers or {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode(errors="replace")


def counts(port):
    """Of /metrics, which has not counted itself: {status: requests of all paths}."""
    text = ask(port, "/metrics")[1]
    found = {}
    for _, status, count in COUNT.findall(text):
        found[int(status)] = found.get(int(status), 0) + int(count)
    return found, text


def chunked(rest, header=b""):
    return b"POST /score HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + header + b"\r\n" + rest


def refused(port):
    """Every exchange has its status, and the counts of /metrics are those of what was sent."""
    body = b'{"user": 1, "time": 1, "events": {}, "items": [1]}'
    chunk = b"%x\r\n%s\r\n" % (len(body), body)
    exchanges = [
        (chunked(chunk + b"0\r\n\r\n", b"Connection: close\r\n"), 200),
        (chunked(chunk + b"0\r\nX: y\r\n\r\n", b"Connection: close\r\n"), 200),
        (chunked(chunk + b"0\r\nX: " + b"b" * 200_000 + b"\r\n\r\n"), 431),
        (chunked(chunk + b"0\r\n" + b"X: y\r\n" * 20_000 + b"\r\n"), 431),
        (chunked(b"5;" + b"a" * 5_000_000), 431),
        (chunked(b"0" * 5_000_000), 431),
        (chunked(b"ffffffffffffffffff\r\n"), 400),
        (chunked(b"fffffff\r\n"), 413),
        (chunked(chunk * 5_000), 413),
        (chunked(b"x\r\n"), 400),
        (b"POST /score HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (b"POST /score HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST /score HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"POST /score HTTP/1.1\r\nContent-Length: 3\r\nExpect: a miracle\r\n\r\nabc", 417),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n", 431),
        (b"GET / HTTP/7.0\r\n\r\n", 400),
        (b"POST /score HTTP/1.1\r\nContent-Length: 3\r\n\r\na", 408),
    ]
    before, _ = counts(port)
    sent = {200: 1}  # counts()
    for data, status in exchanges:
        answer = raw(port, data)
        assert status_of(answer) == status, (data[:100], answer[:300])
        sent[status] = sent.get(status, 0) + 1
    with connect(port) as half:  # a client that sends no more, and waits
        half.sendall(b"POST /score HTTP/1.1\r\nContent-Length: 3\r\n\r\na")
        half.shutdown(socket.SHUT_WR)
        assert status_of(half.recv(65536)) == 400
        sent[400] += 1
    status, text = ask(port, "/score", gzip.compress(body), {"Content-Encoding": "gzip"})
    assert status == 415 and "gzip" in text, text
    sent[415] = 1
    status, text = ask(port, "/score", b'{"user": 1, "time": 1, "events": {}, "items": [' + b"1," * 200 + b"1]}")
    assert status == 400 and "201 candidates, or items of lists, in one body: at most 200" in text, text
    sent[400] += 1
    binary = b"HSTQ1\0\0\0" + b"\0" * 8
    for media_type in ["application/octet-stream", "Application/Octet-Stream", "application/octet-stream; a=b"]:
        status, text = ask(port, "/score", binary, {"Content-Type": media_type})
        assert status == 200 and text.startswith("HSTA1"), (media_type, text)
        sent[200] += 1
    two = b"POST /score HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    assert raw(port, two + two + b"BAD\r\n\r\n").count(b"HTTP/1.1 200 OK") == 2
    sent[200] += 2
    sent[400] += 1
    with connect(port) as gone:  # resets the connection
        gone.sendall(b"POST /score HTTP/1.1\r\nContent-Length: 3\r\n\r\na")
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end = time.monotonic() + 20
    while True:
        after, text = counts(port)
        if "hstu_http_requests_cut_total 1" in text:
            break
        assert time.monotonic() < end, text
        sent[200] += 1
    grown = {status: after[status] - before.get(status, 0) for status in after}
    assert grown == sent, (grown, sent)
    assert 'hstu_connections_refused_total{cause="most_connections"} 0' in text, text
    print("refused")


def started(program, words):
    process = subprocess.Popen([program, "serve", *words, "--port", "0"], stderr=subprocess.PIPE, text=True)
    return process, int(re.search(r"http://[0-9.]+:(\d+)", process.stderr.readline()).group(1))


def drained(program, export, body):
    """A server that was asked to end says so to everybody, and answers."""
    process, port = started(program, [export, "--drain-seconds", "2"])
    kept = http.client.HTTPConnection("127.0.0.1", port, timeout=20)

    def score():
        kept.request("POST", "/score", body)
        answer = kept.getresponse()
        assert answer.status == 200, answer.read()
        return answer.read(), answer.getheader("Connection")

    expected, connection = score()
    assert connection != "close"
    assert ask(port, "/ready")[0] == 200
    process.send_signal(signal.SIGTERM)
    assert process.stderr.readline().startswith("stopping"), "other words"
    assert ask(port, "/ready")[0] == 503
    assert score() == (expected, "close")
    assert process.wait(timeout=20) == 0, process.stderr.read()

    # A client that takes no answers, and one that has half sent its request: the first is one that lost an answer.
    process, port = started(program, [export, "--drain-seconds", "0", "--request-seconds", "2"])
    deaf = connect(port, receive_buffer=4096)
    deaf.sendall(b"GET /metrics HTTP/1.1\r\n\r\n" * 4000)
    half = connect(port)
    half.sendall(b"POST /score HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:10].encode())
    answered = -1
    while sum(counts(port)[0].values()) != answered + 1:  # until the server waits for the first one
        answered = sum(counts(port)[0].values())
        time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    assert process.stderr.readline().startswith("stopping"), "other words"
    half.sendall(body[10:].encode())
    answer = half.recv(65536)
    assert status_of(answer) == 200 and b"Connection: close" in answer, answer
    status = process.wait(timeout=20)
    words = process.stderr.read()
    assert status == 1 and "1 of the accepted requests have no whole answer" in words, (status, words)
    deaf.close()
    print("drained")


def overwritten(program, export, data, body):
    """The files of what is served are emptied: the export is in memory; without users' events there are no scores."""
    process, port = started(program, [export, "--data", data])
    without_events = json.loads(body)
    del without_events["events"]
    known = json.dumps(without_events)
    assert ask(port, "/score", known)[0] == 200
    alone, port_alone = started(program, [export])
    expected = ask(port_alone, "/score", body)
    assert expected[0] == 200
    for folder in (export, data):
        for file in pathlib.Path(folder).rglob("*"):
            if file.is_file():
                file.write_bytes(b"")
    assert ask(port_alone, "/score", body) == expected
    assert ask(port_alone, "/ready")[0] == 200
    status, text = ask(port, "/score", known)
    assert status == 500 and "became shorter" in text, (status, text)
    assert ask(port, "/ready")[0] == 503
    for server in (process, alone):
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=20) == 0, server.stderr.read()
    print("overwritten")


def main():
    mode, arguments = sys.argv[1], sys.argv[2:]
    if mode == "refused":
        refused(int(arguments[0]))
    elif mode == "drained":
        drained(*arguments)
    elif mode == "overwritten":
        overwritten(*arguments)
    else:
        sys.exit(f"no mode {mode}")


main()
