#!/usr/bin/env python3
"""Downloads the data of the benchmark: ./dev download.

    tools/download.py yambda 50m|500m|5b [--output FOLDER] [--from URL]
    tools/download.py mlcommons [--output FOLDER] [--from URL]

yambda: the events of Yambda and what its items belong to, for `hstu prepare yambda`. mlcommons: the prepared files
of the reference, for `hstu prepare mlcommons`. The size is stated first. A download that was interrupted continues
where it stopped when the command is given again. A file has its name only when its sum was checked.
"""

import argparse
import hashlib
import http.client
import pathlib
import shutil
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

# The revision whose sums the reference lists.
YAMBDA = "https://huggingface.co/datasets/yandex/yambda/resolve/dd6f3a19eef5866e346c3270e098baa641a44948"
MLCOMMONS = "https://training.mlcommons-storage.org/metadata/dlrmv4_dataset.uri"
MAPPINGS = {
    "artist_item_mapping.parquet": "a7fa1226d16d2867eb7ca43f395091d0",
    "album_item_mapping.parquet": "40a37753824093fa6d5c89a50c7c5191",
}
CHUNK = 1 << 20
TRIES = 5


class DownloadError(Exception):
    """What the user reads."""


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class File:
    def __init__(self, url, name, size=None, algorithm=None, digest=None):
        self.url, self.name, self.size, self.algorithm, self.digest = url, name, size, algorithm, digest


def ask(url, method="GET", headers=None):
    request = urllib.request.Request(url, method=method, headers=headers or {})
    try:
        return urllib.request.urlopen(request, timeout=60)
    except (urllib.error.URLError, OSError) as error:
        raise DownloadError(f"{url}: {error}") from None


def first_headers(url):
    """Of the server that is asked, which knows the size and the SHA-256 of a file that it has elsewhere."""
    opener = urllib.request.build_opener(NoRedirect)
    try:
        return opener.open(urllib.request.Request(url, method="HEAD"), timeout=60).headers
    except urllib.error.HTTPError as error:
        if error.code in (301, 302, 303, 307, 308):
            return error.headers
        raise DownloadError(f"{url}: {error}") from None
    except (urllib.error.URLError, OSError) as error:
        raise DownloadError(f"{url}: {error}") from None


def describe(file):
    """Fills in the size and, where there is none, the sum."""
    headers = first_headers(file.url)
    size = headers.get("X-Linked-Size")
    if size is None and headers.get("Location") is None:
        size = headers.get("Content-Length")
    if size is None:
        size = ask(file.url, "HEAD").headers.get("Content-Length")
    if size is None:
        raise DownloadError(f"{file.url}: the server does not say how large the file is")
    file.size = int(size)
    sha256 = (headers.get("X-Linked-Etag") or "").strip('W/"')
    if file.digest is None and len(sha256) == 64:
        file.algorithm, file.digest = "sha256", sha256
    if file.digest is None:
        raise DownloadError(f"{file.url}: neither this program nor the server knows the file's sum")
    return file


def yambda_files(size, base):
    files = [File(f"{base}/flat/{size}/multi_event.parquet", "multi_event.parquet")]
    return files + [File(f"{base}/{name}", name, None, "md5", md5) for name, md5 in MAPPINGS.items()]


def mlcommons_files(uri):
    with ask(uri) as answer:
        base = answer.read().decode().strip()
    with ask(uri.removesuffix(".uri") + ".md5") as answer:
        lines = answer.read().decode().split("\n")
    files = []
    for line in filter(None, lines):
        md5, name = line.split(maxsplit=1)
        name = name.lstrip("*").removeprefix("./")
        if pathlib.PurePosixPath(name).is_absolute() or ".." in pathlib.PurePosixPath(name).parts:
            raise DownloadError(f"{uri}: the list of sums names {name}, which is outside of the folder")
        files.append(File(f"{base}/{urllib.parse.quote(name)}", name, None, "md5", md5))
    return files


def human(size):
    return f"{size / 1e9:.2f} GB" if size >= 1e7 else f"{size:,} bytes"


def fetch(file, part):
    """Appends to `part` until it has the whole file. Gives up after some tries that brought nothing."""
    attempt = 0
    while (have := part.stat().st_size) < file.size:
        try:
            with ask(file.url, headers={"Range": f"bytes={have}-"} if have else {}) as answer:
                goes_on = answer.status == 206
                with part.open("ab" if goes_on else "wb") as output:
                    shown, got = time.monotonic(), have if goes_on else 0
                    while chunk := answer.read1(CHUNK):
                        output.write(chunk)
                        got += len(chunk)
                        if time.monotonic() - shown > 10:
                            shown = time.monotonic()
                            print(f"  {file.name}: {100 * got / file.size:.1f} %", flush=True)
        except (http.client.HTTPException, OSError, DownloadError) as error:
            problem = str(error)
        else:
            problem = "the connection ended early"
        if part.stat().st_size > have:
            attempt = 0
            continue
        attempt += 1
        if attempt == TRIES:
            raise DownloadError(f"{file.url}: {problem}; give the command again to continue")
        time.sleep(min(0.2 * 4**attempt, 30))


def check(file, part):
    digest = hashlib.new(file.algorithm)
    with part.open("rb") as stream:
        while chunk := stream.read(1 << 24):
            digest.update(chunk)
    if part.stat().st_size == file.size and digest.hexdigest() == file.digest:
        return
    part.unlink()
    raise DownloadError(
        f"{file.name}: the {file.algorithm} sum is {digest.hexdigest()}, expected {file.digest}: what "
        "was downloaded is removed; give the command again"
    )


def download(files, folder):
    for file in files:
        describe(file)
    missing = [f for f in files if not (folder / f.name).is_file() or (folder / f.name).stat().st_size != f.size]
    have = sum(p.stat().st_size for f in missing if (p := folder / (f.name + ".part")).exists())
    size, left = sum(f.size for f in files), sum(f.size for f in missing) - have
    print(f"{len(files)} files, {human(size)}; {human(left)} are left to download into {folder}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    room = shutil.disk_usage(folder).free
    if left > room:
        raise DownloadError(f"{folder} has room for {human(room)} alone: choose another --output")
    for file in missing:
        path, part = folder / file.name, folder / (file.name + ".part")
        path.parent.mkdir(parents=True, exist_ok=True)
        part.touch()
        fetch(file, part)
        check(file, part)
        part.rename(path)
        print(f"  {file.name}: {human(file.size)}, {file.algorithm} as expected", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev download", description=__doc__.split("\n")[0])
    parser.add_argument("data", choices=["yambda", "mlcommons"])
    parser.add_argument("size", nargs="?", choices=["50m", "500m", "5b"], help="of yambda")
    parser.add_argument("--output", type=pathlib.Path, help="folder; default: the name of the data")
    parser.add_argument("--from", dest="source", help="another address of the same files")
    words = parser.parse_args()
    if (words.data == "yambda") != (words.size is not None):
        parser.error("give the size of yambda (50m, 500m or 5b); mlcommons has one size")
    try:
        if words.data == "yambda":
            files, name = yambda_files(words.size, (words.source or YAMBDA).rstrip("/")), f"yambda-{words.size}"
        else:
            files, name = mlcommons_files(words.source or MLCOMMONS), "mlcommons"
        download(files, (words.output or pathlib.Path(name)).resolve())
    except DownloadError as error:
        print(f"download: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("\ndownload: give the command again to continue", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
