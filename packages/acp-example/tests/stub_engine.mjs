// The local model's endpoint with a stand-in for its engine: what it says is told by what it is asked.

import { listen } from "../local_model/server.mjs";

const engine = {
  name: "stub",
  async generate({ turns, opening = "", schema, sampling, onText }) {
    const asked = turns.at(-1).text;
    if (asked === "fail at once") throw new Error("the engine is ill");
    for (const piece of say(asked, { turns, opening, schema, sampling })) {
      onText(piece);
      if (asked === "fail later") throw new Error("the engine fell ill");
    }
    return { cutShort: asked === "go on for ever", usage: { prompt: 11, completion: 3 } };
  },
};

function say(asked, { turns, opening, schema, sampling }) {
  if (schema?.enum) return [JSON.stringify(schema.enum.at(-1))];
  if (schema) return [JSON.stringify(schema).slice(0, 9), JSON.stringify(schema).slice(9)];
  if (asked === "what were you asked?") return [JSON.stringify({ turns, opening, sampling })];
  return ["Grüße, 👩‍🚀! ", "A line\nand a half, ", "long enough to be cut in several places."];
}

process.stdin.on("end", () => process.exit(0)).resume();
const allowed = { bash: { command: ["echo OK", "pwd"] } };
process.stdout.write(`${JSON.stringify({ url: await listen(engine, allowed), model: "stub", seconds: 0 })}\n`);
