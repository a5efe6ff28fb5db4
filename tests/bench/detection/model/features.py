"""What the model sees of a text: hashed runs of words. The same as `src/detect/model/` counts, bit by bit."""

import re

import numpy as np

WINDOW_BYTES = 300
SENTENCE_BYTES = 24
# A word is letters and digits of ASCII, or anything beyond it; a run of digits is one `0`.
WORD = re.compile(rb"[a-z0-9\x80-\xff]+")
DIGITS = re.compile(rb"[0-9]+")
SENTENCE = re.compile(rb"[.!?](?=[\s\"')\]])|\n")
MASK = 0xFFFFFFFF
_hashes = {}


def word_hash(word):
    known = _hashes.get(word)
    if known is None:
        known = 0x811C9DC5
        for byte in DIGITS.sub(b"0", word):
            known = ((known ^ byte) * 0x01000193) & MASK
        _hashes[word] = known
    return known


def mix(left, right, kind):
    """One hash of two, in order; `kind` keeps pairs, triples and pairs with a gap apart."""
    value = (left.astype(np.uint64) * 0x9E3779B1 + right.astype(np.uint64) * 0x85EBCA77 + kind) & MASK
    value ^= value >> np.uint64(15)
    return ((value * 0x2C1B3C6D) & MASK).astype(np.uint32)


def sentences(text):
    """Where the sentences of a text (bytes, lower case) begin and end; longer ones are cut."""
    ends = [match.end() for match in SENTENCE.finditer(text)] + [len(text)]
    spans, start = [], 0
    for end in ends:
        if end - start < SENTENCE_BYTES and end < len(text):
            continue
        while end - start > WINDOW_BYTES:
            spans.append((start, start + WINDOW_BYTES))
            start += WINDOW_BYTES
        if end > start:
            spans.append((start, end))
            start = end
    return spans


def features(text):
    """The features of a text (bytes, lower case): arrays of hashes and of the places where they are complete."""
    words = list(WORD.finditer(text))
    one = np.fromiter((word_hash(word.group()) for word in words), np.uint32, len(words))
    at = np.fromiter((word.start() for word in words), np.int64, len(words))
    if len(one) == 0:
        return one, at
    pairs = mix(one[:-1], one[1:], 1)
    triples = mix(pairs[:-1], one[2:], 2)
    gaps = mix(one[:-2], one[2:], 3)
    return np.concatenate([one, pairs, triples, gaps]), np.concatenate([at, at[1:], at[2:], at[2:]])


def windows(text):
    """The features of each window of a text: whole sentences, up to so many bytes; none overlap."""
    text = text.encode().translate(LOWER)
    hashes, at = features(text)
    spans, start, cuts = sentences(text), 0, []
    for begin, end in spans:
        if end - start > WINDOW_BYTES and begin > start:
            cuts.append(begin)
            start = begin
    if len(hashes) == 0:
        return []
    which = np.searchsorted(np.array(cuts, np.int64), at, side="right")
    order = np.argsort(which, kind="stable")
    return [part for part in np.split(hashes[order], np.flatnonzero(np.diff(which[order])) + 1)]


LOWER = bytes(byte + 32 if 65 <= byte <= 90 else byte for byte in range(256))
