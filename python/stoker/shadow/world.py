"""What one run of a script knows: what was asked for, what was found, and how it ends."""

from __future__ import annotations

import os
import pickle
import signal
from dataclasses import dataclass, field
from typing import Any

from .descent import end_descendants
from .sites import Site

WHERE, WHERE_SIGNAL = "where", signal.SIGRTMIN + 3  # a run that gets this signal writes into this file which lines it is at


@dataclass
class Gpu:
    """The device that the script believes to have, as the catalogue of GPUs describes it."""

    name: str = "NVIDIA A100-SXM4-40GB"
    memory: int = 40 * 2**30
    capability: tuple = (8, 0)
    processors: int = 108
    count: int = 1


@dataclass
class Request:
    """One run. `batch` replaces the script's own batch where it is given, by way of `batch_by`."""

    script: str
    arguments: list
    gpu: Gpu | None  # None: the script is run for a CPU
    batch: int | None = None
    batch_by: str = "loader"  # loader, or argument:NAME, variable:NAME
    precision: str | None = None  # another one than the script's own
    ranks: bool = False  # the variables of torchrun are set
    inline: bool = False  # the first process that it starts is run within it
    bounded: bool = False  # one sample for all of a batch, and sizes that follow from values as large as they can be
    smallest_batch: int | None = None  # of several loaders that a step takes batches from: they are replaced in proportion
    most_steps: int = 6
    compile: bool | None = None  # torch.compile: False passes it over; True compiles models that the script does not
    saved: list | None = None  # what each compiled graph keeps, where a run before has decided
    may_compile_later: bool = False  # where nothing replaces the batch, what the script compiles runs eagerly
    parts_are_equal: bool = False  # a run before has shown so: of an accumulation the first part is recorded, the others are counted
    fake_data: Any = None  # a fake_data.FakeData in place of torchvision's data sets
    network: bool = False  # the script may reach the network


@dataclass
class Fact:
    """Something found in the script: a setting of Stoker's, its value, and the words that tell of it."""

    setting: str
    value: Any
    words: str
    site: Site = field(default_factory=Site)


@dataclass
class Outcome:
    """What a run hands back. `error` is a sentence; `traceback` the script's own, with its frames alone."""

    raw: Any = None
    facts: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    reads: list = field(default_factory=list)
    optimizer: dict | None = None
    training: dict | None = None
    libraries: dict = field(default_factory=dict)
    files: list = field(default_factory=list)  # the script's own, for the cache
    precision: str = "fp32"
    batch: int | None = None  # the script's own
    batch_names: list = field(default_factory=list)  # other ways to replace it, by names that say batch
    other_names: list = field(default_factory=list)  # and by any other name that is given a whole number
    loader_batches: list = field(default_factory=list)  # of the loaders that every step takes a batch from
    uneven: bool = False  # LoaderFacts.uneven of the loader that the step takes its batch from
    sizes: list = field(default_factory=list)  # of the first model's arguments
    own_bytes: int = 0  # of the host, that the script holds beside its model when it begins to train
    averages: list = field(default_factory=list)  # averages.Average: copies of weights that the loop keeps up to date
    resident_bytes: int = 0  # of the GPU: what the script keeps there beside the step and the averages
    largest_resident: str = ""  # type and shape of the largest of it
    build_bytes: int = 0  # of the host: what PyTorch's build takes beyond that of its CPU build
    batch_replaced: bool = False  # of a DataLoader, as the request asked
    starts_processes: bool = False  # of its own, with multiprocessing
    starts: list = field(default_factory=list)  # (line, command) of scripts that it starts, which are not run
    wants_ranks: bool = False  # it asked for a variable of torchrun that is not there
    steps: int = 0
    parts: Any = None  # micro_batches.Parts: into how many parts a step takes a batch of the loader
    compiled_at: str = ""  # where the script calls torch.compile and is obeyed
    compiler_failed: bool = False  # the script ended by an error of torch.compile
    saved: list | None = None  # what each compiled graph keeps
    compiles_later: bool = False  # what the script compiles ran eagerly: the step is no compiled one
    kind: str = "done"  # done, failed, no_step, on_cpu
    error: str = ""
    failed_at: str = ""  # the innermost line of the user's that the error came through
    hint: str = ""  # the way out, where the failure shows it
    traceback: str = ""
    last_words: str = ""
    device: Any = None  # the device.Device of the run


