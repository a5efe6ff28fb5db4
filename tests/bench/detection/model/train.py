#!/usr/bin/env python3
"""Trains the weights of `src/detect/model/`, and says what they are worth on sources that they were not trained on.

    pip install numpy
    python3 train.py --cache DIR --out ../../../../src/detect/model/weights.bin   # fetches what sources.py names
    python3 train.py --cache DIR --held-out                                       # leaves each family of attacks out in turn

The same packages give the same bytes: only sums, products and comparisons of IEEE 754 numbers, in a fixed order.
"""

import argparse
import hashlib
import struct
import sys

import numpy as np

import corpus
import features
import sources

NAME = "2026-11-22"
# A run of words counts only when so many families of attacks use it.
LEAST_FAMILIES = 2
# Of a source of attacks so many bytes are read: templates of jailbreaks are long, and all alike.
ATTACK_BYTES = 200_000
ROUNDS = 150
RIDGE = 1e-4
# Attacks weigh so much of what ordinary texts weigh. Within each, a source weighs as the root of its size.
ATTACK_SHARE = 0.5
# Points begin at this score, and so many go to a score of 1.
FIRST = 1.0
POINTS = 20
FRACTION = 16
MAGIC = b"lychgate weights 1\n"


def family(name):
    return next((family for family in ("atr", "bastion") if name.startswith(family)), name)


def read(cache):
    """Source, whether it is attacks, and its windows."""
    for attacks, listed, most in ((True, sources.ATTACKS, ATTACK_BYTES), (False, sources.BENIGN, corpus.MOST_BYTES)):
        for source in listed:
            texts = corpus.texts(source, cache, most)
            windows = [window for text in texts for window in features.windows(text)]
            print("%-40s %6d texts %7d windows" % (source[0], len(texts), len(windows)), file=sys.stderr)
            yield source[0], attacks, windows


def train(read_sources, held=()):
    """Hashes, weights, and the score of nothing: a support vector machine with squared loss, by accelerated descent."""
    kept = [(name, attacks, windows) for name, attacks, windows in read_sources if windows and not (attacks and family(name) in held)]
    hashes = known(kept)
    rows = [window for _, _, windows in kept for window in windows]
    sign = np.concatenate([np.full(len(windows), 1.0 if attacks else -1.0) for _, attacks, windows in kept])
    weigh = np.concatenate([np.full(len(windows), len(windows) ** -0.5) for _, _, windows in kept])
    weigh[sign > 0] *= ATTACK_SHARE / weigh[sign > 0].sum()
    weigh[sign < 0] *= 1 / weigh[sign < 0].sum()
    row = np.repeat(np.arange(len(rows)), [len(window) for window in rows])
    column = np.searchsorted(hashes, np.concatenate(rows))
    column[column == len(hashes)] = 0
    there = hashes[column] == np.concatenate(rows)
    row, column = row[there], column[there]
    many, wide = len(rows), len(hashes)
    busy = np.bincount(row, minlength=many)
    step = 1 / (2 * np.bincount(column, weights=weigh[row] * busy[row], minlength=wide) + RIDGE)
    weights, ahead, bias, bias_ahead, pace = np.zeros(wide), np.zeros(wide), -0.5, -0.5, 1.0
    for _ in range(ROUNDS):
        score = np.bincount(row, weights=ahead[column], minlength=many) + bias_ahead
        slope = -2 * weigh * sign * np.maximum(0, 1 - sign * score)
        new = ahead - step * 0.5 * (np.bincount(column, weights=slope[row], minlength=wide) + RIDGE * ahead)
        new_bias = bias_ahead - 0.2 * np.cumsum(slope)[-1]
        next_pace = (1 + (1 + 4 * pace * pace) ** 0.5) / 2
        ahead = new + (pace - 1) / next_pace * (new - weights)
        bias_ahead = new_bias + (pace - 1) / next_pace * (new_bias - bias)
        weights, bias, pace = new, new_bias, next_pace
    return hashes, weights, bias


def known(kept):
    """The hashes that enough families use, in order."""
    families = {}
    for name, attacks, windows in kept:
        if attacks:
            families.setdefault(family(name), []).extend(windows)
    each = [np.unique(np.concatenate(windows)) for windows in families.values()]
    hashes, count = np.unique(np.concatenate(each), return_counts=True)
    return hashes[(count >= LEAST_FAMILIES) & (hashes > 0)]


def packed(hashes, weights, bias):
    """The file that `src/detect/model/file.rs` reads."""
    most = np.abs(weights).max()
    small = np.rint(weights / most * 127).astype(np.int8)
    hashes, small = hashes[small != 0], small[small != 0]
    fixed = [min(0, round((bias - FIRST) * POINTS * (1 << FRACTION))), round(most / 127 * POINTS * (1 << FRACTION))]
    body = MAGIC + NAME.encode().ljust(16) + struct.pack("<qqI", *fixed, len(hashes)) + hashes.astype("<u4").tobytes() + small.tobytes()
    return body + hashlib.sha256(body).digest()


def held_out(read_sources):
    """How many windows of a family score above what 1, 0.5 and 0.1 % of ordinary windows reach, trained without the family."""
    for left_out in sorted({family(name) for name, attacks, _ in read_sources if attacks}):
        # Every fifth ordinary source is kept for the measure.
        trained = [source for at, source in enumerate(read_sources) if source[1] or at % 5]
        model = train(trained, held=(left_out,))
        tried = [window for at, (_, attacks, windows) in enumerate(read_sources) if not attacks and at % 5 == 0 for window in windows]
        bar = np.sort([score(model, window) for window in tried])[::-1]
        found = [score(model, window) for name, attacks, windows in read_sources if attacks and family(name) == left_out for window in windows]
        shares = ["%5.1f" % (100 * np.mean(np.array(found) > bar[int(len(bar) * part)])) for part in (0.01, 0.005, 0.001)]
        print("%-24s %5d windows: %s %% at 1, 0.5, 0.1 %% of %d ordinary ones" % (left_out, len(found), " ".join(shares), len(bar)))


def score(model, window):
    hashes, weights, bias = model
    at = np.searchsorted(hashes, window)
    at[at == len(hashes)] = 0
    return weights[at][hashes[at] == window].sum() + bias


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cache", required=True, help="where fetched packages are kept")
    options.add_argument("--out", help="the file of weights to write")
    options.add_argument("--held-out", action="store_true", help="leave each family out in turn")
    options = options.parse_args()
    read_sources = list(read(options.cache))
    if options.held_out:
        held_out(read_sources)
    if options.out:
        made = packed(*train(read_sources))
        with open(options.out, "wb") as file:
            file.write(made)
        print("%s: %d bytes, sha256 %s" % (options.out, len(made), hashlib.sha256(made).hexdigest()))


if __name__ == "__main__":
    main()
