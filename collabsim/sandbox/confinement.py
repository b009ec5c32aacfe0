"""Takes everything but computing from a freshly forked process.

In: what it may still read and write, its limits, and the user to become. Out: nothing; from then on the process cannot
reach files, processes or the network. The order matters: each step needs what the next one takes away.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import spec_from_file_location
from pathlib import Path

from . import landlock, limits, seccomp
from .descriptors import close_all_but
from .libc import prctl

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _SIGKILL = 1, 4, 38, 9
_NOT_STANDARD = {"site-packages", "dist-packages", "test", "idlelib", "ensurepip"}
"""Parts of the standard library's folder that stay closed: installed packages hold data sets with their golds."""
_LIBRARIES = ("/lib", "/lib64", "/usr/lib64", "/usr/local/lib")


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a worker prepares once and each of its processes enters."""

    rule_set: int
    """Descriptor of the Landlock rules."""
    library: tuple[int, ...]
    """Descriptors of the folders that modules are imported from."""
    drops_user: bool
    """Whether processes change to a user of their own; only root can."""
    shares_user: bool
    """Whether threads of others count among those of a process."""

    def enter(self, own: limits.Limits, user: int, keep: Iterable[int], parent: int, folder: Path | None) -> None:
        """Confine the calling process; it may write in `folder`. Only descriptors 0-2, `keep` and the library's stay open."""
        os.setsid()
        close_all_but({0, 1, 2, self.rule_set, *self.library, *keep})
        # Made now, since the later user may be unable to walk to its own folder by name.
        changes = [("/dev/null", landlock.WRITE_DEVICE), *([(str(folder), landlock.WORK)] if folder else [])]
        own_rules = landlock.rules(changes, landlock.CHANGES)
        with suppress(OSError):  # when memory runs out, this process goes first
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        if self.drops_user:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        # A change of user makes /proc/self unreadable, through which the library's descriptors are reached.
        prctl(_PR_SET_DUMPABLE, 1)
        prctl(_PR_SET_PDEATHSIG, _SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        limits.apply(own, shares_user=self.shares_user)
        prctl(_PR_SET_NO_NEW_PRIVS, 1)
        for rule_set in (own_rules, self.rule_set):
            landlock.enter(rule_set)
            os.close(rule_set)
        seccomp.install(os.getpid())


def prepare(work: Path, packages: Iterable[Path], namespaces: Iterable[str]) -> Confinement:
    """The confinement of one worker: reads go to the standard library and `packages` (folders), writes to `work`.

    Also makes imports of this process go through descriptors, which still work where a later user could not walk to.
    """
    standard = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    packages = list(packages)
    allowed = [(str(folder), landlock.LIST) for folder in standard]
    allowed += [(str(entry), landlock.READ) for folder in standard for entry in _readable(folder)]
    allowed += [(str(part), landlock.READ) for package in packages for part in (package, Path(f"{package}.libs"))]
    shared = [*_LIBRARIES, sysconfig.get_config_var("LIBDIR") or ""]
    allowed += [(path, landlock.READ) for folder in shared for path in _shared_libraries(folder)]
    allowed += [("/usr/share/zoneinfo", landlock.READ), ("/etc/localtime", landlock.READ)]
    allowed += [("/dev/null", landlock.WRITE_DEVICE), ("/dev/zero", landlock.READ), ("/dev/urandom", landlock.READ)]
    allowed.append((str(work), landlock.WORK))
    return Confinement(
        rule_set=landlock.rules(allowed),
        library=(*_import_through_descriptors(), *_offer(packages)),
        drops_user=os.geteuid() == 0,
        shares_user=os.geteuid() != 0 and "user" not in namespaces,
    )


def _readable(folder: Path) -> list[Path]:
    return [entry for entry in folder.iterdir() if entry.name not in _NOT_STANDARD]


def _shared_libraries(folder: str) -> list[str]:
    """The folders of shared objects beneath a library folder, and those on its top; never Python packages."""
    top = Path(folder)
    if not folder or not top.is_dir():
        return []
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    return [str(path) for path in (*top.glob("*.so*"), *([top / multiarch] if multiarch else []))]


def _import_through_descriptors() -> list[int]:
    """Name the folders of `sys.path`, and those of loaded packages in them, by open descriptors."""
    opened = {folder: _open_folder(folder) for folder in sys.path if os.path.isdir(folder)}
    for package in list(sys.modules.values()):
        if isinstance(places := getattr(package, "__path__", None), list):
            places[:] = [_moved(place, opened) for place in places]
    sys.path[:] = map(_by_descriptor, opened.values())
    sys.path_importer_cache.clear()
    return list(opened.values())


def _moved(place: str, opened: dict[str, int]) -> str:
    """A package's folder by the descriptor of the folder of `sys.path` that it is in."""
    folder, name = os.path.split(place)
    return f"{_by_descriptor(opened[folder])}/{name}" if folder in opened else place


def _offer(packages: list[Path]) -> list[int]:
    """Let these packages be imported, and nothing beside them."""
    descriptors = {package.name: _open_folder(str(package)) for package in packages if package.is_dir()}

    class Offered:
        """Finds the offered packages by name."""

        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> object:  # noqa: ARG004
            if name not in descriptors:
                return None
            folder = _by_descriptor(descriptors[name])
            return spec_from_file_location(name, f"{folder}/__init__.py", submodule_search_locations=[folder])

    sys.meta_path.append(Offered)  # type: ignore[arg-type]
    return list(descriptors.values())


def _open_folder(folder: str) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _by_descriptor(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"
