"""The verdicts of shellfirm on the commands among the samples: a risk that it would ask about counts as caught."""
import json, os, pathlib, subprocess, sys, tempfile

work = pathlib.Path(sys.argv[1])
with tempfile.TemporaryDirectory() as empty, (work / "shellfirm.jsonl").open("w") as out:
    environment = os.environ | {"SHELLFIRM_CONFIG_DIR": empty, "SHELLFIRM_NO_CONTEXT": "1", "HOME": empty}
    for line in (work / "samples.jsonl").read_text().split("\n"):
        sample = json.loads(line) if line else {}
        if sample.get("kind") != "command" or sample["reader"] == "text":
            continue
        # Code goes to its interpreter as a client's shell tool would hand it over.
        program = {"python": "python3 -c ", "javascript": "node -e "}.get(sample["reader"])
        command = program + "'" + sample["text"].replace("'", "'\\''") + "'" if program else sample["text"]
        told = subprocess.run(
            [work / "shellfirm/bin/shellfirm", "check", "--stdin", "--exit-code", "--no-context"],
            input=json.dumps({"command": command}), capture_output=True, text=True, env=environment, cwd=empty,
        )
        verdict = {0: "pass", 10: "ask", 11: "block"}.get(told.returncode, "error")
        print(json.dumps({"id": sample["id"], "verdict": verdict}), file=out)
