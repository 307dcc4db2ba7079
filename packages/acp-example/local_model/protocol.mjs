// Chat completions as plain data: what a request may be, what an answer is made of. No I/O.

import { randomBytes, randomInt, randomUUID } from "node:crypto";

import { SchemaError, grammarSchema, narrow } from "./schema.mjs";

const MAX_TOKENS = 256;
const NUMBERS = {
  temperature: { low: 0, high: 2 },
  top_p: { low: 0, high: 1 },
  max_tokens: { low: 1, whole: true },
  max_completion_tokens: { low: 1, whole: true },
  seed: { low: Number.MIN_SAFE_INTEGER, whole: true },
};

/** The request can't be answered; `status` and the body's fields say why. */
export class RequestError extends Error {
  constructor(message, { status = 400, param = null, code = null } = {}) {
    super(message);
    Object.assign(this, { status, param, code });
  }
}

/** Return an error as the protocol spells it. */
export function errorBody({ message, status = 500, param = null, code = null }) {
  const type = status < 500 ? "invalid_request_error" : "server_error";
  return { error: { message, type, param, code } };
}

/**
 * Read a request body into what the engine needs, or throw a `RequestError`.
 *
 * `allowed` maps tools to properties to the only values that the model may give them.
 */
export function readRequest(body, allowed = {}) {
  if (!isObject(body)) throw new RequestError("the body is not a JSON object");
  checkNumbers(body);
  if ((body.n ?? 1) !== 1) refuse("n", "only one answer a request is supported");
  if ((body.response_format?.type ?? "text") !== "text") {
    refuse("response_format", 'only "text" is supported; to get JSON, force a tool');
  }
  const messages = body.messages;
  if (!Array.isArray(messages) || messages.length === 0) refuse("messages", "it must be a list, not empty");
  const turns = messages.map((message, index) => readMessage(message, `messages[${index}]`));
  checkCalls(messages);
  return {
    model: typeof body.model === "string" ? body.model : "local",
    stream: body.stream === true,
    includeUsage: body.stream_options?.include_usage === true,
    turns,
    tools: toolsToCall(body, turns, allowed),
    sampling: {
      temperature: body.temperature ?? 0.8,
      topP: body.top_p ?? 0.95,
      maxTokens: body.max_completion_tokens ?? body.max_tokens ?? MAX_TOKENS,
      seed: body.seed === undefined || body.seed === null ? randomInt(2 ** 32) : body.seed >>> 0,
      stop: [body.stop ?? []].flat(),
    },
  };
}

/** The wire form of one answer: its chunks, or its whole. */
export class Answer {
  constructor(model) {
    this.id = `chatcmpl-${randomUUID()}`;
    this.created = Math.floor(Date.now() / 1000);
    this.model = model;
  }

  chunk(delta, finish = null) {
    return this.#body("chat.completion.chunk", [{ index: 0, delta, finish_reason: finish }]);
  }

  usage(usage) {
    return { ...this.#body("chat.completion.chunk", []), usage };
  }

  whole(message, finish, usage) {
    return { ...this.#body("chat.completion", [{ index: 0, message, finish_reason: finish }]), usage };
  }

  #body(object, choices) {
    return { id: this.id, object, created: this.created, model: this.model, choices };
  }
}

/** Return a fresh id for a tool call. */
export function callId() {
  return `call_${randomBytes(12).toString("hex")}`;
}

/** Cut `pieces` (a text or bytes) at random places; a text is never cut inside a character. */
export function* cuts(pieces, longest) {
  const units = typeof pieces === "string" ? [...pieces] : pieces;
  for (let at = 0; at < units.length; ) {
    const end = at + randomInt(1, longest + 1);
    const piece = units.slice(at, end);
    yield typeof pieces === "string" ? piece.join("") : piece;
    at = end;
  }
}

function readMessage(message, place) {
  if (!isObject(message)) refuse(place, "it is not an object");
  const text = readContent(message.content, `${place}.content`);
  switch (message.role) {
    case "system":
    case "developer":
      return { role: "system", text };
    case "user":
      return { role: "user", text };
    case "tool":
      return { role: "user", text: `The tool's output:\n${text}` };
    case "assistant": {
      const calls = (message.tool_calls ?? []).map(
        (call) => `I call the tool ${call.function?.name} with ${call.function?.arguments}`,
      );
      return { role: "assistant", text: [text, ...calls].filter(Boolean).join("\n") };
    }
    default:
      return refuse(`${place}.role`, "it must be system, developer, user, assistant or tool");
  }
}

function readContent(content, place) {
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) refuse(place, "it must be a text or a list of parts");
  return content
    .map((part, index) => {
      if (part?.type === "text" && typeof part.text === "string") return part.text;
      return refuse(`${place}[${index}]`, "only parts of type text are supported");
    })
    .join("");
}

