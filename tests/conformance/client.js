// A client for the suite's client scenarios, on the official TypeScript SDK 2.x.
//
//   node client.js URL               straight to the server that the suite started
//   node client.js --through CMD URL over stdio to `CMD URL`, which is to be outlast
//
// It does what the scenarios want to watch: it lists what there is, calls every tool, reads every
// resource, gets every prompt. The suite says in the environment which revision to speak.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const SAMPLES = { string: 'sample', integer: 2, number: 2, boolean: true, object: {}, array: [] };

const words = process.argv.slice(2);
const url = words.pop();
const through = words[0] === '--through' ? words[1] : undefined;
const { MCP_CONFORMANCE_PROTOCOL_VERSION: revision, MCP_CONFORMANCE_CONTEXT: context = '{}' } = process.env;

/** Something for every field that a schema requires and gives no default for. */
function sample({ properties = {}, required = [] } = {}) {
    const wanted = required.filter(name => properties[name]?.default === undefined);
    return Object.fromEntries(wanted.map(name => [name, SAMPLES[properties[name]?.type] ?? 'sample']));
}

/** A failed request is something that a scenario may want to see; the client goes on. */
async function attempt(what, request) {
    try {
        return await request;
    } catch (error) {
        console.error(`${what}: ${error.message}`);
    }
}

function callsFor(tools) {
    const { toolCalls } = JSON.parse(context);
    if (toolCalls) return toolCalls;
    const rich = tools.find(({ name }) => name === 'json_schema_2020_12_tool');
    if (rich) return [{ name: 'json_schema_echo', arguments: { schema: rich.inputSchema } }];
    return tools.map(({ name, inputSchema }) => ({ name, arguments: sample(inputSchema) }));
}

const client = new Client(
    { name: 'conformance-client', version: '1.0.0' },
    {
        capabilities: { elicitation: { form: { applyDefaults: true } }, roots: {}, sampling: {} },
        versionNegotiation: { mode: revision >= '2026' ? 'auto' : 'legacy' }
    }
);
client.setRequestHandler('elicitation/create', ({ params }) => ({
    action: 'accept',
    content: sample(params.requestedSchema)
}));
client.setRequestHandler('roots/list', () => ({ roots: [] }));
client.setRequestHandler('sampling/createMessage', () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: 'sample' }
}));

await client.connect(
    through
        ? new StdioClientTransport({ command: through, args: [url], stderr: 'inherit' })
        : new StreamableHTTPClientTransport(new URL(url))
);
const can = client.getServerCapabilities() ?? {};
const { tools = [] } = (await attempt('tools/list', client.listTools())) ?? {};
for (const call of callsFor(tools)) await attempt(call.name, client.callTool(call));
if (can.resources) {
    const { resources } = await client.listResources();
    for (const { uri } of resources) await attempt(uri, client.readResource({ uri }));
}
if (can.prompts) {
    const { prompts } = await client.listPrompts();
    for (const { name } of prompts) await attempt(name, client.getPrompt({ name }));
}
await client.close();
