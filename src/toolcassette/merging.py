"""Bring the cassettes of one folder into another: ``merge_cassettes``.

Theory. Each cassette of the source belongs under the same relative path of the destination. There it is new, or the
same (byte for byte, or but for ids and times: then the old file stays, as with a re-recording), or a conflict.
Everything is judged before the first byte is written, and each copy is judged again as it is made.

Rule: a cassette that is not whole is never copied; another one is replaced only where that is asked for.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from toolcassette.crypto import SIGNATURE_SUFFIX
from toolcassette.engine import read
from toolcassette.errors import FormatError
from toolcassette.folders import cassette_files
from toolcassette.format import LINE_BYTES_CEILING, Reader
from toolcassette.stores import FileStore
from toolcassette.verify import verify

if TYPE_CHECKING:
    from toolcassette.stores import Store
    from toolcassette.verify import Report

__all__ = ["Merged", "merge_cassettes"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Merged:
    """What ``merge_cassettes`` did; paths are relative to both folders.

    ``copied`` are new, ``unchanged`` were there already, ``replaced`` took the place of another. ``conflicts`` stand in
    the way, and ``findings`` (of either folder) are no whole cassettes: with one of these nothing was written.
    """

    copied: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    findings: tuple[Report, ...] = ()

    @property
    def ok(self) -> bool:
        """True if the destination has all cassettes of the source now."""
        return not (self.conflicts or self.findings)

    @property
    def exit_status(self) -> int:
        """0 if ok, 1 for a conflict or a finding, 2 if something could not be judged."""
        return max([1 if self.conflicts else 0, *(report.exit_status for report in self.findings)])


def merge_cassettes(
    source: str | os.PathLike[str], destination: str | os.PathLike[str], *, force: bool = False
) -> Merged:
    """Copy the cassettes below ``source`` to the same places below ``destination``.

    With ``force`` conflicts are replaced. All of them are verified first, with every value; partials are findings.
    Raises ``ValueError`` where ``source`` is no folder, ``StoreError`` where a copy could not be made: what was copied
    before stays, and a second run does the rest.
    """
    here, there, store = os.fspath(source), os.fspath(destination), FileStore()
    if not os.path.isdir(here):  # noqa: PTH112 - a path stays as it was given
        message = "the source must be a folder of cassettes"
        raise ValueError(message)
    found = sorted(path for path, _ in cassette_files(here))
    names = {path: os.path.relpath(path, here) for path in found}
    wanted = {names[path]: os.path.join(there, names[path]) for path in found}  # noqa: PTH118 - stays as given
    reports = [verify(path, deep=True) for path in found]
    reports += [report for report in map(verify, wanted.values()) if report.state != "absent"]
    findings = tuple(report for report in reports if not report.ok)
    if findings:
        return Merged(findings=findings)
    fates = {path: _fate(store, path, wanted[names[path]]) for path in found}

    def having(fate: str) -> tuple[str, ...]:
        return tuple(names[path] for path in found if fates[path] == fate)

    new, same, other = having("new"), having("same"), having("other")
    if other and not force:
        return Merged(unchanged=same, conflicts=other)
    for path in found:
        if fates[path] != "same":
            _copy(store, path, wanted[names[path]], replace=fates[path] == "other")
            _copy_signature(store, path, wanted[names[path]])
    return Merged(copied=new, unchanged=same, replaced=other)


def _fate(store: Store, path: str, target: str) -> str:
    """What a cassette is to the destination: ``new``, the ``same`` as what is there, or an ``other`` one."""
    here, there = verify(path, store=store), verify(target, store=store)
    if there.state == "absent":
        return "new"
    if here.encrypted or there.encrypted:  # what they say is for their recipients to know
        return "same" if here.head == there.head else "other"
    return "same" if read(store, path).content() == read(store, target).content() else "other"


def _copy_signature(store: Store, path: str, target: str) -> None:
    """The signature beside a cassette goes with it: it is of these very bytes."""
    try:
        with store.open(path + SIGNATURE_SUFFIX) as source:
            data = source.read_at(0, source.size)
    except FormatError:
        return
    spool = store.create(target + SIGNATURE_SUFFIX, cassette_id=read(store, path).header.cassette, replace=True)
    try:
        spool.append(data)
        spool.swap()
    finally:
        spool.keep()


def _copy(store: Store, path: str, target: str, *, replace: bool) -> None:
    reader = Reader(line_bytes_max=LINE_BYTES_CEILING)
    with store.open(path) as source:
        spool = store.create(target, cassette_id=verify(path, store=store).cassette or "", replace=replace)
        try:
            for block in source.blocks():
                spool.append(block)
                reader.feed(block)
            finding = reader.finish()
            if finding is not None:  # it changed since it was judged
                spool.discard()
                raise finding.as_error()
            spool.sync()
            if replace:
                spool.swap()
            else:
                spool.publish()
        finally:
            spool.keep()
