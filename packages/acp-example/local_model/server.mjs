// A chat-completions endpoint on the loopback address, one answer at a time.
//
// usage: node server.mjs ENGINE-DIRECTORY WEIGHTS [THREADS [ALLOWED-JSON]]
//
// It picks a free port, says so in one line on stdout, and ends with its stdin.

import { realpathSync } from "node:fs";
import http from "node:http";
import { pathToFileURL } from "node:url";

import { loadEngine } from "./engine.mjs";
import { Answer, RequestError, callId, cuts, errorBody, readRequest } from "./protocol.mjs";

const LONGEST_BODY = 16 * 1024 * 1024;
const LONGEST_DELTA = 12;
const LONGEST_WRITE = 400;

/** Serve `engine` on a free loopback port; resolve to the base URL. */
export async function listen(engine, allowed = {}) {
  let queue = Promise.resolve();
  const server = http.createServer((request, response) => {
    const answered = route(request, response, {
      engine,
      allowed,
      inTurn: (work) => (queue = queue.then(work, work)),
    });
    answered.catch((error) => fail(response, error));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${server.address().port}/v1`;
}

async function route(request, response, { engine, allowed, inTurn }) {
  const path = new URL(request.url, "http://localhost").pathname;
  if (request.method === "GET" && path === "/v1/models") {
    return sendJson(response, 200, { object: "list", data: [{ id: engine.name, object: "model" }] });
  }
  if (request.method !== "POST" || path !== "/v1/chat/completions") {
    throw new RequestError(`there is no ${request.method} ${path} here`, { status: 404 });
  }
  const wanted = readRequest(parse(await readBody(request)), allowed);
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  return inTurn(async () => {
    if (!gone.signal.aborted) await answer(engine, wanted, response, gone.signal);
  });
}

async function answer(engine, wanted, response, signal) {
  const out = wanted.stream ? new StreamedAnswer(wanted, response) : new WholeAnswer(wanted, response);
  const spent = { prompt: 0, completion: 0 };
  const generate = async (options) => {
    const { cutShort, usage } = await engine.generate({ ...wanted, signal, ...options });
    spent.prompt += usage.prompt;
    spent.completion += usage.completion;
    return cutShort;
  };
  const cutShort =
    wanted.tools.length > 0
      ? await callTool(wanted.tools, generate, out)
      : await generate({ onText: (text) => out.text(text) });
  const finish = cutShort ? "length" : wanted.tools.length > 0 ? "tool_calls" : "stop";
  if (!signal.aborted) out.end(finish, usageBody(spent));
}

async function callTool(tools, generate, out) {
  const tool = tools.length === 1 ? tools[0] : await pickTool(tools, generate);
  const opening = `I call the tool ${tool.name} with these arguments: `;
  let started = false;
  return generate({
    opening,
    schema: tool.schema,
    onText: (text) => {
      if (!started) out.call(callId(), tool.name);
      started = true;
      out.callArguments(text);
    },
  });
}

async function pickTool(tools, generate) {
  let name = "";
  const schema = { enum: tools.map((tool) => tool.name) };
  await generate({ opening: "I call the tool ", schema, onText: (text) => (name += text) });
  const picked = tools.find((tool) => tool.name === parse(name));
  if (picked === undefined) throw new Error(`the model named no offered tool: ${name}`);
  return picked;
}

/** Sends an answer piece by piece, cut where nobody expects it. */
class StreamedAnswer {
  #answer;
  #response;
  #includeUsage;
  #started = false;

  constructor({ model, includeUsage }, response) {
    this.#answer = new Answer(model);
    this.#response = response;
    this.#includeUsage = includeUsage;
  }

  text(text) {
    for (const content of cuts(text, LONGEST_DELTA)) this.#delta({ content });
  }

  call(id, name) {
    this.#delta({ tool_calls: [{ index: 0, id, type: "function", function: { name, arguments: "" } }] });
  }

  callArguments(text) {
    for (const piece of cuts(text, LONGEST_DELTA)) {
      this.#delta({ tool_calls: [{ index: 0, function: { arguments: piece } }] });
    }
  }

  end(finish, usage) {
    this.#delta({}, finish);
    if (this.#includeUsage) this.#event(JSON.stringify(this.#answer.usage(usage)));
    this.#event("[DONE]");
    this.#response.end();
  }

  // Headers wait for the first token: until then a failure still has its status.
  #delta(delta, finish = null) {
    if (!this.#started) {
      this.#response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
      this.#started = true;
      this.#delta({ role: "assistant", content: delta.tool_calls ? null : "" });
    }
    this.#event(JSON.stringify(this.#answer.chunk(delta, finish)));
  }

  #event(data) {
    for (const bytes of cuts(Buffer.from(`data: ${data}\n\n`), LONGEST_WRITE)) this.#response.write(bytes);
  }
}

/** Collects an answer and sends it whole. */
class WholeAnswer {
  #answer;
  #response;
  #text = "";
  #calls = [];

  constructor({ model }, response) {
    this.#answer = new Answer(model);
    this.#response = response;
  }

  text(text) {
    this.#text += text;
  }

  call(id, name) {
    this.#calls.push({ id, type: "function", function: { name, arguments: "" } });
  }

  callArguments(text) {
    this.#calls.at(-1).function.arguments += text;
  }

  end(finish, usage) {
    const calls = this.#calls.length > 0 ? { tool_calls: this.#calls } : {};
    const message = { role: "assistant", content: this.#text || null, ...calls };
    sendJson(this.#response, 200, this.#answer.whole(message, finish, usage));
  }
}

function usageBody({ prompt, completion }) {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

async function readBody(request) {
  const parts = [];
  let length = 0;
  for await (const part of request) {
    length += part.length;
    if (length > LONGEST_BODY) throw new RequestError("the body is longer than 16 MiB", { status: 413 });
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new RequestError(`this is not JSON: ${error.message}`);
  }
}

function sendJson(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function fail(response, error) {
  if (response.destroyed) return undefined; // whoever asked has left
  if (!(error instanceof RequestError)) process.stderr.write(`${error.stack}\n`);
  const body = errorBody(error);
  if (!response.headersSent) return sendJson(response, error.status ?? 500, body);
  return response.end(`data: ${JSON.stringify(body)}\n\n`);
}

async function main([directory, weights, threads = "2", allowed = "{}"]) {
  process.stdin.on("end", () => process.exit(0)).resume();
  const begun = performance.now();
  const engine = await loadEngine({ directory, weights, threads: Number(threads) });
  const url = await listen(engine, JSON.parse(allowed));
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  process.stdout.write(`${JSON.stringify({ url, model: engine.name, seconds: Number(seconds) })}\n`);
}

const script = process.argv[1];
if (script && import.meta.url === pathToFileURL(realpathSync(script)).href) await main(process.argv.slice(2));
