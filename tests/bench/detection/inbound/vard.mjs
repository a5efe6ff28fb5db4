// The verdicts of @andersmyrmel/vard, as detectors.py gives those of others. Only its limit on length is raised.
import { readFileSync } from "node:fs";
import vard from "@andersmyrmel/vard";

const detect = vard().maxLength(1_000_000);
detect.safeParse("warm up");
for (const line of readFileSync(process.argv[2], "utf8").split("\n").filter(Boolean)) {
  const { id, text } = JSON.parse(line);
  const start = process.hrtime.bigint();
  const { safe } = detect.safeParse(text);
  console.log(JSON.stringify({ id, flagged: !safe, us: Number(process.hrtime.bigint() - start) / 1000 }));
}
