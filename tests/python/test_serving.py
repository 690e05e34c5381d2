"""hstu serve from another language than ours, while a new export arrives."""

import asyncio
import json
import resource
import subprocess

import numpy as np
import pytest

import hstu
from hstu.tree import program

CLIENTS = 1000


@pytest.fixture
def server():
    """Starts hstu serve; returns the process and its port."""
    started = []
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a thousand connections, here and in the server

    def start(*words):
        command = [program("hstu"), "serve", *map(str, words)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        started.append(process)
        line = process.stderr.readline()
        assert "serving on" in line, line
        return process, int(line.rsplit(":", 1)[1])

    yield start
    for process in started:
        process.kill()
        process.communicate()


class Client:
    """A connection that stays open."""

    async def connect(self, port):
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)

    async def post(self, path, body):
        """(status, JSON)."""
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
        return int(lines[0].split()[1]), json.loads(await self._reader.readexactly(length))


def body_of(request):
    events = {"item": request.events.items, "time": request.events.times, "action": request.events.actions}
    events = {name: values.tolist() for name, values in events.items()}
    return json.dumps({"user": request.user, "time": request.time, "items": request.items, "events": events}).encode()


def test_answers_are_of_one_published_version_each_and_none_is_lost(folder, settings, run, dataset, request_of, server):
    published = folder / "published"
    versions = [hstu.publish(run, published, progress=None)]
    process, port = server(published / "current", "--watch", published, "--watch-seconds", 0.05, "--port", 0)
    requests = [request_of(int(user), [3, 7, 50]) for user in dataset.users[:20]]
    bodies = [body_of(request) for request in requests]
    answers = []

    def publish():
        further = hstu.train(resume=run, set={"training.max_steps": 25}, progress=None)
        versions.append(hstu.publish(further, published, progress=None))

    async def ask(number, clients, seen):
        """The client's requests: until it has an answer of the second version."""
        await clients[number].connect(port)
        while True:
            asked = number % len(bodies)
            status, answer = await asyncio.wait_for(clients[number].post("/score", bodies[asked]), 60)
            assert status == 200, answer
            answers.append((asked, answer))
            seen.add(answer["model"])
            if len(seen) > 1 and answer["model"] != answers[0][1]["model"]:
                return
            await asyncio.sleep(0.2)

    async def everything():
        clients, seen = [Client() for _ in range(CLIENTS)], set()
        asking = [asyncio.create_task(ask(number, clients, seen)) for number in range(CLIENTS)]
        while len(answers) < 100:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(publish)
        await asyncio.gather(*asking)

    asyncio.run(everything())
    expected = {}
    for version in versions:
        with hstu.Scorer(version) as scorer:
            expected[scorer.model] = scorer.score(requests)
    assert {answer["model"] for _, answer in answers} == set(expected) and len(expected) == 2
    for asked, answer in answers:
        scores = np.array(answer["scores"], np.float32)
        assert scores.tobytes() == expected[answer["model"]][asked].tobytes()
    process.terminate()
    assert process.wait(timeout=30) == 0
