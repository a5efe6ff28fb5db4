"""The samples: attacks, harmless documents and texts about attacks, out of the packages that fetch.py has unpacked.

`records.py FOLDER` writes FOLDER/samples.jsonl: {id, class, source, kind, text[, plain, format, payload, lang, disguise, of]}; the same every
time. `kind` is the technique of an attack and the kind of document of the rest, `plain` an attack's words without what stands around
them, `payload` what must not reach an agent, flagged or not."""
import ast, hashlib, itertools, json, pathlib, re, sys

from disguise import DISGUISES, disguised
from fetch import folder_of, sources
from literals import classes, docstrings, spread, strings

HERE, LONGEST = pathlib.Path(__file__).parent, 16_000
MARK = "<|attack|>"


class Sources:
    def __init__(self, work):
        self.folders = {source["name"]: folder_of(work, source) for source in sources()}

    def __getitem__(self, name):
        return self.folders[name]

    def files(self, name, pattern):
        return sorted(path for path in self[name].glob(pattern) if path.is_file())

    def texts(self, name, pattern, count):
        """Of so many files, the text, cut at a line where it is very long."""
        for path in spread(self.files(name, pattern), count):
            text = path.read_bytes().decode("utf-8", "replace").replace("\0", "")
            text = text if len(text) <= LONGEST else text[:LONGEST].rsplit("\n", 1)[0]
            if len(text) >= 80:
                yield text


def jsonl(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


# Attacks.


def agentdojo_goals(of):
    for path in of.files("agentdojo", "agentdojo/default_suites/v1/*/injection_tasks.py"):
        for _, _, known, _ in classes(path):
            if isinstance(known.get("GOAL"), str):
                yield known["GOAL"]


def agentdojo_templates(of):
    for path in of.files("agentdojo", "agentdojo/attacks/*_attacks.py"):
        for _, _, known, node in classes(path):
            # The docstring describes the attack.
            texts = (text for text in strings(node) if text != ast.get_docstring(node, clean=False))
            template = next((text for text in [known.get("_JB_STRING"), *texts] if text and "{goal}" in text and "{tools}" not in text), None)
            if template and "name" in known and not known["name"].startswith(("important_instructions_", "tool_knowledge", "manual")):
                yield known["name"].replace("_", " "), template


def agentdojo_places(of):
    """Parts of the environments' files around each place where an attacker may write."""
    for path in of.files("agentdojo", "agentdojo/data/suites/**/*.yaml"):
        lines = path.read_text(encoding="utf-8").split("\n")
        for number, text in enumerate(lines):
            if path.name != "injection_vectors.yaml" and (place := re.search(r"\{\w*injection\w*\}", text)):
                window = [re.sub(r"\{\w*injection\w*\}", "", other) for other in lines[max(0, number - 8) : number + 9]]
                window[min(number, 8)] = text.replace(place[0], MARK)
                yield "\n".join(window)


def agentdojo(of):
    places = itertools.cycle(list(agentdojo_places(of)))
    goals = list(dict.fromkeys(agentdojo_goals(of)))
    for (name, template), goal in itertools.product(agentdojo_templates(of), goals):
        words = template.replace("{goal}", goal).replace("{user}", "Emma Johnson").replace("{model}", "AI assistant")
        yield {"kind": name, "plain": words.strip(), "text": next(places).replace(MARK, words)}


def garak(of):
    path = of["garak"] / "garak/probes/latentinjection.py"
    known = {name: (bases, names) for name, bases, names, _ in classes(path)}
    payloads = lambda name: json.loads((of["garak"] / f"garak/data/payloads/{name}.json").read_text())["payloads"]
    places = {"LatentWhois": [text.replace("{INJECTION_MARKER}", "<|garak_injection|>") for text in payloads("whois_injection_contexts")[:6]]}
    for name, (bases, own) in known.items():
        inherited = {}
        for base in reversed(bases):
            inherited |= known[base][1] if base in known else {}
        names = inherited | own
        contexts = names.get("contexts") or places.get(name)
        if isinstance(names.get("paragraphs"), list):
            contexts = ["\n".join(names["paragraphs"][:2] + ["<|garak_injection|>"] + names["paragraphs"][2:4])]
        triggers = names.get("payload_triggers") or payloads("domains_latentinjection")
        # What LatentJailbreak hides is a request for something hateful, no order against the agent's user.
        if name.startswith("LatentJailbreak") or not (name.startswith("Latent") and isinstance(contexts, list) and contexts and names.get("injection_instructions")):
            continue
        parts = itertools.product(contexts, names.get("injection_sep_pairs", [["", ""]]), names["injection_instructions"], names.get("payloads", ["<|garak_trigger|>"]), triggers)
        for context, (before, after), order, payload, trigger in spread(parts, 25):
            words = before + order.replace("<|garak_payload|>", payload).replace("<|garak_trigger|>", trigger) + after
            kind = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.removeprefix("LatentInjection").removeprefix("Latent").removesuffix("Full")).lower()
            yield {"kind": kind, "plain": words.strip(), "text": context.replace("<|garak_injection|>", words)}


