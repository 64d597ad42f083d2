"""How fast it is, as ratios within one run, so that another machine gives about the same.

    python benchmarks/run.py [--peer PYTHON] [--repeats 15]

Processor time (user and system, of the process alone), median of so many runs, taken in turns. Of a cold start:
`lmcalc report` of the largest card on a machine, as a table and as JSON, against `import rich.table`, and
`lmcalc compare` of twenty cards on three machines against a report; of a sweep: a
million points of the Python API against its limit, ten million on four machines, and a point of it against a report; of
the header of a checkpoint of a thousand tensors: against json.loads of one.
--large: a hundred million points written to a file as well. --peer: a Python that has the package llm-flops (pip
install llm-flops rich), whose JSON estimate and evaluation in a loop are measured beside.

Exit status 1 if a limit is broken.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile


def command(name, python=sys.executable):
    """The script of that name which was installed with a Python."""
    found = shutil.which(name, path=os.path.dirname(python))
    if found is None:
        raise SystemExit(f"{name} is not installed beside {python}")
    return found


REPORT = [command("lmcalc"), "report", "llama-3.1-405b", "-H", "h100"]
COLD = {
    "python -c 'pass'": ["-c", "pass"],
    "import rich.table": ["-c", "import rich.table"],
    "lmcalc report, a table": REPORT,
    "lmcalc report -f json": [*REPORT, "-f", "json"],
}
MODELS = """
    llama-2-7b llama-2-13b llama-2-70b llama-3-8b llama-3-70b llama-3.1-8b llama-3.1-70b llama-3.1-405b mistral-7b gpt2
    gpt2-xl qwen-2.5-7b qwen-2.5-72b gemma-3-1b gemma-3-4b gemma-3-12b falcon-7b olmo-2-7b yi-34b opt-6.7b
