"""The verdicts of kingfisher and detect-secrets on the secrets among the samples."""
import json, pathlib, shutil, subprocess, sys

from detect_secrets.core.scan import scan_file
from detect_secrets.settings import default_settings

work = pathlib.Path(sys.argv[1])
samples = [json.loads(line) for line in (work / "samples.jsonl").read_text().split("\n") if line]
samples = [sample for sample in samples if sample["kind"] == "secret"]
folder = work / "secrets"
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir()
for sample in samples:
    # What a scanner reads is a file: the arguments' texts, one below the other.
    (folder / f"{sample['id']}.txt").write_text("\n".join(str(value) for value in sample["arguments"].values()) + "\n")

told = subprocess.run(
    [work / "venv/bin/kingfisher", "scan", folder, "--no-validate", "--format", "json", "--no-update-check", "--confidence", "low"],
    capture_output=True, text=True,
).stdout
found = {sample["id"] for sample in samples if f"/{sample['id']}.txt" in told}
with (work / "kingfisher.jsonl").open("w") as out:
    for sample in samples:
        print(json.dumps({"id": sample["id"], "verdict": "block" if sample["id"] in found else "pass"}), file=out)

with (work / "detect-secrets.jsonl").open("w") as out, default_settings():
    for sample in samples:
        some = any(True for _ in scan_file(str(folder / f"{sample['id']}.txt")))
        print(json.dumps({"id": sample["id"], "verdict": "block" if some else "pass"}), file=out)
