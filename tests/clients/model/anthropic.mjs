// Anthropic messages.

const words = (content) => typeof content === "string" ? content
  : (content ?? []).map((part) => part.text ?? part.tool_name ?? "").join("\n");

const blocksOf = ({ content }) => (typeof content === "string" ? [{ type: "text", text: content }] : content ?? []);

function turn(message, by) {
  const blocks = blocksOf(message);
  const given = blocks.filter((block) => block.type === "tool_result");
  const results = given.map((block) => ({ by: by.get(block.tool_use_id), text: words(block.content) }));
  const text = words(blocks.filter((block) => block.type === "text"));
  return { role: message.role, text, results };
}

export function read(body) {
  const tools = (body.tools ?? []).map((tool) => ({ ...tool, parameters: tool.input_schema }));
  const messages = body.messages ?? [];
  const by = new Map(messages.flatMap(blocksOf).filter((block) => block.type === "tool_use").map((it) => [it.id, it.name]));
  const wants = body.output_config?.format?.schema ?? body.output_format?.schema;
  return { tools, turns: messages.map((message) => turn(message, by)), wants, stream: body.stream === true, model: body.model };
}

function block({ call, text }) {
  if (!call) return { type: "text", text };
  return { type: "tool_use", id: `toolu_${Date.now()}`, name: call.name, input: call.arguments };
}

const USAGE = { input_tokens: 10, output_tokens: 10 };
const reason = (decision) => (decision.call ? "tool_use" : "end_turn");

function message(asked, content, stop_reason) {
  const model = asked.model ?? "scripted-model";
  return { id: `msg_${Date.now()}`, type: "message", role: "assistant", model, content, stop_reason, stop_sequence: null, usage: USAGE };
}

export const whole = (decision, asked) => message(asked, [block(decision)], reason(decision));

export function events(decision, asked) {
  const it = block(decision);
  const empty = it.type === "text" ? { ...it, text: "" } : { ...it, input: {} };
  const delta = it.type === "text" ? { type: "text_delta", text: it.text }
    : { type: "input_json_delta", partial_json: JSON.stringify(it.input) };
  const all = [
    { type: "message_start", message: message(asked, [], null) },
    { type: "content_block_start", index: 0, content_block: empty },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: reason(decision), stop_sequence: null }, usage: USAGE },
    { type: "message_stop" },
  ];
  return all.map((data) => ({ event: data.type, data }));
}
