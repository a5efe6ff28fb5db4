"""Counts what each detector caught and what it flagged though harmless, and writes the page of it.

`score.py FOLDER` prints the page; `--page` writes README.md here and the figures of the README at the top; `--check` fails where
either tells something else; `--peers` takes the others' counts anew
from FOLDER; `--page` keeps them, and the times, in measured.json."""
import collections, difflib, hashlib, html, json, pathlib, re, statistics, sys

from fetch import sources

HERE = pathlib.Path(__file__).parent
TOP = HERE.parents[3] / "README.md"
FILES = HERE.parents[1] / "files/sources.toml"
OTHERS = ["picket", "trentina", "mcp-scanner", "vard", "ai-injection-guard", "pyatr"]
# Documents that are orders to a model, and meant to be: told apart from the rest.
ORDERS = "instruction files for agents"
FIRST = ["**all**", "**all others**", "plain words", "**of what is caught in plain words**"]
MARK = "<!-- written by `run --page` -->\n"
TOP_MARKS = ("<!-- figures: tests/bench/detection/inbound/run --page -->\n", "<!-- end of figures -->\n")


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def words(text):
    return re.findall(r"\w+", html.unescape(text).lower())


def gone(payload, text):
    """Whether no five words in a row of it are left."""
    payload, text = words(payload), " " + " ".join(words(text)) + " "
    runs = (payload[start : start + 5] for start in range(max(1, len(payload) - 4)))
    return not any(f" {' '.join(run)} " in text for run in runs)


def groups(sample):
    """(table, row) of each place where a sample counts."""
    kind, source = sample["kind"], sample["source"]
    if sample.get("lang"):
        return [(f"language {sample['class']}", sample["lang"]), (f"language {sample['class']}", "**all**")]
    if sample["class"] == "benign":
        return [("benign", kind)] + ([("benign", "**all others**")] if kind != ORDERS else [])
    if sample["class"] == "mention":
        return [("mention", kind), ("mention", "**all**")]
    if source == "disguised":
        group, _, name = kind.partition(": ")
        return [("disguise", kind)] + ([("disguise", f"**{group}: all**")] if name else [])
    return [("attack", f"{source}: {kind}"), ("attack", f"**{source}: all**"), ("attack", "**all**")]


def counted(samples, verdicts):
    """{table: {row: [caught, of how many, bytes]}} for one detector, on the samples that it judged."""
    tables = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0, 0]))
    caught = {}
    for sample in samples:
        if verdict := verdicts.get(sample["id"]):
            removed = "payload" in sample and isinstance(verdict.get("text"), str) and gone(sample["payload"], verdict["text"])
            caught[sample["id"]] = hit = verdict["flagged"] or removed
            for table, row in groups(sample):
                cell = tables[table][row]
                cell[0], cell[1], cell[2] = cell[0] + hit, cell[1] + 1, cell[2] + len(sample["text"].encode())
    plain = {sample["of"]: caught.get(sample["id"]) for sample in samples if sample["kind"] == "plain words"}
    of_caught = [caught[sample["id"]] for sample in samples if sample["source"] == "disguised" and sample["kind"] != "plain words" and sample["id"] in caught and plain.get(sample["of"])]
    tables["disguise"]["**of what is caught in plain words**"] = [sum(of_caught), len(of_caught), 0]
    return {table: dict(rows) for table, rows in tables.items()}, caught


def microseconds(samples, verdicts):
    """Per kB of text, at the median, on harmless documents of 1 kB and more."""
    times = [verdicts[sample["id"]]["us"] / (len(sample["text"].encode()) / 1000) for sample in samples if sample["class"] == "benign" and len(sample["text"]) >= 1000 and sample["id"] in verdicts]
    return round(statistics.median(times), 1)


def percent(cell):
    return "–" if not cell or not cell[1] else f"{100 * cell[0] / cell[1]:.1f} %"


def table(name, first, columns, sizes=False):
    rows = sorted(columns["lychgate"][name], key=(lambda row: (row not in FIRST, row.strip("*").replace(": all", ""))))
    head = [first, "samples"] + (["MB"] if sizes else []) + list(columns)
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " --: |" * (len(head) - 1)]
    for row in rows:
        _, count, size = columns["lychgate"][name][row]
        cells = [percent(tables.get(name, {}).get(row)) for tables in columns.values()]
        lines.append(f"| {row} | {count} | " + (f"{size / 1e6:.2f} | " if sizes else "") + " | ".join(cells) + " |")
    return "\n".join(lines)


