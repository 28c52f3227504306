// What the scripted model does next. It knows the word `slow_probe`, and in mode `obey` what results tell it; nothing else.

const WANTED = "slow_probe";
// A model that is told to wait for ever must not.
const MAX_CALLS = 200;
// "Call the tool `probe_wait` with {"ticket": "…"}", in the spellings that a model would understand.
const ORDER = /\bcall (?:the )?(?:tool )?[`"']?([A-Za-z0-9_.:-]+)[`"']? (?:again )?with (?:the )?(?:arguments? )?`?(\{[^{}]*\})/i;

/** Tools that only find other tools. */
const SEARCH = /tool_?search/i;
const MAX_SEARCHES = 5;

/**
 * asked: {tools: [{name, parameters}], turns: [{role, text, results: [{by, text}]}], wants: schema of a JSON answer, if any}
 * `by` is the name of the tool that gave the result, where the API tells it.
 * Gives {call: {name, arguments}} or {text}.
 */
export function decide(asked, mode) {
  if (asked.wants) return { text: JSON.stringify(example(asked.wants)) };
  const results = asked.turns.flatMap((turn) => turn.results);
  if (results.length >= MAX_CALLS) return finish(asked, "GAVE UP: too many calls");
  const answers = results.filter((result) => !SEARCH.test(result.by ?? ""));
  const last = answers.at(-1)?.text;
  const order = mode === "obey" && last !== undefined && ORDER.exec(last);
  if (order) return callOrSearch(asked, order[1], JSON.parse(order[2]), results);
  if (last !== undefined) return finish(asked, `RESULT: ${last}`);
  return callOrSearch(asked, WANTED, {}, results);
}

/** The tool by its own name, or behind whatever prefix the client gave it. */
function find(tools, name) {
  return tools.find((tool) => tool.name === name) ?? tools.find((tool) => tool.name.endsWith(name))
    ?? tools.find((tool) => tool.name.includes(name));
}

function callOrSearch(asked, name, wanted, results) {
  const offered = find(asked.tools, name);
  if (offered) return call(offered, wanted);
  const search = asked.tools.find((tool) => SEARCH.test(tool.name));
  if (search && searches(results) < MAX_SEARCHES) return call(search, { query: name });
  return { text: `NO TOOL: ${name} is not among the ${asked.tools.length} tools offered` };
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
  return done ? { call: { name: done.name, arguments: { result: text, summary: text, verified: true } }, text } : { text };
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
