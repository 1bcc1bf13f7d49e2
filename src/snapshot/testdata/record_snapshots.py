"""Records memory snapshots of PyTorch's own CUDACachingAllocator, from process start, without a GPU.

fake_cuda.cc stands in for the CUDA runtime; the allocator, the recorder and the pickle are PyTorch's. Needs a CUDA
build of PyTorch with the headers that its wheels bring (nvidia-cuda-runtime, triton) and g++:

    python record_snapshots.py OUT_FOLDER [--events N] [--seeds N] [SCENARIO ...]

One process a scenario, since the settings are read once. With several seeds the files are named SCENARIO.SEED.
"""

import argparse
import ctypes
import dataclasses
import gzip
import json
import os
import pathlib
import pickle
import random
import subprocess
import sys
import sysconfig

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20


@dataclasses.dataclass
class Scenario:
    """Settings of the allocator and memory of the device; what the program does."""

    settings: str = ""
    device_mib: int = 100_000
    fraction: float = 0.0
    descending: bool = False
    streams: int = 1
    records: bool = False  # blocks used on a second stream, whose frees wait
    pools: int = 0  # private pools (torch.cuda.MemPool)
    empties: bool = True  # torch.cuda.empty_cache() now and then
    training: bool = False  # training.py with its stacks, instead of random requests


SCENARIOS = {
    "default": Scenario(streams=2),
    "descending": Scenario(streams=2, descending=True),
    "tight": Scenario(device_mib=300, empties=False),
    "streams": Scenario(streams=5, records=True),
    "streams_tight": Scenario(device_mib=500, streams=3, records=True, empties=False),
    "max_split": Scenario("max_split_size_mb:24", device_mib=400),
    "max_split_rounding": Scenario("max_split_size_mb:40,max_non_split_rounding_mb:64", device_mib=900),
    "roundup": Scenario("roundup_power2_divisions:[1:4,8:2,16:8,>:1]", device_mib=500),
    "roundup_all": Scenario("roundup_power2_divisions:16", device_mib=500),
    "large_segment": Scenario("large_segment_size_mb:32", device_mib=400),
    "garbage": Scenario("garbage_collection_threshold:0.5", device_mib=900, fraction=0.8, empties=False),
    "fraction": Scenario(device_mib=900, fraction=0.5),
    "expandable": Scenario("expandable_segments:True", device_mib=400),
    "expandable_streams": Scenario("expandable_segments:True", device_mib=3000, streams=3, records=True),
    "pools": Scenario(streams=2, pools=2),
    "training": Scenario(device_mib=500, training=True),
}

BOUNDARIES = [1, 511, 512, 513, MIB - 1, MIB, MIB + 1, MIB + 512, 9 * MIB, 10 * MIB - 512, 10 * MIB - 1, 10 * MIB,
              10 * MIB + 1, 19 * MIB, 20 * MIB, 20 * MIB + 1, 21 * MIB, 40 * MIB]


def random_size(rng: random.Random, largest: int) -> int:
    """Sizes as models have them: many small ones, exact boundaries, some large."""
    kind = rng.randrange(8)
    return [lambda: rng.randint(1, 4096), lambda: rng.randint(1, MIB), lambda: MIB // 8 * rng.randint(1, 7),
            lambda: rng.choice(BOUNDARIES), lambda: rng.randint(1, 10 * MIB), lambda: MIB * rng.randint(1, 40),
            lambda: rng.randint(1, largest), lambda: 3_211_264 * rng.randint(1, 8)][kind]()


def record(scenario: Scenario, path: pathlib.Path, events: int, seed: int) -> None:
    """Runs in a process of its own, under fake_cuda."""
    import torch

    fake = ctypes.CDLL(os.environ["LD_PRELOAD"])
    torch.cuda.init()
    if scenario.fraction:
        torch.cuda.set_per_process_memory_fraction(scenario.fraction)
    failures = []
    if scenario.training:
        run_training(failures)
    else:
        run_requests(scenario, events, random.Random(seed), fake, failures)
    torch.cuda.memory._dump_snapshot(str(path))
    path.with_suffix(".pickle.gz").write_bytes(gzip.compress(without_folders(path.read_bytes()), mtime=0))
    path.unlink()
    stats = torch.cuda.memory_stats()
    summary = {"device_bytes": scenario.device_mib * MIB, "fraction": scenario.fraction, "torch": torch.__version__,
               "reserved_peak": stats["reserved_bytes.all.peak"], "allocated_peak": stats["allocated_bytes.all.peak"],
               "retries": stats["num_alloc_retries"], "failures": len(failures), "first_failure": failures[:1]}
    path.with_suffix(".json").write_text(json.dumps(summary, indent=1) + "\n")
    os._exit(0)  # nothing to tear down: there is no device


