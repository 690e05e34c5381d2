"""tools/check-wgmma passes on what its command prints and returns, and fails where ptxas serialised wgmma."""

import pathlib
import subprocess

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools/check-wgmma"
SERIALISED = "ptxas info : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to"


def run(script):
    done = subprocess.run([CHECK, "sh", "-c", script], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


assert run("true") == (0, "")
assert run("echo warned >&2") == (0, "warned\n")
assert run("exit 3")[0] == 3
status, said = run(f"echo '{SERIALISED}' >&2")
assert status == 1 and SERIALISED in said and "check-wgmma:" in said, (status, said)
