// The verdicts of cc-safety-net on the commands among the samples.
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { checkCommand } from "cc-safety-net/api";

for (const line of readFileSync(process.argv[2], "utf8").trim().split("\n")) {
  const sample = JSON.parse(line);
  if (sample.kind !== "command" || sample.reader === "text") continue;
  // Code goes to its interpreter as a client's shell tool would hand it over.
  const quoted = `'${sample.text.replaceAll("'", "'\\''")}'`;
  const program = { python: "python3 -c ", javascript: "node -e " }[sample.reader];
  const command = program ? program + quoted : sample.text;
  let verdict;
  try {
    verdict = checkCommand({ command, cwd: tmpdir() }).kind === "deny" ? "block" : "pass";
  } catch {
    verdict = "error";
  }
  console.log(JSON.stringify({ id: sample.id, verdict }));
}
