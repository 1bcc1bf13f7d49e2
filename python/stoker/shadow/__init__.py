"""Captures the training step of an unmodified script, as `python train.py ARGUMENTS` would run it.

The script runs in a child process of its own, under `__main__`, with its own arguments. What it sees as its first CUDA
device is fake: tensors there have shapes and storages, and no data; all that stays on the CPU is real. Its optimizer tells
where a step ends. docs/guide/training-script.md says what users see of this.

    sites      where in the user's files something happened
    world      what one run knows: its request, its findings, how it ends
    facade     what the script finds in place of torch.cuda, of optimizers, loaders, modules, process groups
    recording  operators that run real, fake or across; steps told apart; one of them as a one_step.RawStep
    settings   what of the script's settings is found and replaced: its batch, and all else with its line
    manners    keeps files, networks and processes as they are
    child      one run of the script
    runs       the runs of one capture: children, their time, their answers
    capture    from the runs to a step file's document
    real_run   some real steps on the CPU, for validate
"""
