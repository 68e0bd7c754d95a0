#!/usr/bin/env python3
"""Times one DP-SGD training step of the four models in PyTorch, Opacus, torch.func and JAX, next to tsdp's. Run by hand:

    python3 -m venv build/peers-step && build/peers-step/bin/pip install -r benchmarks/peers/step_requirements.txt
    build/peers-step/bin/python benchmarks/peers/step.py --own build/release/bin/tsdp-bench --json step.json

A step is forward pass, loss, backward pass, clipping of every window's gradient, noise, Adam; DeepAR's lags are made from the
windows within it. Engines:

  torch               PyTorch, not private
  jax                 JAX, compiled, not private
  opacus              per-sample gradients by Opacus's hooks; its DPLSTM and DPMultiheadAttention
  opacus_ghost        Opacus's ghost clipping: norms first, then a second backward pass
  torch_vmap          torch.func: vmap of grad; the LSTM unrolled (nn.LSTM maps window by window, which is slower)
  torch_compile_vmap  the same under torch.compile, which takes many minutes over DeepAR's unrolled steps
  jax_vmap            JAX, compiled: vmap of grad
  jax_two_pass        JAX, compiled: vmap of grad for the norms only, then the gradient of the weighted losses

Every engine, model and batch runs in a process of its own, limited to as many cores as threads and with an allocator that
gives no memory back (jemalloc or tcmalloc if installed); tsdp runs as is. Neither imports nor compiling are timed
("cold_s" shows them). The peers' noise comes from their default generators, which are not cryptographic. --check has every
engine make a step without noise and compares the gradients instead.
"""

import argparse
import ctypes.util
import dataclasses
import glob
import importlib
import importlib.metadata
import json
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

import numpy as np

MODELS = {"simple_ff": 106243, "dlinear": 93183, "itransformer": 35003, "deepar": 25724}  # and their parameter counts
NOT_PRIVATE = ("torch", "jax")
PRIVATE = ("opacus", "opacus_ghost", "torch_vmap", "torch_compile_vmap", "jax_vmap", "jax_two_pass")
ENGINES = NOT_PRIVATE + PRIVATE
IDLE_LOAD = 0.5
WARM_UP = 3


# ---- the task --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Task:
    engine: str
    model: str
    batch: int
    threads: int = 2
    device: str = "cpu"
    noise_multiplier: float = 4.0
    clip: float = 1e-4
    learning_rate: float = 1e-3
    weight_decay: float = 1e-8
    context: int = 96
    forecast: int = 24
    lags: tuple = tuple(range(1, 8)) + tuple(24 * day + hour for day in range(1, 8) for hour in (-1, 0, 1))

    @property
    def parameter_count(self):
        return MODELS[self.model]

    def shapes(self):
        c, h = self.context, self.forecast

        def linear(name, inputs, outputs):
            return {name + ".weight": (outputs, inputs), name + ".bias": (outputs,)}

        if self.model == "simple_ff":
            return linear("nn.0", c, 64) | linear("nn.2", 64, 64 * h) | linear("head", 64, 3)
        if self.model == "dlinear":
            return linear("seasonal", c, 20 * h) | linear("trend", c, 20 * h) | linear("head", 20, 3)
        if self.model == "itransformer":
            shapes = linear("embedding", c + 2, 32)
            for i in range(2):
                at = f"encoder.layers.{i}."
                shapes |= {at + "self_attn.in_proj_weight": (96, 32), at + "self_attn.in_proj_bias": (96,)}
                shapes |= linear(at + "self_attn.out_proj", 32, 32) | linear(at + "linear1", 32, 128) | linear(at + "linear2", 128, 32)
                shapes |= {f"{at}norm{j}.{part}": (32,) for j in (1, 2) for part in ("weight", "bias")}
            shapes |= {"encoder.norm.weight": (32,), "encoder.norm.bias": (32,)}
            return shapes | linear("projection", 32, 8 * h) | linear("head", 8, 3)
        shapes = {"embedding.weight": (1, 1)}
        for i, inputs in enumerate((len(self.lags) + 8, 40)):
            shapes |= {f"lstm.weight_ih_l{i}": (160, inputs), f"lstm.weight_hh_l{i}": (160, 40)}
            shapes |= {f"lstm.bias_ih_l{i}": (160,), f"lstm.bias_hh_l{i}": (160,)}
        return shapes | linear("head", 40, 3)

    def parameters(self):
        """The same initial values for all engines."""
        rng = np.random.default_rng(1)
        values = {}
        for name, shape in self.shapes().items():
            bound = 1.0 / np.sqrt(shape[-1] if len(shape) > 1 else 100.0)
            values[name] = rng.uniform(-bound, bound, shape).astype(np.float32) + ("norm" in name and "weight" in name)
        assert sum(v.size for v in values.values()) == self.parameter_count
        return {name: v.astype(np.float32) for name, v in values.items()}

    def data(self):
        """Windows, all observed: past, its marks, future, its marks; for DeepAR the category, time features and age too."""
        rng = np.random.default_rng(2)
        lengths = (self.context + (max(self.lags) - 1 if self.model == "deepar" else 0), self.forecast)
        arrays = []
        for length in lengths:
            values = 0.1 * rng.lognormal(0.0, 0.5, (self.batch, length))
            arrays += [values.astype(np.float32), np.ones((self.batch, length), np.float32)]
        if self.model == "deepar":
            steps = self.context + self.forecast - 1
            time_features = rng.uniform(-0.5, 0.5, (self.batch, steps, 4))
            age = np.log10(2.0 + rng.integers(300, 10_000, (self.batch, 1, 1)) + np.arange(steps)[:, None])
            arrays += [np.zeros(self.batch, np.int64), np.concatenate((time_features, age), 2).astype(np.float32)]
        return tuple(arrays)


