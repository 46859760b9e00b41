"""Which attack each tier holds on this machine: one row per containment test (harness reference 2.5), judged by limits.

A row names the test that carries it out, so that a claim of ``journeyman doctor`` and what was tried are the same.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Set
from dataclasses import dataclass
from typing import Literal

from journeyman.errors import EnvironmentMissing

Held = Literal["holds", "polled", "open"]
"""``holds``; ``polled``: refused, or once waived bounded by looking at resident memory; ``open``: not held."""


@dataclass(frozen=True)
class Attack:
    """One containment test.

    Attributes:
        name: what is tried.
        needs: keys of ``CAPABILITIES`` that together hold it; none: the protocol itself, so every provider.
        expected: what happens where it is held.
        test: ``file::function`` below the tests of this room.
    """

    name: str
    needs: tuple[str, ...]
    expected: str
    test: str


_TESTS = "test_sandbox_containment.py::test_"
ATTACKS: tuple[Attack, ...] = (
    Attack(
        "fork bomb",
        ("pids",),
        "stays below pids, dies at once",
        f"{_TESTS}a_fork_bomb_stays_below_the_limit_and_dies_at_once",
    ),
    Attack(
        "2 GiB of memory",
        ("memory",),
        "killed; reported as the sandbox's",
        f"{_TESTS}allocating_past_the_limit_is_killed_and_reported_as_the_sandboxes",
    ),
    Attack("one 10 GB file", ("disk",), "stops at the limit", f"{_TESTS}one_large_file_stops_at_the_limit"),
    Attack("many files", ("disk",), "no space left", f"{_TESTS}many_files_find_the_disk_full"),
    Attack(
        "tmpfs filled", ("memory", "disk"), "killed: tmpfs pages are memory", f"{_TESTS}a_filled_tmpfs_counts_as_memory"
    ),
    Attack("busy loop under a quota", ("cpus",), "gets its share", f"{_TESTS}a_busy_loop_gets_no_more_than_its_share"),
    Attack("connect out", ("network",), "unreachable", f"{_TESTS}there_is_no_network"),
    Attack("write to /usr, /etc", ("files",), "read-only", f"{_TESTS}only_the_work_areas_can_be_written"),
    Attack(
        "loop that ignores signals",
        (),
        "dead at the deadline",
        "test_sandbox_contract.py::test_after_a_deadline_the_whole_tree_is_dead_and_the_sandbox_still_serves",
    ),
    Attack("setsid daemon", ("processes",), "ends with the sandbox", f"{_TESTS}a_daemon_ends_with_its_sandbox"),
    Attack(
        "kill -9 of the owner",
        ("dies_with_owner",),
        "all gone within 2 s",
        f"{_TESTS}after_the_owner_is_killed_everything_is_gone_within_two_seconds",
    ),
    Attack("capabilities, nested namespaces", ("privileges",), "none", f"{_TESTS}the_inside_has_no_privileges"),
    Attack(
        "fork bomb without a control group",
        ("pids",),
        "RLIMIT_NPROC, which does not bind root",
        "test_sandbox_unprivileged.py::test_an_ordinary_user_gets_isolation_and_an_honest_account_of_limits",
    ),
    Attack(
        "memory without a control group",
        ("memory",),
        "refused; waived, looked at and killed within 1 s",
        "test_sandbox_ungrouped.py::test_without_a_control_group_memory_is_refused_or_bounded_within_a_second",
    ),
    Attack(
        "reading /proc of the host",
        ("processes",),
        "own processes only",
        f"{_TESTS}processes_of_the_host_and_of_other_sandboxes_cannot_be_seen",
    ),
    Attack(
        "search for seed, truth, program",
        ("files",),
        "nothing found",
        f"{_TESTS}a_prober_finds_neither_this_program_nor_seed_nor_canary",
    ),
)


def held(attack: Attack, supports: Set[str], *, polls: bool) -> Held:
    """Whether a provider holds it here.

    Args:
        supports: ``Provider.supports``.
        polls: the provider looks at resident memory where it has no group (all but ``oci``); pages of a tmpfs are
            not among that.
    """
    if supports >= set(attack.needs):
        return "holds"
    if attack.needs == ("memory",) and polls:
        return "polled"
    return "open"


def tiers() -> dict[str, dict[str, Held]]:
    """Provider -> attack -> whether it holds here, of every provider that works on this machine."""
    from journeyman.sandbox import PROVIDERS  # the room's own dict, which stands above this module

    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # provider none warns on every use; the table says the same
        for name, make in PROVIDERS.items():
            with contextlib.suppress(EnvironmentMissing):
                found[name] = containment(name, make().supports)
    return found


def containment(provider: str, supports: Set[str]) -> dict[str, Held]:
    """Attack -> whether the provider of that name holds it here."""
    return {attack.name: held(attack, supports, polls=provider != "oci") for attack in ATTACKS}


def containment_table() -> str:
    """The rows as Markdown, for the documentation."""
    rows = []
    for attack in ATTACKS:
        by = ", ".join(f"`{name}`" for name in attack.needs) or "every provider"
        rows.append(f"| {attack.name} | {by} | {attack.expected} | `{attack.test.partition('::')[0]}` |")
    return "\n".join(["| attack | held by | expected | test |", "|---|---|---|---|", *rows])
