"""A port in front of a server over HTTP, where a test sees and breaks what passes."""

import contextlib
import re
import socket
import socketserver
import threading


class Gate:
    """Passes requests to a port of this machine, one a connection, as hstu sends them."""

    def __init__(self, port):
        self.requests = []  # "METHOD TARGET" of each
        self.before = lambda _: False  # called with each before it passes; True: its connection breaks instead
        self.cuts = {}  # how many bytes of the answer pass, by a text in the request; each of them once
        self.lock = threading.Lock()
        gate = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                with contextlib.suppress(OSError):  # of a client that was killed
                    gate.pass_on(self, port)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def pass_on(self, connection, port):
        line = connection.rfile.readline()
        request = line.decode().rpartition(" ")[0]
        with self.lock:
            self.requests.append(request)
            left = next((self.cuts.pop(text) for text in list(self.cuts) if text in request), None)
            if self.before(request):
                return
        with socket.create_connection(("127.0.0.1", port)) as server:
            server.sendall(line)
            threading.Thread(target=self.send, args=(connection.rfile, server), daemon=True).start()
            while left != 0 and (piece := server.recv(1 << 16)):
                if left is not None:
                    piece = piece[:left]
                    left -= len(piece)
                connection.wfile.write(piece)
        connection.connection.shutdown(socket.SHUT_RDWR)  # also ends the thread's wait

    @staticmethod
    def send(request, server):
        with contextlib.suppress(OSError):
            while piece := request.read1(1 << 16):
                server.sendall(piece)
            server.shutdown(socket.SHUT_WR)

    def count(self, pattern):
        return sum(bool(re.match(pattern, request)) for request in self.requests)
