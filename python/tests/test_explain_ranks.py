"""stoker explain of several ranks' traces, against traces whose delays are planted and a count moment by moment."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import random
import subprocess
import tarfile

import pytest

from stoker.binary import find_binary

pytestmark = pytest.mark.usefixtures("with_binary")

STEP_US = 4000
STEPS = 4
LOADS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def event(category: str, name: str, process: object, thread: object, start: int, length: int, **args: object) -> dict[str, object]:
    return {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": start, "dur": length, "args": args}


class Rank:
    """One rank's trace: what is launched when, and what its GPU does in each microsecond."""

    def __init__(self, number: int, world: int, clock: int):
        self.number, self.world, self.clock = number, world, clock
        self.events: list[dict[str, object]] = []
        self.correlation = 0
        self.compute: set[int] = set()
        self.collectives: list[tuple[int, int]] = []

    def kernel(self, name: str, start: int, length: int, stream: int, **args: object) -> None:
        self.correlation += 1
        at = self.clock + start
        self.events.append(event("cuda_runtime", "cudaLaunchKernel", 77, 77, at - 4, 4, correlation=self.correlation))
        self.events.append(
            event("kernel", name, self.number, stream, at, length, correlation=self.correlation, device=0, stream=stream, **args)
        )

    def computes(self, start: int, length: int) -> None:
        self.kernel("gemm", start, length, 7)
        self.compute.update(range(start, start + length))

    def collective(self, start: int, end: int, **args: object) -> None:
        self.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", start, end - start, 20, **args)
        self.collectives.append((start, end))

    def trace(self, told: bool = True) -> dict[str, object]:
        document: dict[str, object] = {"schemaVersion": 1}
        document["traceEvents"] = self.events
        if told:
            document["distributedInfo"] = {"backend": "nccl", "rank": self.number, "world_size": self.world}
        return document


def made(seed: int, world: int = 4, slow: int = 2, by_us: int = 600, sequences: bool = True) -> list[Rank]:
    """Ranks whose collectives begin when each has come and end together; `slow` waits for data before each."""
    draw = random.Random(seed)
    # Clocks of nodes differ: only lengths may be compared.
    ranks = [Rank(r, world, 1_000_000 * draw.randrange(1, 900)) for r in range(world)]
    for step in range(STEPS):
        base = step * STEP_US
        for rank in ranks:
            rank.events.append(event("user_annotation", f"ProfilerStep#{step + 10}", 77, 77, rank.clock + base, STEP_US))
        arrivals = []
        for rank in ranks:
            own = 300 + draw.randrange(200)
            late = by_us if rank.number == slow else 0
            if late:
                rank.events.append(event("user_annotation", LOADS, 77, 77, rank.clock + base, late))
            rank.computes(base + late + 10, own)
            arrivals.append(base + late + 10 + own + draw.randrange(5, 15))
        transfer = 200 + draw.randrange(50)
        end = max(arrivals) + transfer
        for rank, start in zip(ranks, arrivals, strict=True):
            told = {"Collective name": "allreduce", "Process Group Name": "0", "Process Group Ranks": str(list(range(world))), "Seq": step}
            rank.collective(start, end, **(told if sequences else {}))
            # Something is computed beside a part of it.
            rank.computes(start + 50, 60)
            rank.computes(end + 20, STEP_US - (end + 20 - base) - 30)
    return ranks


def write(ranks: list[Rank], folder: pathlib.Path, name: str = "rank{}.json", told: bool = True) -> list[str]:
    paths = []
    for rank in ranks:
        path = folder / name.format(rank.number)
        text = json.dumps(rank.trace(told))
        if path.name.endswith(".gz"):
            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text, encoding="utf-8")
        paths.append(str(path))
    return paths


