"""The process that measures: single operators and the host by the package's means, whole steps by this script's."""

from stoker.calibrate.gpu.child import less, measure_operator, serve

__all__ = ("less", "measure_operator")


def measure(case):
    if case["kind"] != "step":
        from stoker.calibrate.gpu import child

        return child.measure(case)
    from . import steps

    return [steps.measure(case, case["device"])]


if __name__ == "__main__":
    serve(measure)
