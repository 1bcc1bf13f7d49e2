"""The process that measures: single operators and the host by calibrate's means, whole steps besides."""

from ...calibrate.gpu import child


def measure(case):
    if case["kind"] != "step":
        return child.measure(case)
    from . import steps

    return [steps.measure(case, case["device"])]


if __name__ == "__main__":
    child.serve(measure)
