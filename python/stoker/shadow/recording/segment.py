"""A recorded step of a script as a one_step.RawStep: which storages live when, and what every tensor is called."""

from __future__ import annotations

import gc
import inspect

import torch
from torch.utils import _pytree as pytree

from ...tracing.one_step import RawStep
from . import beside, names, objects
from .preparation import layers, operators, without_preparation

_HOST_KINDS = ("parameter", "buffer", "input")


class Record:
    """One step while it is recorded, and until the next one has shown what outlives it."""

    def __init__(self, recorder, world, partial: bool = False):
        self.recorder = recorder
        self.partial = partial  # it began within its step
        self._world = world
        self.backwards = 0
        self.parts: list[int] = []  # positions in the recorder's events at which a backward ended
        self.modules: dict[int, int] = {}  # id of a module -> its position in recorder.modules
        self._by_path: dict[tuple, int] = {}  # path in a compiled graph -> position in recorder.modules
        self.roots: list = []  # modules that the loop called, with their arguments' names
        self.inputs: dict[int, str] = {}  # storage -> name of forward's argument
        self.batch: int | None = None
        self.sizes: list = []  # of arguments of the models
        self._gradients: list[dict] = []  # for each part: id of a parameter -> storage
        self._stepped: dict[int, int] = {}  # id of a parameter that was updated within this part -> storage of its gradient
        self._given: list[set] = [set()]  # for each part: storages, offsets and shapes of the models' arguments
        self._leaves: dict = {}
        self.loader = None
        self.called: set = set()  # ids of modules that the loop has called within the step, with gradients or without
        self.precision: str | None = None
        self.counted: set = set()  # storages that the step of the step file holds
        self.stand_ins: dict[int, object] = {}  # storage that a pass without gradient would have made, which was not run -> its line
        self.updated: dict[int, int] = {}  # id of an optimizer that stepped within it -> how many parts there were then
        self.begun = False  # a model was called that is trained
        self._equal: tuple = (0, True)  # how many parts were compared, and whether they were equal

    def _has_storage(self, parameter) -> bool:
        """Whether it lies on the device; transforms of torch.func call a model with weights that wrap others, and a lazy weight has no
        shape before the first forward."""
        wraps = torch.nn.parameter.is_lazy(parameter) or torch._C._functorch.is_functorch_wrapped_tensor(parameter)
        return not wraps and self.recorder._on_device(parameter)

    def is_empty(self) -> bool:
        return not any(event[0] == "o" for event in self.recorder.events)

    def is_whole(self) -> bool:
        return bool(self.parts) and not self.is_empty()

    def operators(self) -> int:
        """How many of them its backwards run, but for sums of gradients."""
        return sum(event[0] == "o" and event[4] and not _adds_up(event) for event in self.recorder.events[:self.end()])

    def made_bytes(self) -> int:
        """Bytes that the step allocates, one after another."""
        return sum(self.recorder.bytes[event[1]] for event in self.recorder.events[:self.end()] if event[0] == "a")

    # -- while it is recorded ----------------------------------------------------------------------------------------

    def index_of(self, module, otherwise: int) -> int:
        return self.modules.get(id(module), otherwise)

    def index_of_path(self, start, path: str) -> int:
        """Position in recorder.modules of the part at `path` below `start`, or of the nearest that holds it.

        start   a module, or something else that leads to one
        """
        key = id(start), path
        if key not in self._by_path:
            known = {row[1]: i for i, row in reversed(list(enumerate(self.recorder.modules))) if not isinstance(row, str)}
            at = self.recorder.modules[self.modules[id(start)]][1] if id(start) in self.modules else ""
            words = ".".join(filter(None, (at, path))).split(".")
            # What leads to the model (a variable, a closure's cell) stands before its parts' names.
            ends = (".".join(words[i:j]) for j in range(len(words), 0, -1) for i in range(j))
            self._by_path[key] = next((known[end] for end in ends if end in known), known.get("", 0))
        return self._by_path[key]

    def _add_root(self, module) -> None:
        root = names.top_of(module)
        if any(r is root for r in self.roots):
            return
        self.roots.append(root)
        for parameter in root.parameters():
            if self._has_storage(parameter):
                self.recorder.lives_here(parameter)
        for name, part in root.named_modules():
            if id(part) not in self.modules:
                self.modules[id(part)] = len(self.recorder.modules)
                self.recorder.modules.append((len(self.roots) - 1, name))

    def forward_begins(self, module, args, kwargs, loader) -> None:
        """A module of the loop's own is called."""
        self.begun = True
        self._add_root(module)
        recorder = self.recorder
        recorder.phase("forward")
        if not self.parts:
            recorder._views = 0 if self.batch is None else recorder._views
        known = [n for n in inspect.signature(module.forward).parameters] if callable(getattr(module, "forward", None)) else []
        named = [(known[i] if i < len(known) else f"input{i}", value) for i, value in enumerate(args)] + list(kwargs.items())
        for name, value in named:
            flat = [names.unwrapped(t) for t in pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]
            for i, tensor in enumerate(flat):
                if not recorder._on_device(tensor):
                    continue
                storage = recorder.storage_id(tensor)
                if storage is None:
                    storage = recorder.add_storage(tensor, "input")
                self._given[-1].add((storage, tensor.storage_offset(), tuple(tensor.shape)))
                self.inputs.setdefault(storage, (name if len(flat) == 1 else f"{name}.{i}", recorder.describe(tensor)))
                if self.batch is None and tensor.dim():
                    self.batch = tensor.shape[0]
                self.sizes += [int(n) for n in tensor.shape if int(n) not in self.sizes]
        if self.loader is None:
            self.loader = loader

    def forward_ends(self) -> None:
        self.recorder.phase("loss")

    def backward_begins(self) -> None:
        self.recorder.phase("backward")

    def end_part(self) -> None:
        recorder = self.recorder
        self._mark_forward()
        recorder.phase("end")
        recorder._phase = "forward"
        self._keep_gradients()
        self.parts.append(len(recorder.events))
        self._given.append(set())

    def update_begins(self, parameters) -> None:
        """Gradients that the script has set itself since its backward, or without one, belong to the step: copies in another type for
        weights that are kept twice, those of torch.func."""
        known = set(self._gradients[-1].values()) if self.parts else set()
        numbers = {id(p): self.recorder.storage_id(p.grad) for p in parameters if p.grad is not None and self._has_storage(p)}
        if not any(number is not None and number not in known for number in numbers.values()):
            return
        if self.parts:
            self.parts.pop()
            self._stepped = self._gradients.pop()
            self._given.pop()
        else:
            self.backward_begins()
        self.end_part()

    def _mark_forward(self) -> None:
        """Without a module that is called, the forward begins with the first operator that autograd follows."""
        events = self.recorder.events
        if self.parts or ("p", "forward") in events:
            return
        first = next((i for i, e in enumerate(events) if e[0] == "o" and e[3] >= 0 and not e[4]), None)
        while first and events[first - 1][0] == "a":
            first -= 1  # what it makes
        if first is not None:
            events.insert(first, ("p", "forward"))
            outputs = [t for e in events if e[0] == "o" and not e[4] for t in (*e[5], *e[6])]
            self.sizes = self.sizes or list(dict.fromkeys(int(n) for t in outputs for n in t[1]))

    def bare_parameters(self) -> list:
        """Parameters that no module of the loop holds: tensors of optimizers, or of a loop that has none."""
        held = {id(p) for root in self.roots for p in root.parameters()}
        found = {id(p): p for o in self._world.watcher.optimizers for g in o.param_groups for p in g["params"]}
        if not found and not self.roots:
            found = self._leaves
        return [p for number, p in found.items() if number not in held and self.recorder._on_device(p)]

    def _look_for_leaves(self) -> None:
        """Without models and optimizers: tensors that a gradient has reached."""
        if self.roots or self._world.watcher.optimizers or self._leaves:
            return
        gc.unfreeze()  # what is frozen is not among the collector's objects
        tensors = objects.of_kind(lambda kind: issubclass(kind, torch.Tensor))
        self._leaves = {id(t): t for t in tensors if t.is_leaf and t.requires_grad and t.grad is not None}
        gc.freeze()

    def _keep_gradients(self) -> None:
        found, self._stepped = self._stepped, {}
        self._look_for_leaves()
        for parameter in (*(p for root in self.roots for p in root.parameters()), *self.bare_parameters()):
            if parameter.grad is not None:
                number = self.recorder.storage_id(parameter.grad)
                if number is not None:
                    found[id(parameter)] = number
        self._gradients.append(found)

    def keep_gradient(self, parameter, gradient) -> None:
        """Remembers the gradient of a parameter that has none itself when the backward is over."""
        number = self.recorder.storage_id(gradient)
        if number is not None:
            self._stepped[id(parameter)] = number

    @property
    def gradients(self) -> dict:
        """id of a parameter -> the storage of its gradient in the last part that has one: networks that take turns drop theirs before
        the other's turn."""
        count = self.parts.index(self.end()) + 1 if self.parts else 0
        return {parameter: storage for found in self._gradients[:count] for parameter, storage in found.items()}

    def prepares(self) -> bool:
        """Whether something is computed on the device before the forward, and used in it."""
        return any(e[0] == "o" for e in without_preparation(self.recorder.events[:self.end()], self.recorder.kinds, self.inputs)[1])

    def beside(self) -> tuple:
        """Operators that no step needs, such as those of an evaluation of the step before; and those of the step. Metrics of a step,
        which multiply nothing, are none of them."""
        events = self.recorder.events[:self.end()]
        step = without_preparation(events, self.recorder.kinds, self.inputs)[0]
        if layers(events) == layers(step):
            return 0, operators(step)
        return operators(events) - operators(step), operators(step)

    def layers(self) -> int:
        """How many of the step's operators are layers of models, those of passes without gradient that it needs among them."""
        return layers(without_preparation(self.recorder.events[:self.end()], self.recorder.kinds, self.inputs)[0])

    # -- afterwards ---------------------------------------------------------------------------------------------------
    def equal_parts(self) -> bool:
        """Whether this step is one part, repeated with other data."""
        if self._equal[0] != len(self.parts):
            self._equal = len(self.parts), self._compared()
        return self._equal[1]

    def _compared(self) -> bool:
        if len(self.parts) > 1 and self._given[0] and any(given == self._given[0] for given in self._given[1:len(self.parts)]):
            return False  # the same batch once more, as sharpness-aware minimization has it
        if any(0 < parts < len(self.parts) for parts in self.updated.values()):
            return False  # a network was updated between them, as twins with an optimizer each are
        signatures = []
        start = 0
        for end in self.parts:
            events = self.recorder.events[start:end]
            first = next((i for i, e in enumerate(events) if e == ("p", "forward")), 0)
            signatures.append([(e[1], tuple(t[:3] for t in e[6])) for e in events[first:] if _of_the_graph(e) and not _adds_up(e)])
            start = end
        return all(s == signatures[0] for s in signatures)

    def end(self) -> int:
        """Where the part to keep ends among the events."""
        if not self.parts:
            return len(self.recorder.events)
        return self.parts[0] if len(self.parts) > 1 and self.equal_parts() else self.parts[-1]


