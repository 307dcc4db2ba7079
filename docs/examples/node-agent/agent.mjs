// A small ACP agent: it answers questions about the text files in its working directory.

import { randomUUID } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";

const replaying = process.env.DSH_SNAPSHOT === "replay";
const { replay } = replaying ? await import("./replay.mjs") : {};
const { live } = replaying ? {} : await import("./live.mjs");

const SYSTEM = "You answer questions about the files in one directory. Be brief.";
const TOOLS = [
  {
    name: "read_file",
    description: "Return the text of a file.",
    schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  },
];

function send(frame) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...frame })}\n`);
}

/** A session log: a header, then one event a line, each written at once. */
class Log {
  constructor(id, cwd) {
    const root = process.env.DSH_SNAPSHOT_SESSIONS_ROOT ?? "sessions";
    fs.mkdirSync(root, { recursive: true });
    // The lineage of a session is the next free number; making its directory claims it.
    for (this.lineage = 1; !claimed(path.join(root, `${this.lineage}`)); this.lineage += 1);
    this.lineage = `${this.lineage}`;
    this.file = fs.openSync(path.join(root, this.lineage, "session.jsonl"), "ax");
    this.events = 0;
    this.append({ type: "session", version: 1, id, cwd, createdAt: Date.now(), lineage: this.lineage });
  }

  write(type, data, more = {}) {
    this.append({ type, seq: this.events, time: Date.now(), data, ...more });
    this.events += 1;
  }

  append(record) {
    fs.writeSync(this.file, `${JSON.stringify(record)}\n`);
  }
}

function claimed(directory) {
  try {
    fs.mkdirSync(directory);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

class Session {
  constructor(cwd) {
    this.id = randomUUID();
    this.cwd = cwd;
    this.log = new Log(this.id, cwd);
    this.lineage = this.log.lineage;
    this.messages = [];
    this.turn = 0;
    this.calls = 0;
  }

  /** Run one turn, and return its stop reason. */
  async prompt(text) {
    this.controller = new AbortController();
    this.turn += 1;
    this.log.write("turn/start", { turn: this.turn });
    this.log.write("user/message", { turn: this.turn, text });
    this.messages.push({ role: "user", content: text });
    if (this.turn === 1) {
      this.log.write("request/header", { header: { system: SYSTEM, tools: TOOLS }, reason: "initial" });
    }
    try {
      for (let step = 1; await this.step(step); step += 1);
    } catch (error) {
      if (!this.controller.signal.aborted) throw error;
      this.log.write("turn/end", { turn: this.turn, reason: { kind: "aborted" } });
      return "cancelled";
    }
    this.log.write("turn/end", { turn: this.turn, reason: { kind: "completed" } });
    return "end_turn";
  }

  /** Ask the model once and run its tools; tell whether it wanted any. */
  async step(step) {
    const place = { turn: this.turn, step };
    const calls = (await this.ask(place)).filter((block) => block.type === "tool-call");
    for (const call of calls) {
      this.log.write("tool/call", { ...place, callId: call.id, name: call.name, arguments: call.arguments });
    }
    for (const [index, call] of calls.entries()) this.readFile(place, index + 1, call);
    return calls.length > 0;
  }

  async ask(place) {
    const { signal } = this.controller;
    this.calls += 1;
    this.log.write("llm/call", { ...place, call: this.calls, purpose: "turn" }, { ignorable: true });
    const blocks = [];
    let said = "";
    try {
      const chunks = replaying ? replay(this, signal) : live(SYSTEM, TOOLS, this.messages, signal);
      for await (const chunk of chunks) {
        this.log.write("assistant/chunk", { ...place, chunk });
        if (chunk.type === "text-delta") {
          said += chunk.text;
          const content = { type: "text", text: chunk.text };
          this.update({ sessionUpdate: "agent_message_chunk", content });
        } else if (chunk.type === "block-end") {
          blocks.push(chunk.block);
        }
      }
    } catch (error) {
      const cut = [{ type: "text", text: said }];
      if (said) this.answered(place, cut, { interrupted: true });
      throw error;
    }
    this.answered(place, blocks);
    return blocks;
  }

  answered(place, content, more = {}) {
    const message = { role: "assistant", content };
    this.log.write("assistant/message", { ...place, message, ...more });
    this.messages.push(message);
  }

  readFile({ turn, step }, index, call) {
    const { path: name } = JSON.parse(call.arguments);
    const shown = { toolCallId: `${turn}.${step}.${index}`, title: `Read ${name}` };
    this.update({ sessionUpdate: "tool_call", ...shown, kind: "read", status: "in_progress" });
    let [text, status] = ["", "completed"];
    try {
      text = fs.readFileSync(path.join(this.cwd, name), "utf8");
    } catch (error) {
      [text, status] = [`Error: ${error.code}`, "failed"];
    }
    this.log.write("tool/result", { turn, step, callId: call.id, text });
    const content = [{ type: "content", content: { type: "text", text } }];
    this.update({ sessionUpdate: "tool_call_update", ...shown, status, content });
    this.messages.push({ role: "tool", id: call.id, content: text });
  }

  update(update) {
    send({ method: "session/update", params: { sessionId: this.id, update } });
  }
}

const sessions = new Map();

async function answer(method, params) {
  if (method === "initialize") {
    return { protocolVersion: 1, agentCapabilities: {}, authMethods: [] };
  }
  if (method === "session/new") {
    const session = new Session(params.cwd);
    sessions.set(session.id, session);
    return { sessionId: session.id };
  }
  if (method === "session/prompt") {
    const text = params.prompt.map((block) => block.text ?? "").join("");
    return { stopReason: await sessions.get(params.sessionId).prompt(text) };
  }
  throw Object.assign(new Error(`Method not found: ${method}`), { code: -32601 });
}

async function handle({ id, method, params }) {
  if (method === "session/cancel") sessions.get(params.sessionId)?.controller?.abort();
  if (id === undefined) return;
  try {
    send({ id, result: await answer(method, params) });
  } catch (error) {
    send({ id, error: { code: error.code ?? -32603, message: error.message } });
  }
}

// At the end of stdin nothing is left to wait for, and the process ends by itself.
for await (const line of readline.createInterface({ input: process.stdin })) {
  handle(JSON.parse(line));
}
