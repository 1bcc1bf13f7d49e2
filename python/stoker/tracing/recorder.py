"""Writes down what PyTorch dispatches, allocates and frees while one step runs under fake tensors.

A TorchDispatchMode sits on top of FakeTensorMode. It sees every ATen operator below autograd, as a GPU would get
it. A storage that it has not seen before is an allocation; a weak reference on the storage tells of its end.
"""

from __future__ import annotations

import collections
import contextlib
import weakref

import torch
from torch._subclasses import fake_tensor
from torch.utils._python_dispatch import TorchDispatchMode

from .. import places
from ..errors import DataDependentError, UnsupportedOperatorError
from . import ctc, operators, rnn, rows
from .values import Values

ctc.register(operators.HANDLERS)
FakeTensor = fake_tensor.FakeTensor
_current_node = getattr(torch._C, "_current_autograd_node", lambda: None)
_next_sequence = torch.autograd._get_sequence_nr
_ATTENTION_SEQUENCES = 1 << 62  # from here on: of attention in compiled graphs
MOST_READS = 4096  # of what depends on data, at one line in one step: a loop that waits for a value never ends
_DEVICE = torch.ops.prim.device.default
_META = torch.device("meta")
_NO_SEQUENCE = 1 << 63  # AccumulateGrad and the like carry the largest number there is

DTYPES = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
    torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "b8",
    torch.complex64: "c64",
}
for _name in ("float8_e4m3fn", "float8_e5m2"):
    if hasattr(torch, _name):
        DTYPES[getattr(torch, _name)] = "f8"