def explained(*paths: str) -> dict:
    done = subprocess.run([find_binary(), "explain", *paths, "--json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["kind"] == "ranks"
    return answer["job"]


def refused(*words: str, code: int = 3) -> str:
    done = subprocess.run([find_binary(), "explain", *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done.stderr


def shared_traces() -> pathlib.Path:
    beside = pathlib.Path(__file__).resolve().parents[3] / "shared"
    return pathlib.Path(os.environ.get("STOKER_SHARED", beside)) / "data/traces"


def reference(ranks: list[Rank]) -> dict[str, object]:
    """Microsecond by microsecond, from what was planted."""
    waits, transfers, behind, last_at = [], [], [0.0] * len(ranks), [0] * len(ranks)
    count = len(ranks[0].collectives)
    shortest = [min(rank.collectives[k][1] - rank.collectives[k][0] for rank in ranks) for k in range(count)]
    for k in range(count):
        lengths = [rank.collectives[k][1] - rank.collectives[k][0] for rank in ranks]
        last_at[lengths.index(min(lengths))] += 1
        for r, own in enumerate(lengths):
            others = sorted(lengths[:r] + lengths[r + 1 :])
            half = len(others) // 2
            middle = others[half] if len(others) % 2 else (others[half] + others[half - 1]) / 2
            behind[r] += max(0.0, middle - own)
    for rank in ranks:
        waiting = transferring = 0
        for k, (start, end) in enumerate(rank.collectives):
            for at in range(start, end):
                if at in rank.compute:
                    continue
                if at < end - shortest[k]:
                    waiting += 1
                else:
                    transferring += 1
        waits.append(waiting)
        transfers.append(transferring)
    return {"waits": waits, "transfers": transfers, "behind": behind, "last_at": last_at}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sequences", [True, False])
def test_waiting_and_transfers_are_those_counted_moment_by_moment(tmp_path: pathlib.Path, seed: int, sequences: bool) -> None:
    ranks = made(seed, world=2 + seed, slow=seed % 2, by_us=100 * (seed + 1), sequences=sequences)
    write(ranks, tmp_path)
    answer = explained(str(tmp_path))
    known = reference(ranks)
    assert answer["matched_collectives"] == STEPS
    assert answer["unmatched_collectives"] == 0
    for r, told in enumerate(answer["ranks"]):
        assert told["rank"] == r
        assert told["waits"] * told["seconds"] * 1e6 == pytest.approx(known["waits"][r], abs=1)
        assert told["transfers"] * told["seconds"] * 1e6 == pytest.approx(known["transfers"][r], abs=1)
        assert told["behind_s"] * STEPS * 1e6 == pytest.approx(known["behind"][r], abs=1)
        assert told["last_at"] == known["last_at"][r]
        parts = ("computes", "waits", "transfers", "other_communication", "exposed_copies", "idle")
        assert sum(told[part] for part in parts) == pytest.approx(1, abs=1e-6)


def test_the_late_rank_is_named_with_what_it_does_meanwhile(tmp_path: pathlib.Path) -> None:
    ranks = made(1, world=4, slow=2, by_us=900)
    answer = explained(*write(ranks, tmp_path))
    straggler = answer["straggler"]
    assert straggler["rank"] == 2
    assert straggler["does_more"][0]["does"] == "waits_for_data"
    assert straggler["does_more"][0]["more_s"] == pytest.approx(900e-6, rel=0.05)
    assert straggler["behind_s"] == pytest.approx(reference(ranks)["behind"][2] / STEPS / 1e6, rel=1e-6)
    first = answer["findings"][0]
    assert first["name"] == "waits_for_slowest_rank"
    assert "ank 2" in first["evidence"] and "waits for data" in first["evidence"]
    assert "That is rank 2." in answer["verdict"]


def test_an_archive_says_what_a_folder_says(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    write(made(3), folder, "rank{}.json.gz")
    archive = tmp_path / "traces.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, "run")
    of_folder, of_archive = (explained(str(path)) for path in (folder, archive))
    for answer in (of_folder, of_archive):
        for rank in answer["ranks"]:
            rank["file"] = pathlib.Path(rank["file"]).name
    assert of_folder == of_archive


def test_what_is_missing_or_there_twice_is_said_and_the_rest_counted(tmp_path: pathlib.Path) -> None:
    ranks = made(4, world=6)
    paths = write([rank for rank in ranks if rank.number not in (1, 4)], tmp_path)
    twice = tmp_path / "again.json"
    twice.write_bytes(pathlib.Path(paths[0]).read_bytes())
    other = tmp_path / "settings.json"
    other.write_text('{"lr": 1}', encoding="utf-8")
    answer = explained(str(tmp_path))
    assert [rank["rank"] for rank in answer["ranks"]] == [0, 2, 3, 5]
    assert answer["missing_ranks"] == [1, 4]
    assert answer["world_size"] == 6
    notes = " / ".join(answer["notes"])
    assert "2 are missing (1, 4)" in notes
    assert "once more: it counts once" in notes
    assert "settings.json: key traceEvents is missing" in notes
    assert answer["straggler"]["rank"] == 2


def test_ranks_that_disagree_are_said(tmp_path: pathlib.Path) -> None:
    ranks = made(5)
    ranks[3].world = 8
    ranks[1].events = [e for e in ranks[1].events if int(str(e["ts"])) < ranks[1].clock + 3 * STEP_US]
    answer = explained(*write(ranks, tmp_path))
    notes = " / ".join(answer["notes"])
    assert "world sizes 4 (3 files), 8 (1 file)" in notes
    assert "numbers of steps differ: 4 on most, 3 on rank 1" in notes
    # Steps that all have are matched as before, the last one among three.
    assert answer["matched_collectives"] == STEPS
    assert [rank["collectives"] for rank in answer["ranks"]] == [4, 3, 4, 4]


def test_ranks_are_told_by_names_where_traces_do_not_tell(tmp_path: pathlib.Path) -> None:
    answer = explained(*write(made(6), tmp_path, "worker{}_step_7.pt.trace.json", told=False))
    assert [rank["rank"] for rank in answer["ranks"]] == [0, 1, 2, 3]
    assert answer["world_size"] is None
    assert not any("numbered" in note for note in answer["notes"])


def test_the_profile_with_most_steps_is_taken_of_a_rank_that_has_several(tmp_path: pathlib.Path) -> None:
    for number, cycle in enumerate((made(7, slow=0), made(8, slow=3))):
        if number == 0:
            for rank in cycle:
                rank.events = rank.events[:3]
        write(cycle, tmp_path, "node_{}." + str(number) + ".pt.trace.json")
    answer = explained(str(tmp_path))
    assert len(answer["ranks"]) == 4
    assert answer["straggler"]["rank"] == 3
    assert any("number 2 of them" in note for note in answer["notes"])


def test_errors_name_the_file_and_what_it_is(tmp_path: pathlib.Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "holds no trace" in refused(str(empty))
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(b"\x1f\x8b\x08\x00")
    assert "broken.tar.gz" in refused(str(broken))
    (empty / "a.json").write_text("{}", encoding="utf-8")
    (empty / "b.json").write_text("[1", encoding="utf-8")
    told = refused(str(empty))
    assert "a.json" in told and "nor is any other of 2 files" in told
    assert "--at" in refused(str(empty), "--at", "peak", code=2)


@pytest.mark.parametrize("name", ["tracelens_h100_bert_small", "kineto_resnet50_v100_workers0.pt.trace"])
def test_operators_have_the_time_of_the_kernels_that_name_them(name: str) -> None:
    """In these traces each kernel names its operator by number, which the binary does not read."""
    path = shared_traces() / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("the public traces are not there")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    operators = {}
    for e in events:
        if e.get("cat") in ("cpu_op", "Operator") and "External id" in e["args"]:
            operators[int(e["args"]["External id"])] = e["name"]
    times: dict[str, list[float]] = {}
    for e in events:
        if str(e.get("cat")).lower() in ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"):
            number = e["args"].get("External id", e["args"].get("external id"))
            if number is not None and int(number) in operators:
                times.setdefault(operators[int(number)], []).append(float(e["dur"]))
    done = subprocess.run([find_binary(), "explain", str(path), "--json"], capture_output=True, text=True, timeout=120)
    told = json.loads(done.stdout)["time"]
    assert len(told["operators"]) == 8
    for owner in told["operators"]:
        assert owner["count"] == len(times[owner["name"]]), owner
        assert owner["share"] * told["seconds"] * 1e6 == pytest.approx(sum(times[owner["name"]]), rel=1e-9)


def test_eight_real_ranks_wait_for_the_last(tmp_path: pathlib.Path) -> None:
    archive = shared_traces() / "param_dlrm_v100_8ranks.tar.gz"
    if not archive.exists():
        pytest.skip("the public traces are not there")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    ranks = []
    for path in tmp_path.rglob("*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        kernels = sorted(
            (e["ts"], e["dur"]) for e in document["traceEvents"] if e.get("cat") == "kernel" and "nccl" in e["name"]
        )
        ranks.append((document["distributedInfo"]["rank"], [duration for _, duration in kernels]))
    ranks.sort()
    assert ranks[7][1][0] == 10 and ranks[1][1][0] == 7635  # what models of traces quote, in us
    answer = explained(str(archive))
    assert answer["matched_collectives"] == 8
    shortest = [min(durations[k] for _, durations in ranks) for k in range(8)]
    for told, (rank, durations) in zip(answer["ranks"], ranks, strict=True):
        assert told["rank"] == rank
        assert told["waiting_s"] * 1e6 == pytest.approx(sum(durations) - sum(shortest), abs=0.5)
        assert told["transfer_s"] * 1e6 == pytest.approx(sum(shortest), abs=0.5)
    assert answer["straggler"]["rank"] == 7
