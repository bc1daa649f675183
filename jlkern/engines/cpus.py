"""The CPU of this machine: its name, and how many of its cores this process may use."""

from __future__ import annotations

import os
import platform
from functools import cache


def usable_cpus() -> int:
    """Return how many CPUs the process's affinity and its control group's quota allow, rounded up.

    >>> usable_cpus() >= 1
    True
    """
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(available, _quota()))


@cache
def _quota() -> int:
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        return max(1, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        return 1 << 16


@cache
def cpu_name() -> str:
    """Return what the CPU's maker calls it."""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "cpu"
