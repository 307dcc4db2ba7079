// Asks an OpenAI-compatible endpoint, and translates what it streams to chunks.

const { env } = process;

export async function* live(system, tools, messages, signal) {
  const response = await fetch(`${env.BASE_URL ?? "https://api.openai.com/v1"}/chat/completions`, {
    method: "POST",
    signal,
    headers: { "content-type": "application/json", authorization: `Bearer ${env.API_KEY}` },
    body: JSON.stringify({
      model: env.MODEL ?? "gpt-4o-mini",
      stream: true,
      messages: [{ role: "system", content: system }, ...messages.map(spelled)],
      tools: tools.map(({ name, description, schema }) => ({
        type: "function",
        function: { name, description, parameters: schema },
      })),
    }),
  });
  if (!response.ok) throw new Error(`the endpoint answered ${response.status}`);
  const blocks = new Map();
  let reason = "stop";
  for await (const { choices } of events(response.body)) {
    for (const { delta, finish_reason } of choices) {
      reason = finish_reason ?? reason;
      yield* pieces(delta, blocks);
    }
  }
  for (const [index, block] of [...blocks.values()].entries()) {
    yield { type: "block-end", index, block };
  }
  yield { type: "finish", reason: { kind: reason.replace("_", "-") } };
}

async function* events(body) {
  let rest = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data: {")) yield JSON.parse(line.slice("data: ".length));
    }
  }
}

function* pieces({ content, tool_calls }, blocks) {
  if (content) {
    if (!blocks.has("text")) {
      yield { type: "block-start", index: blocks.size, blockType: "text" };
      blocks.set("text", { type: "text", text: "" });
    }
    blocks.get("text").text += content;
    yield { type: "text-delta", index: [...blocks.keys()].indexOf("text"), text: content };
  }
  for (const { index, id, function: call } of tool_calls ?? []) {
    if (!blocks.has(index)) {
      yield { type: "block-start", index: blocks.size, blockType: "tool-call" };
      blocks.set(index, { type: "tool-call", id, name: call.name, arguments: "" });
    }
    const block = blocks.get(index);
    block.arguments += call.arguments ?? "";
    yield {
      type: "tool-call-delta",
      index: [...blocks.keys()].indexOf(index),
      id: block.id,
      argumentsDelta: call.arguments ?? "",
    };
  }
}

function spelled({ role, content, id }) {
  if (role === "tool") return { role, tool_call_id: id, content };
  if (role === "user") return { role, content };
  const calls = content.filter((block) => block.type === "tool-call");
  return {
    role,
    content: content.filter((block) => block.type === "text").map((block) => block.text).join(""),
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, name, arguments: text }) => ({
        id,
        type: "function",
        function: { name, arguments: text },
      })),
    }),
  };
}
