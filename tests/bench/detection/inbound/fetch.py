"""Fetches the packages of sources.toml into a folder, each checked against its digest, and unpacks them there.

Nothing of a package is installed or run. `fetch.py FOLDER --digests` prints what the registries serve, unchecked."""
import hashlib, os, pathlib, re, shutil, subprocess, sys, tempfile, tomllib, zipfile

HERE = pathlib.Path(__file__).parent


def sources(listed=HERE / "sources.toml"):
    return tomllib.loads(listed.read_text(encoding="utf-8"))["source"]


def folder_of(work, source):
    return work / "sources" / f"{source['registry']}-{source['name'].strip('@').replace('/', '-')}-{source['version']}"


def key(source):
    return source["name"], source["version"]


def normalized(name):
    """The name of a Python project for comparison (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def of_pypi(wanted, into):
    named = [f"{source['name']}=={source['version']}" for source in wanted]
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--dest", into, *named], check=True)
    wheels = {normalized(wheel.name.split("-")[0]): wheel for wheel in into.glob("*.whl")}
    return {key(source): wheels[normalized(source["name"])] for source in wanted}


def of_npm(wanted, into):
    named = [f"{source['name']}@{source['version']}" for source in wanted]
    subprocess.run(["npm", "pack", "--silent", "--pack-destination", into, *named], check=True, stdout=subprocess.DEVNULL)
    return {key(source): into / f"{source['name'].strip('@').replace('/', '-')}-{source['version']}.tgz" for source in wanted}


def of_crates(wanted, into):
    """cargo fetches what a package depends on, so there is one that depends on these."""
    (into / "src").mkdir()
    (into / "src" / "lib.rs").write_text("")
    lines = [f'{source["name"]} = {{ version = "={source["version"]}", default-features = false }}' for source in wanted]
    head = '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n[dependencies]\n'
    (into / "Cargo.toml").write_text(head + "\n".join(lines) + "\n")
    home = into / "home"
    subprocess.run(["cargo", "fetch", "--quiet", "--manifest-path", into / "Cargo.toml"], check=True, env=os.environ | {"CARGO_HOME": str(home)})
    return {key(source): next(home.glob(f"registry/cache/*/{source['name']}-{source['version']}.crate")) for source in wanted}


def of_debian(wanted, into):
    named = [f"{source['name']}={source['version']}" for source in wanted]
    subprocess.run(["apt-get", "download", "-qq", *named], check=True, cwd=into)
    return {key(source): next(into.glob(f"{source['name']}_*.deb")) for source in wanted}


def unpack(package, into):
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            archive.extractall(into)
    elif package.suffix == ".deb":
        subprocess.run(["dpkg-deb", "--extract", package, into], check=True)
    else:
        into.mkdir()
        subprocess.run(["tar", "--extract", "--gzip", "--file", package, "--directory", into], check=True)


def fetch(work, digests=False, listed=None):
    """Those of sources.toml, or others that are `listed` in the same way."""
    (work / "sources").mkdir(parents=True, exist_ok=True)
    for registry, get in (("pypi", of_pypi), ("npm", of_npm), ("crates", of_crates), ("debian", of_debian)):
        wanted = [source for source in listed or sources() if source["registry"] == registry and not folder_of(work, source).exists()]
        if not wanted:
            continue
        with tempfile.TemporaryDirectory(dir=work) as loading:
            loading = pathlib.Path(loading)
            packages = get(wanted, loading)
            for source in wanted:
                found = hashlib.sha256(packages[key(source)].read_bytes()).hexdigest()
                if digests:
                    print(source["name"], source["version"], found)
                elif found != source["sha256"]:
                    sys.exit(f"{source['name']} {source['version']}: sha256 {found}, expected {source['sha256']}")
                unpack(packages[key(source)], loading / "unpacked")
                shutil.move(loading / "unpacked", folder_of(work, source))


if __name__ == "__main__":
    fetch(pathlib.Path(sys.argv[1]), "--digests" in sys.argv)
