"""Sentences of a text and their hashed features. Must agree with `src/detect/signal/wording.rs`."""
import bisect

import numpy as np

TABLE_BITS = 22
WINDOW_BYTES = 300
WORD_CHARS = 24
STEM_CHARS = 5
BEFORE = 0x9E3779B9
# Features of each word.
PER_WORD = 5

# Shorter lines are not lines of a paragraph: a line break after them ends a sentence.
PARAGRAPH_LINE_BYTES = 40

# Characters that are frequent in code and data, and their maximum percentage in prose.
SYMBOLS = set("\"#$%&'()*+:;<=>@[\\]^_`{|}~")
SYMBOLS_PER_100 = 8
DIGITS = set("0123456789")
# A text with at least this many words is prose only if this percentage of them is distinct.
REPEATING_WORDS = 8
DISTINCT_PER_100 = 65
# Maximum percentage of words of both letters and digits in prose: identifiers consist of such.
MIXED_PER_100 = 33

# First code points of ranges, and whether a character there is a letter (1), a word by itself (2) or neither (0).
RANGES = [
    (0x00, 0), (0x30, 1), (0x3A, 0), (0x41, 1), (0x5B, 0), (0x61, 1), (0x7B, 0), (0xC0, 1), (0xD7, 0), (0xD8, 1), (0xF7, 0), (0xF8, 1),
    (0x60C, 0), (0x60D, 1), (0x61B, 0), (0x61C, 1), (0x61F, 0), (0x620, 1), (0x6D4, 0), (0x6D5, 1), (0x964, 0), (0x966, 1), (0xE00, 2),
    (0xF00, 1), (0x1000, 2), (0x10A0, 1), (0x1780, 2), (0x1800, 1), (0x2000, 0), (0x2C00, 1), (0x3000, 0), (0x3040, 2), (0x3100, 1),
    (0x3400, 2), (0xA000, 1), (0xE000, 0), (0xF900, 2), (0xFB00, 1), (0xFE10, 0), (0xFE70, 1), (0xFF00, 0), (0xFF10, 1), (0xFF1A, 0),
    (0xFF21, 1), (0x1F000, 0), (0x20000, 2), (0x40000, 1),
]
STARTS = [start for start, _ in RANGES]
KINDS = {}
HASHES = {}


def kind(letter):
    known = KINDS.get(letter)
    if known is None:
        known = KINDS[letter] = RANGES[bisect.bisect_right(STARTS, ord(letter)) - 1][1]
    return known


def hash_of(data):
    """Hashes eight bytes at a time."""
    value = 0
    for at in range(0, len(data), 8):
        value = (value << 23 | value >> 41) & 0xFFFFFFFFFFFFFFFF
        value = (value ^ int.from_bytes(data[at : at + 8], "little")) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    return value >> 32


def hashes_of(word):
    """The hashes of the word and of its stem."""
    known = HASHES.get(word)
    if known is None:
        if word.isascii() and word.isdigit():
            known = (hash_of(b"0"),) * 2
        elif len(word) > WORD_CHARS:
            known = (hash_of(b"#"),) * 2
        else:
            lower = "".join(letter.lower() for letter in word)
            known = hash_of(lower.encode()), hash_of(lower[:STEM_CHARS].encode())
        if len(HASHES) < 3_000_000:
            HASHES[word] = known
    return known


def ends_sentence(letter, following, line_bytes):
    if letter in "!?。！？؟।":
        return True
    if letter == ".":
        return following in ("", " ", "\t", "\r", "\n")
    return letter == "\n" and (line_bytes < PARAGRAPH_LINE_BYTES or following == "" or kind(following) == 0)


def sentences(text):
    """For each sentence its start and end in bytes, and the hashes of its words."""
    found, words, word = [], [], []
    at, start, end, line_start = 0, None, 0, 0

    def end_word():
        if word:
            words.append(hashes_of("".join(word)))
            word.clear()

    def end_sentence():
        nonlocal start, words
        end_word()
        if words:
            found.append((start, end, words))
        words, start = [], None

    for place, letter in enumerate(text):
        code = ord(letter)
        size = 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
        of_kind = kind(letter)
        if of_kind:
            if start is not None and at - start > WINDOW_BYTES and (of_kind == 2 or not word):
                end_sentence()
            if start is None:
                start = at
            if of_kind == 1:
                word.append(letter)
            else:
                end_word()
                words.append(hashes_of(letter))
            end = at + size
        else:
            end_word()
            if ends_sentence(letter, text[place + 1 : place + 2], at - line_start):
                end_sentence()
            if letter == "\n":
                line_start = at + 1
        at += size
    end_sentence()
    return found


def slots(words):
    """Indexes of all features of a sentence in the table."""
    whole, stem = np.array(words, dtype=np.uint32).T
    before = np.concatenate([np.full(2, BEFORE, np.uint32), stem])
    last, second = before[1:-1], before[:-2]
    nothing = np.zeros_like(stem)
    pair = second * np.uint32(0x27D4EB2F) ^ last

    def slot(a, b, tag):
        value = a * np.uint32(0x9E3779B1) ^ b + np.uint32(tag * 0x85EBCA6B & 0xFFFFFFFF)
        value ^= value >> np.uint32(15)
        return value * np.uint32(0x2C1B3C6D) >> np.uint32(32 - TABLE_BITS)

    features = [(whole, nothing), (stem, nothing), (stem, last), (stem, second), (stem, pair)]
    return np.concatenate([slot(a, b, tag) for tag, (a, b) in enumerate(features, 1)]).astype(np.int32)


def is_prose(text):
    """Whether a window is prose rather than code or a table."""
    words, word, symbols, mixed, before = [], [], 0, 0, None
    for letter in text + " ":
        if kind(letter) == 1:
            word.append(letter)
            continue
        symbols += letter in SYMBOLS
        if word:
            words.append(hashes_of("".join(word))[0])
            mixed += 0 < sum(letter in DIGITS for letter in word) < len(word)
            word.clear()
        if kind(letter) == 2:
            # Prose repeats single characters of such a script, but not pairs of them.
            words.append((before, letter))
            before = letter
    repeats = len(words) >= REPEATING_WORDS and len(set(words)) * 100 < len(words) * DISTINCT_PER_100
    is_code = symbols * 100 > len(text) * SYMBOLS_PER_100 or mixed * 100 > len(words) * MIXED_PER_100
    return not is_code and not repeats