# ---- one case, in a process of its own -------------------------------------------------------------------------------


def prepare(task):
    return importlib.import_module("step_jax" if task.engine.startswith("jax") else "step_torch").prepare(task)


def cpu_ms():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return 1e3 * (usage.ru_utime + usage.ru_stime)


def time_case(task, seconds):
    begin = time.perf_counter()
    step, _ = prepare(task)
    step()
    cold = time.perf_counter() - begin
    for _ in range(WARM_UP - 1):
        step()
    times = []
    cpu = cpu_ms()
    start = time.perf_counter()
    while time.perf_counter() - start < seconds or len(times) < 3:
        begin = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - begin))
    return {
        "steps": len(times),
        "median_ms": statistics.median(times),
        "min_ms": min(times),
        "cpu_ms": (cpu_ms() - cpu) / len(times),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
        "cold_s": cold,
    }


def gradient_case(task):
    """The sizes of the gradient's coordinates, sorted, as engines order and split parameters differently."""
    step, first_moments = prepare(dataclasses.replace(task, noise_multiplier=0.0))
    step()
    moments = np.concatenate([np.asarray(m, np.float64).ravel() for m in first_moments()])
    assert moments.size == task.parameter_count, f"{moments.size} parameters instead of {task.parameter_count}"
    return {"gradient": np.sort(np.abs(moments) / 0.1).tolist()}


def run_case(options):
    """Runs in a process of its own: writes figures, or the reason why there are none, as JSON to the file --case-out."""
    engine, model, batch = options.case
    task = Task(engine, model, int(batch), options.threads, options.device)
    try:
        row = gradient_case(task) if options.check else time_case(task, options.seconds)
    except Exception as e:  # an engine's failure is its result
        traceback.print_exc()
        row = {"error": " ".join(f"{type(e).__name__}: {e}".split())[:500]}
    with open(options.case_out, "w", encoding="utf-8") as out:
        json.dump(row, out)


# ---- the processes ---------------------------------------------------------------------------------------------------


def find_allocator():
    """The path of jemalloc or tcmalloc if there is one."""
    folders = ["/usr/lib", "/usr/lib64", "/usr/local/lib", f"/usr/lib/{platform.machine()}-linux-gnu"]
    for name in ("jemalloc", "tcmalloc_minimal", "tcmalloc"):
        soname = ctypes.util.find_library(name)
        for folder in folders if soname else []:
            for path in glob.glob(os.path.join(folder, soname)):
                return path
    return ""


