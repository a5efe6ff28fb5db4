"""The samples of this folder as records: {id, class, kind, technique, tool_name, arguments[, allowed_roots]}."""
import base64, gzip, json, pathlib, random, string, urllib.parse, zlib

HERE = pathlib.Path(__file__).parent / "samples"
# Ways in which servers take commands: the tool, and what its arguments look like.
SHELLS = [
    ("run_command", lambda text: {"command": text}),
    ("bash", lambda text: {"command": text, "timeout": 30}),
    ("execute", lambda text: {"cmd": text}),
    ("terminal", lambda text: {"input": text}),
    ("shell", lambda text: {"command": ["bash", "-lc", text]}),
    ("start_process", lambda text: {"command": text, "timeout_ms": 1000}),
    ("ssh_exec", lambda text: {"host": "web1", "commands": [text]}),
    ("run_steps", lambda text: {"steps": [{"name": "one", "run": text}]}),
]
POWERSHELLS = [("powershell", lambda text: {"command": text}), ("run_powershell", lambda text: {"script": text})]


def blocks(name):
    """Each sample of a file with its heading."""
    heading = None
    for line in (HERE / name).read_text(encoding="utf-8").split("\n"):
        if line.startswith("== "):
            heading = line[3:].split()
        elif heading and line.strip():
            yield heading, line.replace("⏎", "\n")


def commands():
    for number, ((klass, technique, reader), text) in enumerate(blocks("commands.txt")):
        if reader in ("python", "javascript"):
            tool, arguments = "execute_code", {"language": reader, "code": text}
        else:
            shapes = POWERSHELLS if reader == "powershell" else SHELLS
            tool, shape = shapes[number % len(shapes)]
            arguments = shape(text)
        yield {"class": klass, "kind": "command", "technique": technique, "tool_name": tool, "arguments": arguments, "text": text, "reader": reader}
    for (klass, technique, where), text in blocks("mentions.txt"):
        tool, argument = where.split(".")
        yield {"class": klass, "kind": "command", "technique": technique, "tool_name": tool, "arguments": {argument: text}, "text": text, "reader": "text"}


def places():
    roots = ["/srv/project", "~/work"]
    for (klass, technique, where), text in blocks("places.txt"):
        tool, argument = where.split(".")
        arguments = {argument: text} | ({"content": "x"} if tool.startswith("write") else {})
        record = {"class": klass, "kind": technique.split(".")[0], "technique": technique, "tool_name": tool, "arguments": arguments}
        yield record | ({"allowed_roots": roots} if technique.startswith("path") else {})


ALNUM, HEX, LOWER, UPPER = string.ascii_letters + string.digits, "0123456789abcdef", string.ascii_lowercase + string.digits, string.ascii_uppercase + string.digits


def github(rng, prefix):
    """GitHub's tokens end in a CRC-32 of the 30 characters before it, in base 62."""
    body = "".join(rng.choice(ALNUM) for _ in range(30))
    digits, crc = string.digits + string.ascii_uppercase + string.ascii_lowercase, zlib.crc32(body.encode())
    check = ""
    for _ in range(6):
        crc, digit = divmod(crc, 62)
        check = digits[digit] + check
    return prefix + body + check


def jwt(rng, of):
    part = lambda data: base64.urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip("=")
    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part({'sub': of(8, string.digits), 'iat': 1790000000})}.{of(43, ALNUM)}"


