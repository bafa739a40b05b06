"""Podman's seccomp profile, less what no script needs and exploits begin with."""

from typing import Any

# New namespaces hand out capabilities inside them, and with those most of the kernel's code that nobody fuzzed.
_NAMESPACES = frozenset({"unshare", "setns", "clone3", "pivot_root", "chroot"})
_MOUNTS = frozenset(
    [
        "mount",
        "umount",
        "umount2",
        "mount_setattr",
        "move_mount",
        "open_tree",
        "open_tree_attr",
        "fsopen",
        "fsconfig",
        "fsmount",
        "fspick",
        "quotactl",
        "quotactl_fd",
    ]
)
_KEYS = frozenset({"keyctl", "add_key", "request_key"})
_MACHINERY = frozenset(
    [
        "bpf",
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "userfaultfd",
        "perf_event_open",
        "fanotify_init",
        "process_vm_readv",
        "process_vm_writev",
        "kexec_load",
        "init_module",
        "finit_module",
        "open_by_handle_at",
        "name_to_handle_at",
        "vmsplice",
        "lookup_dcookie",
        "syslog",
        "acct",
        "reboot",
        "swapon",
        "swapoff",
        "settimeofday",
        "clock_settime",
        "clock_settime64",
        "clock_adjtime",
        "clock_adjtime64",
        "adjtimex",
        "stime",
    ]
)
FORBIDDEN = _NAMESPACES | _MOUNTS | _KEYS | _MACHINERY
# CLONE_NEW{TIME,NS,CGROUP,UTS,IPC,USER,PID,NET} of linux/sched.h
_NEW_NAMESPACE = 0x80 | 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000
_CLONE = {
    "names": ["clone"],
    "action": "SCMP_ACT_ALLOW",
    "args": [{"index": 0, "value": _NEW_NAMESPACE, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}],
}


def tighten(profile: dict[str, Any]) -> dict[str, Any]:
    """An OCI seccomp profile that allows what `profile` does, except the calls in FORBIDDEN and new namespaces.

    What is not allowed answers as in podman's profile: ENOSYS, from which libraries fall back to what is.
    """
    allowed = []
    for rule in profile["syscalls"]:
        names = [name for name in rule["names"] if name not in FORBIDDEN | {"clone"}]
        if names:
            allowed.append(rule | {"names": names})
    return profile | {"syscalls": [*allowed, _CLONE]}
