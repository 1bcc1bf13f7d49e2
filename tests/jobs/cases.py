"""Planted faults, each at two strengths, and healthy jobs: arguments of job.py and what has to be said first."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    name: str
    arguments: str
    expected: tuple  # names of findings, any of which is right first; () is healthy
    around: dict = field(default_factory=dict)  # what the runner sets up: quota, burners, shared memory
    script: str = "job.py"
    cure: str = ""  # arguments that carry out what is advised where that is no setting of the loader


DEVICE = "--device --step 0.05 "

CASES = [
    Case("healthy, device, 1 worker", DEVICE + "--workers 1 --decode 2", ()),
    Case("healthy, device, 2 workers", DEVICE + "--workers 2 --decode 4 --persistent", ()),
    Case("healthy, computes on the CPU", "--workers 1 --step 0.06 --decode 2", ()),
    Case("healthy, no workers, little data", "--workers 0 --step 0.08 --decode 1 --batch 2", ()),
    Case("healthy, long epochs", DEVICE + "--workers 1 --decode 1 --samples 2000 --persistent", ()),
    Case("too few workers, weak", DEVICE + "--step 0.03 --workers 1 --decode 32", ("too_few_workers",)),
    Case("too few workers, strong", "--device --step 0.02 --workers 1 --decode 50", ("too_few_workers",)),
    Case("slow decode, weak", DEVICE + "--workers 2 --decode 90", ("preparation_bound",), cure="--decode 45"),
    Case("slow decode, strong", "--device --step 0.02 --workers 2 --decode 90", ("preparation_bound",),
         cure="--decode 45"),
    Case("one slow sample, weak", DEVICE + "--workers 2 --decode 2 --slow-every 150 --slow 0.8",
         ("slow_samples", "window_too_small")),
    Case("one slow sample, strong", DEVICE + "--workers 2 --decode 2 --slow-every 150 --slow 2.5",
         ("slow_samples",)),
    Case("far storage, weak", DEVICE + "--workers 1 --wait 0.012 --decode 2", ("reading_bound",)),
    Case("far storage, strong", DEVICE + "--workers 1 --wait 0.04 --decode 2", ("reading_bound",)),
    Case("slow disk, weak", DEVICE + "--workers 2 --read 262144 --decode 1", ("reading_bound",),
         around={"disk": 10 << 20}, cure="--read 131072"),
    Case("slow disk, strong", DEVICE + "--workers 2 --read 262144 --decode 1", ("reading_bound",),
         around={"disk": 4 << 20}, cure="--read 131072"),
    Case("too many workers, weak", "--step 0.04 --workers 6 --decode 60", ("too_many_workers", "preparation_bound"),
         cure="--decode 30"),
    Case("too many workers, strong", "--step 0.04 --workers 12 --decode 60",
         ("too_many_workers", "preparation_bound"), cure="--decode 30"),
    Case("workers restarted, weak", DEVICE + "--workers 2 --decode 2 --samples 240", ("workers_restarted",)),
    Case("workers restarted, strong", DEVICE + "--workers 1 --decode 2 --samples 160 --context spawn",
         ("workers_restarted",)),
    Case("checkpoints, weak", DEVICE + "--workers 1 --save-every 30 --save-bytes 150000000", ("checkpoint_stalls",),
         cure="--save-every 120"),
    Case("checkpoints, strong", DEVICE + "--workers 1 --save-every 12 --save-bytes 250000000",
         ("checkpoint_stalls",), cure="--save-every 48"),
    Case("memory grows, weak", DEVICE + "--workers 1 --leak 400000 --seconds 25", ("memory_grows",)),
    Case("memory grows, strong", DEVICE + "--workers 1 --leak 2500000 --seconds 25", ("memory_grows",)),
    Case("shared memory nearly full", DEVICE + "--workers 1 --batch 16 --decode 1 --prefetch 4",
         ("shared_memory_nearly_full",), around={"shm": 4}),
    Case("CPU quota, weak", "--step 0.05 --workers 1 --decode 20", ("cpu_quota",), around={"quota": 0.9}),
    Case("CPU quota, strong", "--step 0.05 --workers 2 --decode 20", ("cpu_quota",), around={"quota": 0.5}),
    Case("other jobs, weak", "--step 0.05 --workers 1 --decode 8", ("other_jobs_on_the_cores",),
         around={"burners": 2}),
    Case("other jobs, strong", "--step 0.05 --workers 1 --decode 8", ("other_jobs_on_the_cores",),
         around={"burners": 5}),
    Case("threads in workers", "--step 0.03 --workers 2 --decode 1 --worker-threads 4 --batch 4",
         ("threads_oversubscribed", "preparation_bound")),
    Case("threads beside the loop", "--step 0.06 --workers 1 --decode 1 --threads 8", ("threads_oversubscribed",)),
    Case("no workers, weak", DEVICE + "--workers 0 --decode 8", ("loads_in_main_process",)),
    Case("no workers, strong", DEVICE + "--workers 0 --decode 40", ("loads_in_main_process",)),
    Case("validation, weak", DEVICE + "--workers 1 --validate-every 60 --validate 0.7",
         ("validation_or_logging_stalls",), cure="--validate-every 240"),
    Case("validation, strong", DEVICE + "--workers 1 --validate-every 40 --validate 2 --tell-validation",
         ("validation_stalls",), cure="--validate-every 80"),
    Case("many tensors, weak", DEVICE + "--workers 2 --tensors 60", ("transport_bound",), cure="--tensors 30"),
    Case("many tensors, strong", DEVICE + "--workers 2 --tensors 250", ("transport_bound",), cure="--tensors 125"),
    Case("uneven samples, weak", DEVICE + "--step 0.03 --workers 2 --batch 1 --prefetch 1 --decode 40 --uneven 12",
         ("window_too_small", "slow_samples")),
    Case("uneven samples, strong", DEVICE + "--step 0.03 --workers 2 --batch 1 --prefetch 1 --decode 40 --uneven 40",
         ("window_too_small", "slow_samples")),
    Case("two at a time: far storage, checkpoints",
         DEVICE + "--workers 1 --wait 0.03 --decode 2 --save-every 30 --save-bytes 100000000", ("reading_bound",)),
    Case("too few workers, a silent loop", "--device --step 0.02 --workers 1 --decode 50 --silent",
         ("too_few_workers",)),
    Case("far storage, a silent loop", DEVICE + "--workers 1 --wait 0.02 --decode 2 --silent", ("reading_bound",)),
    Case("healthy, a silent loop", DEVICE + "--workers 2 --decode 4 --silent", ()),
]


def later(name, script, arguments, expected, cure=""):
    return Case(name, arguments, expected, script=script, cure=cure)


# Written after the rules stood.
CASES += [
    later("text, healthy", "text_job.py", "", ()),
    later("text, slow tokenizer", "text_job.py", "--tokenize 700", ("too_few_workers",)),
    later("text, far lines", "text_job.py", "--remote 0.008", ("reading_bound",)),
    later("text, far log", "text_job.py", "--log 1.5 --silent", ("validation_or_logging_stalls",), "--log 0.4"),
    later("ranks, healthy", "ranks_job.py", "", ()),
    later("ranks, far storage", "ranks_job.py", "--wait 0.02", ("reading_bound",)),
    later("ranks, one slower", "ranks_job.py", "--slow-rank 0.06", ("waits_for_other_processes",)),
]

# Written after loading without workers was told by whose code runs, and steps by their rhythm.
CASES += [
    Case("no workers, computes on the CPU", "--workers 0 --step 0.06 --decode 8", ("loads_in_main_process",)),
    Case("no workers, a silent loop", DEVICE + "--workers 0 --decode 20 --silent", ("loads_in_main_process",)),
    Case("healthy, no workers, a silent loop", "--workers 0 --step 0.3 --decode 1 --batch 2 --silent", ()),
    later("no workers, text", "text_job.py", "--workers 0 --tokenize 700", ("loads_in_main_process",)),
]


def on_gpu(name, arguments, expected, **around):
    return Case(name, arguments, expected, around=around, script="gpu_job.py")


# For a machine with a GPU (run.py --gpu, scripts/gpu-day).
GPU_CASES = [
    on_gpu("GPU, healthy", "--batch 4096", ()),
    on_gpu("GPU, small kernels", "--width 64 --layers 200 --batch 16", ("host_bound_launching",)),
    on_gpu("GPU, values read again and again", "--width 2048 --layers 4 --batch 2048 --items 40", ("synchronisations",)),
    on_gpu("GPU, far storage", "--batch 64 --wait 0.01 --workers 2", ("reading_bound",)),
    on_gpu("GPU, slow decode", "--batch 64 --burn 0.005 --workers 1", ("too_few_workers", "preparation_bound")),
    on_gpu("GPU, forgotten", "--forget", ("gpu_forgotten",)),
    on_gpu("GPU, shared", "--batch 4096", ("gpu_shared",), gpu_burner=True),
]