def spikee(of):
    folder = of["spikee"] / "spikee/data/workspace/datasets/seeds-cybersec-2026-01"
    orders, templates, documents = (jsonl(folder / f"{name}.jsonl") for name in ("instructions", "jailbreaks", "base_user_inputs"))
    documents = [document for document in documents if len(document["document"]) > 100]
    for number, template in enumerate(templates):
        # Some are in Irish, Gaelic, Albanian or Zulu.
        rare = "lang" in template
        fitting = [order for order in orders if ("lang" in order) == rare]
        for turn in range(3):
            order = fitting[(number * 3 + turn) % len(fitting)]
            document = documents[(number + turn) % len(documents)]["document"]
            words = template["text"].replace("<INSTRUCTION>", order["instruction"])
            lines = document.split("\n")
            middle = len(lines) // 2
            text = "\n".join(lines[:middle] + [words] + lines[middle:]) if middle else f"{document}\n\n{words}"
            kind = template["jailbreak_type"].replace("-", " ")
            yield {"kind": kind, "plain": words, "text": text} | ({"source": "spikee, rare languages"} if rare else {})


def agent_benches(of):
    folder = of["inspect-evals"] / "inspect_evals"
    for name in ("autonomy_hijack", "data_exfil", "memory_poison"):
        for sample in json.loads((folder / f"agent_threat_bench/data/{name}.json").read_text(encoding="utf-8")):
            document = sample.get("inbox") or sample.get("customer_db") or sample.get("memory_store")
            yield {"kind": name.replace("_", " "), "text": json.dumps(document, ensure_ascii=False, indent=1)}
    for sample in json.loads((folder / "ipi_coding_agent/dataset/samples.json").read_text(encoding="utf-8")):
        files = "\n".join(f"==> {path} <==\n{text}" for path, text in sample["repo_files"].items())
        text = sample["issue_text"] if sample["injection_vector"] == "issue_text" else files
        if sample["is_benign"]:
            yield {"class": "benign", "kind": "issues and files of a repository", "text": f"{sample['issue_text']}\n\n{files}"}
        else:
            yield {"kind": f"coding agent: {sample['payload_sophistication']}", "text": text}


def bastioncorpus(of):
    for sample in jsonl(of["bastioncorpus"] / "bastioncorpus/corpus/injections.jsonl"):
        attack = sample["label"] == "malicious"
        kind = sample["category"].replace("_", " ") if attack else "near misses"
        plain = {"plain": sample["text"]} if attack and sample["category"] != "obfuscation" else {}
        yield {"class": "attack" if attack else "benign", "kind": kind, "text": sample["text"], **plain}


ATTACKS = {"agentdojo": agentdojo, "garak": garak, "spikee": spikee, "inspect-evals": agent_benches, "bastioncorpus": bastioncorpus}


# Harmless documents.


def clean_environments(of):
    """The files of AgentDojo with nothing injected, in parts of 40 lines."""
    for path in of.files("agentdojo", "agentdojo/data/suites/**/*.yaml"):
        if path.name != "injection_vectors.yaml":
            lines = re.sub(r"\{\w*injection\w*\}", "", path.read_text(encoding="utf-8")).split("\n")
            yield from ("\n".join(lines[start : start + 40]) for start in range(0, len(lines), 40))


def tool_definitions(of):
    for path in of.files("inspect-evals", "inspect_evals/b3/data/tool_specs/*.json"):
        yield from re.findall(r'"description": "((?:[^"\\]|\\.){40,})"', path.read_text(encoding="utf-8"))
    for server in ("github", "filesystem", "memory"):
        source = (of[f"@modelcontextprotocol/server-{server}"] / "package/dist/index.js").read_text(encoding="utf-8")
        for text in re.findall(r'description: ("(?:[^"\\]|\\.)*"(?:\s*\+\s*"(?:[^"\\]|\\.)*")*)', source):
            yield "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))


