"""Cut the power under a recorder, for real, and fill its disk: ``python -m tests.durability.power_cut [TRIALS]``.

Needs Linux, root, loop devices and the ``mkfs`` of each file system; what it cannot do it says, in lines that begin
with ``not done:``. A file system lives in an image on a RAM disk. At a random moment the image is copied, as it
stands: that is what a disk would hold whose power was cut. The copy is mounted, and what is on it is held against what
the program had been promised before. The recorder is stopped while the image is copied, and the copy made again until
nothing changed meanwhile; where the RAM disk can clone a file at once, it is not stopped.

A control shows that the cut is one: a recorder that does not sync must lose something.

Exit status: 0, nothing was lost, also where nothing could be tried; 1, something was, or the control lost nothing.
"""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import toolcassette as tc
from tests.durability import killed
from tests.durability.judging import faults_of
from toolcassette.stores import FileOps

if TYPE_CHECKING:
    from collections.abc import Iterator

FICLONE = 0x40049409  # ioctl: this file is from now on a copy of that one
COPIES_MAX = 20
FULL_DISK_BYTES = 96 * 1024

# file system -> MiB of its image, and how it is made
FILE_SYSTEMS = {
    "ext4": (32, ["mkfs.ext4", "-q", "-F"]),
    "ext4 without a journal": (32, ["mkfs.ext4", "-q", "-F", "-O", "^has_journal"]),
    "btrfs": (120, ["mkfs.btrfs", "-q", "-f"]),
}


class NoSync(FileOps):
    """The control: says that all is on the disk, and asks nobody."""

    def fsync(self, fd: int) -> None:
        pass

    def fdatasync(self, fd: int) -> None:
        pass


def sh(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


@contextmanager
def mounted(place: Path, *words: object) -> Iterator[Path]:
    place.mkdir(exist_ok=True)
    sh("mount", *words, place)
    try:
        yield place
    finally:
        sh("umount", place)


def clone(image: Path, copy: Path) -> bool:
    """Copy at once, as of one moment; False where the file system cannot."""
    with image.open("rb") as source, copy.open("wb") as target:
        try:
            fcntl.ioctl(target, FICLONE, source.fileno())
        except OSError:
            return False
    return True


def cut(image: Path, copy: Path, pid: int) -> None:
    """The image as it stands at one moment."""
    if clone(image, copy):
        return
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)
    for _ in range(COPIES_MAX):
        data = image.read_bytes()
        if image.read_bytes() == data:
            copy.write_bytes(data)
            return
    raise RuntimeError("the image would not stand still")


def one_cut(folder: Path, image: Path, way: str, ops: FileOps, seconds: float) -> tuple[int, list[str]]:
    """Record on the image, cut, look. Returns acknowledged frames and what is wrong."""
    diary, copy = folder / "diary", folder / "copy.img"
    shutil.rmtree(diary, ignore_errors=True)
    diary.mkdir()
    with mounted(folder / "live", "-o", "loop", image) as live:
        (live / "work").mkdir()
        # The folder is not the recorder's: it is there and durable before it begins.
        sh("sync", "-f", live)
        pid = os.fork()
        if not pid:
            try:
                killed.WAYS[way](live / "work", killed.Diary(diary), tc.FileStore(ops))
            finally:
                os._exit(0)
        time.sleep(seconds)
        acks = (diary / "acks").read_text("ascii")  # before the cut: all of it was promised by then
        cut(image, copy, pid)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    with mounted(folder / "after", "-o", "loop", copy) as after:
        try:
            frames, _, wrong = faults_of(after / "work", acks)
        except (tc.CassetteError, OSError) as error:
            return 0, [f"{type(error).__name__} on what was left"]
    return frames, wrong


def power_cuts(folder: Path, name: str, trials: int) -> bool:
    """Cut ``trials`` times on one file system, and as often under the control. True if all is as it must be."""
    size, make = FILE_SYSTEMS[name]
    chance = random.Random(name)
    lost, frames, control = [], 0, 0
    for trial in range(trials):
        for ops in (FileOps(), NoSync()):
            image = folder / "fs.img"
            image.unlink(missing_ok=True)
            with image.open("wb") as file:
                file.truncate(size << 20)
            sh(*make, image)
            way = sorted(killed.WAYS)[trial % len(killed.WAYS)]
            seen, wrong = one_cut(folder, image, way, ops, 0.1 + 0.4 * chance.random())
            if isinstance(ops, NoSync):
                control += bool(wrong)
            else:
                frames += seen
                lost += wrong
    print(f"power cut on {name}: {trials} cuts, {frames} frames acknowledged, {len(lost)} faults", *lost, sep="\n  ")
    print(f"  control, without sync: something was lost in {control} of {trials}")
    return not lost and control > 0 and frames > 0


def full_disk(folder: Path) -> bool:
    """Record until a small RAM disk is full. True if all is as it must be."""
    bodies: list[int] = []
    told: list[tc.StoreError] = []

    def fetch(n: int) -> str:
        bodies.append(n)
        return "x" * 9000

    tool = tc.Registry().wrap(fetch, name="fetch")
    with mounted(folder / "full", "-t", "tmpfs", "-o", f"size={FULL_DISK_BYTES}", "tmpfs") as place:
        try:
            with tc.record(place / "x.cassette.jsonl", ["fetch"]):
                for n in range(100):
                    try:
                        tool(n)
                    except tc.StoreError as error:
                        told.append(error)
        except tc.StoreError as error:
            told.append(error)
        acknowledged = len(bodies) - 1
        left = sorted(path.name for path in place.iterdir())
        saved = tc.recover(place / "x.cassette.jsonl.partial", salvage=folder / "saved.cassette.jsonl")
    good = (
        len(told) == 100 - acknowledged + 1
        and left == ["x.cassette.jsonl.partial"]
        and saved.calls == acknowledged > 2
        and tc.verify(folder / "saved.cassette.jsonl").ok
    )
    print(f"full disk: {acknowledged} calls acknowledged, {saved.calls} there, {len(told)} errors told, left {left}")
    return good


def why_not() -> str | None:
    """Why nothing of this can be tried here, or None."""
    if sys.platform != "linux":
        return "only on Linux"
    if os.geteuid() != 0:
        return "needs root"
    return None


def try_loop(folder: Path) -> str | None:
    """Why a loop device cannot be mounted here, or None."""
    image = folder / "try.img"
    try:
        with image.open("wb") as file:
            file.truncate(8 << 20)
        sh("mkfs.ext4", "-q", "-F", image)
        with mounted(folder / "try", "-o", "loop", image):
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        return f"loop devices: {type(error).__name__}"
    finally:
        image.unlink(missing_ok=True)


def main(trials: int) -> int:
    """All that can be done here."""
    reason = why_not()
    if reason is not None:
        print(f"not done: power cut, full disk ({reason})")
        return 0
    good = True
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None, prefix="power-cut-") as where:
        folder = Path(where)
        try:
            good &= full_disk(folder)
        except subprocess.CalledProcessError:
            print("not done: full disk (no tmpfs may be mounted here)")
        no_loop = try_loop(folder)
        for name, (_, make) in FILE_SYSTEMS.items():
            missing = no_loop or (None if shutil.which(make[0]) else f"no {make[0]} on PATH")
            if missing:
                print(f"not done: power cut on {name} ({missing})")
            else:
                good &= power_cuts(folder, name, trials)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 9))
