"""Keys, cassettes of any content and their signatures, as the attacks need them."""

from __future__ import annotations

from pathlib import Path

import toolcassette as tc
from toolcassette import RecordedCall, write_cassette
from toolcassette.crypto import Checkpoint, Note, Signer, Tree, signed
from toolcassette.format.chain import Chain

NAME = "weather.cassette.jsonl"


def cassette_bytes(*skies, cassette="ab" * 16):
    calls = [
        RecordedCall(tool="weather", args=b'{"city":"c%d"}' % number, value=b'"%s"' % sky.encode())
        for number, sky in enumerate(skies)
    ]
    return write_cassette(
        calls, cassette=cassette, created="2026-01-02T03:04:05.000000Z", producer="test", include=["weather"]
    )


def rehashed(lines):
    """Frames with hashes made anew, as anybody can make them: the chain has no key."""
    chain = Chain()
    return b"".join(chain.link(line[: line.rindex(b',"prev":"')]) for line in lines)


class Keys:
    """Key files in a folder: ``private(name)``, ``public(name)`` are paths, ``vkey(name)`` is text."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.signers = {}

    def signer(self, name):
        if name not in self.signers:
            signer = self.signers[name] = Signer.generate(f"{name}.example/key")
            (self.folder / name).write_bytes(signer.to_bytes())
            (self.folder / f"{name}.pub").write_text(f"{signer.verifier}\n", "utf-8")
        return self.signers[name]

    def private(self, name):
        self.signer(name)
        return str(self.folder / name)

    def public(self, name):
        self.signer(name)
        return str(self.folder / f"{name}.pub")

    def vkey(self, name):
        return str(self.signer(name).verifier)


def sidecar(file):
    return Path(f"{file}.sig")


def note_over(data, *signers):
    """The note that some signers make over whatever bytes: an attacker asks no program of ours."""
    lines = data.split(b"\n")[:-1]
    leaves = [bytes.fromhex(line[-66:-2].decode()) for line in lines]
    cassette = lines[0].split(b'"cassette":"')[1][:32].decode()
    note = Note(Checkpoint(cassette, len(leaves), Tree(leaves).root()).text, ())
    for signer in signers:
        note = signed(note, signer)
    return note.to_bytes()


def put(file, data, *signers):
    """A cassette and its signature, if somebody signs."""
    file.write_bytes(data)
    if signers:
        sidecar(file).write_bytes(note_over(data, *signers))
    return file


def judged(file, *keys, **options):
    """What ``verify`` says in a word: the reason, or who signed, or that nobody did."""
    report = tc.verify(file, trusted_keys=keys, **options)
    if report.reason is not None:
        assert not report.ok
        assert not report.signed
        return report.reason
    assert report.ok
    return "signed" if report.signed else "unchecked" if report.unchecked else "unsigned"
