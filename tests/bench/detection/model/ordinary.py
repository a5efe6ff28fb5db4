"""Ordinary documents out of packages: manuals, READMEs, pages, source files, translated messages."""
import collections, gzip, html, random, re, struct

MOST = {"prose": 250, "page": 90, "catalog": 90, "code": 50}
CHARS = 7000
# Parts of a long file.
PARTS = 2
KINDS = {
    "prose": re.compile(r"\.(?:md|markdown|txt|rst|adoc|po|xhtml|docbook)$|games/fortunes/[^.]+(?:\.fortunes)?$|\.page$|\.[1-9](?:\.gz)?$|(?:README|NEWS|FAQ)[^/]*$"),
    "page": re.compile(r"\.(?:html?|json|ya?ml)(?:\.gz)?$"),
    "catalog": re.compile(r"\.mo$"),
    "code": re.compile(r"\.(?:[mc]?js|tsx?|vue|pyi?|rs|css|toml|sh|xml|csv)$"),
}


def prose(name, text):
    """The text of a file, roughly without its markup."""
    if re.search(r"\.[1-9](?:\.gz)?$", name):
        text = re.sub(r"(?m)^\.\\\".*\n|\\f(?:\[\w+\]|.)|\\[&c]", "", text)
        return re.sub(r"(?m)^[.'](\w+)[ \t]*", " ", text).replace("\\-", "-")
    if name.endswith(".po"):
        return "\n\n".join(re.findall(r'(?m)^msgstr "(.+)"$', text))
    if re.search(r"\.(?:x?html?|page|docbook)(?:\.gz)?$", name):
        text = re.sub(r"(?is)<(script|style).*?</\1>", " ", text)
        return re.sub(r"[ \t]*\n[ \t]*", "\n", html.unescape(re.sub(r"<[^>]+>", " ", text)))
    return text


def messages(catalog):
    """The translations of a compiled message catalog (GNU gettext manual, "The Format of GNU MO Files")."""
    order = "<" if catalog[:4] == struct.pack("<I", 0x950412DE) else ">"
    count, _, table = struct.unpack_from(order + "3I", catalog, 8)
    places = [struct.unpack_from(order + "2I", catalog, table + 8 * number) for number in range(count)]
    # The first one is the head of the catalog.
    return b"\n\n".join(catalog[start : start + length] for length, start in places[1:]).replace(b"\0", b"\n\n")


def documents(folder):
    """A repeatable random selection of files of each kind, and parts of each long file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    chance = random.Random(folder.name)
    chance.shuffle(files)
    so_far = collections.Counter()
    for path in files:
        name = str(path.relative_to(folder))
        kind = next((kind for kind, names in KINDS.items() if names.search(name)), None)
        if kind is None or so_far[kind, path.suffix] >= MOST[kind]:
            continue
        try:
            with gzip.open(path) if name.endswith(".gz") else open(path, "rb") as file:
                content = file.read(500_000)
            text = prose(name, (messages(content) if kind == "catalog" else content).decode())
        except (OSError, UnicodeDecodeError, EOFError, struct.error):
            continue
        if len(text) < 200 or "\0" in text:
            continue
        so_far[kind, path.suffix] += 1
        parts = min(len(text) // CHARS, PARTS) or 1
        room = len(text) // parts
        for part in range(parts):
            start = part * room + (chance.randrange(room - CHARS) if room > CHARS else 0)
            yield text[start : start + CHARS]
