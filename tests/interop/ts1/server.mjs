// The fixture server on the official TypeScript SDK 1.x; `../README.md` says what each tool does.

import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

const COUNTER = 'test://counter';
const server = new McpServer(
    { name: 'fixture-ts1', version: '1.0.0' },
    { capabilities: { logging: {}, resources: { subscribe: true } } }
);
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));
const say = text => ({ content: [{ type: 'text', text: String(text) }] });
const tool = (name, inputSchema, body) => server.registerTool(name, { inputSchema }, body);

let touched = 0;
let cancelled = 0;
const watched = new Set();

tool('echo', { text: z.string() }, ({ text }) => say(text));
tool('slow', { ms: z.number() }, async ({ ms }) => {
    await sleep(ms);
    return say(`slept ${ms}`);
});
tool('progress', { steps: z.number(), ms: z.number() }, async ({ steps, ms }, { _meta, sendNotification }) => {
    for (let step = 1; step <= steps; step++) {
        if (_meta?.progressToken !== undefined) {
            await sendNotification({
                method: 'notifications/progress',
                params: { progressToken: _meta.progressToken, progress: step, total: steps, message: `step ${step}` }
            });
        }
        // Also after the last report: one that travels with the answer is lost in some SDKs.
        await sleep(ms);
    }
    return say(`done ${steps}`);
});
tool('ask_sampling', { prompt: z.string() }, async ({ prompt }) => {
    const answer = await server.server.createMessage({
        messages: [{ role: 'user', content: { type: 'text', text: prompt } }],
        maxTokens: 100
    });
    return say(answer.content.text);
});
tool('ask_elicit', {}, async () => {
    const answer = await server.server.elicitInput({
        message: 'Which colour?',
        requestedSchema: { type: 'object', properties: { colour: { type: 'string' } }, required: ['colour'] }
    });
    return say(`${answer.action} ${answer.content?.colour}`);
});
tool('wait_cancel', {}, (_, { signal }) =>
    new Promise(resolve => {
        const timer = setTimeout(() => resolve(say('never cancelled')), 30_000);
        const stop = () => {
            clearTimeout(timer);
            cancelled += 1;
            resolve(say('cancelled'));
        };
        if (signal.aborted) stop();
        else signal.addEventListener('abort', stop, { once: true });
    })
);
tool('was_cancelled', {}, () => say(cancelled));
tool('touch', {}, async () => {
    touched += 1;
    if (watched.has(COUNTER)) await server.server.sendResourceUpdated({ uri: COUNTER });
    return say(touched);
});
tool('log', { level: z.string(), text: z.string() }, async ({ level, text }) => {
    await server.sendLoggingMessage({ level, logger: 'fixture', data: text });
    return say('logged');
});
tool('meta', {}, (_, { _meta = {} }) => {
    const { progressToken, ...rest } = _meta;
    return say(JSON.stringify(rest));
});

server.registerResource('counter', COUNTER, { mimeType: 'text/plain' }, () => ({
    contents: [{ uri: COUNTER, mimeType: 'text/plain', text: String(touched) }]
}));
server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    watched.add(params.uri);
    return {};
});
server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    watched.delete(params.uri);
    return {};
});
server.registerPrompt(
    'greet',
    {
        argsSchema: {
            name: completable(z.string(), value => ['Ada', 'Alan', 'Grace'].filter(name => name.startsWith(value)))
        }
    },
    ({ name }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Hello, ${name}!` } }] })
);

await server.connect(new StdioServerTransport());