def anonymous_bytes(pid="self") -> int:
    """Resident bytes of a process that no file backs."""
    try:
        with open(f"/proc/{pid}/status") as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon:")), 0)
    except OSError:
        return 0


class World:
    """The one of this process."""

    def __init__(self, request: Request, result_file: str):
        self.request = request
        self.result_file = result_file
        self.facts: dict[str, Fact] = {}
        self.notes: list[str] = []
        self.reads: dict[tuple, int] = {}
        self.outcome = Outcome()
        self.watcher: Any = None
        self.compile_root: Any = None  # compiles a model that the loop calls, where --compile asks for it
        self.fake_mode: Any = None
        self.loaders: dict[int, tuple] = {}  # id of a data set -> it, and what its first loader was given
        self.anonymous_at_start = anonymous_bytes()
        self.progress = lambda text: None
        self.scratch = ""  # folder of what the run writes
        self.used_gpu = False  # an operator of the script has made or read a tensor there
        self.wait_for_forked = lambda: None
        self.by_function: tuple | None = None  # (transform, line) where it has asked torch.func for gradients
        self.read_input: Site | None = None  # where the script has read its standard input
        self.catches_out_of_memory = False  # the script's text speaks of that error
        self.casts: list = []  # of weights that FSDP gathers in another type: done once something is to train
        self.counted_gpus: Site | None = None  # where it has asked how many GPUs there are

    @property
    def on_gpu(self) -> bool:
        return self.request.gpu is not None

    def found(self, setting: str, value, words: str, site: Site | None = None) -> None:
        """Remembers a fact; what is found later replaces what was found before."""
        self.facts[setting] = Fact(setting, value, words, site or Site())

    def note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)

    def read(self, operator: str, dtype: str, answer, site: Site) -> None:
        """Counts a value that the script read where there is none."""
        key = (operator, dtype, str(answer), site.file, site.line)
        self.reads[key] = self.reads.get(key, 0) + 1

    def cast_weights(self) -> None:
        """From here on weights have the type that they are computed with."""
        while self.casts:
            self.casts.pop(0)()

    def refuse(self, sentence: str) -> None:
        """Ends the run with a sentence; does not return."""
        self.outcome.kind, self.outcome.error = "failed", sentence
        self.end()

    def ends_on_cpu(self) -> None:
        """Ends the run of a script that trains on the CPU; does not return."""
        self.outcome.kind = "on_cpu"
        self.end()

    def end(self) -> None:
        """Hands the outcome over and ends this process at once: nothing of the script gets to run any more."""
        outcome = self.outcome
        if outcome.kind != "done":
            self.wait_for_forked()
            if os.path.exists(self.result_file):
                os._exit(0)  # a process that the script forked has seen the step
        if self.read_input is not None:
            self._say_input()
        outcome.facts = list(self.facts.values())
        outcome.notes = self.notes
        outcome.reads = [(*key, count) for key, count in self.reads.items()]
        part = f"{self.result_file}.{os.getpid()}"
        with open(part, "wb") as out:
            pickle.dump(outcome, out)
        os.replace(part, self.result_file)
        end_descendants(os.getpid())
        os._exit(0)

    def _say_input(self) -> None:
        if self.outcome.kind == "done":
            self.note(f"{self.read_input} reads standard input, which was empty")
        else:
            self.outcome.hint += (f"; it reads its standard input ({self.read_input}), which is empty here: give what it asks for as an "
                                  "argument")
