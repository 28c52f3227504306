// OpenAI chat completions.

const words = (content) => typeof content === "string" ? content
  : (content ?? []).map((part) => part.text ?? "").join("\n");

export function read(body) {
  const tools = (body.tools ?? []).filter((tool) => tool.function).map(({ function: it }) => it);
  const calls = (body.messages ?? []).flatMap((message) => message.tool_calls ?? []);
  const by = new Map(calls.map((it) => [it.id, it.function?.name]));
  const turns = (body.messages ?? []).map((message) => message.role === "tool"
    ? { role: "tool", text: "", results: [{ by: by.get(message.tool_call_id), text: words(message.content) }] }
    : { role: message.role, text: words(message.content), results: [] });
  const wants = body.response_format?.json_schema?.schema;
  return { tools, turns, wants, stream: body.stream === true, model: body.model };
}

function message({ call, text }) {
  if (!call) return { role: "assistant", content: text };
  const it = { name: call.name, arguments: JSON.stringify(call.arguments) };
  return { role: "assistant", content: null, tool_calls: [{ index: 0, id: `call_${Date.now()}`, type: "function", function: it }] };
}

const USAGE = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
const reason = (decision) => (decision.call ? "tool_calls" : "stop");
const base = (asked, object) => ({ id: `chatcmpl-${Date.now()}`, object, created: 1, model: asked.model ?? "scripted-model" });

export function whole(decision, asked) {
  const choice = { index: 0, message: message(decision), finish_reason: reason(decision) };
  return { ...base(asked, "chat.completion"), choices: [choice], usage: USAGE };
}

export function events(decision, asked) {
  const chunk = (choice, usage) => ({
    data: { ...base(asked, "chat.completion.chunk"), choices: choice ? [{ index: 0, finish_reason: null, ...choice }] : [], usage },
  });
  return [
    chunk({ delta: message(decision) }),
    chunk({ delta: {}, finish_reason: reason(decision) }),
    chunk(null, USAGE),
    { data: "[DONE]" },
  ];
}
