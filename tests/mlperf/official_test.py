"""Our logs and packages under the official tools of MLPerf, unmodified, and our self-check beside their verdicts.

python3 tests/mlperf/official_test.py BUILD      BUILD has hstu and mlperf_scripted_runs
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import official_tools as official

INTERVAL = 2293760


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


class Test:
    def __init__(self, build, folder):
        self.hstu, self.scripted, self.folder = build / "hstu", build / "mlperf_scripted_runs", folder
        self.wrong = []

    def expect(self, condition, *words):
        if not condition:
            self.wrong.append(" ".join(str(word) for word in words))

    def runs(self, name, batch, last):
        folder = self.folder / name
        made = run(self.scripted, folder, batch, last)
        assert made.returncode == 0, made.stderr
        return [folder / str(number) for number in range(10)]

    def pack(self, runs, name):
        """(exit status, output, folder)"""
        output = self.folder / name
        packed = run(self.hstu, "mlperf", "pack", *runs, "--output", output)
        return packed.returncode, packed.stdout + packed.stderr, output

    # A: the package of our event writer.
    def test_package(self):
        runs = self.runs("good", 8192, 29)
        status, text, folder = self.pack(runs, "example")
        self.expect(status == 0, "pack:", text)
        for log in sorted(folder.glob("results/scripted/dlrmv4/*")):
            verdict, why = official.complies(log)
            self.expect(verdict, log.name, why)
        self.expect(*official.package(folder))
        self.expect(official.repository(folder), "the repository checker found an error")
        factor = float(re.search(r"multiplied by ([0-9.]+)", text)[1])
        passes, message, official_factor = official.convergence(folder / "results/scripted/dlrmv4")
        self.expect(passes and abs(official_factor - factor) < 1e-4, message, official_factor, factor)
        ours = float(re.search(r"score ([0-9.]+) minutes", text)[1])
        theirs = official.score(folder, self.folder / "summary.csv")
        self.expect(abs(ours - theirs) <= 1e-3, "score:", ours, "of the summary:", theirs)
        return folder

    # B: one fault each.
    def test_faults(self, package):
        import faults

        lines = (package / "results/scripted/dlrmv4/result_0.txt").read_text().splitlines()
        files = []
        for number, (name, fault, complies) in enumerate(faults.FAULTS):
            file = self.folder / f"fault_{number}.txt"
            file.write_text("\n".join(fault(lines)) + "\n", encoding="latin-1", newline="")
            verdict, why = official.complies(file)
            self.expect(verdict == complies, name, "- the official tool:", why)
            files.append(file)
        text = run(self.hstu, "mlperf", "check", *files, package / "results/scripted/dlrmv4/result_0.txt").stdout
        verdicts = dict(re.findall(r"^(\S+): (SUCCESS|FAILED)$", text, re.MULTILINE))
        for file, (name, _, complies) in zip(files, faults.FAULTS, strict=True):
            self.expect(
                verdicts.get(str(file)) == ("SUCCESS" if complies else "FAILED"),
                name,
                "- the self-check:",
                verdicts.get(str(file)),
            )
        print(f"{len(files)} logs, {sum(not fault[2] for fault in faults.FAULTS)} with a fault that the rules refuse")

    def both_verdicts(self, name, package):
        """Of a package whose logs were changed: both tools agree. Returns the verdict."""
        verdict, why = official.package(package)
        logs = sorted(package.glob("results/scripted/dlrmv4/result_*.txt"))
        checked = run(self.hstu, "mlperf", "check", *logs).stdout if len(logs) == 10 else ""
        if len(logs) == 10:
            ours = checked.rstrip().endswith("submission: SUCCESS")
            self.expect(verdict == ours, name, verdict, why[-600:], checked[-600:])
        return verdict

    def test_packages_with_faults(self, package):
        import faults

        def change(numbers, fault):
            def apply(folder):
                for number in numbers:
                    log = folder / f"results/scripted/dlrmv4/result_{number}.txt"
                    log.write_text("\n".join(fault(log.read_text().splitlines())) + "\n")

            return apply

        cases = [
            ("one log does not comply", change([3], faults.without("opt_name")), True),
            ("two logs do not comply", change([3, 4], faults.without("opt_name")), False),
            ("one run aborted", change([3], faults.metadata("run_stop", status="aborted")), True),
            ("two runs aborted", change([3, 4], faults.metadata("run_stop", status="aborted")), False),
            ("two equal seeds", change([3, 4], faults.value("seed", 5)), False),
            ("no seed", change([3], faults.without("seed")), False),
            ("a seed that is no number", change([3], faults.value("seed", "random")), False),
            ("a seed in a text", change([3], faults.value("seed", "77")), True),
            (
                "a key that has the name of another one",
                change([0], faults.extra(faults.point("target_eval_accuracy", 1))),
                False,
            ),
            ("another batch", change([3], faults.value("global_batch_size", 4096)), False),
            ("nine logs", lambda folder: (folder / "results/scripted/dlrmv4/result_9.txt").unlink(), False),
        ]
        for number, (name, apply, passes) in enumerate(cases):
            folder = self.folder / f"package_{number}" / "example"
            shutil.copytree(package, folder)
            (folder / "results/scripted/dlrmv4/scaling.json").unlink(missing_ok=True)
            apply(folder)
            self.expect(self.both_verdicts(name, folder) == passes, name)

    # The place in the band of the reference, of packages that differ in batch and speed.
    def test_convergence(self):
        for batch, last, passes in [
            (8192, 28, False),
            (4096, 29, True),
            (4096, 26, False),
            (16384, 34, False),
            (16384, 35, True),
            (32768, 46, False),
            (32768, 47, True),
            (32768, 52, True),
            (24576, 42, True),
            (65536, 66, False),
        ]:
            name = f"rcp_{batch}_{last}"
            runs = self.runs(f"{name}_runs", batch, last)
            status, text, folder = self.pack(runs, f"{name}/example")
            verdict, message, factor = official.convergence(folder / "results/scripted/dlrmv4")
            self.expect(verdict == passes == (status == 0), name, message, text)
            ours = re.search(r"multiplied by ([0-9.]+)", text)
            self.expect(not verdict or abs((float(ours[1]) if ours else 1.0) - factor) < 1e-4, name, text, factor)


def main():
    official.ensure_packages()
    with tempfile.TemporaryDirectory() as folder:
        test = Test(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder))
        package = test.test_package()
        test.test_faults(package)
        test.test_packages_with_faults(package)
        test.test_convergence()
    for line in test.wrong:
        print("WRONG", line)
    sys.exit(1 if test.wrong else 0)


main()
