"""What scripts call of torch.distributed around their training: launchers, checkpoints of shards, sharded optimizers."""

from __future__ import annotations

import contextlib
import sys

from .. import sites


def hooks(world) -> dict:
    """Modules of torch.distributed, and what is done to each once it is imported."""
    return {"torch.distributed.launcher.api": lambda m: _launch(world, m), "torch.distributed.run": lambda m: _run(world, m),
            "torch.distributed.launch": lambda m: _run(world, m), "torch.distributed.checkpoint.state_dict": _state_dicts,
            "torch.distributed.optim": lambda m: _sharded_optimizer(world, m),
            "torch.distributed.algorithms.join": lambda m: setattr(m, "Join", lambda *_, **__: contextlib.nullcontext())}


def _launch(world, module) -> None:
    """A function is called as that of the first rank."""
    class elastic_launch:
        def __init__(self, config=None, entrypoint=None):
            self._entry = entrypoint

        def __call__(self, *args):
            if callable(self._entry):
                return {0: self._entry(*args)}
            return _names_script(world, [self._entry, *args])

    module.elastic_launch = elastic_launch
    module.launch_agent = lambda config, entrypoint, args: elastic_launch(config, entrypoint)(*args)


def _run(world, module) -> None:
    """A script that would be started is named."""
    module.main = lambda args=None: _names_script(world, ["torchrun", *(args or sys.argv[1:])])
    module.run = lambda args: _names_script(world, ["torchrun", args.training_script, *args.training_script_args])


def _names_script(world, words: list) -> None:
    command = " ".join(map(str, words))
    world.refuse(f"{sites.here(3)} starts another script, which is not run ({command[:200]}): give that one, and its arguments after --")


def _state_dicts(module) -> None:
    """State dicts of a model whose shards are whole here."""
    def of_optimizers(optimizers) -> dict:
        several = isinstance(optimizers, (list, tuple))
        return {"state": {}, "param_groups": [group for o in (optimizers if several else [optimizers]) for group in o.state_dict()[
            "param_groups"]]}

    module.get_model_state_dict = lambda model, **_: model.state_dict()
    module.get_optimizer_state_dict = lambda model, optimizers, **_: of_optimizers(optimizers)
    module.get_state_dict = lambda model, optimizers, **_: (model.state_dict(), of_optimizers(optimizers))
    module.set_model_state_dict = lambda model, model_state_dict=None, **_: model.load_state_dict(model_state_dict or {}, strict=False)
    module.set_optimizer_state_dict = lambda *_, **__: None
    module.set_state_dict = lambda model, optimizers, *, model_state_dict=None, **_: model.load_state_dict(model_state_dict or {},
                                                                                                        strict=False)


def _sharded_optimizer(world, module) -> None:
    """ZeroRedundancyOptimizer: the optimizer of the class that it is given, for all parameters."""
    def ZeroRedundancyOptimizer(params, optimizer_class, process_group=None, parameters_as_bucket_view=False, overlap_with_ddp=False,
                                **defaults):
        world.note(f"{sites.here(2)}: ZeroRedundancyOptimizer is not modelled: the optimizer's state is counted whole on each GPU")
        made = optimizer_class(params, **defaults)
        made.consolidate_state_dict = lambda *_, **__: None
        return made

    module.ZeroRedundancyOptimizer = ZeroRedundancyOptimizer


def offloaded(world, site) -> None:
    world.found("fsdp-cpu-offload", True, "FSDP keeps its shards in the host's memory", site)


def checkpoints(cls) -> None:
    """Functions of FullyShardedDataParallel that scripts call around torch.save."""
    @contextlib.contextmanager
    def within(*_, **__):
        yield

    def of_optimizer(model, optim, *_, **__):
        return optim.state_dict()

    def as_it_is(*args, **kwargs):
        found = [value for value in (*args, *kwargs.values()) if isinstance(value, dict)]
        return found[0] if found else {}

    for name, answer in (("state_dict_type", within), ("summon_full_params", within), ("set_state_dict_type", lambda *_, **__: None),
                         ("get_state_dict_type", lambda *_, **__: None), ("optim_state_dict", of_optimizer),
                         ("full_optim_state_dict", of_optimizer), ("sharded_optim_state_dict", of_optimizer),
                         ("optim_state_dict_to_load", as_it_is), ("scatter_full_optim_state_dict", as_it_is),
                         ("shard_full_optim_state_dict", as_it_is), ("rekey_optim_state_dict", as_it_is),
                         ("fsdp_modules", lambda module, *_, **__: [part for part in module.modules() if isinstance(part, cls)])):
        setattr(cls, name, staticmethod(answer))
