"""Where things lie, whichever room a test stands in, and which files of tests run by themselves."""

import pathlib

SUPPORT = pathlib.Path(__file__).resolve().parent  # modules and user's files that several rooms share
TESTS = SUPPORT.parent
PYTHON = TESTS.parent
REPOSITORY = PYTHON.parent

# Files whose tests share the machine with no others, and why.
ALONE = {
    "measure/test_calibrate.py": "judges readings by the machine's load",
    "measure/test_calibrate_command.py": "judges readings by the machine's load, and gives up after some tries",
    "measure/test_loader_runs.py": "judges readings by the machine's load, and counts what is in /dev/shm",
    "measure/test_machine_facts.py": "makes control groups with limits, and reads the load",
    "measure/test_training_runs.py": "judges repetitions by the machine's load",
    "observe/test_watch.py": "tells what a job waits for from what runs beside it",
    "pipeline/test_pipeline_bad.py": "limits processes and memory of the user",
    "pipeline/test_pipeline_left_behind.py": "looks through /dev/shm and all processes for what was left",
    "study/test_slurm.py": "starts the daemons of Slurm, of which a machine has one set",
    "study/test_torture.py": "kills at instants that are drawn, in studies that have to go on meanwhile",
    "study/test_tune_slurm.py": "starts the daemons of Slurm, too",
}
