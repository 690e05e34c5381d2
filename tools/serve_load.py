#!/usr/bin/env python3
"""Loads a running hstu serve with valid requests and, at the same time, with hostile ones.

serve_load.py --port 8080 --body FILE [--pid PID] [--seconds 60] [--hostile 1000] [--connections 64] [--rate 1000]

FILE has the body of a valid POST /score. Ends with status 0 if every valid request has the answer that the first one
had, every hostile one the status that it should have, /metrics has counted exactly what was sent, and the process PID
has stayed below --most-mib. Nobody else may use the server meanwhile.
"""

import argparse
import collections
import http.client
import json
import multiprocessing
import random
import re
import socket
import threading
import time

WORKERS = 2  # processes that send hostile requests
THREADS = 16  # of each: one waits for an answer while others send


def post(body, header=b""):
    return b"POST /score HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s" % (header, len(body), body)


def hostile_exchanges(body):
    """(bytes, the status of their answer): a tenth of those that are drawn are valid but for one field."""
    chunked = b"POST /score HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    malformed = [
        (b"\0\1 nonsense\r\n\r\n", 400),
        (b"GET / HTTP/3.7\r\n\r\n", 400),
        (b"GET /nowhere HTTP/1.1\r\nConnection: close\r\n\r\n", 404),
        (b"GET /score HTTP/1.1\r\nConnection: close\r\n\r\n", 405),
        (b"POST /score HTTP/1.1\r\nContent-Length: 999999999999\r\n\r\n", 413),
        (post(b"abc", b"Content-Encoding: gzip\r\n"), 415),
        (post(b"abc", b"Expect: more\r\n"), 417),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", 431),
        (chunked + b"5;" + b"a" * 100_000, 431),
        (chunked + b"0" * 100_000, 431),
        (chunked + b"0\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", 431),
        (chunked + b"x\r\n", 400),
        (b"POST /score HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (post(body)[:-5], 400),  # cut: the client sends no more
        (post(b'{"user": 1', b"Connection: close\r\n"), 400),
        (post(b"[" * 10_000, b"Connection: close\r\n"), 400),
        (post(b"HSTQ1\0\0\0" + b"\xff" * 40, b"Content-Type: application/octet-stream\r\nConnection: close\r\n"), 400),
    ]
    one_field = []
    for change in [{"time": "x"}, {"time": 1e30}, {"items": []}, {"items": 5}, {"events": []}, {"item": [1]}]:
        wrong = json.dumps(json.loads(body) | change).encode()
        one_field.append((post(wrong, b"Connection: close\r\n"), 400))
    values = b"[" + b"{}," * 300_000 + b"{}]"
    many = json.dumps(json.loads(body) | {"items": [1] * 1_000_000}).encode()
    return malformed, one_field, [(post(long, b"Connection: close\r\n"), 400) for long in (many, values)]


def exchange(port, data):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:  # the server has refused what it read
            pass
        received = b""
        while part := connection.recv(65536):
            received += part
        return received


class Result:
    """What a process has sent, by the status of the answers, and the first failures."""

    def __init__(self):
        self.lock = threading.Lock()
        self.statuses = collections.Counter()
        self.failures = []

    def add(self, status, failure=None):
        with self.lock:
            self.statuses[status] += 1
            if failure and len(self.failures) < 5:
                self.failures.append(failure)


def at_rate(rate, begin, seconds, number, step, work):
    """Calls work() for each step-th of `rate` times a second."""
    for i in range(number, int(rate * seconds), step):
        time.sleep(max(0, begin + i / rate - time.monotonic()))
        work()


def send_hostile(o, begin, number, results):
    malformed, one_field, long = hostile_exchanges(o.body)
    result = Result()
    draw = random.Random(number)

    def work():
        kind = draw.random()
        data, expected = draw.choice(long if kind < 0.002 else one_field if kind < 0.1 else malformed)
        try:
            answer = exchange(o.port, data)
            status = int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else 0
        except OSError as failure:
            status, answer = 0, repr(failure).encode()
        failure = None if status == expected else f"{data[:80]}: expected {expected}, found {answer[:200]}"
        result.add(status, failure)

    run_threads(THREADS, lambda i: at_rate(o.hostile, begin, o.seconds, number * THREADS + i, WORKERS * THREADS, work))
    results.put((result.statuses, result.failures))


def send_valid(o, begin, results):
    result = Result()

    def connection(number):
        kept = http.client.HTTPConnection("127.0.0.1", o.port, timeout=30)

        def work():
            try:
                kept.request("POST", "/score", o.body)
                answer = kept.getresponse()
                text = answer.read()
                is_right = (answer.status, text) == (200, o.expected)
                result.add(answer.status, None if is_right else f"valid: {text[:200]}")
            except (OSError, http.client.HTTPException) as failure:
                kept.close()
                result.add(0, f"valid: {failure!r}")

        at_rate(o.rate, begin, o.seconds, number, o.connections, work)

    run_threads(o.connections, connection)
    results.put((result.statuses, result.failures))


def run_threads(count, work):
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def counted(port):
    text = exchange(port, b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n").decode()
    found = collections.Counter()
    for status, count in re.findall(r'hstu_http_requests_total\{[^}]*status="(\d+)"\} (\d+)', text):
        found[int(status)] += int(count)
    return found


def resident_mib(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--body", required=True)
    parser.add_argument("--pid", type=int)
    parser.add_argument("--most-mib", type=float, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--hostile", type=float, default=1000, help="a second")
    parser.add_argument("--rate", type=float, default=1000, help="valid requests a second")
    parser.add_argument("--connections", type=int, default=64, help="of valid requests")
    o = parser.parse_args()
    with open(o.body, "rb") as file:
        o.body = file.read().strip()
    first = exchange(o.port, post(o.body, b"Connection: close\r\n"))
    assert first.startswith(b"HTTP/1.1 200"), first
    o.expected = first.split(b"\r\n\r\n", 1)[1]
    before = counted(o.port)
    results = multiprocessing.Queue()
    begin = time.monotonic() + 0.2
    workers = [multiprocessing.Process(target=send_hostile, args=(o, begin, i, results)) for i in range(WORKERS)]
    workers.append(multiprocessing.Process(target=send_valid, args=(o, begin, results)))
    for worker in workers:
        worker.start()
    peak, ended = 0, []
    while len(ended) < len(workers):
        if o.pid:
            peak = max(peak, resident_mib(o.pid))
        time.sleep(0.05)
        while not results.empty():
            ended.append(results.get())
    seconds = time.monotonic() - begin
    sent = sum((statuses for statuses, _ in ended), collections.Counter())
    sent[200] += 1  # the first /metrics
    grown = counted(o.port) - before
    print(f"{sum(sent.values())} requests in {seconds:.1f} s, resident at most {peak:.0f} MiB")
    print("by status:", dict(sorted(sent.items())))
    failures = [failure for _, some in ended for failure in some]
    assert not failures, failures
    assert grown == sent, f"/metrics has {dict(sorted(grown.items()))}"
    assert peak < o.most_mib, f"{peak:.0f} MiB"


main()
