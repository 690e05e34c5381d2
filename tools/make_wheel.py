#!/usr/bin/env python3
"""Makes a wheel of an installed tree and the package in python/; ./dev wheel calls it and prints the path.

    tools/make_wheel.py TREE FOLDER

The wheel has programs and libraries that load no Python, so one serves every Python 3 (py3-none). Its manylinux tag is
the newest glibc whose symbols one of its files asks for; tests/python compares the tag with auditwheel's.
"""

import base64
import hashlib
import io
import pathlib
import platform
import re
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What a wheel has no use for: nobody finds manual pages and completion inside of site-packages.
LEFT_OUT = ("share/man/", "share/bash-completion/", "share/zsh/", "share/fish/", "share/hstu/files.txt")
METADATA = """\
Metadata-Version: 2.1
Name: hstu
Version: {version}
Summary: Trains and serves HSTU generative recommenders, on CPUs and NVIDIA GPUs
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: numpy>=1.20
Requires-Dist: tomli; python_version < "3.11"
Description-Content-Type: text/markdown

"""
ENTRY_POINTS = """\
[console_scripts]
hstu = hstu.tree:hstu
hstu-prepare = hstu.tree:hstu_prepare
"""


def readelf(file, option):
    return subprocess.run(["readelf", option, file], check=True, capture_output=True, text=True).stdout


def is_elf(file):
    with open(file, "rb") as opened:
        return opened.read(4) == b"\x7fELF"


def tree_files(tree):
    """(name in the tree, file). A library once, under the name that is looked for when a program starts: its SONAME."""
    for file in sorted(tree.rglob("*")):
        name = file.relative_to(tree)
        if file.is_symlink() or file.is_dir() or name.as_posix().startswith(LEFT_OUT):
            continue
        if is_elf(file) and (soname := re.search(r"\(SONAME\).*\[(.*)\]", readelf(file, "-dW"))):
            name = name.with_name(soname[1])
        yield name.as_posix(), file


def glibc(files):
    """The newest glibc that one of these files needs: (2, 36)."""
    symbols = "".join(readelf(file, "-VW") for file in files if is_elf(file))
    return max((int(major), int(minor)) for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols))


def contents(tree, version, tag):
    """(name in the wheel, bytes, mode)."""
    for file in sorted((ROOT / "python/hstu").glob("*")):
        if file.is_file():
            yield f"hstu/{file.name}", file.read_bytes(), 0o644
    for name, file in tree_files(tree):
        yield f"hstu/tree/{name}", file.read_bytes(), 0o755 if is_elf(file) else 0o644
    info = f"hstu-{version}.dist-info/"
    yield info + "METADATA", (METADATA.format(version=version) + (ROOT / "docs/python.md").read_text()).encode(), 0o644
    yield info + "WHEEL", f"Wheel-Version: 1.0\nGenerator: hstu\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644
    yield info + "entry_points.txt", ENTRY_POINTS.encode(), 0o644
    yield info + "licenses/LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644


def write(path, version, files):
    """The same files give the same bytes: in one order, and without the time of the build."""
    record = io.StringIO()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:

        def add(name, data, mode):
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, (0o100000 | mode) << 16
            wheel.writestr(info, data)

        for name, data, mode in files:
            add(name, data, mode)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.write(f"{name},sha256={digest},{len(data)}\n")
        name = f"hstu-{version}.dist-info/RECORD"
        add(name, (record.getvalue() + f"{name},,\n").encode(), 0o644)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tree, folder = map(pathlib.Path, sys.argv[1:])
    version = re.search(r"^project\(hstu VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
    major, minor = glibc(file for _, file in tree_files(tree))
    tag = f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"
    for old in folder.glob("hstu-*.whl"):
        old.unlink()
    path = folder / f"hstu-{version}-{tag}.whl"
    write(path, version, contents(tree, version, tag))
    print(path)


if __name__ == "__main__":
    main()
