// The fixture server on the official TypeScript SDK 1.x; `../README.md` says what each tool does.
//
// With `--http` it listens on a free port and says where.

import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { ElicitResultSchema, SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { listen, sessions } from '../js/listen.mjs';

const COUNTER = 'test://counter';
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));
const say = text => ({ content: [{ type: 'text', text: String(text) }] });

let touched = 0;
let cancelled = 0;

function build() {
    const server = new McpServer(
        { name: 'fixture-ts1', version: '1.0.0' },
        { capabilities: { logging: {}, resources: { subscribe: true } } }
    );
    const tool = (name, inputSchema, body) => server.registerTool(name, { inputSchema }, body);
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
    // Over HTTP this question belongs to the call and travels on its stream; the one above does not.
    tool('ask_elicit', {}, async (_, { sendRequest }) => {
        const requestedSchema = { type: 'object', properties: { colour: { type: 'string' } }, required: ['colour'] };
        const params = { message: 'Which colour?', requestedSchema };
        const answer = await sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema);
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
    tool('hang_up', {}, async (_, { closeSSEStream }) => {
        closeSSEStream?.();
        await sleep(300);
        return say('still here');
    });
    tool('touch', {}, async () => {
        touched += 1;
        if (watched.has(COUNTER)) await server.server.sendResourceUpdated({ uri: COUNTER });
        return say(touched);
    });
    tool('log', { level: z.string(), text: z.string() }, async ({ level, text }, { sessionId }) => {
        await server.sendLoggingMessage({ level, logger: 'fixture', data: text }, sessionId);
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
    return server;
}

async function openSession(options) {
    const transport = new StreamableHTTPServerTransport(options);
    await build().connect(transport);
    return transport;
}

if (process.argv[2] === '--http') listen(sessions(openSession));
else await build().connect(new StdioServerTransport());
