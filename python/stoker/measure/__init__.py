"""How this package measures: what calibration, training runs, loader runs and the probe have in common.

    machine       what this machine is: processor, cores, memory, caches
    cgroup        limits of control groups, for machine
    contention    what other processes and the hypervisor take meanwhile, of all cores and of one thread
    counters      Linux's counters of one thread and process, for contention and the probe
    reference     one piece of work that tells how fast the machine is at the moment
    forked        children that go on from this process: a user's data set, a DataLoader
    fresh         children that begin as a new interpreter: a GPU's context, a resident set from zero
    answering     the other side of `fresh`
    signals       Ctrl-C, SIGTERM, and the end of the parent
    processes     groups, orphans and CPU time by process id
    leftovers     a warden that removes processes and files however this process ends
    budget        wall time since the process began
    nvidia        what nvidia-smi tells
    page_cache    files dropped from memory, and read anew
    rows_file     documents that are written whole or not at all, and gone on with
    trainer       one loop of training

Importing these imports no PyTorch, apart from `trainer`.
"""
