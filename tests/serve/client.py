"""A client of hstu serve from Python's standard library, for serve_test.cc: client.py MODE ARGUMENTS..

Ends with status 0 if all answers are as they should be; otherwise it prints the first one that is not.
"""

import http.client
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

BINARY = "application/octet-stream"


def send(connection, path, body, content_type="application/json"):
    connection.request("POST", path, body, {"Content-Type": content_type})
    answer = connection.getresponse()
    return answer.status, answer.read()


def get(port, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def in_threads(count, work):
    """Runs work(number) in threads; raises the first failure."""
    failures = []

    def guarded(number):
        try:
            work(number)
        except (AssertionError, OSError, http.client.HTTPException, LookupError, ValueError, RuntimeError) as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def versions(port, file, count, export, published):
    """Sends requests of `file` until every version has answered, and each connection `count` of them.

    Moves the folder `export` to `published` when some have been answered.
    """
    with open(file) as lines:
        cases = [json.loads(line) for line in lines]
    wanted = set(cases[0]["answers"])
    seen = set()
    sent = [0] * 8
    end = time.monotonic() + 60

    def work(number):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        i = number
        while sent[number] < count or seen != wanted:
            assert time.monotonic() < end, f"only {seen} of {wanted} have answered"
            case = cases[i % len(cases)]
            status, text = send(connection, case["path"], json.dumps(case["body"]))
            assert status == 200, (status, text)
            version = json.loads(text)["model"]
            assert text.decode() == case["answers"][version], (case, text)
            seen.add(version)
            sent[number] += 1
            i += 1
            if number == 0 and sent[number] == 5:
                os.rename(export, published)

    in_threads(len(sent), work)
    print(sum(sent), "answers")


def raw(port, data, wait=True):
    """What the server sends for these bytes until it closes the connection, or for 5 seconds."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        received = b""
        try:
            connection.sendall(data)
            while wait:
                part = connection.recv(65536)
                if not part:
                    break
                received += part
        except (TimeoutError, ConnectionResetError, BrokenPipeError):
            pass
        return received


def expect_refused(port, path, body, status, words, content_type="application/json"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    found, text = send(connection, path, body, content_type)
    assert found == status, (path, body, found, text)
    assert words in json.loads(text)["error"], (words, text)


def hostile(port, most_body):
    """Requests that no client should send; the server answers the next one as before."""
    for path, body, status, words in [
        ("/score", b"", 400, "JSON"),
        ("/score", b'{"user": 1', 400, "body"),
        ("/score", b"[" * 2000, 400, "body"),
        ("/score", b"[1]", 400, "object"),
        ("/score", b'{"user": "x", "time": 1, "items": [1]}', 400, "user"),
        ("/score", b'{"user": 1, "time": 1e30, "items": [1]}', 400, "time"),
        ("/score", b'{"user": 1, "time": 9223372036854775807, "items": [1], "events": {}}', 400, "time"),
        ("/score", b'{"itmes": [1]}', 400, "items"),
        ("/score", b'{"requests": 5}', 400, "requests"),
        ("/score", b'{"requests": [{}, 7]}', 400, "requests[1]"),
        ("/score", b'{"user": 1, "time": 1, "items": [1], "user": 2}', 400, 'the key "user" occurs twice'),
        ("/top", b'{"user": 1, "time": 1, "events": {}}', 400, "k: how many items is missing"),
        ("/top", b'{"user": 1, "time": 1, "events": {"item": [1]}, "k": 2}', 400, "events"),
        # What a client filtered down to nothing does not mean all items.
        ("/top", b'{"user": 1, "time": 1, "events": {}, "items": [], "k": 2}', 400, "items"),
        ("/vectors", b'{"user": 1, "time": 1, "events": {}}', 400, "vectors"),
        (
            "/score",
            b'{"requests": [' + b",".join([b'{"user": 1, "time": 1, "events": {}, "items": [1]}'] * 4) + b"]}",
            400,
            "4 requests in one body: at most 3",
        ),
        ("/nothing", b"{}", 404, "/score"),
    ]:
        expect_refused(port, path, body, status, words)
    expect_refused(port, "/score", b"HSTQ1\0\0\0" + b"\xff" * 40, 400, "body", BINARY)
    assert get(port, "/score")[0] == 405
    assert raw(port, b"\0\1\2\3 nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
    too_large = b"POST /score HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (most_body + 1)
    refusal = raw(port, too_large)
    assert refusal.startswith(b"HTTP/1.1 413") and b"longer than 97.7 KiB (hstu serve --most-body)" in refusal, refusal
    assert raw(port, b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000).startswith(b"HTTP/1.1 431")
    # Slow clients hold a connection each until their time is over, and nothing else.
    slow = []
    for _ in range(200):
        slow.append(socket.create_connection(("127.0.0.1", port), timeout=5))
        slow[-1].sendall(b"POST /score HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
    assert get(port, "/health")[0] == 200
    for connection in slow:
        while connection.recv(4096):  # until the server closes it
            pass
        connection.close()
    raw(port, b"POST /score HTTP/1.1\r\nContent-Length: 10\r\n\r\n{", wait=False)
    status, text = get(port, "/metrics")
    assert status == 200 and "hstu_http_requests_total" in text, text
    print("refused")


def resident_bytes(process):
    with open(f"/proc/{process}/status") as status:
        return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))


def crowded(port, process, count, most_bytes, body):
    """Slow clients on all of the server's `count` connections but one, which is answered as before.

    The server's memory grows by at most `most_bytes`. A further client is closed at once, and when the time of the
    slow ones is over, the server has room again.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    good = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    expected = send(good, "/score", body)
    assert expected[0] == 200, expected
    before = resident_bytes(process)
    slow = []
    for _ in range(count - 1):
        slow.append(socket.create_connection(("127.0.0.1", port), timeout=20))
        slow[-1].sendall(b"POST /score HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
    assert raw(port, b"GET /health HTTP/1.1\r\n\r\n") == b"", "a connection beyond the limit was answered"
    assert send(good, "/score", body) == expected
    grown = resident_bytes(process) - before
    assert grown <= most_bytes, f"{grown} bytes for {count} connections"
    for connection in slow:
        while connection.recv(4096):  # until the server closes it
            pass
        connection.close()
    assert send(good, "/score", body) == expected
    assert get(port, "/health")[0] == 200
    print(f"{grown >> 20} MiB")


def stopped(program, export, body):
    """Stops the program while it owes answers to requests that wait for others: each gets its answer."""
    process = subprocess.Popen(
        [program, "serve", export, "--port", "0", "--threads", "1", "--batch-requests", "8", "--batch-wait", "3"],
        stderr=subprocess.PIPE,
        text=True,
    )
    line = process.stderr.readline()
    port = int(re.search(r"http://[0-9.]+:(\d+)", line).group(1))
    items = json.loads(body)["items"]

    def work(number):
        if number == 0:
            end = time.monotonic() + 60
            while "hstu_requests_waiting 4" not in get(port, "/metrics")[1]:
                assert time.monotonic() < end, "the requests did not come together"
            process.send_signal(signal.SIGTERM)
            return
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=50)
        status, text = send(connection, "/score", body)
        assert status == 200, text
        assert len(json.loads(text)["scores"]) == len(items)

    in_threads(5, work)
    assert process.wait(timeout=20) == 0
    print("stopped")


def killed(program, published, file, first, second):
    """Kills the server, again and again, while requests are in flight and `published`/current moves.

    `first` and `second`: "NAME=VERSION" of two exports. Every answer is a whole one of a published version, and a
    server that is started again begins with the one that `current` names.
    """
    with open(file) as lines:
        cases = [json.loads(line) for line in lines]
    names = dict(text.split("=") for text in (first, second))
    draw = random.Random(43)
    current, answered = next(iter(names)), 0

    def name_current(name):
        os.symlink(name, f"{published}/.fresh")
        os.rename(f"{published}/.fresh", f"{published}/current")

    for round_ in range(8):
        name_current(current)
        process = subprocess.Popen(
            [program, "serve", f"{published}/current", "--watch", published, "--watch-seconds", "0.05", "--port", "0"],
            stderr=subprocess.PIPE,
            text=True,
        )
        port = int(re.search(r"http://[0-9.]+:(\d+)", process.stderr.readline()).group(1))
        assert json.loads(get(port, "/health")[1])["model"] == names[current], f"round {round_} begins with another"
        counts = [0] * 8
        after = draw.uniform(0, 0.15)

        def work(number, port=port, counts=counts):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            while True:
                case = cases[(number + counts[number]) % len(cases)]
                try:
                    status, text = send(connection, case["path"], json.dumps(case["body"]))
                except (OSError, http.client.HTTPException):  # it is dead
                    return
                version = json.loads(text)["model"]
                assert status == 200 and version in names.values(), (status, text)
                assert text.decode() == case["answers"][version], (case, text)
                counts[number] += 1

        def kill(process=process, counts=counts, moves=round_ % 2 == 1, after=after):
            nonlocal current
            while min(counts) < 2:
                assert process.poll() is None, "the server ended by itself"
                time.sleep(0.001)
            if moves:
                current = next(name for name in names if name != current)
                name_current(current)
            time.sleep(after)
            process.kill()
            process.communicate()

        in_threads(9, lambda number, work=work, kill=kill: kill() if number == 8 else work(number))
        answered += sum(counts)
    print(answered, "answers")


def main():
    mode, arguments = sys.argv[1], sys.argv[2:]
    if mode == "versions":
        versions(int(arguments[0]), arguments[1], int(arguments[2]), *arguments[3:])
    elif mode == "hostile":
        hostile(int(arguments[0]), int(arguments[1]))
    elif mode == "get":
        print(get(int(arguments[0]), arguments[1])[1])
    elif mode == "refused":
        port, path, file, kind, words = arguments
        with open(file, "rb") as body:
            expect_refused(int(port), path, body.read(), 400, words, "application/" + kind)
    elif mode == "crowded":
        crowded(*map(int, arguments[:4]), arguments[4])
    elif mode == "stopped":
        stopped(*arguments)
    elif mode == "killed":
        killed(*arguments)
    else:
        sys.exit(f"no mode {mode}")


main()