// A hosted endpoint refuses a history whose calls and results don't pair up; an agent must see that here.
function checkCalls(messages) {
  let open = new Set();
  messages.forEach((message, index) => {
    const place = `messages[${index}]`;
    if (message.role === "tool") {
      if (!open.delete(message.tool_call_id)) refuse(`${place}.tool_call_id`, "no open call has this id");
      return;
    }
    if (open.size > 0) refuse(place, `these calls have no result yet: ${[...open].join(", ")}`);
    open = new Set((message.tool_calls ?? []).map((call) => call.id));
  });
  if (open.size > 0) refuse("messages", `these calls have no result yet: ${[...open].join(", ")}`);
}

function toolsToCall(body, turns, allowed) {
  const tools = (body.tools ?? []).map((tool, index) => readTool(tool, `tools[${index}]`));
  const choice = body.tool_choice ?? "auto";
  const chosen = choose(choice, tools, { body, said: turns.at(-1).text, allowed });
  return chosen.map(({ name, parameters }) => {
    try {
      return { name, schema: grammarSchema(narrow(parameters, allowed[name] ?? {})) };
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      return refuse("tools", `the parameters of "${name}" can't be held to: ${error.message}`);
    }
  });
}

function choose(choice, tools, { body, said, allowed }) {
  if (choice === "none") return [];
  if (choice === "auto") {
    const asked = body.messages.at(-1).role === "user";
    return tools.filter(({ name }) => asked && name in allowed && named(name, said)).slice(0, 1);
  }
  if (choice === "required") {
    if (tools.length === 0) refuse("tool_choice", "a tool is required but none is offered");
    const permitted = tools.filter(({ name }) => name in allowed);
    return permitted.length > 0 ? permitted : tools;
  }
  const tool = tools.find(({ name }) => name === choice.function?.name);
  if (tool === undefined) refuse("tool_choice", "it must be none, auto, required or name an offered tool");
  return [tool];
}

// The model is too small to choose by itself: under "auto", the user's words do.
function named(tool, said) {
  const quoted = tool.replace(/[^\w]/g, "\\$&");
  return new RegExp(`\\bthe \`?${quoted}\`? tool\\b`, "i").test(said);
}

function readTool(tool, place) {
  const { name, parameters = { type: "object" } } = tool?.function ?? {};
  if (typeof name !== "string" || !isObject(parameters)) {
    refuse(place, "it must be a function with a name and an object of parameters");
  }
  return { name, parameters };
}

function checkNumbers(body) {
  for (const [name, { low, high = Number.MAX_SAFE_INTEGER, whole = false }] of Object.entries(NUMBERS)) {
    const value = body[name];
    if (value === undefined || value === null) continue;
    const fits = whole ? Number.isSafeInteger(value) : Number.isFinite(value);
    if (!fits || value < low || value > high) {
      refuse(name, `it must be a ${whole ? "whole " : ""}number from ${low} to ${high}`);
    }
  }
}

function refuse(param, why) {
  throw new RequestError(`${param}: ${why}`, { param });
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