def without_folders(pickled: bytes) -> bytes:
    """A snapshot without this machine's folders in the stacks; untouched when there are no stacks."""
    snapshot = pickle.loads(pickled)
    seen = {}
    events = [event for trace in snapshot["device_traces"] for event in trace]
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    for owner in events + blocks + snapshot["segments"]:
        for frame in owner.get("frames", []):
            seen[id(frame)] = frame
    for frame in seen.values():
        name = frame["filename"]
        frame["filename"] = name.split("site-packages/")[-1] if "site-packages/" in name else name.split("/")[-1]
    return pickle.dumps(snapshot) if seen else pickled


def run_training(failures: list) -> None:
    import torch

    import training

    torch.cuda.memory._record_memory_history(stacks="python")
    try:
        training.main()
    except torch.OutOfMemoryError as error:
        failures.append(str(error).split(". See")[0])


def run_requests(scenario: Scenario, events: int, rng: random.Random, fake: ctypes.CDLL, failures: list) -> None:
    import torch

    streams = [torch.cuda.default_stream()] + [torch.cuda.Stream() for _ in range(scenario.streams - 1)]
    pools = [torch.cuda.MemPool() for _ in range(scenario.pools)]
    largest = min(scenario.device_mib, 4000) * MIB // 6
    torch.cuda.memory._record_memory_history(context=None)
    live, most = [], 20

    def allocate() -> None:
        stream = streams[0] if rng.random() < 0.8 else rng.choice(streams)
        with torch.cuda.stream(stream):
            size = random_size(rng, largest)
            try:
                if pools and rng.random() < 0.3:
                    with torch.cuda.use_mem_pool(rng.choice(pools)):
                        block = torch.empty(size, dtype=torch.uint8, device="cuda")
                else:
                    block = torch.empty(size, dtype=torch.uint8, device="cuda")
            except torch.OutOfMemoryError as error:
                failures.append(str(error).split(". See")[0])
                return
        if scenario.records and rng.random() < 0.2:
            block.record_stream(rng.choice(streams))
        live.append(block)

    for i in range(events):
        if i % 200 == 0:
            most = rng.randint(1, 120)
        if scenario.records and i % 37 == 0:
            fake.fake_cuda_set_events_pending(rng.randrange(2))
        if scenario.empties and rng.randrange(997) == 0:
            torch.cuda.empty_cache()
        if len(live) > most or (live and rng.random() < 0.4):
            del live[rng.randrange(len(live)) if rng.random() < 0.3 else -1]
        else:
            allocate()


def build(folder: pathlib.Path) -> pathlib.Path:
    packages = pathlib.Path(sysconfig.get_paths()["purelib"])
    includes = [*packages.glob("nvidia/cu*/include"), packages / "triton/backends/nvidia/include"]
    library = folder / "libfakecuda.so"
    command = ["g++", "-O1", "-std=c++17", "-shared", "-fPIC", str(HERE / "fake_cuda.cc"), "-o", str(library)]
    subprocess.run(command + [f"-I{include}" for include in includes], check=True)
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(library.name)
    return library


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("scenarios", nargs="*")
    parser.add_argument("--events", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        record(SCENARIOS[options.scenarios[0]], options.out, options.events, options.child)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    library = build(options.out)
    for name in options.scenarios or SCENARIOS:
        scenario = SCENARIOS[name]
        environment = {**os.environ, "LD_PRELOAD": str(library), "LD_LIBRARY_PATH": str(options.out),
                       "PYTORCH_ALLOC_CONF": scenario.settings, "FAKE_CUDA_MIB": str(scenario.device_mib),
                       "FAKE_CUDA_DESCENDING": str(int(scenario.descending))}
        for seed in range(options.seeds):
            path = options.out / (f"{name}.pickle" if options.seeds == 1 else f"{name}.{seed}.pickle")
            subprocess.run([sys.executable, __file__, str(path), name, "--events", str(options.events), "--child",
                            str(seed)], env=environment, check=True)


if __name__ == "__main__":
    main()