""".split()  # twenty
COMPARE = [command("lmcalc"), "compare", *MODELS, "-H", "h100", "-H", "a100", "-H", "b200"]
TIMES_A_REPORT = 3  # limit of compare over 20 models and 3 machines
PEER = ["estimate", "meta-llama/Llama-3.1-8B", "--no-hf", "--json"]  # of the models that it bundles
BASE = "import rich.table"
SIDE_BY_SIDE = "lmcalc compare, 20 models x 3 machines"
LIMITS = {"lmcalc report, a table": 2.2, "lmcalc report -f json": 1.3}

POINTS = 1_000_000
FASTER = 1000  # times that a point of a sweep is faster than a report, at least
MICROSECONDS, MEMORY = 0.5, 1e9  # limits of the sweep: a point, and all of the process
SWEEP = """
import resource, time, numpy, lmcalc
batch, context = {grid}
lmcalc.sweep("llama-3.1-8b", "h100", batch=[1], context=[1])  # imports
start = time.process_time()
found = lmcalc.sweep("llama-3.1-8b", "h100", batch=batch, context=context)
spent = time.process_time() - start
assert len(found["decode_bound_s"]) == 1_000_000
print(spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
GRIDS = {
    "sweep of a 1000 x 1000 grid": "numpy.arange(1.0, 1001)[:, None], 64 * numpy.arange(1.0, 1001)",
    "sweep of 1,000,000 pairs": "numpy.random.default_rng(0).integers([[1], [1]], [[513], [131_073]], (2, 1_000_000))",
}
MANY = """
import resource, time, numpy, lmcalc
machines = ["a100", "h100", "b200", "mi300x"]
lmcalc.sweep("llama-3.1-8b", machines, batch=[1], context=[1])
start = time.process_time()
found = lmcalc.sweep("llama-3.1-8b", machines, vary={"batch": "1:1000", "context": range(64, 160_001, 64)})
spent = time.process_time() - start
MORE
assert len(found["decode_bound_s"]) == 10_000_000
print(spent / 10, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)  # of a million
"""
SPREAD = """
start = time.process_time()
columns = [found[name] for name in found if name not in found.labels]
spent += time.process_time() - start"""
SECONDS, TIMES_JSON = 0.2, 40  # limits of reading a header of a thousand tensors
HEADER = """
import json, os, struct, time
from lmcalc import headers

def mean(what, times=20):
    what()
    start = time.process_time()
    for _ in range(times):
        what()
    return (time.process_time() - start) / times

names, size = [f"model.layers.{number}.mlp.up_proj.weight" for number in range(1000)], 2 * 1024 * 4096
rows = {name: {"dtype": "BF16", "shape": [4096, 1024], "data_offsets": [at * size, (at + 1) * size]}
        for at, name in enumerate(names)}
text = json.dumps(rows).encode()
with open("model.safetensors", "wb") as file:
    file.write(len(text).to_bytes(8, "little") + text)
    file.truncate(8 + len(text) + len(rows) * size)
word = lambda text: struct.pack("<Q", len(text)) + text.encode()
head = b"GGUF" + struct.pack("<IQQ", 3, len(names), 1) + word("tokenizer.ggml.tokens")
head += struct.pack("<IIQ", 9, 8, 128_256) + b"".join(word(f"token {number}") for number in range(128_256))
head += b"".join(word(name) + struct.pack("<I2QIQ", 2, 1024, 4096, 30, at * size) for at, name in enumerate(names))
with open("model.gguf", "wb") as file:
    file.write(head)
    file.truncate(len(head) + 32 + len(names) * size)
both = (mean(lambda: headers.read(name)) for name in ("model.safetensors", "model.gguf"))
print(mean(lambda: json.loads(text)), *both)
"""
TEN = {
    "sweep of 10,000,000 points": MANY.replace("MORE", ""),
    "the same, all columns spread": MANY.replace("MORE", SPREAD),
}
LARGE = """sweep llama-3.1-8b --vary batch=1:1000 --vary context=64:1600000:64 -H a100 -H h100 -H b200 -H mi300x
--columns hardware,batch,context,cache_bytes,decode_bound_s,decode_bound_by -o sweep.parquet""".split()
LOOP = """
import time, lmcalc
model = lmcalc.load("llama-3.1-8b")
lmcalc.report(model, "h100")
start = time.process_time()
for context in range(1000):
    lmcalc.report(model, "h100", context=context)
print((time.process_time() - start) * 1000, 0)
"""
PEER_LOOP = """
import time
from llmflops import estimate
estimate("meta-llama/Llama-3.1-8B")
start = time.process_time()
for context in range(1000):
    estimate("meta-llama/Llama-3.1-8B", sequence_length=1 + context, include_backward=False)
print((time.process_time() - start) * 1000, 0)
"""


def spent(python, arguments):
    """Processor seconds of one process, in an empty folder, and what it printed."""
    settings = {**os.environ, "COLUMNS": "80"}
    settings.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([python, *arguments], cwd=folder, capture_output=True, text=True, env=settings)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: status {done.returncode}\n{done.stderr}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stdout


def large():
    """Processor seconds and bytes of memory of a hundred million points written to a file."""
    code = """
import resource, sys
from lmcalc.cli import main
assert main(sys.argv[1:]) == 0
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)"""
    return tuple(map(float, spent(sys.executable, ["-c", code, *LARGE])[1].split()))


def in_turns(cases, repeats, measure):
    """{case: median}, each measured so many times, one after the other so that a slow minute slows all."""
    found = {case: [] for case in cases}
    for _ in range(repeats + 1):
        for case, arguments in cases.items():
            found[case].append(measure(arguments))
    return {case: statistics.median(values[1:]) for case, values in found.items()}  # the first fills the file cache


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a Python that has llm-flops")
    parser.add_argument(
        "--large", action="store_true", help="a sweep of 100,000,000 points to a Parquet file of 1.2 GB"
    )
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    broken = []

    cases = {name: (sys.executable, arguments) for name, arguments in {**COLD, SIDE_BY_SIDE: COMPARE}.items()}
    if options.peer:
        cases["peer: import rich.table"] = (options.peer, COLD[BASE])
        cases["peer: llm-flops estimate --json"] = (options.peer, [command("llm-flops", options.peer), *PEER])
    found = in_turns(cases, options.repeats, lambda case: spent(*case)[0])
    print(f"{'cold start':40} {'ms':>8} {'ratio':>8} {'limit':>8}")
    for name, seconds in found.items():
        ratio, limit = seconds / found[BASE], LIMITS.get(name)
        if limit is not None and ratio > limit:
            broken.append(name)
        print(f"{name:40} {1000 * seconds:8.1f} {ratio:8.2f} {limit or '':>8}")

    ratio = found[SIDE_BY_SIDE] / found["lmcalc report, a table"]
    print(f"{SIDE_BY_SIDE}: {ratio:.2f} reports, limit {TIMES_A_REPORT}")
    if ratio > TIMES_A_REPORT:
        broken.append(SIDE_BY_SIDE)

    repeats = max(3, options.repeats // 3)
    scripts = {name: (sys.executable, SWEEP.format(grid=grid)) for name, grid in GRIDS.items()}
    scripts |= {name: (sys.executable, script) for name, script in TEN.items()}
    scripts["report in a loop"] = (sys.executable, LOOP)
    if options.peer:
        scripts["peer: estimate in a loop"] = (options.peer, PEER_LOOP)
    memory = {}

    def inside(script):
        seconds, held = map(float, spent(script[0], ["-c", script[1]])[1].split())
        memory[script] = max(held, memory.get(script, 0))
        return seconds / POINTS * 1e6

    times = in_turns(scripts, repeats, inside)
    print(f"\n{'a point':40} {'us':>8} {'ratio':>8} {'limit':>8} {'MB':>8}")
    first = times[next(iter(TEN))]
    for name, microseconds in times.items():
        limited, held = "loop" not in name, memory[scripts[name]]
        if limited and (microseconds > MICROSECONDS or held > (MEMORY if "spread" not in name else 2 * MEMORY)):
            broken.append(name)
        limit = MICROSECONDS if limited else ""
        print(f"{name:40} {microseconds:8.3f} {microseconds / first:8.1f} {limit:>8} {held / 1e6 if held else 0:8.0f}")

    faster = times["report in a loop"] / first
    print(
        f"a point of a sweep takes 1/{faster:,.0f} of a report (limit: 1/{FASTER:,}); {1 / first:,.1f} million a second"
    )
    if faster < FASTER:
        broken.append("a point against a report")
    base, *found = map(float, spent(sys.executable, ["-c", HEADER])[1].split())
    print(f"\n{'a header of 1,000 tensors':40} {'ms':>8} {'ratio':>8} {'limit':>8}")
    for name, seconds in zip(("safetensors", "GGUF, with a vocabulary of 128,256"), found):
        print(f"{name:40} {1000 * seconds:8.1f} {seconds / base:8.1f} {TIMES_JSON:8}")
        if seconds > SECONDS or seconds / base > TIMES_JSON:
            broken.append(f"header: {name}")

    if options.large:
        seconds, held = large()
        print(f"{'100,000,000 points to a file':40} {seconds / 100:8.3f} {'':8} {'':8} {held / 1e6:8.0f}")
        if held > 2e9:
            broken.append("memory of 100,000,000 points")

    for name in broken:
        print(f"limit broken: {name}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