def environment(options):
    env = dict(os.environ)
    threads = str(options.threads)
    env |= {name: threads for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS")}
    env["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads={threads}"
    env["JAX_PLATFORMS"] = "cpu"
    if options.allocator:
        env["LD_PRELOAD"] = options.allocator
        env["MALLOC_CONF"] = "oversize_threshold:1,background_thread:true,metadata_thp:auto,dirty_decay_ms:-1,muzzy_decay_ms:-1"
        env["TCMALLOC_RELEASE_RATE"] = "0"
    else:
        # glibc's allocator: one heap that grows, with huge pages, and is never given back.
        env |= {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(64 << 20)}
        env["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
    return env


def start_case(options, folder, engine, model, batch):
    """The figures of a case, or its error."""
    out = os.path.join(folder, "case.json")
    command = [sys.executable, os.path.abspath(__file__), "--case", engine, model, str(batch), "--case-out", out,
               f"--threads={options.threads}", f"--device={options.device}", f"--seconds={options.seconds}"] + (["--check"] if options.check else [])
    with open(os.path.join(folder, "case.err"), "w+", encoding="utf-8") as said:
        # A process group of its own, so that an abandoned case ends together with the compilers it started.
        process = subprocess.Popen(command, env=environment(options), stdout=said, stderr=said, start_new_session=True)
        try:
            status = process.wait(options.limit)
        except subprocess.TimeoutExpired:
            return {"error": f"no result within {options.limit:g} s"}
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        said.seek(0)
        if status != 0:
            return {"error": f"exit status {status}: {' '.join(said.read().split())[-300:] or 'no message'}"}
    with open(out, encoding="utf-8") as lines:
        return json.load(lines)


def time_peers(options, folder):
    rows = []
    cases = [(model, batch, engine) for model in options.models for batch in options.batches for engine in options.engines]
    for i, (model, batch, engine) in enumerate(cases):
        print(f"{i + 1} of {len(cases)}: {engine}, {model}, batch {batch}", file=sys.stderr, flush=True)
        row = {"bench": "step", "engine": engine, "model": model, "mode": "private" if engine in PRIVATE else "nonprivate",
               "device": options.device, "threads": options.threads, "batch": batch, "context": Task.context, "forecast": Task.forecast}
        row |= start_case(options, folder, engine, model, batch)
        # Said at once: a run that is stopped later has shown what it measured.
        print(f"step.py: {engine}, {model}, batch {batch}: {row.get('error') or ms(row) + ' ms'}", file=sys.stderr, flush=True)
        rows.append(row)
    return rows


def time_own(options, folder, when):
    print(f"tsdp, {when} its peers", file=sys.stderr, flush=True)
    out = os.path.join(folder, "own.json")
    command = [options.own, "--only", "step", "--json", out, "--threads", str(options.threads), "--device", options.device,
               "--seconds", str(options.seconds)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(out, encoding="utf-8") as lines:
        return [{"engine": "tsdp", "when": when} | row for row in json.load(lines)]


# ---- the check -------------------------------------------------------------------------------------------------------


def check(options, folder):
    """Whether private engines find the same gradient, and likewise the non-private ones, by relative distance to the first."""
    failures = 0
    batch = min(options.batches)
    for model in options.models:
        for group in (NOT_PRIVATE, PRIVATE):
            first = None
            for engine in (e for e in group if e in options.engines):
                found = start_case(options, folder, engine, model, batch)
                if "error" in found:
                    print(f"{model}, {engine}: {found['error']}", flush=True)
                    failures += 1
                    continue
                gradient = np.array(found["gradient"])
                first = gradient if first is None else first
                distance = np.linalg.norm(gradient - first) / np.linalg.norm(first)
                print(f"{model}, {engine}: norm {np.linalg.norm(gradient):.7g}, distance {distance:.1e}", flush=True)
                failures += distance > 1e-3
    return 1 if failures else 0


# ---- the tables ------------------------------------------------------------------------------------------------------


def table(head, rows):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])


def short(value):
    return f"{value:.0f}" if value >= 100.0 else f"{value:.3g}"


def ms(row):
    if row is None:
        return "–"
    return "failed" if "error" in row else f"{short(row['median_ms'])} ({short(row['min_ms'])})"


def ratio(row, base):
    usable = row is not None and base is not None and "error" not in row and "error" not in base
    return short(row["median_ms"] / base["median_ms"]) + "×" if usable else "–"


def own_row(rows, model, batch, mode):
    """tsdp's runs before and after taken together: the mean of the medians."""
    runs = [r for r in rows if (r["engine"], r["model"], r["batch"], r["mode"]) == ("tsdp", model, batch, mode)]
    if not runs:
        return None
    return {"median_ms": statistics.fmean(r["median_ms"] for r in runs), "min_ms": min(r["min_ms"] for r in runs),
            "spread": max(r["median_ms"] for r in runs) / min(r["median_ms"] for r in runs)}


def markdown(options, rows):
    peers = {(r["model"], r["batch"], r["engine"]): r for r in rows if r["engine"] != "tsdp"}
    times, ratios, notes = [], [], []
    for model in options.models:
        for batch in options.batches:
            private, ordinary = (own_row(rows, model, batch, mode) for mode in ("private", "nonprivate"))
            found = {engine: peers.get((model, batch, engine)) for engine in options.engines}
            times.append([model, str(batch), ms(private), ms(ordinary)] + [ms(found[e]) for e in options.engines])
            ratios.append([model, str(batch), ratio(private, ordinary)]
                          + [ratio(ordinary, found[e]) for e in options.engines if e in NOT_PRIVATE]
                          + [ratio(private, found[e]) for e in options.engines if e in NOT_PRIVATE]
                          + [ratio(found[e], private) for e in options.engines if e in PRIVATE])
            if private and private["spread"] > 1.1:
                notes.append(f"- {model}, batch {batch}: tsdp's medians before and after differ by {private['spread'] - 1.0:.0%}")
            notes += [f"- {model}, batch {batch}, {e}: {r['error']}" for e, r in found.items() if r and "error" in r]
    ordinary_engines = [e for e in options.engines if e in NOT_PRIVATE]
    parts = ["Milliseconds a training step: median (minimum).",
             table(["model", "batch", "tsdp private", "tsdp not private"] + list(options.engines), times)]
    if options.own:
        parts += ["Ratios of medians.",
                  table(["model", "batch", "tsdp private / not private"]
                        + [f"tsdp not private / {e}" for e in ordinary_engines] + [f"tsdp private / {e}" for e in ordinary_engines]
                        + [f"{e} / tsdp private" for e in options.engines if e in PRIVATE], ratios)]
    return "\n\n".join(parts + (["\n".join(notes)] if notes else []))


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return model


def main():
    parser = argparse.ArgumentParser(description="Times a training step of tsdp's peers, and tsdp's beside them.")
    parser.add_argument("--own", metavar="FILE", help="tsdp-bench, to be run before and after the peers")
    parser.add_argument("--json", metavar="FILE", help="all rows")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--batches", nargs="+", type=int, default=[32, 256, 1024])
    parser.add_argument("--seconds", type=float, default=5.0, help="timed for so long a case, and for three steps at least")
    parser.add_argument("--threads", type=int, default=2, help="threads, and cores to run on")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda for PyTorch's engines and tsdp")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds after which a case is given up")
    parser.add_argument("--allocator", metavar="FILE", default=find_allocator(), help="preloaded for the peers; empty: glibc's, tuned")
    parser.add_argument("--busy-ok", action="store_true", help="run on a busy machine too")
    parser.add_argument("--check", action="store_true", help="compare the engines' gradients at the smallest batch")
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--case-out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        run_case(options)
        return 0
    if options.own and not os.path.exists(options.own):
        parser.error(f"--own: there is no {options.own}; the target tsdp-bench makes it")
    load = os.getloadavg()[0]
    if load > IDLE_LOAD and not (options.busy_ok or options.check):
        print(f"step.py: the machine is busy (load {load:.2f}, above {IDLE_LOAD:g}), times would mean nothing; --busy-ok runs anyway",
              file=sys.stderr)
        return 2
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < options.threads:
        parser.error(f"--threads: only {len(cores)} cores to run on")
    os.sched_setaffinity(0, cores[: options.threads])

    with tempfile.TemporaryDirectory() as folder:
        if options.check:
            return check(options, folder)
        rows = time_own(options, folder, "before") if options.own else []
        rows += time_peers(options, folder)
        rows += time_own(options, folder, "after") if options.own else []
    installed = {package.name.lower() for package in importlib.metadata.distributions()}
    versions = {name: importlib.metadata.version(name) for name in ("torch", "opacus", "jax", "jaxlib", "numpy") if name in installed}
    versions["python"] = platform.python_version()
    allocator = os.path.basename(options.allocator) or "glibc"
    print(f"{machine()}, {options.threads} threads, allocator {allocator}, load at the start {load:.2f}; "
          + ", ".join(f"{name} {version}" for name, version in versions.items()) + "\n")
    print(markdown(options, rows))
    if options.json:
        report = {"machine": machine(), "threads": options.threads, "allocator": allocator, "load": load, "versions": versions}
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(report | {"rows": rows}, out, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