# Shapes as their issuers document them; every value is drawn anew and was never issued.
PROVIDERS = {
    "aws-key-id": lambda r, of: "AKIA" + of(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    "aws-secret": lambda r, of: "aws_secret_access_key = " + of(40, ALNUM + "+/"),
    "github-pat": lambda r, of: github(r, "ghp_"),
    "github-fine": lambda r, of: "github_pat_" + of(22, ALNUM) + "_" + of(59, ALNUM),
    "gitlab": lambda r, of: "glpat-" + of(20, ALNUM + "-_"),
    "slack-bot": lambda r, of: f"xoxb-{of(12, string.digits)}-{of(12, string.digits)}-{of(24, ALNUM)}",
    "slack-hook": lambda r, of: f"https://hooks.slack.com/services/T{of(8, UPPER)}/B{of(8, UPPER)}/{of(24, ALNUM)}",
    "discord-hook": lambda r, of: f"https://discord.com/api/webhooks/{of(18, string.digits)}/{of(68, ALNUM + '-_')}",
    "stripe": lambda r, of: "sk_live_" + of(24, ALNUM),
    "stripe-restricted": lambda r, of: "rk_live_" + of(24, ALNUM),
    "openai": lambda r, of: "sk-proj-" + of(74, ALNUM + "-_") + "T3BlbkFJ" + of(74, ALNUM + "-_"),
    "anthropic": lambda r, of: "sk-ant-api03-" + of(93, ALNUM + "-_") + "AA",
    "google-api": lambda r, of: "AIza" + of(35, ALNUM + "-_"),
    "google-oauth": lambda r, of: "GOCSPX-" + of(28, ALNUM + "-_"),
    "npm": lambda r, of: github(r, "npm_"),
    "pypi": lambda r, of: "pypi-AgEIcHlwaS5vcmc" + of(80, ALNUM + "-_"),
    "sendgrid": lambda r, of: f"SG.{of(22, ALNUM + '-_')}.{of(43, ALNUM + '-_')}",
    "mailgun": lambda r, of: "key-" + of(32, HEX) + " for mailgun",
    "twilio": lambda r, of: "SK" + of(32, HEX),
    "digitalocean": lambda r, of: "dop_v1_" + of(64, HEX),
    "heroku": lambda r, of: "HRKU-AA" + of(58, ALNUM + "-_"),
    "shopify": lambda r, of: "shpat_" + of(32, HEX),
    "square": lambda r, of: "EAAA" + of(60, ALNUM + "-_"),
    "telegram": lambda r, of: f"{of(9, '123456789')}:AA{of(33, ALNUM + '-_')}",
    "hashicorp-vault": lambda r, of: "hvs." + of(95, ALNUM + "-_"),
    "terraform-cloud": lambda r, of: of(14, ALNUM) + ".atlasv1." + of(64, ALNUM),
    "huggingface": lambda r, of: "hf_" + of(34, string.ascii_letters),
    "linear": lambda r, of: "lin_api_" + of(40, ALNUM),
    "notion": lambda r, of: "ntn_" + of(11, string.digits) + of(35, ALNUM),
    "doppler": lambda r, of: "dp.pt." + of(43, ALNUM),
    "planetscale": lambda r, of: "pscale_tkn_" + of(43, ALNUM + "-_"),
    "postman": lambda r, of: f"PMAK-{of(24, HEX)}-{of(34, HEX)}",
    "pulumi": lambda r, of: "pul-" + of(40, HEX),
    "grafana": lambda r, of: "glsa_" + of(32, ALNUM) + "_" + of(8, HEX),
    "new-relic": lambda r, of: "NRAK-" + of(27, UPPER),
    "databricks": lambda r, of: "dapi" + of(32, HEX),
    "cloudflare": lambda r, of: "CLOUDFLARE_API_TOKEN=" + of(40, ALNUM + "-_"),
    "datadog": lambda r, of: "DD_API_KEY=" + of(32, HEX),
    "azure-storage": lambda r, of: f"DefaultEndpointsProtocol=https;AccountName=acct;AccountKey={base64.b64encode(r.randbytes(64)).decode()};EndpointSuffix=core.windows.net",
    "azure-sas": lambda r, of: f"https://acct.blob.core.windows.net/c?sv=2024-11-04&sp=rwdl&sig={urllib.parse.quote(base64.b64encode(r.randbytes(32)).decode())}",
    "jwt": jwt,
    "private-key": lambda r, of: f"-----BEGIN RSA PRIVATE KEY-----\n{base64.b64encode(r.randbytes(300)).decode()}\n-----END RSA PRIVATE KEY-----",
    "openssh-key": lambda r, of: f"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA{base64.b64encode(r.randbytes(200)).decode()}\n-----END OPENSSH PRIVATE KEY-----",
    "pgp-key": lambda r, of: f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{base64.b64encode(r.randbytes(200)).decode()}\n-----END PGP PRIVATE KEY BLOCK-----",
    "postgres-url": lambda r, of: f"postgres://app:{of(16, ALNUM)}@db.example.com:5432/app",
    "mongodb-url": lambda r, of: f"mongodb+srv://root:{of(18, ALNUM)}@c0.abcde.mongodb.net/x",
    "redis-url": lambda r, of: f"redis://:{of(24, ALNUM)}@cache.example.com:6379/0",
    "basic-header": lambda r, of: "Authorization: Basic " + base64.b64encode(("svc:" + of(16, ALNUM)).encode()).decode(),
    "bearer-header": lambda r, of: "Authorization: Bearer " + of(40, ALNUM),
    "netrc": lambda r, of: f"machine git.example.com login ci password {of(20, ALNUM)}",
    "dotenv": lambda r, of: f"DB_PASSWORD={of(14, ALNUM)}!x9\nSESSION_SECRET={of(48, HEX)}",
    "yaml-password": lambda r, of: f"database:\n  user: app\n  password: {of(18, ALNUM)}",
    "cli-flag": lambda r, of: f"deploy --api-key {of(32, ALNUM)} --env prod",
    "htpasswd": lambda r, of: f"admin:$apr1${of(8, ALNUM)}${of(22, ALNUM + './')}",
    "shadow": lambda r, of: f"root:$6${of(16, ALNUM)}${of(86, ALNUM + './')}:19000:0:99999:7:::",
    "age-key": lambda r, of: "AGE-SECRET-KEY-1" + of(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),
    "service-account": lambda r, of: json.dumps({"type": "service_account", "private_key_id": of(40, HEX), "client_email": "x@y.iam.gserviceaccount.com", "private_key": "-----BEGIN PRIVATE KEY-----\n" + of(120, ALNUM + "+/") + "\n-----END PRIVATE KEY-----\n"}),
}
WRAPPINGS = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(("x:" + text).encode()).decode().rstrip("="),
    "hex": lambda text: text.encode().hex(),
    "url": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "reversed": lambda text: text[::-1],
    "twice": lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
    "gzip": lambda text: base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode(),
}
LOOK_ALIKES = {
    "uuid": lambda r, of: f"{of(8, HEX)}-{of(4, HEX)}-4{of(3, HEX)}-a{of(3, HEX)}-{of(12, HEX)}",
    "git-sha": lambda r, of: "Merge commit " + of(40, HEX),
    "sha256": lambda r, of: f"sha256:{of(64, HEX)}  image.tar",
    "lock-file": lambda r, of: '"integrity": "sha512-' + base64.b64encode(r.randbytes(64)).decode() + '"',
    "placeholder": lambda r, of: r.choice(["API_KEY=your-api-key-here", "export TOKEN=<your token>", "password: changeme", "AWS_SECRET_ACCESS_KEY=${AWS_SECRET}", "token = os.environ['TOKEN']", "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "AKIAIOSFODNN7EXAMPLE", "ghp_" + "x" * 36, "Authorization: Bearer $TOKEN", "secretKeyRef: { name: db, key: password }"]),
    "image": lambda r, of: "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA" + base64.b64encode(r.randbytes(600)).decode(),
    "public-key": lambda r, of: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + base64.b64encode(r.randbytes(31)).decode() + " me@host",
    "certificate": lambda r, of: f"-----BEGIN CERTIFICATE-----\n{base64.b64encode(r.randbytes(400)).decode()}\n-----END CERTIFICATE-----",
    "etag": lambda r, of: f'etag: "{of(32, HEX)}"',
    "ethereum": lambda r, of: "send it to 0x" + of(40, HEX),
    "pod": lambda r, of: f"kubectl logs web-{of(10, LOWER)}-{of(5, LOWER)}",
    "prose": lambda r, of: r.choice(["The password policy asks for 12 characters.", "Rotate the API key every 90 days, see the handbook.", "token bucket with 100 requests a minute", "Forgot your password? Click here.", "The secret of good tests is small steps."]),
    "code": lambda r, of: r.choice(["const token = await getToken(user.id);", "password = getpass.getpass()", "if (apiKey === undefined) throw new Error('no key')", "secret_name = config.get('secret_name')", "let auth_token: Option<String> = None;"]),
}
CARRIERS = [
    ("http_request", lambda text: {"method": "POST", "url": "https://api.example.com/in", "body": text}),
    ("send_message", lambda text: {"channel": "#dev", "text": f"see: {text}"}),
    ("write_file", lambda text: {"path": "notes/a.txt", "content": text + "\n"}),
    ("run_command", lambda text: {"command": "echo '" + text.replace("'", "'\\''") + "' >> out.txt"}),
]


def secrets():
    rng = random.Random(20261122)
    of = lambda count, letters: "".join(rng.choice(letters) for _ in range(count))
    number = 0
    for klass, table in (("dangerous", PROVIDERS), ("harmless", LOOK_ALIKES)):
        for name, make in table.items():
            for _ in range(4):
                tool, shape = CARRIERS[number % len(CARRIERS)]
                number += 1
                text = make(rng, of)
                plain = "secret.plain" if klass == "dangerous" else f"look-alike.{name}"
                yield {"class": klass, "kind": "secret", "technique": plain, "of": name, "tool_name": tool, "arguments": shape(text), "text": text}
            if klass == "dangerous":
                for wrapping, wrap in WRAPPINGS.items():
                    tool, shape = CARRIERS[number % len(CARRIERS)]
                    number += 1
                    text = wrap(make(rng, of))
                    yield {"class": klass, "kind": "secret", "technique": f"secret.{wrapping}", "of": name, "tool_name": tool, "arguments": shape(text), "text": text}


def all_records():
    for number, record in enumerate([*commands(), *places(), *secrets()]):
        yield {"id": f"s{number}"} | record


if __name__ == "__main__":
    for record in all_records():
        print(json.dumps(record, ensure_ascii=False))
