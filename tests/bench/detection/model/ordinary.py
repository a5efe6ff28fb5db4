"""Ordinary documents out of packages: manuals, READMEs, pages, source files, translated messages."""
import collections, gzip, html, random, re, struct

MOST = {"messages": 120, "prose": 250, "page": 90, "catalog": 90, "code": 50}
CHARS = 7000
# Parts of a long file.
PARTS = 2
# Documents in English have fewer characters beyond ASCII per 1,000 characters.
BEYOND_ASCII_PER_1000 = 25
# Files of translations, looked for in the packages that are a source of these alone.
MESSAGES = re.compile(
    r"(?:^|/)(?:[\w.-]*l10njson|i18n|l10n|lang\w*|locales?|locali[sz]ation|messages|msg|strings|translations?)/(?:.*/)?[^/]+"
    r"\.(?:arb|ftl|[cm]?js|json|lng|php|properties|strings|ts|txt|ya?ml)$"
)
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


def translations(kind, name, text):
    """The texts of a file of translations: its content, and the translations without their keys."""
    if kind == "messages":
        values = re.findall(r"""[:=]>?\s*(["'])((?:(?!\1)[^\\\n]|\\.)+)\1""", text)
        return [text, "\n\n".join(value for _, value in values)]
    return [prose(name, text)] + ([text] if name.endswith(".po") else [])


def messages(catalog):
    """The translations of a compiled message catalog (GNU gettext manual, "The Format of GNU MO Files")."""
    order = "<" if catalog[:4] == struct.pack("<I", 0x950412DE) else ">"
    count, _, table = struct.unpack_from(order + "3I", catalog, 8)
    places = [struct.unpack_from(order + "2I", catalog, table + 8 * number) for number in range(count)]
    # The first one is the head of the catalog.
    return b"\n\n".join(catalog[start : start + length] for length, start in places[1:]).replace(b"\0", b"\n\n")


def is_translated(text):
    """Whether a document is in another script than English, or has many letters with accents."""
    return sum(letter > "\x7f" for letter in text) * 1000 > len(text) * BEYOND_ASCII_PER_1000


def documents(folder, translations_only=False):
    """A repeatable random selection of files of each kind, and parts of each long file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    chance = random.Random(folder.name)
    chance.shuffle(files)
    so_far = collections.Counter()
    for path in files:
        name = str(path.relative_to(folder))
        kind = next((kind for kind, names in KINDS.items() if names.search(name)), None)
        if translations_only and MESSAGES.search(name):
            kind = "messages"
        if kind is None or so_far[kind, path.suffix] >= MOST[kind]:
            continue
        try:
            with gzip.open(path) if name.endswith(".gz") else open(path, "rb") as file:
                content = file.read(500_000)
            text = (messages(content) if kind == "catalog" else content).decode()
        except (OSError, UnicodeDecodeError, EOFError, struct.error):
            continue
        texts = [text for text in translations(kind, name, text) if is_translated(text)] if translations_only else [prose(name, text)]
        texts = [text for text in texts if len(text) >= 200 and "\0" not in text]
        so_far[kind, path.suffix] += bool(texts)
        for text in texts:
            parts = min(len(text) // CHARS, PARTS) or 1
            room = len(text) // parts
            for part in range(parts):
                start = part * room + (chance.randrange(room - CHARS) if room > CHARS else 0)
                yield text[start : start + CHARS]