def documents(of):
    """(kind, source, texts), with how many at most."""
    for kind, source, pattern, count in [
        ("Markdown documentation", "npm", "package/docs/content/**/*.md", 70),
        ("Markdown documentation", "npm", "package/node_modules/*/README.md", 80),
        ("HTML documentation", "npm", "package/docs/output/**/*.html", 80),
        ("web pages", "readable-readability", "*/**/*.html", 40),
        ("manual pages", "npm", "package/man/**/*", 80),
        ("command-line reference with examples", "awscli", "awscli/**/*.rst", 300),
        ("change logs", "tokio", "*/CHANGELOG.md", 1),
        ("change logs", "mail-parser", "*/CHANGELOG.md", 1),
        ("mails", "mail-parser", "*/resources/**/*.eml", 120),
        ("source code", "npm", "package/lib/**/*.js", 80),
        ("source code", "clap_builder", "*/src/**/*.rs", 60),
        ("source code", "tokio", "*/src/**/*.rs", 80),
        ("source code", "typescript", "package/lib/lib.*.d.ts", 40),
        ("JSON data", "caniuse-db", "package/features-json/*.json", 100),
        ("JSON data", "mdn-data", "package/**/*.json", 20),
        ("JSON data", "world-countries", "package/data/*.geo.json", 20),
        ("JSON and CSV data", "vega_datasets", "vega_datasets/_data/*", 30),
        ("instruction files for agents", "bmad-method", "package/**/*.md", 150),
    ]:
        yield kind, source, of.texts(source, pattern, count)
    for source in ("tokio", "regex"):
        path = of.files(source, "*/CHANGELOG.md")[0]
        yield "change logs", source, spread(parts(path.read_text(encoding="utf-8")), 40)
    yield "mails, files and messages", "agentdojo", clean_environments(of)
    yield "tool definitions", "inspect-evals, @modelcontextprotocol", tool_definitions(of)


def parts(text):
    """A long document by its headings, in parts of some 300 to 4000 characters."""
    part = ""
    for section in re.split(r"(?m)^(?=#{1,4} )", text):
        part += section
        if len(part) >= 300:
            yield part[:4000]
            part = ""


# Texts about attacks.
ABOUT = ["garak", "spikee", "pyatr", "llm-guard", "aicordon", "cisco-ai-mcp-scanner", "ai-injection-guard", "barrikade", "rebuff", "llamafirewall", "bastionprobe", "bastioncorpus", "clawguard-core", "agentdojo"]
WORDS = re.compile(r"inject|jailbreak|poison|malicious|attack", re.IGNORECASE)


def mentions(of):
    for name in ABOUT:
        (path,) = of.files(name, "*.dist-info/METADATA")
        for part in parts(path.read_text(encoding="utf-8").partition("\n\n")[2]):
            yield "what detectors say of themselves", name, part
    for path in of.files("inspect-evals", "inspect_evals/*/README.md"):
        for part in parts(path.read_text(encoding="utf-8")):
            yield "descriptions of benchmarks", "inspect-evals", part
    for path in of.files("garak", "garak/probes/*.py"):
        for text in docstrings(path):
            yield "documentation in code", "garak", text
    rules = json.loads((of["pyatr"] / "pyatr/_bundled_rules.json").read_text(encoding="utf-8"))
    for rule in spread(rules, 150):
        yield "descriptions of rules", "pyatr", f"{rule['title']}\n\n{rule['description']}"


# All of it.


def languages():
    lang = klass = None
    for line in (HERE / "languages.txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith("== "):
            klass, lang = line[3:].split()
        elif klass and line.strip():
            yield {"class": klass, "source": "here", "kind": f"language {lang}", "lang": lang, "text": line}


def records(work):
    of = Sources(work)
    attacks = []
    for source, make in ATTACKS.items():
        for record in make(of):
            attacks.append({"class": "attack", "source": source} | record)
    yield from attacks
    short = {source: [record for record in attacks if record["source"] == source and 60 < len(record.get("plain", "")) < 500] for source in ATTACKS}
    chosen = [record for source, count in (("agentdojo", 12), ("garak", 8), ("spikee", 8), ("bastioncorpus", 12)) for record in spread(short[source], count)]
    for number, record in enumerate(chosen):
        plain = {"class": "attack", "source": "disguised", "kind": "plain words", "plain": record["plain"], "disguise": "plain words", "of": number}
        yield plain | {"text": record["plain"]}
        for name, (group, _) in DISGUISES.items():
            yield plain | {"kind": f"{group}: {name}", "disguise": name} | disguised(name, record["plain"])
    for kind, source, texts in documents(of):
        for text in texts:
            yield {"class": "benign", "source": source, "kind": kind, "text": text} | ({"format": "tool_description"} if kind == "tool definitions" else {})
    for kind, source, text in mentions(of):
        if WORDS.search(text):
            yield {"class": "mention", "source": source, "kind": kind, "text": text}
    yield from languages()


def numbered(work):
    seen = set()
    for record in records(work):
        # The id tells the words, so that one stays the same when others come and go.
        id = hashlib.sha256(json.dumps([record["class"], record["kind"], record["text"]]).encode()).hexdigest()[:8]
        if id not in seen:
            seen.add(id)
            yield {"id": id} | record


if __name__ == "__main__":
    work = pathlib.Path(sys.argv[1])
    with open(work / "samples.jsonl", "w", encoding="utf-8") as out:
        for record in numbered(work):
            out.write(json.dumps(record, ensure_ascii=False) + "\n")