class Recorder(TorchDispatchMode):
    """Records one step. Enter it inside a FakeTensorMode and a ModuleNames of the same recorder."""

    def __init__(self, device_type: str, assumptions: places.Assumptions | None = None):
        super().__init__()
        self.assumptions = assumptions or places.Assumptions([])
        self.values = Values()
        self.reads: dict[str, object] = {}  # "net.py:12" -> what the model was told there, where it depends on data
        self.device_type = device_type
        self.events: list = []  # ("p", phase) ("a", id) ("f", id) ("s", reason) ("o", Operator)
        self.lines: list = []  # of each operator: (file name, line) of the model's code, None in the backward
        self.bytes: list[int] = []
        self.kinds: list[str] = []
        self.modules = [""]  # names; an operator refers to one by position
        self.module_stack = [0]
        self.item_calls = 0
        self._read_at = collections.Counter()  # how often what depends on data was read, by place
        self.math_attention = 0
        self.decomposed: dict[str, int] = {}
        self.released: list[int] | None = None  # after the end: storages freed by dropping the step's results
        self._ids: dict[int, int] = {}  # storage's C++ address -> id, while it lives
        self._references: dict[int, weakref.ref] = {}
        self._addresses: dict[int, int] = {}
        self._module_of_sequence: dict[int, int] = {}
        self._line_of_sequence: dict[int, tuple] = {}
        self._seen_sequence = _next_sequence()
        self._backward_module = 0
        self._phase = "load"
        self._paused = False
        self._views = 0
        self._last_name = ""
        self._node: tuple[int, int] | None = None  # module and sequence number of what a compiled graph runs
        self._attentions: dict[int, int] = {}  # storage of an output in a compiled graph -> sequence number
        self._graphs = 0  # runs of compiled graphs that have begun

    @classmethod
    def is_infra_mode(cls) -> bool:
        """torch.compile compiles nothing under the modes of others; this one only watches."""
        return True

    # -- storages ------------------------------------------------------------------------------------------------

    def add_storage(self, tensor, kind: str, byte_count: int | None = None) -> int:
        """The id of the tensor's storage, which becomes known as `kind` if it was not."""
        storage = tensor.untyped_storage()
        address = storage._cdata
        known = self._ids.get(address)
        if known is not None:
            return known
        number = len(self.bytes)
        self.bytes.append(storage.nbytes() if byte_count is None else byte_count)
        self.kinds.append(kind)
        self._ids[address] = number
        self._addresses[number] = address
        self._references[number] = weakref.ref(storage, lambda _, number=number: self._freed(number))
        return number

    def storage_id(self, tensor) -> int | None:
        return self._ids.get(tensor.untyped_storage()._cdata)

    def _freed(self, number: int) -> None:
        self._references.pop(number, None)
        self._ids.pop(self._addresses.pop(number), None)
        if self.released is not None:
            self.released.append(number)
        elif self.kinds[number] != "buffer":  # torch.tensor([...]) on a CPU is first seen where it is used: kept
            self.events.append(("f", number))

    def alive(self) -> set[int]:
        return set(self._addresses)

    # -- phases and modules --------------------------------------------------------------------------------------

    def phase(self, name: str) -> None:
        self._assign_sequences()
        self._phase = name
        self.events.append(("p", name))

    @contextlib.contextmanager
    def paused(self):
        """What runs inside is not part of the step."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    @contextlib.contextmanager
    def inside_graph(self):
        """What runs inside is one run of a graph of torch.compile."""
        self._graphs += 1
        self._assign_sequences()
        self._node = (0, -1)
        try:
            yield
        finally:
            self._node = None

    def at_node(self, module: int, sequence: int) -> None:
        self._node = (module, sequence)

    def enter_module(self, index: int) -> None:
        self._assign_sequences()
        self.module_stack.append(index)

    def leave_module(self) -> None:
        self._assign_sequences()
        if len(self.module_stack) > 1:
            self.module_stack.pop()

    def _assign_sequences(self) -> None:
        """Autograd nodes made since the last call belong to the module that is running now."""
        following = _next_sequence()
        if following > self._seen_sequence:
            module = self.module_stack[-1]
            for sequence in range(self._seen_sequence, following):
                self._module_of_sequence[sequence] = module
            self._seen_sequence = following

    # -- operators -----------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is _DEVICE and isinstance(args[0], FakeTensor):  # two in three calls; answered as FakeTensorMode does
            return _META if args[0].fake_mode.in_kernel_invocation else args[0].fake_device
        kwargs = kwargs or {}
        if self._paused or func.namespace == "prim":  # prim: questions about a tensor, no operators
            return func(*args, **kwargs)
        answer = self._answer(func, args, kwargs)
        if answer is not NotImplemented:
            return answer
        out = self._call(func, args, kwargs)
        self._record(func, args, kwargs, out)
        self.values.follow(func, args, kwargs, out)
        return out

    def _answer(self, func, args, kwargs):
        """What fake tensors cannot do and we can."""
        if func is torch.ops.aten._local_scalar_dense.default:
            return self._answer_item(args[0])
        if func is torch.ops.aten.equal.default:
            return self._answer_equal(args[0], args[1])
        if func.name() in rows.OPERATORS:
            return self._answer_rows(func, args, kwargs)
        handler = operators.HANDLERS.get(func)
        if handler is not None:
            out = handler(*args)
            self._record(func, args, {}, out)
            return out
        return NotImplemented

    def _answer_item(self, tensor):
        constant = getattr(tensor, "constant", None)
        if constant is not None:
            return constant.item()
        if isinstance(tensor, FakeTensor) and tensor.fake_device.type == self.device_type:
            self._host_read()
        value, known = self.values.read(tensor)
        place = self.place()
        if known and not (self.values.is_initial(tensor) or self.values.is_random(tensor)):
            return value
        if known:  # a counter, a flag or a random number: the first step's may be another than those of later steps
            said = self.assumptions.at(place)
            value = value if said is None or not isinstance(said, (bool, int, float)) else type(value)(said)
            if place is not None:
                self.reads[place] = value
            return value
        self._refuse_to_wait(place)
        assumed = self.assumptions.at(place)
        if assumed is None or assumed == "all" or isinstance(assumed, places.Share):
            assumed = self._plausible(tensor, value, place)
        kind = bool if tensor.dtype is torch.bool else float if tensor.dtype.is_floating_point else int
        if place is not None:
            self.reads[place] = kind(assumed)
        return kind(assumed)

    def _refuse_to_wait(self, place) -> None:
        self._read_at[place] += 1
        if self._read_at[place] > MOST_READS:
            raise DataDependentError(
                f"the model reads a value of the data {self.at()} more than {MOST_READS:,} times in one step, and a capture gives it the "
                "same one each time: a loop that waits for another never ends; bound the loop (for _ in range(50)), or say the value that "
                f"ends it, so that it runs once, with --assume {place or 'FILE:LINE'}=VALUE")

    def _plausible(self, tensor, guess, place):
        """What a read of unknown data is answered with."""
        if guess is not None:
            return guess
        if tensor.dtype is torch.bool:
            return self._last_name.startswith(("aten::all", "aten::_is_all_true"))  # all(...) holds, any(...) does not: checks pass
        if tensor.dtype.is_floating_point:
            return 1.0
        raise DataDependentError(
            f"the model reads an integer out of a tensor (.item()) {self.at()}, and a capture has no values: "
            f"pass it as a Python number, or say what it is with --assume {place or 'FILE:LINE'}=NUMBER")

    def _answer_equal(self, one, other):
        real = [self.values.real(t) for t in (one, other)]
        self._host_read()
        if all(value is not None for value in real):
            return bool(self.values.on_host(torch.equal, *real))
        place = self.place()
        assumed = bool(self.assumptions.at(place) or False)
        if place is not None:
            self.reads[place] = assumed
        return assumed

    def _host_read(self) -> None:
        self.item_calls += 1
        self.events.append(("s", "item"))

    def _answer_rows(self, func, args, kwargs):
        """An operator whose output has as many rows as there are of something in the data."""
        place = self.place()
        said = []

        def assumed():
            said.append((self.assumptions.rows if rows.is_a_choice(func) else self.assumptions.at)(place))
            return said[-1]

        out = rows.answer(func, args, kwargs, self.values, assumed)
        if out is NotImplemented:
            return out
        if out is None:
            raise DataDependentError(
                f"{func.name()} {self.at()} makes a tensor whose size depends on the data, and a capture has no values: "
                + rows.cure(func, place or "FILE:LINE"))
        if place is not None and said and said[0] is not None:
            self.reads[place] = rows.words(said[0])
        if rows.waits(func):
            self.events.append(("s", "nonzero"))
        self._record(func, args, kwargs, out)
        return out

    def place(self) -> str | None:
        """"net.py:12": the line of the model's code that is running, in the backward the one whose gradient is computed."""
        line = places.line() or self._line_of_sequence.get(self._sequence_behind())
        return None if line is None else places.words(line)

    @staticmethod
    def _sequence_behind() -> int | None:
        """The number of the forward's node whose backward is running."""
        node = _current_node()
        return None if node is None or torch.is_grad_enabled() else node._sequence_nr()

    def at(self) -> str:
        """"at net.py:12 in module 'head'": for sentences."""
        place = self.place()
        return (f"at {place} " if place else "") + f"in {self.where()}"

    def where(self) -> str:
        name = self.modules[self._module_of_sequence.get(self._sequence_behind(), self.module_stack[-1])]
        return f"module '{name}'" if name else "the model"

    def _call(self, func, args, kwargs):
        try:
            if operators.is_composite(func, self.device_type):  # inference_mode leaves these to the backend
                with self:
                    out = func.decompose(*args, **kwargs)
                if out is not NotImplemented:
                    if func.name() in operators.ONE_KERNEL_ON_CUDA:
                        self.decomposed[func.name()] = self.decomposed.get(func.name(), 0) + 1
                    return out
            return func(*args, **kwargs)
        except (fake_tensor.DataDependentOutputException, fake_tensor.DynamicOutputShapeException):
            raise DataDependentError(
                f"{func.name()} {self.at()} makes a tensor whose size depends on the data, and a capture has no values: "
                + ("pad to one length and use a mask, or make it with pack_padded_sequence" if "packed_sequence" in func.name()
                   or "pack_padded" in func.name() else "use a mask of fixed size instead")) from None
        except fake_tensor.UnsupportedOperatorException:
            raise self._unsupported(func) from None
        except NotImplementedError as error:
            if "Could not run" in str(error) or "no fake impl" in str(error):
                raise self._unsupported(func) from None
            raise

    def _unsupported(self, func):
        return UnsupportedOperatorError(
            f"{func.name()} {self.at()} has no fake implementation in PyTorch {torch.__version__}: "
            + ("pad to one length and use a mask in place of nested tensors" if "nested" in func.name() else
               "use dense tensors" if "sparse" in func.name() else
               "register one with torch.library.register_fake, or leave that part out"))

    def _on_device(self, tensor) -> bool:
        if tensor.layout is not torch.strided:
            raise UnsupportedOperatorError(f"the model makes a sparse tensor {self.at()}, whose size depends on the data: "
                                           "use dense ones (sparse=False)")
        device = tensor.fake_device if isinstance(tensor, FakeTensor) else tensor.device
        return device.type == self.device_type

    def _record(self, func, args, kwargs, out) -> None:
        name = func.name()
        recurrent = name.startswith("aten::_cudnn_rnn")
        custom = name in ("stoker::kernel_", "stoker::product_kernel_")  # reads, writes, FLOPs, bytes
        inputs, host_input = self._inputs(rnn.recorded_inputs(args) if recurrent else args[0] if custom else args, kwargs)
        outputs = rnn.recorded_outputs(out) if recurrent else args[1] if custom else operators.written_lists(func, args, out)
        outputs = [t for t in operators.tensors(outputs) if self._on_device(t)]
        self._last_name = name
        if not outputs and not inputs:
            return
        self._assign_sequences()
        if not outputs and host_input is False and operators.copies_to_host(func):
            self.events.append(("s", "copy"))
        fresh, described = False, []
        for tensor in outputs:
            known = self.storage_id(tensor)
            if known is None:
                if tensor.untyped_storage().nbytes() == 0 and not recurrent:  # cuDNN's reserve is kept, empty
                    continue
                known = self.add_storage(tensor, "transient")
                self.events.append(("a", known))
                fresh = True
            described.append((*self.describe(tensor), known))
        if name == "aten::_cudnn_rnn_backward" and args[-1][3]:
            described[-1] = self._whole_storage(outputs[-1], described[-1])
        if not fresh and not func._schema.is_mutable:
            self._views += 1
            return
        if custom:  # sizes of two tensors that are none say what it does
            inputs = [("f64", (args[2],), None, described[0][3]), ("u8", (args[3],), None, described[0][3]), *inputs]
        self._write(func, args, kwargs, inputs, described)
        if host_input and operators.copies_to_host(func) and not kwargs.get("non_blocking"):
            self.events.append(("s", "copy"))

    @staticmethod
    def _whole_storage(tensor, described) -> tuple:
        """A tensor's description with all of its storage in one dimension."""
        return described[0], (tensor.untyped_storage().nbytes() // tensor.element_size(),), None, described[3]

    def _inputs(self, args, kwargs):
        """The described tensor arguments on the device, and whether there was one on the host (None: none at all)."""
        described, host = [], None
        for tensor in operators.tensors((args, kwargs)):
            if not self._on_device(tensor):
                host = True
                continue
            if host is None:
                host = False
            known = self.storage_id(tensor)
            if known is None:
                if tensor.untyped_storage().nbytes() == 0:
                    continue
                known = self.add_storage(tensor, "buffer")  # lived before the step, registered nowhere
            described.append((*self.describe(tensor), known))
        return described, host

    def _write(self, func, args, kwargs, inputs, outputs) -> None:
        attributes = operators.attributes(func, args, kwargs)
        if self._views:
            attributes["v"] = self._views
            self._views = 0
        node = _current_node()
        backward = node is not None and not torch.is_grad_enabled()
        if self._node is not None:
            module, sequence = self._node
            attributes.pop("v", None)  # a view inside of a graph costs the host nothing
            attributes["c"] = self._graphs
        elif backward:
            sequence = node._sequence_nr()
            if sequence < _NO_SEQUENCE:
                self._backward_module = self._module_of_sequence.get(sequence, self._backward_module)
            if sequence >= _NO_SEQUENCE or func is torch.ops.aten.add.Tensor:
                sequence = -1  # gradients that meet are added by the engine, while the node of one of them is current
            module = self._backward_module
        else:
            sequence = self._forward_sequence(func, args, kwargs)
            module = self._backward_module if node is None and self._phase == "backward" else self.module_stack[-1]
        if self._node is not None and func.namespace == "stoker":
            sequence = self._attention_sequence(func.name(), inputs, outputs, sequence)
        self.events.append(("o", func.name(), module, sequence, backward, tuple(inputs), tuple(outputs), attributes))
        line = None if backward else places.line()
        self.lines.append(line)
        if line is not None and sequence >= 0:
            self._line_of_sequence[sequence] = line

    def _attention_sequence(self, name: str, inputs, outputs, sequence: int) -> int:
        """Dynamo numbers no backward of an autograd.Function: attention's is told by the output that it reads."""
        if name == "stoker::attention":
            self._attentions[outputs[0][3]] = sequence = _ATTENTION_SEQUENCES + len(self.events)
        elif name == "stoker::attention_backward":
            sequence = self._attentions.get(inputs[4][3], sequence)
        return sequence

    def _forward_sequence(self, func, args, kwargs) -> int:
        """The sequence number of the autograd node that this operator got, or -1."""
        abstract = func.namespace == "stoker"  # runs inside an autograd.Function, whose node was made last
        if not abstract and not torch.is_grad_enabled():
            return -1
        for tensor in operators.tensors((args, kwargs)):
            if tensor.requires_grad:
                return _next_sequence() - 1
        return -1

    def describe(self, tensor) -> tuple:
        dtype = DTYPES.get(tensor.dtype)
        if dtype is None:
            raise UnsupportedOperatorError(f"tensors of {tensor.dtype} {self.at()} are not supported: cast them")
        shape = tuple(tensor.shape)
        return dtype, shape, operators.memory_order(shape, tensor.stride())