def _of_the_graph(event) -> bool:
    """An operator that autograd follows, or of the backward: sums of losses for a log are written into from the second part on."""
    return event[0] == "o" and (event[3] >= 0 or event[4])


def _adds_up(event) -> bool:
    """The addition of a gradient to the one that is there already: of all parts but the first."""
    return event[4] and event[3] < 0 and event[1] in ("aten::add_.Tensor", "aten::add.Tensor")


def same(one: Record, other: Record) -> bool:
    """Whether two steps in a row were the same."""
    if not (one.is_whole() and other.is_whole()) or one.backwards != other.backwards:
        return False
    return _kept_operators(one) == _kept_operators(other)


def _kept_operators(record: Record) -> list:
    events = record.recorder.events[:record.end()]
    first = next((i for i, e in enumerate(events) if e == ("p", "forward")), 0)
    return [(e[1], tuple(t[:3] for t in e[5]), tuple(t[:3] for t in e[6])) for e in events[first:] if e[0] == "o"]


class _Builder:
    """From a record's events and storages to those of a RawStep, with canonical numbers."""

    def __init__(self, record: Record, watcher):
        self.record, self.recorder, self.watcher = record, record.recorder, watcher
        self.gradients = record.gradients
        lasting = set(self.gradients.values())  # until the step ends, though networks that take turns drop theirs earlier
        self.events = [e for e in record.recorder.events[:record.end()] if e[0] != "f" or e[1] not in lasting]
        self.late = list(record.recorder.events[record.end():])
        self.kinds = list(record.recorder.kinds)
        self.prefixes = names.prefixes(record.roots)

    def build(self) -> RawStep:
        raw = RawStep()
        parameters, buffers = self._named()
        self._drop_preparation()
        self._what_stays()
        used = self._used()
        inputs = [s for s in sorted(used) if self.kinds[s] == "input"]
        self._kinds_of_made()
        order = self._order(parameters, buffers, inputs, used)
        self.number = {old: new for new, old in enumerate(order)}
        self.record.counted = set(order)
        self._say_what_was_stood_in()
        raw.storages = [[self.recorder.bytes[s], self.kinds[s]] for s in order]
        raw.parameters = [self._parameter(*row) for row in parameters]
        raw.buffers = [(name, (*self.recorder.describe(t), self.number[s])) for name, t, s in buffers]
        raw.inputs = self._inputs(inputs)
        raw.events = [self._renumbered(e) for e in self.events]
        raw.modules = [self._module_name(m) for m in self.recorder.modules]
        return raw

    def _module_name(self, module) -> str:
        if isinstance(module, str):
            return module
        root, name = module
        return ".".join(filter(None, (self.prefixes[root], name)))

    def _named(self):
        """Parameters and buffers of the models: (name, tensor, storage)."""
        parameters, buffers, seen = [], [], set()
        for prefix, root in zip(self.prefixes, self.record.roots):
            for name, parameter in root.named_parameters():
                if id(parameter) in seen or not self.recorder._on_device(parameter):
                    continue
                seen.add(id(parameter))
                parameters.append((".".join(filter(None, (prefix, name))), parameter, self._storage(parameter, "parameter")))
            for name, buffer in root.named_buffers():
                if id(buffer) in seen or not self.recorder._on_device(buffer) or not buffer.untyped_storage().nbytes():
                    continue
                seen.add(id(buffer))
                buffers.append((".".join(filter(None, (prefix, name))), buffer, self._storage(buffer, "buffer")))
        for name, parameter in names.bare(self.record.bare_parameters()):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                parameters.append((name, parameter, self._storage(parameter, "parameter")))
        return parameters, buffers

    def _storage(self, tensor, kind: str) -> int:
        home = self.recorder.homes.get(id(tensor))
        number = self.recorder.add_storage(tensor, kind) if home is None else home
        while len(self.kinds) <= number:
            self.kinds.append(kind)
        self.kinds[number] = kind
        return number

    def _drop_preparation(self) -> None:
        self.events, _ = without_preparation(self.events, self.kinds, self.record.inputs)

    def _what_stays(self) -> None:
        for number in beside.read_by_both(self.record, self.watcher.records):
            if self.kinds[number] == "input" and number not in self.record.inputs:
                self.kinds[number] = "buffer"

    def _used(self) -> set:
        return {t[3] for e in self.events if e[0] == "o" for t in (*e[5], *e[6])} | \
            {s for s in self.record.inputs if self.kinds[s] == "input"}

    def _say_what_was_stood_in(self) -> None:
        site = next((site for storage, site in self.record.stand_ins.items() if storage in self.number), None)
        if site is not None:
            self.watcher.says(f"{site}: what a step needs of passes without gradient is more than was run: the first alone are counted")

    def _kinds_of_made(self) -> None:
        """Tells gradients, results and what stays from what is temporary; marks phases in order."""
        made = {e[1] for e in self.events if e[0] == "a"}
        freed = {e[1] for e in self.events if e[0] == "f"}
        later = {e[1] for e in self.late if e[0] == "f"}
        gradients = set(self.gradients.values())
        alive_for_long = len(self.watcher.records) >= 2
        for s in made - freed:
            if self.kinds[s] == "transient":
                lasts = alive_for_long and s not in later and s not in gradients
                self.kinds[s] = "gradient" if s in gradients else "persistent" if lasts else "output"
        known = made | self._used()
        self.events = [e for e in self._phases() if not (e[0] == "a" and self.kinds[e[1]] in _HOST_KINDS) and not (
            e[0] == "f" and (e[1] not in made or self.kinds[e[1]] in _HOST_KINDS)) and not (e[0] in "af" and e[1] not in known)]

    def _phases(self) -> list:
        """Each phase once and in order: forward at the first model, loss after the last one before a backward."""
        marks = [(i, e[1]) for i, e in enumerate(self.events) if e[0] == "p"]
        backward = next((i for i, m in marks if m == "backward"), len(self.events))
        keep = {}
        for i, mark in marks:
            if mark in ("load", "forward", "backward"):
                keep.setdefault(mark, i)
            elif mark == "loss" and i < backward or mark == "end":
                keep[mark] = i
        places = set(keep.values())
        events = [e for i, e in enumerate(self.events) if e[0] != "p" or i in places]
        if not any(e == ("p", "end") for e in events):
            events.append(("p", "end"))
        return events

    def _order(self, parameters, buffers, inputs, used) -> list:
        """Storages as a capture through a function numbers them."""
        order = list(dict.fromkeys([s for _, _, s in parameters] + [s for _, _, s in buffers]))
        order += [s for s in self.record.inputs if s in inputs and s not in order]
        known = set(order)
        targets = dict.fromkeys(t[3] for e in self.events if e[0] == "o" for t in e[5] if t[3] in inputs)
        for event in self.events:
            if event == ("p", "loss"):
                numbers = list(targets)
            else:
                numbers = [event[1]] if event[0] in "af" else [t[3] for t in (*event[5], *event[6])] if event[0] == "o" else []
            for s in numbers:
                if s not in known:
                    known.add(s)
                    order.append(s)
        return order

    def _parameter(self, name, tensor, storage) -> list:
        gradient = self.gradients.get(id(tensor))
        groups = names.groups(self.watcher.used_optimizers())
        trained = tensor.requires_grad or gradient is not None  # networks that take turns are switched off in between
        return [name, (*self.recorder.describe(tensor), self.number[storage]), trained,
                None if gradient is None or gradient not in self.number else self.number[gradient],
                0 if groups is None else groups.get(id(tensor))]

    def _inputs(self, inputs) -> list:
        """Rows of inputs: forward's arguments by their names, all others as targets."""
        types: dict = {}
        for event in self.events:
            for t in (*event[5], *event[6]) if event[0] == "o" else ():
                types.setdefault(t[3], t[:3])
        rows, targets = [], 0
        for s in sorted(inputs, key=lambda s: self.number[s]):
            if s in self.record.inputs:
                name, described = self.record.inputs[s]
            else:
                name, described = f"target{targets or ''}", types[s]
                targets += 1
            rows.append((name, (*described, self.number[s])))
        return rows

    def _renumbered(self, event) -> tuple:
        if event[0] in "af":
            return event[0], self.number[event[1]]
        if event[0] != "o":
            return event
        inputs, outputs = (tuple((*t[:3], self.number[t[3]]) for t in part) for part in (event[5], event[6]))
        return (*event[:5], inputs, outputs, event[7])


def raw_step(record: Record, watcher) -> RawStep:
    raw = _Builder(record, watcher).build()
    recorder = record.recorder
    items = sum(event == ("s", "item") for event in raw.events)
    if recorder.item_calls and items:
        raw.notes["item_calls"] = items
    if recorder.math_attention:
        raw.notes["math_attention"] = recorder.math_attention
    if recorder.decomposed and recorder.device_type == "cuda":
        raw.notes["decomposed"] = dict(sorted(recorder.decomposed.items()))
    return raw
