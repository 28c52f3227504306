// Gemini generateContent and streamGenerateContent.

/** A result is an object of the client's making: its longest text is what the tool said. */
function words(value) {
  if (typeof value === "string") return value;
  if (value === null || typeof value !== "object") return "";
  return Object.values(value).map(words).filter(Boolean).join("\n");
}

function turn({ role, parts = [] }) {
  const given = parts.filter((part) => part.functionResponse).map((part) => part.functionResponse);
  const results = given.map((it) => ({ by: it.name, text: words(it.response) }));
  const text = parts.map((part) => part.text ?? "").join("\n");
  return { role, text, results };
}

export function read(body, path) {
  const declared = (body.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? []);
  const tools = declared.map((it) => ({ name: it.name, parameters: it.parameters ?? it.parametersJsonSchema }));
  const config = body.generationConfig ?? {};
  return {
    tools,
    turns: (body.contents ?? []).map(turn),
    wants: config.responseJsonSchema ?? config.responseSchema,
    stream: /stream/i.test(path),
  };
}

export function whole({ call, text }) {
  const part = call ? { functionCall: { id: `call_${Date.now()}`, name: call.name, args: call.arguments } } : { text };
  return {
    candidates: [{ index: 0, content: { role: "model", parts: [part] }, finishReason: "STOP" }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 10, totalTokenCount: 20 },
    modelVersion: "scripted-model",
    responseId: `response_${Date.now()}`,
  };
}

export const events = (decision) => [{ data: whole(decision) }];
