// OpenAI responses.

const words = (content) => typeof content === "string" ? content
  : (content ?? []).map((part) => part.text ?? part.refusal ?? "").join("\n");

/** Tools may stand in a namespace: the call has to name both. */
function offered(tool) {
  if (tool.type === "namespace") return (tool.tools ?? []).flatMap(offered).map((it) => ({ ...it, namespace: tool.name }));
  return tool.name ? [tool] : [{ name: tool.type, parameters: tool.parameters, execution: tool.execution }];
}

function turn(item, by) {
  if (/_output$/.test(item.type ?? "")) {
    const text = words(item.output ?? "");
    return { role: "tool", text: "", results: [{ by: by.get(item.call_id) ?? item.type, text }] };
  }
  return { role: item.role ?? item.type, text: words(item.content), results: [] };
}

export function read(body) {
  const input = typeof body.input === "string" ? [{ role: "user", content: body.input }] : body.input ?? [];
  const by = new Map(input.filter((item) => item.call_id && item.name).map((item) => [item.call_id, item.name]));
  const found = input.filter((item) => item.type === "tool_search_output").flatMap((item) => item.tools ?? []);
  return {
    tools: [...(body.tools ?? []), ...found].flatMap(offered),
    turns: input.map((item) => turn(item, by)),
    wants: body.text?.format?.schema,
    stream: body.stream === true,
    model: body.model,
  };
}

function item({ call, text }) {
  const id = `item_${Date.now()}`;
  if (call?.name === "tool_search") {
    return { type: "tool_search_call", id, call_id: `call_${id}`, execution: "client", status: "completed", arguments: call.arguments };
  }
  if (call) {
    const { name, namespace } = call;
    const it = { type: "function_call", id, call_id: `call_${id}`, name, arguments: JSON.stringify(call.arguments), status: "completed" };
    return namespace ? { ...it, namespace } : it;
  }
  return { type: "message", id, role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }] };
}

const USAGE = {
  input_tokens: 10, input_tokens_details: { cached_tokens: 0 },
  output_tokens: 10, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 20,
};

function response(asked, status, output) {
  const usage = status === "completed" ? USAGE : null;
  return {
    id: "resp_1", object: "response", created_at: 1, model: asked.model ?? "scripted-model", status, output, usage,
    parallel_tool_calls: false, tool_choice: "auto", tools: [], error: null, incomplete_details: null,
    instructions: null, metadata: {}, temperature: 1, top_p: 1,
  };
}

export const whole = (decision, asked) => response(asked, "completed", [item(decision)]);

function inside(it) {
  const at = { item_id: it.id, output_index: 0 };
  if (it.type === "function_call") {
    return [
      { type: "response.function_call_arguments.delta", ...at, delta: it.arguments },
      { type: "response.function_call_arguments.done", ...at, arguments: it.arguments, name: it.name },
    ];
  }
  if (it.type !== "message") return [];
  const [part] = it.content;
  const content = { ...at, content_index: 0 };
  return [
    { type: "response.content_part.added", ...content, part: { ...part, text: "" } },
    { type: "response.output_text.delta", ...content, delta: part.text, logprobs: [] },
    { type: "response.output_text.done", ...content, text: part.text, logprobs: [] },
    { type: "response.content_part.done", ...content, part },
  ];
}

function begun(it) {
  const empty = it.type === "message" ? { content: [] } : it.type === "function_call" ? { arguments: "" } : {};
  return { ...it, ...empty, status: "in_progress" };
}

export function events(decision, asked) {
  const it = item(decision);
  const all = [
    { type: "response.created", response: response(asked, "in_progress", []) },
    { type: "response.output_item.added", output_index: 0, item: begun(it) },
    ...inside(it),
    { type: "response.output_item.done", output_index: 0, item: it },
    { type: "response.completed", response: response(asked, "completed", [it]) },
  ];
  return all.map((data, sequence_number) => ({ event: data.type, data: { sequence_number, ...data } }));
}
