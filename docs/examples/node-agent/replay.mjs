// Answers model calls from recorded session logs, and tells what it served.

import { randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";

const { env } = process;

/** A fault of the fixture: never retried, and told to the harness at once. */
export class ReplayFault extends Error {}

// What the tokens of a normalized log stand for, in this run.
const roots = {
  lit: "{{",
  cwd: process.cwd(),
  home: env.HOME,
  tmp: env.TMPDIR,
  sessions: env.DSH_SNAPSHOT_SESSIONS_ROOT,
  spill: env.DSH_SNAPSHOT_SPILL_ROOT,
  run: env.DSH_SNAPSHOT_RUN,
};

function served(value) {
  if (typeof value === "string") return value.replace(/\{\{(\w+)\}\}/g, (_, name) => roots[name]);
  if (Array.isArray(value)) return value.map(served);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, served(item)]));
}

/** Cut a log into calls: `llm/call` opens one; its `finish`, or what happened instead, ends it. */
function readScript(file, index) {
  const lines = fs.readFileSync(file, "utf8").split("\n").filter(Boolean);
  const [header, ...events] = lines.map((line) => JSON.parse(line));
  const calls = [];
  let chunks = null;
  const end = (hangs) => {
    if (chunks !== null) calls.push({ chunks, hangs });
    chunks = null;
  };
  for (const { type, data } of events) {
    if (type === "llm/call") {
      chunks = [];
    } else if (type === "assistant/chunk") {
      chunks ??= []; // a log written by hand may leave out the `llm/call`
      chunks.push(header.tokens ? served(data.chunk) : data.chunk);
      if (data.chunk.type === "finish") end(false);
    } else if (type === "assistant/message") {
      end(data.interrupted === true);
    } else if (type === "turn/end") {
      end(["aborted", "interrupted"].includes(data.reason?.kind));
    }
  }
  end(true);
  return { index, file: path.basename(file), lineage: header.lineage, calls, next: 0, taken: false };
}

const children = (env.DSH_SNAPSHOT_CHILD_FILES ?? "").split(path.delimiter).filter(Boolean);
const scripts = [env.DSH_SNAPSHOT_FILE, ...children].map(readScript);
const bound = new Map();

// One file for this process, one line a fact, each written at once.
const verdict = env.DSH_SNAPSHOT_VERDICT_DIR
  ? fs.openSync(path.join(env.DSH_SNAPSHOT_VERDICT_DIR, `${process.pid}-${randomUUID()}.jsonl`), "ax")
  : null;

function tell(fact) {
  if (verdict !== null) fs.writeSync(verdict, `${JSON.stringify(fact)}\n`);
}

tell({
  fact: "installed",
  version: 1,
  scripts: scripts.map(({ file, calls }) => ({ file, calls: calls.length })),
});

function fault(kind, message, place = {}) {
  tell({ fact: "fault", kind, ...place, message });
  return new ReplayFault(message);
}

/** Return the script of a session: that of its lineage, else the next one with calls. */
function scriptOf({ id, lineage }) {
  if (!bound.has(id)) {
    const free = scripts.filter((script) => !script.taken && script.calls.length > 0);
    const named = scripts.some((script) => script.lineage !== undefined);
    const script = named ? free.find((one) => one.lineage === lineage) : free[0];
    if (script === undefined) throw fault("unknown-session", `no script for session ${lineage}`);
    script.taken = true;
    bound.set(id, script);
    tell({ fact: "bound", script: script.index, session: id, lineage });
  }
  return bound.get(id);
}

/** Return the next recorded answer as a stream. The cursor moves now, not when it is read. */
export function replay(session, signal) {
  const script = scriptOf(session);
  const place = { script: script.index, call: script.next + 1 };
  const call = script.calls[script.next];
  if (call === undefined) {
    throw fault("exhausted", `${script.file}: no call ${place.call} is recorded`, place);
  }
  script.next += 1;
  tell({ fact: "call", ...place });
  return stream(call, place, signal);
}

async function* stream({ chunks, hangs }, place, signal) {
  try {
    for (const chunk of chunks) {
      signal.throwIfAborted();
      yield chunk;
    }
    if (hangs) {
      signal.throwIfAborted();
      tell({ fact: "hanging", ...place });
      await new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    }
  } finally {
    tell({ fact: "served", ...place });
  }
}