def short(text, most=110):
    """Text of an attack on a page that models may read, too: cut, in code, its control characters and long tokens taken out."""
    text = re.sub(r"[A-Za-z0-9+/_=-]{24,}", "…", " ".join(text.split()))
    text = "".join(letter if letter.isprintable() else "\N{WHITE SQUARE}" for letter in text).replace("`", "'").replace("|", "\\|")
    return f"`{text[:most]}{'…' if len(text) > most else ''}`"


def misses(samples, caught):
    lines = []
    for title, wrong in [
        ("Attacks that pass", lambda sample: sample["class"] == "attack" and sample["source"] != "disguised" and not sample.get("lang")),
        ("Orders in other languages that pass", lambda sample: sample["class"] == "attack" and sample.get("lang")),
        ("Harmless, and flagged", lambda sample: sample["class"] == "benign"),
        ("About attacks, and flagged", lambda sample: sample["class"] == "mention"),
    ]:
        chosen = [sample for sample in samples if wrong(sample) and caught[sample["id"]] == (sample["class"] != "attack")]
        shown = {}
        for sample in chosen:
            shown.setdefault((sample["source"], sample["kind"]), []).append(sample)
        lines.append(f"### {title}: {len(chosen)}\n\nUp to three of each kind.\n")
        for (source, kind), group in sorted(shown.items()):
            for sample in group[:3]:
                where = kind if source == "here" else f"{source}, {kind}"
                lines.append(f"* {sample['id']} ({where}): {short(sample.get('plain') or sample['text'])}")
        lines.append("")
    return "\n".join(lines)


def page(samples, mine, caught, others, files):
    columns = {"lychgate": mine} | {name: others["tables"][name] for name in OTHERS if name in others["tables"]}
    alarms = lambda name: columns[name]["benign"]["**all others**"]
    text = ["## In short\n", "| | " + " | ".join(columns) + " |", "| --- |" + " --: |" * len(columns)]
    for label, name, row in SUMMARY:
        text.append(f"| {label} | " + " | ".join(percent(tables.get(name, {}).get(row)) for tables in columns.values()) + " |")
    text.append(f"| real files that pass byte for byte | {unchanged(files)} |" + " – |" * (len(columns) - 1))
    text.append("| false alarms per MB of harmless text | " + " | ".join(f"{1e6 * alarms(name)[0] / alarms(name)[2]:.1f}" for name in columns) + " |")
    text.append("| µs per kB of harmless text, median | " + " | ".join(f"{others['microseconds'][name]:,.0f}" for name in columns) + " |")
    text.append("\n## Attacks in plain words, by source and technique\n\n" + table("attack", "technique", columns))
    text.append("\n## The same words in disguise\n\n" + table("disguise", "disguise", columns))
    text.append("\n## Languages\n\nOrders:\n\n" + table("language attack", "language", columns))
    text.append("\nOrdinary sentences, flagged:\n\n" + table("language benign", "language", columns))
    text.append("\n## Harmless documents, flagged\n\n" + table("benign", "kind", columns, sizes=True))
    text.append("\n## Texts about attacks, flagged\n\n" + table("mention", "kind", columns, sizes=True))
    text.append("\n## Real files, as a file tool returns them\n\n" + table_of_files(files))
    text.append("\n## What lychgate gets wrong\n\n" + misses(samples, caught))
    listed = [(source["registry"], source["name"], source["version"]) for source in sources()]
    text.append("## Sources\n\n| package | licence | what is taken | sha256 |\n| --- | --- | --- | --- |")
    text += [f"| {source['registry']}: {source['name']} {source['version']} | {source['licence']} | {source['use']} | {source['sha256'][:16]}… |" for source in sources() + [source for source in sources(FILES) if (source['registry'], source['name'], source['version']) not in listed]]
    text.append(f"\nSamples: {len(samples)}, sha256 {others['samples'][:16]}….")
    return "\n".join(text) + "\n"


SUMMARY = [
    ("attacks in plain words, in documents", "attack", "**all**"),
    ("in code comments, logs, CSV, YAML, JSON, mails", "disguise", "**container: all**"),
    ("encoded", "disguise", "**encoded: all**"),
    ("in other letters", "disguise", "**letters: all**"),
    ("hidden in a page: flagged, or not passed on", "disguise", "**hidden in a page: all**"),
    ("in a tool's definition", "disguise", "**definition: all**"),
    ("disguised, of what is caught in plain words", "disguise", "**of what is caught in plain words**"),
    ("orders in 14 other languages", "language attack", "**all**"),
    ("harmless documents, flagged", "benign", "**all others**"),
    ("instruction files for agents, flagged", "benign", ORDERS),
    ("texts about attacks, flagged", "mention", "**all**"),
]


def unchanged(files):
    """Of real files that a file tool returns, the share that the agent gets byte for byte."""
    share = 100 * (1 - len(files["changed"]) / files["files"])
    return "100 %" if not files["changed"] else f"{share:.2f} %"


