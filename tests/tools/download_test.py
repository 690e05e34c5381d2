"""tools/download.py against a server of this process: whole files, connections that break, wrong sums.

python3 tests/tools/download_test.py
"""

import hashlib
import http.server
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "download.py"
EVENTS = bytes(range(256)) * 4000


class Server(http.server.BaseHTTPRequestHandler):
    files, breaks, holds, ranges, sha256 = {}, 0, False, [], None

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    # As the public server: a file of events is elsewhere, its size and sum are here.
    def answer(self, body):
        path = self.path.split("?")[0]
        if path.endswith("multi_event.parquet") and not path.startswith("/elsewhere"):
            self.send_response(302)
            self.send_header("Location", "/elsewhere" + path)
            self.send_header("X-Linked-Size", str(len(EVENTS)))
            self.send_header("X-Linked-Etag", f'"{Server.sha256 or hashlib.sha256(EVENTS).hexdigest()}"')
            self.end_headers()
            return
        content = EVENTS if path.startswith("/elsewhere") else Server.files.get(path)
        if content is None:
            self.send_error(404)
            return
        begin = 0
        if (wanted := self.headers.get("Range")) is not None:
            begin = int(wanted.removeprefix("bytes=").removesuffix("-"))
            Server.ranges.append(begin)
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        if not body:
            return
        if Server.breaks > 0 and len(content) > 1000:
            Server.breaks -= 1
            self.wfile.write(content[begin : begin + 300_000])
            self.wfile.flush()
            self.connection.close()
            return
        if Server.holds:
            self.wfile.write(content[:200_000])
            self.wfile.flush()
            time.sleep(10)
            return
        self.wfile.write(content[begin:])


def run(*words):
    command = [sys.executable, TOOL, *(str(word) for word in words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_prepared_files(base, folder):
    Server.files = {
        "/metadata/dlrmv4_dataset.uri": f"{base}/data/dlrmv4".encode(),
        "/data/dlrmv4/processed_5b/a.npy": EVENTS,
        "/data/dlrmv4/shared/b": b"bb",
    }
    sums = "".join(
        f"{hashlib.md5(content).hexdigest()}  {name}\n"
        for name, content in (("processed_5b/a.npy", EVENTS), ("./shared/b", b"bb"))
    )
    Server.files["/metadata/dlrmv4_dataset.md5"] = sums.encode()
    uri = f"{base}/metadata/dlrmv4_dataset.uri"
    Server.breaks = 2  # which the program continues by itself
    status, text = run("mlcommons", "--from", uri, "--output", folder / "m")
    assert status == 0, text
    assert text.startswith("2 files, 1,024,002 bytes; 1,024,002 bytes are left"), text
    assert (folder / "m/processed_5b/a.npy").read_bytes() == EVENTS
    assert Server.ranges == [300_000, 600_000], Server.ranges
    status, text = run("mlcommons", "--from", uri, "--output", folder / "m")
    assert status == 0 and "0 bytes are left" in text, text
    Server.files["/metadata/dlrmv4_dataset.md5"] = b"0" * 32 + b"  ../outside\n"
    status, text = run("mlcommons", "--from", uri, "--output", folder / "n")
    assert status == 1 and "outside of the folder" in text, text


def test_an_interrupted_download_continues(base, folder):
    for name in ("artist_item_mapping.parquet", "album_item_mapping.parquet"):
        Server.files[f"/{name}"] = b"not the published file"
    Server.holds, Server.ranges = True, []
    words = [sys.executable, TOOL, "yambda", "50m", "--from", base, "--output", folder / "y"]
    part = folder / "y/multi_event.parquet.part"
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as begun:
        for _ in range(1000):
            if part.exists() and part.stat().st_size > 0:
                break
            time.sleep(0.01)
        begun.send_signal(signal.SIGINT)
        assert "give the command again" in begun.stderr.read()
    assert begun.returncode == 130
    have = part.stat().st_size
    Server.holds = False
    status, text = run("yambda", "50m", "--from", base, "--output", folder / "y")
    assert (folder / "y/multi_event.parquet").read_bytes() == EVENTS, text
    assert Server.ranges == [have], (Server.ranges, have)
    # The mappings are not those whose sums the program knows.
    assert status == 1 and "the md5 sum is" in text and "give the command again" in text, text
    assert not list((folder / "y").glob("a*")), list((folder / "y").iterdir())


def test_a_wrong_sum_leaves_no_file(base, folder):
    Server.sha256 = "0" * 64
    status, text = run("yambda", "500m", "--from", base, "--output", folder / "w")
    assert status == 1 and "the sha256 sum is" in text, text
    assert not list((folder / "w").iterdir())


def test_words(base):
    assert run("yambda")[0] == 2
    assert run("mlcommons", "5b")[0] == 2
    status, text = run("yambda", "5b", "--from", f"{base}/nowhere", "--output", "/nonexistent/x")
    assert status == 1, text


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_address[1]}"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        test_the_prepared_files(base, folder)
        test_an_interrupted_download_continues(base, folder)
        test_a_wrong_sum_leaves_no_file(base, folder)
        test_words(base)


main()
