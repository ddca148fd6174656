"""Surveys made side by side: large frames in threads, small ones in processes, one reader that sees all in order.

Rule: what is found is what a single pass finds. A survey made elsewhere says only that a run is sound; anything else is
left to the reader, and so is the run of a worker that died.

Hashing lets go of the interpreter, so large frames share it in threads and are not copied; what Python does for many
small frames needs an interpreter each. A worker is a plain child of this interpreter that reads runs from its stdin and
answers on its stdout: nothing is forked, and the caller's main module is not imported again.
"""

from __future__ import annotations

import os
import pickle
import queue
import struct
import subprocess
import sys
from collections import deque
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final, Self, TypeVar

from toolcassette.format import LINE_BYTES_CEILING, Run, survey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future
    from types import TracebackType

    from toolcassette.format import Reader, Survey
    from toolcassette.stores import Store

__all__ = ["SIDE_BY_SIDE_BYTES", "Surveyors", "cores", "serve"]

_R = TypeVar("_R")

SIDE_BY_SIDE_BYTES: Final = 32 * 1024 * 1024  # below it a worker costs more to start than it saves
_AHEAD_BYTES: Final = 16 * 1024 * 1024  # runs that wait for the reader; or two, if they are larger
_JOBS_MAX: Final = 8  # one reader feeds them all, and cannot feed more
_REQUEST: Final = struct.Struct(">Q??")  # bytes of the run that follows; whether to look deep, and to tell the hashes
_ANSWER: Final = struct.Struct(">4sQ")  # a mark, and the bytes of the pickle that follows
_MARK: Final = b"tcsv"  # an interpreter that is set up to greet is no worker
_WORKER: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from toolcassette.surveying import serve; serve(sys.stdin.buffer, sys.stdout.buffer)"
)


def cores() -> int:
    """How many jobs are worth while here."""
    affinity = getattr(os, "sched_getaffinity", None)
    return min(len(affinity(0)) if affinity else os.cpu_count() or 1, _JOBS_MAX)


class Surveyors:
    """``jobs`` that survey what one reader needs next. Leave the block to end them."""

    def __init__(self, jobs: int) -> None:
        # Loaded by those who need it: it takes longer than a small cassette.
        from concurrent.futures import ThreadPoolExecutor

        self._jobs = jobs
        self._threads = ThreadPoolExecutor(jobs, thread_name_prefix="toolcassette-survey")
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.close()

    def each(self, files: Sequence[tuple[str, Store]], judge: Callable[[str, Store], _R]) -> list[_R]:
        """What ``judge`` says of each file, in their order; as many at once as there are jobs."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(self._jobs, thread_name_prefix="toolcassette-judge") as pool:
            return list(pool.map(judge, *zip(*files, strict=True)))

    def feed_all(self, reader: Reader, blocks: Iterable[bytes], *, deep: bool, hashes: bool = False) -> None:
        """Feed blocks to a reader, as its own ``feed_all`` would. It must be as ``deep``, and of the highest limit.

        ``hashes``: its ``runs`` need the hash of every frame.
        """
        ahead: deque[tuple[Run, Future[Survey | None]]] = deque()
        waiting = 0
        for block in blocks:
            for run in reader.cutter.cut(block):
                while ahead and waiting + run.size > max(_AHEAD_BYTES, 2 * run.size):
                    waiting -= self._next(reader, ahead)
                ahead.append((run, self._threads.submit(self._survey, run, deep=deep, hashes=hashes)))
                waiting += run.size
            if reader.is_decided:
                return
        while ahead:
            self._next(reader, ahead)

    def _next(self, reader: Reader, ahead: deque[tuple[Run, Future[Survey | None]]]) -> int:
        """Let the reader take the next run. Returns its size."""
        run, made = ahead.popleft()
        reader.take(run, made.result())
        return run.size

    def _survey(self, run: Run, *, deep: bool, hashes: bool) -> Survey | None:
        if run.large and not deep:
            return survey(run, line_bytes_max=LINE_BYTES_CEILING)
        try:
            worker = self._idle.get_nowait()
        except queue.Empty:  # never more than there are threads
            worker = _Worker()
            self._workers.append(worker)
        found = worker.survey(run, deep=deep, hashes=hashes)
        self._idle.put(worker)
        if found is None and hashes:  # of a run that is taken line by line nobody would tell them
            return survey(run, deep=deep, line_bytes_max=LINE_BYTES_CEILING)
        return found


class _Worker:
    """A child that surveys. Once it has failed, every answer is None."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError, ValueError):  # no such program where Python is embedded
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, and our own module
                [sys.executable, "-c", _WORKER, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )

    def survey(self, run: Run, *, deep: bool, hashes: bool) -> Survey | None:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return None
        try:
            process.stdin.write(_REQUEST.pack(run.size, deep, hashes))
            for part in run.parts:
                process.stdin.write(part)
            process.stdin.flush()
            mark, size = _ANSWER.unpack(_exactly(process.stdout, _ANSWER.size))
            if mark != _MARK:
                raise EOFError
            found: Survey | None = pickle.loads(_exactly(process.stdout, size))  # noqa: S301 - from our own child
        except (OSError, EOFError):
            self.close()
            return None
        return found

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(OSError):
                process.communicate()


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Be a worker: answer each request until there are no more."""
    while head := requests.read(_REQUEST.size):
        size, deep, hashes = _REQUEST.unpack(head)
        data = _exactly(requests, size)
        found = survey(Run([data], size), deep=deep, line_bytes_max=LINE_BYTES_CEILING)
        if found is not None and not hashes:  # they are most of the answer
            found = found._replace(hashes=[])
        answer = pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
        answers.write(_ANSWER.pack(_MARK, len(answer)) + answer)
        answers.flush()


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data