def table_of_files(files):
    changed = collections.Counter(entry["kind"] for entry in files["changed"])
    lines = ["| kind | files | changed |", "| --- | --: | --: |", f"| **all** | {files['files']} | {len(files['changed'])} |"]
    lines += [f"| {kind} | {count} | {changed[kind]} |" for kind, count in sorted(files["kinds"].items())]
    lines.append(f"\nOf these, {len(files['faults'])} arrive empty or without a notice. Changed:\n")
    lines += [f"* {entry['file']}: {', '.join(f'`{rule}`' for rule in entry['rules'])}" for entry in files["changed"]] or ["* none"]
    return "\n".join(lines)


def top(columns, files):
    """What the README at the top says of it."""
    lines = ["| inbound | lychgate | others |", "| --- | --: | --: |"]
    for label, name, row in SUMMARY:
        cells = [tables.get(name, {}).get(row) for tables in columns.values()]
        others = [100 * cell[0] / cell[1] for cell in cells[1:] if cell and cell[1]]
        lines.append(f"| {label} | {percent(cells[0])} | {min(others):.1f} to {max(others):.1f} % |")
    share = lambda other, name, row: columns[other][name][row][0] / columns[other][name][row][1]
    best = max(OTHERS, key=lambda other: share(other, "attack", "**all**"))
    of = [f"{100 * share(best, name, row):.1f} %" for name, row in (("attack", "**all**"), ("benign", "**all others**"))]
    lines.append(f"\nOf {files['files']:,} real files that a file tool returns, {unchanged(files)} arrive byte for byte.")
    lines.append(f"\nOf the others, {best} catches most in plain words, {of[0]}, and flags {of[1]} of the harmless documents.")
    return "\n".join(lines) + "\n"


def one_line_each(value):
    """JSON with each row of figures in one line."""
    text = json.dumps(value, indent=0, sort_keys=True)
    return re.sub(r"\[\n([^\[\]{}]*)\n\]", lambda row: f"[{row[1]}]".replace(",\n", ", "), text) + "\n"


def main():
    work, flags = pathlib.Path(sys.argv[1]), set(sys.argv[2:])
    raw = (work / "samples.jsonl").read_bytes()
    samples = [json.loads(line) for line in raw.decode().split("\n") if line]
    by_id = lambda name: {verdict["id"]: verdict for verdict in read(work / f"{name}.jsonl")}
    verdicts = by_id("lychgate")
    if missing := [sample["id"] for sample in samples if sample["id"] not in verdicts]:
        sys.exit(f"no verdict on {len(missing)} samples, {missing[0]} first")
    mine, caught = counted(samples, verdicts)
    digest = hashlib.sha256(raw).hexdigest()
    measured = HERE / "measured.json"
    if "--peers" in flags:
        theirs = {name: by_id(name) for name in OTHERS}
        others = {"samples": digest, "tables": {name: counted(samples, found)[0] for name, found in theirs.items()}}
        others["microseconds"] = {name: microseconds(samples, found) for name, found in theirs.items()} | {"lychgate": 0}
    else:
        others = json.loads(measured.read_text())
    if others["samples"] != digest:
        sys.exit("the samples are not those that the others were run on: tests/bench/detection/inbound/run --peers --page")
    if "--page" in flags:
        others["microseconds"]["lychgate"] = microseconds(samples, verdicts)
        measured.write_text(one_line_each(others))
    files = json.loads((work / "files.json").read_text())
    text = page(samples, mine, caught, others, files)
    figures = top({"lychgate": mine} | others["tables"], files)
    stale = []
    for path, marks, part in [(HERE / "README.md", (MARK, ""), "\n" + text), (TOP, TOP_MARKS, figures)]:
        old = path.read_text(encoding="utf-8")
        head, mark, rest = old.partition(marks[0])
        if not mark:
            sys.exit(f"{path}: the line `{marks[0].strip()}` is not there")
        new = head + mark + part + (marks[1] + rest.partition(marks[1])[2] if marks[1] else "")
        if "--page" in flags:
            path.write_text(new, encoding="utf-8")
        elif new != old:
            stale += difflib.unified_diff(old.split("\n"), new.split("\n"), str(path.relative_to(HERE.parents[3])), "as judged now", n=0, lineterm="")
    if "--check" not in flags:
        print(figures if "--page" in flags else text)
    elif not stale:
        print(f"{len(samples)} samples: the figures are as README.md and tests/bench/detection/inbound/README.md tell them")
    else:
        sys.exit("\n".join(stale[:60]) + "\nthe figures have changed: tests/bench/detection/inbound/run --page")


if __name__ == "__main__":
    main()
