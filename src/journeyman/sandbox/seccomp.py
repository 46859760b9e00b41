"""The deny list of system calls as a classic BPF program, for ``bwrap --seccomp``.

Written by hand so that no libseccomp is needed: load the architecture (a foreign one is killed: it would have other
numbers), load the number (x32 numbers fail with ENOSYS), compare, return EPERM for what is listed and allow the rest.

Format: ``struct sock_filter {u16 code; u8 jt; u8 jf; u32 k}``, ``struct seccomp_data {int nr; u32 arch; ...}``
(linux/filter.h, linux/seccomp.h). Numbers are from the kernel's tables for x86-64 and the generic table of aarch64.
"""

from __future__ import annotations

import errno
import platform
import struct
from functools import lru_cache

#: name -> (x86-64 number, aarch64 number)
DENIED: dict[str, tuple[int, int]] = {
    "ptrace": (101, 117),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "setns": (308, 268),
    "perf_event_open": (298, 241),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "pidfd_getfd": (438, 438),
    "mount_setattr": (442, 442),
}

#: machine -> (column of DENIED, AUDIT_ARCH_* value)
ARCHITECTURES: dict[str, tuple[int, int]] = {
    "x86_64": (0, 0xC000003E),
    "aarch64": (1, 0xC00000B7),
}

_LOAD_WORD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NR_OFFSET, _ARCH_OFFSET = 0, 4
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_X32_BIT = 0x40000000


def _instruction(code: int, k: int, jump_true: int = 0, jump_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, jump_true, jump_false, k)


@lru_cache(maxsize=2)
def deny_program(machine: str | None = None) -> bytes | None:
    """The program for ``machine`` (default: this one), or None where the numbers are not known."""
    known = ARCHITECTURES.get(machine or platform.machine())
    if known is None:
        return None
    column, architecture = known
    numbers = sorted(pair[column] for pair in DENIED.values())
    program = [
        _instruction(_LOAD_WORD, _ARCH_OFFSET),
        _instruction(_JUMP_EQUAL, architecture, 1, 0),
        _instruction(_RETURN, _KILL_PROCESS),
        _instruction(_LOAD_WORD, _NR_OFFSET),
        _instruction(_JUMP_AT_LEAST, _X32_BIT, 0, 1),
        _instruction(_RETURN, _ERRNO | errno.ENOSYS),
    ]
    for index, number in enumerate(numbers):
        program.append(_instruction(_JUMP_EQUAL, number, len(numbers) - index, 0))  # to the last instruction
    program.append(_instruction(_RETURN, _ALLOW))
    program.append(_instruction(_RETURN, _ERRNO | errno.EPERM))
    return b"".join(program)
