// The model itself: a conversation in, text as it comes out.

import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

import { RequestError } from "./protocol.mjs";

const CONTEXT_TOKENS = 8192;

/** Load weights with the node-llama-cpp that is installed below `directory`. */
export async function loadEngine({ directory, weights, threads }) {
  const entry = join(directory, "node_modules", "node-llama-cpp", "dist", "index.js");
  const { LlamaChat, getLlama } = await import(pathToFileURL(entry));
  // "never": without it a missing binary is fetched as source and compiled.
  const llama = await getLlama({
    gpu: false,
    build: "never",
    skipDownload: true,
    maxThreads: threads,
    progressLogs: false,
    logLevel: "error",
  });
  const model = await llama.loadModel({ modelPath: weights });
  const contextSize = Math.min(CONTEXT_TOKENS, model.trainContextSize);
  const context = await model.createContext({ contextSize, threads });
  // One sequence for ever: the next request reuses whatever it shares with the last.
  const chat = new LlamaChat({ contextSequence: context.getSequence() });
  return new Engine({ llama, chat, contextSize, name: basename(weights, ".gguf") });
}

class Engine {
  #llama;
  #chat;
  #contextSize;

  constructor({ llama, chat, contextSize, name }) {
    this.#llama = llama;
    this.#chat = chat;
    this.#contextSize = contextSize;
    this.name = name;
  }

  /**
   * Continue a conversation; `opening` is what the answer has already begun with.
   *
   * With a `schema` the answer is JSON that fits it, unless the limit cuts it short.
   */
  async generate({ turns, opening = "", schema, sampling, signal, onText }) {
    const history = [...turns.map(historyItem), { type: "model", response: opening ? [opening] : [] }];
    const prompt = this.#count(history);
    const meter = this.#chat.sequence.tokenMeter.getState();
    const grammar = schema && (await this.#llama.createGrammarForJsonSchema(schema));
    const { metadata } = await this.#chat.generateResponse(history, {
      temperature: sampling.temperature,
      topP: sampling.topP,
      topK: 40,
      seed: sampling.seed,
      maxTokens: Math.min(sampling.maxTokens, this.#contextSize - prompt),
      customStopTriggers: sampling.stop,
      grammar,
      signal,
      stopOnAbortSignal: true,
      onTextChunk: onText,
    });
    const used = this.#chat.sequence.tokenMeter.diff(meter);
    return {
      cutShort: metadata.stopReason === "maxTokens",
      usage: { prompt, completion: used.usedOutputTokens },
    };
  }

  #count(history) {
    const { contextText } = this.#chat.chatWrapper.generateContextState({ chatHistory: history });
    const prompt = contextText.tokenize(this.#chat.model.tokenizer).length;
    if (prompt < this.#contextSize) return prompt;
    throw new RequestError(`the messages take ${prompt} tokens; the model holds ${this.#contextSize}`, {
      param: "messages",
      code: "context_length_exceeded",
    });
  }
}

function historyItem({ role, text }) {
  return role === "assistant" ? { type: "model", response: [text] } : { type: role, text };
}
