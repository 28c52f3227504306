// What the scripted model does next. It knows which calls to make, and in mode `obey` what results tell it; nothing else.

// A model that is told to wait for ever must not.
const MAX_CALLS = 200;
// "Call the tool `probe_wait` with {"ticket": "…"}", in the spellings that a model would understand.
const ORDER = /\bcall (?:the )?(?:tool )?[`"']?([A-Za-z0-9_.:-]+)[`"']? (?:again )?with (?:the )?(?:arguments? )?`?(\{[^{}]*\})/i;

/** Tools that only find other tools. */
const SEARCH = /tool_?search/i;
const MAX_SEARCHES = 2;

/**
 * asked: {tools: [{name, parameters}], turns: [{role, text, results: [{by, text}]}], wants: schema of a JSON answer, if any}
 * `by` is the name of the tool that gave the result, where the API tells it.
 * Gives {call: {name, arguments}} or {text}; `kind` is `last` for the end, `missing` if the tool is not there.
 */
export function decide(asked, mode, calls = [{ name: "slow_probe", arguments: {} }]) {
  if (asked.wants) return { text: JSON.stringify(example(asked.wants)), kind: "aside" };
  const results = asked.turns.flatMap((turn) => turn.results);
  if (results.length >= MAX_CALLS) return finish(asked, "GAVE UP: too many calls");
  const answers = results.filter((result) => !SEARCH.test(result.by ?? ""));
  const last = answers.at(-1)?.text;
  const next = mode === "obey" && last !== undefined && order(last);
  if (next) return callOrSearch(asked, next.name, next.arguments, results);
  const wanted = calls[answers.length];
  if (wanted) return callOrSearch(asked, wanted.name, wanted.arguments, results);
  return finish(asked, `RESULT: ${last}`);
}

/** The call that a text tells its reader to make, if it does. */
export function order(text) {
  const found = ORDER.exec(text);
  if (!found) return undefined;
  // Some clients hand a result on as JSON: its quotes are escaped then, and a model reads over that.
  return { name: found[1], arguments: JSON.parse(found[2].replaceAll('\\"', '"')) };
}

/** The tool by its own name, or behind whatever prefix the client gave it. */
function find(tools, name) {
  return tools.find((tool) => tool.name === name) ?? tools.find((tool) => tool.name.endsWith(name))
    ?? tools.find((tool) => tool.name.includes(name));
}

function callOrSearch(asked, name, wanted, results) {
  const offered = find(asked.tools, name);
  if (offered) return call(offered, wanted);
  const hidden = foundBySearch(asked, results, name);
  if (hidden) return { call: { name: "tool_call", arguments: { name: hidden, arguments: wanted } } };
  const search = asked.tools.find((tool) => SEARCH.test(tool.name));
  if (search && searches(results) < MAX_SEARCHES) return call(search, { query: name });
  const text = `NO TOOL: ${name} is not among the ${asked.tools.length} tools offered`;
  // A request without any tool is about something else, such as a title for the conversation.
  return { text, kind: asked.tools.length ? "missing" : "aside" };
}

/** Some agents only describe what a search found, and have one tool that calls it by that name. */
function foundBySearch(asked, results, name) {
  const last = results.at(-1);
  if (!SEARCH.test(last?.by ?? "") || !asked.tools.some((tool) => tool.name === "tool_call")) return undefined;
  const names = [...last.text.matchAll(/"name":\s*"([^"]+)"/g)].map((match) => match[1]);
  return find(names.map((found) => ({ name: found })), name)?.name;
}

/** How often it was searched since the last real result. */
function searches(results) {
  const real = results.findLastIndex((result) => !SEARCH.test(result.by ?? ""));
  return results.length - 1 - real;
}

function call(tool, wanted) {
  const required = tool.parameters?.required ?? [];
  const filled = Object.fromEntries(required.map((key) => [key, example(tool.parameters.properties?.[key])]));
  return { call: { name: tool.name, namespace: tool.namespace, arguments: { ...filled, ...wanted } } };
}

/** Some agents want to be told by a tool that the work is done. */
function finish(asked, text) {
  const done = asked.tools.find((tool) => /^(attempt_completion|submit_and_exit)$/.test(tool.name));
  const call = done && { name: done.name, arguments: { result: text, summary: text, verified: true } };
  return { call, text, kind: "last" };
}

/** The smallest value of a JSON schema. */
function example(schema) {
  if (schema?.enum) return schema.enum.at(-1);
  if (schema?.const !== undefined) return schema.const;
  switch (String(schema?.type).toLowerCase()) {
    case "object":
      return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([key, value]) => [key, example(value)]));
    case "array": return [];
    case "boolean": return false;
    case "integer": case "number": return 1;
    default: return "probe";
  }
}
